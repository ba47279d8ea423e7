#include "decide/encoder.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace ponder::decide {
namespace {

using RenderedSegment = text::jinja::Segment;

constexpr std::string_view kThink = "<think>";

text::ChatTemplate load_template(const text::Tokenizer& tokenizer, const std::filesystem::path& folder) {
  if (tokenizer.chat_template().empty()) {
    fail(ErrorKind::unsupported,
         "{}: no chat template (chat_template.jinja, or one in tokenizer_config.json)", folder.string());
  }
  return text::ChatTemplate::parse(tokenizer.chat_template());
}

// A marker must come out as one token that user text cannot be merged into.
std::int32_t marker_id(const text::Tokenizer& tokenizer, std::string_view marker,
                       const std::filesystem::path& folder) {
  const auto id = tokenizer.id(marker);
  if (!id || !tokenizer.is_added(*id)) {
    fail(ErrorKind::bad_file, "{}: the tokenizer has no token {} of its own, which prompts are marked with",
         folder.string(), marker);
  }
  return *id;
}

template <class Segments>
std::vector<std::int32_t> encode_all(const text::Tokenizer& tokenizer, const Segments& segments) {
  std::vector<text::Segment> views;
  views.reserve(segments.size());
  for (const auto& s : segments) views.push_back({s.text, s.trusted});
  return tokenizer.encode_segments(views);
}

}  // namespace

Encoder::Encoder(const std::filesystem::path& folder)
    : tokenizer_(text::Tokenizer::load(folder)), template_(load_template(tokenizer_, folder)) {
  const auto id = [&](std::string_view marker) { return marker_id(tokenizer_, marker, folder); };
  ids_ = {id(markers_.state),      id(markers_.question), id(markers_.option),
          id(markers_.option_end), id(markers_.decide),   id(markers_.think_end)};
  id(kThink);
  empty_think_ = tokenizer_.encode("\n", text::SpecialTokens::none);
  banned_.resize(static_cast<std::size_t>(tokenizer_.vocab_size() + 63) / 64);
  for (const text::AddedToken& token : tokenizer_.added_tokens()) {
    if (token.id == ids_.think_end) continue;
    banned_[static_cast<std::size_t>(token.id) / 64] |= std::uint64_t{1} << (token.id % 64);
  }
}

std::vector<RenderedSegment> Encoder::render_prompt(std::string_view state, const Question& question) const {
  std::vector<RenderedSegment> content;
  for (Segment& s : user_message(state, question, markers_))
    content.push_back({std::move(s.text), s.trusted});
  text::ChatRequest request;
  request.messages = text::jinja::Value::list(
      {text::jinja::Value::dict({{"role", "user"}, {"content", text::jinja::Value::mixed(content)}})});
  request.add_generation_prompt = true;
  request.enable_thinking = true;
  const auto special = [&](const char* name, std::optional<std::int32_t> id) {
    if (id) request.special_tokens.emplace_back(name, std::string(*tokenizer_.token(*id)));
  };
  special("bos_token", tokenizer_.bos_id());
  special("eos_token", tokenizer_.eos_id());
  special("pad_token", tokenizer_.pad_id());
  return template_.render_segments(request);
}

EncodedQuestion Encoder::encode(std::string_view state, const Question& question) const {
  constexpr std::string_view ending = "<think>\n";
  const std::vector<RenderedSegment> rendered = render_prompt(state, question);
  if (rendered.empty() || !rendered.back().trusted || !rendered.back().text.ends_with(ending)) {
    const std::string end = rendered.empty() ? "" : rendered.back().text;
    fail(ErrorKind::unsupported, "the chat template's prompt ends in \"{}\", expected \"<think>\\n\"",
         printable(end.substr(end.size() - std::min(end.size(), std::size_t{40}))));
  }
  EncodedQuestion out;
  out.prompt = encode_all(tokenizer_, rendered);
  out.remainder = encode_all(tokenizer_, remainder(question, markers_));
  out.option_ends = check_markers(question.id, out.prompt, out.remainder, option_count(question), ids_);
  return out;
}

std::string Encoder::prompt_text(std::string_view state, const Question& question) const {
  std::string out;
  for (const RenderedSegment& s : render_prompt(state, question)) out += s.text;
  return out;
}

std::string Encoder::remainder_text(const Question& question) const {
  return joined(remainder(question, markers_));
}

}  // namespace ponder::decide
