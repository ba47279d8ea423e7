// What the model reads for one question, in pieces: markers that may become control tokens and user text that
// must not. The chat template goes around the user message, the tokenizer over the whole; both are the
// caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decide/request.hpp"

namespace ponder::decide {

// The vocabulary's single tokens that structure a prompt.
struct Markers {
  std::string state = "<|fim_prefix|>";
  std::string question = "<|fim_middle|>";
  std::string option = "<|box_start|>";
  std::string option_end = "<|box_end|>";
  std::string decide = "<|fim_suffix|>";
  std::string think_end = "</think>";
};

// Encoding matches control tokens inside trusted segments only, and sees ordinary text across segment borders
// as one run. Segments are never empty and trusted ones hold whole markers.
struct Segment {
  std::string text;
  bool trusted = false;
  bool operator==(const Segment&) const = default;
};

// The state as questions read it, rendered and sanitised: the same for every question of a request.
std::string state_text(const Value& state);

// "<state>" + state + "\n<q>" + instructions + "\n" + for each option "<opt>" + text + "</opt>\n".
// `state` comes from state_text().
std::vector<Segment> user_message(std::string_view state, const Question& question,
                                  const Markers& markers = {});

// "</think>\n\n" + options as above + "<decide>".
std::vector<Segment> remainder(const Question& question, const Markers& markers = {});

std::string joined(std::span<const Segment> segments);

// Token ids of Markers, in its order.
struct MarkerIds {
  std::int32_t state = -1;
  std::int32_t question = -1;
  std::int32_t option = -1;
  std::int32_t option_end = -1;
  std::int32_t decide = -1;
  std::int32_t think_end = -1;
};

// Places of the option-end tokens in `remainder_ids`, in option order: the rows to read out, the last row
// being decide. Throws Error(internal) naming the question, the marker, the count found and the one expected
// unless the prompt has 1 state, 1 question, n options, n option ends and no decide, and the remainder begins
// with its only think end, has n options, n option ends, no state or question, and ends with its only decide.
std::vector<std::size_t> check_markers(std::string_view question_id, std::span<const std::int32_t> prompt_ids,
                                       std::span<const std::int32_t> remainder_ids, std::size_t options,
                                       const MarkerIds& ids);

}  // namespace ponder::decide
