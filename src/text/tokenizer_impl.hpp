// What a Tokenizer is made of. Only for tokenizer.cpp and tokenizer_build.cpp.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/bpe.hpp"
#include "text/normalize.hpp"
#include "text/splitter.hpp"
#include "text/tokenizer.hpp"
#include "text/vocabulary.hpp"

namespace ponder::text {

struct Tokenizer::Impl {
  struct Span {
    std::uint32_t begin = 0;
    std::uint32_t length = 0;
  };
  enum Trait : std::uint8_t { kOfModel = 1, kAdded = 2, kSpecial = 4 };

  Impl(Vocabulary tokens, Bpe merging) : vocabulary(std::move(tokens)), bpe(std::move(merging)) {}

  Vocabulary vocabulary;
  std::vector<std::uint8_t> traits;  // by id
  std::string bytes_text;            // the bytes of all tokens
  std::vector<Span> bytes_spans;     // by id
  Bpe bpe;
  bool ignore_merges = false;
  std::size_t longest_spelling = 0;  // of the model's vocabulary
  NormalForm form = NormalForm::none;
  std::vector<std::unique_ptr<const Splitter>> splitters;  // applied in order
  AddedMatcher raw_matcher;                                // added tokens matched in the text as it is
  AddedMatcher normalized_matcher;                         // and in the normalised text
  std::vector<AddedToken> added;
  std::vector<std::int32_t> prefix, suffix;
  std::optional<std::int32_t> bos, eos, pad;
  std::vector<std::pair<std::string, std::string>> chat_templates;
  std::string chat_template;

  bool has(std::int32_t id, Trait trait) const {
    return id >= 0 && id < vocabulary.size() && (traits[static_cast<std::size_t>(id)] & trait) != 0;
  }
};

}  // namespace ponder::text
