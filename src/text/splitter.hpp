// Pre-tokenisation: cutting a stretch of text into the pieces that BPE merges within.
//
// Split patterns that are in wide use have a hand-written splitter, chosen by the exact text of the pattern:
// one pass, no stack growth. Any other pattern runs on PCRE2, under limits, if it is written in the part of
// the regex language that Oniguruma (which defines what a tokenizer.json means) and PCRE2 read alike;
// otherwise it is refused by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ponder::text {

class Splitter {
 public:
  Splitter() = default;
  Splitter(const Splitter&) = delete;
  Splitter& operator=(const Splitter&) = delete;
  virtual ~Splitter() = default;

  // Appends the end of every piece of text[begin, end) to `ends`, as offsets into `text`; the last one is
  // `end`. Matches and the text between matches are pieces ("Isolated"). The range is looked at alone: what
  // stands around it is not seen. Well-formed UTF-8, shorter than 2^32 bytes. Thread-safe.
  virtual void split(std::string_view text, std::uint32_t begin, std::uint32_t end,
                     std::vector<std::uint32_t>& ends) const = 0;
};

// The pattern that ByteLevel uses by itself (GPT-2's).
extern const std::string_view kByteLevelPattern;

// The hand-written splitter for this exact pattern, or null.
std::unique_ptr<const Splitter> make_known_splitter(std::string_view pattern);

// PCRE2 for any other pattern; `literal` takes it as plain text. Fails (unsupported) by name.
std::unique_ptr<const Splitter> make_pattern_splitter(std::string_view pattern, bool literal = false);

// A Split pattern written for Oniguruma, rewritten for PCRE2 (UTF, UCP) with the same meaning. Fails
// (unsupported) naming the construct and its place when the two engines are not known to agree on it.
std::string translate_pattern(std::string_view pattern);

}  // namespace ponder::text
