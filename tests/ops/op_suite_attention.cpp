// kv_append and attention: causal rows, blocks of mask rows, windows with sinks, and the cache under them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/aligned_buffer.hpp"
#include "op_suite_tools.hpp"

namespace ponder::ops::testing {
namespace {

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
    b.kv_append(shape_, view(), first, first, rows, from.keys.view(), from.values.view());
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

struct Segment {
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
  std::vector<Segment> segments;

  std::string name() const {
    std::string text =
        fmt::format("attention heads {}/{} dims {}/{}", heads, kv.heads, kv.key_dim, kv.value_dim);
    for (const Segment& s : segments) {
      text += fmt::format("; rows {} end {} step {} window {} sinks {} own {}", s.rows, s.visible_end,
                          s.visible_step, s.window, s.sinks, s.own_rows);
    }
    return text;
  }

  AttentionSegment argument(const Segment& s, const Pages& pages, int from, int rows) const {
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
    for (const Segment& s : segments) {
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
      const Segment& s = segments[i];
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

struct Row {
  const float* key;
  const float* value;
};

void expect_head(const AttentionCase& c, const Tolerance& t, const float* q, const std::vector<Row>& seen,
                 Expected& out) {
  std::vector<double> weight;
  double total = 0, largest_sum = 0, largest_value = 0, top = -std::numeric_limits<double>::infinity();
  for (const Row& row : seen) {
    double score = 0, sum = 0;
    for (int i = 0; i < c.kv.key_dim; ++i) {
      const double term = static_cast<double>(c.scale) * q[i] * row.key[i];
      score += term;
      sum += std::fabs(term);
    }
    for (int i = 0; i < c.kv.value_dim; ++i) {
      largest_value = std::max(largest_value, std::fabs(static_cast<double>(row.value[i])));
    }
    largest_sum = std::max(largest_sum, sum);
    top = std::max(top, score);
    weight.push_back(score);
  }
  for (double& w : weight) total += w = std::exp(w - top);
  for (int i = 0; i < c.kv.value_dim; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < seen.size(); ++j) sum += weight[j] / total * seen[j].value[i];
    out.values.push_back(static_cast<float>(sum));
    out.bounds.push_back(t.softmax * (1 + largest_sum) * largest_value);
  }
}

Expected expected(const AttentionCase& c, const Tolerance& t) {
  Expected out;
  for (const Segment& s : c.segments) {
    for (int r = 0; r < s.rows; ++r) {
      for (int h = 0; h < c.heads; ++h) {
        const int kv_head = h / (c.heads / c.kv.heads);
        std::vector<Row> seen;
        auto add = [&](const float* keys, const float* values) {
          seen.push_back({keys + kv_head * c.kv.key_dim, values + kv_head * c.kv.value_dim});
        };
        for (std::int64_t p = 0; p < s.cache.positions(); ++p) {
          if (s.sees(r, p)) add(s.cache.keys[p], s.cache.values[p]);
        }
        for (int o = 0; o < s.own_rows; ++o) add(s.own_keys[o], s.own_values[o]);
        expect_head(c, t, c.q[s.first_row + r] + h * c.q_head_stride, seen, out);
      }
    }
  }
  return out;
}

// ---- random cases ----------------------------------------------------------------------------------------

enum class Kind { causal, mask_block, windowed };

Segment random_segment(Random& rng, const KvShape& kv, Kind kind, int rows) {
  Segment s;
  s.rows = rows;
  const int before = chance(rng, 0.2) ? 0 : random_between(rng, 0, 200);
  if (kind == Kind::mask_block || (kind == Kind::windowed && chance(rng, 0.5))) {
    s.visible_step = 0;
    s.visible_end = before;
    s.own_rows = chance(rng, 0.2) ? 0 : random_between(rng, 1, 20);
    s.own_keys = Matrix::normal(rng, s.own_rows, static_cast<std::int64_t>(kv.heads) * kv.key_dim);
    s.own_values = Matrix::normal(rng, s.own_rows, static_cast<std::int64_t>(kv.heads) * kv.value_dim);
  } else {
    s.visible_end = before + 1;
  }
  if (kind == Kind::windowed) {
    s.window = random_between(rng, 1, 150);
    s.sinks = chance(rng, 0.3) ? 0 : random_between(rng, 1, 90);
  }
  const std::int64_t last = s.visible_step == 1 ? before + rows : before;
  s.cache = Cache(rng, kv, static_cast<int>(last) + random_between(rng, 0, 70));
  return s;
}

AttentionCase random_case(Random& rng, Kind kind) {
  AttentionCase c;
  c.kv = {random_between(rng, 1, 3), random_dim(rng, 128), 0};
  c.kv.value_dim = chance(rng, 0.6) ? c.kv.key_dim : random_dim(rng, 128);
  c.heads = c.kv.heads * random_between(rng, 1, 4);
  c.q_head_stride =
      c.kv.key_dim * (chance(rng, 0.4) ? 2 : 1) + (chance(rng, 0.7) ? 0 : random_between(rng, 1, 9));
  c.scale = static_cast<float>(1.0 / std::sqrt(c.kv.key_dim));
  const int count = random_between(rng, 1, 4);
  int rows = 0;
  for (int i = 0; i < count; ++i) {
    c.segments.push_back(random_segment(rng, c.kv, kind, chance(rng, 0.5) ? 1 : random_between(rng, 1, 30)));
    c.segments.back().first_row = rows;
    rows += c.segments.back().rows;
  }
  c.q = Matrix::normal(rng, rows, (c.heads - 1) * c.q_head_stride + c.kv.key_dim,
                       chance(rng, 0.2) ? 20.0 : 1.0);
  c.out = Matrix::scattered(rng, rows, static_cast<std::int64_t>(c.heads) * c.kv.value_dim);
  return c;
}

// Everything that row `keep` of segment `at` does not see, and every other row's query, ruined.
AttentionCase ruined(const AttentionCase& c, std::size_t at, int keep) {
  AttentionCase out = c;
  for (std::size_t i = 0; i < c.segments.size(); ++i) {
    Segment& s = out.segments[i];
    for (int r = 0; r < s.rows; ++r) {
      if (i != at || r != keep) out.q.fill_row(s.first_row + r, poison(r));
    }
    for (std::int64_t p = 0; p < s.cache.positions(); ++p) {
      if (i == at && s.sees(keep, p)) continue;
      s.cache.keys.fill_row(p, poison(p));
      s.cache.values.fill_row(p, poison(p + 1));
    }
    for (int o = 0; i != at && o < s.own_rows; ++o) {
      s.own_keys.fill_row(o, poison(o));
      s.own_values.fill_row(o, poison(o + 1));
    }
  }
  return out;
}

void check_attention(const Bench& bench, const Tolerance& tolerance, Random& rng, const AttentionCase& c) {
  SCOPED_TRACE(c.name());
  const Expected want = expected(c, tolerance);
  expect_within(c.run(*bench.reference), want.values, want.bounds, "the reference against the definition");
  const std::vector<float> got = c.run(*bench.subject);
  expect_within(got, want.values, want.bounds, "against the definition");
  for (const auto& twin : bench.twins) expect_same_bits(c.run(*twin), got, "twin");
  for (int group : {1, 3, 1000}) expect_same_bits(c.run(*bench.subject, group), got, "in parts");

  const std::size_t at = rng.below(c.segments.size());
  const Segment& s = c.segments[at];
  const int keep = random_between(rng, 0, s.rows - 1);
  const std::vector<float> among = ruined(c, at, keep).run(*bench.subject);
  const auto width = static_cast<std::size_t>(c.out.cols());
  const std::size_t from = static_cast<std::size_t>(s.first_row + keep) * width;
  expect_same_bits(std::span(among).subspan(from, width), std::span(got).subspan(from, width),
                   fmt::format("row {} of segment {} among ruined rows", keep, at));
}

TEST_P(OpSuite, AttentionCausal) {
  Random rng(seed() + 30);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    check_attention(bench_, tolerance(), rng, random_case(rng, Kind::causal));
  }
}

TEST_P(OpSuite, AttentionOfMaskBlocks) {
  Random rng(seed() + 31);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    check_attention(bench_, tolerance(), rng, random_case(rng, Kind::mask_block));
  }
}

TEST_P(OpSuite, AttentionWithWindowAndSinks) {
  Random rng(seed() + 32);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    check_attention(bench_, tolerance(), rng, random_case(rng, Kind::windowed));
  }
}

// The borders of window and sinks: apart, touching, overlapping, larger than what there is.
TEST_P(OpSuite, AttentionWindowBorders) {
  Random rng(seed() + 33);
  AttentionCase c = random_case(rng, Kind::causal);
  for (std::int64_t end : {1, 2, 5, 63, 64, 65, 130}) {
    for (std::int64_t window : {1, 2, 4, 63, 64, 65, 200}) {
      for (std::int64_t sinks : {0, 1, 4, 64, 300}) {
        Segment s;
        s.rows = 3;
        s.visible_end = end;
        s.window = window;
        s.sinks = sinks;
        s.cache = Cache(rng, c.kv, static_cast<int>(end) + 5);
        c.segments = {s};
        c.q = Matrix::normal(rng, 3, c.q.cols());
        c.out = Matrix::scattered(rng, 3, c.out.cols());
        check_attention(bench_, tolerance(), rng, c);
        if (HasFailure()) return;
      }
    }
  }
}

// ---- edges -----------------------------------------------------------------------------------------------

TEST_P(OpSuite, AttentionThatSeesNothingIsZero) {
  Random rng(seed() + 34);
  for (Kind kind : {Kind::causal, Kind::mask_block}) {
    AttentionCase c = random_case(rng, kind);
    for (Segment& s : c.segments) {
      s.visible_step = 0;
      s.visible_end = 0;
      s.own_rows = 0;
    }
    c.out.fill_normal(rng);
    for (float v : c.run(*bench_.subject)) EXPECT_EQ(v, 0.0F) << c.name();
  }
}

// The first rows of a causal segment may lie before the sequence starts.
TEST_P(OpSuite, AttentionOfOneVisibleRowIsItsValue) {
  Random rng(seed() + 35);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    AttentionCase c = random_case(rng, Kind::causal);
    for (Segment& s : c.segments) {
      s.rows = 1;
      s.visible_end = 1;
    }
    const std::vector<float> got = c.run(*bench_.subject);
    for (const Segment& s : c.segments) {
      for (int h = 0; h < c.heads; ++h) {
        const float* want = s.cache.values[0] + h / (c.heads / c.kv.heads) * c.kv.value_dim;
        for (int v = 0; v < c.kv.value_dim; ++v) {
          const float value =
              got[static_cast<std::size_t>(s.first_row * c.out.cols() + h * c.kv.value_dim + v)];
          EXPECT_NEAR(value, want[v], 1e-6 * std::fabs(want[v])) << c.name();
        }
      }
    }
  }
}

// Scores far past what exp() can hold; equal scores; a hot row among cold ones.
TEST_P(OpSuite, AttentionOfLargeScores) {
  Random rng(seed() + 36);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    AttentionCase c = random_case(rng, Kind::causal);
    c.scale = 1;
    for (std::int64_t r = 0; r < c.q.rows(); ++r) {
      c.q.fill_row(r, chance(rng, 0.5) ? 1e4F : -1e4F);
    }
    for (Segment& s : c.segments) {
      for (std::int64_t p = 0; p < s.cache.positions(); ++p)
        s.cache.keys.fill_row(p, static_cast<float>(p % 5));
    }
    const Expected want = expected(c, {.softmax = 1e-5 / (1 + 4e4 * c.kv.key_dim)});
    expect_within(c.run(*bench_.subject), want.values, want.bounds, c.name());
  }
}

TEST_P(OpSuite, AttentionPassesVisibleNanOn) {
  Random rng(seed() + 37);
  for (bool in_value : {false, true}) {
    AttentionCase c = random_case(rng, Kind::causal);
    Segment& s = c.segments[0];
    (in_value ? s.cache.values : s.cache.keys).fill_row(0, std::numeric_limits<float>::quiet_NaN());
    const std::vector<float> got = c.run(*bench_.subject);
    for (std::int64_t i = 0; i < s.rows * c.out.cols(); ++i) {
      EXPECT_TRUE(std::isnan(got[static_cast<std::size_t>(i)])) << c.name() << " at " << i;
    }
  }
}

TEST_P(OpSuite, AttentionOfNoSegmentsOrNoRows) {
  Random rng(seed() + 38);
  AttentionCase c = random_case(rng, Kind::causal);
  Matrix target = c.out;
  c.call(*bench_.subject, target, {});
  const AttentionSegment none{};
  c.call(*bench_.subject, target, {&none, 1});
  expect_same_bits(target.dense(), c.out.dense(), "output of no rows");
  bench_.subject->kv_append(c.kv, {}, 0, 0, 0, {}, {});
}

// ---- a sequence cut into calls ---------------------------------------------------------------------------

// Appends and attends as a prompt does, `sizes` rows at a time.
std::vector<float> prefill(Backend& b, const AttentionCase& c, const std::vector<int>& sizes) {
  const Segment& s = c.segments[0];
  Pages pages(b, c.kv, s.cache.positions());
  Matrix target = c.out;
  int at = 0;
  for (int size : sizes) {
    pages.append(b, s.cache, at, size);
    const AttentionSegment part = c.argument(s, pages, at, size);
    c.call(b, target, {&part, 1});
    at += size;
  }
  return target.dense();
}

TEST_P(OpSuite, AttentionIsTheSameHoweverThePromptIsCut) {
  Random rng(seed() + 39);
  for (int i = 0; i < std::max(4, trials() / 4) && !HasFailure(); ++i) {
    AttentionCase c = random_case(rng, Kind::causal);
    const int rows = random_between(rng, 1, 200);
    Segment s;
    s.rows = rows;
    s.visible_end = 1;
    if (chance(rng, 0.5)) {
      s.window = random_between(rng, 1, 80);
      s.sinks = random_between(rng, 0, 10);
    }
    s.cache = Cache(rng, c.kv, rows);
    c.segments = {s};
    c.q = Matrix::normal(rng, rows, c.q.cols());
    c.out = Matrix::scattered(rng, rows, c.out.cols());
    const std::vector<float> whole = prefill(*bench_.subject, c, {rows});
    const Expected want = expected(c, tolerance());
    expect_within(whole, want.values, want.bounds, c.name());
    for (const std::vector<int>& sizes : cuts(rng, rows)) {
      expect_same_bits(prefill(*bench_.subject, c, sizes), whole,
                       fmt::format("{}, first cut {}", c.name(), sizes[0]));
    }
  }
}

// Rows of a rejected draft are written over; what they were leaves no trace.
TEST_P(OpSuite, KvAppendReplacesRows) {
  Random rng(seed() + 40);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    AttentionCase c = random_case(rng, Kind::causal);
    c.segments.resize(1);
    const Segment& s = c.segments[0];
    const std::vector<float> want = c.run(*bench_.subject);
    const int all = static_cast<int>(s.cache.positions()), from = random_between(rng, 0, all - 1);
    Cache wrong = s.cache;
    for (std::int64_t p = from; p < all; ++p)
      wrong.keys.fill_row(p, poison(p)), wrong.values.fill_row(p, poison(p + 1));
    Pages pages(*bench_.subject, c.kv, all);
    pages.append(*bench_.subject, wrong, 0, all);
    pages.append(*bench_.subject, s.cache, from, all - from);
    Matrix target = c.out;
    const AttentionSegment segment = c.argument(s, pages, 0, s.rows);
    c.call(*bench_.subject, target, {&segment, 1});
    expect_same_bits(target.dense(0, s.rows),
                     std::span(want).first(static_cast<std::size_t>(s.rows * c.out.cols())), c.name());
  }
}

}  // namespace
}  // namespace ponder::ops::testing
