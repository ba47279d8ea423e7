// The CPU backend against the suite every backend has to pass, for every instruction set this machine has,
// and its promises about threads and instruction sets.
#include "cpu/backend.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "op_suite.hpp"

namespace ponder::cpu {
namespace {

namespace ot = ops::testing;

ot::BackendFactory factory(InstructionSet isa, int threads) {
  return [isa, threads](ops::ActivationType activations) {
    return make_cpu_backend(
        {.isa = isa, .pool = std::make_shared<ThreadPool>(threads), .activations = activations});
  };
}

std::vector<ot::OpSubject> subjects() {
  std::vector<ot::OpSubject> all;
  for (const InstructionSet isa : attainable(detect_cpu_features())) {
    ot::OpSubject subject;
    subject.name = std::string(name(isa));
    subject.make = factory(isa, 1);
    subject.twins = {factory(isa, 2), factory(isa, 5)};
    all.push_back(subject);
  }
  return all;
}

TEST(CpuBackend, TakesTheBestInstructionSetUnlessTold) {
  const CpuFeatures features = detect_cpu_features();
  const std::string best_name(name(best(features)));
  EXPECT_EQ(make_cpu_backend()->describe(), "cpu " + best_name + ", 1 thread");
  EXPECT_EQ(make_cpu_backend({.isa = InstructionSet::scalar})->describe(), "cpu scalar, 1 thread");
}

TEST(CpuBackend, Complaint53_OneLineNamesInstructionSetThreadsAndWhy) {
  const auto backend = make_cpu_backend({.isa = InstructionSet::scalar,
                                         .pool = std::make_shared<ThreadPool>(3),
                                         .activations = ops::ActivationType::bf16,
                                         .thread_reason = "cgroup quota"});
  EXPECT_EQ(backend->describe(), "cpu scalar, 3 threads (cgroup quota), bf16 inputs to products");
}

TEST(CpuBackend, Complaint52_RefusesAnInstructionSetThatIsNotThere) {
  const CpuFeatures features = detect_cpu_features();
  int refused = 0;
  for (const InstructionSet isa :
       {InstructionSet::scalar, InstructionSet::avx2, InstructionSet::avx512, InstructionSet::neon}) {
    if (attainable(isa, features)) {
      EXPECT_NE(make_cpu_backend({.isa = isa}), nullptr) << name(isa);
      continue;
    }
    ++refused;
    try {
      make_cpu_backend({.isa = isa});
      ADD_FAILURE() << name(isa) << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_NE(std::string(error.what()).find(name(isa)), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(refused, 0);  // no machine has both avx2 and neon
}

}  // namespace
}  // namespace ponder::cpu

namespace ponder::ops::testing {
INSTANTIATE_TEST_SUITE_P(Cpu, OpSuite, ::testing::ValuesIn(ponder::cpu::subjects()), subject_name);
}  // namespace ponder::ops::testing
