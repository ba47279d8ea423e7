// Files that are damaged, hostile or ask for what is not handled: one clear line, by name.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "text/data.hpp"

namespace ponder::text {
namespace {

using nlohmann::json;
using ponder::testing::Ids;
using ponder::testing::tiny_a_json;

void expect_error(const std::string& text, ErrorKind kind, const std::string& named,
                  const std::string& config = {}) {
  try {
    Tokenizer::parse(text, config);
    ADD_FAILURE() << "accepted; expected: " << named;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(named), std::string::npos) << e.what() << "\nexpected: " << named;
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    EXPECT_LT(std::string(e.what()).size(), 1000U);
  }
}

// tiny-a's file with the value at a JSON pointer replaced.
std::string with(const std::string& pointer, const json& value) {
  json spec = tiny_a_json();
  spec[json::json_pointer(pointer)] = value;
  return spec.dump();
}

TEST(TokenizerFile, WhatIsNotHandledIsRefusedByName) {
  const auto refused = [](const std::string& pointer, const json& value, const std::string& named) {
    expect_error(with(pointer, value), ErrorKind::unsupported, named);
  };
  refused("/model/type", "Unigram", "Unigram");
  refused("/model/dropout", 0.1, "dropout");
  refused("/model/continuing_subword_prefix", "##", "continuing_subword_prefix");
  refused("/model/end_of_word_suffix", "</w>", "end_of_word_suffix");
  refused("/model/new_switch", true, "new_switch");
  refused("/version", "2.0", "version");
  refused("/normalizer", {{"type", "Lowercase"}}, "Lowercase");
  refused("/normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, {{"type", "Strip"}}}}},
          "normalizers[1]");
  refused("/normalizer", {{"type", "NFC"}, {"extra", 1}}, "extra");
  refused("/pre_tokenizer", {{"type", "Metaspace"}}, "Metaspace");
  refused("/pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", true}}, "add_prefix_space");
  refused("/pre_tokenizer/pretokenizers/0/behavior", "Removed", "Removed");
  refused("/pre_tokenizer/pretokenizers/0/invert", true, "invert");
  refused("/pre_tokenizer/pretokenizers/0/pattern", {{"Regex", "\\w+|."}}, "\\w");
  refused("/pre_tokenizer/pretokenizers", json::array({tiny_a_json()["pre_tokenizer"]["pretokenizers"][0]}),
          "ByteLevel");
  refused("/decoder", {{"type", "WordPiece"}}, "WordPiece");
  refused("/post_processor", {{"type", "BertProcessing"}}, "BertProcessing");
}

TEST(TokenizerFile, Complaint30_UnknownPatternIsRefusedNotGuessed) {
  expect_error(with("/pre_tokenizer/pretokenizers/0/pattern", {{"Regex", "(?<word>\\p{L}+)|\\X"}}),
               ErrorKind::unsupported, "split pattern");
  // And one that PCRE2 can run is run as written: letters one by one.
  const Tokenizer t = Tokenizer::parse(with("/pre_tokenizer/pretokenizers/0/pattern", {{"Regex", "\\p{L}"}}));
  EXPECT_EQ(t.encode("the", SpecialTokens::none).size(), 3U);
  EXPECT_EQ(ponder::testing::tiny_a().encode(" the", SpecialTokens::none).size(), 1U);
}

TEST(TokenizerFile, DamagedFiles) {
  const auto bad = [](const std::string& pointer, const json& value, const std::string& named) {
    expect_error(with(pointer, value), ErrorKind::bad_file, named);
  };
  expect_error("", ErrorKind::bad_file, "JSON");
  expect_error("[]", ErrorKind::bad_file, "object");
  expect_error("{}", ErrorKind::bad_file, "model");
  expect_error("{\"model\":{\"vocab\":{\"a\":\xFF}}}", ErrorKind::bad_file, "JSON");
  expect_error("{\"model\":{\"vocab\":{\"\\ud800\":1}}}", ErrorKind::bad_file, "JSON");
  const std::string whole = tiny_a_json().dump();
  for (const std::size_t n : {std::size_t{1}, whole.size() / 10, whole.size() / 2, whole.size() - 1}) {
    expect_error(whole.substr(0, n), ErrorKind::bad_file, "JSON");
  }
  expect_error(std::string(100000, '['), ErrorKind::bad_file, "deep");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  expect_error(deep, ErrorKind::bad_file, "deep");
  bad("/model/vocab", json::array(), "vocab");
  bad("/model/vocab", json::object(), "vocab");
  bad("/model/vocab/a", -1, "'a'");
  bad("/model/vocab/a", 1.5, "'a'");
  bad("/model/vocab/a", "x", "'a'");
  bad("/model/vocab/a", json::object(), "'a'");
  bad("/model/vocab/a", 99999999999999, "out of range");
  bad("/model/vocab/zzz", 2147483646, "out of range");
  bad("/model/vocab/zzz", 5000000, "out of range");
  bad("/model/vocab/zzz", 7, "token id 7");
  bad("/model/vocab/", 600, "nothing");
  bad("/model/merges", 3, "merges");
  bad("/model/merges/0", "a", "merge 0");
  bad("/model/merges/0", "a b c", "merge 0");
  bad("/model/merges/1", json::array({"a"}), "merge 1");
  bad("/model/merges/1", json::array({"a", "b", "c"}), "merge 1");
  bad("/model/merges/1", json::array({"a", 3}), "merge 1");
  bad("/model/merges/1", json::array({"a", json::array({"b"})}), "merge 1");
  bad("/model/merges/2", {{"a", "b"}}, "merge 2");
  bad("/model/merges/5", json::array({"q", "nosuch"}), "nosuch");
  bad("/model/merges/5", json::array({"z", "q"}), "zq");
  bad("/model/merges/5", tiny_a_json()["model"]["merges"][0], "twice");
  bad("/added_tokens/0/id", -1, "id");
  bad("/added_tokens/0/id", 3, "token id 3");
  bad("/added_tokens/0/content", "The", "'The'");
  bad("/added_tokens/0/content", "", "no text");
  bad("/added_tokens/0/content", 7, "content");
  bad("/added_tokens/1/id", tiny_a_json()["added_tokens"][0]["id"], "twice");
  bad("/added_tokens/0/special", "yes", "special");
  bad("/added_tokens", json::object(), "added_tokens");
  bad("/pre_tokenizer", nullptr, "pre_tokenizer");
  bad("/post_processor",
      {{"type", "TemplateProcessing"},
       {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
       {"special_tokens", {{"<s>", {{"ids", {7777}}}}}}},
      "7777");
}

TEST(TokenizerFile, DoubledKeysAreRefused) {
  const std::string head = R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[],)";
  expect_error(head + R"("vocab":{"b":1}}})", ErrorKind::bad_file, "twice");
  expect_error(head + R"("type":"BPE"}})", ErrorKind::bad_file, "twice");
  std::string text = tiny_a_json().dump();
  const std::string a = "\"a\":" + tiny_a_json()["model"]["vocab"]["a"].dump();
  ASSERT_NE(text.find(a), std::string::npos);
  text.replace(text.find(a), a.size(), a + ",\"a\":700");
  expect_error(text, ErrorKind::bad_file, "two ids");
}

TEST(TokenizerFile, NotByteLevelIsRefused) {
  json spec = tiny_a_json();
  spec["model"]["vocab"].erase("\xC4\xA0");  // the blank's letter
  spec["model"]["merges"] = json::array();
  expect_error(spec.dump(), ErrorKind::unsupported, "0x20");
  // A letter that is an added token as well would let ordinary text become it.
  spec = tiny_a_json();
  spec["added_tokens"][0]["content"] = "a";
  spec["added_tokens"][0]["id"] = spec["model"]["vocab"]["a"];
  expect_error(spec.dump(), ErrorKind::unsupported, "0x61");
}

TEST(TokenizerFile, LongAddedTokenIsRefused) {
  expect_error(with("/added_tokens/0/content", std::string(513, 'x')), ErrorKind::too_large, "513");
  EXPECT_NO_THROW(Tokenizer::parse(with("/added_tokens/0/content", std::string(512, 'x'))));
}

TEST(TokenizerFile, OrdinaryVariationsMeanTheSame) {
  const Tokenizer& plain = ponder::testing::tiny_a();
  json spec = tiny_a_json();
  json merges = json::array();
  for (const json& m : spec["model"]["merges"]) {
    merges.push_back(m[0].get<std::string>() + " " + m[1].get<std::string>());
  }
  spec["model"]["merges"] = merges;
  spec["model"].erase("type");
  spec["model"]["dropout"] = 0.0;
  spec["model"]["unk_token"] = "";
  spec["model"]["byte_fallback"] = true;
  spec["truncation"] = {{"max_length", 2}};
  spec.erase("decoder");
  spec.erase("version");
  spec["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array({{{"type", "NFC"}}})}};
  const std::string text = "The customer asks for a <think> e\xCC\x81, \xE4\xB8\xAD";
  EXPECT_EQ(Tokenizer::parse(spec.dump()).encode(text, SpecialTokens::parse),
            plain.encode(text, SpecialTokens::parse));
}

TEST(TokenizerConfig, AddsTokensAndNames) {
  const std::string config = R"({"added_tokens_decoder":{"900":{"content":"<|new|>","special":true}},
    "eos_token":{"content":"<|im_end|>"},"bos_token":null,"pad_token":"<|new|>",
    "chat_template":[{"name":"tool_use","template":"T"},{"name":"default","template":"D"}]})";
  const Tokenizer t = Tokenizer::parse(tiny_a_json().dump(), config);
  EXPECT_EQ(t.id("<|new|>"), 900);
  EXPECT_EQ(t.vocab_size(), 901);
  EXPECT_EQ(t.encode("<|new|>", SpecialTokens::parse), Ids{900});
  EXPECT_EQ(t.eos_id(), t.id("<|im_end|>"));
  EXPECT_EQ(t.bos_id(), std::nullopt);
  EXPECT_EQ(t.pad_id(), 900);
  EXPECT_EQ(t.chat_template(), "D");
  EXPECT_EQ(t.chat_templates().size(), 2U);
  EXPECT_EQ(t.token(899), std::nullopt);
  EXPECT_EQ(t.token(901), std::nullopt);
  EXPECT_EQ(t.token(-1), std::nullopt);
  EXPECT_EQ(t.bytes(899), "");
  EXPECT_EQ(t.decode(Ids{899, -5, 900, 1 << 30}), "<|new|>");
  EXPECT_EQ(t.decode(Ids{900}, true), "");
  EXPECT_EQ(Tokenizer::parse(tiny_a_json().dump(), config, "J").chat_template(), "J");
  EXPECT_EQ(Tokenizer::parse(tiny_a_json().dump()).chat_template(), "");
  EXPECT_EQ(Tokenizer::parse(tiny_a_json().dump(), R"({"chat_template":"P"})").chat_template(), "P");
}

TEST(TokenizerConfig, DisagreementIsRefused) {
  const std::string text = tiny_a_json().dump();
  const std::string id = tiny_a_json()["added_tokens"][0]["id"].dump();
  expect_error(text, ErrorKind::bad_file, "<|other|>",
               R"({"added_tokens_decoder":{")" + id + R"(":{"content":"<|other|>"}}})");
  expect_error(text, ErrorKind::bad_file, "not a token id",
               R"({"added_tokens_decoder":{"1x":{"content":"a"}}})");
  expect_error(text, ErrorKind::bad_file, "out of range",
               R"({"added_tokens_decoder":{"2000000000":{"content":"<x>"}}})");
  expect_error(text, ErrorKind::bad_file, "eos_token", R"({"eos_token":5})");
  expect_error(text, ErrorKind::bad_file, "tokenizer_config.json", "{");
}

TEST(TokenizerFile, LoadsFromFolderOrFileAndNamesWhatIsMissing) {
  const std::string folder = ponder::testing::data_path("hybrid/tiny-b");
  EXPECT_EQ(Tokenizer::load(folder).chat_template(),
            Tokenizer::load(folder + "/tokenizer.json").chat_template());
  for (const std::string& path : {ponder::testing::data_path("tokenizer"), folder + "/none.json"}) {
    try {
      Tokenizer::load(path);
      FAIL() << path;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::bad_file);
      EXPECT_NE(std::string(e.what()).find(".json"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace ponder::text
