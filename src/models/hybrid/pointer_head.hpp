// The pointer head: option probabilities from the hidden states at the option ends and at the decide marker.
#pragma once

#include <string>
#include <vector>

#include "formats/checkpoint.hpp"
#include "ops/backend.hpp"

namespace ponder::hybrid {

// score_j = (W_k h_j + b_k) . (W_q h_d + b_q) / sqrt(head_dim) / temperature, softmax over j.
class PointerHead {
 public:
  // Tensors q.weight and k.weight [head_dim, hidden], q.bias and k.bias [head_dim] of a head.pt. Throws
  // Error(bad_file) for a missing, mis-shaped or unknown tensor, Error(invalid_input) for a temperature that
  // is not a positive finite number.
  PointerHead(const formats::Checkpoint& state_dict, int hidden_size, double temperature);

  int head_dim() const noexcept { return head_dim_; }
  double temperature() const noexcept { return temperature_; }

  // options [count][hidden] and decide [hidden] are final-normed hidden states. Throws Error(internal) when a
  // score is not a finite number.
  std::vector<double> probabilities(ops::ConstRows options, int count, const float* decide) const;

 private:
  int hidden_ = 0;
  int head_dim_ = 0;
  double temperature_ = 1.0;
  std::vector<float> q_weight_, q_bias_, k_weight_, k_bias_;
};

}  // namespace ponder::hybrid
