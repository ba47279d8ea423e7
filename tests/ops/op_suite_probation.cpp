// What drafting asks of a backend: rows on probation in the convolution and the delta rule, and attention
// with several value heads a key head over pages of which some are not there.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/aligned_buffer.hpp"
#include "base/float_types.hpp"
#include "delta_oracle.hpp"
#include "op_suite_tools.hpp"

namespace ponder::ops::testing {
namespace {

// ---- delta rule ------------------------------------------------------------------------------------------

// One sequence: rows before, rows on probation of which some are accepted, rows behind.
struct Trial {
  int before = 0, held = 0, accepted = 0, behind = 0;
  bool hold = true;           // else the accepted rows are ordinary ones, in the same calls
  std::int64_t position = 0;  // of the first row; a multiple of a chunk
  int first_row = 0;          // of all its rows in the inputs

  int rows() const { return before + held + behind; }
};

struct ProbationCase {
  DeltaShape shape;
  Matrix qkv, a, b_gate;
  std::vector<float> rate, dt_bias;
  std::vector<Trial> trials;

  explicit ProbationCase(Random& rng) {
    shape.key_heads = random_between(rng, 1, 3);
    shape.value_heads = shape.key_heads * random_between(rng, 1, 4);
    shape.key_dim = random_dim(rng, 96);
    shape.value_dim = chance(rng, 0.5) ? shape.key_dim : random_dim(rng, 96);
    for (int h = 0; h < shape.value_heads; ++h) {
      rate.push_back(static_cast<float>(std::exp(rng.uniform(-4, 1))));
      dt_bias.push_back(static_cast<float>(rng.normal()));
    }
  }

  void add(Trial t) {
    t.first_row = trials.empty() ? 0 : trials.back().first_row + trials.back().rows();
    trials.push_back(t);
  }
  void fill(Random& rng) {
    const int rows = trials.back().first_row + trials.back().rows();
    qkv = Matrix::normal(rng, rows, 2 * key_cols() + value_cols());
    a = Matrix::normal(rng, rows, shape.value_heads, 2.0);
    b_gate = Matrix::normal(rng, rows, shape.value_heads, 2.0);
    for (int r = 0; r < rows; ++r) {  // gates at their ends
      if (chance(rng, 0.05)) a[r][0] = chance(rng, 0.5) ? 60.0F : -60.0F;
      if (chance(rng, 0.05)) b_gate[r][0] = chance(rng, 0.5) ? 60.0F : -60.0F;
    }
  }

  std::int64_t key_cols() const { return static_cast<std::int64_t>(shape.key_heads) * shape.key_dim; }
  std::int64_t value_cols() const { return static_cast<std::int64_t>(shape.value_heads) * shape.value_dim; }

  std::string name() const {
    std::string text = fmt::format("delta heads {}/{} dims {}/{}:", shape.key_heads, shape.value_heads,
                                   shape.key_dim, shape.value_dim);
    for (const Trial& t : trials) {
      text += fmt::format(" {}+{}/{}+{}{}", t.before, t.accepted, t.held, t.behind, t.hold ? "" : " plain");
    }
    return text;
  }

  void call(Backend& b, Matrix& out, const std::vector<DeltaSegment>& segments) const {
    b.delta_rule(
        {shape, qkv.view(), a.view(), b_gate.view(), rate.data(), dt_bias.data(), out.view(), segments});
  }
};

// All that a later row may read of a state behind `position` rows.
std::vector<float> visible(Backend& b, const DeltaShape& shape, const float* state, std::int64_t position) {
  const DeltaStateLayout at(shape);
  std::vector<float> out(at.open.keys);
  b.delta_matrix(shape, state, position, out.data());
  const std::vector<float> open = open_chunk(shape, state, position);
  out.insert(out.end(), open.begin(), open.end());
  out.insert(out.end(), state, state + at.open.keys);  // S itself
  for (int h = 0; h < shape.value_heads; ++h) {
    const float* fades = state + at.open.fade + static_cast<std::ptrdiff_t>(h) * kDeltaChunk;
    out.insert(out.end(), fades, fades + position % kDeltaChunk);
  }
  return out;
}

struct ProbationResult {
  std::vector<std::vector<float>> before, decided, behind;  // visible states of each trial
  Matrix out;
};

// With `probation`, trials that hold do; without, everything is an ordinary row and rejected rows never run.
ProbationResult run(Backend& b, const ProbationCase& c, bool probation, Random& rng) {
  const DeltaStateLayout layout(c.shape);
  const auto floats = static_cast<std::int64_t>(layout.floats);
  ProbationResult result;
  result.out = Matrix(c.qkv.rows(), c.value_cols(), 3, 5);
  std::vector<Matrix> states;
  for (std::size_t i = 0; i < c.trials.size(); ++i) {
    states.emplace_back(1, floats, 0, random_between(rng, 0, 15));
    std::fill_n(states.back()[0], floats, 0.0F);
  }
  const auto look = [&](std::vector<std::vector<float>>& to, auto&& rows_of) {
    for (std::size_t i = 0; i < c.trials.size(); ++i) {
      states[i].expect_guards(c.name());
      to.push_back(visible(b, c.shape, states[i][0], c.trials[i].position + rows_of(c.trials[i])));
    }
  };
  std::vector<DeltaSegment> list;
  for (std::size_t i = 0; i < c.trials.size(); ++i) {
    const Trial& t = c.trials[i];
    list.push_back({t.first_row, t.before, t.position, states[i][0]});
  }
  c.call(b, result.out, list);
  look(result.before, [](const Trial& t) { return t.before; });
  for (std::size_t i = 0; i < c.trials.size(); ++i) {
    const Trial& t = c.trials[i];
    // What earlier trials left in the second set of slots means nothing.
    std::fill(states[i][0] + layout.open.end, states[i][0] + layout.held.end,
              poison(static_cast<std::int64_t>(i)));
    const bool hold = probation && t.hold;
    list[i] = {t.first_row + t.before, hold ? t.held : t.accepted, t.position + t.before, states[i][0], hold};
  }
  c.call(b, result.out, list);
  for (std::size_t i = 0; i < c.trials.size(); ++i) {
    const Trial& t = c.trials[i];
    if (list[i].hold) b.delta_settle(c.shape, states[i][0], t.position + t.before, t.accepted);
  }
  look(result.decided, [](const Trial& t) { return t.before + t.accepted; });
  for (std::size_t i = 0; i < c.trials.size(); ++i) {
    const Trial& t = c.trials[i];
    list[i] = {t.first_row + t.before + t.held, t.behind, t.position + t.before + t.accepted, states[i][0]};
  }
  c.call(b, result.out, list);
  look(result.behind, [](const Trial& t) { return t.before + t.accepted + t.behind; });
  result.out.expect_guards(c.name());
  return result;
}

void expect_same_trials(const ProbationCase& c, const ProbationResult& got, const ProbationResult& want,
                        const std::string& what) {
  for (std::size_t i = 0; i < c.trials.size(); ++i) {
    const Trial& t = c.trials[i];
    const std::string where = fmt::format("{}, trial {}", what, i);
    expect_same_bits(got.decided[i], want.decided[i], where + ", settled state");
    expect_same_bits(got.behind[i], want.behind[i], where + ", state behind");
    expect_same_bits(got.out.dense(t.first_row, t.before + t.accepted),
                     want.out.dense(t.first_row, t.before + t.accepted), where + ", accepted rows");
    expect_same_bits(got.out.dense(t.first_row + t.before + t.held, t.behind),
                     want.out.dense(t.first_row + t.before + t.held, t.behind), where + ", rows behind");
    if (t.accepted == 0) expect_same_bits(got.decided[i], got.before[i], where + ", all refused");
  }
}

// Outputs of all rows that count, and of the rejected ones, against the plain recurrence.
void expect_values(const ProbationCase& c, const ProbationResult& got, const Tolerance& tolerance,
                   const std::string& what) {
  const std::vector<float> zeros(DeltaStateLayout(c.shape).floats, 0.0F);
  for (const Trial& t : c.trials) {
    for (int h = 0; h < c.shape.value_heads; ++h) {
      PlainDelta plain(c.shape, zeros.data(), 0, h);
      std::vector<float> want, seen;
      const auto step = [&](PlainDelta& recurrence, int r, bool look) {
        const std::int64_t key_head = h / c.shape.rep();
        const DeltaRow row{
            c.qkv[r] + key_head * c.shape.key_dim, c.qkv[r] + c.key_cols() + key_head * c.shape.key_dim,
            c.qkv[r] + 2 * c.key_cols() + static_cast<std::int64_t>(h) * c.shape.value_dim,
            log_decay(c.rate[static_cast<std::size_t>(h)], c.a[r][h], c.dt_bias[static_cast<std::size_t>(h)]),
            beta_of(c.b_gate[r][h])};
        const std::vector<double> out = recurrence.step(row);
        if (!look) return;
        want.insert(want.end(), out.begin(), out.end());
        const float* at = got.out[r] + static_cast<std::ptrdiff_t>(h) * c.shape.value_dim;
        seen.insert(seen.end(), at, at + c.shape.value_dim);
      };
      int r = t.first_row;
      for (; r < t.first_row + t.before + t.accepted; ++r) step(plain, r, true);
      PlainDelta refused = plain;
      for (; r < t.first_row + t.before + t.held; ++r) step(refused, r, t.hold);
      for (; r < t.first_row + t.rows(); ++r) step(plain, r, true);
      const double size = std::max(plain.largest_read(), refused.largest_read());
      expect_within(seen, want, std::vector<double>(want.size(), tolerance.delta * size + 1e-30), what);
    }
  }
}

void check_probation(const Bench& bench, const Tolerance& tolerance, Random& rng, const ProbationCase& c) {
  SCOPED_TRACE(c.name());
  const ProbationResult want = run(*bench.subject, c, false, rng);
  const ProbationResult got = run(*bench.subject, c, true, rng);
  expect_same_trials(c, got, want, "against ordinary rows");
  expect_values(c, got, tolerance, "against the plain recurrence");
  for (const auto& twin : bench.twins) {
    const ProbationResult other = run(*twin, c, true, rng);
    expect_same_trials(c, other, got, "twin");
    expect_same_bits(other.out.dense(), got.out.dense(), "twin, refused rows too");
  }
  const ProbationResult reference = run(*bench.reference, c, true, rng);
  expect_same_trials(c, reference, run(*bench.reference, c, false, rng), "reference");
  expect_values(c, reference, tolerance, "reference against the plain recurrence");
}

TEST_P(OpSuite, Complaint10_DeltaRowsOnProbation) {
  Random rng(seed() + 70);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    ProbationCase c(rng);
    for (int n = random_between(rng, 1, 4); n > 0; --n) {
      Trial t;
      t.before = random_between(rng, 0, 70);
      t.held = random_between(rng, 1, kHeldRows);
      t.accepted = random_between(rng, 0, t.held);
      t.behind = random_between(rng, 0, 40);
      t.hold = chance(rng, 0.8);
      t.position = chance(rng, 0.2) ? std::int64_t{1} << 33 : 0;
      c.add(t);
    }
    c.fill(rng);
    check_probation(bench_, tolerance(), rng, c);
  }
}

// Every slot of a chunk, every held and accepted count, all in one call.
TEST_P(OpSuite, Complaint10_DeltaRowsOnProbationAtEverySlot) {
  Random rng(seed() + 71);
  for (int before = 0; before <= kDeltaChunk && !HasFailure(); ++before) {
    ProbationCase c(rng);
    c.shape = {1, 2, 12, 20};
    c.rate.resize(2, 0.5F);
    c.dt_bias.resize(2, 0.1F);
    for (int held = 1; held <= kHeldRows; ++held) {
      for (int accepted = 0; accepted <= held; ++accepted) c.add({before, held, accepted, 3});
    }
    c.fill(rng);
    check_probation(bench_, tolerance(), rng, c);
  }
}

// ---- causal convolution ----------------------------------------------------------------------------------

struct ConvTrial {
  int rows, accepted;
  bool hold;
};

TEST_P(OpSuite, Complaint10_ConvolutionRowsOnProbation) {
  Random rng(seed() + 72);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    const int kernel = random_between(rng, 2, 5), behind = random_between(rng, 1, 9);
    const int channels = chance(rng, 0.8) ? random_dim(rng) : 2100;
    const std::int64_t past = kernel - 1;
    std::vector<ConvTrial> list;
    int rows = 0;
    for (int n = random_between(rng, 1, 4); n > 0; --n) {
      const int held = random_between(rng, 1, kHeldRows);
      list.push_back({held, random_between(rng, 0, held), chance(rng, 0.8)});
      rows += held + behind;
    }
    const Matrix x = Matrix::normal(rng, rows, channels);
    Matrix weight(1, static_cast<std::int64_t>(kernel) * channels);
    weight.fill_normal(rng);
    std::vector<Matrix> starts;
    for (std::size_t s = 0; s < list.size(); ++s) {
      starts.emplace_back(past + kHeldRows, channels, 0, random_between(rng, 0, 9));
      for (std::int64_t r = 0; r < past; ++r) {
        for (int c = 0; c < channels; ++c) starts.back()[r][c] = static_cast<float>(rng.normal());
      }
    }
    SCOPED_TRACE(fmt::format("kernel {} channels {} segments {}", kernel, channels, list.size()));

    // Outputs of the rows that count and of those behind, and the states in the end.
    const auto through = [&](Backend& b, bool probation) {
      std::vector<Matrix> states = starts;
      Matrix y = Matrix::scattered(rng, rows, channels);
      std::vector<ConvSegment> segments;
      int first = 0;
      for (std::size_t s = 0; s < list.size(); ++s) {
        const bool hold = probation && list[s].hold;
        segments.push_back({first, hold ? list[s].rows : list[s].accepted, states[s][0], hold});
        first += list[s].rows + behind;
      }
      b.causal_conv({x.view(), y.view(), weight[0], channels, kernel, segments});
      for (std::size_t s = 0; s < list.size(); ++s) {
        if (!segments[s].hold) continue;
        expect_same_bits(states[s].dense(0, past), starts[s].dense(0, past), "inputs before stay");
        expect_same_bits(states[s].dense(past, list[s].rows), x.dense(segments[s].first_row, list[s].rows),
                         "inputs of the rows follow");
        const std::int64_t used = past + list[s].rows;
        expect_same_bits(states[s].dense(used, past + kHeldRows - used),
                         starts[s].dense(used, past + kHeldRows - used), "and nothing behind them changes");
        float* const inputs = states[s][0];
        std::copy(inputs + list[s].accepted * channels, inputs + (list[s].accepted + past) * channels,
                  inputs);
      }
      for (std::size_t s = 0; s < list.size(); ++s) {
        segments[s] = {segments[s].first_row + list[s].rows, behind, states[s][0]};
      }
      b.causal_conv({x.view(), y.view(), weight[0], channels, kernel, segments});
      y.expect_guards("output");
      std::vector<float> out;
      const auto take = [&](const std::vector<float>& more) {
        out.insert(out.end(), more.begin(), more.end());
      };
      for (std::size_t s = 0; s < list.size(); ++s) {
        states[s].expect_guards("state");
        take(y.dense(segments[s].first_row - list[s].rows, list[s].accepted));
        take(y.dense(segments[s].first_row, behind));
        take(states[s].dense(0, past));
      }
      return out;
    };
    const std::vector<float> want = through(*bench_.subject, false);
    expect_same_bits(through(*bench_.subject, true), want, "against ordinary rows");
    for (const auto& twin : bench_.twins) expect_same_bits(through(*twin, true), want, "twin");
    expect_same_bits(through(*bench_.reference, true), through(*bench_.reference, false), "reference");
  }
}

// ---- attention as mask rows use it -----------------------------------------------------------------------

float rounded_to(KvType type, float x, float scale) {
  if (type == KvType::bf16) return bf16_to_float(float_to_bf16(x));
  if (type == KvType::q8) return scale == 0.0F ? 0.0F : std::rint(x / scale) * scale;
  return x;
}

// Each `width` floats of a row are a vector of their own, held in groups of 32.
Matrix rounded(const Matrix& m, KvType type, int width) {
  Matrix out = m;
  for (std::int64_t r = 0; r < m.rows(); ++r) {
    for (std::int64_t v = 0; v < m.cols(); v += width) {
      for (std::int64_t g = v; g < v + width; g += 32) {
        const std::int64_t end = std::min<std::int64_t>(v + width, g + 32);
        float top = 0;
        for (std::int64_t i = g; i < end; ++i) top = std::max(top, std::fabs(m[r][i]));
        for (std::int64_t i = g; i < end; ++i) out[r][i] = rounded_to(type, m[r][i], top / 127.0F);
      }
    }
  }
  return out;
}

struct GroupedRows {
  int first_row = 0, rows = 0, own_rows = 0, step = 0;
  std::int64_t end = 0, window = 0, sinks = 0;
  Matrix own_keys, own_values;

  bool sees(int row, std::int64_t position) const {
    const std::int64_t last = end + static_cast<std::int64_t>(row) * step;
    return position < last && (window == 0 || position >= last - window || position < sinks);
  }
};

struct GroupedCase {
  KvShape kv;
  int heads = 0;
  float scale = 1;
  Matrix q, out, keys, values;  // one past, which all segments see parts of
  std::vector<GroupedRows> segments;

  GroupedCase(Random& rng, KvType type) {
    kv = {random_between(rng, 1, 3), random_dim(rng, 96), random_dim(rng, 96), type};
    kv.value_heads = kv.heads * random_between(rng, 2, 4);
    heads = kv.value_heads * (chance(rng, 0.7) ? 1 : 2);
    scale = static_cast<float>(1.0 / std::sqrt(kv.key_dim));
    const int past = chance(rng, 0.3) ? 1300 : random_between(rng, 1, 400);
    keys = Matrix::normal(rng, past, static_cast<std::int64_t>(kv.heads) * kv.key_dim);
    values = Matrix::normal(rng, past, static_cast<std::int64_t>(kv.value_heads) * kv.value_dim);
    int rows = 0;
    for (int n = random_between(rng, 1, 4); n > 0; --n) {
      GroupedRows s;
      s.first_row = rows;
      s.rows = random_between(rng, 1, 7);
      s.step = chance(rng, 0.7) ? 0 : 1;
      s.end = std::max(0, chance(rng, 0.5) ? past - s.rows : random_between(rng, 0, past) - s.rows);
      if (chance(rng, 0.8)) {
        s.window = random_between(rng, 1, 200);
        s.sinks = chance(rng, 0.5) ? random_between(rng, 1, 70) : 0;
      }
      s.own_rows = s.step == 0 ? s.rows : 0;
      s.own_keys = Matrix::normal(rng, s.own_rows, static_cast<std::int64_t>(heads) * kv.key_dim);
      s.own_values =
          Matrix::normal(rng, s.own_rows, static_cast<std::int64_t>(kv.value_heads) * kv.value_dim);
      rows += s.rows;
      segments.push_back(s);
    }
    q = Matrix::normal(rng, rows, static_cast<std::int64_t>(heads) * kv.key_dim);
    out = Matrix::scattered(rng, rows, static_cast<std::int64_t>(heads) * kv.value_dim);
  }

  std::string name() const {
    std::string text =
        fmt::format("heads {}/{}/{} dims {}/{} type {} past {}", heads, kv.value_heads, kv.heads, kv.key_dim,
                    kv.value_dim, static_cast<int>(kv.type), keys.rows());
    for (const GroupedRows& s : segments) {
      text += fmt::format("; rows {} end {} step {} window {} sinks {} own {}", s.rows, s.end, s.step,
                          s.window, s.sinks, s.own_rows);
    }
    return text;
  }

  // `missing`: pages that a segment sees nothing of are not there. `alone`: a call for each segment.
  std::vector<float> run(Backend& b, bool missing, bool alone) const {
    const std::size_t bytes = b.kv_page_bytes(kv);
    const auto pages = static_cast<std::size_t>((keys.rows() + kPageRows - 1) / kPageRows);
    std::vector<AlignedBuffer<std::byte>> blocks;
    std::vector<std::byte*> table;
    for (std::size_t p = 0; p < pages; ++p) {
      blocks.emplace_back(bytes + 64);
      table.push_back(blocks.back().data());
    }
    b.kv_append(kv, KvAppend{{table.data(), 64}, 0, 0, static_cast<int>(keys.rows())}, keys.view(),
                values.view());
    std::vector<std::vector<std::byte*>> tables;
    std::vector<AttentionSegment> list;
    for (const GroupedRows& s : segments) {
      std::vector<std::byte*>& own = tables.emplace_back(table);
      for (std::int64_t p = 0; missing && p < static_cast<std::int64_t>(pages); ++p) {
        bool seen = false;
        for (std::int64_t at = p * kPageRows; at < std::min((p + 1) * kPageRows, keys.rows()); ++at) {
          for (int r = 0; r < s.rows; ++r) seen = seen || s.sees(r, at);
        }
        if (!seen) own[static_cast<std::size_t>(p)] = nullptr;
      }
      list.push_back({.first_row = s.first_row,
                      .rows = s.rows,
                      .cache = {own.data(), 64},
                      .visible_end = s.end,
                      .visible_step = s.step,
                      .window = s.window,
                      .sinks = s.sinks,
                      .own_keys = s.own_keys.view(),
                      .own_values = s.own_values.view(),
                      .own_rows = s.own_rows});
    }
    Matrix target = out;
    const auto call = [&](std::span<const AttentionSegment> some) {
      b.attention({.q = q.view(),
                   .q_head_stride = kv.key_dim,
                   .out = target.view(),
                   .heads = heads,
                   .kv = kv,
                   .scale = scale,
                   .segments = some});
    };
    if (alone) {
      for (const AttentionSegment& s : list) call({&s, 1});
    } else {
      call(list);
    }
    target.expect_guards(name());
    return target.dense();
  }

  // The definition in double, with the bound of each value.
  std::pair<std::vector<float>, std::vector<double>> expected(const Tolerance& t) const {
    const Matrix k = rounded(keys, kv.type, kv.key_dim);
    const Matrix v = rounded(values, kv.type, kv.value_width());
    std::vector<float> wanted;
    std::vector<double> bounds;
    for (const GroupedRows& s : segments) {
      for (int r = 0; r < s.rows; ++r) {
        for (std::int64_t h = 0; h < heads; ++h) {
          const float* query = q[s.first_row + r] + h * kv.key_dim;
          const std::int64_t key_at = h / (heads / kv.heads) * kv.key_dim;
          const std::int64_t value_at = h / (heads / kv.value_heads) * kv.value_dim;
          std::vector<std::pair<const float*, const float*>> seen;
          for (std::int64_t p = 0; p < keys.rows(); ++p) {
            if (s.sees(r, p)) seen.emplace_back(k[p] + key_at, v[p] + value_at);
          }
          for (int o = 0; o < s.own_rows; ++o) {
            seen.emplace_back(s.own_keys[o] + h * kv.key_dim, s.own_values[o] + value_at);
          }
          std::vector<double> weights;
          double top = -std::numeric_limits<double>::infinity(), largest = 0, size = 0, total = 0;
          for (const auto& [key, value] : seen) {
            double score = 0, sum = 0;
            for (int i = 0; i < kv.key_dim; ++i) {
              const double term = static_cast<double>(scale) * query[i] * key[i];
              score += term;
              sum += std::fabs(term);
            }
            for (int i = 0; i < kv.value_dim; ++i)
              size = std::max(size, std::fabs(static_cast<double>(value[i])));
            largest = std::max(largest, sum);
            top = std::max(top, score);
            weights.push_back(score);
          }
          for (double& w : weights) total += w = std::exp(w - top);
          for (int i = 0; i < kv.value_dim; ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < seen.size(); ++j) sum += weights[j] / total * seen[j].second[i];
            wanted.push_back(static_cast<float>(sum));
            bounds.push_back(t.softmax * (1 + largest) * size);
          }
        }
      }
    }
    return {wanted, bounds};
  }
};

TEST_P(OpSuite, AttentionOfSeveralValueHeadsAKeyHead) {
  Random rng(seed() + 73);
  for (const KvType type : {KvType::f32, KvType::bf16, KvType::q8}) {
    for (int i = 0; i < std::max(8, trials() / 2) && !HasFailure(); ++i) {
      const GroupedCase c(rng, type);
      SCOPED_TRACE(c.name());
      const auto [want, bounds] = c.expected(tolerance());
      expect_within(c.run(*bench_.reference, false, false), want, bounds, "reference against the definition");
      const std::vector<float> got = c.run(*bench_.subject, false, false);
      expect_within(got, want, bounds, "against the definition");
      expect_same_bits(c.run(*bench_.subject, false, true), got, "segments alone");
      expect_same_bits(c.run(*bench_.subject, true, false), got, "without the pages nobody sees");
      expect_same_bits(c.run(*bench_.subject, true, true), got, "alone without them");
      for (const auto& twin : bench_.twins) expect_same_bits(c.run(*twin, true, false), got, "twin");
    }
  }
}

// Row by row or at once, over rows that were there before, behind pages that are gone: the same bytes.
TEST_P(OpSuite, AppendingSeveralValueHeadsIsExact) {
  Random rng(seed() + 74);
  for (const KvType type : {KvType::f32, KvType::bf16, KvType::q8}) {
    for (int i = 0; i < 6; ++i) {
      const GroupedCase c(rng, type);
      const std::size_t bytes = bench_.subject->kv_page_bytes(c.kv);
      const Matrix keys = Matrix::normal(rng, 2 * kPageRows, c.keys.cols());
      const Matrix values = Matrix::normal(rng, 2 * kPageRows, c.values.cols());
      const Matrix other = Matrix::normal(rng, 2 * kPageRows, c.values.cols());
      AlignedBuffer<std::byte> whole(bytes), pieces(bytes);
      std::byte* a[] = {nullptr, whole.data()};
      std::byte* b[] = {nullptr, pieces.data()};
      bench_.subject->kv_append(c.kv, KvAppend{{a, 0}, kPageRows, kPageRows, kPageRows}, keys.view(),
                                values.view());
      bench_.subject->kv_append(c.kv, KvAppend{{b, 0}, kPageRows + 9, kPageRows, 40}, keys.view(),
                                other.view());
      for (int at = kPageRows; at < 2 * kPageRows;) {
        const int rows = std::min(random_between(rng, 1, 9), 2 * kPageRows - at);
        bench_.subject->kv_append(c.kv, KvAppend{{b, 0}, at, at, rows}, keys.view(), values.view());
        at += rows;
      }
      EXPECT_TRUE(std::equal(whole.begin(), whole.end(), pieces.begin())) << c.name();
      EXPECT_FALSE(std::all_of(whole.begin(), whole.end(), [](std::byte x) { return x == std::byte{0}; }));
    }
  }
}

}  // namespace
}  // namespace ponder::ops::testing
