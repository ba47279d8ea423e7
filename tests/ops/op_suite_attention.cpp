// kv_append and attention: causal rows, blocks of mask rows, windows with sinks, and the cache under them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention_case.hpp"

namespace ponder::ops::testing {
namespace {

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
        AttentionRows s;
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
    for (AttentionRows& s : c.segments) {
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
    for (AttentionRows& s : c.segments) {
      s.rows = 1;
      s.visible_end = 1;
    }
    const std::vector<float> got = c.run(*bench_.subject);
    for (const AttentionRows& s : c.segments) {
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
    for (AttentionRows& s : c.segments) {
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
    AttentionRows& s = c.segments[0];
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
  bench_.subject->kv_append(c.kv, KvAppend{{}, 0, 0, 0}, {}, {});
}

// ---- a sequence cut into calls ---------------------------------------------------------------------------

// Appends and attends as a prompt does, `sizes` rows at a time.
std::vector<float> prefill(Backend& b, const AttentionCase& c, const std::vector<int>& sizes) {
  const AttentionRows& s = c.segments[0];
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
    AttentionRows s;
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
    const AttentionRows& s = c.segments[0];
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
