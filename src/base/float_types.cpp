#include "base/float_types.hpp"

#include <cstring>

#include "base/error.hpp"

namespace ponder {
namespace {

// A narrow format of `exponent_bits` and `mantissa_bits`, IEEE style with subnormals.
struct Layout {
  int exponent_bits;
  int mantissa_bits;
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

constexpr Layout f16_layout{5, 10};
constexpr Layout e4m3_layout{4, 3};

// value >> shift, rounded to nearest with ties to even; 1 <= shift <= 31.
std::uint32_t shift_rounded(std::uint32_t value, int shift) noexcept {
  const std::uint32_t kept = value >> shift;
  const std::uint32_t rest = value & ((1U << shift) - 1);
  const std::uint32_t half = 1U << (shift - 1);
  return kept + ((rest > half || (rest == half && (kept & 1U) != 0)) ? 1 : 0);
}

// Magnitude bits of the nearest code for the finite float magnitude `bits` (sign cleared). A carry out of the
// mantissa moves into the exponent, so a value past the largest finite one gives a code past the largest.
std::uint32_t narrow(std::uint32_t bits, Layout to) noexcept {
  const int exponent = static_cast<int>(bits >> 23) - 127 + to.bias();
  const int drop = 23 - to.mantissa_bits;
  if (exponent >= (1 << to.exponent_bits)) return UINT32_MAX;
  if (exponent >= 1) {
    const std::uint32_t rebased = (static_cast<std::uint32_t>(exponent) << 23) | (bits & 0x7FFFFFU);
    return shift_rounded(rebased, drop);
  }
  // Subnormal in the narrow format: shift the full significand. A float subnormal lies far below half a unit.
  const int shift = drop + 1 - exponent;
  if (shift > 24 || (bits >> 23) == 0) return 0;
  return shift_rounded((bits & 0x7FFFFFU) | 0x800000U, shift);
}

// The finite narrow magnitude `code` as float bits.
std::uint32_t widen(std::uint32_t code, Layout from) noexcept {
  const std::uint32_t mantissa = code & ((1U << from.mantissa_bits) - 1);
  const std::uint32_t exponent = code >> from.mantissa_bits;
  if (exponent != 0) {
    const auto rebased = static_cast<std::uint32_t>(static_cast<int>(exponent) - from.bias() + 127);
    return (rebased << 23) | (mantissa << (23 - from.mantissa_bits));
  }
  // A subnormal is mantissa · 2^(1 - bias - mantissa_bits): exact in float.
  const float unit =
      std::bit_cast<float>(static_cast<std::uint32_t>(127 + 1 - from.bias() - from.mantissa_bits) << 23);
  return std::bit_cast<std::uint32_t>(static_cast<float>(mantissa) * unit);
}

template <class Bits, class Convert>
void widen_all(std::span<const std::byte> bytes, std::span<float> out, Convert convert) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Bits value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    out[i] = convert(value);
  }
}

template <class Bits, class Convert>
void narrow_all(std::span<const float> values, std::span<std::byte> out, Convert convert) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Bits value = convert(values[i]);
    std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
  }
}

void check_extents(DType type, std::size_t bytes, std::size_t values) {
  if (!is_plain_float(type)) {
    fail(ErrorKind::unsupported, "values of type {} cannot be converted to or from float", dtype_name(type));
  }
  if (dtype_bytes(type, values) != bytes) {
    fail(ErrorKind::internal, "float conversion: {} bytes for {} values of type {}", bytes, values,
         dtype_name(type));
  }
}

}  // namespace

float f16_to_float(std::uint16_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude >= 0x7C00U) return std::bit_cast<float>(sign | 0x7F800000U | ((magnitude & 0x3FFU) << 13));
  return std::bit_cast<float>(sign | widen(magnitude, f16_layout));
}

float bf16_to_float(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

float e4m3_to_float(std::uint8_t code) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80U) << 24;
  const std::uint32_t magnitude = code & 0x7FU;
  return std::bit_cast<float>(sign | (magnitude == 0x7FU ? 0x7FC00000U : widen(magnitude, e4m3_layout)));
}

std::uint16_t float_to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) {
    return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x3FFU));
  }
  const std::uint32_t code = narrow(magnitude, f16_layout);
  return static_cast<std::uint16_t>(sign | (code < 0x7C00U ? code : 0x7C00U));
}

std::uint16_t float_to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>(shift_rounded(bits, 16));
}

std::uint8_t float_to_e4m3(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint8_t>((bits >> 24) & 0x80U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint8_t>(sign | 0x7FU);
  const std::uint32_t code = narrow(magnitude, e4m3_layout);
  return static_cast<std::uint8_t>(sign | (code < 0x7EU ? code : 0x7EU));
}

bool is_plain_float(DType type) noexcept {
  return type == DType::f64 || type == DType::f32 || type == DType::f16 || type == DType::bf16 ||
         type == DType::f8_e4m3;
}

void to_floats(DType type, std::span<const std::byte> bytes, std::span<float> out) {
  check_extents(type, bytes.size(), out.size());
  if (out.empty()) return;
  switch (type) {
    case DType::f64:
      return widen_all<double>(bytes, out, [](double v) { return static_cast<float>(v); });
    case DType::f16:
      return widen_all<std::uint16_t>(bytes, out, f16_to_float);
    case DType::bf16:
      return widen_all<std::uint16_t>(bytes, out, bf16_to_float);
    case DType::f8_e4m3:
      return widen_all<std::uint8_t>(bytes, out, e4m3_to_float);
    default:
      std::memcpy(out.data(), bytes.data(), bytes.size());
  }
}

void from_floats(DType type, std::span<const float> values, std::span<std::byte> out) {
  check_extents(type, out.size(), values.size());
  if (values.empty()) return;
  switch (type) {
    case DType::f64:
      return narrow_all<double>(values, out, [](float v) { return static_cast<double>(v); });
    case DType::f16:
      return narrow_all<std::uint16_t>(values, out, float_to_f16);
    case DType::bf16:
      return narrow_all<std::uint16_t>(values, out, float_to_bf16);
    case DType::f8_e4m3:
      return narrow_all<std::uint8_t>(values, out, float_to_e4m3);
    default:
      std::memcpy(out.data(), values.data(), out.size());
  }
}

}  // namespace ponder
