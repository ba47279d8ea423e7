// The gated delta rule in chunk form (ops/state.hpp). With E_t the product of the decays of a chunk's rows up
// to t, d_ts that of the rows after s up to t, and S the matrix at the chunk's start:
//
//   u_t = beta_t (v_t - E_t S^T k_t - sum_{s<t} d_ts (k_s . k_t) u_s)
//   o_t = E_t S^T q_t + sum_{s<=t} d_ts (k_s . q_t) u_s
//   S  <- E S + sum_s d_s k_s (x) u_s     behind the chunk's last row
//
// Everything is a product: with S and among keys a plain one, over s a triangular one, solved for u in blocks
// of rows. Every sum runs over i or s ascending whatever the cut into calls, so a row's bits are the same
// alone and in a whole chunk.
#include <algorithm>
#include <cmath>

#include "cpu/cpu_backend.hpp"

namespace ponder::cpu {

using namespace ops;  // this room implements ops' vocabulary

namespace {

constexpr float kNormEps = 1e-6F;

// One value head's part of a state block: S and one set of slots.
struct HeadState {
  float* matrix;  // [Dk][Dv]
  float* keys;    // [Dk][slots], shared by the value heads of a key head
  float* values;  // [slots][Dv]
  float* decay;   // [slots]
  float* fade;    // [slots]
  float* carry;   // one float
  int slots;

  HeadState(const DeltaShape& s, float* state, int head, const DeltaStateLayout::Slots& at)
      : slots(at.count) {
    const std::int64_t h = head;
    matrix = state + h * s.key_dim * s.value_dim;
    keys = state + at.keys + h / s.rep() * slots * s.key_dim;
    values = state + at.values + h * slots * s.value_dim;
    decay = state + at.decay + h * slots;
    fade = state + at.fade + h * slots;
    carry = state + at.carry + h;
  }

  // Decays of the first `open` slots from their rows' e, multiplied up in the order in which rows come.
  void fade_all(int open) const {
    for (int t = 0; t < open; ++t) {
      *carry = t == 0 ? fade[0] : *carry * fade[t];
      for (int s = 0; s < t; ++s) decay[s] *= fade[t];
      decay[t] = 1.0F;
    }
  }
};

// Scratch of one task.
struct DeltaScratch {
  float* rows;     // [2 chunk][Dk]: normalised keys, then queries; for a chunk's end [Dk][chunk] faded keys
  float* dots;     // [2 chunk][chunk]: rows . keys of the chunk
  float* factors;  // [2 chunk][chunk]: dots with decays and strengths
  float* by_s;     // [2 chunk][Dv]: S^T rows
  float *e, *beta, *faded, *minus_beta_faded;  // [chunk]

  static std::size_t floats(const DeltaShape& s) {
    const auto width = static_cast<std::size_t>(s.key_dim + 2 * kDeltaChunk + s.value_dim);
    return 2 * kDeltaChunk * width + 4 * kDeltaChunk;
  }
  DeltaScratch(const DeltaShape& s, float* memory) {
    constexpr std::int64_t both = 2 * kDeltaChunk;
    dots = memory;
    factors = dots + both * kDeltaChunk;
    e = factors + both * kDeltaChunk;
    beta = e + kDeltaChunk;
    faded = beta + kDeltaChunk;
    minus_beta_faded = faded + kDeltaChunk;
    rows = minus_beta_faded + kDeltaChunk;
    by_s = rows + both * s.key_dim;
  }
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
      kernels.l2_norm(qkv + q_at, dk, kNormEps, q_factor, scratch.rows + std::int64_t{at.count + i} * dk);
    }
    for (std::int64_t d = 0; d < dk; ++d) {
      float* keys = state.keys + d * state.slots + at.slot;
      for (int i = 0; i < at.count; ++i) keys[i] = scratch.rows[std::int64_t{i} * dk + d];
    }
    Gemm g{};
    g.a = scratch.rows;
    g.a_row = dk;
    g.a_step = 1;
    g.b = state.keys;
    g.b_row = state.slots;
    g.c = scratch.dots;
    g.c_row = kDeltaChunk;
    g.rows = 2 * at.count;
    g.cols = at.slot + at.count;
    g.depth = dk;
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

  // Decays and strengths of one head's rows, and what follows from them.
  void weigh(const HeadState& state, int head, const ChunkRows& at) const {
    for (int i = 0; i < at.count; ++i) {
      scratch.e[i] = args.a[at.row + i][head];
      scratch.beta[i] = args.b[at.row + i][head];
    }
    kernels.delta_gates(scratch.e, scratch.beta, args.rate[head], args.dt_bias[head], at.count);
    std::copy_n(scratch.e, at.count, state.fade + at.slot);
    DeltaFactors f{};
    f.e = scratch.e;
    f.beta = scratch.beta;
    f.dots = scratch.dots;
    f.decay = state.decay;
    f.carry = state.carry;
    f.faded = scratch.faded;
    f.minus_beta_faded = scratch.minus_beta_faded;
    f.factors = scratch.factors;
    f.slot = at.slot;
    f.count = at.count;
    f.chunk = kDeltaChunk;
    kernels.delta_factors(f);
  }

  void run_head(const HeadState& state, int head, const ChunkRows& at) const {
    const std::int64_t dv = shape.value_dim;
    weigh(state, head, at);
    read_matrix(state, at.count);
    LowerProduct u{};
    u.x = args.qkv[at.row] + std::int64_t{2} * shape.key_heads * shape.key_dim + head * dv;
    u.x_row = args.qkv.stride;
    u.x_scale = scratch.beta;
    u.y = scratch.by_s;
    u.y_row = dv;
    u.y_scale = scratch.minus_beta_faded;
    u.factor = scratch.factors;
    u.factor_row = kDeltaChunk;
    u.u = state.values;
    u.u_row = dv;
    u.c = state.values + at.slot * dv;
    u.c_row = dv;
    u.slot = at.slot;
    u.count = at.count;
    u.cols = shape.value_dim;
    kernels.lower_product(u);
    LowerProduct out = u;
    out.x = scratch.by_s + at.count * dv;
    out.x_row = dv;
    out.x_scale = scratch.faded;
    out.y = nullptr;
    out.factor = scratch.factors + std::int64_t{at.count} * kDeltaChunk;
    out.c = args.out[at.row] + head * dv;
    out.c_row = args.out.stride;
    kernels.lower_product(out);
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
  for (std::int64_t d = 0; d < dk; ++d) {
    for (int s = 0; s < open; ++s)
      faded[d * kDeltaChunk + s] = state.keys[d * state.slots + s] * state.decay[s];
  }
  Gemm g{};
  g.a = faded;
  g.a_row = kDeltaChunk;
  g.a_step = 1;
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
  const DeltaStateLayout layout(shape);
  const std::int64_t matrix = std::int64_t{shape.key_dim} * shape.value_dim;
  const std::size_t floats = DeltaScratch::floats(shape);
  reserve(floats + static_cast<std::size_t>(shape.rep() * matrix));
  const int tasks = static_cast<int>(args.segments.size()) * shape.key_heads;
  pool_->run(tasks, [&](int index, int worker) {
    const DeltaSegment& segment = args.segments[static_cast<std::size_t>(index / shape.key_heads)];
    const int key_head = index % shape.key_heads, first_head = key_head * shape.rep();
    const DeltaTask task{kernels_, args, shape, DeltaScratch(shape, scratch(worker))};
    float* const ahead = scratch(worker) + floats;  // [rep] matrices behind a chunk on probation
    bool past = false;
    for (int done = 0; done < segment.rows;) {
      const auto slot = static_cast<int>((segment.position + done) % kDeltaChunk);
      const ChunkRows at{std::int64_t{segment.first_row} + done, slot,
                         std::min(kDeltaChunk - slot, segment.rows - done)};
      const auto head_state = [&](int h) {
        HeadState state(shape, segment.state, h, past ? layout.held : layout.open);
        if (past) state.matrix = ahead + (h - first_head) * matrix;
        return state;
      };
      task.prepare(head_state(first_head), key_head, at);
      for (int h = first_head; h < first_head + shape.rep(); ++h) task.run_head(head_state(h), h, at);
      done += at.count;
      if (slot + at.count < kDeltaChunk || (segment.hold && done == segment.rows)) continue;
      // The matrices move last: the scratch rows that all heads read become the faded keys.
      for (int h = first_head; h < first_head + shape.rep(); ++h) {
        const HeadState state = head_state(h);
        float* const moved = segment.hold ? ahead + (h - first_head) * matrix : state.matrix;
        write_matrix(kernels_, shape, state, kDeltaChunk, task.scratch.rows, moved);
      }
      past = segment.hold;
    }
  });
}

void CpuBackend::delta_settle(const DeltaShape& shape, float* block, std::int64_t position, int accepted) {
  const DeltaStateLayout layout(shape);
  const int open = static_cast<int>(position % kDeltaChunk) + accepted;
  reserve(DeltaScratch::floats(shape));
  pool_->run(shape.key_heads, [&](int key_head, int worker) {
    const int first_head = key_head * shape.rep();
    const int moved = open - kDeltaChunk;  // rows in the next chunk
    for (int h = first_head; h < first_head + shape.rep(); ++h) {
      const HeadState state(shape, block, h, layout.open), held(shape, block, h, layout.held);
      state.fade_all(std::min(open, kDeltaChunk));
      if (moved < 0) continue;
      write_matrix(kernels_, shape, state, kDeltaChunk, DeltaScratch(shape, scratch(worker)).rows,
                   state.matrix);
      std::copy_n(held.values, std::int64_t{moved} * shape.value_dim, state.values);
      std::copy_n(held.fade, moved, state.fade);
      state.fade_all(moved);
    }
    if (moved <= 0) return;
    const HeadState state(shape, block, first_head, layout.open), held(shape, block, first_head, layout.held);
    for (std::int64_t d = 0; d < shape.key_dim; ++d) {
      std::copy_n(held.keys + d * held.slots, moved, state.keys + d * state.slots);
    }
  });
}

void CpuBackend::delta_matrix(const DeltaShape& shape, const float* state, std::int64_t position,
                              float* out) {
  reserve(DeltaScratch::floats(shape));
  const auto open = static_cast<int>(position % kDeltaChunk);
  for (int h = 0; h < shape.value_heads; ++h) {
    const HeadState head(shape, const_cast<float*>(state), h,
                         DeltaStateLayout(shape).open);  // only read from
    write_matrix(kernels_, shape, head, open, scratch(0),
                 out + std::int64_t{h} * shape.key_dim * shape.value_dim);
  }
}

}  // namespace ponder::cpu
