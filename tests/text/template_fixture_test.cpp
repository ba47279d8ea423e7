// Against jinja2: what tests/data/template/make_fixtures.py recorded.
#include <ctime>

#include <gtest/gtest.h>

#include "text/template_fixtures.hpp"

namespace ponder::text::jinja {
namespace {

using Json = nlohmann::ordered_json;

// The date make_fixtures.py gives strftime_now: Friday, 9 February 2024, 13:05:07.
std::tm fixture_date() {
  std::tm now{};
  now.tm_year = 124;
  now.tm_mon = 1;
  now.tm_mday = 9;
  now.tm_hour = 13;
  now.tm_min = 5;
  now.tm_sec = 7;
  now.tm_wday = 5;
  now.tm_yday = 39;
  return now;
}

Value fixture_context() {
  Value variables = parse_json(read_data("template/cases.json")).get("context");
  variables.set("strftime_now", Value::clock(fixture_date()));
  return variables;
}

void expect_as_jinja2(const Json& cases, const Value& context, const std::string& prelude = {}) {
  for (const Json& one : cases) {
    const std::string source = prelude + one.at("template").get<std::string>();
    const std::string got = outcome(source, context);
    if (one.contains("expected")) {
      EXPECT_EQ(got, one.at("expected").get<std::string>()) << "template: " << source;
    } else {
      EXPECT_TRUE(got.starts_with("error: "))
          << "template: " << source << "\njinja2 fails: " << one.at("error") << "\nrendered: " << got;
      EXPECT_EQ(got.find('\n'), std::string::npos) << got;
    }
  }
}

class Handwritten : public testing::TestWithParam<const char*> {};

TEST_P(Handwritten, RendersAsJinja2) {
  const Json data = read_json("template/cases.json");
  const Json& cases = data.at("groups").at(GetParam());
  ASSERT_GT(cases.size(), 150U);
  expect_as_jinja2(cases, fixture_context());
}

INSTANTIATE_TEST_SUITE_P(Template, Handwritten,
                         testing::Values("expressions", "filters", "methods", "statements"),
                         [](const auto& group) { return group.param; });

TEST(TemplateRandom, WhitespaceControlIsJinja2s) {
  const Json cases = read_json("template/random.json").at("whitespace");
  ASSERT_GE(cases.size(), 1000U);
  expect_as_jinja2(cases, parse_json(R"({"e": "", "q": "Q"})"));
}

TEST(TemplateRandom, ExpressionsAreJinja2s) {
  const Json cases = read_json("template/random.json").at("expressions");
  ASSERT_GE(cases.size(), 1000U);
  expect_as_jinja2(cases, fixture_context());
}

TEST(TemplateRandom, ScopesAreJinja2s) {
  const Json data = read_json("template/random.json");
  ASSERT_GE(data.at("statements").size(), 200U);
  expect_as_jinja2(data.at("statements"), fixture_context(), data.at("prelude").get<std::string>());
}

}  // namespace
}  // namespace ponder::text::jinja
