// Values back to JSON text.
#pragma once

#include <string>

#include "decide/json_value.hpp"

namespace ponder::decide {

// json.dumps(value) of Python: ", " and ": ", ASCII only, floats by repr. Token counts of answers are of this
// text.
std::string write_python_json(const Value& value);

// UTF-8 for replies: compact, or with `indent` > 0 one member or item a line. A byte that is not UTF-8
// becomes U+FFFD, so the text is always valid.
std::string write_json(const Value& value, int indent = 0);

// Both throw Error(internal) for a number that is not finite, too_large past max_nesting.

}  // namespace ponder::decide
