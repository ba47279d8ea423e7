// Paged keys and values, and softmax attention over them.
//
// A page holds, as floats, keys [heads][key_dim][kPageRows] (so that scores of a page are products with lanes
// along positions) and then values [heads][kPageRows][value_dim].
//
// A task computes some rows of one segment for the query heads of one key/value head: an online softmax, one
// step a page, pages in the order of positions, the segment's own rows last. What a query row may see of a
// page is one range of positions, and nothing outside it is multiplied into a result: a row's bits do not
// depend on the rows computed beside it nor on what later positions hold.
#include <algorithm>
#include <limits>
#include <utility>

#include "cpu/cpu_backend.hpp"

namespace ponder::cpu {

using namespace ops;  // this room implements ops' vocabulary

namespace {

constexpr int kTaskQueries = 64;  // query vectors of a task: one page serves them all from cache

struct Range {
  int begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

std::int64_t page_keys_floats(const KvShape& shape) {
  return std::int64_t{shape.heads} * shape.key_dim * kPageRows;
}

float* page_keys(const KvShape& shape, KvPages cache, std::int64_t page, int head) {
  return reinterpret_cast<float*>(cache.pages[page] + cache.offset) +
         std::int64_t{head} * shape.key_dim * kPageRows;
}

float* page_values(const KvShape& shape, KvPages cache, std::int64_t page, int head) {
  return reinterpret_cast<float*>(cache.pages[page] + cache.offset) + page_keys_floats(shape) +
         std::int64_t{head} * kPageRows * shape.value_dim;
}

int rows_per_task(int rep) {
  return std::max(1, kTaskQueries / rep);
}

// Scratch of one task; m counts query vectors, row-major by (row, query head of the kv head).
struct AttentionScratch {
  float* q;       // [m][key_dim], scaled
  float* scores;  // [m][kPageRows]
  float* out;     // [m][value_dim], not yet divided by sum
  float* max;     // [m]
  float* sum;     // [m]
  float* keys;    // [key_dim][kPageRows] own keys, transposed

  static std::size_t floats(const KvShape& kv, int rep) {
    const auto m = static_cast<std::size_t>(rows_per_task(rep)) * static_cast<std::size_t>(rep);
    const auto dk = static_cast<std::size_t>(kv.key_dim), dv = static_cast<std::size_t>(kv.value_dim);
    return m * (dk + kPageRows + dv + 2) + dk * kPageRows;
  }
  AttentionScratch(const KvShape& kv, int rep, float* memory) {
    const std::int64_t m = std::int64_t{rows_per_task(rep)} * rep;
    q = memory;
    scores = q + m * kv.key_dim;
    out = scores + m * kPageRows;
    max = out + m * kv.value_dim;
    sum = max + m;
    keys = sum + m;
  }
};

// Keys [key_dim][kPageRows] and values of up to kPageRows positions.
struct Block {
  const float* keys;
  const float* values;
  std::int64_t value_stride;
};

struct AttentionTask {
  const KernelTable& kernels;
  const AttentionArgs& args;
  const AttentionSegment& segment;
  AttentionScratch scratch;
  int first, rows;  // rows [first, first + rows) of the segment
  int kv_head, rep;

  void begin() const {
    for (int r = 0; r < rows; ++r) {
      const float* q = args.q[std::int64_t{segment.first_row} + first + r];
      for (int g = 0; g < rep; ++g) {
        const std::int64_t head = std::int64_t{kv_head} * rep + g;
        kernels.scale(q + head * args.q_head_stride, args.scale, args.kv.key_dim,
                      scratch.q + (std::int64_t{r} * rep + g) * args.kv.key_dim);
      }
    }
    std::fill_n(scratch.out, std::int64_t{rows} * rep * args.kv.value_dim, 0.0F);
    std::fill_n(scratch.max, rows * rep, -std::numeric_limits<float>::infinity());
    std::fill_n(scratch.sum, rows * rep, 0.0F);
  }

  // out rows [r, r + count) += their weights for positions `range` times the block's values.
  void add_values(const Block& block, int r, int count, Range range) const {
    if (range.empty() || count == 0) return;
    const std::int64_t m = std::int64_t{r} * rep;
    Gemm g{};
    g.a = scratch.scores + m * kPageRows + range.begin;
    g.a_row = kPageRows;
    g.a_step = 1;
    g.b = block.values + range.begin * block.value_stride;
    g.b_row = block.value_stride;
    g.c = scratch.out + m * args.kv.value_dim;
    g.c_row = args.kv.value_dim;
    g.init = g.c;
    g.init_row = g.c_row;
    g.rows = count * rep;
    g.cols = args.kv.value_dim;
    g.depth = range.end - range.begin;
    kernels.gemm(g);
  }

  void score(const Block& block, int r, int count, int end) const {
    constexpr int granule = 16;
    Gemm g{};
    g.a = scratch.q + std::int64_t{r} * rep * args.kv.key_dim;
    g.a_row = args.kv.key_dim;
    g.a_step = 1;
    g.b = block.keys;
    g.b_row = kPageRows;
    g.c = scratch.scores + std::int64_t{r} * rep * kPageRows;
    g.c_row = kPageRows;
    g.rows = count * rep;
    g.cols = (end + granule - 1) / granule * granule;
    g.depth = args.kv.key_dim;
    kernels.gemm(g);
  }

  void fade(int r, Range range) const {
    for (std::int64_t m = std::int64_t{r} * rep; m < (std::int64_t{r} + 1) * rep; ++m) {
      float* out = scratch.out + m * args.kv.value_dim;
      const float faded = kernels.softmax(scratch.scores + m * kPageRows, range.begin, range.end,
                                          scratch.max + m, scratch.sum + m);
      if (faded != 1.0F) kernels.scale(out, faded, args.kv.value_dim, out);
    }
  }

  // One block; seen(r) is what row r of the task sees of it. Positions that all rows see are multiplied for
  // all rows at once, the others row by row, in order.
  template <class Seen>
  void visit(const Block& block, Seen seen) const {
    int from = rows, to = 0;
    Range all{0, 0}, common{0, kPageRows};
    bool whole = true;
    for (int r = 0; r < rows; ++r) {
      const Range range = seen(r);
      if (range.empty()) continue;
      whole = whole && (from == rows || to == r);
      from = std::min(from, r);
      to = r + 1;
      all.end = std::max(all.end, range.end);
      common = {std::max(common.begin, range.begin), std::min(common.end, range.end)};
    }
    if (from >= to) return;
    if (!whole || common.empty()) common = {kPageRows, kPageRows};
    score(block, from, to - from, all.end);
    for (int r = from; r < to; ++r) {
      const Range range = seen(r);
      if (range.empty()) continue;
      fade(r, range);
      add_values(block, r, 1, {range.begin, std::min(range.end, common.begin)});
    }
    add_values(block, from, to - from, common);
    for (int r = from; r < to; ++r) {
      if (!common.empty()) add_values(block, r, 1, {common.end, seen(r).end});
    }
  }

  // What row r sees of the cache: positions [0, sinks) and [begin, end).
  struct Visible {
    std::int64_t sinks, begin, end;
  };
  Visible visible(int r) const {
    const std::int64_t end =
        std::max<std::int64_t>(0, segment.visible_end + std::int64_t{first + r} * segment.visible_step);
    const std::int64_t begin = segment.window > 0 ? std::max<std::int64_t>(0, end - segment.window) : 0;
    return {std::clamp<std::int64_t>(segment.sinks, 0, begin), begin, end};
  }

  void visit_cache(bool sinks) const {
    const auto span_of = [&](int r) {
      const Visible v = visible(r);
      return sinks ? std::pair{std::int64_t{0}, v.sinks} : std::pair{v.begin, v.end};
    };
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
    for (int r = 0; r < rows; ++r) {
      const auto [begin, end] = span_of(r);
      if (begin >= end) continue;
      least = std::min(least, begin);
      most = std::max(most, end);
    }
    for (std::int64_t page = least / kPageRows; page * kPageRows < most; ++page) {
      const Block block{page_keys(args.kv, segment.cache, page, kv_head),
                        page_values(args.kv, segment.cache, page, kv_head), args.kv.value_dim};
      const std::int64_t at = page * kPageRows;
      visit(block, [&](int r) {
        const auto [begin, end] = span_of(r);
        return Range{static_cast<int>(std::clamp<std::int64_t>(begin - at, 0, kPageRows)),
                     static_cast<int>(std::clamp<std::int64_t>(end - at, 0, kPageRows))};
      });
    }
  }

  void visit_own() const {
    const std::int64_t dk = args.kv.key_dim, dv = args.kv.value_dim;
    for (int at = 0; at < segment.own_rows; at += kPageRows) {
      const int count = std::min(kPageRows, segment.own_rows - at);
      for (std::int64_t i = 0; i < dk; ++i) {
        for (int j = 0; j < kPageRows; ++j) {
          scratch.keys[i * kPageRows + j] = j < count ? segment.own_keys[at + j][kv_head * dk + i] : 0.0F;
        }
      }
      const Block block{scratch.keys, segment.own_values[at] + kv_head * dv, segment.own_values.stride};
      visit(block, [count](int) { return Range{0, count}; });
    }
  }

  void finish() const {
    const std::int64_t dv = args.kv.value_dim;
    for (int r = 0; r < rows; ++r) {
      float* out = args.out[std::int64_t{segment.first_row} + first + r];
      for (int g = 0; g < rep; ++g) {
        const std::int64_t m = std::int64_t{r} * rep + g;
        const float sum = scratch.sum[m];
        float* to = out + (std::int64_t{kv_head} * rep + g) * dv;
        kernels.scale(scratch.out + m * dv, sum == 0.0F ? 0.0F : 1.0F / sum, dv, to);
      }
    }
  }
};

}  // namespace

std::size_t CpuBackend::kv_page_bytes(const KvShape& shape) const {
  const std::int64_t row = std::int64_t{shape.heads} * (std::int64_t{shape.key_dim} + shape.value_dim);
  return static_cast<std::size_t>(row) * kPageRows * sizeof(float);
}

void CpuBackend::kv_append(const KvShape& shape, KvPages cache, std::int64_t position, int first_row,
                           int rows, ConstRows keys, ConstRows values) {
  if (rows <= 0) return;
  const std::int64_t first_page = position / kPageRows;
  const auto pages = static_cast<int>((position + rows - 1) / kPageRows - first_page + 1);
  // One head's part of one page.
  const auto work = [&](int task, int) {
    const std::int64_t page = first_page + task / shape.heads;
    const int head = task % shape.heads;
    const std::int64_t begin = std::max(position, page * kPageRows);
    const std::int64_t end = std::min(position + rows, (page + 1) * kPageRows);
    const std::int64_t source = first_row - position;  // batch row of position p is source + p
    float* to_keys = page_keys(shape, cache, page, head) - page * kPageRows;
    float* to_values = page_values(shape, cache, page, head) - page * kPageRows * shape.value_dim;
    const std::int64_t dk = shape.key_dim, dv = shape.value_dim;
    for (std::int64_t p = begin; p < end; ++p) {
      std::copy_n(values[source + p] + head * dv, dv, to_values + p * dv);
    }
    for (std::int64_t i = 0; i < dk; ++i) {
      for (std::int64_t p = begin; p < end; ++p) to_keys[i * kPageRows + p] = keys[source + p][head * dk + i];
    }
  };
  constexpr std::int64_t worth_a_region = 32 * 1024;
  const int tasks = pages * shape.heads;
  if (std::int64_t{rows} * shape.heads * (std::int64_t{shape.key_dim} + shape.value_dim) < worth_a_region) {
    for (int task = 0; task < tasks; ++task) work(task, 0);
    return;
  }
  pool_->run(tasks, work);
}

void CpuBackend::attention(const AttentionArgs& args) {
  if (args.kv.heads <= 0) return;
  const int rep = args.heads / args.kv.heads;
  const int tile = rows_per_task(rep);
  reserve(AttentionScratch::floats(args.kv, rep));
  first_tasks_.clear();
  int tasks = 0;
  for (const AttentionSegment& segment : args.segments) {
    first_tasks_.push_back(tasks);
    tasks += (segment.rows + tile - 1) / tile * args.kv.heads;
  }
  pool_->run(tasks, [&](int index, int worker) {
    const auto after = std::upper_bound(first_tasks_.begin(), first_tasks_.end(), index);
    const auto s = static_cast<std::size_t>(after - first_tasks_.begin() - 1);
    const AttentionSegment& segment = args.segments[s];
    const int at = index - first_tasks_[s];
    const int first = at / args.kv.heads * tile;
    const AttentionTask task{kernels_,
                             args,
                             segment,
                             AttentionScratch(args.kv, rep, scratch(worker)),
                             first,
                             std::min(tile, segment.rows - first),
                             at % args.kv.heads,
                             rep};
    task.begin();
    task.visit_cache(true);
    task.visit_cache(false);
    task.visit_own();
    task.finish();
  });
}

}  // namespace ponder::cpu
