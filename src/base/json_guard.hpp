// What every JSON file is checked for before a parser sees it.
#pragma once

#include <cstddef>
#include <string_view>

namespace ponder {

// Throws Error(bad_file), naming `where`, for a NUL byte (some parsers take it for the end, so that what
// follows goes unseen) and for brackets nested deeper than `max_depth`. Looks at the text once and needs no
// memory.
void check_json_text(std::string_view text, std::string_view where, std::size_t max_depth = 100);

}  // namespace ponder
