// Runs the ponder program as a user would and keeps what it printed.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace ponder::test {

struct Output {
  int status = -1;  // exit status, or -signal
  std::string out;
  std::string err;

  // Parsed standard output: the only line, or each line.
  nlohmann::ordered_json json() const;
  std::vector<nlohmann::ordered_json> lines() const;
};

// `arguments` after the program's name; `input` becomes standard input.
Output ponder(const std::vector<std::string>& arguments, const std::string& input = "");

// Starts the program, lets it run for `milliseconds`, and sends it `signal`, once or more
// often. Its standard input stays open.
Output interrupted(const std::vector<std::string>& arguments, const std::string& input, int milliseconds,
                   int signal, int times = 1);

// A shell command in which "$0" is the program.
Output shell(const std::string& command);

std::string golden(const std::string& checkpoint);  // its folder

// Asserts an error: this exit status, nothing on standard output, one line on stderr that contains `part`.
void expect_error(const Output& output, int status, const std::string& part);

}  // namespace ponder::test
