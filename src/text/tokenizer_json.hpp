// The JSON reader of tokenizer files: everything becomes a small tree, except the two large parts,
// model.vocab and model.merges, which stream into a TokenizerSpec. Not recursive; depth and size are bounded.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "text/tokenizer_file.hpp"

namespace ponder::text {

inline constexpr std::size_t kMaxTokenizerBytes = std::size_t{256} << 20;

// `spec` null: nothing is streamed. In the tree, streamed parts are `true`.
nlohmann::json read_tokenizer_json(std::string_view json, std::string_view where, TokenizerSpec* spec);

}  // namespace ponder::text
