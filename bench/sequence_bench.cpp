// Attention, the delta rule and the operations on rows, on the shapes of a 4B model: 16 query heads on 4
// key/value heads of 256; 16 key heads, 32 value heads of 128; 2560 wide, 9216 inside.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ops_bench.hpp"

namespace ponder::bench {
namespace {

constexpr int kHeads = 16, kKvHeads = 4, kHeadDim = 256;
constexpr std::int64_t kConvDim = 16 * 128 * 2 + 32 * 128;

// The pages of `sequences` sequences of `positions` each, with keys and values in them.
class Caches {
 public:
  Caches(const ops::KvShape& kv, int positions, int sequences) {
    constexpr int step = 512;
    const int pages = (positions + ops::kPageRows - 1) / ops::kPageRows;
    const std::size_t page_bytes = setting.backend->kv_page_bytes(kv);
    memory_ = AlignedBuffer<std::byte>(page_bytes * static_cast<std::size_t>(pages) * sequences, Fill::zero,
                                       HugePages::yes);
    const auto rows = random_rows(std::size_t{step} * kKvHeads * kHeadDim);
    for (int s = 0; s < sequences; ++s) {
      tables_.emplace_back();
      for (int p = 0; p < pages; ++p) {
        const std::size_t at = static_cast<std::size_t>(s) * pages + static_cast<std::size_t>(p);
        tables_.back().push_back(memory_.data() + at * page_bytes);
      }
      for (int at = 0; at < positions; at += step) {
        setting.backend->kv_append(kv, ops::KvAppend{view(s), at, 0, std::min(step, positions - at)},
                                   {rows.data(), kKvHeads * kHeadDim}, {rows.data(), kKvHeads * kHeadDim});
      }
    }
  }
  ops::KvPages view(int s) const { return {tables_[static_cast<std::size_t>(s)].data(), 0}; }
  double bytes() const { return static_cast<double>(memory_.bytes()); }

 private:
  AlignedBuffer<std::byte> memory_;
  std::vector<std::vector<std::byte*>> tables_;
};

// `rows` new rows behind `past` cached ones, for each of some sequences.
void bench_attention(benchmark::State& state, int past, int rows, int sequences,
                     ops::KvType type = ops::KvType::f32) {
  const ops::KvShape kv{kKvHeads, kHeadDim, kHeadDim, type};
  const Caches caches(kv, past + rows, sequences);
  const auto q = random_rows(static_cast<std::size_t>(rows * sequences) * kHeads * kHeadDim);
  AlignedBuffer<float> out(q.size());
  std::vector<ops::AttentionSegment> segments(static_cast<std::size_t>(sequences));
  for (int s = 0; s < sequences; ++s) {
    ops::AttentionSegment& segment = segments[static_cast<std::size_t>(s)];
    segment.first_row = s * rows;
    segment.rows = rows;
    segment.cache = caches.view(s);
    segment.visible_end = past + 1;
  }
  ops::AttentionArgs args;
  args.q = {q.data(), kHeads * kHeadDim};
  args.q_head_stride = kHeadDim;
  args.out = {out.data(), kHeads * kHeadDim};
  args.heads = kHeads;
  args.kv = kv;
  args.scale = 1.0F / 16;
  args.segments = segments;
  for (auto _ : state) setting.backend->attention(args);
  const double seen = (past + (rows + 1) / 2.0) * rows * sequences;
  report(state, caches.bytes(), 4.0 * kHeadDim * kHeads * seen);
}

// Several layers' states in turn, so that none is still in cache when its turn comes again.
void bench_delta(benchmark::State& state, int rows, int sequences) {
  const ops::DeltaShape shape{16, 32, 128, 128};
  const std::int64_t all = std::int64_t{rows} * sequences;
  const auto qkv = random_rows(static_cast<std::size_t>(all * kConvDim));
  const auto ab = random_rows(static_cast<std::size_t>(all) * 32);
  const std::vector<float> rate(32, 1.0F), bias(32, 0.5F);
  AlignedBuffer<float> out(static_cast<std::size_t>(all) * 32 * 128);
  const std::size_t floats = ops::DeltaStateLayout(shape).floats;
  const int layers = std::max(1, 32 / sequences);
  AlignedBuffer<float> memory(floats * static_cast<std::size_t>(layers) * sequences, Fill::none,
                              HugePages::yes);
  std::fill(memory.begin(), memory.end(), 0.0F);
  std::vector<ops::DeltaSegment> segments(static_cast<std::size_t>(sequences));
  std::int64_t position = 0;
  int layer = 0;
  ops::DeltaArgs args;
  args.shape = shape;
  args.qkv = {qkv.data(), kConvDim};
  args.a = {ab.data(), 32};
  args.b = {ab.data(), 32};
  args.rate = rate.data();
  args.dt_bias = bias.data();
  args.out = {out.data(), 32 * 128};
  args.segments = segments;
  for (auto _ : state) {
    for (int s = 0; s < sequences; ++s) {
      float* block = memory.data() + static_cast<std::size_t>(layer * sequences + s) * floats;
      segments[static_cast<std::size_t>(s)] = {s * rows, rows, position, block};
    }
    setting.backend->delta_rule(args);
    layer = (layer + 1) % layers;
    if (layer == 0) position += rows;
  }
  // Read: S and, in the middle of a chunk, half of its keys and values.
  const double read = (32 * 128 * 128 + 16 * (16 + 32) * 128) * 4.0;
  report(state, read * sequences * ((rows + 31) / 32), static_cast<double>(all) * 32 * 128 * 128 * 6);
  state.counters["rows/s"] =
      benchmark::Counter(static_cast<double>(state.iterations() * all), benchmark::Counter::kIsRate);
}

void bench_conv(benchmark::State& state, int rows) {
  const auto x = random_rows(static_cast<std::size_t>(rows * kConvDim));
  const auto weight = random_rows(4 * kConvDim);
  AlignedBuffer<float> y(x.size()), memory(3 * kConvDim);
  std::fill(y.begin(), y.end(), 0.0F);
  const ops::ConvSegment segment{0, rows, memory.data()};
  for (auto _ : state) {
    setting.backend->causal_conv(
        {{x.data(), kConvDim}, {y.data(), kConvDim}, weight.data(), kConvDim, 4, {&segment, 1}});
  }
  report(state, 8.0 * static_cast<double>(rows * kConvDim), 8.0 * static_cast<double>(rows * kConvDim));
}

// silu(x) is x here and the factor one: values stay put however often the operation runs in place.
void bench_silu(benchmark::State& state, int rows) {
  constexpr int cols = 9216;
  AlignedBuffer<float> gate(static_cast<std::size_t>(rows) * cols), up(gate.size());
  std::fill(gate.begin(), gate.end(), 50.0F);
  std::fill(up.begin(), up.end(), 1.0F);
  for (auto _ : state) setting.backend->silu_mul({gate.data(), cols}, {up.data(), cols}, rows, cols);
  report(state, 12.0 * rows * cols, 0);
}

void bench_sigmoid(benchmark::State& state, int rows) {
  constexpr int cols = kHeads * kHeadDim;
  AlignedBuffer<float> x(static_cast<std::size_t>(rows) * cols), gate(2 * x.size());
  std::fill(gate.begin(), gate.end(), 50.0F);
  const ops::Groups groups{kHeads, kHeadDim, 2 * kHeadDim};
  for (auto _ : state) setting.backend->sigmoid_mul({x.data(), cols}, {gate.data(), 2 * cols}, rows, groups);
  report(state, 12.0 * rows * cols, 0);
}

void bench_norm(benchmark::State& state, int rows, bool gated) {
  const ops::Groups groups = gated ? ops::Groups{32, 128, 128} : ops::Groups{1, 2560, 2560};
  const std::int64_t cols = std::int64_t{groups.count} * groups.dim;
  const auto x = random_rows(static_cast<std::size_t>(rows * cols));
  const std::vector<float> weight(static_cast<std::size_t>(groups.dim), 1.0F);
  AlignedBuffer<float> y(x.size());
  for (auto _ : state) {
    if (gated) {
      setting.backend->gated_rms_norm({x.data(), cols}, {x.data(), cols}, {y.data(), cols}, rows, groups,
                                      weight.data(), 1e-6F);
    } else {
      setting.backend->rms_norm({x.data(), cols}, {y.data(), cols}, rows, groups, weight.data(), 1e-6F);
    }
  }
  report(state, (gated ? 12.0 : 8.0) * static_cast<double>(rows * cols), 0);
}

void bench_rotary(benchmark::State& state, int rows) {
  constexpr int cols = kHeads * kHeadDim, half = 32;
  auto x = random_rows(static_cast<std::size_t>(rows) * cols);
  std::vector<float> cos(static_cast<std::size_t>(rows) * half, 0.6F), sin(cos.size(), 0.8F);
  for (auto _ : state) {
    setting.backend->rotary({x.data(), cols}, rows, {kHeads, kHeadDim, kHeadDim}, half, {cos.data(), half},
                            {sin.data(), half});
  }
  report(state, 8.0 * rows * kHeads * 2 * half, 0);
}

}  // namespace

void register_sequence_ops() {
  for (const int past : {0, 1536}) {
    add(fmt::format("attention/past:{}/rows:512", past),
        [=](benchmark::State& s) { bench_attention(s, past, 512, 1); });
  }
  add("attention/past:0/rows:2048", [](benchmark::State& s) { bench_attention(s, 0, 2048, 1); });
  for (const int past : {2048, 16384}) {
    for (const int rows : {1, 4, 16}) {
      add(fmt::format("attention/past:{}/rows:{}", past, rows),
          [=](benchmark::State& s) { bench_attention(s, past, rows, 1); });
    }
  }
  for (const int sequences : {4, 16}) {
    add(fmt::format("attention/past:2048/sequences:{}", sequences),
        [=](benchmark::State& s) { bench_attention(s, 2048, 1, sequences); });
  }
  for (const auto& [name, type] : {std::pair{"bf16", ops::KvType::bf16}, {"q8", ops::KvType::q8}}) {
    for (const int rows : {1, 4, 512}) {
      const int past = rows == 512 ? 1536 : 16384;
      add(fmt::format("attention/{}/past:{}/rows:{}", name, past, rows),
          [=, type = type](benchmark::State& s) { bench_attention(s, past, rows, 1, type); });
    }
  }
  for (const int rows : {1, 4, 16, 512}) {
    add(fmt::format("delta/rows:{}", rows), [=](benchmark::State& s) { bench_delta(s, rows, 1); });
  }
  for (const int sequences : {4, 16}) {
    add(fmt::format("delta/sequences:{}", sequences),
        [=](benchmark::State& s) { bench_delta(s, 1, sequences); });
  }
  for (const int rows : {1, 16, 512}) {
    add(fmt::format("conv/rows:{}", rows), [=](benchmark::State& s) { bench_conv(s, rows); });
    add(fmt::format("rms_norm/2560/rows:{}", rows), [=](benchmark::State& s) { bench_norm(s, rows, false); });
    add(fmt::format("gated_rms_norm/32x128/rows:{}", rows),
        [=](benchmark::State& s) { bench_norm(s, rows, true); });
    add(fmt::format("silu_mul/9216/rows:{}", rows), [=](benchmark::State& s) { bench_silu(s, rows); });
    add(fmt::format("sigmoid_mul/4096/rows:{}", rows), [=](benchmark::State& s) { bench_sigmoid(s, rows); });
    add(fmt::format("rotary/16x64/rows:{}", rows), [=](benchmark::State& s) { bench_rotary(s, rows); });
  }
}

}  // namespace ponder::bench
