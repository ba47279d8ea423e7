// How fast the operations are next to what the machine can do at all: each line carries the share of the
// memory bandwidth or of the multiply-add rate that plain loops reach in this very process.
//
//   ops_bench [--threads=N] [--isa=NAME] [Google Benchmark's own flags]
#include "ops_bench.hpp"

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
#include "cpu/kernel_choice.hpp"

namespace ponder::bench {

Setting setting;

void report(benchmark::State& state, double bytes, double flops) {
  const auto rounds = static_cast<double>(state.iterations());
  using benchmark::Counter;
  state.counters["GB/s"] = Counter(bytes * rounds / 1e9, Counter::kIsRate);
  state.counters["read%"] = Counter(100 * bytes * rounds / setting.read_bytes, Counter::kIsRate);
  state.counters["GFLOPS"] = Counter(flops * rounds / 1e9, Counter::kIsRate);
  state.counters["fma%"] = Counter(100 * flops * rounds / setting.flops, Counter::kIsRate);
}

AlignedBuffer<float> random_rows(std::size_t n) {
  Random rng(2);
  AlignedBuffer<float> x(n);
  for (float& v : x) v = static_cast<float>(rng.normal());
  return x;
}

void add(const std::string& name, std::function<void(benchmark::State&)> body) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(body))->UseRealTime()->Unit(benchmark::kMillisecond);
}

namespace {

using ops::WeightType;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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

void register_all() {
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
  register_sequence_ops();
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
}  // namespace ponder::bench

int main(int argc, char** argv) {
  using namespace ponder::bench;
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
