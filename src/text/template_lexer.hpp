// Template text to tokens, with Jinja's white space rules as Hugging Face sets them: trim_blocks,
// lstrip_blocks, one trailing line break dropped. Internal to the template engine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/template_value.hpp"

namespace ponder::text::jinja {

struct Token {
  enum class Kind {
    data,
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    string,
    number,
    op,  // text: the operator
    end,
  };
  Kind kind = Kind::end;
  std::string text;  // data, name, string (unescaped) or operator
  Value number;
  int line = 1;
};

// Fails (bad_file) with the line of what is wrong. The last token is `end`.
std::vector<Token> tokenize(std::string_view source);

}  // namespace ponder::text::jinja
