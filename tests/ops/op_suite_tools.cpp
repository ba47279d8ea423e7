#include "op_suite_tools.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <sstream>

namespace ponder::ops::testing {
namespace {

const float kMarker = std::bit_cast<float>(0x7FC0DEADU);

bool is_marker(float v) {
  return std::bit_cast<std::uint32_t>(v) == 0x7FC0DEADU;
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

bool within(float got, float want, double bound) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (got == want) return true;
  return std::fabs(static_cast<double>(got) - want) <= bound;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const OpSubject& subject) {
  return out << subject.name;
}

std::string subject_name(const ::testing::TestParamInfo<OpSubject>& info) {
  return info.param.name;
}

Bench OpSuite::make_bench(ActivationType type) {
  Bench bench{GetParam().make(type), make_reference_backend(type), {}};
  for (const BackendFactory& make : GetParam().twins) {
    if (auto twin = make(type)) bench.twins.push_back(std::move(twin));
  }
  return bench;
}

void OpSuite::SetUp() {
  ASSERT_FALSE(GetParam().activations.empty());
  bench_ = make_bench(GetParam().activations.front());
  if (!bench_.subject) GTEST_SKIP() << GetParam().name << " is not available on this machine";
  EXPECT_FALSE(bench_.subject->describe().empty());
  EXPECT_EQ(bench_.subject->activation_type(), GetParam().activations.front());
}

Matrix::Matrix(std::int64_t rows, std::int64_t cols, std::int64_t pad, std::int64_t offset)
    : rows_(rows),
      cols_(cols),
      stride_(cols + pad),
      offset_(offset),
      block_(static_cast<std::size_t>(offset + rows * stride_ + 16), kMarker) {
  for (std::int64_t r = 0; r < rows; ++r) fill_row(r, 0.0F);
}

Matrix Matrix::scattered(Random& rng, std::int64_t rows, std::int64_t cols) {
  const int pad = chance(rng, 0.5) ? 0 : random_between(rng, 1, 19);
  return {rows, cols, pad, random_between(rng, 0, 17)};
}

Matrix Matrix::normal(Random& rng, std::int64_t rows, std::int64_t cols, double scale) {
  Matrix out = scattered(rng, rows, cols);
  out.fill_normal(rng, scale);
  return out;
}

void Matrix::fill_normal(Random& rng, double scale) {
  for (std::int64_t r = 0; r < rows_; ++r) {
    for (std::int64_t i = 0; i < cols_; ++i) (*this)[r][i] = static_cast<float>(scale * rng.normal());
  }
}

void Matrix::fill_row(std::int64_t r, float value) {
  for (std::int64_t i = 0; i < cols_; ++i) (*this)[r][i] = value;
}

std::vector<float> Matrix::dense(std::int64_t first_row, std::int64_t count) const {
  std::vector<float> out;
  for (std::int64_t r = first_row; r < first_row + count; ++r) {
    out.insert(out.end(), (*this)[r], (*this)[r] + cols_);
  }
  return out;
}

void Matrix::expect_guards(const std::string& what) const {
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(block_.size()); ++i) {
    const std::int64_t at = i - offset_;
    const bool cell = at >= 0 && at < rows_ * stride_ && at % stride_ < cols_;
    if (!cell && !is_marker(block_[static_cast<std::size_t>(i)])) {
      ADD_FAILURE() << what << ": wrote outside the matrix, " << at << " floats from its start (" << rows_
                    << " x " << cols_ << ", stride " << stride_ << ")";
      return;
    }
  }
}

float poison(std::int64_t i) {
  switch (i % 3) {
    case 0:
      return std::numeric_limits<float>::quiet_NaN();
    case 1:
      return 3e38F;
    default:
      return -std::numeric_limits<float>::infinity();
  }
}

int random_between(Random& rng, int low, int high) {
  return low + static_cast<int>(rng.below(static_cast<std::uint64_t>(high - low) + 1));
}

bool chance(Random& rng, double p) {
  return rng.uniform() < p;
}

int random_dim(Random& rng, int most) {
  static constexpr int usual[] = {1, 2, 4, 8, 12, 16, 20, 24, 32, 64, 96, 128, 256};
  int dim = 0;
  do {
    dim = chance(rng, 0.5) ? usual[rng.below(std::size(usual))] : random_between(rng, 1, 200);
  } while (dim > most);
  return dim;
}

std::vector<std::vector<int>> cuts(Random& rng, int rows) {
  std::vector<std::vector<int>> out;
  for (int size : {1, 3, 64, 65, 0}) {
    std::vector<int> sizes;
    for (int at = 0; at < rows; at += sizes.back()) {
      const int wanted = size != 0 ? size : random_between(rng, 1, 40);
      sizes.push_back(std::min(wanted, rows - at));
    }
    out.push_back(std::move(sizes));
  }
  return out;
}

void expect_within(std::span<const float> got, std::span<const float> want, std::span<const double> bounds,
                   const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  ASSERT_EQ(bounds.size(), want.size()) << what;
  std::size_t wrong = 0;
  std::ostringstream first;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (within(got[i], want[i], bounds[i])) continue;
    if (wrong++ == 0) {
      first.precision(9);
      first << "[" << i << "] is " << got[i] << ", wanted " << want[i] << " within " << bounds[i];
    }
  }
  EXPECT_EQ(wrong, 0U) << what << ": of " << got.size() << " values; first " << first.str();
}

void expect_same_bits(std::span<const float> got, std::span<const float> want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (same_bits(got[i], want[i])) continue;
    ADD_FAILURE() << what << ": [" << i << "] of " << got.size() << " is " << std::hexfloat << got[i]
                  << ", wanted the bits of " << want[i];
    return;
  }
}

}  // namespace ponder::ops::testing
