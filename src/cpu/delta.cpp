// The gated delta rule in chunk form (ops/state.hpp). With E_t the product of the decays of a chunk's rows up
// to t, d_ts that of the rows after s up to t, and S the matrix at the chunk's start:
//
//   u_t = beta_t (v_t - E_t S^T k_t - sum_{s<t} d_ts (k_s . k_t) u_s)
//   o_t = E_t S^T q_t + sum_{s<=t} d_ts (k_s . q_t) u_s
//   S  <- E S + sum_s d_s k_s (x) u_s     behind the chunk's last row
//
// Products with S and among keys are done for all rows of a call together, the sums over s row by row. Every
// sum runs in one order whatever the cut into calls.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/cpu_backend.hpp"

namespace ponder::cpu {

using namespace ops;  // this room implements ops' vocabulary

namespace {

constexpr float kNormEps = 1e-6F;

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}
double softplus(double x) {
  return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}

// One value head's part of a state block.
struct HeadState {
  float* matrix;  // [Dk][Dv]
  float* keys;    // [chunk][Dk], shared by the value heads of a key head
  float* values;  // [chunk][Dv]
  float* decay;   // [chunk]
  float* carry;   // one float

  HeadState(const DeltaShape& s, float* state, int head) {
    const DeltaStateLayout at(s);
    const std::int64_t h = head;
    matrix = state + at.matrix + h * s.key_dim * s.value_dim;
    keys = state + at.keys + h / s.rep() * kDeltaChunk * s.key_dim;
    values = state + at.values + h * kDeltaChunk * s.value_dim;
    decay = state + at.decay + h * kDeltaChunk;
    carry = state + at.carry + h;
  }

  // Everything remembered fades by e; the row in `slot` enters unfaded.
  void fade(int slot, float e) const {
    *carry = slot == 0 ? e : *carry * e;
    for (int s = 0; s < slot; ++s) decay[s] *= e;
    decay[slot] = 1.0F;
  }
};

// Scratch of one task.
struct DeltaScratch {
  float* rows;    // [2 chunk][Dk]: normalised keys, then queries; for a chunk's end [chunk][Dk] faded keys
  float* dots;    // [2 chunk][chunk]: rows . keys of the chunk
  float* by_s;    // [2 chunk][Dv]: S^T rows
  float* factor;  // [chunk]

  static std::size_t floats(const DeltaShape& s) {
    return std::size_t{2} * kDeltaChunk * static_cast<std::size_t>(s.key_dim + kDeltaChunk + s.value_dim) +
           kDeltaChunk;
  }
  DeltaScratch(const DeltaShape& s, float* memory)
      : rows(memory),
        dots(rows + std::int64_t{2} * kDeltaChunk * s.key_dim),
        by_s(dots + std::int64_t{2} * kDeltaChunk * kDeltaChunk),
        factor(by_s + std::int64_t{2} * kDeltaChunk * s.value_dim) {}
};

// `count` rows of one chunk, from `slot` on; `row` is the first one's row of the batch.
struct ChunkRows {
  std::int64_t row;
  int slot, count;
};

struct DeltaTask {
  const KernelTable& kernels;
  const DeltaArgs& args;
  const DeltaShape& shape;
  DeltaScratch scratch;

  // Normalises the keys into the state and the scratch, the queries into the scratch; their products with the
  // chunk's keys. (Dots of a row with keys behind it come along and are not used.)
  void prepare(const HeadState& state, int key_head, const ChunkRows& at) const {
    const int dk = shape.key_dim;
    const std::int64_t q_at = std::int64_t{key_head} * dk;
    const std::int64_t k_at = q_at + std::int64_t{shape.key_heads} * dk;
    const auto q_factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dk)));
    for (int i = 0; i < at.count; ++i) {
      const float* qkv = args.qkv[at.row + i];
      float* key = scratch.rows + std::int64_t{i} * dk;
      kernels.l2_norm(qkv + k_at, dk, kNormEps, 1.0F, key);
      std::copy_n(key, dk, state.keys + std::int64_t{at.slot + i} * dk);
      kernels.l2_norm(qkv + q_at, dk, kNormEps, q_factor, scratch.rows + std::int64_t{at.count + i} * dk);
    }
    LinearBlock dots{};
    dots.w = state.keys;
    dots.w_rows = at.slot + at.count;
    dots.cols = dk;
    dots.x = scratch.rows;
    dots.x_stride = dk;
    dots.x_rows = 2 * at.count;
    dots.y = scratch.dots;
    dots.y_stride = kDeltaChunk;
    kernels.linear[static_cast<int>(WeightType::f32)](dots);
  }

  // out[n] += sum_{s < rows} factor[s] values[s][n].
  void add_values(const HeadState& state, int rows, float* out) const {
    Gemm g{};
    g.a = scratch.factor;
    g.a_step = 1;
    g.b = state.values;
    g.b_row = shape.value_dim;
    g.init = out;
    g.c = out;
    g.rows = 1;
    g.cols = shape.value_dim;
    g.depth = rows;
    kernels.gemm(g);
  }

  void read_matrix(const HeadState& state, int count) const {
    Gemm g{};
    g.a = scratch.rows;
    g.a_row = shape.key_dim;
    g.a_step = 1;
    g.b = state.matrix;
    g.b_row = shape.value_dim;
    g.c = scratch.by_s;
    g.c_row = shape.value_dim;
    g.rows = 2 * count;
    g.cols = shape.value_dim;
    g.depth = shape.key_dim;
    kernels.gemm(g);
  }

  void run_row(const HeadState& state, int head, const ChunkRows& at, int i) const {
    const std::int64_t row = at.row + i, dv = shape.value_dim;
    const int slot = at.slot + i;
    const double raw = static_cast<double>(args.a[row][head]) + static_cast<double>(args.dt_bias[head]);
    state.fade(slot, static_cast<float>(std::exp(-static_cast<double>(args.rate[head]) * softplus(raw))));
    const auto beta = static_cast<float>(sigmoid(static_cast<double>(args.b[row][head])));

    const float* key_dots = scratch.dots + std::int64_t{i} * kDeltaChunk;
    const float* query_dots = scratch.dots + std::int64_t{at.count + i} * kDeltaChunk;
    const float* v = args.qkv[row] + std::int64_t{2} * shape.key_heads * shape.key_dim + head * dv;
    float* u = state.values + slot * dv;
    kernels.combine(beta, v, -beta * *state.carry, scratch.by_s + i * dv, dv, u);
    for (int s = 0; s < slot; ++s) scratch.factor[s] = -beta * state.decay[s] * key_dots[s];
    add_values(state, slot, u);

    float* out = args.out[row] + head * dv;
    kernels.scale(scratch.by_s + (at.count + i) * dv, *state.carry, dv, out);
    for (int s = 0; s <= slot; ++s) scratch.factor[s] = state.decay[s] * query_dots[s];
    add_values(state, slot + 1, out);
  }
};

// out = carry * matrix + sum over the first `open` rows of decay k (x) u; out may be the matrix itself.
// `faded` holds chunk * Dk floats.
void write_matrix(const KernelTable& kernels, const DeltaShape& shape, const HeadState& state, int open,
                  float* faded, float* out) {
  const std::int64_t dk = shape.key_dim;
  if (open == 0) {
    std::copy_n(state.matrix, dk * shape.value_dim, out);
    return;
  }
  for (int s = 0; s < open; ++s) kernels.scale(state.keys + s * dk, state.decay[s], dk, faded + s * dk);
  Gemm g{};
  g.a = faded;
  g.a_row = 1;
  g.a_step = dk;
  g.b = state.values;
  g.b_row = shape.value_dim;
  g.init = state.matrix;
  g.init_row = shape.value_dim;
  g.scale = state.carry;
  g.c = out;
  g.c_row = shape.value_dim;
  g.rows = shape.key_dim;
  g.cols = shape.value_dim;
  g.depth = open;
  kernels.gemm(g);
}

}  // namespace

void CpuBackend::delta_rule(const DeltaArgs& args) {
  const DeltaShape& shape = args.shape;
  reserve(DeltaScratch::floats(shape));
  const int tasks = static_cast<int>(args.segments.size()) * shape.key_heads;
  pool_->run(tasks, [&](int index, int worker) {
    const DeltaSegment& segment = args.segments[static_cast<std::size_t>(index / shape.key_heads)];
    const int key_head = index % shape.key_heads;
    const DeltaTask task{kernels_, args, shape, DeltaScratch(shape, scratch(worker))};
    for (int done = 0; done < segment.rows;) {
      const auto slot = static_cast<int>((segment.position + done) % kDeltaChunk);
      const ChunkRows at{std::int64_t{segment.first_row} + done, slot,
                         std::min(kDeltaChunk - slot, segment.rows - done)};
      task.prepare(HeadState(shape, segment.state, key_head * shape.rep()), key_head, at);
      for (int h = key_head * shape.rep(); h < (key_head + 1) * shape.rep(); ++h) {
        const HeadState state(shape, segment.state, h);
        task.read_matrix(state, at.count);
        for (int i = 0; i < at.count; ++i) task.run_row(state, h, at, i);
      }
      // The matrices move last: the scratch rows that all heads read become the faded keys.
      if (slot + at.count == kDeltaChunk) {
        for (int h = key_head * shape.rep(); h < (key_head + 1) * shape.rep(); ++h) {
          const HeadState state(shape, segment.state, h);
          write_matrix(kernels_, shape, state, kDeltaChunk, task.scratch.rows, state.matrix);
        }
      }
      done += at.count;
    }
  });
}

void CpuBackend::delta_matrix(const DeltaShape& shape, const float* state, std::int64_t position,
                              float* out) {
  reserve(DeltaScratch::floats(shape));
  const auto open = static_cast<int>(position % kDeltaChunk);
  for (int h = 0; h < shape.value_heads; ++h) {
    const HeadState head(shape, const_cast<float*>(state), h);  // only read from
    write_matrix(kernels_, shape, head, open, scratch(0),
                 out + std::int64_t{h} * shape.key_dim * shape.value_dim);
  }
}

}  // namespace ponder::cpu
