// The hybrid backbone against the golden checkpoints, and what must not change its bits.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.hpp"
#include "models/golden_model.hpp"

namespace ponder::test {
namespace {

using Json = nlohmann::ordered_json;

std::vector<float> matrix(const Json& rows) {
  std::vector<float> out;
  for (const Json& row : rows) {
    for (const Json& v : row) out.push_back(v.get<float>());
  }
  return out;
}

// Largest difference over the RMS of what is expected.
double relative_error(const float* got, const std::vector<float>& want) {
  double worst = 0;
  double square = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - want[i]));
    if (!std::isfinite(got[i])) return HUGE_VAL;
    square += static_cast<double>(want[i]) * want[i];
  }
  return worst / std::sqrt(square / static_cast<double>(want.size()) + 1e-30);
}

struct Case {
  std::string checkpoint;
  Runner runner;
};

std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.checkpoint + "_" + info.param.runner.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<Case> every_case(bool with_reference) {
  std::vector<Case> out;
  for (const char* checkpoint : {"tiny-a", "tiny-b", "tiny-c", "tiny-d"}) {
    for (const Runner& runner : all_runners()) {
      if (with_reference || !runner.reference) out.push_back({checkpoint, runner});
    }
  }
  return out;
}

class Hybrid : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Golden, Hybrid, testing::ValuesIn(every_case(true)), case_name);

// What must not change bits; many runs, so without the slow reference.
class HybridBits : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Golden, HybridBits, testing::ValuesIn(every_case(false)), case_name);

TEST_P(Hybrid, EveryLayerMatchesTheGoldenResiduals) {
  const Json golden = read_json(golden_folder(GetParam().checkpoint) / "cases-layers.json");
  const std::vector<std::int32_t> ids = golden["ids"];
  engine::Engine engine(load_model(GetParam().checkpoint, GetParam().runner));
  auto& model = dynamic_cast<hybrid::HybridModel&>(engine.model());
  const auto hidden = static_cast<std::size_t>(model.hidden_size());

  std::vector<std::vector<float>> layers;
  const models::LayerObserver observer = [&](int layer, ops::ConstRows x, int rows) {
    ASSERT_EQ(static_cast<std::size_t>(layer), layers.size());
    ASSERT_EQ(static_cast<std::size_t>(rows), ids.size());
    layers.emplace_back(x.data, x.data + ids.size() * hidden);
  };
  std::vector<int> wanted;
  for (std::size_t i = 0; i < ids.size(); ++i) wanted.push_back(static_cast<int>(i));
  std::vector<float> final_norm(ids.size() * hidden);
  engine::Sequence sequence = engine.new_sequence();
  const engine::ExtendJob job{&sequence, ids, wanted, {final_norm.data(), model.hidden_size()}};
  engine.extend({&job, 1}, {}, &observer);

  ASSERT_EQ(layers.size(), golden["layers"].size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    EXPECT_LT(relative_error(layers[i].data(), matrix(golden["layers"][i])), 1e-3) << "layer " << i;
  }
  EXPECT_LT(relative_error(final_norm.data(), matrix(golden["final_norm"])), 1e-3);

  const std::vector<float> want_logits = golden["last_logits"];
  std::vector<float> logits(want_logits.size());
  ASSERT_EQ(logits.size(), static_cast<std::size_t>(model.vocab_size()));
  model.logits({final_norm.data() + (ids.size() - 1) * hidden, model.hidden_size()}, 1,
               {logits.data(), model.vocab_size()});
  EXPECT_LT(relative_error(logits.data(), want_logits), 1e-3);

  // A continuation on a fork, as read-outs are run.
  const std::vector<std::int32_t> tail = golden["uncommitted_tail"]["ids"];
  const std::vector<float> want_tail = golden["uncommitted_tail"]["final_norm_last_row"];
  const int last = static_cast<int>(tail.size()) - 1;
  std::vector<float> got_tail(hidden);
  engine::Sequence fork = sequence.fork();
  const engine::ExtendJob more{&fork, tail, {&last, 1}, {got_tail.data(), model.hidden_size()}};
  engine.extend({&more, 1});
  EXPECT_LT(relative_error(got_tail.data(), want_tail), 1e-3);
}

TEST_P(Hybrid, TheStateHoldsWhatTheReferenceHolds) {
  const Json golden = read_json(golden_folder(GetParam().checkpoint) / "cases-layers.json");
  const Json& after = golden["state_after"];
  const std::vector<std::int32_t> ids = golden["ids"];
  engine::Engine engine(load_model(GetParam().checkpoint, GetParam().runner));
  auto& model = dynamic_cast<hybrid::HybridModel&>(engine.model());
  engine::Sequence sequence = engine.new_sequence();
  const engine::ExtendJob job{&sequence, ids, {}, {}};
  engine.extend({&job, 1});

  const hybrid::LayerState& place = model.layer_state(after["delta_layer"]);
  const hybrid::Config& c = model.config();
  // The golden state keeps `kernel` columns, of which the oldest is never read again.
  Json conv = after["conv_inputs_oldest_first"];
  ASSERT_EQ(conv.size(), static_cast<std::size_t>(c.linear_conv_kernel_dim));
  conv.erase(conv.begin());
  EXPECT_LT(relative_error(sequence.recurrent() + place.conv, matrix(conv)), 1e-3);

  const ops::DeltaShape shape = c.delta_shape();
  const auto head = static_cast<std::size_t>(shape.key_dim) * static_cast<std::size_t>(shape.value_dim);
  std::vector<float> matrices(head * static_cast<std::size_t>(shape.value_heads));
  model.backend().delta_matrix(shape, sequence.recurrent() + place.delta, sequence.size(), matrices.data());
  const Json& want = after["rec_first_two_heads_dk_dv"];
  for (std::size_t h = 0; h < want.size(); ++h) {
    EXPECT_LT(relative_error(matrices.data() + h * head, matrix(want[h])), 1e-3) << "head " << h;
  }
}

// Several chunks of the delta rule and several pages long.
std::vector<std::int32_t> long_prompt(int vocab, int rows) {
  std::vector<std::int32_t> ids;
  std::uint32_t x = 12345;
  for (int i = 0; i < rows; ++i) {
    x = x * 1664525U + 1013904223U;
    ids.push_back(static_cast<std::int32_t>((x >> 8) % static_cast<std::uint32_t>(vocab)));
  }
  return ids;
}

struct Trace {
  std::vector<float> hidden;     // every row
  std::vector<float> recurrent;  // after the last row
  bool operator==(const Trace& other) const {
    return hidden.size() == other.hidden.size() && recurrent.size() == other.recurrent.size() &&
           std::memcmp(hidden.data(), other.hidden.data(), hidden.size() * sizeof(float)) == 0 &&
           std::memcmp(recurrent.data(), other.recurrent.data(), recurrent.size() * sizeof(float)) == 0;
  }
};

Trace run_in_chunks(engine::Engine& engine, const std::vector<std::int32_t>& ids, std::size_t chunk) {
  const auto width = static_cast<std::size_t>(engine.model().hidden_size());
  Trace run;
  run.hidden.resize(ids.size() * width);
  engine::Sequence sequence = engine.new_sequence();
  for (std::size_t at = 0; at < ids.size(); at += chunk) {
    const std::size_t rows = std::min(chunk, ids.size() - at);
    std::vector<int> wanted(rows);
    for (std::size_t i = 0; i < rows; ++i) wanted[i] = static_cast<int>(i);
    const engine::ExtendJob job{&sequence,
                                std::span(ids).subspan(at, rows),
                                wanted,
                                {run.hidden.data() + at * width, static_cast<std::int64_t>(width)}};
    engine.extend({&job, 1});
  }
  const std::size_t floats = engine.model().state_layout().recurrent_floats;
  run.recurrent.assign(sequence.recurrent(), sequence.recurrent() + floats);
  return run;
}

TEST_P(HybridBits, AnyChunkingGivesTheSameBits) {
  engine::Engine engine(load_model(GetParam().checkpoint, GetParam().runner, std::nullopt, /*max_rows=*/256));
  const auto ids = long_prompt(engine.model().vocab_size(), 150);
  const Trace whole = run_in_chunks(engine, ids, ids.size());
  for (const std::size_t chunk : {1, 3, 64, 65}) {
    EXPECT_TRUE(run_in_chunks(engine, ids, chunk) == whole) << "chunks of " << chunk;
  }
}

TEST_P(HybridBits, CompanyInABatchChangesNoBits) {
  engine::Engine engine(load_model(GetParam().checkpoint, GetParam().runner, std::nullopt, /*max_rows=*/300));
  const auto width = static_cast<std::size_t>(engine.model().hidden_size());
  const auto ids = long_prompt(engine.model().vocab_size(), 70);
  const Trace alone = run_in_chunks(engine, ids, ids.size());

  std::vector<engine::Sequence> sequences;
  std::vector<std::vector<std::int32_t>> prompts;
  std::vector<engine::ExtendJob> jobs;
  std::vector<int> wanted(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) wanted[i] = static_cast<int>(i);
  std::vector<float> hidden(ids.size() * width);
  for (int s = 0; s < 9; ++s) {
    sequences.push_back(engine.new_sequence());
    prompts.push_back(s == 4 ? ids : std::vector<std::int32_t>(ids.begin() + s, ids.begin() + 5 + 7 * s));
  }
  for (std::size_t s = 0; s < 9; ++s) {
    if (s == 4) {
      jobs.push_back({&sequences[s], prompts[s], wanted, {hidden.data(), static_cast<std::int64_t>(width)}});
    } else {
      jobs.push_back({&sequences[s], prompts[s], {}, {}});
    }
  }
  engine.extend(jobs);
  EXPECT_EQ(std::memcmp(hidden.data(), alone.hidden.data(), hidden.size() * sizeof(float)), 0);
}

TEST_P(HybridBits, ThreadsChangeNoBits) {
  Runner runner = GetParam().runner;
  const int vocab = load_model(GetParam().checkpoint, runner)->vocab_size();
  const auto ids = long_prompt(vocab, 100);
  std::vector<Trace> runs;
  for (const int threads : {1, 2, 5}) {
    runner.threads = threads;
    engine::Engine engine(load_model(GetParam().checkpoint, runner, std::nullopt, 128));
    runs.push_back(run_in_chunks(engine, ids, 128));
  }
  EXPECT_TRUE(runs[0] == runs[1]);
  EXPECT_TRUE(runs[0] == runs[2]);
}

// Complaint 4: prefix lengths around every border, then a hit: the same as a cold run.
TEST_P(HybridBits, Complaint04_ContinuingAPrefixOfAnyLengthEqualsAColdRun) {
  engine::Engine engine(load_model(GetParam().checkpoint, GetParam().runner, std::nullopt, 256));
  const auto width = static_cast<std::size_t>(engine.model().hidden_size());
  const auto ids = long_prompt(engine.model().vocab_size(), 140);
  const Trace cold = run_in_chunks(engine, ids, ids.size());
  const int last = 0;
  for (std::size_t prefix = 1; prefix < ids.size(); prefix += prefix < 22 || prefix > 50 ? 1 : 7) {
    engine::Sequence first = engine.new_sequence();
    const engine::ExtendJob feed{&first, std::span(ids).first(prefix), {}, {}};
    engine.extend({&feed, 1});
    engine::Sequence hit = first.fork();
    std::vector<float> row(width);
    const engine::ExtendJob next{
        &hit, std::span(ids).subspan(prefix, 1), {&last, 1}, {row.data(), static_cast<std::int64_t>(width)}};
    engine.extend({&next, 1});
    ASSERT_EQ(std::memcmp(row.data(), cold.hidden.data() + prefix * width, width * sizeof(float)), 0)
        << "prefix of " << prefix;
  }
}

TEST_P(HybridBits, ACacheOfAnotherTypeIsSmallerAndNear) {
  const auto ids = long_prompt(500, 150);
  engine::Engine full(load_model(GetParam().checkpoint, GetParam().runner, std::nullopt, 256));
  const Trace want = run_in_chunks(full, ids, ids.size());
  std::size_t bytes = full.model().state_layout().page_bytes;
  for (const auto& [type, bound] : {std::pair{ops::KvType::bf16, 3e-2}, {ops::KvType::q8, 0.2}}) {
    engine::Engine engine(load_model(GetParam().checkpoint, GetParam().runner, std::nullopt, 256, type));
    EXPECT_LT(engine.model().state_layout().page_bytes, bytes);
    bytes = engine.model().state_layout().page_bytes;
    const Trace whole = run_in_chunks(engine, ids, ids.size());
    const double error = relative_error(whole.hidden.data(), want.hidden);
    EXPECT_GT(error, 0.0);
    EXPECT_LT(error, bound);
    EXPECT_TRUE(run_in_chunks(engine, ids, 7) == whole);
  }
}

TEST_P(HybridBits, HoldingTheWeightsInF32ChangesNothingThatMatters) {
  const auto ids = long_prompt(500, 40);
  engine::Engine as_stored(load_model(GetParam().checkpoint, GetParam().runner));
  engine::Engine as_f32(load_model(GetParam().checkpoint, GetParam().runner, ops::WeightType::f32));
  const Trace a = run_in_chunks(as_stored, ids, ids.size());
  const Trace b = run_in_chunks(as_f32, ids, ids.size());
  EXPECT_LT(relative_error(a.hidden.data(), b.hidden), 1e-4);
}

}  // namespace
}  // namespace ponder::test
