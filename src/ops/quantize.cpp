#include "ops/quantize.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/float_types.hpp"

namespace ponder::ops {
namespace {

constexpr int kLanes = 8;  // partial sums of an error: a fixed order that compilers turn into vectors
constexpr float kHalfMax = 65504.0F;

// A group's values, zeros behind the last one of a short group.
using Group = std::array<float, kQuantGroup>;

// To the nearest integer, ties to even, for sizes below 2^22.
float nearest(float x) {
  constexpr float magic = 12582912.0F;
  return (x + magic) - magic;
}

float half(float x) {
  return f16_to_float(float_to_f16(x));
}

// 0 for scales whose inverse is none: everything then rounds to zero.
float inverse(float scale) {
  constexpr float least = 0x1p-120F;
  return std::fabs(scale) < least ? 0 : 1 / scale;
}

struct Fit {
  float error = INFINITY;  // sum of squared differences
  float scale = 0;
};

// Rounds the group with this scale. `best_scale`: the scale that suits the chosen codes best.
float group_error(const Group& x, float scale, float& best_scale) {
  const float inv = inverse(scale);
  float error[kLanes] = {}, code_value[kLanes] = {}, code_code[kLanes] = {};
  for (int i = 0; i < kQuantGroup; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const float v = x[static_cast<std::size_t>(i + l)];
      const float code = std::max(-8.0F, std::min(7.0F, nearest(v * inv)));
      const float off = v - code * scale;
      error[l] += off * off;
      code_value[l] += code * v;
      code_code[l] += code * code;
    }
  }
  float sum = 0, cv = 0, cc = 0;
  for (int l = 0; l < kLanes; ++l) {
    sum += error[l];
    cv += code_value[l];
    cc += code_code[l];
  }
  best_scale = cc == 0 ? 0 : cv / cc;
  return sum;
}

bool is_exact(std::span<const float> values, float scale, float least, float most) {
  const float inv = inverse(scale);
  if (inv == 0 || !std::isfinite(scale)) return false;
  return std::all_of(values.begin(), values.end(), [&](float v) {
    const float code = nearest(v * inv);
    return code >= least && code <= most && code * scale == v;
  });
}

// The value of largest size, with its sign.
float extreme(std::span<const float> values) {
  float most = 0;
  for (const float v : values) {
    if (std::fabs(v) > std::fabs(most)) most = v;
  }
  return most;
}

// A half-precision scale under which the group's values are codes without any error; 0: none found.
float exact_scale(const Group& x, float most) {
  for (int n = 8; n >= 1; --n) {
    for (const float sign : {-1.0F, 1.0F}) {
      const float scale = half(sign * most / static_cast<float>(n));
      if (is_exact(x, scale, -8, 7)) return scale;
    }
  }
  return 0;
}

// The best scale among those that put the largest value at or a little past the ends of the code range,
// refined by least squares. q4: of half precision and of either sign, so that the largest value may take the
// longer, negative side; q4tp: positive.
Fit search_scale(WeightType type, const Group& x) {
  const float most = extreme(x);
  if (most == 0) return {0, 0};
  const bool negative_too = type == WeightType::q4;
  const auto fitting = [&](float scale) { return type == WeightType::q4 ? half(scale) : scale; };
  Fit best;
  float refined = 0;
  const auto offer = [&](float scale) {
    if (!(std::fabs(scale) <= kHalfMax)) return;
    float next = 0;
    const float error = group_error(x, scale, next);
    if (error < best.error) {
      best = {error, scale};
      refined = next;
    }
  };
  if (negative_too || most < 0) {
    for (const float n : {7.25F, 7.5F, 7.75F, 8.0F, 8.25F, 8.5F, 8.75F, 9.0F, 9.5F, 10.0F}) {
      offer(fitting(-most / n));
    }
  }
  for (const float n : {6.25F, 6.5F, 6.75F, 7.0F, 7.25F, 7.5F, 7.75F, 8.0F, 8.5F, 9.0F}) {
    if (negative_too || most > 0) offer(fitting(most / n));
  }
  for (int i = 0; i < 3 && refined != 0; ++i) {
    const float before = best.error;
    offer(fitting(refined));
    if (best.error >= before) break;
  }
  if (!(best.error < INFINITY)) offer(std::copysign(kHalfMax, most));
  return best;
}

Group group_at(std::span<const float> values, std::size_t begin) {
  Group x{};
  const std::size_t n = std::min<std::size_t>(kQuantGroup, values.size() - begin);
  std::copy_n(values.data() + begin, n, x.begin());
  return x;
}

// Codes of values [begin, begin + a group) under `scale`; adds the squared errors.
void round_group(std::span<const float> values, std::size_t begin, float scale, int zero, float least,
                 float most, QuantizedRow& out, QuantizationError& error) {
  const std::size_t end = std::min(values.size(), begin + kQuantGroup);
  const float inv = inverse(scale);
  for (std::size_t i = begin; i < end; ++i) {
    const float code = std::clamp(nearest(values[i] * inv), least, most);
    out.codes[i] = static_cast<std::uint8_t>(static_cast<int>(code) + zero);
    const float held = code * scale;
    const double off = static_cast<double>(values[i]) - held;
    error.difference += off * off;
    error.value += static_cast<double>(values[i]) * values[i];
  }
}

void check_finite(WeightType type, std::span<const float> values, std::int64_t row) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      fail(ErrorKind::unsupported, "weight {} at [{}, {}] cannot be quantised to {}", values[i], row, i,
           weight_type_name(type));
    }
  }
}

[[noreturn]] void fail_range(WeightType type, float value, std::int64_t row) {
  fail(ErrorKind::unsupported, "weight {} in row {} is past the range of {}", value, row,
       weight_type_name(type));
}

void quantize_q8(std::span<const float> values, std::int64_t row, QuantizedRow& out,
                 QuantizationError& error) {
  constexpr float levels = 127;
  const float most = std::fabs(extreme(values));
  float scale = 0, least = -levels;
  for (int n = 128; n >= 1 && scale == 0; --n) {  // some code is n or -n in a row that has no error
    const float exact = half(most / static_cast<float>(n));
    if (is_exact(values, exact, -levels - 1, levels)) scale = exact;
    if (n == 128 && is_exact(values, -exact, -levels - 1, levels)) scale = -exact;
    if (n == 128 && scale != 0) least = -levels - 1;
  }
  if (scale == 0) scale = half(most / levels);
  if (!(scale <= kHalfMax)) fail_range(WeightType::q8, extreme(values), row);
  out.scales.assign(1, float_to_f16(scale));
  for (std::size_t i = 0; i < values.size(); i += kQuantGroup) {
    round_group(values, i, scale, 128, least, levels, out, error);
  }
}

void quantize_q4(std::span<const float> values, std::int64_t row, QuantizedRow& out,
                 QuantizationError& error) {
  out.scales.clear();
  for (std::size_t i = 0; i < values.size(); i += kQuantGroup) {
    const Group x = group_at(values, i);
    const float most = extreme(x);
    if (std::fabs(most) > 8 * kHalfMax) fail_range(WeightType::q4, most, row);
    float scale = exact_scale(x, most);
    if (scale == 0) scale = search_scale(WeightType::q4, x).scale;
    out.scales.push_back(float_to_f16(scale));
    round_group(values, i, scale, 8, -8, 7, out, error);
  }
}

// lo and step such that the ladder spans the scales the groups would like; all in half precision.
void choose_ladder(std::span<const float> wanted, QuantizedRow& out) {
  float least = INFINITY, most = 0;
  for (const float s : wanted) {
    if (s <= 0) continue;
    least = std::min(least, s);
    most = std::max(most, s);
  }
  if (most == 0) {
    out.lo = out.step = 0;
    return;
  }
  // Logarithms of half precision: rung 0 near the low end, rung 31 near the high end.
  const double low = std::log2(static_cast<double>(least)), high = std::log2(static_cast<double>(most));
  out.lo = float_to_f16(static_cast<float>(low));
  const double from = f16_to_float(out.lo);
  out.step = float_to_f16(static_cast<float>(std::max(0.0, (high - from) / (kLadderRungs - 1))));
}

// ---- rows that were q4tp before
// ------------------------------------------------------------------------------

// The largest float scale under which a group's values are codes without any error; 0: none.
float exact_float_scale(const Group& x, float most) {
  for (int n = 1; n <= 8; ++n) {
    const float scale = std::fabs(most) / static_cast<float>(n);
    for (const float s : {scale, std::nextafter(scale, 0.0F), std::nextafter(scale, INFINITY)}) {
      if (is_exact(x, s, -8, 7)) return s;
    }
  }
  return 0;
}

// Half-precision numbers around x.
std::array<std::uint16_t, 3> halves_near(double x) {
  const std::uint16_t code = float_to_f16(static_cast<float>(x));
  return {code, static_cast<std::uint16_t>(code - 1), static_cast<std::uint16_t>(code + 1)};
}

struct Ladder {
  std::uint16_t lo = 0, step = 0;
};

// Whether every group is codes of some rung.
bool holds_exactly(std::span<const float> values, const Ladder& l) {
  const auto rungs = scale_ladder(l.lo, l.step);
  for (std::size_t i = 0; i < values.size(); i += kQuantGroup) {
    const Group x = group_at(values, i);
    if (extreme(x) == 0) continue;
    if (std::none_of(rungs.begin(), rungs.end(), [&](float s) { return is_exact(x, s, -8, 7); }))
      return false;
  }
  return true;
}

// Ladders on which rung c is `least` and rung c + k is `most`.
bool find_between(std::span<const float> values, float least, float most, Ladder& out) {
  const double low = std::log2(static_cast<double>(least)), span = std::log2(static_cast<double>(most)) - low;
  for (int k = kLadderRungs - 1; k >= 1; --k) {
    for (const std::uint16_t step : halves_near(span / k)) {
      for (int c = 0; c + k < kLadderRungs; ++c) {
        for (const std::uint16_t lo : halves_near(low - c * static_cast<double>(f16_to_float(step)))) {
          const auto rungs = scale_ladder(lo, step);
          if (rungs[static_cast<std::size_t>(c)] != least || rungs[static_cast<std::size_t>(c + k)] != most)
            continue;
          out = {lo, step};
          if (holds_exactly(values, out)) return true;
        }
      }
    }
  }
  return false;
}

// The ladder of a row whose values are those of some q4tp row, as far as its scales show it.
bool find_ladder(std::span<const float> values, QuantizedRow& out) {
  float least = INFINITY, most = 0;
  for (std::size_t i = 0; i < values.size(); i += kQuantGroup) {
    const Group x = group_at(values, i);
    const float size = extreme(x);
    if (size == 0) continue;
    const float scale = exact_float_scale(x, size);
    if (scale == 0) return false;
    least = std::min(least, scale);
    most = std::max(most, scale);
  }
  Ladder found;
  bool exact = most > least && find_between(values, least, most, found);
  // One scale, or several multiples of one.
  for (int n = 1; n <= 8 && !exact && most > 0; ++n) {
    for (const std::uint16_t lo : halves_near(std::log2(static_cast<double>(least) / n))) {
      found = {lo, 0};
      exact = holds_exactly(values, found);
      if (exact) break;
    }
  }
  if (exact) {
    out.lo = found.lo;
    out.step = found.step;
  }
  return exact;
}

void quantize_q4tp(std::span<const float> values, std::int64_t row, QuantizedRow& out,
                   QuantizationError& error) {
  const auto groups = static_cast<std::size_t>(quant_groups(static_cast<std::int64_t>(values.size())));
  std::vector<float> wanted(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    const Group x = group_at(values, g * kQuantGroup);
    if (const float most = extreme(x); std::fabs(most) > 8 * kHalfMax)
      fail_range(WeightType::q4tp, most, row);
    wanted[g] = search_scale(WeightType::q4tp, x).scale;
  }
  if (!find_ladder(values, out)) choose_ladder(wanted, out);
  const auto ladder = scale_ladder(out.lo, out.step);
  out.rungs.resize(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    const Group x = group_at(values, g * kQuantGroup);
    Fit best;
    std::uint8_t rung = 0;
    for (std::size_t c = 0; c < ladder.size(); ++c) {
      if (ladder[c] > 9 * wanted[g] || 9 * ladder[c] < wanted[g]) continue;
      float unused = 0;
      const float e = group_error(x, ladder[c], unused);
      if (e < best.error) {
        best = {e, ladder[c]};
        rung = static_cast<std::uint8_t>(c);
      }
    }
    out.rungs[g] = rung;
    round_group(values, g * kQuantGroup, ladder[rung], 8, -8, 7, out, error);
  }
}

}  // namespace

std::pair<float, float> ladder_powers(std::uint16_t lo, std::uint16_t step) {
  const auto power = [](std::uint16_t e) {
    return static_cast<float>(std::exp2(static_cast<double>(f16_to_float(e))));
  };
  return {power(lo), power(step)};
}

std::array<float, kLadderRungs> scale_ladder(std::uint16_t lo, std::uint16_t step) {
  const auto [first, factor] = ladder_powers(lo, step);
  std::array<float, kLadderRungs> ladder{first};
  for (std::size_t c = 1; c < ladder.size(); ++c) ladder[c] = ladder[c - 1] * factor;
  return ladder;
}

void quantize_row(WeightType type, std::span<const float> values, std::int64_t row, QuantizedRow& out,
                  QuantizationError& error) {
  check_finite(type, values, row);
  out.codes.resize(values.size());
  switch (type) {
    case WeightType::q8:
      return quantize_q8(values, row, out, error);
    case WeightType::q4:
      return quantize_q4(values, row, out, error);
    case WeightType::q4tp:
      return quantize_q4tp(values, row, out, error);
    default:
      fail(ErrorKind::internal, "{} is not a quantised type", weight_type_name(type));
  }
}

void dequantize_row(WeightType type, const QuantizedRow& row, std::span<float> values) {
  const auto ladder =
      type == WeightType::q4tp ? scale_ladder(row.lo, row.step) : std::array<float, kLadderRungs>{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t g = i / kQuantGroup;
    const float scale = type == WeightType::q8   ? f16_to_float(row.scales[0])
                        : type == WeightType::q4 ? f16_to_float(row.scales[g])
                                                 : ladder[row.rungs[g]];
    const int zero = type == WeightType::q8 ? 128 : 8;
    values[i] = static_cast<float>(row.codes[i] - zero) * scale;
  }
}

}  // namespace ponder::ops
