// How fast the operations are next to what the machine can do at all: each line carries the share of the
// memory bandwidth or of the multiply-add rate that plain loops reach in this very process.
//
//   ops_bench [--threads=N] [--isa=NAME] [Google Benchmark's own flags]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/aligned_buffer.hpp"
#include "base/float_types.hpp"
#include "base/random.hpp"
#include "cpu/backend.hpp"
#include "cpu/kernel_choice.hpp"

namespace ponder {
namespace {

using ops::WeightType;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Setting {
  cpu::InstructionSet isa;
  std::shared_ptr<ThreadPool> pool;
  std::unique_ptr<ops::Backend> backend;
  double read_bytes = 0;  // bytes a second, plain reading of a large buffer
  double flops = 0;       // float operations a second, multiply-adds that never leave the first-level cache
};
Setting setting;

constexpr std::size_t kBufferBytes = std::size_t{512} << 20U;

// One buffer of random bytes for all weights and for the yardstick: larger than any cache.
const AlignedBuffer<std::byte>& buffer() {
  static const AlignedBuffer<std::byte> bytes = [] {
    AlignedBuffer<std::byte> all(kBufferBytes, Fill::none, HugePages::no);
    Random rng(1);
    for (std::size_t i = 0; i < all.size(); i += 8) {
      // Ordinary numbers in any of the formats: no NaN, no subnormals, no sums that run away.
      const std::uint64_t word = (rng.next_u64() & 0x8383838383838383U) | 0x3838383838383838U;
      std::memcpy(all.data() + i, &word, 8);
    }
    return all;
  }();
  return bytes;
}

template <class F>
double best_of(int tries, F f) {
  double best = 1e30;
  for (int i = 0; i < tries; ++i) {
    const double start = seconds();
    f();
    best = std::min(best, seconds() - start);
  }
  return best;
}

// Reading: a sum over the buffer, by the f32 dot product of one input row that stays in cache, the widest
// loads this instruction set has.
double measure_reading() {
  constexpr std::int64_t cols = 4096, rows_per_task = 64;
  const std::vector<float> x(cols, 0.0F);
  const auto rows = static_cast<std::int64_t>(kBufferBytes / sizeof(float)) / cols;
  std::vector<float> y(static_cast<std::size_t>(rows));
  const auto& kernels = cpu::kernels_for(setting.isa);
  const double t = best_of(5, [&] {
    setting.pool->run(static_cast<int>(rows / rows_per_task), [&](int task, int) {
      cpu::LinearBlock b{};
      b.w = buffer().data() + std::int64_t{task} * rows_per_task * cols * 4;
      b.w_rows = rows_per_task;
      b.cols = cols;
      b.x = x.data();
      b.x_stride = cols;
      b.x_rows = 1;
      b.y = y.data() + std::int64_t{task} * rows_per_task;
      b.y_stride = rows_per_task;
      kernels.linear[0](b);
    });
  });
  return static_cast<double>(kBufferBytes) / t;
}

// Arithmetic: a gemm whose operands fit the first-level cache.
double measure_arithmetic() {
  constexpr int rows = 6, cols = 64, depth = 64, repeats = 4000;
  const auto& kernels = cpu::kernels_for(setting.isa);
  const int threads = setting.pool->size();
  const double t = best_of(5, [&] {
    setting.pool->run(threads, [&](int, int) {
      alignas(64) float a[rows * depth] = {}, b[depth * cols] = {}, c[rows * cols] = {};
      cpu::Gemm g{};
      g.a = a;
      g.a_row = depth;
      g.a_step = 1;
      g.b = b;
      g.b_row = cols;
      g.c = c;
      g.c_row = cols;
      g.rows = rows;
      g.cols = cols;
      g.depth = depth;
      for (int i = 0; i < repeats; ++i) kernels.gemm(g);
      benchmark::DoNotOptimize(c);
    });
  });
  return 2.0 * rows * cols * depth * repeats * threads / t;
}

void report(benchmark::State& state, double bytes, double flops) {
  const auto rounds = static_cast<double>(state.iterations());
  using benchmark::Counter;
  state.counters["GB/s"] = Counter(bytes * rounds / 1e9, Counter::kIsRate);
  state.counters["read%"] = Counter(100 * bytes * rounds / setting.read_bytes, Counter::kIsRate);
  state.counters["GFLOPS"] = Counter(flops * rounds / 1e9, Counter::kIsRate);
  state.counters["fma%"] = Counter(100 * flops * rounds / setting.flops, Counter::kIsRate);
}

DType dtype_of(WeightType type) {
  switch (type) {
    case WeightType::bf16:
      return DType::bf16;
    case WeightType::f16:
      return DType::f16;
    case WeightType::f8_e4m3:
      return DType::f8_e4m3;
    default:
      return DType::f32;
  }
}

// Several matrices of one shape, one after the other, so that none is still in cache when its turn comes
// again.
std::vector<ops::WeightPtr> make_weights(WeightType type, std::int64_t rows, std::int64_t cols) {
  const std::size_t bytes = static_cast<std::size_t>(rows * cols) * ops::weight_type_bits(type) / 8;
  const std::vector<float> scales(static_cast<std::size_t>(rows), 0.01F);
  const auto count = std::max<std::size_t>(1, kBufferBytes / bytes);
  std::vector<ops::WeightPtr> weights;
  for (std::size_t i = 0; i < count; ++i) {
    ops::WeightData data;
    data.dtype = dtype_of(type);
    data.rows = rows;
    data.cols = cols;
    data.data = buffer().data() + i * bytes;
    if (type == WeightType::f8_e4m3) data.row_scale = scales.data();
    data.owner = std::shared_ptr<const void>(std::shared_ptr<void>(), buffer().data());
    weights.push_back(setting.backend->make_weight(data, type));
  }
  return weights;
}

AlignedBuffer<float> random_rows(std::size_t n) {
  Random rng(2);
  AlignedBuffer<float> x(n);
  for (float& v : x) v = static_cast<float>(rng.normal());
  return x;
}

void bench_linear(benchmark::State& state, WeightType type, std::int64_t out, std::int64_t in, int rows) {
  const auto weights = make_weights(type, out, in);
  const auto x = random_rows(static_cast<std::size_t>(rows * in));
  AlignedBuffer<float> y(static_cast<std::size_t>(rows * out));
  std::size_t next = 0;
  for (auto _ : state) {
    const ops::LinearOut one{weights[next].get(), nullptr, {y.data(), out}, false};
    setting.backend->linear({&one, 1}, {x.data(), in}, rows);
    next = (next + 1) % weights.size();
  }
  report(state, static_cast<double>(weights[0]->bytes()), 2.0 * static_cast<double>(out * in) * rows);
}

void bench_argmax(benchmark::State& state, WeightType type, std::int64_t vocabulary, std::int64_t in,
                  int rows) {
  const auto weights = make_weights(type, vocabulary, in);
  const auto x = random_rows(static_cast<std::size_t>(rows * in));
  std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
  for (auto _ : state) {
    setting.backend->masked_argmax({x.data(), in}, rows, *weights[0], vocabulary, nullptr, ids.data());
  }
  report(state, static_cast<double>(weights[0]->bytes()), 2.0 * static_cast<double>(vocabulary * in) * rows);
}

// Attention of `rows` new rows behind `past` cached ones, with the 4B model's heads.
void bench_attention(benchmark::State& state, int past, int rows) {
  const ops::KvShape kv{4, 256, 256};
  constexpr int heads = 16;
  const int total = past + rows, pages = (total + ops::kPageRows - 1) / ops::kPageRows;
  const std::size_t page_bytes = setting.backend->kv_page_bytes(kv);
  AlignedBuffer<std::byte> memory(page_bytes * static_cast<std::size_t>(pages));
  std::vector<std::byte*> page_list;
  page_list.reserve(static_cast<std::size_t>(pages));
  for (int p = 0; p < pages; ++p)
    page_list.push_back(memory.data() + page_bytes * static_cast<std::size_t>(p));
  const ops::KvPages cache{page_list.data(), 0};
  const auto kvs = random_rows(static_cast<std::size_t>(total) * 1024);
  setting.backend->kv_append(kv, cache, 0, 0, total, {kvs.data(), 1024}, {kvs.data(), 1024});
  const auto q = random_rows(static_cast<std::size_t>(rows) * heads * 256);
  AlignedBuffer<float> out(q.size());
  ops::AttentionSegment segment;
  segment.rows = rows;
  segment.cache = cache;
  segment.visible_end = past + 1;
  ops::AttentionArgs args;
  args.q = {q.data(), heads * 256};
  args.q_head_stride = 256;
  args.out = {out.data(), heads * 256};
  args.heads = heads;
  args.kv = kv;
  args.scale = 1.0F / 16;
  args.segments = {&segment, 1};
  for (auto _ : state) setting.backend->attention(args);
  const double seen = (past + (rows + 1) / 2.0) * rows;
  report(state, static_cast<double>(page_bytes) * pages, 4.0 * 256 * heads * seen);
}

// The 4B model's delta rule: 16 key heads, 32 value heads of 128.
void bench_delta(benchmark::State& state, int rows) {
  const ops::DeltaShape shape{16, 32, 128, 128};
  constexpr std::int64_t width = 16 * 128 * 2 + 32 * 128;
  const auto qkv = random_rows(static_cast<std::size_t>(rows * width));
  const auto ab = random_rows(static_cast<std::size_t>(rows) * 32);
  const std::vector<float> rate(32, 1.0F), bias(32, 0.5F);
  AlignedBuffer<float> out(static_cast<std::size_t>(rows) * 32 * 128);
  AlignedBuffer<float> memory(ops::DeltaStateLayout(shape).floats);
  ops::DeltaSegment segment{0, rows, 0, memory.data()};
  ops::DeltaArgs args;
  args.shape = shape;
  args.qkv = {qkv.data(), width};
  args.a = {ab.data(), 32};
  args.b = {ab.data(), 32};
  args.rate = rate.data();
  args.dt_bias = bias.data();
  args.out = {out.data(), 32 * 128};
  for (auto _ : state) {
    args.segments = {&segment, 1};
    setting.backend->delta_rule(args);
    segment.position += rows;
  }
  const double steps = static_cast<double>(rows) * 32;
  report(state, static_cast<double>(memory.bytes()), steps * 128 * 128 * 6);
  state.counters["rows/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * rows, benchmark::Counter::kIsRate);
}

void bench_silu(benchmark::State& state, int rows) {
  constexpr int cols = 9216;
  // silu(x) is x here and the factor one: values stay put however often the operation runs in place.
  AlignedBuffer<float> gate(static_cast<std::size_t>(rows) * cols), up(gate.size());
  std::fill(gate.begin(), gate.end(), 50.0F);
  std::fill(up.begin(), up.end(), 1.0F);
  for (auto _ : state) setting.backend->silu_mul({gate.data(), cols}, {up.data(), cols}, rows, cols);
  report(state, 12.0 * rows * cols, 0);
}

void register_all() {
  using benchmark::RegisterBenchmark;
  const auto add = [](const std::string& name, auto body) {
    RegisterBenchmark(name.c_str(), body)->UseRealTime()->Unit(benchmark::kMillisecond);
  };
  for (const WeightType type : {WeightType::bf16, WeightType::f32, WeightType::f16, WeightType::f8_e4m3}) {
    const std::string tag(ops::weight_type_name(type));
    for (const int rows : {1, 4, 16, 256}) {
      add(fmt::format("linear/{}/9216x2560/rows:{}", tag, rows),
          [=](benchmark::State& s) { bench_linear(s, type, 9216, 2560, rows); });
      add(fmt::format("linear/{}/2560x9216/rows:{}", tag, rows),
          [=](benchmark::State& s) { bench_linear(s, type, 2560, 9216, rows); });
    }
  }
  for (const int rows : {1, 4, 16}) {
    // 98304 of the real 248320 rows: what fits the buffer.
    add(fmt::format("argmax/bf16/98304x2560/rows:{}", rows),
        [=](benchmark::State& s) { bench_argmax(s, WeightType::bf16, 98304, 2560, rows); });
  }
  for (const int rows : {1, 16, 256}) {
    add(fmt::format("attention/2048/rows:{}", rows),
        [=](benchmark::State& s) { bench_attention(s, 2048, rows); });
  }
  for (const int rows : {1, 4, 16, 512}) {
    add(fmt::format("delta/rows:{}", rows), [=](benchmark::State& s) { bench_delta(s, rows); });
  }
  for (const int rows : {1, 256}) {
    add(fmt::format("silu_mul/9216/rows:{}", rows), [=](benchmark::State& s) { bench_silu(s, rows); });
  }
}

// Takes --threads and --isa out of the arguments.
void read_own_flags(int& argc, char** argv) {
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const cpu::CpuFeatures features = cpu::detect_cpu_features();
  setting.isa = best(features);
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind("--threads=", 0) == 0) {
      threads = std::stoi(arg.substr(10));
    } else if (arg.rfind("--isa=", 0) == 0) {
      setting.isa = cpu::parse_instruction_set(arg.substr(6));
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  setting.pool = std::make_shared<ThreadPool>(threads);
  setting.backend = cpu::make_cpu_backend({.isa = setting.isa, .pool = setting.pool});
}

}  // namespace
}  // namespace ponder

int main(int argc, char** argv) {
  using namespace ponder;
  try {
    read_own_flags(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ops_bench: {}\n", error.what());
    return 2;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  setting.read_bytes = measure_reading();
  setting.flops = measure_arithmetic();
  fmt::print("{}; plain loops: reading {:.1f} GB/s, multiply-adds {:.0f} GFLOPS\n",
             setting.backend->describe(), setting.read_bytes / 1e9, setting.flops / 1e9);
  register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
