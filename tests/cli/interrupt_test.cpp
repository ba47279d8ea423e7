// Ctrl-C at any moment: the program ends at once by that signal, and leaves no half-written file.
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/process.hpp"

namespace ponder::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string request(int words, bool think) {
  std::string state;
  for (int i = 0; i < words; ++i) state += "late parcel ";
  return Json{{"state", state},
              {"questions", {{"q", {{"type", "noul"}}}}},
              {"options", {{"think", think}, {"max_think", think ? 4000 : 0}}}}
      .dump();
}

// Complaint 18: waiting for input, in a long prompt, in a chain of thought; once, and pressed again.
TEST(Interrupt, Complaint18_DecideEndsAtOnce) {
  struct Moment {
    const char* name;
    std::string input;
    std::vector<std::string> flags;
  };
  const Moment moments[] = {
      {"waiting for lines", "", {"--jsonl"}},
      {"half a line", R"({"state": )", {}},
      {"a long prompt",
       request(100'000, false) + "\n",
       {"--jsonl", "--isa", "reference", "--max-len", "1000000"}},
      {"a chain of thought", request(200, true) + "\n", {"--jsonl", "--isa", "reference"}},
  };
  for (const Moment& moment : moments) {
    for (const int times : {1, 2}) {
      for (const int signal : {SIGINT, SIGTERM}) {
        for (const int after : {0, 400}) {
          std::vector<std::string> arguments = {"decide", "--model", golden("tiny-c")};
          arguments.insert(arguments.end(), moment.flags.begin(), moment.flags.end());
          const Output run = interrupted(arguments, moment.input, after, signal, times);
          EXPECT_EQ(run.status, -signal) << moment.name << " after " << after << ": " << run.out << run.err;
          EXPECT_EQ(run.out, "") << moment.name;
          EXPECT_EQ(run.err, "") << moment.name;
        }
      }
    }
  }
}

// What is there has its final name and is whole.
TEST(Interrupt, ConvertLeavesNoPartOfAFile) {
  const fs::path folder = fs::path(testing::TempDir()) / ("ponder-interrupt-" + std::to_string(::getpid()));
  int ended = 0, finished = 0;
  for (const int after : {0, 3, 6, 10, 15, 20, 30, 50, 100, 5000}) {
    fs::remove_all(folder);
    const Output run = interrupted({"convert", golden("tiny-c"), "--output", folder.string(), "--type", "q4"},
                                   "", after, SIGINT);
    ++(run.status == 0 ? finished : ended);
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      EXPECT_THAT(name, testing::Not(testing::HasSubstr("partial"))) << "after " << after;
    }
    if (fs::exists(folder / "config.json")) {
      EXPECT_EQ(ponder({"info", "--model", folder.string()}).status, 0) << "after " << after;
    }
  }
  EXPECT_GT(ended, 0);
  EXPECT_GT(finished, 0);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace ponder::test
