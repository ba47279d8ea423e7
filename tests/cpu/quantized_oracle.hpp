// Quantised matrices read by hand from their packed bytes, and inputs rounded as ops::ActivationType says:
// plain double-precision loops that share no code with the backends.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ops/backend.hpp"

namespace ponder::test {

// Half precision by its definition: sign, 5 bits of exponent, 10 of mantissa.
inline double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double size = exponent == 0    ? std::ldexp(mantissa, -24)
                      : exponent == 31 ? (mantissa == 0 ? INFINITY : NAN)
                                       : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

template <class T>
T read_as(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Value [r, i] of a packed matrix, by the layout that ops/packed_layout.hpp documents.
inline double packed_value(ops::WeightType type, std::span<const std::byte> packed, std::int64_t cols,
                           std::int64_t r, std::int64_t i) {
  const auto groups = static_cast<std::size_t>((cols + 31) / 32);
  const bool q8 = type == ops::WeightType::q8, q4 = type == ops::WeightType::q4;
  const std::size_t code_bytes = groups * (q8 ? 512 : 256);
  const std::size_t after = q8 ? 64 : q4 ? groups * 32 : groups * 16 + 192;
  const std::size_t block_bytes = (code_bytes + after + 63) / 64 * 64;
  const std::size_t block = static_cast<std::size_t>(r / 16) * block_bytes;
  const auto lane = static_cast<std::size_t>(r % 16), g = static_cast<std::size_t>(i / 32);
  const auto k = static_cast<std::size_t>(i % 32);
  const std::size_t scales = block + code_bytes;
  if (q8) {
    const auto code = read_as<std::uint8_t>(packed, block + g * 512 + (k / 4) * 64 + lane * 4 + k % 4);
    return (code - 128.0) * read_as<float>(packed, scales + lane * 4);
  }
  const auto both = read_as<std::uint8_t>(packed, block + g * 256 + (k % 16 / 4) * 64 + lane * 4 + k % 4);
  const double code = (k < 16 ? both & 15 : both >> 4) - 8.0;
  if (q4) return code * half_value(read_as<std::uint16_t>(packed, scales + (g * 16 + lane) * 2));
  const std::size_t ladder = scales + groups * 16;
  float rung = read_as<float>(packed, ladder + lane * 4);
  const auto factor = read_as<float>(packed, ladder + 64 + lane * 4);
  for (int c = read_as<std::uint8_t>(packed, scales + g * 16 + lane) % 32; c > 0; --c) rung *= factor;
  return code * rung;
}

// Nearest bfloat16 of an ordinary number: 8 bits of mantissa, ties to even.
inline double bf16_value(double x) {
  if (x == 0) return 0;
  const double unit = std::ldexp(1.0, std::ilogb(x) - 7);
  return std::nearbyint(x / unit) * unit;
}

// Inputs as they take part in a product, and how far each may be off where a code lies between two.
struct RoundedInput {
  std::vector<double> values, slack;
};

inline RoundedInput round_input(const float* x, std::int64_t n, ops::ActivationType activations,
                                ops::WeightType type) {
  using ops::ActivationType;
  const bool native = activations == ActivationType::native;
  RoundedInput out;
  for (std::int64_t i = 0; i < n; ++i) {
    out.slack.push_back(0);
    if (native && type >= ops::WeightType::q8) {
      const std::int64_t group = type == ops::WeightType::q8 ? 128 : 32, first = i / group * group;
      double largest = 0;
      for (std::int64_t k = first; k < std::min(n, first + group); ++k) {
        largest = std::max(largest, std::fabs(static_cast<double>(x[k])));
      }
      const double scale = largest / 127, steps = scale == 0 ? 0 : x[i] / scale;
      out.values.push_back(std::nearbyint(steps) * scale);
      if (std::fabs(std::fabs(steps - std::trunc(steps)) - 0.5) < 1e-4) out.slack.back() = scale;
    } else if (activations == ActivationType::bf16 || (native && type == ops::WeightType::bf16)) {
      out.values.push_back(bf16_value(x[i]));
    } else {
      out.values.push_back(x[i]);
    }
  }
  return out;
}

}  // namespace ponder::test
