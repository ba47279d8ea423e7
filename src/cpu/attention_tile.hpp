// Some rows' attention over parts of what they see, for one key/value head.
//
// What a row sees is cut at absolute positions, multiples of kPartPages pages, into parts; its own rows are a
// part behind them. Each part is an online softmax of its own, a step a page, pages in the order of
// positions; a row's result is its parts put together in order. So a row's sums run the same way whether its
// parts are computed by one task or by many, alone or beside other rows. Nothing a row does not see is
// multiplied into its result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cpu/kernels/table.hpp"
#include "cpu/kv_page.hpp"
#include "ops/backend.hpp"

namespace ponder::cpu {

inline constexpr int kPartPages = 8;
inline constexpr std::int64_t kPartRows = std::int64_t{kPartPages} * ops::kPageRows;
inline constexpr int kTileQueries = 128;  // query vectors of a tile: a page serves them all from cache

inline int tile_rows(int rep) {
  return rep < kTileQueries ? kTileQueries / rep : 1;
}

// A row of the batch and what it sees of its cache: positions [0, sinks) and [begin, end).
struct AttentionRow {
  AttentionRow(const ops::AttentionSegment& of, int r);
  bool sees(int part) const {
    const std::int64_t from = part * kPartRows, to = from + kPartRows;
    return from < sinks || (begin < to && from < end && begin < end);
  }

  const ops::AttentionSegment* segment;
  std::int64_t batch_row;
  std::int64_t sinks, begin, end;
};

// Sums of one query vector over what it has seen: out is to be divided by sum.
struct Partial {
  float* out;  // [value_dim]
  float* max;
  float* sum;
};

// total <- total and `part`, which comes behind it. `fresh`: nothing in total yet.
void put_together(const KernelTable& kernels, const Partial& total, bool fresh, const Partial& part,
                  std::int64_t value_dim);
// to <- out / sum, zeros when nothing was seen.
void finish(const KernelTable& kernels, const Partial& total, std::int64_t value_dim, float* to);

class AttentionTile {
 public:
  static std::size_t scratch_floats(const ops::AttentionArgs& args);
  // rows: at most tile_rows(rep), all with the same pages under the parts asked for.
  AttentionTile(const KernelTable& kernels, const ops::AttentionArgs& args, const KvPageLayout& layout,
                int kv_head, std::span<const AttentionRow> rows, float* scratch);

  // Sums of the rows over one part of the cache, or their own rows, into part(r, g).
  void run_part(int part);
  void run_own();
  // Query vector g of row r.
  Partial part(int r, int g) const {
    return {out_ + vector(r, g) * dv_, max_ + vector(r, g), sum_ + vector(r, g)};
  }

  // All the rows see, to the rows of args.out.
  void run_all();

 private:
  struct Range {
    int begin = 0, end = 0;
    bool empty() const { return begin >= end; }
  };
  // A page, or some own rows: keys in keys_, values where they are.
  struct Block {
    const KvHeadPage* page;
    const KvHeadPage* next;  // the page visited next, or null
    const float* own_values;
    std::int64_t own_stride;
  };

  std::int64_t vector(int r, int g) const { return std::int64_t{r} * rep_ + g; }
  void start();
  template <class Seen>
  void visit(const Block& block, Seen seen);
  void score(const Block& block, int from, int to, int end) const;
  // The query vectors of rows [from, to) that go together in a product: all, or those of one query head.
  struct Queries {
    std::int64_t first;  // the first one's number
    std::int64_t step;   // between them
    int count;
  };
  Queries queries(int from, int to, int head, bool all) const {
    if (all) return {vector(from, 0), 1, (to - from) * rep_};
    return {vector(from, head), rep_, to - from};
  }
  void score_queries(const Block& block, const Queries& q, const float* own_keys, int cols) const;
  void weigh(int r, bool fade_later) const;
  void add_values(const Block& block, int from, int to, Range all, Range common) const;
  // A panel of values: columns [column, column + width) of those that go with the key head.
  struct Panel {
    const float* values;  // of position 0
    std::int64_t stride;
    int column, width;
  };
  void add_positions(const Panel& panel, int from, int to, Range range, bool faded, const void* next) const;

  const KernelTable& kernels_;
  const ops::AttentionArgs& args_;
  const KvPageLayout& layout_;
  std::span<const AttentionRow> rows_;
  int kv_head_, rep_;
  int share_;  // value heads of the key head
  std::int64_t dk_, dv_;

  // [m] counts query vectors, row-major by (row, query head of the kv head).
  float* q_;                                             // [m][dk], scaled
  float* scores_;                                        // [m][kPageRows]
  float* out_;                                           // [m][dv]
  float* total_;                                         // [m][dv]
  float *max_, *sum_, *total_max_, *total_sum_, *fade_;  // [m]
  float* keys_;                           // [dk][kPageRows] own keys, transposed; of each query
                                          // head where values are several
  float* space_;                          // keys or values as floats
  std::array<Range, kTileQueries> seen_;  // of the present block, by row
};

}  // namespace ponder::cpu
