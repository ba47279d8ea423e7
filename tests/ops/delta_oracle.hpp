// The gated delta rule as its equations stand, one row after the other in double, and random states in the
// chunk form of ops/state.hpp. Written from the definition, not from any implementation.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "op_suite_tools.hpp"
#include "ops/state.hpp"

namespace ponder::ops::testing {

struct DeltaRow {
  const float* q;
  const float* k;
  const float* v;
  double log_decay, beta;
};

double log_decay(double rate, double a, double dt_bias);  // -rate * softplus(a + dt_bias)
double beta_of(double b);                                 // sigmoid(b)

// S of one value head, started from a state block behind `position` rows.
class PlainDelta {
 public:
  PlainDelta(const DeltaShape& shape, const float* state, std::int64_t position, int value_head);
  std::vector<double> step(const DeltaRow& row);
  const std::vector<double>& matrix() const { return s_; }  // [Dk][Dv]
  double largest_ever() const { return largest_; }          // of |S| at any row
  double largest_read() const { return largest_read_; }     // of sum |terms| of an output at any row

 private:
  void note_size();
  int dk_, dv_;
  double largest_ = 0, largest_read_ = 0;
  std::vector<double> s_;
};

// A state as some sequence could have left it behind `position` rows.
Matrix random_delta_state(Random& rng, const DeltaShape& shape, std::int64_t position);

// The keys, values, decays and carry of the rows in the open chunk.
std::vector<float> open_chunk(const DeltaShape& shape, const float* state, std::int64_t position);

// Overwrites what belongs to no row of the open chunk (with an empty one also the carry).
void fill_stale_slots(const DeltaShape& shape, float* state, std::int64_t position, float value);

}  // namespace ponder::ops::testing
