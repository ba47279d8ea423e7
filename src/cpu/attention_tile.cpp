#include "cpu/attention_tile.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace ponder::cpu {

using namespace ops;  // this room implements ops' vocabulary

AttentionRow::AttentionRow(const AttentionSegment& of, int r)
    : segment(&of),
      batch_row(std::int64_t{of.first_row} + r),
      end(std::max<std::int64_t>(0, of.visible_end + std::int64_t{r} * of.visible_step)) {
  begin = of.window > 0 ? std::max<std::int64_t>(0, end - of.window) : 0;
  sinks = std::clamp<std::int64_t>(of.sinks, 0, begin);
}

void put_together(const KernelTable& kernels, const Partial& total, bool fresh, const Partial& part,
                  std::int64_t value_dim) {
  if (fresh) {
    std::copy_n(part.out, value_dim, total.out);
    *total.max = *part.max;
    *total.sum = *part.sum;
    return;
  }
  float weight[kMaxLanes] = {*part.max};  // becomes e^(part's max - new max)
  const float before = *total.sum;
  const float faded = kernels.softmax(weight, 0, 1, total.max, total.sum);
  *total.sum = before * faded + *part.sum * weight[0];
  kernels.combine(faded, total.out, weight[0], part.out, value_dim, total.out);
}

void finish(const KernelTable& kernels, const Partial& total, std::int64_t value_dim, float* to) {
  const float sum = *total.sum;
  kernels.scale(total.out, sum == 0.0F ? 0.0F : 1.0F / sum, value_dim, to);
}

std::size_t AttentionTile::scratch_floats(const AttentionArgs& args) {
  const int rep = args.heads / args.kv.heads;
  const auto m = static_cast<std::size_t>(tile_rows(rep)) * static_cast<std::size_t>(rep);
  const auto dk = static_cast<std::size_t>(args.kv.key_dim), dv = static_cast<std::size_t>(args.kv.value_dim);
  const auto own = static_cast<std::size_t>(args.kv.values_per_key() > 1 ? rep : 1);
  return m * (dk + kPageRows + 2 * dv + 5) + (own * dk + kKeyBlock) * kPageRows;
}

AttentionTile::AttentionTile(const KernelTable& kernels, const AttentionArgs& args,
                             const KvPageLayout& layout, int kv_head, std::span<const AttentionRow> rows,
                             float* scratch)
    : kernels_(kernels),
      args_(args),
      layout_(layout),
      rows_(rows),
      kv_head_(kv_head),
      rep_(args.heads / args.kv.heads),
      share_(args.kv.values_per_key()),
      dk_(args.kv.key_dim),
      dv_(args.kv.value_dim) {
  const std::int64_t m = std::int64_t{tile_rows(rep_)} * rep_;
  const auto take = [&](std::int64_t floats) { return std::exchange(scratch, scratch + floats); };
  q_ = take(m * dk_);
  scores_ = take(m * kPageRows);
  out_ = take(m * dv_);
  total_ = take(m * dv_);
  space_ = take(std::int64_t{kKeyBlock} * kPageRows);
  keys_ = take((share_ > 1 ? rep_ : 1) * dk_ * kPageRows);
  for (float** each : {&max_, &sum_, &total_max_, &total_sum_, &fade_}) *each = take(m);
  for (int r = 0; r < static_cast<int>(rows_.size()); ++r) {
    const float* q = args_.q[rows_[static_cast<std::size_t>(r)].batch_row];
    for (int g = 0; g < rep_; ++g) {
      const std::int64_t head = std::int64_t{kv_head_} * rep_ + g;
      kernels_.scale(q + head * args_.q_head_stride, args_.scale, dk_, q_ + vector(r, g) * dk_);
    }
  }
}

void AttentionTile::start() {
  const auto m = static_cast<std::int64_t>(rows_.size()) * rep_;
  std::fill_n(out_, m * dv_, 0.0F);
  std::fill_n(max_, m, -std::numeric_limits<float>::infinity());
  std::fill_n(sum_, m, 0.0F);
}

void AttentionTile::score(const Block& block, int from, int to, int end) const {
  constexpr int granule = 16;
  const bool all_heads = block.page != nullptr || share_ == 1;
  for (int head = 0; head < (all_heads ? 1 : rep_); ++head) {
    score_queries(block, queries(from, to, head, all_heads), keys_ + (all_heads ? 0 : head * dk_ * kPageRows),
                  (end + granule - 1) / granule * granule);
  }
}

void AttentionTile::score_queries(const Block& block, const Queries& q, const float* own_keys,
                                  int cols) const {
  Gemm g{};
  g.a_row = dk_ * q.step;
  g.a_step = 1;
  g.b_row = kPageRows;
  g.c = scores_ + q.first * kPageRows;
  g.c_row = kPageRows * q.step;
  g.rows = q.count;
  g.cols = cols;
  // Floats lie ready, all of them; other types are expanded a block at a time.
  const bool ready = block.page == nullptr || args_.kv.type == KvType::f32;
  for (int i = 0; i < args_.kv.key_dim; i += g.depth) {
    g.depth = ready ? args_.kv.key_dim : std::min(kKeyBlock, args_.kv.key_dim - i);
    g.a = q_ + q.first * dk_ + i;
    g.b = block.page == nullptr ? own_keys : block.page->keys(kernels_, i, g.depth, space_);
    g.init = i == 0 ? nullptr : g.c;
    g.init_row = g.c_row;
    if (!ready) {  // codes come from memory while the floats of those before are multiplied
      const int next = i + g.depth;
      g.next = next < args_.kv.key_dim ? block.page->key_codes(next) : block.page->value_codes(0);
      g.next_step = layout_.row_bytes;
    }
    kernels_.gemm(g);
  }
}

// Scores of row r become weights. What was summed up before fades, now or in the next product.
void AttentionTile::weigh(int r, bool fade_later) const {
  const Range range = seen_[static_cast<std::size_t>(r)];
  for (std::int64_t m = vector(r, 0); m < vector(r + 1, 0); ++m) {
    const float faded = kernels_.softmax(scores_ + m * kPageRows, range.begin, range.end, max_ + m, sum_ + m);
    fade_[m] = fade_later ? faded : 1.0F;
    if (!fade_later && faded != 1.0F) kernels_.scale(out_ + m * dv_, faded, dv_, out_ + m * dv_);
  }
}

// Rows [from, to) += their weights for the positions of `range` times the panel's values, for each value head
// the queries that read it. `faded`: what was there fades first.
void AttentionTile::add_positions(const Panel& panel, int from, int to, Range range, bool faded,
                                  const void* next) const {
  if (range.empty()) return;
  const int dv = args_.kv.value_dim, heads_per_value = rep_ / share_;
  const int end = panel.column + panel.width;
  for (int v = panel.column / dv; v * dv < end; ++v) {
    const int first = std::max(panel.column, v * dv), last = std::min(end, (v + 1) * dv);
    for (int head = v * heads_per_value; head < (v + 1) * heads_per_value; ++head) {
      const Queries q = queries(from, to, head, share_ == 1);
      Gemm g{};
      g.a = scores_ + q.first * kPageRows + range.begin;
      g.a_row = kPageRows * q.step;
      g.a_step = 1;
      g.b = panel.values + range.begin * panel.stride + (first - panel.column);
      g.b_row = panel.stride;
      g.c = out_ + q.first * dv_ + (first - v * dv);
      g.c_row = dv_ * q.step;
      g.init = g.c;
      g.init_row = g.c_row;
      g.scale = faded ? fade_ + q.first : nullptr;
      g.scale_step = q.step;
      g.rows = q.count;
      g.cols = last - first;
      g.depth = range.end - range.begin;
      g.next = next;
      g.next_step = layout_.row_bytes;
      kernels_.gemm(g);
      if (share_ == 1) break;  // all queries at once
    }
  }
}

// Positions that all rows see are multiplied for all rows at once, the others row by row, in order.
void AttentionTile::add_values(const Block& block, int from, int to, Range all, Range common) const {
  const int columns = args_.kv.value_width();
  for (int c = 0; c < columns; c += kValuePanel) {
    Panel panel{};
    panel.column = c;
    panel.width = std::min(kValuePanel, columns - c);
    panel.values = block.page == nullptr
                       ? block.own_values + c
                       : block.page->values(kernels_, c, panel.width, all.begin, all.end, space_);
    panel.stride = block.page == nullptr ? block.own_stride : panel.width;
    for (int r = from; r < to; ++r) {
      const Range range = seen_[static_cast<std::size_t>(r)];
      add_positions(panel, r, r + 1, {range.begin, std::min(range.end, common.begin)}, false, nullptr);
    }
    const void* next = nullptr;
    if (block.page != nullptr && args_.kv.type != KvType::f32) {
      if (c + panel.width < columns) {
        next = block.page->value_codes(c + panel.width);
      } else if (block.next != nullptr) {
        next = block.next->key_codes(0);
      }
    }
    add_positions(panel, from, to, common, true, next);
    if (common.empty()) continue;
    for (int r = from; r < to; ++r) {
      const Range range = seen_[static_cast<std::size_t>(r)];
      add_positions(panel, r, r + 1, {common.end, range.end}, false, nullptr);
    }
  }
}

// One block; seen(r) is what row r sees of it.
template <class Seen>
void AttentionTile::visit(const Block& block, Seen seen) {
  int from = static_cast<int>(rows_.size()), to = 0;
  Range all{kPageRows, 0}, common{0, kPageRows};
  bool whole = true;
  for (int r = 0; r < static_cast<int>(rows_.size()); ++r) {
    const Range range = seen(rows_[static_cast<std::size_t>(r)]);
    seen_[static_cast<std::size_t>(r)] = range;
    if (range.empty()) continue;
    whole = whole && (from == static_cast<int>(rows_.size()) || to == r);
    from = std::min(from, r);
    to = r + 1;
    all = {std::min(all.begin, range.begin), std::max(all.end, range.end)};
    common = {std::max(common.begin, range.begin), std::min(common.end, range.end)};
  }
  if (from >= to) return;
  if (!whole || common.empty()) common = {kPageRows, kPageRows};
  score(block, from, to, all.end);
  for (int r = from; r < to; ++r) {
    const Range range = seen_[static_cast<std::size_t>(r)];
    if (!range.empty()) weigh(r, !common.empty() && range.begin == common.begin);
  }
  add_values(block, from, to, all, common);
}

void AttentionTile::run_part(int part) {
  start();
  std::int64_t end = 0, sinks = 0;
  for (const AttentionRow& row : rows_) {
    end = std::max(end, row.end);
    sinks = std::max(sinks, row.sinks);
  }
  const KvPages cache = rows_.front().segment->cache;
  for (std::int64_t page = std::int64_t{part} * kPartPages; page < (std::int64_t{part} + 1) * kPartPages;
       ++page) {
    const std::int64_t at = page * kPageRows;
    if (at >= end) break;
    const auto seen = [at](std::int64_t from, std::int64_t to) {
      return Range{static_cast<int>(std::clamp<std::int64_t>(from - at, 0, kPageRows)),
                   static_cast<int>(std::clamp<std::int64_t>(to - at, 0, kPageRows))};
    };
    const auto anyone = [&](std::int64_t from) {  // pages that nobody sees may not be there
      return std::any_of(rows_.begin(), rows_.end(), [from](const AttentionRow& row) {
        return from < row.sinks || (from < row.end && from + kPageRows > row.begin);
      });
    };
    if (!anyone(at)) continue;
    const KvHeadPage head(args_.kv, layout_, cache.pages[page] + cache.offset, kv_head_);
    const bool more = page + 1 < (std::int64_t{part} + 1) * kPartPages && anyone(at + kPageRows);
    const KvHeadPage next(args_.kv, layout_, cache.pages[more ? page + 1 : page] + cache.offset, kv_head_);
    const Block block{&head, more ? &next : nullptr, nullptr, 0};
    if (at < sinks) visit(block, [&](const AttentionRow& row) { return seen(0, row.sinks); });
    visit(block, [&](const AttentionRow& row) { return seen(row.begin, row.end); });
  }
}

void AttentionTile::run_own() {
  start();
  const AttentionSegment& segment = *rows_.front().segment;
  const int key_sets = share_ > 1 ? rep_ : 1;
  for (int at = 0; at < segment.own_rows; at += kPageRows) {
    const int count = std::min(kPageRows, segment.own_rows - at);
    for (std::int64_t i = 0; i < key_sets * dk_; ++i) {
      for (int j = 0; j < kPageRows; ++j) {
        keys_[i * kPageRows + j] = j < count ? segment.own_keys[at + j][kv_head_ * key_sets * dk_ + i] : 0.0F;
      }
    }
    const std::int64_t values_at = std::int64_t{kv_head_} * args_.kv.value_width();
    const Block block{nullptr, nullptr, segment.own_values[at] + values_at, segment.own_values.stride};
    visit(block, [count](const AttentionRow&) { return Range{0, count}; });
  }
}

void AttentionTile::run_all() {
  std::int64_t end = 0;
  for (const AttentionRow& row : rows_) end = std::max(end, row.end);
  const int parts = static_cast<int>((end + kPartRows - 1) / kPartRows);
  const bool own = rows_.front().segment->own_rows > 0;
  const bool single = parts + (own ? 1 : 0) <= 1;
  std::array<bool, kTileQueries> fresh;
  fresh.fill(true);
  const auto total = [&](int r, int g) {
    const std::int64_t m = vector(r, g);
    return single ? part(r, g) : Partial{total_ + m * dv_, total_max_ + m, total_sum_ + m};
  };
  const auto take = [&](int r) {
    bool& first = fresh[static_cast<std::size_t>(r)];
    for (int g = 0; g < rep_ && !single; ++g) put_together(kernels_, total(r, g), first, part(r, g), dv_);
    first = false;
  };
  const int count = static_cast<int>(rows_.size());
  for (int p = 0; p < parts; ++p) {
    const auto sees = [p](const AttentionRow& row) { return row.sees(p); };
    if (std::none_of(rows_.begin(), rows_.end(), sees)) continue;
    run_part(p);
    for (int r = 0; r < count; ++r) {
      if (sees(rows_[static_cast<std::size_t>(r)])) take(r);
    }
  }
  if (own) {
    run_own();
    for (int r = 0; r < count; ++r) take(r);
  }
  for (int r = 0; r < count; ++r) {
    float* out =
        args_.out[rows_[static_cast<std::size_t>(r)].batch_row] + std::int64_t{kv_head_} * rep_ * dv_;
    for (int g = 0; g < rep_; ++g) {
      if (fresh[static_cast<std::size_t>(r)]) {
        std::fill_n(out + g * dv_, dv_, 0.0F);
      } else {
        finish(kernels_, total(r, g), dv_, out + g * dv_);
      }
    }
  }
}

}  // namespace ponder::cpu
