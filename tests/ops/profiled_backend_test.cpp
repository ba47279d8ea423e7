// What the decorator counts, against counts written out by hand, and that it changes nothing.
#include "ops/profiled_backend.hpp"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace ponder::ops {
namespace {

std::vector<float> random_floats(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(random.normal());
  return values;
}

class Profiled : public testing::Test {
 protected:
  std::shared_ptr<Backend> plain_ = make_reference_backend();
  ProfiledBackend profiled_{plain_};

  // The only record of what `run` calls.
  template <class Run>
  OpRecord record_of(Run&& run) {
    profiled_.record(true);
    run();
    profiled_.record(false);
    const std::vector<OpRecord> records = profiled_.take();
    EXPECT_EQ(records.size(), 1U);
    return records.empty() ? OpRecord{} : records.front();
  }
};

TEST_F(Profiled, RecordsOnlyWhenAskedTo) {
  std::vector<float> x(8, 1.0F), y(8);
  const std::vector<float> w(8, 1.0F);
  profiled_.rms_norm({x.data(), 8}, {y.data(), 8}, 1, {1, 8, 0}, w.data(), 1e-6F);
  EXPECT_TRUE(profiled_.take().empty());
  const OpRecord r = record_of([&] {
    for (int i = 0; i < 3; ++i)
      profiled_.rms_norm({x.data(), 8}, {y.data(), 8}, 1, {1, 8, 0}, w.data(), 1e-6F);
  });
  EXPECT_EQ(r.op, Op::rms_norm);
  EXPECT_EQ(r.calls, 3U);
  EXPECT_EQ(r.rows, 3U);
  EXPECT_GE(r.seconds, 0);
  EXPECT_TRUE(profiled_.take().empty());
}

TEST_F(Profiled, ProductsAreCountedAndUnchanged) {
  const WeightPtr a = profiled_.make_random_weight(24, 32, WeightType::bf16, 1);
  const WeightPtr b = profiled_.make_random_weight(8, 32, WeightType::bf16, 2);
  const std::vector<float> x = random_floats(3 * 32, 3);
  std::vector<float> ya(3 * 24), yb(3 * 8), expected_a(3 * 24), expected_b(3 * 8);
  const LinearOut outs[] = {{a.get(), nullptr, {ya.data(), 24}, false},
                            {b.get(), nullptr, {yb.data(), 8}, false}};
  const LinearOut expected[] = {{a.get(), nullptr, {expected_a.data(), 24}, false},
                                {b.get(), nullptr, {expected_b.data(), 8}, false}};
  plain_->linear(expected, {x.data(), 32}, 3);
  const OpRecord r = record_of([&] { profiled_.linear(outs, {x.data(), 32}, 3); });
  EXPECT_EQ(ya, expected_a);
  EXPECT_EQ(yb, expected_b);
  EXPECT_EQ(r.multiply_adds, 3U * (24 + 8) * 32);
  EXPECT_EQ(r.weight_bytes, a->bytes() + b->bytes());
  EXPECT_EQ(r.label(), "linear 32 -> 24+8 bf16");

  std::int32_t ids[3];
  const OpRecord head = record_of([&] { profiled_.masked_argmax({x.data(), 32}, 3, *a, 12, nullptr, ids); });
  EXPECT_EQ(head.multiply_adds, 3U * 12 * 32);
  EXPECT_EQ(head.weight_bytes, a->bytes() / 2);

  // Other shapes are another kind; the same shapes of another layer are not.
  const WeightPtr c = profiled_.make_random_weight(24, 32, WeightType::bf16, 4);
  profiled_.record(true);
  profiled_.linear({outs, 1}, {x.data(), 32}, 3);
  const LinearOut other_layer{c.get(), nullptr, {ya.data(), 24}, false};
  profiled_.linear({&other_layer, 1}, {x.data(), 32}, 3);
  profiled_.linear({outs + 1, 1}, {x.data(), 32}, 3);
  profiled_.record(false);
  const std::vector<OpRecord> records = profiled_.take();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].calls, 2U);
  EXPECT_EQ(records[1].calls, 1U);
}

TEST_F(Profiled, AttentionCountsWhatIsVisible) {
  const KvShape kv{1, 4, 4};
  std::vector<std::byte> page(2 * plain_->kv_page_bytes(kv) + 64);
  std::byte* pages[] = {page.data(), page.data() + plain_->kv_page_bytes(kv)};
  const std::vector<float> rows = random_floats(128 * 4, 5);
  profiled_.kv_append(kv, KvAppend{{pages, 0}, 0, 0, 128}, {rows.data(), 4}, {rows.data(), 4});
  std::vector<float> out(3 * 8);
  const std::vector<float> q = random_floats(3 * 8, 6);
  AttentionSegment segment;
  segment.rows = 3;
  segment.cache = {pages, 0};
  segment.visible_end = 100;
  AttentionArgs args;
  args.q = {q.data(), 8};
  args.q_head_stride = 4;
  args.out = {out.data(), 8};
  args.heads = 2;
  args.kv = kv;
  args.segments = {&segment, 1};
  const std::uint64_t position = plain_->kv_page_bytes(kv) / kPageRows;
  const OpRecord all = record_of([&] { profiled_.attention(args); });
  EXPECT_EQ(all.kv_bytes, 102 * position);
  EXPECT_EQ(all.multiply_adds, (100U + 101 + 102) * 2 * (4 + 4));

  segment.window = 10;
  segment.sinks = 2;  // rows see 12 positions each; together 12 of the window and the two sinks
  const OpRecord windowed = record_of([&] { profiled_.attention(args); });
  EXPECT_EQ(windowed.kv_bytes, (12 + 2) * position);
  EXPECT_EQ(windowed.multiply_adds, 3U * 12 * 2 * (4 + 4));

  segment.window = 0;
  segment.visible_step = 0;  // a block of rows that all see the same
  const OpRecord block = record_of([&] { profiled_.attention(args); });
  EXPECT_EQ(block.kv_bytes, 100 * position);
  EXPECT_EQ(block.multiply_adds, 3U * 100 * 2 * (4 + 4));
}

TEST_F(Profiled, DeltaRuleMovesItsMatrixOnceAndWritesItAtAChunksEnd) {
  const DeltaShape shape{1, 2, 4, 6};
  const std::vector<float> qkv = random_floats(64 * 20, 7), ab = random_floats(64 * 2, 8);
  const std::vector<float> rate(2, 1.0F), bias(2, 0.0F);
  std::vector<float> out(64 * 12), state(DeltaStateLayout(shape).floats);
  const auto run = [&](std::int64_t position, int rows) {
    DeltaSegment segment{0, rows, position, state.data()};
    DeltaArgs args;
    args.shape = shape;
    args.qkv = {qkv.data(), 20};
    args.a = args.b = {ab.data(), 2};
    args.rate = rate.data();
    args.dt_bias = bias.data();
    args.out = {out.data(), 12};
    args.segments = {&segment, 1};
    return record_of([&] { profiled_.delta_rule(args); });
  };
  constexpr std::uint64_t matrix = 2 * 4 * 6, row = 4 + 2 * 6 + 2;
  const OpRecord first = run(0, 5);
  EXPECT_EQ(first.state_bytes, 4 * (matrix + 5 * row));
  EXPECT_EQ(first.multiply_adds, 3 * 5 * matrix);
  EXPECT_EQ(run(5, 1).state_bytes, 4 * (matrix + (5 + 1) * row));
  EXPECT_EQ(run(6, 26).state_bytes, 4 * (2 * matrix + 6 * row));   // up to the border
  EXPECT_EQ(run(32, 40).state_bytes, 4 * (2 * matrix + 8 * row));  // across one
}

}  // namespace
}  // namespace ponder::ops
