#include "attention_case.hpp"

#include <cmath>
#include <limits>

namespace ponder::ops::testing {
namespace {

struct Row {
  const float* key;
  const float* value;
};

void expect_head(const AttentionCase& c, const Tolerance& t, const float* q, const std::vector<Row>& seen,
                 Expected& out) {
  std::vector<double> weight;
  double total = 0, largest_sum = 0, largest_value = 0, top = -std::numeric_limits<double>::infinity();
  for (const Row& row : seen) {
    double score = 0, sum = 0;
    for (int i = 0; i < c.kv.key_dim; ++i) {
      const double term = static_cast<double>(c.scale) * q[i] * row.key[i];
      score += term;
      sum += std::fabs(term);
    }
    for (int i = 0; i < c.kv.value_dim; ++i) {
      largest_value = std::max(largest_value, std::fabs(static_cast<double>(row.value[i])));
    }
    largest_sum = std::max(largest_sum, sum);
    top = std::max(top, score);
    weight.push_back(score);
  }
  for (double& w : weight) total += w = std::exp(w - top);
  for (int i = 0; i < c.kv.value_dim; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < seen.size(); ++j) sum += weight[j] / total * seen[j].value[i];
    out.values.push_back(static_cast<float>(sum));
    out.bounds.push_back(t.softmax * (1 + largest_sum) * largest_value);
  }
}

}  // namespace

Expected expected(const AttentionCase& c, const Tolerance& t) {
  Expected out;
  for (const AttentionRows& s : c.segments) {
    for (int r = 0; r < s.rows; ++r) {
      for (int h = 0; h < c.heads; ++h) {
        const int kv_head = h / (c.heads / c.kv.heads);
        std::vector<Row> seen;
        auto add = [&](const float* keys, const float* values) {
          seen.push_back({keys + kv_head * c.kv.key_dim, values + kv_head * c.kv.value_dim});
        };
        for (std::int64_t p = 0; p < s.cache.positions(); ++p) {
          if (s.sees(r, p)) add(s.cache.keys[p], s.cache.values[p]);
        }
        for (int o = 0; o < s.own_rows; ++o) add(s.own_keys[o], s.own_values[o]);
        expect_head(c, t, c.q[s.first_row + r] + h * c.q_head_stride, seen, out);
      }
    }
  }
  return out;
}

// ---- random cases ----------------------------------------------------------------------------------------

AttentionRows random_segment(Random& rng, const KvShape& kv, Kind kind, int rows, int before_most,
                             int own_most) {
  AttentionRows s;
  s.rows = rows;
  const int before = chance(rng, 0.2) ? 0 : random_between(rng, 0, before_most);
  if (kind == Kind::mask_block || (kind == Kind::windowed && chance(rng, 0.5))) {
    s.visible_step = 0;
    s.visible_end = before;
    s.own_rows = chance(rng, 0.2) ? 0 : random_between(rng, 1, own_most);
    s.own_keys = Matrix::normal(rng, s.own_rows, static_cast<std::int64_t>(kv.heads) * kv.key_dim);
    s.own_values = Matrix::normal(rng, s.own_rows, static_cast<std::int64_t>(kv.heads) * kv.value_dim);
  } else {
    s.visible_end = before + 1;
  }
  if (kind == Kind::windowed) {
    s.window = random_between(rng, 1, 150);
    s.sinks = chance(rng, 0.3) ? 0 : random_between(rng, 1, 90);
  }
  const std::int64_t last = s.visible_step == 1 ? before + rows : before;
  s.cache = Cache(rng, kv, static_cast<int>(last) + random_between(rng, 0, 70));
  return s;
}

AttentionCase random_case(Random& rng, Kind kind) {
  AttentionCase c;
  c.kv = {random_between(rng, 1, 3), random_dim(rng, 128), 0};
  c.kv.value_dim = chance(rng, 0.6) ? c.kv.key_dim : random_dim(rng, 128);
  c.heads = c.kv.heads * random_between(rng, 1, 4);
  c.q_head_stride =
      c.kv.key_dim * (chance(rng, 0.4) ? 2 : 1) + (chance(rng, 0.7) ? 0 : random_between(rng, 1, 9));
  c.scale = static_cast<float>(1.0 / std::sqrt(c.kv.key_dim));
  const int count = random_between(rng, 1, 4);
  int rows = 0;
  for (int i = 0; i < count; ++i) {
    c.segments.push_back(random_segment(rng, c.kv, kind, chance(rng, 0.5) ? 1 : random_between(rng, 1, 30)));
    c.segments.back().first_row = rows;
    rows += c.segments.back().rows;
  }
  c.q = Matrix::normal(rng, rows, (c.heads - 1) * c.q_head_stride + c.kv.key_dim,
                       chance(rng, 0.2) ? 20.0 : 1.0);
  c.out = Matrix::scattered(rng, rows, static_cast<std::int64_t>(c.heads) * c.kv.value_dim);
  return c;
}

namespace {

// Everything that row `keep` of segment `at` does not see, and every other row's query, ruined.
AttentionCase ruined(const AttentionCase& c, std::size_t at, int keep) {
  AttentionCase out = c;
  for (std::size_t i = 0; i < c.segments.size(); ++i) {
    AttentionRows& s = out.segments[i];
    for (int r = 0; r < s.rows; ++r) {
      if (i != at || r != keep) out.q.fill_row(s.first_row + r, poison(r));
    }
    for (std::int64_t p = 0; p < s.cache.positions(); ++p) {
      if (i == at && s.sees(keep, p)) continue;
      s.cache.keys.fill_row(p, poison(p));
      s.cache.values.fill_row(p, poison(p + 1));
    }
    for (int o = 0; i != at && o < s.own_rows; ++o) {
      s.own_keys.fill_row(o, poison(o));
      s.own_values.fill_row(o, poison(o + 1));
    }
  }
  return out;
}

}  // namespace

void check_attention(const Bench& bench, const Tolerance& tolerance, Random& rng, const AttentionCase& c) {
  SCOPED_TRACE(c.name());
  const Expected want = expected(c, tolerance);
  expect_within(c.run(*bench.reference), want.values, want.bounds, "the reference against the definition");
  const std::vector<float> got = c.run(*bench.subject);
  expect_within(got, want.values, want.bounds, "against the definition");
  for (const auto& twin : bench.twins) expect_same_bits(c.run(*twin), got, "twin");
  for (int group : {1, 3, 1000}) expect_same_bits(c.run(*bench.subject, group), got, "in parts");

  const std::size_t at = rng.below(c.segments.size());
  const AttentionRows& s = c.segments[at];
  const int keep = random_between(rng, 0, s.rows - 1);
  const std::vector<float> among = ruined(c, at, keep).run(*bench.subject);
  const auto width = static_cast<std::size_t>(c.out.cols());
  const std::size_t from = static_cast<std::size_t>(s.first_row + keep) * width;
  expect_same_bits(std::span(among).subspan(from, width), std::span(got).subspan(from, width),
                   fmt::format("row {} of segment {} among ruined rows", keep, at));
}

}  // namespace ponder::ops::testing
