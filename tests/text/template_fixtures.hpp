// Reading the template tests' data.
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "text/template.hpp"
#include "text/template_json.hpp"

namespace ponder::text::jinja {

inline std::string read_data(const std::string& name) {
  std::ifstream file(std::string(PONDER_TEST_DATA) + "/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("no test data " + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline nlohmann::ordered_json read_json(const std::string& name) {
  return nlohmann::ordered_json::parse(read_data(name));
}

// What a template renders, or "error: " and the message.
inline std::string outcome(const std::string& source, const Value& context) {
  try {
    return ChatTemplate::parse(source).render(context);
  } catch (const Error& error) {
    return std::string("error: ") + error.what();
  }
}

}  // namespace ponder::text::jinja
