#include "decide/python_format.hpp"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "decide/json_write.hpp"
#include "support.hpp"

namespace ponder::decide {
namespace {

TEST(PythonFormat, FloatsAndRoundingEqualCPython) {
  std::istringstream in(test::read_text("decide/python-floats.txt"));
  std::string line;
  int count = 0;
  while (std::getline(in, line)) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string bits, repr, two, six;
    fields >> bits >> repr >> two >> six;
    std::uint64_t word = 0;
    std::from_chars(bits.data(), bits.data() + bits.size(), word, 16);
    const auto x = std::bit_cast<double>(word);
    ASSERT_EQ(python_float(x), repr);
    ASSERT_EQ(python_float(python_round(x, 2)), two) << repr;
    ASSERT_EQ(python_float(python_round(x, 6)), six) << repr;
    ++count;
  }
  EXPECT_GE(count, 2000);
}

TEST(PythonFormat, NotFinite) {
  EXPECT_EQ(python_float(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(python_float(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(python_float(std::nan("")), "nan");
  EXPECT_THROW(python_round(std::nan(""), 2), Error);
  EXPECT_THROW(python_round(1.0, 18), Error);
  EXPECT_THROW(python_round(1.0, -1), Error);
}

TEST(PythonFormat, RoundKeepsWhatNeedsNoRounding) {
  EXPECT_EQ(python_round(std::numeric_limits<double>::max(), 17), std::numeric_limits<double>::max());
  EXPECT_EQ(python_round(0.1, 17), 0.1);
  EXPECT_TRUE(std::signbit(python_round(-0.001, 2)));
}

TEST(PythonFormat, ReprEqualsCPython) {
  const Value cases = test::read_json("decide/python-repr.json");
  EXPECT_GE(test::items(cases).size(), 70U);
  for (const Value& c : test::items(cases)) {
    EXPECT_EQ(python_repr(test::text(test::at(c, "text"))), test::text(test::at(c, "repr")));
  }
}

TEST(PythonFormat, ReprOfLongOrBrokenText) {
  EXPECT_EQ(python_repr(std::string(1000, 'a'), 5), "'aaaaa'...");
  EXPECT_EQ(python_repr("aé", 2), "'a'...");  // never half a character
  EXPECT_EQ(python_repr("\xFF\xC3"), "'\\xff\\xc3'");
}

TEST(PythonFormat, SortedNames) {
  EXPECT_EQ(python_repr_sorted({"b", "a'", "B", "é", "\U0001F600", "\uFFFD", ""}),
            "['', 'B', \"a'\", 'b', 'é', '\uFFFD', '\U0001F600']");
  EXPECT_EQ(python_repr_sorted({}), "[]");
  const std::vector<std::string_view> many(1000, "x");
  EXPECT_TRUE(python_repr_sorted(many).ends_with("'x', ...]"));
}

TEST(JsonWrite, DumpsEqualsCPython) {
  const Value cases = test::read_json("decide/python-json.json");
  for (const Value& c : test::items(test::at(cases, "cases"))) {
    const std::string& json = test::text(test::at(c, "json"));
    EXPECT_EQ(write_python_json(parse_json(json)), test::text(test::at(c, "dumps"))) << json;
  }
}

TEST(JsonWrite, Utf8) {
  const Value v = parse_json(
      R"({"a":[1,2.50,{"é":"\u00e9\ud83d\ude00\u0000\u001f\"\\\/\b\f\n\r\t\u007f"}],"b":{},"c":[]})");
  EXPECT_EQ(write_json(v),
            "{\"a\":[1,2.5,{\"é\":\"é😀\\u0000\\u001f\\\"\\\\/\\b\\f\\n\\r\\t\x7f\"}],\"b\":{},\"c\":[]}");
  EXPECT_EQ(write_json(parse_json(R"({"a":[1,{"b":null}],"c":[]})"), 2),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": []\n}");
}

TEST(JsonWrite, BrokenUtf8BecomesReplacementCharacters) {
  const Value v(std::string("a\xC3(\xFF\xED\xA0\x80z"));
  EXPECT_EQ(write_json(v), "\"a\uFFFD(\uFFFD\uFFFD\uFFFD\uFFFDz\"");
  EXPECT_EQ(write_python_json(v), "\"a\\ufffd(\\ufffd\\ufffd\\ufffd\\ufffdz\"");
}

TEST(JsonWrite, RefusesWhatJsonCannotHold) {
  EXPECT_THROW(write_json(Value(std::nan(""))), Error);
  EXPECT_THROW(write_python_json(Value(std::numeric_limits<double>::infinity())), Error);
  Value deep;
  for (int i = 0; i < 101; ++i) deep = Value(Array{deep});
  EXPECT_EQ(test::failure_of([&] { write_json(deep); })->kind, ErrorKind::too_large);
}

}  // namespace
}  // namespace ponder::decide
