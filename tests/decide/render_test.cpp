#include "decide/render.hpp"

#include <cctype>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "decide/request.hpp"
#include "support.hpp"

namespace ponder::decide {
namespace {

using test::at;
using test::items;
using test::text;

Question question_of(const Value& raw) {
  Object questions;
  questions.append("q", raw);
  Object body;
  body.append("state", Value());
  body.append("questions", std::move(questions));
  return parse_request(std::move(body)).questions.at(0);
}

TEST(Render, GoldenCases) {
  const Value golden = test::read_json("decide/cases-render.json");
  EXPECT_EQ(items(at(golden, "render")).size(), 38U);
  for (const Value& c : items(at(golden, "render"))) {
    EXPECT_EQ(render(parse_json(text(at(c, "json")))), text(at(c, "text"))) << text(at(c, "json"));
  }
}

TEST(Render, RandomTextsOfTheReference) {
  const Value stored = test::read_json("decide/python-json.json");
  EXPECT_GE(items(at(stored, "cases")).size(), 200U);
  for (const Value& c : items(at(stored, "cases"))) {
    const std::string rendered = render(parse_json(text(at(c, "json"))));
    EXPECT_EQ(rendered, text(at(c, "render"))) << text(at(c, "json"));
    EXPECT_EQ(sanitize(rendered), text(at(c, "sanitized"))) << text(at(c, "json"));
  }
}

TEST(Render, Sizes) {
  Value deep;
  for (int i = 0; i < 101; ++i) deep = Value(Array{deep});
  EXPECT_EQ(test::failure_of([&] { render(deep); })->kind, ErrorKind::too_large);

  // 98 levels of indentation in front of each of 900,000 short lines
  Value wide(Array(900000, Value(1)));
  for (int i = 0; i < 98; ++i) wide = Value(Array{std::move(wide)});
  const auto failure = test::failure_of([&] { render(wide); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, ErrorKind::too_large);
}

TEST(Sanitize, GoldenCases) {
  const Value golden = test::read_json("decide/cases-render.json");
  for (const Value& c : items(at(golden, "sanitize"))) {
    EXPECT_EQ(sanitize(text(at(c, "text"))), text(at(c, "sanitized")));
  }
  for (const char* folder : {"tiny-a", "tiny-b", "tiny-c", "tiny-d"}) {
    const Value cases = test::read_json(std::string("hybrid/") + folder + "/cases-text.json");
    EXPECT_FALSE(items(at(cases, "sanitize")).empty());
    for (const Value& c : items(at(cases, "sanitize"))) {
      EXPECT_EQ(sanitize(text(at(c, "text"))), text(at(c, "sanitized")));
    }
  }
}

// Length of a "<|name|>" at the start of `s`, 0 when there is none.
std::size_t control_length(std::string_view s) {
  if (!s.starts_with("<|")) return 0;
  const std::size_t end = s.find("|>", 2);
  if (end == s.npos || end == 2) return 0;
  for (const char c : s.substr(2, end - 2)) {
    if (c != '_' &&
        (static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) == 0))
      return 0;
  }
  return end + 2;
}

TEST(Sanitize, Complaint33_FollowsTheRuleAndLeavesNoMarker) {
  EXPECT_TRUE(rc::check([] {
    static const std::vector<std::string> pieces{"<", "|",  ">", "<|", "|>",          "a",
                                                 "_", "Z9", "é", " ",  "<|box_end|>", "\n"};
    const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces));
    std::string input;
    for (const auto& p : parts) input += p;
    std::string expected;
    for (std::size_t i = 0; i < input.size();) {
      const std::string_view rest = std::string_view(input).substr(i);
      const std::size_t n = control_length(rest);
      expected +=
          n == 0 ? std::string(1, input[i]) : "<\u00A6" + std::string(rest.substr(2, n - 4)) + "\u00A6>";
      i += std::max<std::size_t>(n, 1);
    }
    const std::string output = sanitize(input);
    RC_ASSERT(output == expected);
    for (std::size_t i = 0; i < output.size(); ++i)
      RC_ASSERT(control_length(std::string_view(output).substr(i)) == 0U);
    RC_ASSERT(sanitize(output) == output);
  }));
}

TEST(Sanitize, LongHostileText) {
  std::string input;
  for (int i = 0; i < 500000; ++i) input += "<|a";
  EXPECT_EQ(sanitize(input), input);
  EXPECT_EQ(sanitize("<|" + std::string(1000000, 'a') + "|>"),
            "<\u00A6" + std::string(1000000, 'a') + "\u00A6>");
}

TEST(Options, GoldenCases) {
  const Value golden = test::read_json("decide/cases-render.json");
  EXPECT_EQ(items(at(golden, "options")).size(), 6U);
  for (const Value& c : items(at(golden, "options"))) {
    const Question q = question_of(at(c, "question"));
    EXPECT_EQ(option_texts(q), test::texts(at(c, "options")));
    EXPECT_EQ(option_keys(q), test::texts(at(c, "keys")));
    EXPECT_EQ(option_count(q), option_keys(q).size());
  }
}

}  // namespace
}  // namespace ponder::decide
