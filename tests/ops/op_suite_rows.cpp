// Norms, gates and rotation.
#include <cmath>

#include "op_suite_tools.hpp"

namespace ponder::ops::testing {
namespace {

// Below this a result may as well be zero (an exponential that underflows).
constexpr double kTiny = 1e-30;

std::vector<double> relative_bounds(std::span<const float> want, double tolerance) {
  std::vector<double> out;
  for (float w : want) out.push_back(tolerance * std::fabs(static_cast<double>(w)) + kTiny);
  return out;
}

double random_scale(Random& rng) {
  static constexpr double scales[] = {1.0, 1.0, 1e-3, 30.0};
  return scales[rng.below(std::size(scales))];
}

// ---- rms_norm, gated_rms_norm ----------------------------------------------------------------------------

struct NormCase {
  int rows = 0;
  Groups groups;
  bool gated = false;
  bool in_place = false;
  float eps = 0;
  Matrix x, z, weight, y;

  NormCase(Random& rng, bool gate) : gated(gate) {
    rows = random_between(rng, 1, 70);
    groups.dim = random_dim(rng);
    groups.count = chance(rng, 0.4) ? 1 : random_between(rng, 2, 6);
    groups.stride = groups.dim + (chance(rng, 0.5) ? 0 : random_between(rng, 1, 40));
    const std::int64_t cols = (groups.count - 1) * groups.stride + groups.dim;
    eps = chance(rng, 0.5) ? 1e-6F : 1e-5F;
    x = Matrix::normal(rng, rows, cols, random_scale(rng));
    z = Matrix::normal(rng, rows, cols, random_scale(rng));
    weight = Matrix::normal(rng, 1, groups.dim);
    y = Matrix::scattered(rng, rows, cols);
    if (chance(rng, 0.2)) x.fill_row(0, 0.0F);
  }

  std::string name() const {
    return fmt::format("{}rms_norm rows {} groups {} dim {} stride {}{}", gated ? "gated_" : "", rows,
                       groups.count, groups.dim, groups.stride, in_place ? " in place" : "");
  }

  std::vector<float> run(Backend& b, int first, int count) const {
    Matrix input = x, output = y;
    Matrix& target = in_place ? input : output;
    const ConstRows in = std::as_const(input).view(first);
    if (gated) {
      b.gated_rms_norm(in, z.view(first), target.view(first), count, groups, weight[0], eps);
    } else {
      b.rms_norm(in, target.view(first), count, groups, weight[0], eps);
    }
    target.expect_guards(name());
    return group_values(target, first, count);
  }

  // The columns of the groups; those between them must still hold what they held.
  std::vector<float> group_values(const Matrix& m, int first, int count) const {
    const Matrix& before = in_place ? x : y;
    std::vector<float> out;
    for (std::int64_t r = 0; r < m.rows(); ++r) {
      const bool touched = r >= first && r < first + count;
      for (std::int64_t i = 0; i < m.cols(); ++i) {
        if (touched && i % groups.stride < groups.dim) {
          out.push_back(m[r][i]);
        } else {
          EXPECT_TRUE(m[r][i] == before[r][i] || std::isnan(before[r][i]))
              << name() << " row " << r << " col " << i;
        }
      }
    }
    return out;
  }

  std::vector<double> bounds(Backend&, const Tolerance& t, std::span<const float> want) const {
    return relative_bounds(want, t.element);
  }

  void poison_others(int keep) {
    for (int r = 0; r < rows; ++r) {
      if (r == keep) continue;
      x.fill_row(r, poison(r));
      z.fill_row(r, poison(r + 1));
    }
  }
};

void check_norm(const Bench& bench, const Tolerance& tolerance, Random& rng, bool gated) {
  NormCase c(rng, gated);
  check_rows(bench, tolerance, rng, c);
  const std::vector<float> apart = c.run(*bench.subject, 0, c.rows);
  c.in_place = true;
  expect_same_bits(c.run(*bench.subject, 0, c.rows), apart, c.name());
}

TEST_P(OpSuite, RmsNorm) {
  Random rng(seed());
  for (int i = 0; i < trials() && !HasFailure(); ++i) check_norm(bench_, tolerance(), rng, false);
}

TEST_P(OpSuite, GatedRmsNorm) {
  Random rng(seed() + 1);
  for (int i = 0; i < trials() && !HasFailure(); ++i) check_norm(bench_, tolerance(), rng, true);
}

// ---- silu_mul, sigmoid_mul -------------------------------------------------------------------------------

struct SiluCase {
  int rows = 0;
  Matrix gate, up;

  explicit SiluCase(Random& rng) : rows(random_between(rng, 1, 70)) {
    const int cols = random_dim(rng);
    gate = Matrix::normal(rng, rows, cols, random_scale(rng));
    up = Matrix::normal(rng, rows, cols, random_scale(rng));
    for (float v : {0.0F, -0.0F, 90.0F, -90.0F, 1e4F, -1e4F}) {
      if (chance(rng, 0.5)) gate[random_between(rng, 0, rows - 1)][random_between(rng, 0, cols - 1)] = v;
    }
  }

  std::string name() const { return fmt::format("silu_mul {} x {}", rows, gate.cols()); }

  std::vector<float> run(Backend& b, int first, int count) const {
    Matrix out = gate;
    b.silu_mul(out.view(first), up.view(first), count, static_cast<int>(out.cols()));
    out.expect_guards(name());
    expect_same_bits(out.dense(0, first), gate.dense(0, first), "rows before");
    return out.dense(first, count);
  }

  std::vector<double> bounds(Backend&, const Tolerance& t, std::span<const float> want) const {
    return relative_bounds(want, t.element);
  }

  void poison_others(int keep) {
    for (int r = 0; r < rows; ++r) {
      if (r == keep) continue;
      gate.fill_row(r, poison(r));
      up.fill_row(r, poison(r + 1));
    }
  }
};

TEST_P(OpSuite, SiluMul) {
  Random rng(seed() + 2);
  for (int i = 0; i < trials() && !HasFailure(); ++i) check_rows(bench_, tolerance(), rng, SiluCase(rng));
}

struct SigmoidCase {
  int rows = 0;
  Groups gates;
  Matrix x, gate;

  explicit SigmoidCase(Random& rng) : rows(random_between(rng, 1, 70)) {
    gates.dim = random_dim(rng);
    gates.count = random_between(rng, 1, 5);
    gates.stride =
        gates.dim * (chance(rng, 0.5) ? 2 : 1) + (chance(rng, 0.7) ? 0 : random_between(rng, 1, 9));
    x = Matrix::normal(rng, rows, static_cast<std::int64_t>(gates.count) * gates.dim, random_scale(rng));
    gate = Matrix::normal(rng, rows, (gates.count - 1) * gates.stride + gates.dim, random_scale(rng));
    for (float v : {0.0F, 90.0F, -80.0F, 1e4F}) {
      if (chance(rng, 0.5)) gate[random_between(rng, 0, rows - 1)][random_between(rng, 0, gates.dim - 1)] = v;
    }
  }

  std::string name() const {
    return fmt::format("sigmoid_mul rows {} groups {} dim {} stride {}", rows, gates.count, gates.dim,
                       gates.stride);
  }

  std::vector<float> run(Backend& b, int first, int count) const {
    Matrix out = x;
    b.sigmoid_mul(out.view(first), gate.view(first), count, gates);
    out.expect_guards(name());
    return out.dense(first, count);
  }

  std::vector<double> bounds(Backend&, const Tolerance& t, std::span<const float> want) const {
    return relative_bounds(want, t.element);
  }

  void poison_others(int keep) {
    for (int r = 0; r < rows; ++r) {
      if (r == keep) continue;
      x.fill_row(r, poison(r));
      gate.fill_row(r, poison(r + 1));
    }
  }
};

TEST_P(OpSuite, SigmoidMul) {
  Random rng(seed() + 3);
  for (int i = 0; i < trials() && !HasFailure(); ++i) check_rows(bench_, tolerance(), rng, SigmoidCase(rng));
}

// ---- rotary ----------------------------------------------------------------------------------------------

struct TableCase {
  int rows = 0, dim = 0;
  double theta = 0;
  std::vector<std::int64_t> positions;

  explicit TableCase(Random& rng) : rows(random_between(rng, 1, 70)), dim(random_dim(rng)) {
    static constexpr double thetas[] = {1e4, 1e6, 1e7, 500000.0};
    theta = thetas[rng.below(std::size(thetas))];
    const std::int64_t most = chance(rng, 0.5) ? 300 : 1000000;
    for (int r = 0; r < rows; ++r) {
      positions.push_back(r == 0 ? 0
                                 : static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(most))));
    }
  }

  std::string name() const { return fmt::format("rotary_table rows {} dim {} theta {}", rows, dim, theta); }
  int half() const { return (dim + 1) / 2; }

  std::vector<float> run(Backend& b, int first, int count) const {
    Matrix cos(count, half(), 3, 1), sin(count, half(), 0, 5);
    const std::span<const std::int64_t> all(positions);
    b.rotary_table(all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), dim, theta,
                   cos.view(), sin.view());
    cos.expect_guards(name());
    sin.expect_guards(name());
    std::vector<float> out;
    for (int r = 0; r < count; ++r) {
      out.insert(out.end(), cos[r], cos[r] + half());
      out.insert(out.end(), sin[r], sin[r] + half());
    }
    return out;
  }

  std::vector<double> bounds(Backend&, const Tolerance& t, std::span<const float> want) const {
    return std::vector<double>(want.size(), t.table);
  }

  void poison_others(int keep) {
    for (int r = 0; r < rows; ++r) {
      if (r != keep) positions[static_cast<std::size_t>(r)] = 123456789;
    }
  }
};

TEST_P(OpSuite, RotaryTable) {
  Random rng(seed() + 4);
  for (int i = 0; i < trials() && !HasFailure(); ++i) check_rows(bench_, tolerance(), rng, TableCase(rng));
}

struct RotaryCase {
  int rows = 0, half = 0;
  Groups groups;
  Matrix x, cos, sin;

  explicit RotaryCase(Random& rng) : rows(random_between(rng, 1, 70)) {
    groups.dim = random_dim(rng);
    if (groups.dim < 2) groups.dim = 2;
    half = chance(rng, 0.5) ? groups.dim / 2 : random_between(rng, 1, groups.dim / 2);
    groups.count = random_between(rng, 1, 5);
    groups.stride =
        groups.dim * (chance(rng, 0.5) ? 2 : 1) + (chance(rng, 0.7) ? 0 : random_between(rng, 1, 9));
    x = Matrix::normal(rng, rows, (groups.count - 1) * groups.stride + groups.dim);
    cos = Matrix::scattered(rng, rows, half);
    sin = Matrix::scattered(rng, rows, half);
    for (int r = 0; r < rows; ++r) {
      for (int j = 0; j < half; ++j) {
        const double angle = rng.uniform(-3.2, 3.2);
        cos[r][j] = static_cast<float>(std::cos(angle));
        sin[r][j] = static_cast<float>(std::sin(angle));
      }
    }
  }

  std::string name() const {
    return fmt::format("rotary rows {} groups {} dim {} stride {} half {}", rows, groups.count, groups.dim,
                       groups.stride, half);
  }

  bool turned(std::int64_t col) const { return col % groups.stride < 2 * half; }

  std::vector<float> run(Backend& b, int first, int count) const {
    Matrix out = x;
    b.rotary(out.view(first), count, groups, half, cos.view(first), sin.view(first));
    out.expect_guards(name());
    for (int r = first; r < first + count; ++r) {
      for (std::int64_t i = 0; i < x.cols(); ++i) {
        if (turned(i) || std::isnan(x[r][i])) continue;
        EXPECT_EQ(out[r][i], x[r][i]) << name() << " col " << i;
      }
    }
    return out.dense(first, count);
  }

  std::vector<double> bounds(Backend&, const Tolerance& t, std::span<const float> want) const {
    std::vector<double> out(want.size(), 0.0);
    for (int r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < x.cols(); ++i) {
        if (!turned(i)) continue;
        const std::int64_t in_group = i % groups.stride;
        const std::int64_t other = in_group < half ? i + half : i - half;
        const double size =
            std::fabs(static_cast<double>(x[r][i])) + std::fabs(static_cast<double>(x[r][other]));
        out[static_cast<std::size_t>(r * x.cols() + i)] = t.element * size + kTiny;
      }
    }
    return out;
  }

  void poison_others(int keep) {
    for (int r = 0; r < rows; ++r) {
      if (r == keep) continue;
      x.fill_row(r, poison(r));
      cos.fill_row(r, poison(r + 1));
    }
  }
};

TEST_P(OpSuite, Rotary) {
  Random rng(seed() + 5);
  for (int i = 0; i < trials() && !HasFailure(); ++i) check_rows(bench_, tolerance(), rng, RotaryCase(rng));
}

TEST_P(OpSuite, RowOpsOfNoRows) {
  Backend& b = *bench_.subject;
  const Rows none;
  const Groups groups{2, 8, 8};
  b.rms_norm(none, none, 0, groups, nullptr, 1e-6F);
  b.gated_rms_norm(none, none, none, 0, groups, nullptr, 1e-6F);
  b.silu_mul(none, none, 0, 8);
  b.sigmoid_mul(none, none, 0, groups);
  b.rotary_table({}, 8, 1e4, none, none);
  b.rotary(none, 0, groups, 4, none, none);
}

}  // namespace
}  // namespace ponder::ops::testing
