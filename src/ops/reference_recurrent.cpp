// Operations with a state that moves with the rows: causal convolution and the gated delta rule.
#include <algorithm>

#include "ops/reference.hpp"

namespace ponder::ops {
namespace {

constexpr double kNormEps = 1e-6;

std::vector<double> normalised(const float* x, int dim) {
  double sum = kNormEps;
  for (int i = 0; i < dim; ++i) sum += static_cast<double>(x[i]) * x[i];
  std::vector<double> out(x, x + dim);
  for (double& v : out) v /= std::sqrt(sum);
  return out;
}

// One value head's part of a state block: S and one set of slots, see DeltaStateLayout.
struct HeadState {
  int key_dim, value_dim, slots;
  float* matrix;  // [Dk][Dv]
  float* keys;    // [Dk][slots], shared by the value heads of a key head
  float* values;  // [slots][Dv]
  float* decay;   // [slots]
  float* fades;   // [slots]
  float* carry;   // one float

  HeadState(const DeltaShape& s, float* state, int value_head, const DeltaStateLayout::Slots& at)
      : key_dim(s.key_dim), value_dim(s.value_dim), slots(at.count) {
    const auto h = static_cast<std::ptrdiff_t>(value_head);
    matrix = state + h * key_dim * value_dim;
    keys = state + at.keys + value_head / s.rep() * slots * key_dim;
    values = state + at.values + h * slots * value_dim;
    decay = state + at.decay + h * slots;
    fades = state + at.fade + h * slots;
    carry = state + at.carry + h;
  }

  float& key(int slot, int i) const { return keys[static_cast<std::ptrdiff_t>(i) * slots + slot]; }
  float* value(int slot) const { return values + static_cast<std::ptrdiff_t>(slot) * value_dim; }

  // (carry * matrix + sum over the first `open` rows of decay k (x) u)^T x.
  std::vector<double> transposed_product(const std::vector<double>& x, int open) const {
    std::vector<double> out(static_cast<std::size_t>(value_dim), 0.0);
    const double fade = *carry;
    for (int i = 0; i < key_dim; ++i) {
      for (int j = 0; j < value_dim; ++j) {
        out[j] += fade * matrix[static_cast<std::ptrdiff_t>(i) * value_dim + j] * x[i];
      }
    }
    for (int s = 0; s < open; ++s) {
      double along = 0;
      for (int i = 0; i < key_dim; ++i) along += static_cast<double>(key(s, i)) * x[i];
      for (int j = 0; j < value_dim; ++j) out[j] += decay[s] * along * value(s)[j];
    }
    return out;
  }

  // out [Dk][Dv] = S behind the first `open` rows of the chunk; out may be the matrix itself.
  void write_matrix(int open, float* out) const {
    const double fade = open == 0 ? 1.0 : static_cast<double>(*carry);
    for (int i = 0; i < key_dim; ++i) {
      for (int j = 0; j < value_dim; ++j) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) * value_dim + j;
        double sum = fade * matrix[at];
        for (int s = 0; s < open; ++s) sum += static_cast<double>(decay[s]) * key(s, i) * value(s)[j];
        out[at] = static_cast<float>(sum);
      }
    }
  }

  // Everything remembered fades by e; the row in `slot` enters unfaded.
  void fade(int slot, double e) const {
    fades[slot] = static_cast<float>(e);
    *carry = static_cast<float>(slot == 0 ? e : e * *carry);
    for (int s = 0; s < slot; ++s) decay[s] = static_cast<float>(decay[s] * e);
    decay[slot] = 1.0F;
  }
};

// One row of one value head at chunk slot `slot`; its normalised key is already in the state.
void delta_row(const HeadState& state, int slot, double e, double beta, const float* query,
               const float* value, float* out) {
  state.fade(slot, e);
  std::vector<double> key;
  for (int i = 0; i < state.key_dim; ++i) key.push_back(state.key(slot, i));
  const std::vector<double> known = state.transposed_product(key, slot);
  for (int j = 0; j < state.value_dim; ++j) {
    state.value(slot)[j] = static_cast<float>(beta * (value[j] - known[j]));
  }
  const std::vector<double> read = state.transposed_product(normalised(query, state.key_dim), slot + 1);
  const double scale = 1.0 / std::sqrt(static_cast<double>(state.key_dim));
  for (int j = 0; j < state.value_dim; ++j) out[j] = static_cast<float>(read[j] * scale);
}

}  // namespace

void ReferenceBackend::causal_conv(const ConvArgs& args) {
  const std::int64_t channels = args.channels;
  const std::int64_t past = args.kernel - 1;
  for (const ConvSegment& segment : args.segments) {
    std::vector<float> inputs(segment.state, segment.state + past * channels);  // [past + rows][channels]
    for (int r = 0; r < segment.rows; ++r) {
      const float* x = args.x[segment.first_row + r];
      inputs.insert(inputs.end(), x, x + channels);
    }
    for (int r = 0; r < segment.rows; ++r) {
      for (std::int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int j = 0; j < args.kernel; ++j) {
          sum += static_cast<double>(args.weight[j * channels + c]) * inputs[(r + j) * channels + c];
        }
        args.y[segment.first_row + r][c] = static_cast<float>(silu(sum));
      }
    }
    if (segment.hold) {
      std::copy(inputs.begin(), inputs.end(), segment.state);
    } else {
      std::copy(inputs.end() - past * channels, inputs.end(), segment.state);
    }
  }
}

void ReferenceBackend::delta_rule(const DeltaArgs& args) {
  const DeltaShape& s = args.shape;
  const DeltaStateLayout layout(s);
  const std::int64_t k_at = static_cast<std::int64_t>(s.key_heads) * s.key_dim;
  const std::int64_t v_at = 2 * k_at;
  std::vector<float> ahead;  // the matrices behind a chunk on probation
  for (const DeltaSegment& segment : args.segments) {
    const auto first_slot = static_cast<int>(segment.position % kDeltaChunk);
    for (int r = 0; r < segment.rows; ++r) {
      const std::int64_t row = segment.first_row + r;
      const float* qkv = args.qkv[row];
      const bool past = segment.hold && first_slot + r >= kDeltaChunk;
      const auto slot = static_cast<int>((segment.position + r) % kDeltaChunk);
      if (past && slot == 0) {
        ahead.resize(layout.open.keys);
        for (int h = 0; h < s.value_heads; ++h) {
          const HeadState state(s, segment.state, h, layout.open);
          state.write_matrix(kDeltaChunk, ahead.data() + (state.matrix - segment.state));
        }
      }
      for (int h = 0; h < s.value_heads; ++h) {
        HeadState state(s, segment.state, h, past ? layout.held : layout.open);
        if (past) state.matrix = ahead.data() + (state.matrix - segment.state);
        const std::int64_t key_head = h / s.rep();
        if (h % s.rep() == 0) {
          const std::vector<double> key = normalised(qkv + k_at + key_head * s.key_dim, s.key_dim);
          for (int i = 0; i < s.key_dim; ++i) state.key(slot, i) = static_cast<float>(key[i]);
        }
        const double e =
            std::exp(-args.rate[h] * softplus(static_cast<double>(args.a[row][h]) + args.dt_bias[h]));
        delta_row(state, slot, static_cast<float>(e), sigmoid(args.b[row][h]), qkv + key_head * s.key_dim,
                  qkv + v_at + static_cast<std::int64_t>(h) * s.value_dim,
                  args.out[row] + static_cast<std::int64_t>(h) * s.value_dim);
        if (slot == kDeltaChunk - 1 && !segment.hold) state.write_matrix(kDeltaChunk, state.matrix);
      }
    }
  }
}

void ReferenceBackend::delta_settle(const DeltaShape& shape, float* block, std::int64_t position,
                                    int accepted) {
  const DeltaStateLayout layout(shape);
  const int open = static_cast<int>(position % kDeltaChunk) + accepted;
  const auto refade = [](const HeadState& state, int rows) {
    for (int t = 0; t < rows; ++t) state.fade(t, state.fades[t]);
  };
  for (int h = 0; h < shape.value_heads; ++h) {
    const HeadState state(shape, block, h, layout.open), held(shape, block, h, layout.held);
    refade(state, std::min(open, kDeltaChunk));
    if (open < kDeltaChunk) continue;
    state.write_matrix(kDeltaChunk, state.matrix);
    for (int t = 0; t < open - kDeltaChunk; ++t) {
      std::copy_n(held.value(t), shape.value_dim, state.value(t));
      state.fades[t] = held.fades[t];
    }
    refade(state, open - kDeltaChunk);
  }
  if (open <= kDeltaChunk) return;
  // Keys belong to all heads of a key head: moved once all matrices have.
  for (int h = 0; h < shape.value_heads; h += shape.rep()) {
    const HeadState state(shape, block, h, layout.open), held(shape, block, h, layout.held);
    for (int t = 0; t < open - kDeltaChunk; ++t) {
      for (int i = 0; i < shape.key_dim; ++i) state.key(t, i) = held.key(t, i);
    }
  }
}

void ReferenceBackend::delta_matrix(const DeltaShape& shape, const float* state, std::int64_t position,
                                    float* out) {
  const auto open = static_cast<int>(position % kDeltaChunk);
  for (int h = 0; h < shape.value_heads; ++h) {
    const HeadState head(shape, const_cast<float*>(state), h,
                         DeltaStateLayout(shape).open);  // only read from
    head.write_matrix(open, out + static_cast<std::ptrdiff_t>(h) * shape.key_dim * shape.value_dim);
  }
}

}  // namespace ponder::ops
