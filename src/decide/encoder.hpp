// Questions to token ids: render, sanitise, chat template, tokenizer, and a check of every marker.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "decide/prompt.hpp"
#include "decide/request.hpp"
#include "text/template.hpp"
#include "text/tokenizer.hpp"

namespace ponder::decide {

struct EncodedQuestion {
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> remainder;   // begins with </think>, ends with the decide marker
  std::vector<std::size_t> option_ends;  // places in `remainder`, in option order
};

// Immutable once built; safe to use from several threads.
class Encoder {
 public:
  // A folder with tokenizer.json and a chat template. Throws Error(bad_file) when a marker is not a single
  // token of its own, Error(unsupported) when there is no template.
  explicit Encoder(const std::filesystem::path& folder);

  const text::Tokenizer& tokenizer() const noexcept { return tokenizer_; }

  // `state` is state_text() of the request's state. User text never becomes a control token, literal <think>
  // and
  // </think> included. Throws Error(internal) when the markers do not come out as they must,
  // Error(unsupported) when the rendered template does not end in "<think>\n".
  EncodedQuestion encode(std::string_view state, const Question& question) const;

  // The prompt as the template renders it, for inspection.
  std::string prompt_text(std::string_view state, const Question& question) const;
  std::string remainder_text(const Question& question) const;

  std::int32_t think_end() const noexcept { return ids_.think_end; }
  std::int32_t question_marker() const noexcept { return ids_.question; }
  // The empty think: what stands between the prompt and the remainder when nothing is thought.
  const std::vector<std::int32_t>& empty_think() const noexcept { return empty_think_; }
  // One bit an id: all added tokens but </think>, which a chain never chooses.
  const std::vector<std::uint64_t>& banned() const noexcept { return banned_; }

 private:
  std::vector<text::jinja::Segment> render_prompt(std::string_view state, const Question& question) const;

  text::Tokenizer tokenizer_;
  text::ChatTemplate template_;
  Markers markers_;
  MarkerIds ids_;
  std::vector<std::int32_t> empty_think_;
  std::vector<std::uint64_t> banned_;
};

}  // namespace ponder::decide
