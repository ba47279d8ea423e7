#include "decide/packing.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"

namespace ponder::decide {

std::vector<std::vector<Place>> pack_requests(std::span<const std::size_t> sizes, std::size_t capacity) {
  if (capacity == 0) fail(ErrorKind::usage, "groups need room for at least one question, got 0");
  std::vector<std::vector<Place>> groups;
  // Groups only fill up: where a part of some size found no room, no later part of that size will.
  std::map<std::size_t, std::size_t> first_with_room;  // by size of the part
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    for (std::size_t start = 0; start < sizes[r];) {
      const std::size_t part = std::min(capacity, sizes[r] - start);
      std::size_t& home = first_with_room[part];
      while (home < groups.size() && part > capacity - groups[home].size()) ++home;
      if (home == groups.size()) groups.emplace_back();
      for (std::size_t i = 0; i < part; ++i) groups[home].push_back(Place{r, start + i});
      start += part;
    }
  }
  return groups;
}

std::size_t common_prefix(std::span<const std::span<const std::int32_t>> sequences) {
  if (sequences.empty()) return 0;
  std::size_t length = sequences.front().size();
  for (const auto& s : sequences) length = std::min(length, s.size());
  if (length == 0) return 0;
  --length;
  const auto first = sequences.front().first(length);
  for (const auto& s : sequences) {
    length = static_cast<std::size_t>(
        std::mismatch(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(length), s.begin()).first -
        first.begin());
  }
  return length;
}

}  // namespace ponder::decide
