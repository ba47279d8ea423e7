#include "text/splitter.hpp"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.hpp"
#include "text/char_class.hpp"
#include "text/data.hpp"

namespace ponder::text {
namespace {

std::vector<std::string> pieces(const Splitter& splitter, std::string_view text) {
  std::vector<std::uint32_t> ends;
  splitter.split(text, 0, static_cast<std::uint32_t>(text.size()), ends);
  std::vector<std::string> out;
  std::uint32_t begin = 0;
  for (const std::uint32_t end : ends) {
    out.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return out;
}

// The patterns that the variants of the Hugging Face cases name, and have a hand-written splitter.
std::vector<std::string> known_patterns() {
  std::vector<std::string> out = {std::string(kByteLevelPattern)};
  const auto variants = ponder::testing::read_json("tokenizer/hf-cases.json")["variants"];
  for (const char* name : {"qwen2", "llama3", "cased", "o200k"}) {
    out.push_back(variants[name]["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]);
  }
  out.push_back(ponder::testing::tiny_a_json()["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]);
  return out;
}

rc::Gen<std::string> text_of_all_classes() {
  static const std::vector<std::string> parts = {" ",
                                                 " ",
                                                 "\n",
                                                 "\r",
                                                 "\t",
                                                 "\xC2\xA0",
                                                 "\xE3\x80\x80",
                                                 "\xC2\x85",
                                                 "a",
                                                 "b",
                                                 "Z",
                                                 "Q",
                                                 "'",
                                                 "'s",
                                                 "'S",
                                                 "'L",
                                                 "'\xC5\xBF",
                                                 "'re",
                                                 "'Ll",
                                                 "'t",
                                                 "1",
                                                 "2",
                                                 "9",
                                                 "\xC2\xBD",
                                                 "!",
                                                 ".",
                                                 "/",
                                                 "-",
                                                 "\xCC\x81",
                                                 "\xCC\xA3",
                                                 "\xE0\xA4\xBE",
                                                 "\xE4\xB8\xAD",
                                                 "\xC7\x85",
                                                 "\xCA\xB0",
                                                 "\xE0\xA4\xA8",
                                                 "\xF0\x9F\x98\x80",
                                                 "\xE2\x80\x8D",
                                                 "\xE2\x80\x8B",
                                                 "\xD0\x9F",
                                                 "\xD1\x80",
                                                 "_",
                                                 "\x01",
                                                 "ed",
                                                 "Er"};
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(parts)),
                      [](const std::vector<std::string>& list) {
                        std::string text;
                        for (const std::string& part : list) text += part;
                        return text;
                      });
}

RC_GTEST_PROP(Splitter, Complaint30_HandWrittenEqualsTheRegexEngine, ()) {
  static const std::vector<std::string> patterns = known_patterns();
  const std::string text = *text_of_all_classes();
  for (const std::string& pattern : patterns) {
    const auto known = make_known_splitter(pattern);
    RC_ASSERT(known != nullptr);
    const auto engine = make_pattern_splitter(pattern);
    RC_ASSERT(pieces(*known, text) == pieces(*engine, text));
  }
}

TEST(Splitter, SeesOnlyItsRange) {
  const auto known = make_known_splitter(kByteLevelPattern);
  const auto engine = make_pattern_splitter(kByteLevelPattern);
  const std::string text = "ab  cd";
  for (const Splitter* s : {known.get(), engine.get()}) {
    std::vector<std::uint32_t> ends = {77};
    s->split(text, 1, 4, ends);  // "b  ": the blanks are at the end here
    EXPECT_EQ(ends, (std::vector<std::uint32_t>{77, 2, 4}));
  }
}

TEST(Splitter, SpaceIsWhiteSpaceAndNothingElse) {
  // The 25 code points with the property White_Space (PropList.txt, unchanged since Unicode 6.3).
  std::set<char32_t> wanted = {0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  for (char32_t c = 9; c <= 13; ++c) wanted.insert(c);
  for (char32_t c = 0x2000; c <= 0x200A; ++c) wanted.insert(c);
  const auto engine = make_pattern_splitter("\\s+");
  const auto not_engine = make_pattern_splitter("[^\\S]+");
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    ASSERT_EQ((class_of_code_point(c) & kSpace) != 0, wanted.contains(c)) << unsigned{c};
    if (c > 0x3100) continue;
    std::string text = "x";
    append_code_point(text, c);
    ASSERT_EQ(pieces(*engine, text).size(), wanted.contains(c) ? 2U : 1U) << unsigned{c};
    ASSERT_EQ(pieces(*not_engine, text).size(), wanted.contains(c) ? 2U : 1U) << unsigned{c};
  }
}

TEST(Splitter, Complaint30_MarksAreLettersOnlyWhereThePatternSaysSo) {
  const auto patterns = known_patterns();
  const std::string text =
      "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8\xE0\xA5\x8D\xE0\xA4\xA4\xE0\xA5\x87";  // namaste
  EXPECT_EQ(pieces(*make_known_splitter(patterns.back()), text).size(), 1U);
  EXPECT_EQ(pieces(*make_known_splitter(patterns[1]), text).size(), 3U);
}

TEST(PatternSplitter, MatchesLongerThanAnyWindow) {
  const auto s = make_pattern_splitter("a+b|x+(?!y)|.");
  const std::string a(5000, 'a');
  const std::string x(3000, 'x');
  EXPECT_EQ(pieces(*s, a + "b" + x + "y"), (std::vector<std::string>{a + "b", x.substr(1), "x", "y"}));
}

TEST(PatternSplitter, FindsMatchesFarApart) {
  const auto s = make_pattern_splitter("b+");
  const std::string a(1000, 'a');
  EXPECT_EQ(pieces(*s, a + "bb" + a + "b"), (std::vector<std::string>{a, "bb", a, "b"}));
  EXPECT_EQ(pieces(*s, a), (std::vector<std::string>{a}));
}

TEST(PatternSplitter, Complaint29_RescanningIsStoppedByALimit) {
  // Every match looks at the whole rest of the text: quadratic, so over the limit on a long text only.
  const auto s = make_pattern_splitter("a++b|a");
  EXPECT_EQ(pieces(*s, std::string(100, 'a')).size(), 100U);
  try {
    pieces(*s, std::string(300000, 'a'));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::too_large);
    EXPECT_NE(std::string(e.what()).find("limit"), std::string::npos) << e.what();
  }
}

TEST(PatternSplitter, EndlessBacktrackingIsStoppedByALimit) {
  const auto s = make_pattern_splitter("(?:a|a|aa)+c|b");
  try {
    pieces(*s, std::string(2000, 'a') + "b");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::too_large);
    EXPECT_NE(std::string(e.what()).find("limit"), std::string::npos) << e.what();
  }
}

TEST(PatternSplitter, Complaint30_WhatTheEnginesReadDifferentlyIsRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> refused = {{"\\w+", "\\w"},
                                                                    {"\\h", "\\h"},
                                                                    {"a\\b", "\\b"},
                                                                    {"\\R", "\\R"},
                                                                    {"\\X", "\\X"},
                                                                    {"^a", "'^'"},
                                                                    {"[a&&b]", "a class"},
                                                                    {"[[:alpha:]]", "a class"},
                                                                    {"(?i)a", "(?i"},
                                                                    {"(?<n>a)", "(?<"},
                                                                    {"a{,3}", "repeat"},
                                                                    {"a{2}+", "sign"},
                                                                    {"a{2", "'{'"},
                                                                    {"(?i:ra\xC3\x9F)", "ASCII"},
                                                                    {"(?i:ss)", "fold"},
                                                                    {"(?i:\\p{L})", "\\p"},
                                                                    {"\\p{Alphabetic", "\\p"},
                                                                    {"(a", "'('"},
                                                                    {"a)", "')'"},
                                                                    {"[a", "'['"},
                                                                    {"a\\", "'\\'"},
                                                                    {"*a", "repeat"},
                                                                    {"a***", "repeat"},
                                                                    {"(*UTF)a", "(*U"},
                                                                    {"\\xE9", "character number"},
                                                                    {"\\1", "\\1"},
                                                                    {"\\v", "\\v"},
                                                                    {"[\\d-z]", "range"},
                                                                    {"(?#c)a", "(?#"},
                                                                    {"\\p{NoSuchScript}", "PCRE2"},
                                                                    {"a*", "nothing"},
                                                                    {"(?=a)", "nothing"},
                                                                    {"", "nothing"},
                                                                    {"[]a]", "empty class"}};
  for (const auto& [pattern, named] : refused) {
    try {
      make_pattern_splitter(pattern);
      FAIL() << pattern;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::unsupported) << pattern;
      EXPECT_NE(std::string(e.what()).find(named), std::string::npos) << pattern << ": " << e.what();
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_THROW(make_pattern_splitter(std::string(60, '(') + "a" + std::string(60, ')')), Error);
  EXPECT_THROW(make_pattern_splitter(std::string(5000, 'a')), Error);
}

TEST(PatternSplitter, LiteralStringsAreNotPatterns) {
  const auto s = make_pattern_splitter("a.b", true);
  EXPECT_EQ(pieces(*s, "xa.baxb"), (std::vector<std::string>{"x", "a.b", "axb"}));
}

}  // namespace
}  // namespace ponder::text
