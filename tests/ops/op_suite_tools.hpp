// What the files of the op suite share: guarded matrices, random shapes, comparisons, and the checks that
// every operation working row by row has to pass.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "op_suite.hpp"

namespace ponder::ops::testing {

// A [rows, cols] matrix inside a larger block: it starts at any float, its rows lie apart, and everything
// around the cells holds a marker, so that reading or writing outside shows.
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::int64_t rows, std::int64_t cols, std::int64_t pad = 0, std::int64_t offset = 0);
  // Random padding and start.
  static Matrix scattered(Random& rng, std::int64_t rows, std::int64_t cols);
  static Matrix normal(Random& rng, std::int64_t rows, std::int64_t cols, double scale = 1.0);

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  std::int64_t stride() const { return stride_; }
  Rows view(std::int64_t first_row = 0) { return {block_.data() + offset_ + first_row * stride_, stride_}; }
  ConstRows view(std::int64_t first_row = 0) const {
    return {block_.data() + offset_ + first_row * stride_, stride_};
  }
  float* operator[](std::int64_t r) { return view()[r]; }
  const float* operator[](std::int64_t r) const { return view()[r]; }

  void fill_normal(Random& rng, double scale = 1.0);
  void fill_row(std::int64_t r, float value);
  std::vector<float> dense(std::int64_t first_row, std::int64_t count) const;
  std::vector<float> dense() const { return dense(0, rows_); }
  void expect_guards(const std::string& what) const;

 private:
  std::int64_t rows_ = 0, cols_ = 0, stride_ = 0, offset_ = 0;
  std::vector<float> block_;
};

// NaN or a huge value: what a row that must not matter is filled with.
float poison(std::int64_t i);

// A vector size: the usual ones, their odd neighbours, or anything up to `most`.
int random_dim(Random& rng, int most = 256);
int random_between(Random& rng, int low, int high);  // both included
bool chance(Random& rng, double p);

// Cuts [0, rows) into calls of 1, 3, 64, 65 rows and of random sizes; each entry lists the sizes of its
// calls.
std::vector<std::vector<int>> cuts(Random& rng, int rows);

// Every value within its bound of the wanted one; NaN matches NaN only, an infinity only itself.
void expect_within(std::span<const float> got, std::span<const float> want, std::span<const double> bounds,
                   const std::string& what);
// The same bits (any NaN equals any NaN).
void expect_same_bits(std::span<const float> got, std::span<const float> want, const std::string& what);

// An operation on independent rows. A Case has
//   int rows;  std::string name() const;
//   std::vector<float> run(Backend&, int first, int count) const;   outputs of these rows, dense
//   std::vector<double> bounds(Backend& reference, const Tolerance&, std::span<const float> want) const;
//   void poison_others(int keep);                                   ruins the inputs of all rows but one
template <class Case>
void check_rows(const Bench& bench, const Tolerance& tolerance, Random& rng, const Case& c) {
  SCOPED_TRACE(c.name());
  const std::vector<float> want = c.run(*bench.reference, 0, c.rows);
  const std::vector<float> got = c.run(*bench.subject, 0, c.rows);
  expect_within(got, want, c.bounds(*bench.reference, tolerance, want), "against the reference");
  expect_same_bits(c.run(*bench.subject, 0, c.rows), got, "second run");
  for (const auto& twin : bench.twins) expect_same_bits(c.run(*twin, 0, c.rows), got, "twin");
  if (c.rows == 0) return;

  const std::size_t width = got.size() / static_cast<std::size_t>(c.rows);
  const std::span<const float> all(got);
  auto part = [&](int first, int count) {
    return all.subspan(static_cast<std::size_t>(first) * width, static_cast<std::size_t>(count) * width);
  };
  for (int r = 0; r < c.rows; ++r) expect_same_bits(c.run(*bench.subject, r, 1), part(r, 1), "row alone");
  for (const std::vector<int>& sizes : cuts(rng, c.rows)) {
    int first = 0;
    for (int count : sizes) {
      expect_same_bits(c.run(*bench.subject, first, count), part(first, count), "rows in parts");
      first += count;
    }
  }
  const int keep = random_between(rng, 0, c.rows - 1);
  Case ruined = c;
  ruined.poison_others(keep);
  const std::vector<float> among_ruins = ruined.run(*bench.subject, 0, c.rows);
  expect_same_bits(std::span<const float>(among_ruins).subspan(static_cast<std::size_t>(keep) * width, width),
                   part(keep, 1), "row among ruined rows");
}

}  // namespace ponder::ops::testing
