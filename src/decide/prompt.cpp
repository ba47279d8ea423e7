#include "decide/prompt.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "decide/python_format.hpp"
#include "decide/render.hpp"

namespace ponder::decide {
namespace {

void put(std::vector<Segment>& out, std::string_view text, bool trusted) {
  if (text.empty()) return;
  if (!out.empty() && out.back().trusted == trusted) {
    out.back().text += text;
  } else {
    out.push_back(Segment{std::string(text), trusted});
  }
}

void put_options(std::vector<Segment>& out, const Question& question, const Markers& markers) {
  for (const std::string& text : option_texts(question)) {
    put(out, markers.option, true);
    put(out, sanitize(text), false);
    put(out, markers.option_end + "\n", true);
  }
}

struct Expected {
  const char* marker;
  std::int32_t id;
  std::size_t count;
};

void check_counts(std::string_view question_id, const char* where, std::span<const std::int32_t> ids,
                  std::initializer_list<Expected> all) {
  for (const Expected& e : all) {
    const auto found = static_cast<std::size_t>(std::count(ids.begin(), ids.end(), e.id));
    if (found != e.count) {
      fail(ErrorKind::internal, "question {}: the {} has {} {} markers (token {}), expected {}",
           python_repr(question_id), where, found, e.marker, e.id, e.count);
    }
  }
}

}  // namespace

std::string state_text(const Value& state) {
  return sanitize(render(state));
}

std::vector<Segment> user_message(std::string_view state, const Question& question, const Markers& markers) {
  std::vector<Segment> out;
  put(out, markers.state, true);
  put(out, state, false);
  put(out, "\n" + markers.question, true);
  put(out, sanitize(render(question.instructions)), false);
  put(out, "\n", true);
  put_options(out, question, markers);
  return out;
}

std::vector<Segment> remainder(const Question& question, const Markers& markers) {
  std::vector<Segment> out;
  put(out, markers.think_end + "\n\n", true);
  put_options(out, question, markers);
  put(out, markers.decide, true);
  return out;
}

std::string joined(std::span<const Segment> segments) {
  std::string out;
  for (const Segment& s : segments) out += s.text;
  return out;
}

std::vector<std::size_t> check_markers(std::string_view question_id, std::span<const std::int32_t> prompt_ids,
                                       std::span<const std::int32_t> remainder_ids, std::size_t options,
                                       const MarkerIds& ids) {
  check_counts(question_id, "prompt", prompt_ids,
               {{"state", ids.state, 1},
                {"question", ids.question, 1},
                {"option", ids.option, options},
                {"option end", ids.option_end, options},
                {"decide", ids.decide, 0}});
  check_counts(question_id, "remainder", remainder_ids,
               {{"state", ids.state, 0},
                {"question", ids.question, 0},
                {"option", ids.option, options},
                {"option end", ids.option_end, options},
                {"decide", ids.decide, 1},
                {"think end", ids.think_end, 1}});
  if (remainder_ids.front() != ids.think_end) {
    fail(ErrorKind::internal,
         "question {}: the remainder begins with token {}, expected think end (token {})",
         python_repr(question_id), remainder_ids.front(), ids.think_end);
  }
  if (remainder_ids.back() != ids.decide) {
    fail(ErrorKind::internal, "question {}: the remainder ends with token {}, expected decide (token {})",
         python_repr(question_id), remainder_ids.back(), ids.decide);
  }
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < remainder_ids.size(); ++i) {
    if (remainder_ids[i] == ids.option_end) ends.push_back(i);
  }
  return ends;
}

}  // namespace ponder::decide
