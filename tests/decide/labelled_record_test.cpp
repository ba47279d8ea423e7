// Labelled records: what is read, what is refused and how.
#include "decide/labelled_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/support.hpp"

namespace ponder::decide::test {
namespace {

using testing::HasSubstr;

std::string asked(const std::string& question) {
  return R"({"state": "s", "questions": {"q": )" + question + R"(}, "_meta": {"source": "shop"}})";
}

std::string why(const std::string& line) {
  return message_of([&] { parse_labelled_record(line); });
}

std::optional<std::uint32_t> label_of(const std::string& question) {
  return parse_labelled_record(asked(question)).labels.at(0).option;
}

TEST(LabelledRecord, LabelsOfEveryType) {
  const std::string noul = R"({"type": "noul", "label": )";
  EXPECT_EQ(label_of(noul + "true}"), 1U);
  EXPECT_EQ(label_of(noul + "false}"), 0U);
  EXPECT_EQ(label_of(noul + "\"yes\"}"), 1U);
  EXPECT_EQ(label_of(noul + "\"no\"}"), 0U);
  EXPECT_EQ(label_of(R"({"type": "choice", "criteria": {"b": null, "a": "x"}, "label": "a"})"), 1U);
  EXPECT_EQ(label_of(R"({"type": "score", "criteria": ["l", "m", "h"], "label": 2})"), 2U);
}

TEST(LabelledRecord, AnswersThatTheStateDoesNotGive) {
  EXPECT_EQ(label_of(R"({"type": "noul", "label": null})"), std::nullopt);
  EXPECT_EQ(label_of(R"({"type": "noul", "label": [0.5, 0.5]})"), std::nullopt);
  EXPECT_EQ(label_of(R"({"type": "score", "criteria": [1, 2, 3], "label": [0.333, 0.333, 0.334]})"),
            std::nullopt);
  EXPECT_THAT(why(asked(R"({"type": "noul", "label": [0.9, 0.1]})")), HasSubstr("even"));
  EXPECT_THAT(why(asked(R"({"type": "noul", "label": [0.5]})")), HasSubstr("even"));
}

TEST(LabelledRecord, SourcesAndNotes) {
  const LabelledRecord record = parse_labelled_record(
      R"({"state": {"a": 1}, "questions": {"q": {"type": "noul", "label": true, "src": "rules", "_how": [1]},
          "r": {"type": "noul", "label": false}}, "_meta": {"source": "shop"}, "split": "dev"})");
  EXPECT_EQ(record.form, RecordForm::requests);
  ASSERT_EQ(record.labels.size(), 2U);
  EXPECT_EQ(record.labels[0].source, "rules");
  EXPECT_EQ(record.labels[1].source, "shop");
  EXPECT_EQ(record.request.questions[1].id, "r");
  EXPECT_EQ(parse_labelled_record(R"({"state": "", "questions": {"q": {"type": "noul", "label": true}}})")
                .labels[0]
                .source,
            "unnamed");
}

TEST(LabelledRecord, WrongLabelsAreNamed) {
  EXPECT_THAT(why(asked(R"({"type": "noul", "label": 1})")), HasSubstr("'q': label must be true, false"));
  EXPECT_THAT(why(asked(R"({"type": "noul", "label": "maybe"})")), HasSubstr("\"yes\" or \"no\""));
  EXPECT_THAT(why(asked(R"({"type": "noul"})")), HasSubstr("has no label"));
  const std::string choice = R"({"type": "choice", "criteria": {"a": null, "b": null}, "label": )";
  EXPECT_THAT(why(asked(choice + "\"c\"}")), HasSubstr("label 'c' is not one of the options"));
  EXPECT_THAT(why(asked(choice + "0}")), HasSubstr("a string"));
  const std::string score = R"({"type": "score", "criteria": ["l", "h"], "label": )";
  for (const char* label : {"2}", "-1}", "0.5}", "\"0\"}", "true}", "99999999999999999999}"}) {
    EXPECT_THAT(why(asked(score + label)), HasSubstr("0 to 1")) << label;
  }
}

TEST(LabelledRecord, WrongRecordsAreNamed) {
  EXPECT_THAT(why("[1]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(why("{}"), HasSubstr("\"questions\""));
  EXPECT_THAT(why(R"({"questions": {}, "question": {}})"), HasSubstr("not both"));
  EXPECT_THAT(why(R"({"questions": {"q": {"type": "noul", "label": true}}})"),
              HasSubstr("state is required"));
  EXPECT_THAT(why(R"({"state": "", "questions": {}})"), HasSubstr("non-empty"));
  EXPECT_THAT(why(R"({"state": "", "questions": {"q": 1}})"), HasSubstr("must be an object"));
  EXPECT_THAT(why(asked(R"({"type": "noul", "label": true, "lable": 1})")), HasSubstr("lable"));
  EXPECT_THAT(why(asked(R"({"type": "noul", "label": true, "src": 3})")), HasSubstr("src"));
  EXPECT_THAT(why(R"({"state": NaN, "questions": {}})"), HasSubstr("invalid JSON"));
  EXPECT_THAT(why(asked(R"({"type": "score", "criteria": ["l", "h"], "label": NaN})")),
              HasSubstr("invalid JSON"));
}

// ---- JevBench

std::string bench(const std::string& changed_key = "", const std::string& value = "") {
  std::vector<std::pair<std::string, std::string>> fields = {
      {"id", "\"t-1\""},
      {"family", "\"intent\""},
      {"state", "\"text\""},
      {"question", R"({"type": "choice", "instructions": "Which?", "criteria": {"b": "B", "a": "A"}})"},
      {"labels", R"(["a", "b"])"},
      {"expected", "\"a\""},
      {"split", "\"public\""}};
  std::string out = "{";
  for (auto& [key, text] : fields) {
    if (key == changed_key) text = value;
    if (text.empty()) continue;
    out += (out.size() > 1 ? ", \"" : "\"") + key + "\": " + text;
  }
  return out + "}";
}

TEST(LabelledRecord, JevBenchRecords) {
  const LabelledRecord record = parse_labelled_record(bench());
  EXPECT_EQ(record.form, RecordForm::jevbench);
  EXPECT_EQ(record.id, "t-1");
  EXPECT_EQ(record.labels[0].source, "intent");
  EXPECT_EQ(record.labels[0].option, 1U) << "places are those of the criteria, not of the list of labels";
  EXPECT_EQ(parse_labelled_record(bench("expected", "null")).labels[0].option, std::nullopt);
  const std::string noul = R"({"id": "n", "family": "fact", "state": "", "question": {"type": "noul"},
                               "labels": ["no", "yes"], "expected": "yes"})";
  EXPECT_EQ(parse_labelled_record(noul).labels[0].option, 1U);
  const std::string score =
      R"({"id": "n", "family": "ordinal", "state": "", "question": {"type": "score", "criteria":
                               ["x", "y", "z"]}, "labels": ["0", "1", "2"], "expected": 2})";
  EXPECT_EQ(parse_labelled_record(score).labels[0].option, 2U);
}

TEST(LabelledRecord, WrongJevBenchRecordsAreNamed) {
  EXPECT_THAT(why(bench("id", "3")), HasSubstr("id must be a string"));
  EXPECT_THAT(why(bench("family", "")), HasSubstr("family must be a non-empty string"));
  EXPECT_THAT(why(bench("state", "")), HasSubstr("state is required"));
  EXPECT_THAT(why(bench("labels", R"(["a"])")), HasSubstr("do not name the 2 options"));
  EXPECT_THAT(why(bench("labels", R"(["a", "a"])")), HasSubstr("do not name"));
  EXPECT_THAT(why(bench("labels", "7")), HasSubstr("list of strings"));
  EXPECT_THAT(why(bench("expected", "\"c\"")), HasSubstr("'c'"));
  EXPECT_THAT(why(bench("expected", "true")), HasSubstr("expected must be"));
  EXPECT_THAT(why(bench("expected", "")), HasSubstr("expected is missing"));
  EXPECT_THAT(why(bench("question", "[]")), HasSubstr("must be an object"));
}

}  // namespace
}  // namespace ponder::decide::test
