// causal_conv, delta_rule and delta_matrix: operations whose state moves with the rows.
#include <algorithm>
#include <cmath>

#include "delta_oracle.hpp"
#include "op_suite_tools.hpp"

namespace ponder::ops::testing {
namespace {

// A stretch of one sequence: its rows in the batch and the floats it remembers, at any address.
struct Segment {
  int first_row = 0, rows = 0;
  std::int64_t position = 0;
  Matrix state;
};

// What a run leaves: outputs, and the states in a form that may be compared.
struct Result {
  std::vector<float> out;
  std::vector<std::vector<float>> states;
};

void expect_same(const Result& got, const Result& want, const std::string& what) {
  expect_same_bits(got.out, want.out, what + ", output");
  ASSERT_EQ(got.states.size(), want.states.size());
  for (std::size_t i = 0; i < got.states.size(); ++i) {
    expect_same_bits(got.states[i], want.states[i], fmt::format("{}, state {}", what, i));
  }
}

// Runs the segments of a case in calls that each take, from every segment, its next rows: `sizes[k]` in call
// k (what is left in the last). Segments are in one call together or, alone, in a call each.
template <class Case>
Result run_cut(Backend& b, const Case& c, const std::vector<int>& sizes, bool alone) {
  Matrix out = c.out;
  std::vector<Segment> segments = c.segments;
  std::vector<int> done(segments.size(), 0);
  bool more = true;
  for (std::size_t k = 0; more; ++k) {
    more = false;
    std::vector<Segment*> call;
    std::vector<Segment> parts;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const int left = segments[i].rows - done[i];
      const int rows = k < sizes.size() ? std::min(left, sizes[k]) : left;
      if (rows == 0) continue;
      parts.push_back({segments[i].first_row + done[i], rows, segments[i].position + done[i], {}});
      call.push_back(&segments[i]);
      done[i] += rows;
      more = more || done[i] < segments[i].rows;
    }
    if (alone) {
      for (std::size_t j = 0; j < parts.size(); ++j) c.call(b, out, {parts[j]}, {call[j]});
    } else {
      c.call(b, out, parts, call);
    }
  }
  out.expect_guards(c.name());
  Result result{out.dense(), {}};
  for (Segment& s : segments) {
    s.state.expect_guards(c.name() + ", state");
    result.states.push_back(c.visible_state(b, s));
  }
  return result;
}

template <class Case>
Result run(Backend& b, const Case& c) {
  return run_cut(b, c, {}, false);
}

// All that must not change a bit: twins, segments alone, the sequence in parts, ruined rows and states
// elsewhere.
template <class Case>
void check_invariance(const Bench& bench, Random& rng, const Case& c) {
  const Result want = run(*bench.subject, c);
  expect_same(run(*bench.subject, c), want, "second run");
  for (const auto& twin : bench.twins) expect_same(run(*twin, c), want, "twin");
  expect_same(run_cut(*bench.subject, c, {}, true), want, "segments alone");
  int longest = 0;
  for (const Segment& s : c.segments) longest = std::max(longest, s.rows);
  for (const std::vector<int>& sizes : cuts(rng, longest)) {
    expect_same(run_cut(*bench.subject, c, sizes, chance(rng, 0.5)), want,
                fmt::format("cut at {}", sizes[0]));
  }
  const std::size_t keep = rng.below(c.segments.size());
  Case ruined = c;
  ruined.poison_others(keep);
  const Result among = run(*bench.subject, ruined);
  const Segment& s = c.segments[keep];
  const auto width = static_cast<std::size_t>(c.out.cols());
  const auto from = static_cast<std::size_t>(s.first_row) * width,
             size = static_cast<std::size_t>(s.rows) * width;
  expect_same_bits(std::span(among.out).subspan(from, size), std::span(want.out).subspan(from, size),
                   "among ruined");
  expect_same_bits(among.states[keep], want.states[keep], "state among ruined");
}

std::vector<Segment> random_segments(Random& rng, int& rows) {
  std::vector<Segment> out;
  rows = 0;
  for (int count = random_between(rng, 1, 4); count > 0; --count) {
    Segment s;
    s.first_row = rows;
    s.rows = chance(rng, 0.4) ? random_between(rng, 1, 3) : random_between(rng, 1, 75);
    s.position = chance(rng, 0.3) ? 0 : random_between(rng, 0, 200);
    rows += s.rows;
    out.push_back(std::move(s));
  }
  return out;
}

void ruin(Matrix& m, std::int64_t first_row, std::int64_t rows) {
  for (std::int64_t r = first_row; r < first_row + rows; ++r) m.fill_row(r, poison(r));
}

// ---- causal convolution ----------------------------------------------------------------------------------

struct ConvCase {
  int kernel = 0, channels = 0;
  Matrix x, out, weight;
  std::vector<Segment> segments;

  explicit ConvCase(Random& rng)
      : kernel(random_between(rng, 2, 5)), channels(chance(rng, 0.8) ? random_dim(rng) : 700) {
    int rows = 0;
    segments = random_segments(rng, rows);
    for (Segment& s : segments) {
      s.state = Matrix(1, static_cast<std::int64_t>(kernel - 1) * channels, 0, random_between(rng, 0, 9));
      if (s.position != 0) s.state.fill_normal(rng);
    }
    x = Matrix::normal(rng, rows, channels);
    out = Matrix::scattered(rng, rows, channels);
    weight = Matrix(1, static_cast<std::int64_t>(kernel) * channels, 0, random_between(rng, 0, 9));
    weight.fill_normal(rng);
  }

  std::string name() const {
    std::string text = fmt::format("causal_conv kernel {} channels {} rows", kernel, channels);
    for (const Segment& s : segments) text += fmt::format(" {}", s.rows);
    return text;
  }

  void call(Backend& b, Matrix& y, const std::vector<Segment>& parts,
            const std::vector<Segment*>& states) const {
    std::vector<ConvSegment> list;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      list.push_back({parts[i].first_row, parts[i].rows, states[i]->state[0]});
    }
    b.causal_conv({x.view(), y.view(), weight[0], channels, kernel, list});
  }

  std::vector<float> visible_state(Backend&, const Segment& s) const { return s.state.dense(); }

  void poison_others(std::size_t keep) {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (i == keep) continue;
      ruin(x, segments[i].first_row, segments[i].rows);
      segments[i].state.fill_row(0, poison(static_cast<std::int64_t>(i)));
    }
  }

  float input(const Segment& s, int t, int channel) const {
    return t >= 0 ? x[s.first_row + t][channel] : s.state[0][(t + kernel - 1) * channels + channel];
  }

  std::vector<double> bounds(const Tolerance& tolerance) const {
    std::vector<double> out_bounds;
    for (const Segment& s : segments) {
      for (int t = 0; t < s.rows; ++t) {
        for (int c = 0; c < channels; ++c) {
          double size = 0;
          for (int j = 0; j < kernel; ++j) {
            size +=
                std::fabs(static_cast<double>(weight[0][j * channels + c]) * input(s, t - kernel + 1 + j, c));
          }
          out_bounds.push_back(tolerance.sum * size + 1e-30);
        }
      }
    }
    return out_bounds;
  }

  // The state is inputs, moved on and never computed with.
  std::vector<std::vector<float>> expected_states() const {
    std::vector<std::vector<float>> out_states;
    for (const Segment& s : segments) {
      out_states.emplace_back();
      for (int t = s.rows - kernel + 1; t < s.rows; ++t) {
        for (int c = 0; c < channels; ++c) out_states.back().push_back(input(s, t, c));
      }
    }
    return out_states;
  }
};

TEST_P(OpSuite, CausalConv) {
  Random rng(seed() + 50);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    const ConvCase c(rng);
    SCOPED_TRACE(c.name());
    const Result want = run(*bench_.reference, c), got = run(*bench_.subject, c);
    expect_within(got.out, want.out, c.bounds(tolerance()), "against the reference");
    const auto states = c.expected_states();
    for (std::size_t s = 0; s < states.size(); ++s) expect_same_bits(got.states[s], states[s], "state");
    check_invariance(bench_, rng, c);
  }
}

// ---- delta rule ------------------------------------------------------------------------------------------

struct DeltaCase {
  DeltaShape shape;
  Matrix qkv, a, b_gate, out;
  std::vector<float> rate, dt_bias;
  std::vector<Segment> segments;

  explicit DeltaCase(Random& rng) {
    shape.key_heads = random_between(rng, 1, 3);
    shape.value_heads = shape.key_heads * random_between(rng, 1, 4);
    shape.key_dim = random_dim(rng, 128);
    shape.value_dim = chance(rng, 0.5) ? shape.key_dim : random_dim(rng, 128);
    int rows = 0;
    segments = random_segments(rng, rows);
    for (Segment& s : segments) s.state = random_delta_state(rng, shape, s.position);
    qkv = Matrix::normal(rng, rows, 2 * key_cols() + value_cols(), chance(rng, 0.5) ? 1.0 : 0.2);
    a = Matrix::normal(rng, rows, shape.value_heads, 2.0);
    b_gate = Matrix::normal(rng, rows, shape.value_heads, 2.0);
    out = Matrix::scattered(rng, rows, value_cols());
    for (int h = 0; h < shape.value_heads; ++h) {
      rate.push_back(static_cast<float>(std::exp(rng.uniform(-4, 1))));
      dt_bias.push_back(static_cast<float>(rng.normal()));
    }
    // Gates at their ends: nothing kept, everything kept, and rows of zeros.
    for (int r = 0; r < rows; ++r) {
      if (chance(rng, 0.05)) a[r][0] = chance(rng, 0.5) ? 60.0F : -60.0F;
      if (chance(rng, 0.05)) b_gate[r][0] = chance(rng, 0.5) ? 60.0F : -60.0F;
      if (chance(rng, 0.03)) qkv.fill_row(r, 0.0F);
    }
  }

  std::int64_t key_cols() const { return static_cast<std::int64_t>(shape.key_heads) * shape.key_dim; }
  std::int64_t value_cols() const { return static_cast<std::int64_t>(shape.value_heads) * shape.value_dim; }

  std::string name() const {
    std::string text = fmt::format("delta_rule heads {}/{} dims {}/{} rows", shape.key_heads,
                                   shape.value_heads, shape.key_dim, shape.value_dim);
    for (const Segment& s : segments) text += fmt::format(" {}@{}", s.rows, s.position);
    return text;
  }

  void call(Backend& b, Matrix& y, const std::vector<Segment>& parts,
            const std::vector<Segment*>& states) const {
    std::vector<DeltaSegment> list;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      list.push_back({parts[i].first_row, parts[i].rows, parts[i].position, states[i]->state[0]});
    }
    b.delta_rule({shape, qkv.view(), a.view(), b_gate.view(), rate.data(), dt_bias.data(), y.view(), list});
  }

  // S behind the last row, then what the layout holds of the open chunk.
  std::vector<float> visible_state(Backend& b, const Segment& s) const {
    std::vector<float> matrix(static_cast<std::size_t>(value_cols()) * shape.key_dim);
    b.delta_matrix(shape, s.state[0], s.position + s.rows, matrix.data());
    const std::vector<float> open = open_chunk(shape, s.state[0], s.position + s.rows);
    matrix.insert(matrix.end(), open.begin(), open.end());
    return matrix;
  }

  void poison_others(std::size_t keep) {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      if (i == keep) continue;
      for (Matrix* m : {&qkv, &a, &b_gate}) ruin(*m, segments[i].first_row, segments[i].rows);
      segments[i].state.fill_row(0, poison(static_cast<std::int64_t>(i)));
    }
  }

  DeltaRow row(int r, int h) const {
    const std::int64_t key_head = h / shape.rep();
    return {qkv[r] + key_head * shape.key_dim, qkv[r] + key_cols() + key_head * shape.key_dim,
            qkv[r] + 2 * key_cols() + static_cast<std::int64_t>(h) * shape.value_dim,
            log_decay(rate[h], a[r][h], dt_bias[h]), beta_of(b_gate[r][h])};
  }
};

// Outputs and S of every head from the plain recurrence; the bounds go by the head's largest sums.
struct DeltaExpected {
  std::vector<float> out;
  std::vector<double> out_bounds;
  std::vector<std::vector<float>> matrices;
  std::vector<std::vector<double>> matrix_bounds;
};

DeltaExpected expected(const DeltaCase& c, const Tolerance& t) {
  DeltaExpected e;
  const auto width = static_cast<std::size_t>(c.value_cols()),
             dv = static_cast<std::size_t>(c.shape.value_dim);
  for (const Segment& s : c.segments) {
    const std::size_t base = e.out.size();
    e.out.resize(base + static_cast<std::size_t>(s.rows) * width);
    e.out_bounds.resize(e.out.size());
    e.matrices.emplace_back();
    e.matrix_bounds.emplace_back();
    for (int h = 0; h < c.shape.value_heads; ++h) {
      PlainDelta plain(c.shape, s.state[0], s.position, h);
      for (int r = 0; r < s.rows; ++r) {
        const std::vector<double> out = plain.step(c.row(s.first_row + r, h));
        for (std::size_t j = 0; j < dv; ++j) {
          e.out[base + static_cast<std::size_t>(r) * width + static_cast<std::size_t>(h) * dv + j] =
              static_cast<float>(out[j]);
        }
      }
      for (int r = 0; r < s.rows; ++r) {
        const std::size_t at = base + static_cast<std::size_t>(r) * width + static_cast<std::size_t>(h) * dv;
        std::fill_n(e.out_bounds.begin() + static_cast<std::ptrdiff_t>(at), dv,
                    t.delta * plain.largest_read() + 1e-30);
      }
      const double top = plain.largest_ever();
      for (double v : plain.matrix()) {
        e.matrices.back().push_back(static_cast<float>(v));
        e.matrix_bounds.back().push_back(t.delta * top + 1e-30);
      }
    }
  }
  return e;
}

void check_delta_values(Backend& b, const DeltaCase& c, const Tolerance& t, const std::string& what) {
  const DeltaExpected want = expected(c, t);
  const Result got = run(b, c);
  expect_within(got.out, want.out, want.out_bounds, what + ", output");
  for (std::size_t i = 0; i < c.segments.size(); ++i) {
    expect_within(std::span(got.states[i]).first(want.matrices[i].size()), want.matrices[i],
                  want.matrix_bounds[i], what + ", matrix");
  }
}

TEST_P(OpSuite, DeltaRule) {
  Random rng(seed() + 51);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    const DeltaCase c(rng);
    SCOPED_TRACE(c.name());
    check_delta_values(*bench_.reference, c, tolerance(), "reference against the plain recurrence");
    check_delta_values(*bench_.subject, c, tolerance(), "against the plain recurrence");
    check_invariance(bench_, rng, c);
  }
}

// Complaint 4: what earlier chunks left in the slots of a state must not matter once their rows are folded
// in.
TEST_P(OpSuite, Complaint4_DeltaRuleIgnoresStaleSlots) {
  Random rng(seed() + 52);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    DeltaCase c(rng);
    if (chance(rng, 0.5)) c.segments[0].position = 32 * static_cast<std::int64_t>(rng.below(4));
    c.segments[0].state = random_delta_state(rng, c.shape, c.segments[0].position);
    const Result want = run(*bench_.subject, c);
    for (Segment& s : c.segments) fill_stale_slots(c.shape, s.state[0], s.position, poison(i % 2));
    expect_same(run(*bench_.subject, c), want, c.name());
  }
}

// A state is a plain block of floats: taken at any row, copied elsewhere and gone on with, it gives the same
// bits.
TEST_P(OpSuite, Complaint1_DeltaStateIsACopyableBlock) {
  Random rng(seed() + 53);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    DeltaCase c(rng);
    c.segments.resize(1);
    Segment& s = c.segments[0];
    const Result want = run(*bench_.subject, c);
    const int cut = random_between(rng, 0, s.rows);
    Matrix out = c.out, moved(1, s.state.cols(), 0, random_between(rng, 1, 15));
    Segment first = s, second = s;
    c.call(*bench_.subject, out, {{s.first_row, cut, s.position, {}}}, {&first});
    std::copy_n(first.state[0], s.state.cols(), moved[0]);
    second.state = moved;
    c.call(*bench_.subject, out, {{s.first_row + cut, s.rows - cut, s.position + cut, {}}}, {&second});
    const auto rows = static_cast<std::size_t>(s.rows) * static_cast<std::size_t>(out.cols());
    expect_same_bits(out.dense(0, s.rows), std::span(want.out).first(rows), c.name());
    expect_same_bits(c.visible_state(*bench_.subject, second), want.states[0], c.name());
  }
}

// Positions past 32 bits, and every residue of a chunk.
TEST_P(OpSuite, DeltaRuleAtEveryChunkPosition) {
  Random rng(seed() + 54);
  DeltaCase c(rng);
  c.segments.resize(1);
  for (std::int64_t base : {std::int64_t{0}, std::int64_t{1} << 33}) {
    for (int residue = 0; residue < kDeltaChunk; ++residue) {
      Segment& s = c.segments[0];
      s.position = base + residue;
      s.state = random_delta_state(rng, c.shape, s.position);
      DeltaCase one = c;
      one.out = Matrix(s.rows, c.out.cols());
      check_delta_values(*bench_.subject, one, tolerance(), fmt::format("{}", one.name()));
      if (HasFailure()) return;
    }
  }
}

TEST_P(OpSuite, DeltaMatrixOfAnEmptySequenceIsZero) {
  const DeltaShape shape{2, 4, 12, 20};
  const std::vector<float> state(DeltaStateLayout(shape).floats, 0.0F);
  std::vector<float> matrix(4 * 12 * 20, 1.0F);
  bench_.subject->delta_matrix(shape, state.data(), 0, matrix.data());
  for (float v : matrix) EXPECT_EQ(v, 0.0F);
}

TEST_P(OpSuite, RecurrentOpsOfNoRows) {
  Random rng(seed() + 55);
  DeltaCase d(rng);
  ConvCase c(rng);
  Matrix out = d.out, y = c.out;
  d.call(*bench_.subject, out, {}, {});
  c.call(*bench_.subject, y, {}, {});
  Segment s = d.segments[0], t = c.segments[0];
  d.call(*bench_.subject, out, {{0, 0, s.position, {}}}, {&s});
  c.call(*bench_.subject, y, {{0, 0, 0, {}}}, {&t});
  expect_same_bits(s.state.dense(), d.segments[0].state.dense(), "delta state");
  expect_same_bits(t.state.dense(), c.segments[0].state.dense(), "convolution state");
  expect_same_bits(out.dense(), d.out.dense(), "delta output");
  expect_same_bits(y.dense(), c.out.dense(), "convolution output");
}

}  // namespace
}  // namespace ponder::ops::testing
