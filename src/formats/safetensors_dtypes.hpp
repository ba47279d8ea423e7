// The type names of the safetensors header; internal to this room.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/dtype.hpp"

namespace ponder::formats {

inline constexpr std::array<std::pair<std::string_view, DType>, 22> safetensors_dtypes{{
    {"F64", DType::f64},
    {"F32", DType::f32},
    {"F16", DType::f16},
    {"BF16", DType::bf16},
    {"F8_E4M3", DType::f8_e4m3},
    {"F8_E5M2", DType::f8_e5m2},
    {"F8_E8M0", DType::f8_e8m0},
    {"F8_E4M3FNUZ", DType::f8_e4m3fnuz},
    {"F8_E5M2FNUZ", DType::f8_e5m2fnuz},
    {"F6_E2M3", DType::f6_e2m3},
    {"F6_E3M2", DType::f6_e3m2},
    {"F4", DType::f4},
    {"C64", DType::c64},
    {"I64", DType::i64},
    {"I32", DType::i32},
    {"I16", DType::i16},
    {"I8", DType::i8},
    {"U64", DType::u64},
    {"U32", DType::u32},
    {"U16", DType::u16},
    {"U8", DType::u8},
    {"BOOL", DType::boolean},
}};

constexpr std::optional<DType> dtype_of_safetensors_name(std::string_view name) noexcept {
  for (const auto& [known, type] : safetensors_dtypes) {
    if (known == name) return type;
  }
  return std::nullopt;
}

constexpr std::string_view safetensors_name_of(DType type) noexcept {
  for (const auto& [name, known] : safetensors_dtypes) {
    if (known == type) return name;
  }
  return {};
}

}  // namespace ponder::formats
