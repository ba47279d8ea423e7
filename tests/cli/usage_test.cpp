// Wrong requests, wrong files, wrong flags: one line, the right status, nothing else.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "cli/process.hpp"

namespace ponder::test {
namespace {

using testing::HasSubstr;
using namespace std::string_literals;

Output decide(const std::string& body) {
  return ponder({"decide", "--model", golden("tiny-a")}, body);
}

std::string question(const std::string& fields) {
  return R"({"state": "s", "questions": {"q": {)" + fields + R"(}}, "options": {"think": false}})";
}

TEST(WrongRequests, ThePublicServersMessages) {
  const std::pair<std::string, std::string> cases[] = {
      {"[]", "request body must be a JSON object"},
      {"{}", "state is required"},
      {R"({"state": 1})", "questions must be a non-empty object"},
      {R"({"state": 1, "questions": {}})", "questions must be a non-empty object"},
      {R"({"state": 1, "questions": {"q": {"type": "noul"}}, "model": 3})", "model must be a string"},
      {R"({"state": 1, "questions": {"it's": 1}})", R"(question "it's" must be an object)"},
      {question(R"("type": "yes")"), "question 'q': type must be one of ['choice', 'noul', 'score']"},
      {question(R"("type": "noul", "zeta": 1, "alpha": 2)"),
       "question 'q': unknown fields ['alpha', 'zeta']"},
      {question(R"("type": "choice")"),
       "question 'q': choice criteria must be an object with 1..255 options"},
      {question(R"("type": "noul", "criteria": {"maybe": 1})"),
       "question 'q': noul criteria may only describe true and false"},
      {question(R"("type": "score", "criteria": {})"),
       "question 'q': score criteria must be a list of 1..255 levels"},
      {R"({"state": 1, "questions": {"q": {"type": "noul"}}, "options": []})", "options must be an object"},
      {R"({"state": 1, "questions": {"q": {"type": "noul"}}, "options": {"b": 1, "a": 1}})",
       "unknown options: ['a', 'b']"},
      {R"({"state": 1, "questions": {"q": {"type": "noul"}}, "options": {"think": 1}})",
       "think and return_reasoning must be booleans"},
      {R"({"state": 1, "questions": {"q": {"type": "noul"}}, "options": {"max_think": -1}})",
       "max_think must be a non-negative integer"},
      {R"({"state": 1, "questions": {"q": {"type": "noul"}}, "options": {"nothink_threshold": 2}})",
       "nothink_threshold must be null or a number in [0, 1]"},
  };
  for (const auto& [body, message] : cases) {
    SCOPED_TRACE(body);
    expect_error(decide(body), 1, message);
  }
}

TEST(WrongRequests, Complaint21_DeepNestingIsOneLine) {
  for (const std::size_t depth : {std::size_t{1000}, std::size_t{100000}, std::size_t{1000000}}) {
    for (const char* unit : {"[", "{\"a\":", "[{\"a\":"}) {
      std::string deep;
      while (deep.size() < depth) deep += unit;
      expect_error(decide(deep), 1, "100");
      expect_error(decide(R"({"questions": {"q": {"type": "noul"}}, "state": )" + deep), 1, "100");
    }
  }
}

TEST(WrongRequests, Complaint24_BytesAndNumbersThatAreNone) {
  const std::string bodies[] = {
      "",
      "nonsense",
      "\0"s,
      "{\"state\": \"\\ud800\", \"questions\": {\"q\": {\"type\": \"noul\"}}}",
      "{\"state\": \"\\udc00\\ud800\", \"questions\": {\"q\": {\"type\": \"noul\"}}}",
      "{\"state\": \"\xFF\", \"questions\": {\"q\": {\"type\": \"noul\"}}}",
      "{\"state\": NaN, \"questions\": {\"q\": {\"type\": \"noul\"}}}",
      "{\"state\": -Infinity, \"questions\": {\"q\": {\"type\": \"noul\"}}}",
      "{\"state\": 1e999, \"questions\": {\"q\": {\"type\": \"noul\"}}}",
      "{\"state\": 01, \"questions\": {\"q\": {\"type\": \"noul\"}}}",
      "{\"state\": 1, \"questions\": {\"q\": {\"type\": \"noul\"}}} trailing",
      "{\"state\": 1, \"questions\": {\"q\": {\"type\": \"noul\"}}",
      "{\"state\": \"a\0b\", \"questions\": {\"q\": {\"type\": \"noul\"}}}"s,
  };
  for (const std::string& body : bodies) {
    SCOPED_TRACE(body.substr(0, 60));
    expect_error(decide(body), 1, "");
  }
}

TEST(WrongRequests, StrangeButLegalOnesAreAnswered) {
  std::string options;
  for (int i = 0; i < 255; ++i)
    options += (i == 0 ? "" : ",") + std::string("\"o") + std::to_string(i) + "\": null";
  const std::string bodies[] = {
      question(R"("type": "noul", "instructions": null, "criteria": null)"),
      question(R"("type": "choice", "criteria": {)" + options + "}"),
      question(R"("type": "noul", "type": "score", "criteria": ["a"])"),  // the last value of a repeated key
                                                                          // counts
      R"({"state": "", "questions": {"": {"type": "noul"}}, "options": {"think": false}})",
      R"({"state": null, "questions": {"q": {"type": "noul"}}, "options": {"think": false}, "extra": [1]})",
      R"({"state": {"a": [1, 2.5, {"b": "\u0000\ud83d\ude00"}]}, "questions": {"q": {"type": "noul"}}, "options": {"think": false}})",
      R"({"state": 123456789012345678901234567890, "questions": {"q": {"type": "noul"}}, "options": {"think": false}})",
  };
  for (const std::string& body : bodies) {
    const Output run = decide(body);
    EXPECT_EQ(run.status, 0) << body.substr(0, 100) << run.err;
    EXPECT_TRUE(run.json().contains("answers"));
  }
}

TEST(WrongRequests, Complaint46_TooLongNamesQuestionTokensAndLimit) {
  std::string words;
  for (int i = 0; i < 6000; ++i) words += "late parcel ";
  const std::string body = R"({"state": ")" + words + R"(", "questions": {"why": {"type": "noul"}}})";
  const Output run = decide(body);
  expect_error(run, 1, "'why'");
  EXPECT_THAT(run.err, HasSubstr("8192"));
}

TEST(WrongRequests, ASkillThatTheModelLacksIsRefused) {
  expect_error(decide(R"({"state": 1, "questions": {"q": {"type": "noul"}}, "options": {"skill": "law"}})"),
               1, "'law'");
}

// Many questions over a long state multiply: there is a limit, and it is reached before any of the work.
TEST(WrongRequests, ARequestOfTooManyTokensNamesThem) {
  std::string words;
  for (int i = 0; i < 1200; ++i) words += "late parcel ";
  std::string questions;
  for (int i = 0; i < 4000; ++i) {
    questions += (i == 0 ? "" : ",") + std::string("\"q") + std::to_string(i) + "\": {\"type\": \"noul\"}";
  }
  expect_error(decide(R"({"state": ")" + words + R"(", "questions": {)" + questions + "}}"), 1, "4194304");
}

TEST(WrongRequests, AnOverlongLineIsItsOwnErrorAndTheNextIsAnswered) {
  const std::string good = question(R"("type": "noul")");
  const std::string input = good + "\n" + std::string((8U << 20U) + 10, 'x') + "\n" + good + "\n";
  const Output run = ponder({"decide", "--model", golden("tiny-a"), "--jsonl"}, input);
  EXPECT_EQ(run.status, 1);
  const auto lines = run.lines();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].contains("answers"));
  EXPECT_THAT(lines[1]["detail"].get<std::string>(), HasSubstr("line 2"));
  EXPECT_TRUE(lines[2].contains("answers"));
}

// ---- outputs that cannot be written

TEST(FullDisk, LostAnswersAreAnError) {
  for (const char* verb : {"decide", "info"}) {
    const std::string arguments = std::string(verb) + " --model " + golden("tiny-a");
    const Output run =
        shell("echo '" + question(R"("type": "noul")") + "' | \"$0\" " + arguments + " >/dev/full");
    EXPECT_EQ(run.status, 1) << verb;
    EXPECT_THAT(run.err, HasSubstr("standard output"));
  }
}

TEST(FullDisk, AMessageNobodyCanReadIsNoCrash) {
  EXPECT_EQ(shell("\"$0\" info --model /nonexistent 2>/dev/full").status, 1);
  EXPECT_EQ(shell("\"$0\" nosuchverb 2>/dev/full").status, 2);
  const Output run = shell("printf '%s\\n' '{}' '" + question(R"("type": "noul")") +
                           "' | \"$0\" decide --jsonl --model " + golden("tiny-a") + " 2>/dev/full");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.lines().size(), 2U);
}

// ---- wrong flags
// ---------------------------------------------------------------------------------------------

TEST(WrongUsage, ExitsWithTwo) {
  const std::vector<std::string> cases[] = {
      {},
      {"nosuchverb"},
      {"decide", "--nosuchflag"},
      {"decide", "--type", "q9"},
      {"decide", "--threads", "0"},
      {"decide", "--threads", "many"},
      {"decide", "--isa", "mmx"},
      {"decide", "--activations", "int3"},
      {"decide", "--kv", "q9"},
      {"decide", "--decimals", "-1"},
      {"decide", "--decimals", "99"},
      {"decide", "--max-rows", "0"},
      {"decide", "--max-len", "0"},
      {"decide", "--block", "0"},
      {"decide", "--max-think", "-5"},
      {"decide", "--nothink-threshold", "1.5"},
      {"decide", "--nothink-threshold", "nan"},
      {"decide", "--step-rows", "0"},
      {"decide", "--jsonl", "--batch"},
      {"logits"},
      {"logits", "--ids", "1,x"},
      {"logits", "--ids", ""},
      {"logits", "--ids", "1,,2"},
      {"logits", "--ids", "1,2,"},
      {"logits", "--ids", ",1"},
      {"logits", "--ids", "1 2"},
      {"logits", "--ids", "0x3"},
      {"logits", "--ids", "1.5"},
      {"logits", "--ids", "99999999999999999999"},
      {"logits", "--ids", "1,2", "--chunks", "1,,1"},
      {"logits", "--ids", "1,2", "--chunks", "1"},
      {"logits", "--ids", "1,2", "--chunks", "3,-1"},
      {"tokenize", "--decode", "--render"},
  };
  for (const auto& arguments : cases) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    std::vector<std::string> all = arguments;
    const bool verb = !all.empty() && all[0] != "nosuchverb";
    if (verb) all.insert(all.end(), {"--model", golden("tiny-a")});
    expect_error(ponder(all, R"({"state": 1, "questions": {"q": {"type": "noul"}}})"), 2, "ponder: ");
  }
}

TEST(WrongUsage, AnInstructionSetThatIsNotThereIsRefused) {
#if defined(__x86_64__)
  const char* other = "neon";
#else
  const char* other = "avx512";
#endif
  expect_error(ponder({"decide", "--model", golden("tiny-a"), "--isa", other}, question(R"("type": "noul")")),
               1, other);
}

TEST(WrongUsage, HelpIsThereForEveryVerb) {
  for (const char* verb : {"decide", "tokenize", "logits", "info"}) {
    const Output run = ponder({verb, "--help"});
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(run.err, "");
    EXPECT_THAT(run.out, HasSubstr("--model"));
    EXPECT_THAT(ponder({"--help"}).out, HasSubstr(verb));
  }
  EXPECT_EQ(ponder({"--version"}).status, 0);
}

// ---- wrong models
// --------------------------------------------------------------------------------------------

class WrongModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("ponder-model-") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::copy(golden("tiny-a"), folder_, std::filesystem::copy_options::recursive);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Output run() const {
    return ponder({"decide", "--model", folder_.string()}, question(R"("type": "noul")"));
  }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(folder_ / file, std::ios::binary) << text;
  }

  std::filesystem::path folder_;
};

TEST_F(WrongModel, TheCopyItselfAnswers) {
  EXPECT_EQ(run().status, 0);
}

TEST_F(WrongModel, MissingFilesAreNamed) {
  for (const char* file :
       {"config.json", "export.json", "head.pt", "tokenizer.json", "model-00002-of-00002.safetensors"}) {
    SCOPED_TRACE(file);
    std::filesystem::remove(folder_ / file);
    expect_error(run(), 1, file);
    std::filesystem::copy(std::filesystem::path(golden("tiny-a")) / file, folder_ / file);
  }
}

TEST_F(WrongModel, DamagedFilesAreNamed) {
  for (const char* file :
       {"config.json", "export.json", "head.pt", "tokenizer.json", "model-00001-of-00002.safetensors"}) {
    for (const char* text : {"", "{", "garbage garbage garbage"}) {
      SCOPED_TRACE(file);
      write(file, text);
      expect_error(run(), 1, file);
      std::filesystem::copy(std::filesystem::path(golden("tiny-a")) / file, folder_ / file,
                            std::filesystem::copy_options::overwrite_existing);
    }
  }
}

TEST_F(WrongModel, Complaint38_ATruncatedShardIsRefusedBeforeAnyWork) {
  const auto shard = folder_ / "model-00002-of-00002.safetensors";
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) - 1);
  expect_error(run(), 1, "model-00002-of-00002.safetensors");
}

TEST_F(WrongModel, AConfigurationThatDoesNotFitTheTensors) {
  std::ifstream in(folder_ / "config.json");
  auto config = nlohmann::ordered_json::parse(in);
  config["hidden_size"] = 128;
  write("config.json", config.dump());
  const Output wider = run();
  EXPECT_EQ(wider.status, 1);
  EXPECT_THAT(wider.err, HasSubstr("128"));
  config["hidden_size"] = 64;
  config["vocab_size"] = 575;
  write("config.json", config.dump());
  const Output smaller = run();
  EXPECT_EQ(smaller.status, 1);
  EXPECT_THAT(smaller.err, HasSubstr("575"));
}

TEST_F(WrongModel, Complaint21_DeepNestingInAConfigurationIsOneLine) {
  for (const char* unit : {"[", "{\"a\":"}) {
    std::string deep = "{\"hidden_size\": ";
    for (int i = 0; i < 80000; ++i) deep += unit;
    write("config.json", deep);
    expect_error(run(), 1, "config.json");
  }
  write("config.json", R"({"hidden_size": [[[1]]]})");
  expect_error(run(), 1, "hidden_size");
}

TEST_F(WrongModel, NothingHidesBehindANulByte) {
  for (const char* file : {"config.json", "tokenizer.json", "tokenizer_config.json"}) {
    std::ofstream(folder_ / file, std::ios::app | std::ios::binary) << '\0' << " anything {{{";
    expect_error(run(), 1, file);
    std::filesystem::copy(std::filesystem::path(golden("tiny-a")) / file, folder_ / file,
                          std::filesystem::copy_options::overwrite_existing);
  }
}

TEST_F(WrongModel, AnotherPromptFormatIsRefused) {
  write("export.json", R"({"format": "markers-v9", "head_dim": 32, "temperature": 1})");
  expect_error(run(), 1, "markers-v9");
}

TEST_F(WrongModel, Complaint55_TemperaturesThatAreNone) {
  for (const char* t : {"0", "-1", "\"hot\"", "1e999", "1e-320"}) {
    write("export.json",
          std::string(R"({"format": "markers-v3-plainchains", "head_dim": 32, "temperature": )") + t + "}");
    expect_error(run(), 1, "export.json");
  }
}

TEST(WrongModels, NoSuchFolder) {
  expect_error(ponder({"decide", "--model", "/nonexistent/model"}, question(R"("type": "noul")")), 1,
               "/nonexistent/model");
  expect_error(ponder({"info", "/dev/null"}), 1, "/dev/null");
}

}  // namespace
}  // namespace ponder::test
