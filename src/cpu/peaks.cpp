#include "cpu/peaks.hpp"

#include <algorithm>
#include <atomic>

#include <unistd.h>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace ponder::cpu {
namespace {

constexpr std::size_t kReadTask = std::size_t{1} << 20;
constexpr double kLoopMilliseconds = 0.4;  // of one task
constexpr int kTasksPerThread = 4;         // so that a thread that wakes late costs little
constexpr int kRuns = 8;

const PeakKernels& peak_kernels(InstructionSet isa) {
  switch (isa) {
    case InstructionSet::scalar:
      return kScalarPeaks;
#if defined(__x86_64__)
    case InstructionSet::avx2:
      return kAvx2Peaks;
    case InstructionSet::avx512:
      return kAvx512Peaks;
#elif defined(__aarch64__)
    case InstructionSet::neon:
      return kNeonPeaks;
#endif
    default:
      fail(ErrorKind::unsupported, "instruction set {}: this build has no kernels for it", name(isa));
  }
}

bool has_int8_dot(InstructionSet isa, const CpuFeatures& features) {
  switch (isa) {
    case InstructionSet::avx2:
      return features.avx_vnni;
    case InstructionSet::avx512:
      return features.avx512_vnni;
    case InstructionSet::neon:
      return features.neon_dotprod;
    default:
      return false;
  }
}

template <class F>
double least_ms(int runs, F run) {
  double least = 0;
  for (int i = 0; i < runs; ++i) {
    const Stopwatch watch;
    run();
    const double ms = std::max(watch.elapsed_ms(), 1e-6);
    least = i == 0 ? ms : std::min(least, ms);
  }
  return least;
}

}  // namespace

Peaks better(const Peaks& a, const Peaks& b) {
  return {std::max(a.read_bytes, b.read_bytes), std::max(a.int8_ops, b.int8_ops),
          std::max(a.bf16_ops, b.bf16_ops), std::max(a.f32_ops, b.f32_ops)};
}

std::uint64_t PeakMeter::buffer_bytes() {
  constexpr std::uint64_t least = std::uint64_t{256} << 20, most = std::uint64_t{4} << 30;
  std::uint64_t cache = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  cache = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_LEVEL3_CACHE_SIZE)));
#endif
  return std::clamp(4 * cache, least, most) / kReadTask * kReadTask;
}

PeakMeter::PeakMeter(InstructionSet isa, std::shared_ptr<ThreadPool> pool)
    : kernels_(peak_kernels(isa)), int8_(&kernels_.int8), bf16_(&kernels_.f32), pool_(std::move(pool)) {
  const CpuFeatures features = detect_cpu_features();
  require_instruction_set(isa, features);
  if (has_int8_dot(isa, features)) int8_ = &kernels_.int8_dot;
  if (isa == InstructionSet::avx512 && features.fast_bf16_dot) bf16_ = &kernels_.bf16_dot;
  // Written by the threads that will read it: untouched pages would all be the kernel's one page of zeros.
  buffer_ = AlignedBuffer<std::byte>(buffer_bytes(), Fill::none, HugePages::yes);
  pool_->run(static_cast<int>(buffer_.size() / kReadTask), [&](int task, int) {
    std::fill_n(buffer_.data() + static_cast<std::size_t>(task) * kReadTask, kReadTask,
                static_cast<std::byte>(task + 1));
  });
}

Peaks PeakMeter::measure() {
  Peaks out;
  out.read_bytes = measure_reading();
  out.int8_ops = measure_loop(*int8_);
  out.f32_ops = measure_loop(kernels_.f32);
  out.bf16_ops = bf16_ == &kernels_.f32 ? out.f32_ops : measure_loop(*bf16_);
  return out;
}

double PeakMeter::measure_reading() {
  static_assert(kReadTask % kPeakReadBlock == 0);
  std::atomic<std::uint64_t> all{0};
  const double ms = least_ms(kRuns, [&] {
    pool_->run(static_cast<int>(buffer_.size() / kReadTask), [&](int task, int) {
      const std::byte* data = buffer_.data() + static_cast<std::size_t>(task) * kReadTask;
      all.fetch_xor(kernels_.read(data, kReadTask), std::memory_order_relaxed);
    });
  });
  return static_cast<double>(buffer_.size()) / ms * 1e3;
}

double PeakMeter::measure_loop(const PeakLoop& loop) {
  alignas(64) float sink[16];
  std::int64_t rounds = 64;
  // As many rounds as fill a task's time, found by doubling.
  for (;;) {
    const double ms = least_ms(2, [&] { loop.run(rounds, sink); });
    if (ms >= kLoopMilliseconds / 2) break;
    rounds *= 2;
  }
  const int tasks = kTasksPerThread * pool_->size();
  const double ms = least_ms(kRuns, [&] {
    pool_->run(tasks, [&](int, int) {
      alignas(64) float own_sink[16];
      loop.run(rounds, own_sink);
    });
  });
  return static_cast<double>(loop.operations) * static_cast<double>(rounds) * tasks / ms * 1e3;
}

}  // namespace ponder::cpu
