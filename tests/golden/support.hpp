// Golden requests through the whole decision engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/answerer.hpp"
#include "decide/json_value.hpp"
#include "formats/torch_pickle.hpp"
#include "models/golden_model.hpp"

namespace ponder::test {

using Json = nlohmann::ordered_json;

// A golden checkpoint ready to answer.
class Decider {
 public:
  Decider(const std::string& checkpoint, const Runner& runner, const decide::AnswerLimits& limits = {},
          hybrid::TypeChoice type = std::nullopt)
      : encoder_(golden_folder(checkpoint)),
        head_(formats::load_torch_state_dict(golden_folder(checkpoint) / "head.pt"),
              hybrid::Config::parse(read_text(golden_folder(checkpoint) / "config.json")).hidden_size,
              read_json(golden_folder(checkpoint) / "export.json")["temperature"]),
        engine_(load_model(checkpoint, runner, type)),
        answerer_(engine_, encoder_, head_, limits) {}

  const decide::Encoder& encoder() const { return encoder_; }
  engine::Engine& engine() { return engine_; }
  decide::Answerer& answerer() { return answerer_; }

  std::vector<decide::RequestOutcome> batch(const std::vector<Json>& bodies) {
    std::vector<decide::Request> requests;
    for (const Json& body : bodies)
      requests.push_back(decide::parse_request(decide::parse_json(body.dump())));
    return answerer_.answer_batch(requests);
  }

  // The questions of one request, which must succeed.
  std::vector<decide::QuestionResult> one(const Json& body) {
    auto outcomes = batch({body});
    if (outcomes[0].error) throw Error(*outcomes[0].error);
    return std::move(outcomes[0].questions);
  }

 private:
  decide::Encoder encoder_;
  hybrid::PointerHead head_;
  engine::Engine engine_;
  decide::Answerer answerer_;
};

inline double largest_difference(const std::vector<double>& got, const Json& want) {
  EXPECT_EQ(got.size(), want.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size() && i < want.size(); ++i) {
    worst = std::max(worst, std::abs(got[i] - want[i].get<double>()));
  }
  return worst;
}

struct GoldenCase {
  std::string checkpoint;
  Runner runner;
};

inline std::string golden_case_name(const testing::TestParamInfo<GoldenCase>& info) {
  std::string name = info.param.checkpoint + "_" + info.param.runner.name;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

// Every checkpoint on every instruction set of this machine; the scalar reference is too slow for whole
// requests.
inline std::vector<GoldenCase> cpu_cases(ops::ActivationType activations = ops::ActivationType::f32) {
  std::vector<GoldenCase> out;
  for (const char* checkpoint : {"tiny-a", "tiny-b", "tiny-c", "tiny-d"}) {
    for (const Runner& runner : all_runners(activations)) {
      if (!runner.reference) out.push_back({checkpoint, runner});
    }
  }
  return out;
}

}  // namespace ponder::test
