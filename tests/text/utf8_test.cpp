#include "text/utf8.hpp"

#include <gtest/gtest.h>

#include "text/data.hpp"

namespace ponder::text {
namespace {

std::string unhex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

TEST(Utf8, BrokenBytesBecomeWhatPythonMakesOfThem) {
  const auto cases = ponder::testing::read_json("tokenizer/utf8.json");
  ASSERT_GE(cases.size(), 500U);
  for (const auto& c : cases) {
    const std::string raw = unhex(c[0].get<std::string>());
    EXPECT_EQ(repair_utf8(raw), c[1].get<std::string>()) << c[0];
    EXPECT_EQ(valid_utf8_prefix(raw) == raw.size(), repair_utf8(raw) == raw) << c[0];
  }
}

TEST(Utf8, EveryCodePointGoesThroughAndBack) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string s;
    append_code_point(s, c);
    ASSERT_EQ(valid_utf8_prefix(s), s.size()) << static_cast<unsigned>(c);
    std::size_t length = 0;
    ASSERT_EQ(decode_valid(s.data(), length), c);
    ASSERT_EQ(length, s.size());
    ASSERT_EQ(previous_start(s, s.size()), 0U);
  }
}

TEST(Utf8, SurrogatesAndBeyondAreBroken) {
  EXPECT_EQ(scan_utf8("\xED\xA0\x80").kind, Utf8Part::Kind::broken);
  EXPECT_EQ(scan_utf8("\xF4\x90\x80\x80").kind, Utf8Part::Kind::broken);
  EXPECT_EQ(scan_utf8("\xF0\x9F\x98").kind, Utf8Part::Kind::cut);
  EXPECT_EQ(scan_utf8("\xF0\x9F\x98").length, 3U);
}

}  // namespace
}  // namespace ponder::text
