#include "decide/request.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "decide/json_write.hpp"
#include "support.hpp"

namespace ponder::decide {
namespace {

using test::at;
using test::items;
using test::message_of;

Request request(const std::string& json, const Options& defaults = {}) {
  return parse_request(parse_json(json), defaults);
}

std::string refusal(const std::string& json) {
  return message_of([&] { request(json); });
}

std::string refusal_of_question(const std::string& question) {
  return refusal("{\"state\":\"s\",\"questions\":{\"q\":" + question + "}}");
}

std::string refusal_of_options(const std::string& options) {
  return refusal(R"({"state":"s","questions":{"q":{"type":"noul"}},"options":)" + options + "}");
}

TEST(Request, EverythingInItsPlace) {
  const Request r = request(R"({"extra": null, "model": "jev-latest", "options":
      {"think": false, "max_think": 12, "nothink_threshold": 0.75, "return_reasoning": true, "deadline_ms": 8000,
       "skill": "mail"}, "questions": {"b": {"type": "choice", "criteria": {"x": null, "y": 1}},
       "a": {"instructions": ["?"], "type": "score", "criteria": ["lo", "hi"]},
       "": {"type": "noul", "criteria": {"true": "t"}}}, "state": {"k": 1.0}})");
  EXPECT_EQ(write_json(r.state), R"({"k":1.0})");
  EXPECT_EQ(r.model, "jev-latest");
  ASSERT_EQ(r.questions.size(), 3U);
  EXPECT_EQ(r.questions[0].id, "b");
  EXPECT_EQ(r.questions[0].type, QuestionType::choice);
  EXPECT_TRUE(r.questions[0].instructions.is_null());
  EXPECT_EQ(r.questions[1].id, "a");
  EXPECT_EQ(r.questions[1].type, QuestionType::score);
  EXPECT_EQ(write_json(r.questions[1].instructions), R"(["?"])");
  EXPECT_EQ(r.questions[2].id, "");
  EXPECT_EQ(option_texts(r.questions[2]), (std::vector<std::string>{"no", "yes: t"}));
  EXPECT_FALSE(r.options.think);
  EXPECT_EQ(r.options.max_think, 12);
  EXPECT_EQ(r.options.nothink_threshold, 0.75);
  EXPECT_TRUE(r.options.return_reasoning);
  EXPECT_EQ(r.options.deadline_ms, 8000);
  EXPECT_EQ(r.options.skill, "mail");
}

TEST(Request, DefaultsAndTheServersOwn) {
  const std::string bare = R"({"state":null,"questions":{"q":{"type":"noul"}})";
  for (const char* options : {"}", R"(,"options":null})", R"(,"options":{}})"}) {
    const Request r = request(bare + options);
    EXPECT_FALSE(r.model);
    EXPECT_TRUE(r.options.think);
    EXPECT_EQ(r.options.max_think, 2560);
    EXPECT_FALSE(r.options.nothink_threshold);
    EXPECT_FALSE(r.options.return_reasoning);
    EXPECT_FALSE(r.options.deadline_ms);
    EXPECT_FALSE(r.options.skill);
  }
  Options server;
  server.think = false;
  server.max_think = 7;
  server.nothink_threshold = 0.5;
  server.deadline_ms = 9000;
  EXPECT_EQ(request(bare + "}", server).options.max_think, 7);
  EXPECT_EQ(request(bare + R"(,"options":{"think":true}})", server).options.nothink_threshold, 0.5);
  EXPECT_EQ(request(bare + R"(,"options":{"think":true}})", server).options.deadline_ms, 9000);
  // null is a value of its own here: no threshold
  EXPECT_FALSE(request(bare + R"(,"options":{"nothink_threshold":null}})", server).options.nothink_threshold);
}

TEST(Request, GoldenRefusals) {
  const Value golden = test::read_json("decide/cases-answers.json");
  EXPECT_EQ(items(at(golden, "refused_requests")).size(), 33U);
  for (const Value& c : items(at(golden, "refused_requests"))) {
    EXPECT_FALSE(message_of([&] { parse_request(at(c, "body")); }).empty()) << write_json(c);
  }
}

TEST(Request, MessagesOfThePublicServer) {
  for (const char* body : {"[]", "null", "1", "\"x\"", "true"}) {
    EXPECT_EQ(refusal(body), "request body must be a JSON object");
  }
  EXPECT_EQ(refusal("{}"), "state is required");
  EXPECT_EQ(refusal(R"({"questions":{}})"), "state is required");
  for (const char* q : {"{}", "[]", "null", "\"q\"", "0"}) {
    EXPECT_EQ(refusal(std::string(R"({"state":1,"questions":)") + q + "}"),
              "questions must be a non-empty object");
  }
  EXPECT_EQ(refusal(R"({"state":1})"), "questions must be a non-empty object");
  EXPECT_EQ(refusal(R"({"state":1,"model":null,"questions":{"q":1}})"), "model must be a string");
  EXPECT_EQ(refusal_of_question("[]"), "question 'q' must be an object");
  EXPECT_EQ(refusal_of_question("null"), "question 'q' must be an object");
  const std::string types = "question 'q': type must be one of ['choice', 'noul', 'score']";
  EXPECT_EQ(refusal_of_question("{}"), types);
  EXPECT_EQ(refusal_of_question(R"({"type":"Noul","zzz":1})"), types);
  EXPECT_EQ(refusal_of_question(R"({"type":["noul"]})"), types);
  EXPECT_EQ(refusal_of_question(R"({"type":"choice","b":1,"a'":2,"criterion":{}})"),
            "question 'q': unknown fields [\"a'\", 'b', 'criterion']");
  const std::string choice = "question 'q': choice criteria must be an object with 1..255 options";
  for (const char* criteria : {"{}", "[]", "[\"a\"]", "null", "\"a\"", "true"}) {
    EXPECT_EQ(refusal_of_question(std::string(R"({"type":"choice","criteria":)") + criteria + "}"), choice);
  }
  EXPECT_EQ(refusal_of_question(R"({"type":"choice"})"), choice);
  const std::string noul = "question 'q': noul criteria may only describe true and false";
  for (const char* criteria : {"[]", "\"\"", "false", R"({"true":1,"True":1})", R"({"yes":1})"}) {
    EXPECT_EQ(refusal_of_question(std::string(R"({"type":"noul","criteria":)") + criteria + "}"), noul);
  }
  const std::string score = "question 'q': score criteria must be a list of 1..255 levels";
  for (const char* criteria : {"{}", "[]", "null", R"({"0":1})", "3"}) {
    EXPECT_EQ(refusal_of_question(std::string(R"({"type":"score","criteria":)") + criteria + "}"), score);
  }
  EXPECT_EQ(refusal_of_question(R"({"type":"score"})"), score);
  EXPECT_EQ(refusal(R"({"state":1,"questions":{"it's":1}})"), "question \"it's\" must be an object");
  EXPECT_EQ(refusal("{\"state\":1,\"questions\":{\"a\\nb\\u2028é\":1}}"),
            "question 'a\\nb\\u2028é' must be an object");

  EXPECT_EQ(refusal_of_options("[]"), "options must be an object");
  EXPECT_EQ(refusal_of_options("false"), "options must be an object");
  EXPECT_EQ(refusal_of_options(R"({"thinking":1,"Think":2,"think":3})"),
            "unknown options: ['Think', 'thinking']");
  const std::string bools = "think and return_reasoning must be booleans";
  const std::string budget = "max_think must be a non-negative integer";
  const std::string threshold = "nothink_threshold must be null or a number in [0, 1]";
  const std::string deadline = "deadline_ms must be a positive integer";
  const std::map<std::string, std::vector<std::string>> bad{
      {bools, {R"({"think":1})", R"({"think":null})", R"({"think":"true"})", R"({"return_reasoning":0})"}},
      {budget,
       {R"({"max_think":-1})", R"({"max_think":1.0})", R"({"max_think":true})", R"({"max_think":null})",
        R"({"max_think":"5"})", R"({"max_think":-99999999999999999999})"}},
      {threshold,
       {R"({"nothink_threshold":1.0000000000000002})", R"({"nothink_threshold":-1e-300})",
        R"({"nothink_threshold":2})", R"({"nothink_threshold":-1})", R"({"nothink_threshold":true})",
        R"({"nothink_threshold":"0.5"})", R"({"nothink_threshold":[]})",
        R"({"nothink_threshold":99999999999999999999})"}},
      {deadline,
       {R"({"deadline_ms":0})", R"({"deadline_ms":-5})", R"({"deadline_ms":1.5})", R"({"deadline_ms":null})",
        R"({"deadline_ms":true})", R"({"deadline_ms":"1"})"}},
      {"skill must be a string", {R"({"skill":null})", R"({"skill":1})", R"({"skill":[]})"}}};
  for (const auto& [message, all] : bad) {
    for (const std::string& options : all) EXPECT_EQ(refusal_of_options(options), message) << options;
  }
}

TEST(Request, ChecksComeInTheirOrder) {
  // everything is wrong; mending the first complaint uncovers the next
  EXPECT_EQ(refusal(R"({"model":1,"questions":1,"options":1})"), "state is required");
  EXPECT_EQ(refusal(R"({"state":1,"model":1,"questions":1,"options":1})"),
            "questions must be a non-empty object");
  EXPECT_EQ(refusal(R"({"options":1,"state":1,"model":1,"questions":{"q":1}})"), "model must be a string");
  EXPECT_EQ(refusal(R"({"options":1,"state":1,"questions":{"z":{"type":"score"},"a":1}})"),
            "question 'z': score criteria must be a list of 1..255 levels");
  EXPECT_EQ(refusal(R"({"options":1,"state":1,"questions":{"z":{"type":"noul"},"a":{"x":1,"criteria":1}}})"),
            "question 'a': type must be one of ['choice', 'noul', 'score']");
  EXPECT_EQ(refusal(R"({"options":1,"state":1,"questions":{"a":{"type":"score","x":1,"criteria":1}}})"),
            "question 'a': unknown fields ['x']");
  EXPECT_EQ(
      refusal(R"({"options":{"max_think":-1,"think":1,"x":1},"state":1,"questions":{"a":{"type":"noul"}}})"),
      "unknown options: ['x']");
  EXPECT_EQ(refusal(R"({"options":{"max_think":-1,"think":1},"state":1,"questions":{"a":{"type":"noul"}}})"),
            "think and return_reasoning must be booleans");
  EXPECT_EQ(
      refusal(
          R"({"options":{"nothink_threshold":2,"max_think":-1},"state":1,"questions":{"a":{"type":"noul"}}})"),
      "max_think must be a non-negative integer");
}

TEST(Request, EdgesOfTheRanges) {
  std::string labels, levels;
  for (int i = 0; i < 256; ++i) {
    labels += fmt::format("{}\"o{}\":null", i > 0 ? "," : "", i);
    levels += fmt::format("{}{}", i > 0 ? "," : "", i);
    if (i < 253) continue;
    const bool fits = i + 1 <= 255;
    EXPECT_EQ(refusal_of_question(R"({"type":"choice","criteria":{)" + labels + "}}").empty(), fits) << i;
    EXPECT_EQ(refusal_of_question(R"({"type":"score","criteria":[)" + levels + "]}").empty(), fits) << i;
  }
  // repeated labels are one option
  EXPECT_EQ(refusal_of_question(R"({"type":"choice","criteria":{)" + labels.substr(0, labels.rfind(',')) +
                                R"(,"o0":1}})"),
            "");
  const auto options = [](const std::string& o) {
    return request(R"({"state":"","questions":{"q":{"type":"noul"}},"options":)" + o + "}").options;
  };
  EXPECT_EQ(options(R"({"max_think":0})").max_think, 0);
  EXPECT_EQ(options(R"({"max_think":-0})").max_think, 0);
  EXPECT_EQ(options(R"({"max_think":9223372036854775807})").max_think, max_setting);
  EXPECT_EQ(options(R"({"max_think":99999999999999999999999})").max_think, max_setting);
  EXPECT_EQ(options(R"({"deadline_ms":99999999999999999999999})").deadline_ms, max_setting);
  EXPECT_EQ(options(R"({"nothink_threshold":0})").nothink_threshold, 0.0);
  EXPECT_EQ(options(R"({"nothink_threshold":1})").nothink_threshold, 1.0);
  EXPECT_EQ(options(R"({"nothink_threshold":-0.0})").nothink_threshold, 0.0);
  EXPECT_EQ(options(R"({"nothink_threshold":0.999})").nothink_threshold, 0.999);
  EXPECT_EQ(options(R"({"skill":""})").skill, "");
}

TEST(Request, HostileNamesStayOneBoundedLine) {
  const std::string long_name(100000, 'x');
  std::string fields;
  for (int i = 0; i < 5000; ++i) fields += fmt::format("\"field {}\":1,", i);
  for (const std::string& body :
       {fmt::format(R"({{"state":1,"questions":{{"{}":1}}}})", long_name),
        fmt::format(R"({{"state":1,"questions":{{"q":{{{}"type":"noul"}}}}}})", fields),
        fmt::format(R"({{"state":1,"questions":{{"q":{{"type":"noul"}}}},"options":{{{}"{}":1}}}})", fields,
                    long_name)}) {
    const std::string message = refusal(body);  // bounded and one line: checked by failure_of
    EXPECT_TRUE(message.starts_with("question '") || message.starts_with("unknown options: [")) << message;
  }
}

// ---------------------------------------------------------------- complaint 24

struct Field {
  std::string body;  // '@' stands for the member, comma included
  std::string name;
  std::string good;                            // a value that is accepted
  std::map<std::string, std::string> refused;  // value -> message; all others are accepted
  std::string missing;                         // message when the member is left out, "" when it may be
};

std::vector<Field> fields() {
  const std::vector<std::string> all{"null", "true", "-1", "\"\"", "[]", "{}"};
  const auto but = [&](const std::vector<std::string>& accepted, const std::string& message) {
    std::map<std::string, std::string> out;
    for (const auto& v : all) {
      if (std::find(accepted.begin(), accepted.end(), v) == accepted.end()) out[v] = message;
    }
    return out;
  };
  const auto in_question = [](const std::string& members) {
    return R"({"state":"s","questions":{"q":{)" + members + "}}}";
  };
  const std::string with_options =
      R"({"state":"s","questions":{"q":{"type":"noul"}},"options":{@"return_reasoning":true}})";
  const std::string types = "question 'q': type must be one of ['choice', 'noul', 'score']";
  const std::string choice = "question 'q': choice criteria must be an object with 1..255 options";
  const std::string noul = "question 'q': noul criteria may only describe true and false";
  const std::string score = "question 'q': score criteria must be a list of 1..255 levels";
  const std::string questions = "questions must be a non-empty object";
  return {
      {R"({@"questions":{"q":{"type":"noul"}}})", "state", "\"s\"", {}, "state is required"},
      {R"({@"state":"s"})", "questions", R"({"q":{"type":"noul"}})", but({}, questions), questions},
      {R"({@"state":"s","questions":{"q":{"type":"noul"}}})", "model", "\"m\"",
       but({"\"\""}, "model must be a string"), ""},
      {R"({@"state":"s","questions":{"q":{"type":"noul"}}})", "options", "{}",
       but({"null", "{}"}, "options must be an object"), ""},
      {R"({@"state":"s","questions":{"q":{"type":"noul"}}})", "unknown", "1", {}, ""},
      {R"({"state":"s","questions":{@"z":{"type":"noul"}}})", "q", R"({"type":"noul"})",
       [&] {
         auto out = but({"{}"}, "question 'q' must be an object");
         out["{}"] = types;
         return out;
       }(),
       ""},
      {in_question(R"(@"instructions":"i")"), "type", "\"noul\"", but({}, types), types},
      {in_question(R"(@"type":"noul")"), "instructions", "\"i\"", {}, ""},
      {in_question(R"(@"type":"noul")"), "criteria", "{\"true\":1}", but({"null", "{}"}, noul), ""},
      {in_question(R"(@"type":"choice")"), "criteria", "{\"a\":1}", but({}, choice), choice},
      {in_question(R"(@"type":"score")"), "criteria", "[1]", but({}, score), score},
      {in_question(R"("type":"choice","criteria":{@"z":null})"), "a", "\"note\"", {}, ""},
      {in_question(R"("type":"noul","criteria":{@"true":null})"), "false", "\"note\"", {}, ""},
      {with_options, "think", "false", but({"true"}, "think and return_reasoning must be booleans"), ""},
      {R"({"state":"s","questions":{"q":{"type":"noul"}},"options":{@"think":true}})", "return_reasoning",
       "false", but({"true"}, "think and return_reasoning must be booleans"), ""},
      {with_options, "max_think", "5", but({}, "max_think must be a non-negative integer"), ""},
      {with_options, "nothink_threshold", "0.5",
       but({"null"}, "nothink_threshold must be null or a number in [0, 1]"), ""},
      {with_options, "deadline_ms", "5", but({}, "deadline_ms must be a positive integer"), ""},
      {with_options, "skill", "\"s\"", but({"\"\""}, "skill must be a string"), ""},
  };
}

std::string filled(const Field& f, const std::string& members) {
  std::string out = f.body;
  return out.replace(out.find('@'), 1, members);
}

TEST(Request, Complaint24_EveryFieldWithEveryWrongValue) {
  for (const Field& f : fields()) {
    const auto member = [&](const std::string& value) { return "\"" + f.name + "\":" + value + ","; };
    EXPECT_EQ(refusal(filled(f, member(f.good))), "") << f.body;
    EXPECT_EQ(refusal(filled(f, "")), f.missing) << f.body;
    for (const char* value : {"null", "true", "-1", "\"\"", "[]", "{}"}) {
      const auto found = f.refused.find(value);
      const std::string expected = found == f.refused.end() ? "" : found->second;
      EXPECT_EQ(refusal(filled(f, member(value))), expected) << f.body << ' ' << value;
      // a repeated key: the last value counts, whatever the first was
      EXPECT_EQ(refusal(filled(f, member(value) + member(f.good))), "") << f.body << ' ' << value;
      EXPECT_EQ(refusal(filled(f, member(f.good) + member(value))), expected) << f.body << ' ' << value;
    }
    for (const char* value : {"1e999", "\"\\ud800\"", "\"\xFF\"", "NaN", "-Infinity", "\xFF"}) {
      EXPECT_TRUE(refusal(filled(f, member(value))).starts_with("invalid JSON at line 1"))
          << f.body << ' ' << value;
    }
    for (const char* name : {"\\ud800", "\xFF"}) {
      EXPECT_TRUE(
          refusal(filled(f, "\"" + std::string(name) + "\":1,")).starts_with("invalid JSON at line 1"));
    }
  }
}

// ---------------------------------------------------------------- complaint 42

TEST(Request, Complaint42_OrderIsTheTextsOrder) {
  const Request r = request(R"({"state":"s","questions":{
      "10":{"type":"choice","criteria":{"10":null,"9":"n","b":null,"2":null,"-1":null,"a":null,"01":null}},
      "9":{"type":"noul"},"b":{"type":"noul"},"a":{"type":"noul"},"1":{"type":"noul"}}})");
  std::vector<std::string> ids;
  for (const Question& q : r.questions) ids.push_back(q.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"10", "9", "b", "a", "1"}));
  EXPECT_EQ(option_keys(r.questions[0]), (std::vector<std::string>{"10", "9", "b", "2", "-1", "a", "01"}));
  EXPECT_EQ(option_texts(r.questions[0]),
            (std::vector<std::string>{"10", "9: n", "b", "2", "-1", "a", "01"}));
}

TEST(Request, Complaint42_EveryPermutationKeepsItsOrder) {
  std::vector<std::string> labels{"2", "10", "yes", "是"};
  std::sort(labels.begin(), labels.end());
  do {
    for (const bool described : {false, true}) {
      std::string criteria;
      std::vector<std::string> expected;
      for (const std::string& label : labels) {
        const std::string note = described ? fmt::format("\"about {}\"", label) : "null";
        criteria += fmt::format("{}\"{}\":{}", criteria.empty() ? "" : ",", label, note);
        expected.push_back(described ? fmt::format("{}: about {}", label, label) : label);
      }
      const Request r =
          request(R"({"state":1,"questions":{"q":{"type":"choice","criteria":{)" + criteria + "}}}}");
      EXPECT_EQ(option_keys(r.questions[0]), labels);
      EXPECT_EQ(option_texts(r.questions[0]), expected);
    }
  } while (std::next_permutation(labels.begin(), labels.end()));
}

}  // namespace
}  // namespace ponder::decide
