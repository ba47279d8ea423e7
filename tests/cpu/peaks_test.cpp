// The yardsticks: each loop does the work it claims, so that a rate is operations over time and nothing else.
#include "cpu/peaks.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/aligned_buffer.hpp"
#include "base/random.hpp"

namespace ponder::cpu {
namespace {

struct Set {
  InstructionSet isa;
  const PeakKernels* kernels;
};

std::vector<Set> sets_of_this_machine() {
  std::vector<Set> out;
  const CpuFeatures features = detect_cpu_features();
  const auto add = [&](InstructionSet isa, const PeakKernels& kernels) {
    if (attainable(isa, features)) out.push_back({isa, &kernels});
  };
  add(InstructionSet::scalar, kScalarPeaks);
#if defined(__x86_64__)
  add(InstructionSet::avx2, kAvx2Peaks);
  add(InstructionSet::avx512, kAvx512Peaks);
#elif defined(__aarch64__)
  add(InstructionSet::neon, kNeonPeaks);
#endif
  return out;
}

// The sum of all products is their number, half the operations, times one product: exact in float here.
void expect_work(const PeakLoop& loop, double product) {
  for (const std::int64_t rounds : {1, 2, 37}) {
    alignas(64) float sink[16] = {};
    loop.run(rounds, sink);
    double sum = 0;
    for (const float part : sink) sum += static_cast<double>(part);
    const double products = static_cast<double>(loop.operations) / 2 * static_cast<double>(rounds);
    EXPECT_EQ(sum, products * product) << loop.instruction << ", " << rounds << " rounds";
  }
}

TEST(Peaks, LoopsDoTheOperationsTheyCount) {
  const CpuFeatures f = detect_cpu_features();
  for (const Set& set : sets_of_this_machine()) {
    SCOPED_TRACE(std::string(name(set.isa)));
    expect_work(set.kernels->f32, 0.125);
    expect_work(set.kernels->int8, -15);
    const bool dot = set.isa == InstructionSet::avx512 ? f.avx512_vnni
                     : set.isa == InstructionSet::avx2 ? f.avx_vnni
                                                       : f.neon_dotprod;
    if (set.kernels->int8_dot.run != nullptr && dot) expect_work(set.kernels->int8_dot, -15);
    if (set.kernels->bf16_dot.run != nullptr && f.avx512_bf16) expect_work(set.kernels->bf16_dot, 0.125);
  }
}

TEST(Peaks, ReadingReadsEveryWord) {
  AlignedBuffer<std::uint64_t> words(4 * kPeakReadBlock / 8);
  Random random(1);
  std::uint64_t expected = 0;
  for (std::uint64_t& word : words) expected ^= word = random.next_u64();
  for (const Set& set : sets_of_this_machine()) {
    EXPECT_EQ(set.kernels->read(words.data(), words.bytes()), expected) << name(set.isa);
  }
}

TEST(Peaks, AMeterGivesPlausibleRates) {
  for (const Set& set : sets_of_this_machine()) {
    PeakMeter meter(set.isa, std::make_shared<ThreadPool>(2));
    const Peaks p = meter.measure();
    for (const double rate : {p.read_bytes, p.int8_ops, p.bf16_ops, p.f32_ops}) {
      EXPECT_GT(rate, 1e6) << name(set.isa);
      EXPECT_LT(rate, 1e18) << name(set.isa);
    }
    EXPECT_NE(std::string(meter.int8_instruction()), "");
  }
}

TEST(Peaks, TheBetterOfTwoRoundsIsTakenFigureByFigure) {
  const Peaks b = better({1, 2, 3, 4}, {4, 3, 2, 1});
  EXPECT_EQ(b.read_bytes, 4);
  EXPECT_EQ(b.int8_ops, 3);
  EXPECT_EQ(b.bf16_ops, 3);
  EXPECT_EQ(b.f32_ops, 4);
}

TEST(Peaks, TheBufferExceedsEveryCache) {
  EXPECT_GE(PeakMeter::buffer_bytes(), std::uint64_t{256} << 20);
}

}  // namespace
}  // namespace ponder::cpu
