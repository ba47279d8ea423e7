#include "delta_oracle.hpp"

#include <algorithm>
#include <cmath>

namespace ponder::ops::testing {
namespace {

int open_rows(std::int64_t position) {
  return static_cast<int>(position % kDeltaChunk);
}

// Where component i of the key in slot r lies.
std::size_t key_at(const DeltaShape& shape, int key_head, int r, int i) {
  return DeltaStateLayout(shape).open.keys +
         static_cast<std::size_t>((key_head * shape.key_dim + i) * kDeltaChunk + r);
}

std::vector<double> unit(const float* x, int n) {
  double sum = 1e-6;
  for (int i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  std::vector<double> out;
  for (int i = 0; i < n; ++i) out.push_back(x[i] / std::sqrt(sum));
  return out;
}

}  // namespace

double log_decay(double rate, double a, double dt_bias) {
  const double x = a + dt_bias;
  return -rate * (x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)));
}

double beta_of(double b) {
  return 1 / (1 + std::exp(-b));
}

PlainDelta::PlainDelta(const DeltaShape& shape, const float* state, std::int64_t position, int value_head)
    : dk_(shape.key_dim), dv_(shape.value_dim), s_(static_cast<std::size_t>(dk_ * dv_)) {
  const DeltaStateLayout at(shape);
  const int open = open_rows(position), key_head = value_head / shape.rep();
  const double carry = open == 0 ? 1.0 : state[at.open.carry + static_cast<std::size_t>(value_head)];
  for (int i = 0; i < dk_; ++i) {
    for (int j = 0; j < dv_; ++j) {
      double sum = carry * state[at.matrix + static_cast<std::size_t>((value_head * dk_ + i) * dv_ + j)];
      for (int r = 0; r < open; ++r) {
        const double decay = state[at.open.decay + static_cast<std::size_t>(value_head * kDeltaChunk + r)];
        const double k = state[key_at(shape, key_head, r, i)];
        const double u =
            state[at.open.values + static_cast<std::size_t>((value_head * kDeltaChunk + r) * dv_ + j)];
        sum += decay * k * u;
      }
      s_[static_cast<std::size_t>(i * dv_ + j)] = sum;
    }
  }
  note_size();
}

void PlainDelta::note_size() {
  for (double v : s_) largest_ = std::max(largest_, std::fabs(v));
}

std::vector<double> PlainDelta::step(const DeltaRow& row) {
  const std::vector<double> k = unit(row.k, dk_), q = unit(row.q, dk_);
  for (double& v : s_) v *= std::exp(row.log_decay);
  std::vector<double> out(static_cast<std::size_t>(dv_));
  for (int j = 0; j < dv_; ++j) {
    double known = 0, read = 0, size = 0;
    for (int i = 0; i < dk_; ++i)
      known += s_[static_cast<std::size_t>(i * dv_ + j)] * k[static_cast<std::size_t>(i)];
    const double u = row.beta * (row.v[j] - known);
    for (int i = 0; i < dk_; ++i) {
      double& s = s_[static_cast<std::size_t>(i * dv_ + j)];
      s += k[static_cast<std::size_t>(i)] * u;
      const double term = s * q[static_cast<std::size_t>(i)] / std::sqrt(static_cast<double>(dk_));
      read += term;
      size += std::fabs(term);
    }
    out[static_cast<std::size_t>(j)] = read;
    largest_read_ = std::max(largest_read_, size);
  }
  note_size();
  return out;
}

Matrix random_delta_state(Random& rng, const DeltaShape& shape, std::int64_t position) {
  const DeltaStateLayout at(shape);
  Matrix block(1, static_cast<std::int64_t>(at.floats), 0, random_between(rng, 0, 15));
  if (position == 0) return block;
  float* state = block[0];
  for (std::size_t i = at.matrix; i < at.open.keys; ++i) state[i] = static_cast<float>(rng.normal());
  const int open = open_rows(position);
  for (int h = 0; h < shape.key_heads; ++h) {
    for (int r = 0; r < open; ++r) {
      std::vector<float> key;
      for (int i = 0; i < shape.key_dim; ++i) key.push_back(static_cast<float>(rng.normal()));
      const std::vector<double> k = unit(key.data(), shape.key_dim);
      for (int i = 0; i < shape.key_dim; ++i) {
        state[key_at(shape, h, r, i)] = static_cast<float>(k[static_cast<std::size_t>(i)]);
      }
    }
  }
  for (int h = 0; h < shape.value_heads; ++h) {
    double left = 1;
    for (int r = open - 1; r >= 0; --r) {
      state[at.open.decay + static_cast<std::size_t>(h * kDeltaChunk + r)] = static_cast<float>(left);
      left *= rng.uniform(0.7, 1.0);
      float* u = state + at.open.values + (h * kDeltaChunk + r) * shape.value_dim;
      for (int j = 0; j < shape.value_dim; ++j) u[j] = static_cast<float>(0.5 * rng.normal());
    }
    if (open != 0) state[at.open.carry + static_cast<std::size_t>(h)] = static_cast<float>(left);
  }
  return block;
}

std::vector<float> open_chunk(const DeltaShape& shape, const float* state, std::int64_t position) {
  const DeltaStateLayout at(shape);
  const int open = open_rows(position);
  std::vector<float> out;
  auto add = [&](std::size_t start, int count) {
    out.insert(out.end(), state + start, state + start + count);
  };
  for (int h = 0; h < shape.key_heads; ++h) {
    for (int i = 0; i < shape.key_dim; ++i) add(key_at(shape, h, 0, i), open);
  }
  for (int h = 0; h < shape.value_heads; ++h) {
    add(at.open.values + static_cast<std::size_t>(h * kDeltaChunk * shape.value_dim), open * shape.value_dim);
    add(at.open.decay + static_cast<std::size_t>(h * kDeltaChunk), open);
    if (open != 0) add(at.open.carry + static_cast<std::size_t>(h), 1);
  }
  return out;
}

void fill_stale_slots(const DeltaShape& shape, float* state, std::int64_t position, float value) {
  const DeltaStateLayout at(shape);
  const int open = open_rows(position), stale = kDeltaChunk - open;
  for (int h = 0; h < shape.key_heads; ++h) {
    for (int i = 0; i < shape.key_dim; ++i) std::fill_n(state + key_at(shape, h, open, i), stale, value);
  }
  for (int h = 0; h < shape.value_heads; ++h) {
    std::fill_n(state + at.open.values + (h * kDeltaChunk + open) * shape.value_dim, stale * shape.value_dim,
                value);
    std::fill_n(state + at.open.decay + h * kDeltaChunk + open, stale, value);
    if (open == 0) state[at.open.carry + static_cast<std::size_t>(h)] = value;
  }
}

}  // namespace ponder::ops::testing
