// Which questions run side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ponder::decide {

struct Place {
  std::size_t request;
  std::size_t question;
  bool operator==(const Place&) const = default;
};

// First fit: sizes[r] questions of request r into groups of at most `capacity` (> 0) questions, in order. A
// request stays in one group unless it has more than `capacity` questions; then it is cut into full pieces
// and a rest, and each piece is placed by first fit like a request of its own.
std::vector<std::vector<Place>> pack_requests(std::span<const std::size_t> sizes, std::size_t capacity);

// Length of the tokens that all sequences start with, at most the shortest length minus one (every sequence
// keeps a token of its own to compute); 0 for no sequence or an empty one.
std::size_t common_prefix(std::span<const std::span<const std::int32_t>> sequences);

}  // namespace ponder::decide
