// One set of tests for every backend: each operation over random shapes against the scalar reference, and the
// promises of ops/backend.hpp that have to hold to the last bit (rows alone or together, segments alone or
// together, sequences cut into calls, foreign rows without influence, in place or not, any number of
// threads).
//
// A backend's test program links ponder_op_suite and instantiates the suite once per thing it wants tested:
//
//   namespace ot = ponder::ops::testing;
//   std::vector<ot::OpSubject> subjects() {
//     ot::OpSubject one{.name = "avx2_1thread", .make = [](ops::ActivationType t) { return make_...(t, 1);
//     }}; one.twins.push_back([](ops::ActivationType t) { return make_...(t, 3); });  // must give the same
//     bits return {one};
//   }
//   INSTANTIATE_TEST_SUITE_P(Cpu, OpSuite, testing::ValuesIn(subjects()),
//   ponder::ops::testing::subject_name);
//
// with `using ponder::ops::testing::OpSuite;` in scope. `make` may return null (instruction set not there):
// the tests are then skipped.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/backend.hpp"

namespace ponder::ops::testing {

// How far a float32 implementation may be from the reference's double sums. Each figure multiplies the size
// of what was summed, so that cancellation neither hides nor fakes an error.
struct Tolerance {
  double sum = 4e-6;      // dot products, convolution: times the sum of |terms|
  double element = 4e-6;  // norms, gates, rotation: times |result| (or the sum of its |terms|)
  double table = 1e-6;    // cosines and sines, absolute
  double softmax =
      4e-6;             // attention: times (1 + largest sum of |scale * terms| of a score) * largest |value|
  double delta = 1e-5;  // delta rule: times the head's largest sum of |terms| of an output, or |entry of S|
};

using BackendFactory = std::function<std::unique_ptr<Backend>(ActivationType)>;

struct OpSubject {
  std::string name;  // letters, digits and underscores
  BackendFactory make;
  std::vector<BackendFactory> twins;  // the same backend in another setting: must give the same bits
  std::vector<ActivationType> activations = {ActivationType::f32, ActivationType::bf16,
                                             ActivationType::native};
  Tolerance tolerance;
  std::uint64_t seed = 1;
  int trials = 40;  // random shapes per operation
};

std::ostream& operator<<(std::ostream& out, const OpSubject& subject);
std::string subject_name(const ::testing::TestParamInfo<OpSubject>& info);

// Backends of one activation type, side by side.
struct Bench {
  std::unique_ptr<Backend> subject, reference;
  std::vector<std::unique_ptr<Backend>> twins;
};

class OpSuite : public ::testing::TestWithParam<OpSubject> {
 protected:
  void SetUp() override;

  // subject is null when the factory has none of this type.
  static Bench make_bench(ActivationType type);
  static const Tolerance& tolerance() { return GetParam().tolerance; }
  static int trials() { return GetParam().trials; }
  static std::uint64_t seed() { return GetParam().seed; }

  Bench bench_;  // of the first activation type; all operations but the products with weights ignore it
};

}  // namespace ponder::ops::testing
