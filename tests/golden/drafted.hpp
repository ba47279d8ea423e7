// Golden checkpoints that think with a drafter, in every setting that must not change an answer.
#pragma once

#include <algorithm>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "golden/support.hpp"

namespace ponder::test {

struct Setting {
  Runner runner;
  hybrid::TypeChoice type;
  ops::KvType kv = ops::KvType::f32;
  bool drafter = true;
  hybrid::DraftMemory memory;
  decide::AnswerLimits limits;
  int step_rows = 64;
  engine::Options caches;
};

inline hybrid::Drafter golden_drafter(const std::string& checkpoint, const hybrid::Config& config,
                                      ops::Backend& backend, hybrid::TypeChoice type = std::nullopt) {
  return hybrid::load_drafter(
      config, formats::open_safetensors(golden_folder(checkpoint) / "drafter_k4.safetensors"), backend, type);
}

// `change` sees weights and drafter before the model takes them.
template <class Change>
std::unique_ptr<hybrid::HybridModel> load_drafted(const std::string& checkpoint, const Setting& s,
                                                  Change&& change) {
  const std::filesystem::path folder = golden_folder(checkpoint);
  hybrid::Config config = hybrid::Config::parse(read_text(folder / "config.json"));
  config.kv_type = s.kv;
  const std::shared_ptr<ops::Backend> backend = make_backend(s.runner);
  hybrid::Weights weights =
      hybrid::load_weights(config, formats::open_model_folder(folder), *backend, s.type);
  hybrid::Drafter drafter;
  if (s.drafter) drafter = golden_drafter(checkpoint, config, *backend, s.type);
  change(weights, drafter);
  return std::make_unique<hybrid::HybridModel>(config, std::move(weights), std::move(drafter), s.memory,
                                               backend, s.step_rows);
}

inline std::unique_ptr<hybrid::HybridModel> load_drafted(const std::string& checkpoint, const Setting& s) {
  return load_drafted(checkpoint, s, [](auto&, auto&) {});
}

class Thinker {
 public:
  Thinker(const std::string& checkpoint, const Setting& s)
      : Thinker(checkpoint, s, load_drafted(checkpoint, s)) {}
  Thinker(const std::string& checkpoint, const Setting& s, std::unique_ptr<models::Model> model)
      : encoder_(golden_folder(checkpoint)),
        head_(formats::load_torch_state_dict(golden_folder(checkpoint) / "head.pt"), model->hidden_size(),
              read_json(golden_folder(checkpoint) / "export.json")["temperature"]),
        engine_(std::move(model), s.caches),
        answerer_(engine_, encoder_, head_, s.limits) {}

  const decide::Encoder& encoder() const { return encoder_; }
  engine::Engine& engine() { return engine_; }
  decide::Answerer& answerer() { return answerer_; }

  std::vector<decide::RequestOutcome> batch(const std::vector<Json>& bodies,
                                            const std::stop_token& stop = {}) {
    std::vector<decide::Request> requests;
    for (const Json& body : bodies) {
      requests.push_back(decide::parse_request(decide::parse_json(body.dump())));
    }
    return answerer_.answer_batch(requests, stop);
  }
  // The one question of a request that must succeed.
  decide::QuestionResult one(const Json& body) {
    auto outcomes = batch({body});
    if (outcomes[0].error) throw Error(*outcomes[0].error);
    return std::move(outcomes[0].questions[0]);
  }

  // Nothing may be held once the prefixes of earlier prompts are gone.
  void expect_no_leak() {
    answerer_.forget_prefixes();
    EXPECT_EQ(engine_.page_stats().in_use, 0U);
    EXPECT_EQ(engine_.draft_stats().in_use, 0U);
    EXPECT_EQ(engine_.state_stats().in_use, 0U);
    EXPECT_EQ(answerer_.prefixes().stats().bytes, 0U);
  }

 private:
  decide::Encoder encoder_;
  hybrid::PointerHead head_;
  engine::Engine engine_;
  decide::Answerer answerer_;
};

// All of an answer that may not depend on how it was come to.
inline bool same_answer(const decide::QuestionResult& a, const decide::QuestionResult& b) {
  return a.probs == b.probs && a.chain == b.chain && a.closed == b.closed && a.thought == b.thought &&
         a.deadline == b.deadline && a.nothink_probs == b.nothink_probs;
}

inline std::vector<std::string> drafted_checkpoints() {
  return {"tiny-a", "tiny-b", "tiny-c"};  // tiny-d's keys and values differ in size: no drafter can be
}

// The chain cases of a checkpoint as requests of one question.
struct ChainCase {
  std::string name;
  Json body;
  Json golden;
};

inline std::vector<ChainCase> chain_cases(const std::string& checkpoint) {
  const Json file = read_json(golden_folder(checkpoint) / "cases-chains.json");
  std::vector<ChainCase> out;
  for (const Json& c : file["cases"]) {
    Json options = c["options"];
    if (options.contains("threshold")) {
      options["nothink_threshold"] = options["threshold"];
      options.erase("threshold");
    }
    out.push_back({c["name"],
                   {{"state", file["states"][c["state"].get<std::size_t>()]},
                    {"questions", {{"q", file["questions"][c["question"].get<std::size_t>()]}}},
                    {"options", options}},
                   c});
  }
  return out;
}

inline Runner best_runner(int threads = 1) {
  const cpu::InstructionSet isa = cpu::best(cpu::detect_cpu_features());
  return {std::string(cpu::name(isa)), false, isa, threads, ops::ActivationType::f32};
}

}  // namespace ponder::test
