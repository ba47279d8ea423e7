// The reference backend against results of a float64 model of the whole engine (tests/data/hybrid).
#include <algorithm>
#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/aligned_buffer.hpp"
#include "base/dtype.hpp"
#include "ops/backend.hpp"

namespace ponder::ops {
namespace {

using Json = nlohmann::json;

Json load(const char* name) {
  std::ifstream file(std::string(PONDER_TEST_DATA) + "/hybrid/" + name);
  EXPECT_TRUE(file) << name;
  return Json::parse(file);
}

const Json& cases() {
  static const Json json = load("cases-ops.json");
  return json;
}

// A nested list as a flat array, last index fastest.
void append_flat(const Json& json, std::vector<double>& out) {
  if (json.is_array()) {
    for (const Json& item : json) append_flat(item, out);
  } else {
    out.push_back(json.get<double>());
  }
}

std::vector<double> flat(const Json& json) {
  std::vector<double> out;
  append_flat(json, out);
  return out;
}

std::vector<float> floats(const Json& json) {
  const std::vector<double> values = flat(json);
  return {values.begin(), values.end()};
}

Rows rows_of(std::vector<float>& v, std::int64_t cols) {
  return {v.data(), cols};
}
ConstRows rows_of(const std::vector<float>& v, std::int64_t cols) {
  return {v.data(), cols};
}

void expect_close(const std::vector<float>& got, const Json& want_json, const std::string& what) {
  const std::vector<double> want = flat(want_json);
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 0;
  for (double w : want) largest = std::max(largest, std::fabs(w));
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 1e-5 * std::fabs(want[i]) + 1e-7 * largest) << what << " at " << i;
  }
}

WeightPtr f32_weight(Backend& b, const std::vector<float>& values, std::int64_t rows,
                     WeightType type = WeightType::f32) {
  const WeightData data{.dtype = DType::f32,
                        .rows = rows,
                        .cols = static_cast<std::int64_t>(values.size()) / rows,
                        .data = reinterpret_cast<const std::byte*>(values.data()),
                        .row_scale = nullptr,
                        .owner = {}};
  return b.make_weight(data, type);
}

std::vector<float> table_row(Backend& b, const Weight& w, std::int32_t row) {
  std::vector<float> out(static_cast<std::size_t>(w.cols()));
  b.embed(w, {&row, 1}, rows_of(out, w.cols()));
  return out;
}

class Golden : public ::testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = make_reference_backend();
};

// ---- delta rule ------------------------------------------------------------------------------------------

struct DeltaRun {
  DeltaShape shape;
  std::vector<float> qkv, a, b, out, state;
  std::int64_t position = 0;
  std::int64_t rows = 0;

  // Raw projections that give the case's decays and betas with rate 1 and no bias; the case's S stands at the
  // chunk border `start`.
  DeltaRun(const Json& c, std::int64_t start) : position(start) {
    const int heads = c["shape"]["heads"];
    shape = {heads, heads, c["shape"]["dk"], c["shape"]["dv"]};
    rows = c["shape"]["T"].get<std::int64_t>();
    for (const auto& [q, k, v] : zip(c)) {
      for (const Json* part : {&q, &k, &v}) {
        const std::vector<float> values = floats(*part);
        qkv.insert(qkv.end(), values.begin(), values.end());
      }
    }
    for (double g : flat(c["log_decay"])) a.push_back(static_cast<float>(std::log(std::expm1(-g))));
    for (double beta : flat(c["beta"])) b.push_back(static_cast<float>(std::log(beta / (1 - beta))));
    out.resize(static_cast<std::size_t>(rows * heads * shape.value_dim));
    state.assign(DeltaStateLayout(shape).floats, 0.0F);
    const std::vector<float> matrix = floats(c["state"]);
    std::copy(matrix.begin(), matrix.end(), state.begin());
  }

  struct Triple {
    Json q, k, v;
  };
  static std::vector<Triple> zip(const Json& c) {
    std::vector<Triple> triples;
    for (std::size_t t = 0; t < c["q"].size(); ++t) triples.push_back({c["q"][t], c["k"][t], c["v"][t]});
    return triples;
  }

  void run(Backend& backend, std::int64_t count) {
    const std::vector<float> rate(static_cast<std::size_t>(shape.value_heads), 1.0F), dt(rate.size(), 0.0F);
    const DeltaSegment segment{0, static_cast<int>(count), position, state.data()};
    const std::int64_t width = 2 * shape.key_heads * shape.key_dim + shape.value_heads * shape.value_dim;
    backend.delta_rule({shape,
                        rows_of(std::as_const(qkv), width),
                        rows_of(std::as_const(a), shape.value_heads),
                        rows_of(std::as_const(b), shape.value_heads),
                        rate.data(),
                        dt.data(),
                        rows_of(out, shape.value_heads * shape.value_dim),
                        {&segment, 1}});
  }

  std::vector<float> matrix(Backend& backend, std::int64_t count) const {
    std::vector<float> m(static_cast<std::size_t>(shape.value_heads * shape.key_dim * shape.value_dim));
    backend.delta_matrix(shape, state.data(), position + count, m.data());
    return m;
  }
};

TEST_F(Golden, DeltaRule) {
  for (const Json& c : cases()["delta_rule"]) {
    for (std::int64_t start : {0, 64}) {
      const std::string what = "delta rule " + c["shape"].dump();
      DeltaRun all(c, start);
      all.run(*backend_, all.rows);
      expect_close(all.out, c["out"], what);
      expect_close(all.matrix(*backend_, all.rows), c["state_after"], what + " state");
      DeltaRun two(c, start);
      const std::int64_t few = std::min<std::int64_t>(2, two.rows);
      two.run(*backend_, few);
      expect_close(two.matrix(*backend_, few), c["state_after_two_rows"], what + " state after two rows");
    }
  }
}

// Heads of size one: with k = 0 a state of 1 turns into the decay, with S = 0 a long key writes beta into it.
TEST_F(Golden, DeltaGates) {
  const Json& c = cases()["delta_gates"];
  const std::vector<double> log_decay = flat(c["log_decay"]), beta = flat(c["beta"]);
  const std::vector<float> a = floats(c["a"]), b = floats(c["b"]), dt = floats(c["dt_bias"]);
  std::vector<float> rate;
  for (double x : flat(c["A_log"])) rate.push_back(static_cast<float>(std::exp(x)));
  const auto heads = static_cast<int>(rate.size());
  const DeltaShape shape{heads, heads, 1, 1};
  for (std::size_t r = 0; r < c["a"].size(); ++r) {
    for (bool decay : {true, false}) {
      std::vector<float> qkv(3 * rate.size(), 1.0F), state(DeltaStateLayout(shape).floats, 0.0F);
      std::vector<float> out(rate.size()), matrix(rate.size());
      std::fill_n(qkv.begin() + heads, heads, decay ? 0.0F : 1e4F);
      std::fill_n(state.begin(), heads, decay ? 1.0F : 0.0F);
      const DeltaSegment segment{0, 1, 0, state.data()};
      const std::size_t at = r * rate.size();
      backend_->delta_rule({shape,
                            rows_of(std::as_const(qkv), 3 * heads),
                            {a.data() + at, heads},
                            {b.data() + at, heads},
                            rate.data(),
                            dt.data(),
                            rows_of(out, heads),
                            {&segment, 1}});
      backend_->delta_matrix(shape, state.data(), 1, matrix.data());
      for (std::size_t h = 0; h < rate.size(); ++h) {
        const double want = decay ? std::exp(log_decay[at + h]) : beta[at + h];
        EXPECT_NEAR(matrix[h], want, 1e-5 * want)
            << (decay ? "decay" : "beta") << " row " << r << " head " << h;
      }
    }
  }
}

// ---- the rest --------------------------------------------------------------------------------------------

TEST_F(Golden, CausalConvolution) {
  for (const Json& c : cases()["causal_conv_silu"]) {
    const int kernel = c["kernel"];
    const std::vector<float> x = floats(c["rows"]), by_channel = floats(c["weight"]);
    const auto channels = static_cast<int>(c["weight"].size());
    const auto rows = static_cast<int>(c["rows"].size());
    std::vector<float> weight(by_channel.size());
    for (int j = 0; j < kernel; ++j) {
      for (int ch = 0; ch < channels; ++ch) {
        weight[static_cast<std::size_t>(j * channels + ch)] =
            by_channel[static_cast<std::size_t>(ch * kernel + j)];
      }
    }
    // The data keeps one input more than a row needs.
    std::vector<float> state = floats(c["state_oldest_first"]);
    state.erase(state.begin(), state.begin() + channels);
    std::vector<float> y(x.size());
    const ConvSegment segment{0, rows, state.data()};
    backend_->causal_conv(
        {rows_of(x, channels), rows_of(y, channels), weight.data(), channels, kernel, {&segment, 1}});
    expect_close(y, c["out"], "convolution");
    Json after = c["state_after"];
    after.erase(after.begin());
    expect_close(state, after, "convolution state");
  }
}

TEST_F(Golden, Rotary) {
  for (const Json& c : cases()["rotary"]) {
    const int dim = c["head_dim"], turned = c["rotary_dim"], half = turned / 2;
    const std::vector<std::int64_t> positions = c["positions"];
    const auto rows = static_cast<int>(positions.size());
    const auto heads = static_cast<int>(c["x"][0].size());
    std::vector<float> x = floats(c["x"]), cos(static_cast<std::size_t>(rows * half)), sin(cos.size());
    backend_->rotary_table(positions, turned, c["theta"], rows_of(cos, half), rows_of(sin, half));
    backend_->rotary(rows_of(x, heads * dim), rows, {heads, dim, dim}, half,
                     rows_of(std::as_const(cos), half), rows_of(std::as_const(sin), half));
    expect_close(x, c["out"], "rotary " + std::to_string(turned));
  }
}

TEST_F(Golden, Norms) {
  const Json& c = cases()["norms"];
  const std::vector<float> x = floats(c["x"]), z = floats(c["z"]), weight = floats(c["weight"]);
  std::vector<float> one_plus, y(x.size());
  for (float w : weight) one_plus.push_back(1.0F + w);
  const auto dim = static_cast<int>(weight.size());
  const auto rows = static_cast<int>(c["x"].size());
  const Groups groups{1, dim, dim};
  backend_->rms_norm(rows_of(x, dim), rows_of(y, dim), rows, groups, one_plus.data(), c["eps"]);
  expect_close(y, c["rms_norm_one_plus_w"], "rms_norm");
  backend_->gated_rms_norm(rows_of(x, dim), rows_of(z, dim), rows_of(y, dim), rows, groups, weight.data(),
                           c["eps"]);
  expect_close(y, c["gated_rms_norm_plain_w"], "gated_rms_norm");
}

TEST_F(Golden, Attention) {
  for (const Json& c : cases()["attention"]) {
    const auto rows = static_cast<int>(c["q"].size());
    const auto heads = static_cast<int>(c["q"][0].size());
    const auto kv_heads = static_cast<int>(c["keys"][0].size());
    const auto dim = static_cast<int>(c["q"][0][0].size());
    const KvShape shape{kv_heads, dim, dim};
    const std::vector<float> q = floats(c["q"]), keys = floats(c["keys"]), values = floats(c["values"]);
    AlignedBuffer<std::byte> page(backend_->kv_page_bytes(shape));
    std::byte* const table[] = {page.data()};
    const KvPages cache{table, 0};
    const int before = c["rows_before"];
    backend_->kv_append(shape, KvAppend{cache, 0, 0, before + rows}, rows_of(keys, kv_heads * dim),
                        rows_of(values, kv_heads * dim));
    std::vector<float> out(q.size());
    AttentionSegment segment;
    segment.rows = rows;
    segment.cache = cache;
    segment.visible_end = before + 1;
    backend_->attention({.q = rows_of(q, heads * dim),
                         .q_head_stride = dim,
                         .out = rows_of(out, heads * dim),
                         .heads = heads,
                         .kv = shape,
                         .scale = c["scale"],
                         .segments = {&segment, 1}});
    expect_close(out, c["out"], "attention");
  }
}

TEST_F(Golden, PointerHead) {
  const Json& c = cases()["pointer_head"];
  const auto dim = static_cast<std::int64_t>(c["q.bias"].size());
  auto project = [&](const std::string& name, const std::vector<float>& x) {
    const WeightPtr w = f32_weight(*backend_, floats(c[name + ".weight"]), dim);
    const std::vector<float> bias = floats(c[name + ".bias"]);
    const auto rows = static_cast<std::int64_t>(x.size()) / w->cols();
    std::vector<float> y(static_cast<std::size_t>(rows * dim));
    const LinearOut out{.weight = w.get(), .bias = bias.data(), .y = rows_of(y, dim), .accumulate = false};
    backend_->linear({&out, 1}, rows_of(x, w->cols()), static_cast<int>(rows));
    return y;
  };
  const std::vector<float> keys = project("k", floats(c["options"])),
                           query = project("q", floats(c["decide"]));
  std::vector<double> scores;
  double total = 0;
  for (std::size_t o = 0; o < c["options"].size(); ++o) {
    double score = 0;
    for (std::size_t i = 0; i < query.size(); ++i)
      score += static_cast<double>(keys[o * query.size() + i]) * query[i];
    scores.push_back(std::exp(score / std::sqrt(static_cast<double>(dim)) / c["temperature"].get<double>()));
    total += scores.back();
  }
  std::vector<float> probs;
  for (double s : scores) probs.push_back(static_cast<float>(s / total));
  expect_close(probs, c["probs"], "pointer head");
}

// ---- number formats --------------------------------------------------------------------------------------

TEST_F(Golden, QuantisedRows) {
  const Json numbers = load("cases-numbers.json");
  const Json& c = numbers["fp8_rows"];
  const Json& values = numbers["e4m3_values_of_codes"];
  const WeightPtr w = f32_weight(*backend_, floats(c["weight"]),
                                 static_cast<std::int64_t>(c["weight"].size()), WeightType::f8_e4m3);
  for (std::int32_t r = 0; r < w->rows(); ++r) {
    const std::vector<float> got = table_row(*backend_, *w, r);
    const auto scale = c["scale"][static_cast<std::size_t>(r)].get<float>();
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::size_t code = c["codes"][static_cast<std::size_t>(r)][i];
      EXPECT_EQ(got[i], values[code].get<float>() * scale) << "row " << r << " column " << i;
    }
  }
}

TEST_F(Golden, CodesOfE4m3) {
  const Json numbers = load("cases-numbers.json");
  std::vector<std::byte> codes;
  for (int i = 0; i < 256; ++i) codes.push_back(static_cast<std::byte>(i));
  const float one = 1.0F;
  const WeightData data{
      .dtype = DType::f8_e4m3, .rows = 1, .cols = 256, .data = codes.data(), .row_scale = &one, .owner = {}};
  const std::vector<float> got = table_row(*backend_, *backend_->make_weight(data, WeightType::f8_e4m3), 0);
  for (std::size_t i = 0; i < 256; ++i) {
    const Json& want = numbers["e4m3_values_of_codes"][i];
    if (want.is_null()) {
      EXPECT_TRUE(std::isnan(got[i])) << "code " << i;
    } else {
      EXPECT_EQ(got[i], want.get<float>()) << "code " << i;
    }
  }
}

TEST_F(Golden, RoundingToBf16) {
  const Json numbers = load("cases-numbers.json");
  for (const Json& c : numbers["bf16_round"]) {
    const WeightPtr w = f32_weight(*backend_, {c["x"].get<float>()}, 1, WeightType::bf16);
    const auto want = std::bit_cast<float>(static_cast<std::uint32_t>(c["bits"].get<int>()) << 16);
    EXPECT_EQ(table_row(*backend_, *w, 0)[0], want) << c["x"];
  }
}

}  // namespace
}  // namespace ponder::ops
