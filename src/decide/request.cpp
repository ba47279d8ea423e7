#include "decide/request.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "decide/python_format.hpp"
#include "decide/render.hpp"

namespace ponder::decide {
namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorKind::invalid_input, format, std::forward<Args>(args)...);
}

template <std::size_t N>
std::vector<std::string_view> keys_outside(const Object& object,
                                           const std::array<std::string_view, N>& known) {
  std::vector<std::string_view> out;
  for (const Member& m : object.members()) {
    if (std::find(known.begin(), known.end(), m.key) == known.end()) out.emplace_back(m.key);
  }
  return out;
}

// ---------------------------------------------------------------- questions

std::optional<QuestionType> question_type(const Value* raw) {
  const std::string* name = raw == nullptr ? nullptr : raw->if_string();
  if (name == nullptr) return std::nullopt;
  if (*name == "choice") return QuestionType::choice;
  if (*name == "noul") return QuestionType::noul;
  if (*name == "score") return QuestionType::score;
  return std::nullopt;
}

void check_criteria(const std::string& who, QuestionType type, const Value& criteria) {
  const auto in_range = [](std::size_t n) { return n >= 1 && n <= max_options; };
  const Object* object = criteria.if_object();
  const Array* array = criteria.if_array();
  switch (type) {
    case QuestionType::choice:
      if (object == nullptr || !in_range(object->size())) {
        refuse("{}: choice criteria must be an object with 1..{} options", who, max_options);
      }
      return;
    case QuestionType::noul:
      if (!criteria.is_null() &&
          (object == nullptr ||
           !keys_outside(*object, std::array<std::string_view, 2>{"true", "false"}).empty())) {
        refuse("{}: noul criteria may only describe true and false", who);
      }
      return;
    case QuestionType::score:
      if (array == nullptr || !in_range(array->size())) {
        refuse("{}: score criteria must be a list of 1..{} levels", who, max_options);
      }
      return;
  }
}

Question parse_question(Member&& member) {
  const std::string who = "question " + python_repr(member.key);
  Object* raw = member.value.if_object();
  if (raw == nullptr) refuse("{} must be an object", who);
  const auto type = question_type(raw->find("type"));
  if (!type) refuse("{}: type must be one of ['choice', 'noul', 'score']", who);
  const auto unknown =
      keys_outside(*raw, std::array<std::string_view, 3>{"type", "instructions", "criteria"});
  if (!unknown.empty()) refuse("{}: unknown fields {}", who, python_repr_sorted(unknown));

  Question q;
  for (Member& field : raw->members()) {
    if (field.key == "instructions") q.instructions = std::move(field.value);
    if (field.key == "criteria") q.criteria = std::move(field.value);
  }
  check_criteria(who, *type, q.criteria);
  q.type = *type;
  q.id = std::move(member.key);
  return q;
}

// `name: note`, or the name alone without a note; [], {} and 0 are notes.
std::string label(const std::string& name, const Value* note) {
  if (note == nullptr || note->is_null()) return name;
  const std::string* text = note->if_string();
  if (text != nullptr && text->empty()) return name;
  return name + ": " + render(*note);
}

// ---------------------------------------------------------------- options

void read_bool(const Object& raw, std::string_view name, bool& out) {
  const Value* v = raw.find(name);
  if (v == nullptr) return;
  if (v->if_bool() == nullptr) refuse("think and return_reasoning must be booleans");
  out = *v->if_bool();
}

// An integer of any size and not below `least`, capped at max_setting; nothing when it is anything else.
std::optional<std::int64_t> integer_setting(const Value& v, std::int64_t least) {
  if (const BigInteger* big = v.if_big_integer(); big != nullptr && !big->negative()) return max_setting;
  if (const std::int64_t* i = v.if_integer(); i != nullptr && *i >= least) return std::min(*i, max_setting);
  return std::nullopt;
}

std::optional<double> read_threshold(const Value& v) {
  if (v.is_null()) return std::nullopt;
  const std::int64_t* i = v.if_integer();
  const double t = i != nullptr ? static_cast<double>(*i) : v.if_double() != nullptr ? *v.if_double() : -1.0;
  if (!(t >= 0.0 && t <= 1.0)) refuse("nothink_threshold must be null or a number in [0, 1]");
  return t;
}

Options parse_options(const Value* value, const Options& defaults) {
  if (value == nullptr || value->is_null()) return defaults;
  const Object* raw = value->if_object();
  if (raw == nullptr) refuse("options must be an object");
  const auto unknown =
      keys_outside(*raw, std::array<std::string_view, 6>{"think", "max_think", "nothink_threshold",
                                                         "return_reasoning", "deadline_ms", "skill"});
  if (!unknown.empty()) refuse("unknown options: {}", python_repr_sorted(unknown));

  Options out = defaults;
  read_bool(*raw, "think", out.think);
  read_bool(*raw, "return_reasoning", out.return_reasoning);
  if (const Value* v = raw->find("max_think")) {
    const auto n = integer_setting(*v, 0);
    if (!n) refuse("max_think must be a non-negative integer");
    out.max_think = *n;
  }
  if (const Value* v = raw->find("nothink_threshold")) out.nothink_threshold = read_threshold(*v);
  if (const Value* v = raw->find("deadline_ms")) {
    out.deadline_ms = integer_setting(*v, 1);
    if (!out.deadline_ms) refuse("deadline_ms must be a positive integer");
  }
  if (const Value* v = raw->find("skill")) {
    if (v->if_string() == nullptr) refuse("skill must be a string");
    out.skill = *v->if_string();
  }
  return out;
}

}  // namespace

std::size_t option_count(const Question& question) {
  if (question.type == QuestionType::noul) return 2;
  if (const Object* object = question.criteria.if_object()) return object->size();
  const Array* levels = question.criteria.if_array();
  return levels == nullptr ? 0 : levels->size();
}

std::vector<std::string> option_keys(const Question& question) {
  if (question.type == QuestionType::noul) return {"false", "true"};
  std::vector<std::string> out;
  if (const Object* object = question.criteria.if_object()) {
    for (const Member& m : object->members()) out.push_back(m.key);
  } else {
    for (std::size_t i = 0; i < option_count(question); ++i) out.push_back(std::to_string(i));
  }
  return out;
}

std::vector<std::string> option_texts(const Question& question) {
  const Object* notes = question.criteria.if_object();
  if (question.type == QuestionType::noul) {
    return {label("no", notes == nullptr ? nullptr : notes->find("false")),
            label("yes", notes == nullptr ? nullptr : notes->find("true"))};
  }
  std::vector<std::string> out;
  if (notes != nullptr) {
    for (const Member& m : notes->members()) out.push_back(label(m.key, &m.value));
  } else if (const Array* levels = question.criteria.if_array()) {
    for (const Value& level : *levels) out.push_back(render(level));
  }
  return out;
}

Request parse_request(Value body, const Options& defaults) {
  Object* raw = body.if_object();
  if (raw == nullptr) refuse("request body must be a JSON object");
  Value *state = nullptr, *questions = nullptr, *model = nullptr, *options = nullptr;
  for (Member& m : raw->members()) {
    if (m.key == "state") state = &m.value;
    if (m.key == "questions") questions = &m.value;
    if (m.key == "model") model = &m.value;
    if (m.key == "options") options = &m.value;
  }
  if (state == nullptr) refuse("state is required");
  Object* asked = questions == nullptr ? nullptr : questions->if_object();
  if (asked == nullptr || asked->empty()) refuse("questions must be a non-empty object");
  if (model != nullptr && model->if_string() == nullptr) refuse("model must be a string");

  Request out;
  out.questions.reserve(asked->size());
  for (Member& m : asked->members()) out.questions.push_back(parse_question(std::move(m)));
  out.options = parse_options(options, defaults);
  out.state = std::move(*state);
  if (model != nullptr) out.model = std::move(*model->if_string());
  return out;
}

}  // namespace ponder::decide
