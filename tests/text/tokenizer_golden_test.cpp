// Ids and texts as the reference implementations give them.
#include <gtest/gtest.h>

#include "text/data.hpp"
#include "text/normalize.hpp"

namespace ponder::text {
namespace {

using nlohmann::json;
using ponder::testing::Ids;
using ponder::testing::ids_of;
using ponder::testing::qwen3;
using ponder::testing::read_json;

TEST(TokenizerGolden, Qwen3) {
  const json cases = read_json("tokenizer/qwen3-golden.json");
  ASSERT_GE(cases.size(), 50U);
  for (const json& c : cases) {
    const auto text = c["text"].get<std::string>();
    const Ids ids = qwen3().encode(text, SpecialTokens::parse);
    EXPECT_EQ(ids, ids_of(c["ids"])) << c["text"];
    EXPECT_EQ(qwen3().decode(ids), normalize(text, NormalForm::nfc)) << c["text"];
  }
}

class TinyCheckpoint : public ::testing::TestWithParam<const char*> {
 protected:
  std::string folder_ = std::string("hybrid/tiny-") + GetParam();
  Tokenizer tokenizer_ = Tokenizer::load(ponder::testing::data_path(folder_));
  json cases_ = read_json(folder_ + "/cases-text.json");
};

TEST_P(TinyCheckpoint, EncodesAndDecodes) {
  for (const json& c : cases_["encode"]) {
    const Ids ids = ids_of(c["ids"]);
    EXPECT_EQ(tokenizer_.encode(c["text"].get<std::string>(), SpecialTokens::parse), ids) << c["text"];
    EXPECT_EQ(tokenizer_.decode(ids), c["decoded"].get<std::string>());
  }
  for (const json& c : cases_["decode_broken_utf8"]) {
    EXPECT_EQ(tokenizer_.decode(ids_of(c["ids"])), c["decoded"].get<std::string>()) << c["ids"];
  }
}

TEST_P(TinyCheckpoint, PromptsAndRemainders) {
  for (const json& c : cases_["prompts"]) {
    EXPECT_EQ(tokenizer_.encode(c["prompt_text"].get<std::string>(), SpecialTokens::parse),
              ids_of(c["prompt_ids"]));
    EXPECT_EQ(tokenizer_.encode(c["remainder_text"].get<std::string>(), SpecialTokens::parse),
              ids_of(c["remainder_ids"]));
  }
}

TEST_P(TinyCheckpoint, MarkersAndNames) {
  for (const auto& [name, id] : cases_["markers"].items()) {
    EXPECT_EQ(tokenizer_.id(name), id.get<std::int32_t>()) << name;
    EXPECT_EQ(tokenizer_.token(id.get<std::int32_t>()), name);
    EXPECT_TRUE(tokenizer_.is_added(id.get<std::int32_t>()));
  }
  Ids banned;
  for (const AddedToken& t : tokenizer_.added_tokens()) {
    if (t.content != "</think>") banned.push_back(t.id);
  }
  EXPECT_EQ(banned, ids_of(cases_["banned_ids"]));
  EXPECT_EQ(tokenizer_.encode("\n", SpecialTokens::none), ids_of(cases_["empty_think"]));
  const json config = read_json(folder_ + "/tokenizer_config.json");
  EXPECT_EQ(tokenizer_.pad_id(), tokenizer_.id(config["pad_token"].get<std::string>()));
  EXPECT_EQ(tokenizer_.eos_id(), tokenizer_.id(config["eos_token"].get<std::string>()));
  EXPECT_EQ(tokenizer_.chat_template(), ponder::testing::read_data(folder_ + "/chat_template.jinja"));
  EXPECT_EQ(tokenizer_.vocab_size(), tokenizer_.added_tokens().back().id + 1);
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, TinyCheckpoint, ::testing::Values("a", "b", "c", "d"));

class LoopedTokenizer : public ::testing::TestWithParam<const char*> {};

TEST_P(LoopedTokenizer, EncodesAndDecodes) {
  const std::string name = std::string("tokenizer/looped-") + GetParam();
  const Tokenizer t = Tokenizer::load(ponder::testing::data_path(name + ".json"));
  for (const json& c : read_json(name + "-cases.json")) {
    Ids ids = t.prefix_ids();
    const Ids plain = t.encode(c["text"].get<std::string>(), SpecialTokens::parse);
    ids.insert(ids.end(), plain.begin(), plain.end());
    ids.insert(ids.end(), t.suffix_ids().begin(), t.suffix_ids().end());
    EXPECT_EQ(plain, ids_of(c["ids_plain"])) << c["text"];
    EXPECT_EQ(ids, ids_of(c["ids"])) << c["text"];
    EXPECT_EQ(t.decode(ids), c["decoded"].get<std::string>());
    EXPECT_EQ(t.decode(ids, true), c["decoded_skip_special"].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, LoopedTokenizer, ::testing::Values("a", "b", "c"));

Tokenizer variant(const json& change) {
  json spec = ponder::testing::tiny_a_json();
  for (const auto& [key, value] : change.items()) {
    if (key == "added") {
      for (const json& token : value) spec["added_tokens"].push_back(token);
    } else {
      spec[key] = value;
    }
  }
  return Tokenizer::parse(spec.dump());
}

TEST(TokenizerGolden, Complaint30_31_IdsAreHuggingFaces) {
  const json file = read_json("tokenizer/hf-cases.json");
  std::size_t compared = 0;
  const auto compare = [&](const Tokenizer& t, const std::string& name) {
    for (const json& c : file["cases"]) {
      const auto text = c["text"].get<std::string>();
      EXPECT_EQ(t.encode(text, SpecialTokens::parse), ids_of(c["ids"][name])) << name << " " << c["text"];
      ++compared;
    }
  };
  for (const auto& [name, change] : file["variants"].items()) compare(variant(change), name);
  compare(qwen3(), "qwen3");
  EXPECT_GE(compared, 3000U);
}

TEST(TokenizerGolden, Complaint31_ComposedAndDecomposedAreTheSame) {
  const std::vector<std::pair<const char*, const char*>> pairs = {
      {"Caf\xC3\xA9", "Cafe\xCC\x81"},
      {"\xEA\xB0\x81", "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8"},  // Hangul: one syllable, three jamo
      {"\xCE\xA9", "\xE2\x84\xA6"},                              // omega, the ohm sign
      {"Vi\xE1\xBB\x87t", "Vie\xCC\xA3\xCC\x82t"}};
  for (const auto& [composed, other] : pairs) {
    const Ids ids = qwen3().encode(composed, SpecialTokens::parse);
    EXPECT_EQ(qwen3().encode(other, SpecialTokens::parse), ids) << composed;
    EXPECT_EQ(qwen3().encode(other, SpecialTokens::none), ids) << composed;
    EXPECT_EQ(qwen3().decode(ids), composed);
  }
  // NFC leaves compatibility characters alone.
  EXPECT_EQ(qwen3().decode(qwen3().encode("\xC2\xBD", SpecialTokens::none)), "\xC2\xBD");
}

}  // namespace
}  // namespace ponder::text
