#include "base/error.hpp"

#include <string>

#include <gtest/gtest.h>

namespace ponder {
namespace {

TEST(Error, CarriesItsKindAndOneLine) {
  try {
    fail(ErrorKind::too_large, "{} tokens, {} allowed", 12, 10);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::too_large);
    EXPECT_STREQ(error.what(), "12 tokens, 10 allowed");
  }
}

TEST(Printable, KeepsTextAndShowsTheRest) {
  EXPECT_EQ(printable("plain \xc3\xa9 \xf0\x9f\xab\xa0"), "plain \xc3\xa9 \xf0\x9f\xab\xa0");
  EXPECT_EQ(printable("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f");
  EXPECT_EQ(printable("\xc2\x85\xe2\x80\xa8"), "\\xc2\\x85\\xe2\\x80\\xa8");  // NEL, LINE SEPARATOR
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");                             // never starts, never ends
  EXPECT_EQ(printable("\xc0\xaf\xed\xa0\x80"), "\\xc0\\xaf\\xed\\xa0\\x80");  // overlong, surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");           // past U+10FFFF
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 5), "abcde...");
  EXPECT_EQ(printable("abcd\xc3\xa9", 5), "abcd...");
}

}  // namespace
}  // namespace ponder

namespace ponder {
namespace {

TEST(Printable, MarksThatTurnTheReadingOrderAreSpelledOut) {
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b"),
            "a\\xe2\\x80\\xaeb");                           // U+202E
  EXPECT_EQ(printable("\xE2\x81\xA6"), "\\xe2\\x81\\xa6");  // U+2066
  EXPECT_EQ(printable("\xE2\x80\x8F"), "\\xe2\\x80\\x8f");  // U+200F
  EXPECT_EQ(printable("\xE2\x80\x93"), "\xE2\x80\x93") << "an en dash is a letter like any other";
}

}  // namespace
}  // namespace ponder
