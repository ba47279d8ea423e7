// Byte-level BPE tokenizers in the Hugging Face layout (tokenizer.json, tokenizer_config.json).
//
// Encoding follows what the file means to Hugging Face's `tokenizers`: added tokens are cut out (leftmost,
// longest), each stretch between them is normalised, split by the file's own pattern, mapped to bytes and
// merged by rank. Whatever a file asks for that is not known here is refused by name when it is loaded; no
// rule is taken from the model's family. Time is linear in the text up to a logarithm (a megabyte of one
// character may be a single piece), the stack is not used in proportion to anything.
//
// Text that is not well-formed UTF-8 is read the way Python's bytes.decode("utf-8", "replace") reads it: one
// U+FFFD for each maximal ill-formed part. Texts are limited to 1 GiB (ErrorKind::too_large).
//
// A Tokenizer is immutable and cheap to copy; all functions may be called from several threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/added_tokens.hpp"

namespace ponder::text {

// What text that spells an added token becomes.
enum class SpecialTokens : std::uint8_t {
  parse,  // the token, wherever Hugging Face would recognise it: for text that is ours or a template's
  none,   // ordinary text, always: no id of an added token can come out. For text of users.
};

// One part of a text that is put together from trusted and untrusted parts. Each part is UTF-8 by itself.
struct Segment {
  std::string_view text;
  bool trusted = false;
};

class Tokenizer {
 public:
  // `where` is a folder with tokenizer.json, or the path of such a file; tokenizer_config.json and
  // chat_template.jinja are read from beside it when they are there. Fails with bad_file (missing, damaged,
  // inconsistent), unsupported (well-formed, not handled) or too_large, in one line that names the file.
  static Tokenizer load(const std::filesystem::path& where);

  // The same from text; `config` and `chat_template` may be empty.
  static Tokenizer parse(std::string_view tokenizer_json, std::string_view config = {},
                         std::string_view chat_template = {});

  std::vector<std::int32_t> encode(std::string_view text, SpecialTokens mode) const;

  // The tokens of the segments' concatenation, with added tokens recognised only where their text lies wholly
  // in trusted segments (neighbouring trusted segments count as one). Normalisation, splitting and merging
  // run across the borders. So the result equals encode(concatenation, parse) whenever no occurrence of an
  // added token in the concatenation touches untrusted text, and encode(text, none) for one untrusted
  // segment. White space that a token's lstrip or rstrip flag takes may be untrusted. In a stretch between
  // added tokens that holds untrusted text, merging cannot make an added token either (some files have tokens
  // that are both added and the result of merges).
  std::vector<std::int32_t> encode_segments(std::span<const Segment> segments) const;

  // What the file's post-processor puts before and behind one text (a start-of-text token, say); encode()
  // never adds it.
  const std::vector<std::int32_t>& prefix_ids() const;
  const std::vector<std::int32_t>& suffix_ids() const;

  // The bytes of the tokens, put together and read as UTF-8 with U+FFFD for each maximal ill-formed part. Ids
  // without a token vanish; so do special tokens when `skip_special` is set. As in Hugging Face's ByteLevel
  // decoder, an added token is read as spelled bytes too when all of its characters are byte letters.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = false) const;

  // The bytes of one token, which may be part of a character; empty for an id without a token.
  std::string_view bytes(std::int32_t id) const;

  // Lookups by spelling: added tokens by their text, others as the vocabulary spells them ("Ġthe").
  std::optional<std::int32_t> id(std::string_view token) const;
  std::optional<std::string_view> token(std::int32_t id) const;

  // Largest id + 1. A model may have more rows.
  std::int32_t vocab_size() const;

  // By ascending id.
  const std::vector<AddedToken>& added_tokens() const;
  bool is_added(std::int32_t id) const;
  bool is_special(std::int32_t id) const;

  // As tokenizer_config.json names them.
  std::optional<std::int32_t> bos_id() const;
  std::optional<std::int32_t> eos_id() const;
  std::optional<std::int32_t> pad_id() const;

  // The text of the chat template: chat_template.jinja, else tokenizer_config.json's `chat_template`, of
  // several named ones the one named "default" or the only one. Empty when there is none.
  const std::string& chat_template() const;
  // All of them by name; a plain one is named "default".
  const std::vector<std::pair<std::string, std::string>>& chat_templates() const;

 private:
  struct Impl;
  friend struct TokenizerBuilder;
  friend class EncodeCall;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  std::shared_ptr<const Impl> impl_;
};

}  // namespace ponder::text
