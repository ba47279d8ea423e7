// Chat templates: the Jinja a model's files carry, rendered as Hugging Face's apply_chat_template renders it.
//
// The language is the whole of what real templates use (trim_blocks, lstrip_blocks, loop controls, macros,
// filters, tests, Python's string methods, `generation` blocks) in a sandbox: values cannot be changed,
// Python's internals
// (__class__, _private) and anything that reads other files are refused by name, and steps, text and nesting
// are limited. A template never runs code of its own.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/template_value.hpp"

namespace ponder::text::jinja {

struct RenderLimits {
  std::uint64_t max_steps = 5'000'000;  // operations, loop passes, items; 128 bytes of text count as one
  std::size_t max_text_bytes = std::size_t{64} << 20;  // of the output, or of any text on the way
};

// What Hugging Face passes to a template, by its names.
struct ChatRequest {
  Value messages;             // list of {"role": ..., "content": ...}
  Value tools = nullptr;      // list of JSON schemas, or None
  Value documents = nullptr;  // list of dicts, or None
  bool add_generation_prompt = false;
  std::optional<bool> enable_thinking;                              // undefined when not set
  std::vector<std::pair<std::string, std::string>> special_tokens;  // "bos_token": "<s>", ...
  std::vector<std::pair<std::string, Value>> extra;  // any more variables; they win over the above
  std::optional<std::tm> now;                        // for strftime_now; without it, calling that fails

  Value context() const;
};

class ChatTemplate {
 public:
  // Fails with the line at fault: bad_file for wrong syntax, unsupported for what is refused, too_large over
  // a limit (a source of 1 MiB, 128 levels of blocks and brackets, 400 operators on one another).
  static ChatTemplate parse(std::string source);

  // `context` is a dict of the template's variables. Fails with invalid_input for what the template refuses
  // (raise_exception: its message) or cannot do with these values, too_large over a limit, unsupported for
  // what the sandbox refuses. May be called from many threads at once, with contexts that are not shared
  // between them.
  std::string render(const Value& context, const RenderLimits& limits = {}) const;
  std::string render(const ChatRequest& request, const RenderLimits& limits = {}) const;

  // The same text, cut where it changes between the template's and what was marked untrusted. Joined it is
  // render().
  std::vector<Segment> render_segments(const Value& context, const RenderLimits& limits = {}) const;
  std::vector<Segment> render_segments(const ChatRequest& request, const RenderLimits& limits = {}) const;

  const std::string& source() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  Value render_value(const Value& context, const RenderLimits& limits) const;

  std::shared_ptr<const Impl> impl_;
};

}  // namespace ponder::text::jinja

namespace ponder::text {
using jinja::ChatRequest;
using jinja::ChatTemplate;
}  // namespace ponder::text
