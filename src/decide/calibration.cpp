#include "decide/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "decide/json_value.hpp"
#include "decide/python_format.hpp"

namespace ponder::decide {
namespace {

constexpr std::string_view kKey = "temperature";

// A probability of zero is a score that was too low to tell how low.
double log_of(double p) {
  return std::log(std::max(p, std::numeric_limits<double>::min()));
}

struct Slope {
  double first = 0, second = 0;  // derivatives of the mean loss
};

Slope slope_at(std::span<const LabelledProbs> answers, double b) {
  Slope out;
  for (const LabelledProbs& a : answers) {
    double top = -std::numeric_limits<double>::infinity();
    for (const double p : a.probs) top = std::max(top, log_of(p));
    double weights = 0, mean = 0, square = 0;
    for (const double p : a.probs) {
      const double u = log_of(p) - top, w = std::exp(b * u);
      weights += w;
      mean += w * u;
      square += w * u * u;
    }
    mean /= weights;
    out.first += mean - (log_of(a.probs[a.label]) - top);
    out.second += square / weights - mean * mean;
  }
  const auto n = static_cast<double>(answers.size());
  return {out.first / n, out.second / n};
}

// Where the value of a top-level member lies in `json`, which is known to be a JSON object; of several the
// last, which is the one that counts.
struct Extent {
  std::size_t begin, end;
};

std::size_t end_of_string(std::string_view json, std::size_t quote) {
  std::size_t at = quote + 1;
  while (json[at] != '"') at += json[at] == '\\' ? 2 : 1;
  return at + 1;
}

std::optional<Extent> find_member(std::string_view json, std::string_view key) {
  constexpr std::string_view space = " \t\r\n";
  std::optional<Extent> found;
  int depth = 0;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    const std::size_t end = end_of_string(json, at);
    const std::size_t colon = json.find_first_not_of(space, end);
    const bool is_key = depth == 1 && json[colon] == ':' && json.substr(at + 1, end - at - 2) == key;
    at = end - 1;
    if (!is_key) continue;
    const std::size_t begin = json.find_first_not_of(space, colon + 1);
    found = {begin, json.find_first_of(",} \t\r\n", begin)};  // only a number or a word is looked for
  }
  return found;
}

// The value with its temperature taken out, for a comparison of everything else.
Object others(const Value& root) {
  Object out;
  for (const Member& m : root.if_object()->members()) {
    if (m.key != kKey) out.append(m.key, m.value);
  }
  return out;
}

const Value& checked_object(const Value& root) {
  if (root.if_object() == nullptr) fail(ErrorKind::bad_file, "not a JSON object");
  return root;
}

std::string inserted(std::string_view json, const std::string& number, bool empty) {
  const std::size_t brace = json.find('{');
  const std::size_t next = json.find_first_not_of(" \t\r\n", brace + 1);
  const std::string_view indent = json.substr(brace + 1, next - brace - 1);
  std::string out(json.substr(0, brace + 1));
  if (!empty) out += indent;
  out += "\"temperature\": " + number;
  if (!empty) out += indent.empty() ? ", " : ",";
  out += json.substr(brace + 1);
  return out;
}

}  // namespace

std::vector<double> retempered(std::span<const double> probs, double ratio) {
  std::vector<double> out;
  double top = -std::numeric_limits<double>::infinity();
  for (const double p : probs) top = std::max(top, log_of(p));
  double sum = 0;
  for (const double p : probs) {
    out.push_back(std::exp(ratio * (log_of(p) - top)));
    sum += out.back();
  }
  for (double& p : out) p /= sum;
  return out;
}

TemperatureFit fit_temperature(std::span<const LabelledProbs> answers, double old_temperature) {
  if (answers.empty()) fail(ErrorKind::invalid_input, "no labelled answers to fit a temperature to");
  // In b the loss is convex, so its slope rises: the root is bracketed and Newton's steps stay inside.
  double low = old_temperature / greatest_temperature, high = old_temperature / least_temperature;
  if (slope_at(answers, low).first >= 0) return {greatest_temperature, true};
  if (slope_at(answers, high).first <= 0) return {least_temperature, true};
  double b = std::clamp(1.0, low, high);
  for (int step = 0; step < 200 && high - low > 1e-13 * high; ++step) {
    const Slope slope = slope_at(answers, b);
    if (slope.first == 0) break;
    (slope.first < 0 ? low : high) = b;
    const double newton = b - slope.first / slope.second;
    const double next = newton > low && newton < high ? newton : (low + high) / 2;
    if (std::abs(next - b) <= 1e-14 * b) break;
    b = next;
  }
  return {old_temperature / b, false};
}

std::string with_temperature(std::string_view json, double temperature) {
  const Value before = parse_json(json);
  const Object& object = *checked_object(before).if_object();
  const std::string number = python_float(temperature);
  std::string out;
  if (const Value* old = object.find(kKey)) {
    const auto place = find_member(json, kKey);
    if (!place || old->is_container() || old->if_string() != nullptr) {
      fail(ErrorKind::bad_file, "its temperature is not written as a plain number");
    }
    out = std::string(json.substr(0, place->begin)) + number + std::string(json.substr(place->end));
  } else {
    out = inserted(json, number, object.empty());
  }
  const Value after = parse_json(out);
  const Value* now = after.if_object()->find(kKey);
  if (now == nullptr || !(*now == Value(temperature)) || !(others(after) == others(before))) {
    fail(ErrorKind::bad_file, "its temperature cannot be replaced without touching something else");
  }
  return out;
}

}  // namespace ponder::decide
