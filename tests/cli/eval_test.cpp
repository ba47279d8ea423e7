// ponder eval through the program: golden answers with labels, and what is refused.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/labelled_files.hpp"

namespace ponder::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class EvalVerb : public LabelledFiles {};

Json golden_request(const std::string& checkpoint, const std::string& name) {
  std::ifstream in(golden(checkpoint) + "/cases-requests.json");
  const Json cases = Json::parse(in);
  for (const Json& c : cases["cases"]) {
    if (c["name"] == name) return c["requests"][0];
  }
  throw std::runtime_error("no golden request " + name);
}

// What the oracle found for each question of a golden request, and the label it is given here.
struct Known {
  std::vector<double> probs;
  std::size_t label;
  Json details;
};

// A golden request as a labelled record: question i has option i mod n as its label.
std::pair<Json, std::vector<Known>> labelled(const Json& request) {
  Json record{
      {"state", request["body"]["state"]}, {"questions", Json::object()}, {"_meta", {{"source", "golden"}}}};
  std::vector<Known> known;
  for (const auto& [name, question] : request["body"]["questions"].items()) {
    const Json& details = request["details"][name];
    Known k{details["probs"].get<std::vector<double>>(), 0, details};
    k.label = known.size() % k.probs.size();
    Json q = question;
    if (q["type"] == "noul") {
      q["label"] = k.label == 1;
    } else if (q["type"] == "score") {
      q["label"] = k.label;
    } else {
      std::size_t i = 0;
      for (const auto& [option, note] : question["criteria"].items()) {
        if (i++ == k.label) q["label"] = option;
      }
    }
    record["questions"][name] = q;
    known.push_back(std::move(k));
  }
  return {record, known};
}

struct Expected {
  double accuracy = 0, nll = 0, brier = 0, confidence = 0;
};

Expected expected(const std::vector<Known>& known) {
  Expected e;
  for (const Known& k : known) {
    const double top = *std::max_element(k.probs.begin(), k.probs.end());
    e.accuracy += k.probs[k.label] == top ? 1 : 0;
    e.nll -= std::log(k.probs[k.label]);
    for (std::size_t i = 0; i < k.probs.size(); ++i)
      e.brier += std::pow(k.probs[i] - (i == k.label ? 1 : 0), 2);
    e.confidence += top;
  }
  const auto n = static_cast<double>(known.size());
  return {e.accuracy / n, e.nll / n, e.brier / n, e.confidence / n};
}

void expect_metrics(const Json& got, const Expected& want) {
  EXPECT_NEAR(got["accuracy"].get<double>(), want.accuracy, 1e-12);
  EXPECT_NEAR(got["nll"].get<double>(), want.nll, 1e-3);
  EXPECT_NEAR(got["brier"].get<double>(), want.brier, 1e-3);
}

TEST_F(EvalVerb, DirectAnswersAreJudgedAsTheOracleAnswers) {
  for (const char* checkpoint : {"tiny-a", "tiny-b"}) {
    const auto [record, known] = labelled(golden_request(checkpoint, "ten-questions-no-think"));
    const std::string data = file("data.jsonl", record.dump() + "\n");
    const Output run = ponder({"eval", data, "--model", golden(checkpoint), "--no-think", "--json"});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.err, "") << "quiet when nobody watches";
    const Json report = run.json(), &mode = report["modes"]["no-think"];
    EXPECT_EQ(report["records"], 1);
    EXPECT_EQ(report["questions"], 10);
    EXPECT_EQ(report["modes"].size(), 1U);
    expect_metrics(mode["overall"], expected(known));
    double gap = 0, confidence = 0;
    for (const Json& bin : mode["reliability"]) {
      if (bin["count"] == 0) continue;
      confidence += bin["count"].get<double>() * bin["confidence"].get<double>();
      gap += bin["count"].get<double>() *
             std::abs(bin["confidence"].get<double>() - bin["accuracy"].get<double>());
    }
    EXPECT_NEAR(confidence / 10, expected(known).confidence, 1e-3);
    EXPECT_NEAR(mode["overall"]["ece"].get<double>(), gap / 10, 1e-12);
    EXPECT_EQ(mode["tokens"]["reasoning"], 0);
    EXPECT_TRUE(mode["latency_ms"]["p99"].is_number());
    EXPECT_EQ(report["selective"].size(), 0U);
  }
}

TEST_F(EvalVerb, ThinkingIsJudgedAsTheOracleThinks) {
  for (const std::vector<std::string>& how : {std::vector<std::string>{},
                                              {"--no-drafter"},
                                              {"--batch", "4"},
                                              {"--block", "2", "--max-rows", "1"}}) {
    const Json request = golden_request("tiny-a", "think-several-0");
    const auto [record, known] = labelled(request);
    const std::string data = file("data.jsonl", record.dump() + "\n");
    std::vector<std::string> arguments = {"eval",   data,          "--model", golden("tiny-a"),
                                          "--json", "--max-think", "40"};
    arguments.insert(arguments.end(), how.begin(), how.end());
    const Output run = ponder(arguments);
    ASSERT_EQ(run.status, 0) << run.err;
    const Json report = run.json(), &mode = report["modes"]["think"];
    expect_metrics(mode["overall"], expected(known));
    std::size_t chain = 0, prompt = 0, closed = 0;
    for (const Known& k : known) {
      chain += k.details["chain"].size();
      prompt += k.details["prompt_tokens"].get<std::size_t>();
      closed += k.details["closed"].get<bool>() ? 1 : 0;
    }
    EXPECT_EQ(mode["tokens"]["reasoning"], chain);
    EXPECT_EQ(mode["tokens"]["closed"], closed);
    if (std::find(how.begin(), how.end(), "--max-rows") == how.end()) {
      EXPECT_EQ(mode["tokens"]["input"], prompt);
    }
    const bool plain = !how.empty() && how[0] == "--no-drafter";
    EXPECT_EQ(report["settings"]["drafting"], !plain);
    if (plain) {
      EXPECT_EQ(mode["tokens"]["accepted_length"], 1.0);
    }
    const Json& always = report["selective"].back();
    EXPECT_EQ(always["threshold"], 0.99);
    EXPECT_NEAR(always["tokens_of_thinking"].get<double>(), 1, 1e-12) << "nothing is that sure here";
    EXPECT_EQ(report["modes"]["no-think"]["tokens"]["reasoning"], 0);
  }
}

// The curve is computed from the first two ways, the third is asked: they must agree.
TEST_F(EvalVerb, AThresholdThatIsAskedAgreesWithTheCurve) {
  const Json request = golden_request("tiny-a", "threshold-splits-the-group");
  const auto [record, known] = labelled(request);
  const double threshold = request["body"]["options"]["nothink_threshold"];
  const std::string data = file("data.jsonl", record.dump() + "\n");
  const Output run = ponder({"eval", data, "--model", golden("tiny-a"), "--json", "--max-think", "17",
                             "--nothink-threshold", Json(threshold).dump()});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json report = run.json();
  ASSERT_EQ(report["modes"].size(), 3U);
  const Json &asked = std::prev(report["modes"].end()).value(), &think = report["modes"]["think"];
  expect_metrics(asked["overall"], expected(known));
  std::size_t thought = 0;
  for (const Known& k : known) thought += k.details["thought"].get<bool>() ? 1 : 0;
  EXPECT_EQ(asked["tokens"]["thought"], thought);
  EXPECT_LT(thought, known.size());
  EXPECT_GT(thought, 0U);
  const auto point = std::find_if(report["selective"].begin(), report["selective"].end(),
                                  [&](const Json& p) { return p["threshold"] == threshold; });
  ASSERT_NE(point, report["selective"].end());
  EXPECT_EQ((*point)["accuracy"], asked["overall"]["accuracy"]);
  EXPECT_NEAR((*point)["tokens_of_thinking"].get<double>(),
              asked["tokens"]["reasoning"].get<double>() / think["tokens"]["reasoning"].get<double>(), 1e-12);
}

TEST_F(EvalVerb, SourcesTypesAndWhatTheStateDoesNotSay) {
  const std::string data =
      file("data.jsonl", noul("one", "true", "a") + noul("two", "false", "b") + noul("three", "null", "a") +
                             noul("four", "[0.5, 0.5]", "a"));
  const Output run = ponder({"eval", data, "--model", golden("tiny-a"), "--no-think", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json mode = run.json()["modes"]["no-think"];
  EXPECT_EQ(mode["overall"]["count"], 2);
  EXPECT_EQ(mode["overall"]["unanswerable"]["count"], 2);
  EXPECT_EQ(mode["by_source"]["a"]["count"], 1);
  EXPECT_EQ(mode["by_source"]["a"]["unanswerable"]["count"], 2);
  EXPECT_EQ(mode["by_source"]["b"]["count"], 1);
  EXPECT_EQ(mode["by_type"].size(), 1U);
  const Output text = ponder({"eval", data, "--model", golden("tiny-a"), "--no-think"});
  EXPECT_THAT(text.out, HasSubstr("2 questions whose state does not say"));
}

TEST_F(EvalVerb, LimitsSamplesAndBatches) {
  std::string lines;
  for (int i = 0; i < 12; ++i) lines += noul("state " + std::to_string(i), "true", "s" + std::to_string(i));
  const std::string data = file("data.jsonl", lines);
  const auto sources = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"eval", data, "--model", golden("tiny-a"), "--no-think", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Output run = ponder(arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    std::vector<std::string> out;
    const Json report = run.json();
    for (const auto& [name, group] : report["modes"]["no-think"]["by_source"].items()) out.push_back(name);
    return out;
  };
  EXPECT_EQ(sources({"--limit", "2"}), (std::vector<std::string>{"s0", "s1"}));
  const auto drawn = sources({"--sample", "5"}), again = sources({"--sample", "5", "--batch", "3"});
  EXPECT_EQ(drawn.size(), 5U);
  EXPECT_EQ(drawn, again);
  EXPECT_NE(drawn, sources({"--sample", "5", "--seed", "2"}));
  EXPECT_EQ(sources({"--sample", "100"}).size(), 12U);

  const auto metrics = [&](const char* batch) {
    const Output run =
        ponder({"eval", data, "--model", golden("tiny-a"), "--json", "--max-think", "6", "--batch", batch});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.json()["modes"];
  };
  const Json one = metrics("1"), five = metrics("5");
  for (const char* mode : {"no-think", "think"}) {
    EXPECT_EQ(one[mode]["overall"], five[mode]["overall"]) << "answers do not depend on company";
    EXPECT_TRUE(five[mode]["latency_ms"].is_null());
  }
}

TEST_F(EvalVerb, ChecksPutTheSameAnotherWay) {
  const auto [record, known] = labelled(golden_request("tiny-b", "ten-questions-no-think"));
  const std::string data = file("data.jsonl", record.dump() + "\n");
  const Output run = ponder({"eval", data, "--model", golden("tiny-b"), "--no-think", "--json", "--checks"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json checks = run.json()["checks"];
  EXPECT_EQ(checks["options_reversed"]["questions"], 10);
  EXPECT_GT(checks["options_reversed"]["mean_change"].get<double>(), 0.01) << "random weights do mind";
  EXPECT_NEAR(checks["options_reversed"]["accuracy_before"].get<double>(), expected(known).accuracy, 1e-12);
  EXPECT_EQ(checks["questions_reversed"]["questions"], 10);
  EXPECT_EQ(checks["questions_reversed"]["flips"], 0);
  EXPECT_EQ(checks["questions_reversed"]["largest_change"], 0.0) << "to the last bit";
  EXPECT_GT(checks["label_case_changed"]["questions"].get<int>(), 0);
  EXPECT_LT(checks["label_case_changed"]["questions"].get<int>(), 10);
  const Output none = ponder({"eval", data, "--model", golden("tiny-b"), "--no-think", "--json"});
  EXPECT_TRUE(none.json()["checks"].is_null());
}

// A reversed question, asked by hand, gives what the check reports.
TEST_F(EvalVerb, TheReversalCheckAsksTheReversedQuestion) {
  const std::string state = "The parcel is late.";
  const auto ask = [&](const Json& criteria) {
    const Json body = {{"state", state},
                       {"questions", {{"q", {{"type", "choice"}, {"criteria", criteria}}}}}};
    return ponder({"decide", "--model", golden("tiny-b"), "--no-think", "--trace"}, body.dump())
        .json()["questions"]["q"]["probs"];
  };
  const Json forward = ask({{"refund", nullptr}, {"wait", nullptr}, {"call", nullptr}});
  const Json backward = ask({{"call", nullptr}, {"wait", nullptr}, {"refund", nullptr}});
  double change = 0;
  for (std::size_t i = 0; i < 3; ++i)
    change += std::abs(forward[i].get<double>() - backward[2 - i].get<double>()) / 3;
  Json record = {{"state", state},
                 {"questions",
                  {{"q",
                    {{"type", "choice"},
                     {"criteria", {{"refund", nullptr}, {"wait", nullptr}, {"call", nullptr}}},
                     {"label", "wait"}}}}}};
  const Output run = ponder({"eval", file("one.jsonl", record.dump()), "--model", golden("tiny-b"),
                             "--no-think", "--json", "--checks"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NEAR(run.json()["checks"]["options_reversed"]["mean_change"].get<double>(), change, 1e-12);
}

TEST_F(EvalVerb, AgainstAnotherType) {
  const auto [record, known] = labelled(golden_request("tiny-a", "ten-questions-no-think"));
  const std::string data = file("data.jsonl", record.dump() + "\n");
  const auto against = [&](const char* type) {
    const Output run =
        ponder({"eval", data, "--model", golden("tiny-a"), "--no-think", "--json", "--against", type});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.json()["against"];
  };
  const Json same = against("bf16");
  EXPECT_EQ(same["type"], "bf16");
  EXPECT_EQ(same["modes"]["no-think"]["questions"], 10);
  EXPECT_EQ(same["modes"]["no-think"]["flips"], 0) << "the file holds bf16";
  EXPECT_EQ(same["modes"]["no-think"]["largest_change"], 0.0);
  const Json coarse = against("q4");
  EXPECT_GT(coarse["modes"]["no-think"]["largest_change"].get<double>(), 1e-3);
  const Output alone =
      ponder({"eval", data, "--model", golden("tiny-a"), "--no-think", "--json", "--type", "q4"});
  EXPECT_EQ(coarse["modes"]["no-think"]["after"], [&] {
    Json overall = alone.json()["modes"]["no-think"]["overall"];
    overall.erase("unanswerable");
    return overall;
  }());
}

std::string bench_record(const std::string& id, const std::string& family, const Json& question,
                         const Json& labels, const Json& expected) {
  return Json{{"id", id},
              {"family", family},
              {"state", "A shop sells shoes."},
              {"question", question},
              {"labels", labels},
              {"expected", expected},
              {"split", "public"}}
             .dump() +
         "\n";
}

TEST_F(EvalVerb, JevBenchFilesByTier) {
  const Json noul = {{"type", "noul"}, {"instructions", "Is it a shop?"}, {"criteria", nullptr}};
  const Json score = {
      {"type", "score"}, {"instructions", "How many?"}, {"criteria", {"none", "some", "all"}}};
  const std::string easy = file("easy.jsonl", bench_record("e1", "fact", noul, {"no", "yes"}, "yes") +
                                                  bench_record("e2", "fact", noul, {"no", "yes"}, "no"));
  const std::string hard = file("hard.jsonl", bench_record("h1", "trap", score, {"0", "1", "2"}, 1));
  const Output run = ponder(
      {"eval", easy, hard, "--model", golden("tiny-a"), "--no-think", "--json", "--usd-per-hour", "0.5"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json report = run.json(), &score_of = report["modes"]["no-think"]["jevbench"];
  EXPECT_EQ(report["form"], "jevbench");
  EXPECT_EQ(score_of["tiers"]["easy"]["count"], 2);
  EXPECT_EQ(score_of["tiers"]["easy"]["accuracy"], 0.5) << "the same question with both answers";
  EXPECT_EQ(score_of["tiers"]["easy"]["corrected"], 0.0);
  EXPECT_EQ(score_of["tiers"]["hard"]["count"], 1);
  EXPECT_NEAR(score_of["tiers"]["hard"]["chance"].get<double>(), 1.0 / 3, 1e-12);
  EXPECT_EQ(score_of["tiers"]["hard"]["invalid"], 0);
  EXPECT_NEAR(score_of["weight"].get<double>(), 0.44, 1e-12);
  EXPECT_TRUE(score_of["public_composite"].is_number());
  expect_error(ponder({"eval", easy, easy, "--model", golden("tiny-a")}), 1,
               "easy.jsonl:1: id 'e1' was there before");
}

TEST_F(EvalVerb, PlotsCutLongNamesBetweenCharacters) {
  std::string long_name, kept, whole;
  for (int i = 0; i < 27; ++i) long_name += "\u00e4";
  for (int i = 0; i < 23; ++i) kept += "\u00e4";
  for (int i = 0; i < 26; ++i) whole += "\u20ac";
  const std::string data = file("data.jsonl", noul("one", "true", long_name) + noul("two", "false", whole));
  const Output run = ponder(
      {"eval", data, "--model", golden("tiny-a"), "--max-think", "8", "--svg", path("plots").string()});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string svg = read_file(path("plots") / "sources.svg");
  EXPECT_THAT(svg, HasSubstr(">" + kept + "... (1)<"));
  EXPECT_THAT(svg, HasSubstr(">" + whole + " (1)<"));
  EXPECT_THAT(svg, Not(HasSubstr("\uFFFD")));
}

TEST_F(EvalVerb, ThePageIsSelfContainedAndTakesNoTextAtItsWord) {
  const std::string evil = "</title><script>alert('x\" & y')</script>";
  const std::string data = file("data.jsonl", noul("one", "true", evil) + noul("two", "false", "b]]>") +
                                                  noul("three", "null", std::string("\x01\x7f") + "c"));
  const Output run = ponder({"eval", data, "--model", golden("tiny-a"), "--max-think", "8", "--html",
                             path("r.html").string(), "--svg", path("plots").string()});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string page = read_file(path("r.html"));
  EXPECT_THAT(page, HasSubstr("&lt;/title&gt;&lt;script&gt;alert(&#39;x&quot; &amp; y&#39;)"));
  for (const char* bad :
       {"<script", "http:", "https:", "src=", "href=", "url(", "@import", "onload", "\x01"}) {
    std::string rest = page;  // the one address is the name of SVG's namespace
    for (std::size_t at; (at = rest.find("xmlns=\"http://www.w3.org/2000/svg\"")) != std::string::npos;)
      rest.erase(at, 34);
    EXPECT_THAT(rest, Not(HasSubstr(bad)));
  }
  for (const char* part :
       {"Reliability", "Risk and coverage", "Accuracy by source", "Thinking only when unsure", "Latency",
        "Tokens of thought", "options in reverse"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  for (const char* plot : {"reliability", "risk-coverage", "sources", "selective", "latency", "tokens"}) {
    const std::string svg = read_file(path("plots") / (std::string(plot) + ".svg"));
    EXPECT_THAT(svg, testing::StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
    EXPECT_THAT(page, HasSubstr(svg)) << "the page holds the same plot";
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_THAT(entry.path().filename().string(), testing::AnyOf("data.jsonl", "r.html", "plots"))
        << "no drafts left";
  }
}

TEST_F(EvalVerb, WrongLinesAreNamedWithFileAndLine) {
  const std::string good = noul("one", "true");
  const Json noul_question = {{"type", "noul"}};
  const auto refused = [&](const std::string& line, const std::string& part) {
    const std::string data = file("bad.jsonl", good + "\n" + line + "\n" + good);
    SCOPED_TRACE(line.substr(0, 100));
    const Output eval = ponder({"eval", data, "--model", golden("tiny-a")});
    expect_error(eval, 1, "bad.jsonl:3: ");
    expect_error(eval, 1, part);
    expect_error(ponder({"calibrate", data, "--model", golden("tiny-a")}), 1, "bad.jsonl:3: ");
  };
  refused("{\"state\": ", "invalid JSON");
  refused("[]", "JSON object");
  refused("{\"state\": NaN}", "invalid JSON");
  refused(R"({"state": "", "questions": {"q": {"type": "noul", "label": NaN}}})", "invalid JSON");
  refused(R"({"state": "", "questions": {"q": {"type": "noul"}}})", "no label");
  refused(R"({"questions": {"q": {"type": "noul", "label": true}}})", "state is required");
  refused(R"({"state": "", "questions": {"q": {"type": "choice", "criteria": {"a": null}, "label": "b"}}})",
          "'b'");
  refused(bench_record("x", "fact", noul_question, {"no", "yes"}, "yes"), "mixed");
  refused("{\"state\": \"\xff\", \"questions\": {}}", "UTF-8");
  refused("{\"a\":" + std::string(100000, '['), "nested");
}

TEST_F(EvalVerb, NothingToRead) {
  for (const char* verb : {"eval", "calibrate"}) {
    expect_error(ponder({verb, file("empty.jsonl", ""), "--model", golden("tiny-a")}), 1, "no records");
    expect_error(ponder({verb, file("blank.jsonl", "\n \n\n"), "--model", golden("tiny-a")}), 1,
                 "no records");
    expect_error(ponder({verb, path("none.jsonl").string(), "--model", golden("tiny-a")}), 1, "none.jsonl");
    expect_error(ponder({verb, folder_.string(), "--model", golden("tiny-a")}), 1, "regular file");
    EXPECT_EQ(ponder({verb}).status, 2);
  }
}

TEST_F(EvalVerb, AMegabyteOfStateFailsAlone) {
  const std::string data =
      file("long.jsonl", noul("short", "true", "a") + noul(std::string(1 << 20, 'x'), "true", "long") +
                             noul("short", "false", "b"));
  const Output run = ponder({"eval", data, "--model", golden("tiny-a"), "--no-think", "--json"});
  EXPECT_EQ(run.status, 1);
  const Json report = run.json(), &mode = report["modes"]["no-think"];
  EXPECT_EQ(report["failures"], 1);
  EXPECT_THAT(report["first_failure"].get<std::string>(), HasSubstr("long.jsonl:2: "));
  EXPECT_THAT(run.err, HasSubstr("exceeds the limit"));
  EXPECT_EQ(mode["overall"]["count"], 3);
  EXPECT_EQ(mode["overall"]["failed"], 1);
  EXPECT_EQ(mode["by_source"]["long"]["failed"], 1);
  EXPECT_EQ(mode["overall"]["correct"], 1) << "the same question with both answers";
}

TEST_F(EvalVerb, WrongUsageIsRefusedBeforeAnyWork) {
  const std::string data = file("data.jsonl", noul("one", "true"));
  const auto refused = [&](const std::vector<std::string>& more, const std::string& part, int status = 2) {
    std::vector<std::string> arguments = {"eval", data, "--model", "/nonexistent"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_error(ponder(arguments), status, part);
  };
  refused({"--limit", "0"}, "--limit");
  refused({"--limit", "1", "--sample", "1"}, "exclude each other");
  refused({"--batch", "0"}, "--batch");
  refused({"--seed", "-1"}, "--seed");
  refused({"--against", "q3"}, "q3");
  refused({"--nothink-threshold", "1.5"}, "--nothink-threshold");
  refused({"--nothink-threshold", "nan"}, "--nothink-threshold");
  refused({"--no-think", "--nothink-threshold", "0.5"}, "--nothink-threshold");
  refused({"--think", "--max-think", "0"}, "--max-think 0");
  refused({"--think", "--checks"}, "--checks");
  refused({"--usd-per-hour", "-1"}, "--usd-per-hour");
  refused({"--html", "/nonexistent/r.html"}, "/nonexistent/r.html", 1);
  refused({"--html", folder_.string()}, "is a folder", 1);
  refused({"--svg", data + "/x"}, "data.jsonl/x", 1);
}

TEST_F(EvalVerb, AnInterruptedRunLeavesNothing) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += noul("state " + std::to_string(i), "true");
  const std::string data = file("data.jsonl", lines);
  const Output run = shell("timeout -s INT 1 \"$0\" eval " + data + " --model " + golden("tiny-a") +
                           " --max-think 400 --html " + path("r.html").string());
  EXPECT_NE(run.status, 0);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace ponder::test
