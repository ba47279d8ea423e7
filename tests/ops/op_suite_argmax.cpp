// masked_argmax: the greedy choice.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/float_types.hpp"
#include "op_suite_tools.hpp"

namespace ponder::ops::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// A head held as f32, with its set of banned ids.
struct Head {
  std::int64_t ids = 0, cols = 0, limit = 0;
  std::vector<float> values;          // [ids][cols]
  std::vector<std::uint64_t> banned;  // may be empty: none

  Head(std::int64_t i, std::int64_t c)
      : ids(i), cols(c), limit(i), values(static_cast<std::size_t>(i * c), 0.0F) {}

  float* row(std::int64_t id) { return values.data() + id * cols; }
  void ban(std::int64_t id) {
    banned.resize(static_cast<std::size_t>((ids + 63) / 64), 0);
    banned[static_cast<std::size_t>(id / 64)] |= std::uint64_t{1} << (id % 64);
  }
  bool allowed(std::int64_t id) const {
    return banned.empty() || ((banned[static_cast<std::size_t>(id / 64)] >> (id % 64)) & 1) == 0;
  }

  // Beyond the words that cover [0, limit) nothing may be read.
  std::vector<std::uint64_t> words() const {
    std::vector<std::uint64_t> out = banned;
    out.resize(std::min(out.size(), static_cast<std::size_t>((limit + 63) / 64)));
    return out;
  }

  WeightPtr make(Backend& b, WeightType type = WeightType::f32) const {
    const WeightData data{.dtype = DType::f32,
                          .rows = ids,
                          .cols = cols,
                          .data = reinterpret_cast<const std::byte*>(values.data()),
                          .row_scale = nullptr,
                          .owner = {}};
    return b.make_weight(data, type);
  }

  std::vector<std::int32_t> choose(Backend& b, const Weight& w, ConstRows x, int rows) const {
    std::vector<std::int32_t> out(static_cast<std::size_t>(rows), -77);
    const std::vector<std::uint64_t> mask = words();
    b.masked_argmax(x, rows, w, limit, banned.empty() ? nullptr : mask.data(), out.data());
    return out;
  }
  std::vector<std::int32_t> choose(Backend& b, ConstRows x, int rows) const {
    return choose(b, *make(b), x, rows);
  }
};

Head random_head(Random& rng) {
  Head head(chance(rng, 0.5) ? random_between(rng, 1, 70) : random_between(rng, 1, 700), random_dim(rng));
  for (float& v : head.values) v = static_cast<float>(rng.normal());
  if (chance(rng, 0.5)) head.limit = random_between(rng, 1, static_cast<int>(head.ids));
  const double share = rng.uniform();
  if (chance(rng, 0.7)) {
    for (std::int64_t id = 0; id < head.ids; ++id) {
      if (chance(rng, share)) head.ban(id);
    }
  }
  return head;
}

// The choice is allowed, and no other allowed score is larger by more than rounding explains.
void check_choice(const Head& head, const float* x, std::int32_t got, bool rounded, double tolerance) {
  double best = -std::numeric_limits<double>::infinity(), chosen = best, size_of_best = 0;
  bool any = false;
  for (std::int64_t id = 0; id < head.limit; ++id) {
    if (!head.allowed(id)) continue;
    double score = 0, size = 0;
    for (std::int64_t i = 0; i < head.cols; ++i) {
      const float input = rounded ? bf16_to_float(float_to_bf16(x[i])) : x[i];
      const double term =
          static_cast<double>(input) * head.values[static_cast<std::size_t>(id * head.cols + i)];
      score += term;
      size += std::fabs(term);
    }
    any = true;
    if (id == got) chosen = score;
    if (score > best) best = score;
    size_of_best = std::max(size_of_best, size);
  }
  if (!any) {
    EXPECT_EQ(got, -1);
    return;
  }
  ASSERT_TRUE(got >= 0 && got < head.limit && head.allowed(got)) << "chose " << got << " of " << head.limit;
  EXPECT_GE(chosen, best - 2 * tolerance * size_of_best) << "chose " << got;
}

TEST_P(OpSuite, ArgmaxIsTheLargestAllowedScore) {
  for (ActivationType activations : GetParam().activations) {
    const Bench bench = make_bench(activations);
    Random rng(seed() + 20);
    for (int i = 0; i < trials() && !HasFailure(); ++i) {
      const Head head = random_head(rng);
      const int rows = random_between(rng, 1, 20);
      const Matrix x = Matrix::normal(rng, rows, head.cols);
      const WeightPtr w = head.make(*bench.subject);
      const std::vector<std::int32_t> got = head.choose(*bench.subject, *w, x.view(), rows);
      SCOPED_TRACE(
          fmt::format("argmax of {} ids, limit {}, in {}, rows {}", head.ids, head.limit, head.cols, rows));
      for (int r = 0; r < rows; ++r) {
        check_choice(head, x[r], got[static_cast<std::size_t>(r)], activations == ActivationType::bf16,
                     tolerance().sum);
        const std::vector<std::int32_t> alone = head.choose(*bench.subject, *w, x.view(r), 1);
        EXPECT_EQ(alone[0], got[static_cast<std::size_t>(r)]) << "row " << r << " alone";
      }
      for (const auto& twin : bench.twins) EXPECT_EQ(head.choose(*twin, x.view(), rows), got) << "twin";
      const int keep = random_between(rng, 0, rows - 1);
      Matrix ruined = x;
      for (int r = 0; r < rows; ++r) {
        if (r != keep) ruined.fill_row(r, poison(r));
      }
      const auto among = head.choose(*bench.subject, *w, std::as_const(ruined).view(), rows);
      EXPECT_EQ(among[static_cast<std::size_t>(keep)], got[static_cast<std::size_t>(keep)])
          << "among ruined rows";
    }
  }
}

// Narrow weights: the choice is the largest of the logits that `linear` gives, to the last bit.
TEST_P(OpSuite, ArgmaxAgreesWithLinear) {
  for (ActivationType activations : GetParam().activations) {
    const Bench bench = make_bench(activations);
    Random rng(seed() + 21);
    for (int i = 0; i < trials() && !HasFailure(); ++i) {
      const Head head = random_head(rng);
      constexpr WeightType narrow[] = {WeightType::bf16, WeightType::f16, WeightType::q8, WeightType::q4,
                                       WeightType::q4tp};
      const WeightPtr w = head.make(*bench.subject, narrow[i % 5]);
      const int rows = random_between(rng, 1, 20);
      const Matrix x = Matrix::normal(rng, rows, head.cols);
      Matrix logits(rows, head.ids);
      const LinearOut out{.weight = w.get(), .bias = nullptr, .y = logits.view(), .accumulate = false};
      bench.subject->linear({&out, 1}, x.view(), rows);
      const std::vector<std::int32_t> got = head.choose(*bench.subject, *w, x.view(), rows);
      for (int r = 0; r < rows; ++r) {
        std::int32_t want = -1;
        for (std::int32_t id = 0; id < head.limit; ++id) {
          if (head.allowed(id) && (want < 0 || logits[r][id] > logits[r][want])) want = id;
        }
        EXPECT_EQ(got[static_cast<std::size_t>(r)], want) << "row " << r << " of " << head.ids << " ids";
      }
    }
  }
}

// Equal rows give equal scores, wherever in a block or task they fall.
TEST_P(OpSuite, Complaint55_ArgmaxTieGoesToTheLowestAllowedId) {
  Random rng(seed() + 22);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    Head head(random_between(rng, 2, 700), random_dim(rng));
    for (float& v : head.values) v = static_cast<float>(rng.normal());
    const Matrix x = Matrix::normal(rng, 3, head.cols);
    std::vector<std::int64_t> tied;
    for (int n = random_between(rng, 2, 6); n > 0; --n)
      tied.push_back(random_between(rng, 0, static_cast<int>(head.ids) - 1));
    std::sort(tied.begin(), tied.end());
    tied.erase(std::unique(tied.begin(), tied.end()), tied.end());
    for (std::int64_t id : tied) {
      for (std::int64_t c = 0; c < head.cols; ++c) head.row(id)[c] = 50.0F * x[1][c];
    }
    const std::string what = fmt::format("{} ids, first of the tied {}", head.ids, tied.front());
    EXPECT_EQ(head.choose(*bench_.subject, x.view(1), 1)[0], tied.front()) << what;
    head.ban(tied.front());
    if (tied.size() < 2) continue;
    EXPECT_EQ(head.choose(*bench_.subject, x.view(1), 1)[0], tied[1]) << what;
  }
}

// One input feature, so that a score is exactly one weight.
std::int32_t choice_of(Backend& b, const std::vector<float>& scores) {
  Head head(static_cast<std::int64_t>(scores.size()), 1);
  head.values = scores;
  Matrix x(1, 1);
  x[0][0] = 1.0F;
  return head.choose(b, std::as_const(x).view(), 1)[0];
}

TEST_P(OpSuite, ArgmaxOfSpecialValues) {
  Backend& b = *bench_.subject;
  EXPECT_EQ(choice_of(b, {kNan, -5.0F, kNan, -4.0F}), 3);
  EXPECT_EQ(choice_of(b, {2.0F, kNan}), 0);
  EXPECT_EQ(choice_of(b, {kNan, kNan, kNan}), -1);
  EXPECT_EQ(choice_of(b, {kNan, -kInf, -kInf}), 1);
  EXPECT_EQ(choice_of(b, {1.0F, kInf, kInf}), 1);
  EXPECT_EQ(choice_of(b, {-0.0F, 0.0F, -1.0F}), 0);
  EXPECT_EQ(choice_of(b, {-1.0F, 0.0F, -0.0F}), 1);
  EXPECT_EQ(choice_of(b, {-kInf, -3e38F}), 1);
  // The same far from the start, in any lane of any block.
  for (std::size_t at : {5U, 63U, 64U, 130U, 300U}) {
    std::vector<float> scores(301, kNan);
    scores[at] = -kInf;
    EXPECT_EQ(choice_of(b, scores), static_cast<std::int32_t>(at));
    scores.assign(301, -1.0F);
    scores[at] = kNan;
    EXPECT_EQ(choice_of(b, scores), at == 0 ? 1 : 0);
    scores[at] = -0.5F;
    EXPECT_EQ(choice_of(b, scores), static_cast<std::int32_t>(at));
  }
}

TEST_P(OpSuite, ArgmaxWithoutCandidates) {
  Random rng(seed() + 23);
  Head head(130, 24);
  for (float& v : head.values) v = static_cast<float>(rng.normal());
  const Matrix x = Matrix::normal(rng, 2, 24);
  for (std::int64_t id = 0; id < 130; ++id) head.ban(id);
  EXPECT_EQ(head.choose(*bench_.subject, x.view(), 2), (std::vector<std::int32_t>{-1, -1}));
  head.limit = 0;
  EXPECT_EQ(head.choose(*bench_.subject, x.view(), 2), (std::vector<std::int32_t>{-1, -1}));
  EXPECT_TRUE(head.choose(*bench_.subject, {}, 0).empty());

  // A row of NaN among ordinary ones.
  head.banned.clear();
  head.limit = 130;
  Matrix some = x;
  some.fill_row(0, kNan);
  const auto got = head.choose(*bench_.subject, std::as_const(some).view(), 2);
  EXPECT_EQ(got[0], -1);
  EXPECT_EQ(got[1], head.choose(*bench_.subject, x.view(1), 1)[0]);
}

}  // namespace
}  // namespace ponder::ops::testing
