// Products with weight matrices: embedding rows, linear layers, the greedy head.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/float_types.hpp"
#include "base/random.hpp"
#include "ops/reference.hpp"

namespace ponder::ops {
namespace {

const ReferenceWeight& own(const Weight& weight) {
  const auto* mine = dynamic_cast<const ReferenceWeight*>(&weight);
  if (mine == nullptr) fail(ErrorKind::internal, "reference backend: a weight of another backend was passed");
  return *mine;
}

double dot(const float* a, const float* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// One group: whole multiples of the largest size / 127. All NaN when some value is not finite.
void round_to_int8(std::span<float> group) {
  constexpr float levels = 127;
  float largest = 0;
  bool finite = true;
  for (const float v : group) {
    finite = finite && std::isfinite(v);
    largest = std::fmax(largest, std::fabs(v));
  }
  const bool counts = largest >= 0x1p-120F;  // below, the inverse would overflow
  const float inverse = counts ? levels / largest : 0;
  const float scale = counts ? largest * (1 / levels) : 0;
  for (float& v : group) {
    v = finite ? std::nearbyint(v * inverse) * scale : std::numeric_limits<float>::quiet_NaN();
  }
}

bool is_banned(const std::uint64_t* banned, std::int64_t id) {
  return banned != nullptr && ((banned[id / 64] >> (id % 64)) & 1U) != 0;
}

}  // namespace

WeightPtr ReferenceBackend::make_weight(const WeightData& data, WeightType type) {
  return std::make_shared<ReferenceWeight>(data, type);
}

WeightPtr ReferenceBackend::make_random_weight(std::int64_t rows, std::int64_t cols, WeightType type,
                                               std::uint64_t seed) {
  Random rng(seed);
  const double spread = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(cols, 1)));
  std::vector<float> values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));
  for (float& v : values) v = static_cast<float>(rng.normal() * spread);
  WeightData data;
  data.rows = rows;
  data.cols = cols;
  data.data = reinterpret_cast<const std::byte*>(values.data());
  return make_weight(data, type);
}

void ReferenceBackend::gated_linear(const Weight& gate, const Weight& up, ConstRows x, int rows, Rows y) {
  std::vector<float> other(static_cast<std::size_t>(rows) * static_cast<std::size_t>(up.rows()));
  const Rows raised{other.data(), up.rows()};
  const LinearOut outs[] = {{&gate, nullptr, y, false}, {&up, nullptr, raised, false}};
  linear(outs, x, rows);
  silu_mul(y, raised, rows, static_cast<int>(gate.rows()));
}

void ReferenceBackend::embed(const Weight& table, std::span<const std::int32_t> ids, Rows out) {
  const ReferenceWeight& w = own(table);
  for (std::size_t r = 0; r < ids.size(); ++r) {
    if (ids[r] < 0 || ids[r] >= w.rows()) {
      fail(ErrorKind::invalid_input, "token id {} at row {} is outside the vocabulary of {}", ids[r], r,
           w.rows());
    }
  }
  for (std::size_t r = 0; r < ids.size(); ++r) {
    float* row = out[static_cast<std::int64_t>(r)];
    for (std::int64_t i = 0; i < w.cols(); ++i) row[i] = w.row(ids[r])[i] * w.scale(ids[r]);
  }
}

std::vector<float> ReferenceBackend::rounded_input(const float* x, const Weight& weight) const {
  std::vector<float> out(x, x + weight.cols());
  const bool native = activations_ == ActivationType::native;
  if (native && is_quantized(weight.type())) {
    const auto size = static_cast<std::size_t>(int8_group(weight.type()));
    for (std::size_t g = 0; g < out.size(); g += size) {
      round_to_int8({out.data() + g, std::min(size, out.size() - g)});
    }
  } else if (activations_ == ActivationType::bf16 || (native && weight.type() == WeightType::bf16)) {
    for (float& v : out) v = bf16_to_float(float_to_bf16(v));
  }
  return out;
}

void ReferenceBackend::linear(std::span<const LinearOut> outs, ConstRows x, int rows) {
  for (const LinearOut& out : outs) {
    const ReferenceWeight& w = own(*out.weight);
    for (int r = 0; r < rows; ++r) {
      const std::vector<float> input = rounded_input(x[r], w);
      for (std::int64_t o = 0; o < w.rows(); ++o) {
        double y = dot(input.data(), w.row(o), w.cols()) * w.scale(o);
        if (out.bias != nullptr) y += out.bias[o];
        if (out.accumulate) y += out.y[r][o];
        out.y[r][o] = static_cast<float>(y);
      }
    }
  }
}

// Compares what `linear` would store, so that a greedy choice and the logits of the same row never disagree.
void ReferenceBackend::masked_argmax(ConstRows x, int rows, const Weight& head, std::int64_t limit,
                                     const std::uint64_t* banned, std::int32_t* ids) {
  const ReferenceWeight& w = own(head);
  if (limit > w.rows()) {
    fail(ErrorKind::internal, "argmax over {} ids of a head with {} rows", limit, w.rows());
  }
  for (int r = 0; r < rows; ++r) {
    const std::vector<float> input = rounded_input(x[r], w);
    std::int32_t best = -1;
    float best_score = 0;
    for (std::int64_t id = 0; id < limit; ++id) {
      if (is_banned(banned, id)) continue;
      const auto score = static_cast<float>(dot(input.data(), w.row(id), w.cols()) * w.scale(id));
      if (std::isnan(score) || (best >= 0 && score <= best_score)) continue;
      best = static_cast<std::int32_t>(id);
      best_score = score;
    }
    ids[r] = best;
  }
}

}  // namespace ponder::ops
