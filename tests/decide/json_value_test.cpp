#include "decide/json_value.hpp"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <pthread.h>
#include <rapidcheck.h>

#include "decide/json_write.hpp"
#include "decide/python_format.hpp"
#include "decide/render.hpp"
#include "support.hpp"

namespace ponder::decide {
namespace {

using test::failure_of;
using test::message_of;

std::string repeated(std::string_view piece, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += piece;
  return out;
}

TEST(ParseJson, NumbersKeepTheirKind) {
  EXPECT_EQ(*parse_json("1").if_integer(), 1);
  EXPECT_EQ(*parse_json("-0").if_integer(), 0);
  EXPECT_EQ(*parse_json("1.0").if_double(), 1.0);
  EXPECT_TRUE(std::signbit(*parse_json("-0.0").if_double()));
  EXPECT_EQ(*parse_json("9223372036854775807").if_integer(), INT64_MAX);
  EXPECT_EQ(parse_json("9223372036854775808").if_big_integer()->text, "9223372036854775808");
  EXPECT_EQ(*parse_json("-9223372036854775808").if_integer(), INT64_MIN);
  EXPECT_EQ(parse_json("-9223372036854775809").if_big_integer()->text, "-9223372036854775809");
  EXPECT_EQ(parse_json("18446744073709551616").if_big_integer()->text, "18446744073709551616");
  EXPECT_EQ(*parse_json("1e-999").if_double(), 0.0);
  EXPECT_EQ(*parse_json("0.1").if_double(), 0.1);
  EXPECT_EQ(*parse_json("1E2").if_double(), 100.0);
}

TEST(ParseJson, IntegersUpToTheDocumentedSize) {
  const std::string most = "1" + std::string(max_integer_digits - 1, '7');
  EXPECT_EQ(parse_json(most).if_big_integer()->text, most);
  EXPECT_EQ(parse_json("-" + most).if_big_integer()->text, "-" + most);
  for (const std::size_t digits :
       {max_integer_digits + 1, std::size_t{400}, std::size_t{5000}, std::size_t{1000000}}) {
    for (const char* sign : {"", "-"}) {
      const auto failure = failure_of([&] { parse_json("[" + (sign + std::string(digits, '1')) + "]"); });
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->kind, ErrorKind::too_large);
      EXPECT_NE(
          failure->message.find(fmt::format("has an integer of {} digits, over the limit of 308", digits)),
          std::string::npos)
          << failure->message;
    }
  }
}

TEST(ParseJson, NumbersBeyondDouble) {
  for (const char* text : {"1e999", "-1e999", "1.5E+400", "123456789e301", "1e99999999999999999999"}) {
    EXPECT_NE(message_of([&] { parse_json(text); }).find("is not a finite number"), std::string::npos)
        << text;
  }
}

TEST(ParseJson, RepeatedKeysKeepFirstPlaceAndLastValue) {
  EXPECT_EQ(write_json(parse_json(R"({"a":1,"b":2,"a":3,"c":{"x":1,"x":[],"x":null},"b":{"q":1},"a":4})")),
            R"({"a":4,"b":{"q":1},"c":{"x":null}})");
  EXPECT_EQ(write_json(parse_json(R"({"é":1,"\u00e9":2})")), "{\"é\":2}");
}

TEST(ParseJson, ManyKeys) {
  std::string text = "{";
  for (int i = 0; i < 200000; ++i) text += fmt::format("\"{}\":{},", (i * 7919LL) % 100003, i);
  text += "\"last\":0}";
  const Value v = parse_json(text);
  const Object& o = *v.if_object();
  ASSERT_EQ(o.size(), 100003U + 1);
  for (int i = 0; i < 100003; ++i) {
    ASSERT_EQ(o.members()[static_cast<std::size_t>(i)].key, std::to_string((i * 7919LL) % 100003));
    ASSERT_EQ(*o.members()[static_cast<std::size_t>(i)].value.if_integer(),
              i + 100003 < 200000 ? i + 100003 : i);
  }
}

TEST(ParseJson, ByteOrderMarkIsSkipped) {
  EXPECT_EQ(*parse_json("\xEF\xBB\xBF[1]").if_array(), Array{Value(1)});
}

TEST(ParseJson, Complaint24_MalformedTextIsOneClearLine) {
  using namespace std::string_literals;
  const std::vector<std::string> bad{"",
                                     " ",
                                     "\n\n",
                                     "nul",
                                     "nulll",
                                     "True",
                                     "NaN",
                                     "Infinity",
                                     "-Infinity",
                                     "[NaN]",
                                     "-",
                                     "+1",
                                     "01",
                                     "-01",
                                     ".5",
                                     "1.",
                                     "1e",
                                     "1e+",
                                     "0x10",
                                     "1_000",
                                     "[1,]",
                                     "[,1]",
                                     "[1 2]",
                                     "{\"a\":1,}",
                                     "{,}",
                                     "{a:1}",
                                     "{'a':1}",
                                     "{\"a\"}",
                                     "{\"a\":}",
                                     "{1:2}",
                                     "{null:1}",
                                     "[1",
                                     "{\"a\":1",
                                     "\"abc",
                                     "\"a\\",
                                     "\"\\u12",
                                     "\"\\u12G4\"",
                                     "\"\\x41\"",
                                     "\"\\ud800\"",
                                     "\"\\udc00\"",
                                     "\"\\ud800\\ud800\"",
                                     "\"\\ud800x\"",
                                     "\"\\ud83d\\u0041\"",
                                     "{\"\\ud800\":1}",
                                     "\"\xFF\"",
                                     "\"\xC0\x80\"",
                                     "\"\xED\xA0\x80\"",
                                     "\"\xF4\x90\x80\x80\"",
                                     "\"\xC3\"",
                                     "\"\xE2\x82\"",
                                     "\xFF",
                                     "[1]\xFF",
                                     "\"\n\"",
                                     "\"\t\"",
                                     "\"\x1F\"",
                                     "[1] x",
                                     "{} {}",
                                     "1 2",
                                     "/*c*/1",
                                     "1//c",
                                     "]",
                                     "}",
                                     "[}",
                                     "{]",
                                     "\xEF\xBB",
                                     "\xEF\xBB\xBF",
                                     "\xFE\xFF\0["s,
                                     "\0"s,
                                     "{}\0"s,
                                     "{}\0garbage"s,
                                     "[\"a\0b\"]"s,
                                     "[1\0]"s};
  for (const std::string& text : bad) {
    const auto failure = failure_of([&] { parse_json(text); });
    ASSERT_TRUE(failure) << printable(text);
    EXPECT_EQ(failure->kind, ErrorKind::invalid_input) << printable(text);
    EXPECT_TRUE(failure->message.starts_with("invalid JSON at line ")) << failure->message;
  }
}

TEST(ParseJson, ErrorsSayWhere) {
  EXPECT_EQ(message_of([] { parse_json("{\"a\": 1,\n \"secret\": nil}"); }),
            "invalid JSON at line 2, column 13 (byte 22): while parsing value - invalid literal");
  EXPECT_EQ(message_of([] { parse_json("[\n1e999]"); }),
            "invalid JSON at line 2, column 6 (byte 8): 1e999 is not a finite number");
  EXPECT_EQ(message_of([] { parse_json(std::string_view("[\n\0", 3)); }),
            "invalid JSON at line 2, column 1 (byte 3): NUL byte");
  EXPECT_EQ(message_of([] { parse_json("[\n [[1]]]", {.max_depth = 2}); }),
            "JSON at line 2, column 3 (byte 5) is nested deeper than 2 levels");
}

TEST(ParseJson, Limits) {
  EXPECT_EQ(message_of([] { parse_json("[1, 2]", {.max_bytes = 5}); }),
            "JSON of 6 bytes is over the limit of 5");
  EXPECT_NO_THROW(parse_json("[1, 2]", {.max_bytes = 6}));
  EXPECT_NO_THROW(parse_json("[1,{\"a\":2}]", {.max_values = 4}));
  const auto failure = failure_of([] { parse_json("[1,{\"a\":2}]", {.max_values = 3}); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, ErrorKind::too_large);
  EXPECT_NE(failure->message.find("has more than 3 values"), std::string::npos);
  EXPECT_EQ(failure_of([] { parse_json("[" + repeated("0,", 2000000) + "0]"); })->kind, ErrorKind::too_large);
}

TEST(ParseJson, Complaint21_DeepNestingIsRefusedAtAnyDepth) {
  for (const std::size_t depth : {std::size_t{101}, std::size_t{1000}, std::size_t{3000}, std::size_t{10000},
                                  std::size_t{100000}, std::size_t{1000000}}) {
    const std::vector<std::pair<std::string, std::string>> shapes{
        {repeated("[", depth), repeated("]", depth)},
        {repeated("{\"a\":", depth), "1" + repeated("}", depth)},
        {repeated("[{\"a\":", depth / 2 + 1), "1" + repeated("}]", depth / 2 + 1)},
        {repeated("[1,{\"b\":2,\"a\":", depth / 2 + 1), "[]" + repeated("}]", depth / 2 + 1)},
    };
    for (const auto& [open, close] : shapes) {
      for (const std::string& text : {open, open + close, fmt::format("{{\"state\":{}{}}}", open, close)}) {
        const auto failure = failure_of([&] { parse_json(text, {.max_bytes = std::size_t{64} << 20}); });
        ASSERT_TRUE(failure);
        EXPECT_EQ(failure->kind, ErrorKind::too_large);
        EXPECT_NE(failure->message.find("is nested deeper than 100 levels"), std::string::npos)
            << failure->message;
      }
    }
  }
}

void on_small_stack(std::size_t bytes, const std::function<void()>& work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&work)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(ParseJson, Complaint21_AllowedNestingFitsASmallStack) {
  on_small_stack(std::size_t{256} << 10, [] {
    for (const auto& [open, close] : {std::pair{"[", "]"}, std::pair{"{\"a\":", "}"}}) {
      const std::string inner = open == std::string_view("[") ? "" : "1";
      const std::string json = repeated(open, 100) + inner + repeated(close, 100);
      const Value v = parse_json(json);
      Value copy = v;
      EXPECT_EQ(copy, v);
      copy = Value();
      EXPECT_EQ(write_json(v), json);
      EXPECT_FALSE(render(v).empty());
    }
    EXPECT_FALSE(message_of([] { parse_json(repeated("[", 1000000)); }).empty());
  });
}

// ---------------------------------------------------------------- properties

rc::Gen<std::string> any_text() {
  static const std::vector<std::string> pieces{"a",      "Z",    "0",    " ",     "\n", "\t",
                                               "\"",     "\\",   "/",    "é",     "中", "😀",
                                               "\u2028", "\x01", "\x7f", "<|x|>", "¦",  "\uFFFF"};
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces)),
                      [](const std::vector<std::string>& parts) {
                        std::string out;
                        for (const auto& p : parts) out += p;
                        return out;
                      });
}

Value any_value(int depth) {
  const int kind = *rc::gen::inRange(0, depth > 0 ? 8 : 6);
  switch (kind) {
    case 0:
      return {};
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3: {
      const double d = *rc::gen::arbitrary<double>();
      return std::isfinite(d) ? d : 0.5;
    }
    case 4:
      return *any_text();
    case 5:
      return BigInteger{*rc::gen::element<std::string>("-", "") + "9223372036854775809" +
                        std::to_string(*rc::gen::arbitrary<std::uint32_t>())};
    case 6: {
      Array out;
      const int n = *rc::gen::inRange(0, 5);
      for (int i = 0; i < n; ++i) out.push_back(any_value(depth - 1));
      return out;
    }
    default: {
      Object out;
      const int n = *rc::gen::inRange(0, 5);
      for (int i = 0; i < n; ++i) {
        std::string key = *any_text();
        if (out.find(key) == nullptr) out.append(std::move(key), any_value(depth - 1));
      }
      return out;
    }
  }
}

TEST(ParseJson, WrittenValuesReadBackTheSame) {
  EXPECT_TRUE(rc::check([] {
    const Value v = any_value(4);
    RC_ASSERT(parse_json(write_json(v)) == v);
    RC_ASSERT(parse_json(write_json(v, 3)) == v);
    RC_ASSERT(parse_json(write_python_json(v)) == v);
  }));
}

TEST(ParseJson, ChangedTextIsReadOrRefusedAsTheLibraryDoes) {
  // The whole-document parser of the library is the second opinion on what is JSON at all.
  EXPECT_TRUE(rc::check([] {
    std::string json = write_json(any_value(3));
    const int edits = *rc::gen::inRange(1, 4);
    static const std::string alphabet = "[]{},:\"\\0123eE+-. \nntfu\xC3\xA9\xFF";
    for (int i = 0; i < edits; ++i) {
      const auto where =
          static_cast<std::size_t>(*rc::gen::inRange<int>(0, static_cast<int>(json.size()) + 1));
      const char c =
          alphabet[static_cast<std::size_t>(*rc::gen::inRange<int>(0, static_cast<int>(alphabet.size())))];
      if (where < json.size() && *rc::gen::arbitrary<bool>()) {
        json[where] = c;
      } else {
        json.insert(where, 1, c);
      }
    }
    const bool theirs = nlohmann::json::accept(json);
    const bool ours = message_of([&] { parse_json(json); }).empty();
    RC_ASSERT(ours == theirs);
  }));
}

}  // namespace
}  // namespace ponder::decide
