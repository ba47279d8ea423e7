// Products with weight matrices: embedding rows, linear layers, the greedy head.
#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "cpu/cpu_backend.hpp"

namespace ponder::cpu {

using namespace ops;  // this room implements ops' vocabulary

namespace {

static_assert(static_cast<int>(WeightType::f32) == 0 && static_cast<int>(WeightType::bf16) == 1 &&
              static_cast<int>(WeightType::f16) == 2 && static_cast<int>(WeightType::f8_e4m3) == 3);

constexpr std::int64_t kTaskBytes = 256 * 1024;  // weights a task reads: long streams, still many tasks
constexpr std::int64_t kRowGranule = 4;          // the kernels' tile height

// Weight rows cut into tasks. Many input rows want whole panels: each panel reads all of them again.
WorkSplit split_rows(std::int64_t rows, std::int64_t row_bytes, bool panels) {
  return split_by_bytes(rows, row_bytes, panels ? kPanelRows : kRowGranule, kTaskBytes);
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
  const auto kernel = kernels_.embed[static_cast<int>(w.type())];
  for_rows(static_cast<int>(ids.size()), w.cols(), [&](int r) {
    const std::int32_t id = ids[static_cast<std::size_t>(r)];
    const float* scale = w.scale(id);
    kernel(w.row(id), w.cols(), scale == nullptr ? 1.0F : *scale, out[r]);
  });
}

CpuBackend::ProductInput CpuBackend::product_input(ConstRows x, int rows, std::int64_t cols) {
  const bool round = activations_ == ActivationType::bf16, many = rows > kernels_.few_rows;
  if (!round && !many) return {x, cols, rows, false};
  const std::int64_t col_blocks = (cols + kPanelCols - 1) / kPanelCols;
  const Rows copy{nullptr, col_blocks * kPanelCols};
  const auto needed = static_cast<std::size_t>(rows) * static_cast<std::size_t>(copy.stride);
  if (input_.size() < needed) input_ = AlignedBuffer<float>(needed, Fill::none, HugePages::yes);
  const ProductInput input{{input_.data(), copy.stride}, cols, rows, many};
  for_rows(rows, 2 * cols, [&](int r) {
    // A packed row's column blocks lie apart by the rows of its block.
    const int first = many ? r / kPanelInputs * kPanelInputs : r;
    const std::int64_t block_rows = many ? std::min(kPanelInputs, rows - first) : 1;
    float* out = input_.data() + first * copy.stride + std::int64_t{r - first} * kPanelCols;
    for (std::int64_t k = 0; k < cols; k += kPanelCols, out += block_rows * kPanelCols) {
      const std::int64_t n = std::min<std::int64_t>(kPanelCols, cols - k);
      if (round) {
        kernels_.round_bf16(x[r] + k, n, out);
      } else {
        std::copy_n(x[r] + k, n, out);
      }
      std::fill(out + n, out + kPanelCols, 0.0F);
    }
  });
  return input;
}

// Input rows from `first` on times the weight rows of `range`: all that fit one call of a kernel.
void CpuBackend::multiply(const CpuWeight& w, RowRange range, const ProductInput& input, int block,
                          LinearBlock out, int worker) {
  const int first = block * kPanelInputs;
  out.w = w.row(range.begin);
  out.w_rows = range.end - range.begin;
  out.cols = w.cols();
  out.scale = w.scale(range.begin);
  out.x = input.x[first];
  out.x_stride = input.x.stride;
  out.x_rows = std::min(kPanelInputs, input.rows - first);
  out.scratch = scratch(worker);
  const int type = static_cast<int>(w.type());
  (input.packed ? kernels_.linear_panel : kernels_.linear)[type](out);
}

void CpuBackend::linear(std::span<const LinearOut> outs, ConstRows x, int rows) {
  if (rows <= 0 || outs.empty()) return;
  const ProductInput input = product_input(x, rows, own(*outs.front().weight).cols());
  reserve(kLinearScratchFloats);
  plans_.clear();
  int tasks = 0;
  for (const LinearOut& out : outs) {
    const CpuWeight& w = own(*out.weight);
    plans_.push_back({split_rows(w.rows(), w.row_bytes(), input.packed), tasks});
    tasks += plans_.back().split.tasks * input.blocks();
  }
  pool_->run(tasks, [&](int task, int worker) {
    std::size_t m = plans_.size() - 1;
    while (plans_[m].first_task > task) --m;
    const LinearOut& out = outs[m];
    const int at = task - plans_[m].first_task, block = at % input.blocks();
    const RowRange range = plans_[m].split.range(at / input.blocks());
    LinearBlock b{};
    b.bias = out.bias == nullptr ? nullptr : out.bias + range.begin;
    b.y = out.y[std::int64_t{block} * kPanelInputs] + range.begin;
    b.y_stride = out.y.stride;
    b.accumulate = out.accumulate;
    multiply(own(*out.weight), range, input, block, b, worker);
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
  const ProductInput input = product_input(x, rows, w.cols());
  constexpr std::int64_t max_block = 256;
  WorkSplit split = split_rows(std::max<std::int64_t>(limit, 0), w.row_bytes(), input.packed);
  if (split.rows_per_task > max_block) split = split_by_bytes(limit, 1, max_block, max_block);
  reserve(kLinearScratchFloats + static_cast<std::size_t>(kPanelInputs * max_block));
  const std::size_t candidates = static_cast<std::size_t>(pool_->size()) * static_cast<std::size_t>(rows);
  if (candidates_.size() < candidates) candidates_ = AlignedBuffer<Candidate>(candidates);
  std::fill_n(candidates_.data(), candidates, Candidate{-1, 0.0F});
  const auto best_of = [&](int worker) {
    return candidates_.data() + static_cast<std::ptrdiff_t>(worker) * rows;
  };

  pool_->run(split.tasks, [&](int task, int worker) {
    const RowRange range = split.range(task);
    const std::int64_t ids_here = range.end - range.begin;
    LinearBlock b{};
    b.y = scratch(worker) + kLinearScratchFloats;
    b.y_stride = ids_here;
    for (int block = 0; block < input.blocks(); ++block) {
      multiply(w, range, input, block, b, worker);
      const int first = block * kPanelInputs;
      for (int r = first; r < std::min(rows, first + kPanelInputs); ++r) {
        scan(best_of(worker)[r], b.y + (r - first) * ids_here, range.begin, ids_here, banned);
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
