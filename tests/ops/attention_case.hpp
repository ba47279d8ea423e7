// Cases of kv_append and attention: what a sequence has cached, what its rows see, and the plain definition
// in double of what comes out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "op_suite_tools.hpp"

namespace ponder::ops::testing {

// The cached rows of one sequence, and pages of any backend filled with them. A page also holds another
// layer, before this one, that must stay as it is.
class Cache {
 public:
  Cache() = default;
  Cache(Random& rng, const KvShape& shape, int positions) : shape_(shape) {
    keys = Matrix::normal(rng, positions, static_cast<std::int64_t>(shape.heads) * shape.key_dim);
    values = Matrix::normal(rng, positions, static_cast<std::int64_t>(shape.heads) * shape.value_dim);
  }

  std::int64_t positions() const { return keys.rows(); }

  Matrix keys, values;  // [positions][heads * dim]

 private:
  KvShape shape_;
};

class Pages {
 public:
  Pages(Backend& b, const KvShape& shape, std::int64_t positions)
      : shape_(shape), layer_(b.kv_page_bytes(shape)) {
    const std::int64_t pages = std::max<std::int64_t>(1, (positions + kPageRows - 1) / kPageRows);
    for (std::int64_t p = 0; p < pages; ++p) {
      blocks_.emplace_back(2 * layer_);
      table_.push_back(blocks_.back().data());
    }
  }

  KvPages view() const { return {table_.data(), layer_}; }

  void append(Backend& b, const Cache& from, int first, int rows) {
    b.kv_append(shape_, KvAppend{view(), first, first, rows}, from.keys.view(), from.values.view());
  }

  void expect_other_layer_untouched() const {
    for (const auto& block : blocks_) {
      for (std::size_t i = 0; i < layer_; ++i) {
        ASSERT_EQ(block[i], std::byte{0}) << "kv_append wrote into the layer before";
      }
    }
  }

 private:
  KvShape shape_;
  std::size_t layer_;
  std::vector<AlignedBuffer<std::byte>> blocks_;
  std::vector<std::byte*> table_;
};

struct AttentionRows {
  int first_row = 0, rows = 0;
  Cache cache;
  std::int64_t visible_end = 0, window = 0, sinks = 0;
  int visible_step = 1, own_rows = 0;
  Matrix own_keys, own_values;

  std::int64_t end_of(int row) const { return visible_end + static_cast<std::int64_t>(row) * visible_step; }
  // The definition, position by position.
  bool sees(int row, std::int64_t position) const {
    if (position >= end_of(row)) return false;
    return window == 0 || position >= end_of(row) - window || position < sinks;
  }
};

struct AttentionCase {
  int heads = 0;
  KvShape kv;
  std::int64_t q_head_stride = 0;
  float scale = 1;
  Matrix q, out;
  std::vector<AttentionRows> segments;

  std::string name() const {
    std::string text =
        fmt::format("attention heads {}/{} dims {}/{}", heads, kv.heads, kv.key_dim, kv.value_dim);
    for (const AttentionRows& s : segments) {
      text += fmt::format("; rows {} end {} step {} window {} sinks {} own {}", s.rows, s.visible_end,
                          s.visible_step, s.window, s.sinks, s.own_rows);
    }
    return text;
  }

  AttentionSegment argument(const AttentionRows& s, const Pages& pages, int from, int rows) const {
    return {.first_row = s.first_row + from,
            .rows = rows,
            .cache = pages.view(),
            .visible_end = s.end_of(from),
            .visible_step = s.visible_step,
            .window = s.window,
            .sinks = s.sinks,
            .own_keys = s.own_keys.view(),
            .own_values = s.own_values.view(),
            .own_rows = s.own_rows};
  }

  void call(Backend& b, Matrix& target, std::span<const AttentionSegment> list) const {
    b.attention({.q = q.view(),
                 .q_head_stride = q_head_stride,
                 .out = target.view(),
                 .heads = heads,
                 .kv = kv,
                 .scale = scale,
                 .segments = list});
  }

  std::vector<Pages> filled(Backend& b) const {
    std::vector<Pages> pages;
    for (const AttentionRows& s : segments) {
      pages.emplace_back(b, kv, s.cache.positions());
      pages.back().append(b, s.cache, 0, static_cast<int>(s.cache.positions()));
      pages.back().expect_other_layer_untouched();
    }
    return pages;
  }

  // All segments in one call, or one call for every `group` rows of a segment.
  std::vector<float> run(Backend& b, int group = 0) const {
    const std::vector<Pages> pages = filled(b);
    Matrix target = out;
    std::vector<AttentionSegment> list;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const AttentionRows& s = segments[i];
      const int step = group == 0 ? s.rows : group;
      for (int from = 0; from < s.rows; from += step) {
        list.push_back(argument(s, pages[i], from, std::min(step, s.rows - from)));
        if (group == 0) continue;
        call(b, target, list);
        list.clear();
      }
    }
    if (group == 0) call(b, target, list);
    target.expect_guards(name());
    return target.dense();
  }
};

// The plain definition in double, with the bound of each value.
struct Expected {
  std::vector<float> values;
  std::vector<double> bounds;
};
Expected expected(const AttentionCase& c, const Tolerance& t);

enum class Kind { causal, mask_block, windowed };

// With about `before` cached positions and `own` own rows at most.
AttentionRows random_segment(Random& rng, const KvShape& kv, Kind kind, int rows, int before = 200,
                             int own = 20);
AttentionCase random_case(Random& rng, Kind kind);

// Against the definition, and all that must not change a bit: twins, rows in other company, ruined strangers.
void check_attention(const Bench& bench, const Tolerance& tolerance, Random& rng, const AttentionCase& c);

}  // namespace ponder::ops::testing
