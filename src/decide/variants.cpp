#include "decide/variants.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace ponder::decide {
namespace {

std::vector<std::size_t> in_order(std::size_t n) {
  std::vector<std::size_t> out(n);
  std::iota(out.begin(), out.end(), std::size_t{0});
  return out;
}

// A noul's options are rendered as a choice's of the names "no" and "yes" would be.
Value noul_as_choice(const Question& q) {
  const Object* notes = q.criteria.if_object();
  const auto note = [&](const char* key) {
    const Value* v = notes == nullptr ? nullptr : notes->find(key);
    return v == nullptr ? Value() : *v;
  };
  Object out;
  out.append("yes", note("true"));
  out.append("no", note("false"));
  return out;
}

VariedQuestion reversed(const Question& q) {
  VariedQuestion out{q, in_order(option_count(q))};
  std::reverse(out.places.begin(), out.places.end());
  if (q.type == QuestionType::noul) {
    out.question.type = QuestionType::choice;
    out.question.criteria = noul_as_choice(q);
  } else if (Object* options = out.question.criteria.if_object()) {
    std::reverse(options->members().begin(), options->members().end());
  } else {
    Array& levels = *out.question.criteria.if_array();
    std::reverse(levels.begin(), levels.end());
  }
  return out;
}

bool described(const Value& note) {
  const std::string* text = note.if_string();
  return !note.is_null() && (text == nullptr || !text->empty());
}

// A, B, ..., Z, A2, B2, ...
std::string letter(std::size_t i) {
  std::string out(1, static_cast<char>('A' + i % 26));
  if (i >= 26) out += std::to_string(i / 26 + 1);
  return out;
}

bool other_case(std::string& label) {
  if (label.empty()) return false;
  const auto c = static_cast<unsigned char>(label.front());
  if (c > 0x7F || std::isalpha(c) == 0) return false;
  label.front() = static_cast<char>(std::islower(c) != 0 ? std::toupper(c) : std::tolower(c));
  return true;
}

template <class Rename>
std::optional<VariedQuestion> renamed(const Question& q, Rename&& rename) {
  VariedQuestion out{q, in_order(option_count(q))};
  std::set<std::string> names;
  std::size_t i = 0;
  bool changed = false;
  for (Member& m : out.question.criteria.if_object()->members()) {
    changed |= rename(i++, m);
    if (!names.insert(m.key).second) return std::nullopt;
  }
  if (!changed) return std::nullopt;
  return out;
}

}  // namespace

std::optional<VariedQuestion> vary(const Question& question, Variant variant) {
  if (variant == Variant::options_reversed) {
    if (option_count(question) < 2) return std::nullopt;
    return reversed(question);
  }
  if (question.type != QuestionType::choice) return std::nullopt;
  if (variant == Variant::label_case_changed) {
    return renamed(question, [](std::size_t, Member& m) { return other_case(m.key); });
  }
  const std::vector<Member>& options = question.criteria.if_object()->members();
  if (!std::all_of(options.begin(), options.end(), [](const Member& m) { return described(m.value); })) {
    return std::nullopt;
  }
  return renamed(question, [](std::size_t i, Member& m) {
    const bool changed = m.key != letter(i);
    m.key = letter(i);
    return changed;
  });
}

}  // namespace ponder::decide
