#include "models/hybrid/pointer_head.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace ponder::hybrid {
namespace {

std::vector<float> take(const formats::Checkpoint& from, const char* name,
                        const std::vector<std::int64_t>& shape) {
  const formats::TensorView& tensor = from.at(name);
  if (tensor.shape != shape) {
    fail(ErrorKind::bad_file, "{}: tensor {} has shape {}, expected {}", tensor.file, name,
         formats::shape_text(tensor.shape), formats::shape_text(shape));
  }
  return formats::float_values(tensor);
}

}  // namespace

PointerHead::PointerHead(const formats::Checkpoint& state_dict, int hidden_size, double temperature)
    : hidden_(hidden_size), temperature_(temperature) {
  // Its reciprocal sharpens the scores: a denormal one would make it infinite.
  if (!std::isfinite(temperature) || temperature <= 0 || !std::isfinite(1 / temperature)) {
    fail(ErrorKind::invalid_input, "temperature is {}, expected a positive number", temperature);
  }
  const formats::TensorView& q = state_dict.at("q.weight");
  if (q.shape.size() != 2 || q.shape[0] < 1 || q.shape[0] > 1 << 20) {
    fail(ErrorKind::bad_file, "{}: tensor q.weight has shape {}, expected [head_dim, {}]", q.file,
         formats::shape_text(q.shape), hidden_size);
  }
  const std::int64_t rows = q.shape[0];
  head_dim_ = static_cast<int>(rows);
  q_weight_ = take(state_dict, "q.weight", {rows, hidden_size});
  q_bias_ = take(state_dict, "q.bias", {rows});
  k_weight_ = take(state_dict, "k.weight", {rows, hidden_size});
  k_bias_ = take(state_dict, "k.bias", {rows});
  for (const formats::TensorView& tensor : state_dict) {
    const std::string& n = tensor.name;
    if (n != "q.weight" && n != "q.bias" && n != "k.weight" && n != "k.bias") {
      fail(ErrorKind::bad_file, "{}: tensor {} is not part of a pointer head", tensor.file, printable(n));
    }
  }
}

// Folded so that an option costs one dot product: with a = W_q h_d + b_q,
// (W_k h_j + b_k) . a = h_j . (W_k^T a) + b_k . a.
std::vector<double> PointerHead::probabilities(ops::ConstRows options, int count, const float* decide) const {
  const auto hidden = static_cast<std::size_t>(hidden_);
  std::vector<double> direction(hidden, 0.0);
  double offset = 0;
  for (std::size_t r = 0; r < static_cast<std::size_t>(head_dim_); ++r) {
    double a = q_bias_[r];
    for (std::size_t i = 0; i < hidden; ++i) a += static_cast<double>(q_weight_[r * hidden + i]) * decide[i];
    offset += a * k_bias_[r];
    for (std::size_t i = 0; i < hidden; ++i) direction[i] += a * k_weight_[r * hidden + i];
  }
  const double scale = 1.0 / (std::sqrt(static_cast<double>(head_dim_)) * temperature_);
  std::vector<double> probs(static_cast<std::size_t>(count));
  for (int j = 0; j < count; ++j) {
    double score = offset;
    for (std::size_t i = 0; i < hidden; ++i) score += direction[i] * options[j][i];
    if (!std::isfinite(score)) fail(ErrorKind::internal, "the score of option {} is not a finite number", j);
    probs[static_cast<std::size_t>(j)] = score;
  }
  const double top = *std::max_element(probs.begin(), probs.end());
  double sum = 0;
  for (double& p : probs) sum += p = std::exp((p - top) * scale);
  for (double& p : probs) p /= sum;
  return probs;
}

}  // namespace ponder::hybrid
