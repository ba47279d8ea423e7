// ponder decide through the program itself.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/process.hpp"

namespace ponder::test {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

Json read_cases(const std::string& checkpoint, const std::string& file) {
  std::ifstream in(golden(checkpoint) + "/" + file);
  return Json::parse(in);
}

Json golden_request(const std::string& checkpoint, const std::string& name) {
  const Json golden_cases = read_cases(checkpoint, "cases-requests.json");
  for (const Json& c : golden_cases["cases"]) {
    if (c["name"] == name) return c["requests"][0];
  }
  throw std::runtime_error("no golden request " + name);
}

const std::string kSimple =
    R"({"state": "s", "questions": {"q": {"type": "noul"}}, "options": {"think": false}})";

TEST(Decide, GoldenReplyWithTwoDecimals) {
  for (const char* checkpoint : {"tiny-a", "tiny-b", "tiny-c", "tiny-d"}) {
    for (const char* name : {"ten-questions-no-think", "think-several-0", "255-options"}) {
      SCOPED_TRACE(std::string(checkpoint) + " " + name);
      const Json request = golden_request(checkpoint, name);
      const Output run =
          ponder({"decide", "--model", golden(checkpoint), "--decimals", "2"}, request["body"].dump());
      ASSERT_EQ(run.status, 0) << run.err;
      EXPECT_EQ(run.err, "") << "quiet when nobody watches";
      const Json reply = run.json();
      if (request["round_margin"].get<double>() > 1e-4) {
        EXPECT_EQ(reply["answers"].dump(), request["response"]["answers"].dump());
      }
      for (const auto& [key, value] : request["response"]["usage"].items())
        EXPECT_EQ(reply["usage"][key], value) << key;
      EXPECT_TRUE(reply["latency_ms"].is_number());
      EXPECT_EQ(reply["model"], checkpoint);
      EXPECT_EQ(reply.contains("reasoning"), request["response"].contains("reasoning"));
      if (reply.contains("reasoning")) {
        EXPECT_EQ(reply["reasoning"].dump(), request["response"]["reasoning"].dump());
      }
    }
  }
}

// Complaint 45: the whole distribution, in the request's order, adding up.
TEST(Decide, Complaint45_SixDecimalsAddUpToOne) {
  const Json request = golden_request("tiny-a", "255-options");
  const Output run = ponder({"decide", "--model", golden("tiny-a")}, request["body"].dump());
  ASSERT_EQ(run.status, 0) << run.err;
  const Json reply = run.json();
  std::size_t most = 0;
  for (const auto& [name, question] : request["body"]["questions"].items()) {
    const Json& probabilities = reply["answers"][name]["probabilities"];
    most = std::max(most, probabilities.size());
    double sum = 0;
    for (const auto& [label, p] : probabilities.items()) sum += p.get<double>();
    EXPECT_NEAR(sum, 1.0, 1e-6) << name;
    EXPECT_EQ(probabilities.size(), question["criteria"].size()) << name;
  }
  EXPECT_EQ(most, 255U);
}

TEST(Decide, TraceHoldsIdsChainsAndCounters) {
  const Json request = golden_request("tiny-b", "think-several-0");
  const Output run =
      ponder({"decide", "--model", golden("tiny-b"), "--trace", "--no-drafter"}, request["body"].dump());
  ASSERT_EQ(run.status, 0) << run.err;
  const Json trace = run.json();
  std::size_t thought = 0;
  for (const auto& [name, want] : request["details"].items()) {
    const Json& got = trace["questions"][name];
    EXPECT_EQ(got["chain"], want["chain"]);
    EXPECT_EQ(got["thought"], want["thought"]);
    EXPECT_EQ(got["closed"], want["closed"]);
    EXPECT_EQ(got["prompt_tokens"], want["prompt_tokens"]);
    EXPECT_EQ(got["prompt_ids"].size(), want["prompt_length"].get<std::size_t>());
    EXPECT_EQ(got["remainder_ids"].size(), want["remainder_length"].get<std::size_t>());
    EXPECT_TRUE(got["nothink_probs"].is_null());
    for (std::size_t i = 0; i < want["probs"].size(); ++i) {
      EXPECT_NEAR(got["probs"][i].get<double>(), want["probs"][i].get<double>(), 2e-4);
    }
    thought += want["chain"].size();
  }
  EXPECT_EQ(trace["counters"]["cycles"], thought) << "plain decoding: a cycle a token";
  EXPECT_EQ(trace["counters"]["accepted"]["1"], thought);
  EXPECT_GT(trace["counters"]["shared_tokens"].get<int>(), 0);
}

TEST(Decide, FilesStandardInputLinesAndBatches) {
  const auto file = std::filesystem::temp_directory_path() / "ponder-decide-request.json";
  std::ofstream(file) << kSimple;
  const std::string model = golden("tiny-a");
  const Output from_file = ponder({"decide", "--model", model, "--trace", file.string()});
  const Output from_dash = ponder({"decide", "--model", model, "--trace", "-"}, kSimple);
  std::filesystem::remove(file);
  ASSERT_EQ(from_file.status, 0) << from_file.err;
  EXPECT_EQ(from_file.out, from_dash.out);

  const std::string three =
      kSimple + "\n\n" + kSimple + "\r\n" + kSimple;  // a blank line, CRLF, no last line end
  for (const char* mode : {"--jsonl", "--batch"}) {
    const Output lines = ponder({"decide", "--model", model, "--trace", mode}, three);
    ASSERT_EQ(lines.status, 0) << lines.err;
    ASSERT_EQ(lines.lines().size(), 3U) << mode;
    for (const Json& line : lines.lines()) {
      EXPECT_EQ(line["questions"]["q"]["probs"], from_file.json()["questions"]["q"]["probs"]) << mode;
    }
  }
}

TEST(Decide, ABadLineGetsItsErrorInPlaceAndTheOthersAnswers) {
  const Output run =
      ponder({"decide", "--model", golden("tiny-a"), "--jsonl"}, kSimple + "\n{\"state\": 1}\n" + kSimple);
  EXPECT_EQ(run.status, 1);
  const auto lines = run.lines();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].contains("answers"));
  EXPECT_EQ(lines[1]["detail"], "questions must be a non-empty object");
  EXPECT_TRUE(lines[2].contains("answers"));
  EXPECT_THAT(run.err, HasSubstr("line 2"));
}

TEST(Decide, FlagsAreDefaultsThatARequestOverrides) {
  const std::string silent = R"({"state": "s", "questions": {"q": {"type": "noul"}}})";
  const std::string model = golden("tiny-a");
  const auto thought = [&](const std::vector<std::string>& flags, const std::string& body) {
    std::vector<std::string> arguments = {"decide", "--model", model, "--trace"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Output run = ponder(arguments, body);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.json()["questions"]["q"];
  };
  EXPECT_EQ(thought({"--no-think"}, silent)["thought"], false);
  EXPECT_EQ(thought({"--max-think", "3"}, silent)["chain"].size(), 3U);
  EXPECT_EQ(thought({"--max-think", "3"}, kSimple)["thought"], false) << "the request says think: false";
  EXPECT_EQ(thought({"--max-think", "3", "--nothink-threshold", "0"}, silent)["thought"], false);
  EXPECT_EQ(thought({"--max-think", "3", "--nothink-threshold", "1"}, silent)["thought"], true);
}

// ---- the same answer, however it is computed
// ----------------------------------------------------------------

TEST(Decide, ThreadsAndStepSizesChangeNoBits) {
  const std::string body = golden_request("tiny-c", "think-several-0")["body"].dump();
  const auto probs = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"decide", "--model", golden("tiny-c"), "--trace"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Output run = ponder(arguments, body);
    EXPECT_EQ(run.status, 0) << run.err;
    Json questions = run.json()["questions"];
    for (Json& q : questions) q.erase("accepted");  // a matter of what paid at the time
    return questions.dump();
  };
  const std::string want = probs({"--threads", "1"});
  for (const auto& flags : std::vector<std::vector<std::string>>{{"--threads", "2"},
                                                                 {"--threads", "7"},
                                                                 {"--step-rows", "1"},
                                                                 {"--step-rows", "3"},
                                                                 {"--step-rows", "65"},
                                                                 {"--max-rows", "64"}}) {
    EXPECT_EQ(probs(flags), want) << flags[0] << " " << flags[1];
  }
}

TEST(Decide, InstructionSetsAndTheReferenceAgree) {
  const Json request = golden_request("tiny-d", "ten-questions-no-think");
  for (const char* isa : {"scalar", "reference"}) {
    const Output run =
        ponder({"decide", "--model", golden("tiny-d"), "--trace", "--isa", isa}, request["body"].dump());
    ASSERT_EQ(run.status, 0) << run.err;
    const Json trace = run.json();
    for (const auto& [name, want] : request["details"].items()) {
      for (std::size_t i = 0; i < want["probs"].size(); ++i) {
        EXPECT_NEAR(trace["questions"][name]["probs"][i].get<double>(), want["probs"][i].get<double>(), 2e-4)
            << isa;
      }
    }
  }
}

TEST(Decide, WeightTypesThatCanHoldTheFileChangeLittle) {
  for (const char* checkpoint : {"tiny-a", "tiny-c"}) {
    const Json request = golden_request(checkpoint, "ten-questions-no-think");
    for (const char* type : {"f32", "bf16", "auto"}) {
      const Output run = ponder({"decide", "--model", golden(checkpoint), "--trace", "--type", type},
                                request["body"].dump());
      ASSERT_EQ(run.status, 0) << run.err;
      const Json trace = run.json();
      const bool exact = std::string(type) != "bf16" || std::string(checkpoint) == "tiny-a";
      for (const auto& [name, want] : request["details"].items()) {
        for (std::size_t i = 0; i < want["probs"].size(); ++i) {
          EXPECT_NEAR(trace["questions"][name]["probs"][i].get<double>(), want["probs"][i].get<double>(),
                      exact ? 2e-4 : 2e-2)
              << checkpoint << " as " << type;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ponder::test
