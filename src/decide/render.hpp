// JSON values as the text that the model reads.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "decide/json_value.hpp"

namespace ponder::decide {

inline constexpr std::size_t max_rendered_bytes = std::size_t{64} << 20;

// null is empty; strings, numbers and booleans as Python's str() prints them; a list is one "- item" line
// each, an object "key: value" lines, nested values on the lines below, two spaces deeper a level. Lines
// inside a string are not indented, and a list item loses its leading whitespace (str.lstrip). Throws
// Error(too_large) past max_nesting levels or max_rendered_bytes.
std::string render(const Value& value);

// "<|name|>" with a name of [A-Za-z0-9_]+ becomes "<¦name¦>" (U+00A6): user text cannot spell a marker.
std::string sanitize(std::string_view text);

}  // namespace ponder::decide
