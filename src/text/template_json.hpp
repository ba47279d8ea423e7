// Template values from JSON text.
#pragma once

#include <string_view>

#include "text/template_value.hpp"

namespace ponder::text::jinja {

// Object members keep their order (the last of two with one name wins, at the first one's place), integers
// keep all their digits, as Python's json.loads. With `trusted` false every string, keys included, is marked
// as the user's. Fails with invalid_input when it is not JSON, too_large when it is nested deeper than
// kMaxValueDepth.
Value parse_json(std::string_view text, bool trusted = true);

}  // namespace ponder::text::jinja
