// Element types of tensors as files name them: how large they are and what they are called.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ponder {

enum class DType : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,  // 4 exponent bits (bias 7), 3 mantissa bits, no infinity
  f8_e5m2,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  f6_e2m3,
  f6_e3m2,
  f4,
  c64,  // two f32
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
};

struct DTypeInfo {
  std::string_view name;
  std::uint32_t block_elements;  // elements that share block_bytes bytes; 1 for whole-byte types
  std::uint32_t block_bytes;
};

constexpr DTypeInfo dtype_info(DType type) noexcept {
  switch (type) {
    case DType::f64:
      return {"f64", 1, 8};
    case DType::f32:
      return {"f32", 1, 4};
    case DType::f16:
      return {"f16", 1, 2};
    case DType::bf16:
      return {"bf16", 1, 2};
    case DType::f8_e4m3:
      return {"f8_e4m3", 1, 1};
    case DType::f8_e5m2:
      return {"f8_e5m2", 1, 1};
    case DType::f8_e8m0:
      return {"f8_e8m0", 1, 1};
    case DType::f8_e4m3fnuz:
      return {"f8_e4m3fnuz", 1, 1};
    case DType::f8_e5m2fnuz:
      return {"f8_e5m2fnuz", 1, 1};
    case DType::f6_e2m3:
      return {"f6_e2m3", 4, 3};
    case DType::f6_e3m2:
      return {"f6_e3m2", 4, 3};
    case DType::f4:
      return {"f4", 2, 1};
    case DType::c64:
      return {"c64", 1, 8};
    case DType::i64:
      return {"i64", 1, 8};
    case DType::i32:
      return {"i32", 1, 4};
    case DType::i16:
      return {"i16", 1, 2};
    case DType::i8:
      return {"i8", 1, 1};
    case DType::u64:
      return {"u64", 1, 8};
    case DType::u32:
      return {"u32", 1, 4};
    case DType::u16:
      return {"u16", 1, 2};
    case DType::u8:
      return {"u8", 1, 1};
    case DType::boolean:
      return {"bool", 1, 1};
  }
  return {"?", 1, 1};
}

constexpr std::string_view dtype_name(DType type) noexcept {
  return dtype_info(type).name;
}

// Bytes of `elements` values; nothing when they do not fill whole bytes or the product passes 64 bits.
constexpr std::optional<std::uint64_t> dtype_bytes(DType type, std::uint64_t elements) noexcept {
  const DTypeInfo info = dtype_info(type);
  if (elements % info.block_elements != 0) return std::nullopt;
  const std::uint64_t blocks = elements / info.block_elements;
  if (blocks > UINT64_MAX / info.block_bytes) return std::nullopt;
  return blocks * info.block_bytes;
}

}  // namespace ponder
