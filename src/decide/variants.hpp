// The same question put another way, to see whether the answer hangs on the way it was put.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "decide/request.hpp"

namespace ponder::decide {

enum class Variant {
  options_reversed,   // last option first; yes before no
  labels_replaced,    // choices whose options are all described: labels become A, B, C, ...
  label_case_changed  // choices: the first letter of each label in the other case
};
inline constexpr std::array kVariants = {Variant::options_reversed, Variant::labels_replaced,
                                         Variant::label_case_changed};

struct VariedQuestion {
  Question question;
  std::vector<std::size_t> places;  // option i of it is option places[i] of the original
};

// Nothing where the variant would be the same question, or one whose labels collide.
std::optional<VariedQuestion> vary(const Question& question, Variant variant);

}  // namespace ponder::decide
