// Where the tokenizer tests take their files from.
#pragma once

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "text/gunzip.hpp"
#include "text/tokenizer.hpp"

namespace ponder::testing {

inline std::string data_path(const std::string& name) {
  return std::string(PONDER_TEST_DATA) + "/" + name;
}

inline std::string read_data(const std::string& name) {
  std::ifstream file(data_path(name), std::ios::binary);
  if (!file) throw std::runtime_error(data_path(name) + ": cannot be opened");
  return {std::istreambuf_iterator<char>(file), {}};
}

inline nlohmann::json read_json(const std::string& name) {
  return nlohmann::json::parse(read_data(name));
}

inline const text::Tokenizer& qwen3() {
  static const text::Tokenizer t = text::Tokenizer::parse(gunzip_file(data_path("tokenizer/qwen3.json.gz")));
  return t;
}

inline const text::Tokenizer& tiny_a() {
  static const text::Tokenizer t = text::Tokenizer::load(data_path("hybrid/tiny-a"));
  return t;
}

// The tokenizer.json of tiny-a as a tree, to be changed and parsed again.
inline const nlohmann::json& tiny_a_json() {
  static const nlohmann::json tree = read_json("hybrid/tiny-a/tokenizer.json");
  return tree;
}

using Ids = std::vector<std::int32_t>;

inline Ids ids_of(const nlohmann::json& array) {
  return array.get<Ids>();
}

}  // namespace ponder::testing
