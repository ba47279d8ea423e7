// Labelled records in a folder of their own, for the tests of eval and calibrate.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/process.hpp"

namespace ponder::test {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

inline std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// A record with one yes/no question.
inline std::string noul(const std::string& state, const std::string& label, const std::string& source = "s") {
  return Json{{"state", state},
              {"questions", {{"q", {{"type", "noul"}, {"label", Json::parse(label)}, {"src", source}}}}}}
             .dump() +
         "\n";
}

// A folder of its own for each test.
class LabelledFiles : public testing::Test {
 protected:
  LabelledFiles() : folder_(fs::temp_directory_path() / ("ponder-eval-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~LabelledFiles() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  fs::path path(const std::string& name) const { return folder_ / name; }

  fs::path folder_;
};

}  // namespace ponder::test
