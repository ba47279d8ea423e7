// Fitting the one temperature that read-outs are divided by, and writing it down.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ponder::decide {

// A fitted temperature lies between these.
inline constexpr double least_temperature = 0.02;
inline constexpr double greatest_temperature = 50;

// Probabilities read out at some temperature, and which option was right.
struct LabelledProbs {
  std::span<const double> probs;
  std::size_t label = 0;
};

// `probs` as another temperature would have given them; `ratio` is the old one over the new one.
std::vector<double> retempered(std::span<const double> probs, double ratio);

struct TemperatureFit {
  double temperature = 1;
  bool at_bound = false;  // the best one lies at or beyond a bound, or every one is as good
};

// The temperature with the least mean -log p(label). With b = old/new and u = log p the loss of a question is
// log sum exp(b u_j) - b u_label, convex in b; its slope is E_b[u] - u_label, its curvature the variance of
// u.
TemperatureFit fit_temperature(std::span<const LabelledProbs> answers, double old_temperature);

// The text of an export.json with another temperature and every other byte as it was. Throws Error(bad_file)
// when it is no JSON object, or spells the key in a way that cannot be replaced safely.
std::string with_temperature(std::string_view json, double temperature);

}  // namespace ponder::decide
