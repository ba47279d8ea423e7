// The small float formats weights are stored in, and their exact conversions.
//
// Widening to float is exact for every finite value. Narrowing rounds to nearest, ties to the even code.
// NaN stays NaN with its sign. Past the largest finite value f16 and bf16 become infinite; e4m3 has no
// infinity and saturates at ±448, as the writers of fp8 checkpoints do (OCP 8-bit floating point, "E4M3").
//
// Nothing here is inline: a copy compiled into a file with wider instruction sets could be the one the linker
// keeps. Kernels have their own conversions; these serve loading, checking and tests.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.hpp"

namespace ponder {

static_assert(std::endian::native == std::endian::little, "files are read in place, little-endian");

inline constexpr float e4m3_max = 448.0F;

float f16_to_float(std::uint16_t bits) noexcept;
float bf16_to_float(std::uint16_t bits) noexcept;
float e4m3_to_float(std::uint8_t code) noexcept;

std::uint16_t float_to_f16(float value) noexcept;
std::uint16_t float_to_bf16(float value) noexcept;
std::uint8_t float_to_e4m3(float value) noexcept;

// Whether to_floats() and from_floats() know this type: f64, f32, f16, bf16, f8_e4m3.
bool is_plain_float(DType type) noexcept;

// Little-endian values of `type` in `bytes` (no alignment needed) -> floats; f64 is rounded to nearest.
// bytes and out must not overlap. Throws unsupported for a type that is not a plain float, internal when
// bytes.size() is not out.size() values.
void to_floats(DType type, std::span<const std::byte> bytes, std::span<float> out);

// The reverse, with the rounding described above and the same errors.
void from_floats(DType type, std::span<const float> values, std::span<std::byte> out);

}  // namespace ponder
