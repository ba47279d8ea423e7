// Reading the stored cases, and the one way these tests look at errors.
#pragma once

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "decide/json_value.hpp"

namespace ponder::decide::test {

inline std::string read_text(const std::string& name) {
  std::ifstream in(std::string(PONDER_TEST_DATA) + "/" + name, std::ios::binary);
  EXPECT_TRUE(in.is_open()) << name;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline Value read_json(const std::string& name) {
  return parse_json(read_text(name));
}

inline const Value& at(const Value& object, std::string_view key) {
  static const Value missing;
  const Value* v = object.if_object() == nullptr ? nullptr : object.if_object()->find(key);
  EXPECT_NE(v, nullptr) << key;
  return v == nullptr ? missing : *v;
}

inline const Array& items(const Value& v) {
  static const Array none;
  EXPECT_NE(v.if_array(), nullptr);
  return v.if_array() == nullptr ? none : *v.if_array();
}

inline const std::string& text(const Value& v) {
  static const std::string none;
  EXPECT_NE(v.if_string(), nullptr);
  return v.if_string() == nullptr ? none : *v.if_string();
}

inline double number(const Value& v) {
  if (v.if_double() != nullptr) return *v.if_double();
  EXPECT_NE(v.if_integer(), nullptr);
  return v.if_integer() == nullptr ? 0.0 : static_cast<double>(*v.if_integer());
}

inline std::vector<double> numbers(const Value& v) {
  std::vector<double> out;
  for (const Value& x : items(v)) out.push_back(number(x));
  return out;
}

inline std::vector<std::string> texts(const Value& v) {
  std::vector<std::string> out;
  for (const Value& x : items(v)) out.push_back(text(x));
  return out;
}

struct Failure {
  ErrorKind kind;
  std::string message;
};

// What `action` fails with, nothing when it succeeds. Any other exception goes on to fail the test.
template <class F>
std::optional<Failure> failure_of(F&& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(std::string_view(e.what()).find('\n'), std::string_view::npos) << e.what();
    EXPECT_LT(std::string_view(e.what()).size(), 20000U);
    return Failure{e.kind(), e.what()};
  }
  return std::nullopt;
}

template <class F>
std::string message_of(F&& action) {
  const auto failure = failure_of(action);
  return failure ? failure->message : "";
}

}  // namespace ponder::decide::test
