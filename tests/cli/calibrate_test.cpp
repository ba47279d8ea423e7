// ponder calibrate through the program: the temperature it finds, what it writes, and what it refuses.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/labelled_files.hpp"

namespace ponder::test {
namespace {

class CalibrateVerb : public LabelledFiles {
 protected:
  CalibrateVerb() : model_(folder_ / "model") {
    fs::copy(golden("tiny-a"), model_, fs::copy_options::recursive);
    fs::permissions(model_ / "export.json",
                    fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
    // Both answers to the same questions, one of them more often: the best temperature is neither bound.
    std::string lines;
    for (int i = 0; i < 6; ++i) {
      const Output run = ponder({"decide", "--model", model_.string(), "--no-think", "--trace"},
                                Json{{"state", state(i)}, {"questions", {{"q", {{"type", "noul"}}}}}}.dump());
      const Json probs = run.json()["questions"]["q"]["probs"];
      probs_.push_back(probs[1]);
      const bool yes = probs[1] > probs[0];
      for (const bool label : {yes, yes, !yes}) lines += noul(state(i), label ? "true" : "false");
    }
    data_ = file("data.jsonl", lines + noul("more", "null"));
  }

  static std::string state(int i) { return "The order of customer " + std::to_string(i * i) + " is late."; }

  // -log p of all records when log odds are multiplied by b.
  double loss(double b) const {
    double sum = 0;
    for (const double p : probs_) {
      const double odds = std::abs(std::log(p / (1 - p))) * b;
      sum += 2 * std::log1p(std::exp(-odds)) + std::log1p(std::exp(odds));
    }
    return sum / (3 * static_cast<double>(probs_.size()));
  }

  fs::path model_;
  std::string data_;
  std::vector<double> probs_;  // of yes
};

TEST_F(CalibrateVerb, FindsTheBestTemperatureAndChangesNothing) {
  const std::string before = read_file(model_ / "export.json");
  const Output run = ponder({"calibrate", data_, "--model", model_.string(), "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
  const Json report = run.json();
  EXPECT_EQ(report["records"], 19);
  EXPECT_EQ(report["questions"], 18);
  EXPECT_EQ(report["unanswerable"], 1);
  EXPECT_EQ(report["before"]["temperature"], 1.37);
  EXPECT_NEAR(report["before"]["nll"].get<double>(), loss(1), 1e-9);
  double best = 1;
  for (double b = 0.01; b < 100; b *= 1.002) best = loss(b) < loss(best) ? b : best;
  const double fitted = report["after"]["temperature"];
  EXPECT_NEAR(fitted / (1.37 / best), 1, 3e-3);
  EXPECT_NEAR(report["after"]["nll"].get<double>(), loss(best), 1e-5);
  EXPECT_EQ(report["after"]["accuracy"], report["before"]["accuracy"]);
  EXPECT_TRUE(report["written"].is_null());
  EXPECT_EQ(read_file(model_ / "export.json"), before);
}

TEST_F(CalibrateVerb, WritesTheTemperatureAndNothingElse) {
  const std::string before = read_file(model_ / "export.json");
  const Output run = ponder({"calibrate", data_, "--model", model_.string(), "--write", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string after = read_file(model_ / "export.json");
  std::string want = before;
  want.replace(want.find("1.37"), 4, run.json()["after"]["temperature"].dump());
  EXPECT_EQ(after, want);
  EXPECT_NE(after, before);
  EXPECT_EQ(fs::status(model_ / "export.json").permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  // A second fit finds what the first one wrote.
  const Output again = ponder({"calibrate", data_, "--model", model_.string(), "--json"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_NEAR(again.json()["after"]["temperature"].get<double>(),
              run.json()["after"]["temperature"].get<double>(), 1e-4);
  EXPECT_NEAR(again.json()["before"]["nll"].get<double>(), run.json()["after"]["nll"].get<double>(), 1e-6);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(model_)) {
    ++files;
    EXPECT_TRUE(fs::exists(fs::path(golden("tiny-a")) / entry.path().filename())) << entry.path();
  }
  EXPECT_EQ(files, static_cast<std::size_t>(
                       std::distance(fs::directory_iterator(golden("tiny-a")), fs::directory_iterator())));
}

TEST_F(CalibrateVerb, WhatCannotBeWrittenIsSaidInOneLine) {
  expect_error(ponder({"calibrate", data_, "--write"}), 2, "demo model");
  const std::string before = read_file(model_ / "export.json");
  std::string right;
  for (std::size_t i = 0; i < probs_.size(); ++i)
    right += noul(state(static_cast<int>(i)), probs_[i] > 0.5 ? "true" : "false");
  expect_error(ponder({"calibrate", file("right.jsonl", right), "--model", model_.string(), "--write"}), 1,
               "no minimum between");
  expect_error(ponder({"calibrate", file("open.jsonl", noul("x", "null")), "--model", model_.string()}), 1,
               "no question with a label");
  EXPECT_EQ(read_file(model_ / "export.json"), before);
}

TEST_F(CalibrateVerb, AReadOnlyFolderIsRefusedBeforeAnyWork) {
  fs::permissions(folder_, fs::perms::all);
  fs::permissions(model_, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                              fs::perms::others_exec | fs::perms::group_read | fs::perms::group_exec);
  // The superuser may write anywhere, so as somebody else.
  const std::string user = ::geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
  if (shell(user + "\"$0\" --version").status != 0) GTEST_SKIP() << "no other user can run the program here";
  const Output run = shell(user + "\"$0\" calibrate " + data_ + " --model " + model_.string() + " --write");
  fs::permissions(model_, fs::perms::owner_all);
  expect_error(run, 1, "export.json: cannot be written");
}

}  // namespace
}  // namespace ponder::test
