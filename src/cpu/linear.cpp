// Products with weight matrices: embedding rows, linear layers, the greedy head.
#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "cpu/cpu_backend.hpp"

namespace ponder::cpu {

using namespace ops;  // this room implements ops' vocabulary

namespace {

static_assert(static_cast<int>(WeightType::f32) == 0 && static_cast<int>(WeightType::bf16) == 1 &&
              static_cast<int>(WeightType::f16) == 2 && static_cast<int>(WeightType::f8_e4m3) == 3 &&
              static_cast<int>(WeightType::q8) == 4 && static_cast<int>(WeightType::q4) == 5 &&
              static_cast<int>(WeightType::q4tp) == 6);
static_assert(kPackedRows == kBlockRows && kPackedGroup == kQuantGroup);
static_assert(input_group_of(0) == int8_group(WeightType::q8) &&
              input_group_of(1) == int8_group(WeightType::q4) &&
              input_group_of(2) == int8_group(WeightType::q4tp));

int row_kind(WeightType type) {
  return static_cast<int>(type);
}

constexpr std::int64_t kTaskBytes = 256 * 1024;  // weights a task reads: long streams, still many tasks
constexpr std::int64_t kRowGranule = 4;          // the row-major kernels' tile height
constexpr std::int64_t kPrefetchBytes = 4096;    // ahead in a stream of packed weights

// Weight rows cut into tasks. Many input rows in float want whole panels: each panel reads all of them again.
WorkSplit split_rows(std::int64_t rows, const CpuWeight& w, const LinearInput& input) {
  const std::int64_t granule = w.layout() != nullptr ? kBlockRows : input.panel ? kPanelRows : kRowGranule;
  return split_by_bytes(rows, w.row_bytes(), granule, kTaskBytes);
}

bool is_banned(const std::uint64_t* banned, std::int64_t id) {
  return banned != nullptr && ((banned[id / 64] >> (id % 64)) & 1U) != 0;
}

// Larger scores first, then lower ids, in whatever order candidates come; NaN never.
void offer(Candidate& best, std::int32_t id, float score) {
  if (std::isnan(score)) return;
  if (best.id < 0 || score > best.score || (score == best.score && id < best.id)) best = {id, score};
}

void scan(Candidate& best, const float* scores, std::int64_t first_id, std::int64_t count,
          const std::uint64_t* banned) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (best.id >= 0 && !(scores[i] >= best.score)) continue;
    if (is_banned(banned, first_id + i)) continue;
    offer(best, static_cast<std::int32_t>(first_id + i), scores[i]);
  }
}

}  // namespace

void CpuBackend::embed(const Weight& table, std::span<const std::int32_t> ids, Rows out) {
  const CpuWeight& w = own(table);
  for (std::size_t r = 0; r < ids.size(); ++r) {
    if (ids[r] < 0 || ids[r] >= w.rows()) {
      fail(ErrorKind::invalid_input, "token id {} at row {} is outside the vocabulary of {}", ids[r], r,
           w.rows());
    }
  }
  for_rows(static_cast<int>(ids.size()), w.cols(), [&](int r) {
    const std::int32_t id = ids[static_cast<std::size_t>(r)];
    if (w.layout() != nullptr) {
      w.layout()->read_values(w.packed().data(), id, out[r]);
      return;
    }
    const float* scale = w.scale(id);
    kernels_.embed[row_kind(w.type())](w.row(id), w.cols(), scale == nullptr ? 1.0F : *scale, out[r]);
  });
}

// Weight rows `range` times the block-th rows of the input.
void CpuBackend::multiply(const CpuWeight& w, RowRange range, const LinearInput& input, int block,
                          const ProductOut& out, int worker) {
  const int first = block * input.block_rows;
  switch (input.form) {
    case InputForm::rows:
    case InputForm::rounded_rows: {
      LinearBlock b{};
      b.w = w.row(range.begin);
      b.w_rows = range.end - range.begin;
      b.cols = w.cols();
      b.scale = w.scale(range.begin);
      b.x = static_cast<const float*>(input.data) + first * input.stride;
      b.x_stride = input.stride;
      b.x_rows = input.rows_of(block);
      b.bias = out.bias;
      b.y = out.y.data;
      b.y_stride = out.y.stride;
      b.accumulate = out.accumulate;
      b.scratch = scratch(worker);
      (input.panel ? kernels_.linear_panel : kernels_.linear)[row_kind(w.type())](b);
      return;
    }
    case InputForm::bf16: {
      Bf16Product p{};
      p.w = reinterpret_cast<const std::uint16_t*>(w.row(range.begin));
      p.w_rows = range.end - range.begin;
      p.cols = w.cols();
      p.x = static_cast<const std::uint16_t*>(input.data) + first * input.stride;
      p.x_stride = input.stride;
      p.x_rows = input.rows_of(block);
      p.bias = out.bias;
      p.y = out.y.data;
      p.y_stride = out.y.stride;
      p.accumulate = out.accumulate;
      p.scratch = scratch(worker);
      bf16_kernels_->product(p);
      return;
    }
    case InputForm::padded_rows:
    case InputForm::int8:
    case InputForm::int8_wide:
      multiply_packed(w, range, input, block, out);
      return;
  }
}

void CpuBackend::multiply_packed(const CpuWeight& w, RowRange range, const LinearInput& input, int block,
                                 const ProductOut& out) const {
  PackedProduct p{};
  p.w = w.block_of_row(range.begin);
  p.block_bytes = static_cast<std::int64_t>(w.layout()->block_bytes);
  p.w_rows = range.end - range.begin;
  p.groups = w.layout()->groups;
  p.prefetch = kPrefetchBytes;
  p.bias = out.bias;
  p.y_stride = out.y.stride;
  p.accumulate = out.accumulate;
  const int first = block * input.block_rows, rows = input.rows_of(block), kind = packed_kind(w.type());
  if (input.form == InputForm::padded_rows) {
    p.x = static_cast<const float*>(input.data) + first * input.stride;
    p.x_stride = input.stride;
    p.x_rows = rows;
    p.y = out.y.data;
    packed_kernels_.product[kind](p);
    return;
  }
  for (int r = 0; r < rows; r += kInputTile) {
    p.x = static_cast<const std::int8_t*>(input.data) + (first + r) / kInputTile * input.stride;
    p.x_rows = std::min(kInputTile, rows - r);
    p.y = out.y[r];
    packed_kernels_.dot[kind](p);
  }
}

void CpuBackend::linear(std::span<const LinearOut> outs, ConstRows x, int rows) {
  if (rows <= 0 || outs.empty()) return;
  inputs_.start(x, rows, own(*outs.front().weight).cols());
  reserve(kProductScratchFloats);
  plans_.clear();
  int tasks = 0;
  for (const LinearOut& out : outs) {
    const CpuWeight& w = own(*out.weight);
    const LinearInput& input = inputs_.get(inputs_.form_for(w), *pool_);
    plans_.push_back({&w, &input, split_rows(w.rows(), w, input), tasks});
    tasks += plans_.back().split.tasks * input.blocks();
  }
  pool_->run(tasks, [&](int task, int worker) {
    std::size_t m = plans_.size() - 1;
    while (plans_[m].first_task > task) --m;
    const LinearPlan& plan = plans_[m];
    const LinearOut& out = outs[m];
    const int at = task - plan.first_task, block = at % plan.input->blocks();
    const RowRange range = plan.split.range(at / plan.input->blocks());
    const float* bias = out.bias == nullptr ? nullptr : out.bias + range.begin;
    const Rows y{out.y[std::int64_t{block} * plan.input->block_rows] + range.begin, out.y.stride};
    multiply(*plan.weight, range, *plan.input, block, {y, bias, out.accumulate}, worker);
  });
}

// A task multiplies the same rows of both matrices; the second product waits in scratch for its gate.
void CpuBackend::gated_linear(const Weight& gate, const Weight& up, ConstRows x, int rows, Rows y) {
  if (rows <= 0) return;
  const CpuWeight& g = own(gate);
  const CpuWeight& u = own(up);
  if (g.rows() != u.rows() || g.cols() != u.cols()) {
    fail(ErrorKind::internal, "a gate of {} x {} over {} x {}", g.rows(), g.cols(), u.rows(), u.cols());
  }
  if (g.type() != u.type()) {
    const std::size_t needed = static_cast<std::size_t>(rows) * static_cast<std::size_t>(u.rows());
    if (raised_.size() < needed) raised_ = AlignedBuffer<float>(needed, Fill::none, HugePages::yes);
    const Rows raised{raised_.data(), u.rows()};
    const LinearOut outs[] = {{&gate, nullptr, y, false}, {&up, nullptr, raised, false}};
    linear(outs, x, rows);
    silu_mul(y, raised, rows, static_cast<int>(u.rows()));
    return;
  }
  inputs_.start(x, rows, g.cols());
  const LinearInput& input = inputs_.get(inputs_.form_for(g), *pool_);
  constexpr std::int64_t max_range = 128;
  WorkSplit split = split_rows(g.rows(), g, input);
  if (split.rows_per_task > max_range) split = split_by_bytes(g.rows(), 1, max_range, max_range);
  reserve(kProductScratchFloats +
          static_cast<std::size_t>(std::min(rows, input.block_rows)) * static_cast<std::size_t>(max_range));
  pool_->run(split.tasks * input.blocks(), [&](int task, int worker) {
    const int block = task % input.blocks();
    const RowRange range = split.range(task / input.blocks());
    const Rows out{y[std::int64_t{block} * input.block_rows] + range.begin, y.stride};
    const Rows other{scratch(worker) + kProductScratchFloats, max_range};
    multiply(g, range, input, block, {out, nullptr, false}, worker);
    multiply(u, range, input, block, {other, nullptr, false}, worker);
    for (int r = 0; r < input.rows_of(block); ++r) {
      kernels_.silu_mul(out[r], other[r], range.end - range.begin);
    }
  });
}

// Logits live in a worker's scratch for the time of one block of the head; each worker keeps its best per
// row.
void CpuBackend::masked_argmax(ConstRows x, int rows, const Weight& head, std::int64_t limit,
                               const std::uint64_t* banned, std::int32_t* ids) {
  const CpuWeight& w = own(head);
  if (limit > w.rows())
    fail(ErrorKind::internal, "argmax over {} ids of a head with {} rows", limit, w.rows());
  if (rows <= 0) return;
  inputs_.start(x, rows, w.cols());
  const LinearInput& input = inputs_.get(inputs_.form_for(w), *pool_);
  constexpr std::int64_t max_range = 256;
  WorkSplit split = split_rows(std::max<std::int64_t>(limit, 0), w, input);
  if (split.rows_per_task > max_range) split = split_by_bytes(limit, 1, max_range, max_range);
  reserve(kProductScratchFloats +
          static_cast<std::size_t>(std::min(rows, input.block_rows)) * static_cast<std::size_t>(max_range));
  const std::size_t candidates = static_cast<std::size_t>(pool_->size()) * static_cast<std::size_t>(rows);
  if (candidates_.size() < candidates) candidates_ = AlignedBuffer<Candidate>(candidates);
  std::fill_n(candidates_.data(), candidates, Candidate{-1, 0.0F});
  const auto best_of = [&](int worker) {
    return candidates_.data() + static_cast<std::ptrdiff_t>(worker) * rows;
  };

  pool_->run(split.tasks, [&](int task, int worker) {
    const RowRange range = split.range(task);
    const std::int64_t ids_here = range.end - range.begin;
    const Rows logits{scratch(worker) + kProductScratchFloats, ids_here};
    for (int block = 0; block < input.blocks(); ++block) {
      multiply(w, range, input, block, {logits, nullptr, false}, worker);
      for (int r = 0; r < input.rows_of(block); ++r) {
        scan(best_of(worker)[block * input.block_rows + r], logits[r], range.begin, ids_here, banned);
      }
    }
  });
  for (int r = 0; r < rows; ++r) {
    Candidate best{-1, 0.0F};
    for (int worker = 0; worker < pool_->size(); ++worker) {
      const Candidate& other = best_of(worker)[r];
      if (other.id >= 0) offer(best, other.id, other.score);
    }
    ids[r] = best.id;
  }
}

}  // namespace ponder::cpu
