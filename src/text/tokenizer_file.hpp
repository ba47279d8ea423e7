// tokenizer.json and tokenizer_config.json as values: read, checked and named, nothing built yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/added_tokens.hpp"
#include "text/normalize.hpp"

namespace ponder::text {

// One step of pre-tokenisation.
struct SplitStep {
  std::string pattern;
  bool literal = false;  // plain text instead of a regular expression
};

struct TokenizerSpec {
  // Spellings are slices of this, so that a vocabulary of any size is one allocation.
  struct Slice {
    std::uint32_t begin = 0;
    std::uint32_t length = 0;
  };
  struct VocabEntry {
    Slice token;
    std::int32_t id = 0;
  };
  struct MergeEntry {
    Slice left;
    Slice right;
  };

  std::string spellings;
  std::vector<VocabEntry> vocab;
  std::vector<MergeEntry> merges;  // in order of rank
  bool ignore_merges = false;      // a piece that is a token of the vocabulary is not merged at all
  NormalForm form = NormalForm::none;
  std::vector<SplitStep> steps;  // in order; none: a stretch is one piece
  std::vector<AddedToken> added;
  std::vector<std::int32_t> prefix;  // what the post-processor puts before and behind one sequence
  std::vector<std::int32_t> suffix;

  std::string_view text(Slice s) const { return std::string_view(spellings).substr(s.begin, s.length); }
};

struct TokenizerConfig {
  std::vector<AddedToken> added;
  std::optional<std::string> bos, eos, pad;                         // contents of tokens
  std::vector<std::pair<std::string, std::string>> chat_templates;  // name ("default" for a plain one), text
};

// `where` names the file in messages. Fails: bad_file for what is damaged, unsupported for what is
// well-formed but not handled, always by name.
TokenizerSpec parse_tokenizer_json(std::string_view json, std::string_view where);
TokenizerConfig parse_tokenizer_config(std::string_view json, std::string_view where);

}  // namespace ponder::text
