// Prompts and remainders against the golden texts, and user text that looks like control tokens.
#include "decide/encoder.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "golden/support.hpp"

namespace ponder::test {
namespace {

using testing::HasSubstr;

decide::Question question_of(const Json& question) {
  const Json body = {{"state", ""}, {"questions", {{"q", question}}}};
  return decide::parse_request(decide::parse_json(body.dump())).questions[0];
}

std::string state_of(const Json& state) {
  return decide::state_text(decide::parse_json(state.dump()));
}

class Encoding : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Golden, Encoding, testing::Values("tiny-a", "tiny-b", "tiny-c", "tiny-d"),
                         [](const auto& test) { return std::string("tiny_") + test.param[5]; });

TEST_P(Encoding, PromptsAndRemainders) {
  const decide::Encoder encoder(golden_folder(GetParam()));
  const Json golden = read_json(golden_folder(GetParam()) / "cases-text.json");
  ASSERT_GE(golden["prompts"].size(), 10U);
  for (const Json& c : golden["prompts"]) {
    const decide::Question question = question_of(c["question"]);
    const std::string state = state_of(c["state"]);
    EXPECT_EQ(encoder.prompt_text(state, question), c["prompt_text"].get<std::string>());
    EXPECT_EQ(encoder.remainder_text(question), c["remainder_text"].get<std::string>());
    const auto encoded = encoder.encode(state, question);
    EXPECT_EQ(encoded.prompt, c["prompt_ids"].get<std::vector<std::int32_t>>());
    EXPECT_EQ(encoded.remainder, c["remainder_ids"].get<std::vector<std::int32_t>>());
  }
  EXPECT_EQ(encoder.empty_think(), golden["empty_think"].get<std::vector<std::int32_t>>());
}

TEST_P(Encoding, BannedIsEveryAddedTokenButTheThinkEnd) {
  const decide::Encoder encoder(golden_folder(GetParam()));
  const Json golden = read_json(golden_folder(GetParam()) / "cases-text.json");
  std::vector<std::int32_t> banned;
  for (std::size_t i = 0; i < encoder.banned().size() * 64; ++i) {
    if ((encoder.banned()[i / 64] >> (i % 64) & 1U) != 0) banned.push_back(static_cast<std::int32_t>(i));
  }
  EXPECT_EQ(banned, golden["banned_ids"].get<std::vector<std::int32_t>>());
  EXPECT_EQ(encoder.think_end(), golden["markers"]["</think>"].get<std::int32_t>());
}

// The public implementation lets a literal <think> or </think> of a state become the control token. Here it
// stays text: the prompt holds exactly one <think>, the template's, and no </think>, and everything else is
// unchanged.
TEST_P(Encoding, Complaint33_LiteralThinkTagsOfUsersStayText) {
  const decide::Encoder encoder(golden_folder(GetParam()));
  const auto& tokenizer = encoder.tokenizer();
  const Json golden = read_json(golden_folder(GetParam()) / "cases-literal-think.json");
  ASSERT_FALSE(golden["cases"].empty());
  const std::int32_t think = *tokenizer.id("<think>");
  for (const Json& c : golden["cases"]) {
    const Json& body = c["body"];
    const auto encoded =
        encoder.encode(state_of(body["state"]), question_of(body["questions"].begin().value()));
    EXPECT_EQ(std::count(encoded.prompt.begin(), encoded.prompt.end(), think), 1);
    EXPECT_EQ(std::count(encoded.prompt.begin(), encoded.prompt.end(), encoder.think_end()), 0);
    EXPECT_EQ(tokenizer.decode(encoded.prompt), c["prompt_text"].get<std::string>())
        << "the text itself is the same";
    EXPECT_NE(encoded.prompt, c["prompt_ids"].get<std::vector<std::int32_t>>()) << "the guard did something";
    EXPECT_EQ(encoded.remainder, c["remainder_ids"].get<std::vector<std::int32_t>>());
  }
}

// Every control token, everywhere a user can put text: the markers' places do not move.
TEST_P(Encoding, Complaint33_ControlTokensInUserTextMoveNoMarker) {
  const decide::Encoder encoder(golden_folder(GetParam()));
  const auto& tokenizer = encoder.tokenizer();
  for (const auto& token : tokenizer.added_tokens()) {
    const std::string text = "a" + token.content + token.content + " b";
    const Json questions[] = {
        {{"type", "choice"}, {"instructions", text}, {"criteria", {{text, text}, {"plain", nullptr}}}},
        {{"type", "noul"},
         {"instructions", {{text, {text, text}}}},
         {"criteria", {{"true", text}, {"false", text}}}},
        {{"type", "score"}, {"criteria", {text, "x", token.content}}}};
    for (const Json& q : questions) {
      SCOPED_TRACE(token.content + " in " + q.dump());
      const decide::Question question = question_of(q);
      const auto encoded = encoder.encode(state_of({{text, text}, {"list", {text}}}), question);
      const std::size_t options = decide::option_count(question);
      const auto count = [&](const std::vector<std::int32_t>& ids, const char* marker) {
        return static_cast<std::size_t>(std::count(ids.begin(), ids.end(), *tokenizer.id(marker)));
      };
      EXPECT_EQ(count(encoded.prompt, "<|fim_prefix|>"), 1U);
      EXPECT_EQ(count(encoded.prompt, "<|fim_middle|>"), 1U);
      EXPECT_EQ(count(encoded.prompt, "<|fim_suffix|>"), 0U);
      EXPECT_EQ(count(encoded.prompt, "<|box_start|>"), options);
      EXPECT_EQ(count(encoded.prompt, "<|box_end|>"), options);
      EXPECT_EQ(count(encoded.prompt, "</think>"), 0U);
      EXPECT_EQ(count(encoded.remainder, "<|box_end|>"), options);
      EXPECT_EQ(count(encoded.remainder, "</think>"), 1U);
      EXPECT_EQ(encoded.option_ends.size(), options);
      for (const std::size_t at : encoded.option_ends)
        EXPECT_EQ(encoded.remainder[at], *tokenizer.id("<|box_end|>"));
    }
  }
}

// ---- folders that are not quite right
// -----------------------------------------------------------------------

class BrokenFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("ponder-encoder-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}) {
      std::filesystem::copy(golden_folder("tiny-a") / name, folder_);
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  // What goes wrong when a question is encoded.
  std::string refusal() const {
    try {
      const decide::Encoder encoder(folder_);
      encoder.encode("state", question_of({{"type", "noul"}}));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  std::filesystem::path folder_;
};

TEST_F(BrokenFolder, TheUnchangedCopyWorks) {
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(BrokenFolder, ATemplateThatDoesNotOpenAThinkIsRefused) {
  write("chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}<|im_start|>assistant\n");
  EXPECT_THAT(refusal(), HasSubstr("<think>"));
}

TEST_F(BrokenFolder, ATemplateThatDropsTheMessageIsRefused) {
  write("chat_template.jinja", "hello {{ '<think>\n' }}");
  EXPECT_THAT(refusal(), HasSubstr("state"));
}

TEST_F(BrokenFolder, ATemplateThatRepeatsTheMessageIsRefused) {
  write("chat_template.jinja", "{{ messages[0].content }}{{ messages[0].content }}{{ '<think>\n' }}");
  EXPECT_NE(refusal(), "accepted");
}

TEST_F(BrokenFolder, UserTextCannotStandInForTheThinkOfATemplate) {
  write("chat_template.jinja", "<|im_start|>{{ messages[0].content }}");
  EXPECT_NE(refusal(), "accepted");
}

TEST_F(BrokenFolder, NoTemplateIsRefused) {
  std::filesystem::remove(folder_ / "chat_template.jinja");
  EXPECT_THAT(refusal(), HasSubstr("chat template"));
}

TEST_F(BrokenFolder, AMissingMarkerIsNamed) {
  std::string text = read_text(golden_folder("tiny-a") / "tokenizer.json");
  const std::string marker = "<|box_end|>";
  for (std::size_t at = text.find(marker); at != std::string::npos; at = text.find(marker)) {
    text.replace(at, marker.size(), "<|box_xyz|>");
  }
  write("tokenizer.json", text);
  write("tokenizer_config.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr(marker));
}

}  // namespace
}  // namespace ponder::test
