#include "decide/labelled_record.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "decide/python_format.hpp"

namespace ponder::decide {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::invalid_input, format, std::forward<Args>(args)...);
}

Value* find(Object& object, std::string_view key) {
  for (Member& m : object.members()) {
    if (m.key == key) return &m.value;
  }
  return nullptr;
}

std::optional<std::string> optional_text(const Value* v, std::string_view what) {
  if (v == nullptr || v->is_null()) return std::nullopt;
  if (v->if_string() == nullptr) refuse("{} must be a string", what);
  return *v->if_string();
}

// One question of a request, through the checks that every request goes through.
Request single_request(std::string id, Value state, Value question) {
  Object questions, body;
  questions.append(std::move(id), std::move(question));
  body.append("state", std::move(state));
  body.append("questions", std::move(questions));
  return parse_request(std::move(body));
}

// ---------------------------------------------------------------- labels

std::uint32_t choice_label(const Question& q, const std::string& who, const Value& label) {
  const std::string* name = label.if_string();
  if (name == nullptr) refuse("{}: label must be one of the options, a string", who);
  const std::vector<std::string> keys = option_keys(q);
  const auto at = std::find(keys.begin(), keys.end(), *name);
  if (at == keys.end()) refuse("{}: label {} is not one of the options", who, python_repr(*name, 80));
  return static_cast<std::uint32_t>(at - keys.begin());
}

std::uint32_t noul_label(const std::string& who, const Value& label) {
  if (const bool* b = label.if_bool()) return *b ? 1 : 0;
  const std::string* word = label.if_string();
  if (word != nullptr && (*word == "yes" || *word == "no")) return *word == "yes" ? 1 : 0;
  refuse("{}: label must be true, false, \"yes\" or \"no\"", who);
}

std::uint32_t score_label(const Question& q, const std::string& who, const Value& label) {
  const std::int64_t* level = label.if_integer();
  const std::size_t levels = option_count(q);
  if (level == nullptr || *level < 0 || *level >= static_cast<std::int64_t>(levels)) {
    refuse("{}: label must be the index of a level, 0 to {}", who, levels - 1);
  }
  return static_cast<std::uint32_t>(*level);
}

// A list of probabilities says the same as null when it is even; no other distribution is scored.
void check_even(const Question& q, const std::string& who, const Array& target) {
  const std::size_t n = option_count(q);
  const auto even = [&](const Value& v) {
    const double* d = v.if_double();
    const std::int64_t* i = v.if_integer();
    if (d == nullptr && i == nullptr) return false;
    return std::abs((d != nullptr ? *d : static_cast<double>(*i)) - 1.0 / static_cast<double>(n)) <= 1e-3;
  };
  if (target.size() != n || !std::all_of(target.begin(), target.end(), even)) {
    refuse("{}: a label that is a list must hold even probabilities, {} times {:.3g}", who, n,
           1.0 / static_cast<double>(n));
  }
}

std::optional<std::uint32_t> read_label(const Question& q, const std::string& who, const Value& label) {
  if (label.is_null()) return std::nullopt;
  if (const Array* target = label.if_array()) {
    check_even(q, who, *target);
    return std::nullopt;
  }
  switch (q.type) {
    case QuestionType::choice:
      return choice_label(q, who, label);
    case QuestionType::noul:
      return noul_label(who, label);
    case QuestionType::score:
      break;
  }
  return score_label(q, who, label);
}

// ---------------------------------------------------------------- requests with labels

LabelledRecord parse_requests_form(Object& raw) {
  LabelledRecord out;
  Object* asked = find(raw, "questions")->if_object();
  if (asked == nullptr || asked->empty()) refuse("questions must be a non-empty object");
  std::string source = "unnamed";
  if (const Value* meta = find(raw, "_meta"); meta != nullptr && !meta->is_null()) {
    if (meta->if_object() == nullptr) refuse("_meta must be an object");
    source = optional_text(meta->if_object()->find("source"), "_meta.source").value_or(source);
  }
  std::vector<Value> labels;
  for (Member& m : asked->members()) {
    const std::string who = "question " + python_repr(m.key, 80);
    Object* question = m.value.if_object();
    if (question == nullptr) refuse("{} must be an object", who);
    const Value* label = question->find("label");
    if (label == nullptr) refuse("{} has no label (null where the state does not say)", who);
    labels.push_back(*label);
    out.labels.push_back({{}, optional_text(question->find("src"), who + ": src").value_or(source)});
    // Names with an underscore are notes of whoever made the data.
    std::erase_if(question->members(), [](const Member& field) {
      return field.key == "label" || field.key == "src" || field.key.starts_with('_');
    });
  }
  Object body;
  for (const char* key : {"state", "questions"}) {
    if (Value* v = find(raw, key)) body.append(key, std::move(*v));
  }
  out.request = parse_request(std::move(body));
  for (std::size_t q = 0; q < labels.size(); ++q) {
    const Question& question = out.request.questions[q];
    out.labels[q].option = read_label(question, "question " + python_repr(question.id, 80), labels[q]);
  }
  return out;
}

// ---------------------------------------------------------------- JevBench

// How the benchmark calls the options, in our order.
std::vector<std::string> benchmark_labels(const Question& q) {
  if (q.type == QuestionType::noul) return {"no", "yes"};
  return option_keys(q);
}

void check_labels(const Question& q, const Value* labels) {
  const Array* list = labels == nullptr ? nullptr : labels->if_array();
  if (list == nullptr) refuse("labels must be a list of strings");
  std::vector<std::string> found, expected = benchmark_labels(q);
  for (const Value& v : *list) {
    if (v.if_string() == nullptr) refuse("labels must be a list of strings");
    found.push_back(*v.if_string());
  }
  std::sort(found.begin(), found.end());
  std::sort(expected.begin(), expected.end());
  if (found != expected) {
    refuse("labels do not name the {} options of the question, each once", expected.size());
  }
}

LabelledRecord parse_jevbench_form(Object& raw) {
  LabelledRecord out;
  out.form = RecordForm::jevbench;
  const auto required_text = [&](const char* key) {
    auto text = optional_text(find(raw, key), key);
    if (!text || text->empty()) refuse("{} must be a non-empty string", key);
    return *text;
  };
  out.id = required_text("id");
  Label label{{}, required_text("family")};
  Value* state = find(raw, "state");
  if (state == nullptr) refuse("state is required");
  Value* question = find(raw, "question");
  out.request = single_request(out.id, std::move(*state), std::move(*question));
  const Question& q = out.request.questions.front();
  check_labels(q, find(raw, "labels"));
  const Value* expected = find(raw, "expected");
  if (expected == nullptr) refuse("expected is missing (null where the answer is not known)");
  if (expected->if_bool() != nullptr) refuse("expected must be \"no\" or \"yes\", a label, or a level");
  label.option = read_label(q, "expected", *expected);
  out.labels.push_back(std::move(label));
  return out;
}

}  // namespace

const char* form_name(RecordForm form) {
  return form == RecordForm::requests ? "labelled requests" : "JevBench records";
}

LabelledRecord parse_labelled_record(std::string_view line) {
  Value root = parse_json(line);
  Object* raw = root.if_object();
  if (raw == nullptr) refuse("a record must be a JSON object");
  const bool requests = find(*raw, "questions") != nullptr, jevbench = find(*raw, "question") != nullptr;
  if (requests == jevbench) {
    refuse("expected a record with \"questions\" (a labelled request) or with \"question\" (JevBench){}",
           requests ? ", not both" : "");
  }
  return requests ? parse_requests_form(*raw) : parse_jevbench_form(*raw);
}

}  // namespace ponder::decide
