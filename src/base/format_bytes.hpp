#pragma once

#include <cstdint>
#include <string>

namespace ponder {

// A size for people: "640 B", "1.50 KiB", "23.5 GiB"; two decimals below 10, one from there on.
std::string format_bytes(std::uint64_t bytes);

}  // namespace ponder
