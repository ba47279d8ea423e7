// Values from code and from JSON.
#include <limits>

#include <gtest/gtest.h>

#include "text/template_fixtures.hpp"

namespace ponder::text::jinja {
namespace {

using Kind = Value::Kind;

std::string shown(const Value& value) {
  return outcome("{{ v }}", Value::dict({{"v", value}}));
}

TEST(TemplateValue, BuildsPythonsValues) {
  EXPECT_EQ(shown(nullptr), "None");
  EXPECT_EQ(shown(true), "True");
  EXPECT_EQ(shown(-3), "-3");
  EXPECT_EQ(shown(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(shown(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(shown(1.0), "1.0");
  EXPECT_EQ(shown("text"), "text");
  EXPECT_EQ(shown(Value()), "");
  EXPECT_EQ(shown(Value::list({1, "a", Value::tuple({2.5})})), "[1, 'a', (2.5,)]");
  EXPECT_EQ(shown(Value::dict({{"b", 1}, {"a", 2}, {"b", 3}})), "{'b': 3, 'a': 2}");
  EXPECT_EQ(shown(Value::big_integer("-00123456789012345678901234567890")),
            "-123456789012345678901234567890");
  EXPECT_EQ(Value::big_integer("0009").kind(), Kind::integer);
  EXPECT_EQ(Value::big_integer("-9223372036854775808").as_integer(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Value::big_integer("9223372036854775808").kind(), Kind::big_integer);
  EXPECT_THROW(Value::big_integer("12a"), Error);
  EXPECT_THROW(Value::big_integer("-"), Error);
}

TEST(TemplateValue, CopiesDoNotSeeLaterChanges) {
  Value dict = Value::dict({{"a", 1}});
  const Value before = dict;
  dict.set("b", 2);
  EXPECT_TRUE(before.get("b").is_undefined());
  EXPECT_EQ(dict.get("b").as_integer(), 2);
  Value list = Value::list({1});
  const Value one = list;
  list.push_back(2);
  EXPECT_EQ(one.items().size(), 1U);
  EXPECT_EQ(list.items().size(), 2U);
}

TEST(TemplateValue, LargeDictsFindEveryKeyAndKeepOrder) {
  Value dict = Value::dict();
  for (int i = 0; i < 1000; ++i) dict.set("k" + std::to_string(i * 7919 % 1000), i);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(dict.get("k" + std::to_string(i * 7919 % 1000)).as_integer(), i);
    ASSERT_EQ(dict.entries()[static_cast<std::size_t>(i)].second.as_integer(), i);
  }
  EXPECT_TRUE(dict.get("k1000").is_undefined());
}

TEST(TemplateValue, ReadingTheWrongKindIsAUsageError) {
  const Value text("x");
  EXPECT_THROW(text.as_integer(), Error);
  EXPECT_THROW(text.items(), Error);
  EXPECT_THROW(text.get("k"), Error);
  EXPECT_THROW(Value(1).as_string(), Error);
  EXPECT_THROW(Value(1).segments(), Error);
}

TEST(TemplateJson, KeepsOrderDigitsAndKinds) {
  const Value value = parse_json(
      R"({"z": 1, "a": [null, true, -0, 1.0, 1e3, 12345678901234567890123], "s": "\u00e9\ud83d\ude00\u0000", "z": 2})");
  EXPECT_EQ(shown(value.get("a")), "[None, True, 0, 1.0, 1000.0, 12345678901234567890123]");
  EXPECT_EQ(value.entries()[0].first.as_string(), "z");
  EXPECT_EQ(value.get("z").as_integer(), 2);
  EXPECT_EQ(value.get("s").as_string(), std::string("é😀\0", 7));
  EXPECT_EQ(value.get("s").segments()[0].trusted, true);
  EXPECT_EQ(parse_json("\"x\"", false).segments()[0].trusted, false);
}

TEST(TemplateJson, RefusesWhatIsNotJsonOrTooDeep) {
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "nul", "1 2", "\"\xff\"", "'a'", "[1}"}) {
    EXPECT_THROW(parse_json(text), Error) << text;
  }
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(parse_json(nested(kMaxValueDepth)).kind(), Kind::list);
  EXPECT_THROW(parse_json(nested(kMaxValueDepth + 1)), Error);
  EXPECT_THROW(parse_json(nested(1'000'000)), Error);
}

TEST(TemplateValue, BytesThatAreNotUtf8PassThrough) {
  const std::string bytes = "a\xff\xc3(\xed\xa0\x80z";
  const Value context = Value::dict({{"v", Value::untrusted(bytes)}});
  EXPECT_EQ(outcome("{{ v }}", context), bytes);
  EXPECT_EQ(outcome("{{ v[::-1][::-1] }}", context), bytes);
  EXPECT_EQ(outcome("{{ v|length }}", context), "8");
  EXPECT_EQ(outcome("{{ v|list|join }}{{ v.upper()|length }}", context), bytes + "8");
}

}  // namespace
}  // namespace ponder::text::jinja
