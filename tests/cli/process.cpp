#include "cli/process.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ponder::test {
namespace {

struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  void close(std::size_t end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
  std::array<int, 2> ends{-1, -1};
};

// Feeds `input` and reads both outputs until the child has closed them.
void exchange(Pipe& in, Pipe& out, Pipe& err, const std::string& input, bool keep_open, Output& result) {
  ::signal(SIGPIPE, SIG_IGN);
  std::size_t written = 0;
  if (input.empty() && !keep_open) in.close(1);
  while (out.ends[0] >= 0 || err.ends[0] >= 0) {
    std::array<pollfd, 3> fds{{{out.ends[0], POLLIN, 0},
                               {err.ends[0], POLLIN, 0},
                               {written < input.size() ? in.ends[1] : -1, POLLOUT, 0}}};
    ::poll(fds.data(), fds.size(), -1);
    for (std::size_t i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      std::array<char, 65536> block{};
      const ssize_t n = ::read(fds[i].fd, block.data(), block.size());
      if (n > 0) {
        (i == 0 ? result.out : result.err).append(block.data(), static_cast<std::size_t>(n));
      } else {
        (i == 0 ? out : err).close(0);
      }
    }
    if (fds[2].fd >= 0 && fds[2].revents != 0) {
      const std::size_t part = std::min<std::size_t>(input.size() - written, 4096);
      const ssize_t n = ::write(fds[2].fd, input.data() + written, part);
      if (n > 0) written += static_cast<std::size_t>(n);
      if (n <= 0 || (written == input.size() && !keep_open)) in.close(1);
    }
  }
}

}  // namespace

nlohmann::ordered_json Output::json() const {
  return nlohmann::ordered_json::parse(out);
}

std::vector<nlohmann::ordered_json> Output::lines() const {
  std::vector<nlohmann::ordered_json> all;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) all.push_back(nlohmann::ordered_json::parse(line));
  return all;
}

namespace {

// `signals`: what is sent to the child `after` milliseconds.
Output run(std::vector<std::string> words, const std::string& input, int after = 0,
           const std::vector<int>& signals = {}) {
  Pipe in;
  Pipe out;
  Pipe err;
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);

  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(in.ends[0], STDIN_FILENO);
    ::dup2(out.ends[1], STDOUT_FILENO);
    ::dup2(err.ends[1], STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  in.close(0);
  out.close(1);
  err.close(1);
  Output result;
  std::thread interrupter([&] {
    if (signals.empty()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(after));
    for (const int s : signals) ::kill(child, s);  // not yet waited for, so still its own number
  });
  exchange(in, out, err, input, !signals.empty(), result);
  interrupter.join();
  int status = 0;
  ::waitpid(child, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return result;
}

}  // namespace

Output ponder(const std::vector<std::string>& arguments, const std::string& input) {
  std::vector<std::string> words = {PONDER_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run(std::move(words), input);
}

Output interrupted(const std::vector<std::string>& arguments, const std::string& input, int milliseconds,
                   int signal, int times) {
  std::vector<std::string> words = {PONDER_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run(std::move(words), input, milliseconds,
             std::vector<int>(static_cast<std::size_t>(times), signal));
}

Output shell(const std::string& command) {
  return run({"/bin/sh", "-c", command, PONDER_PROGRAM}, "");
}

std::string golden(const std::string& checkpoint) {
  return std::string(PONDER_TEST_DATA) + "/hybrid/" + checkpoint;
}

void expect_error(const Output& output, int status, const std::string& part) {
  EXPECT_EQ(output.status, status) << output.err;
  EXPECT_EQ(output.out, "");
  EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1) << output.err;
  EXPECT_THAT(output.err, testing::HasSubstr(part));
  EXPECT_LT(output.err.size(), 4200U);
}

}  // namespace ponder::test
