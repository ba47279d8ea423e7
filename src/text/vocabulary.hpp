// Tokens by id and by spelling.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ponder::text {

class Vocabulary {
 public:
  struct Entry {
    std::string_view spelling;
    std::int32_t id = 0;
  };

  // Copies the spellings. Fails (bad_file), naming the tokens, on an id or a spelling given twice, and on ids
  // so far apart that a table by id would dwarf the tokens.
  explicit Vocabulary(const std::vector<Entry>& entries);

  // Largest id + 1.
  std::int32_t size() const { return static_cast<std::int32_t>(spans_.size()); }

  std::optional<std::int32_t> id(std::string_view spelling) const;

  // Empty for an id without a token (no token is spelled with nothing).
  std::string_view spelling(std::int32_t id) const {
    if (id < 0 || id >= size()) return {};
    const Span s = spans_[static_cast<std::size_t>(id)];
    return std::string_view(text_).substr(s.begin, s.length);
  }

 private:
  struct Span {
    std::uint32_t begin = 0;
    std::uint32_t length = 0;
  };

  std::size_t slot_of(std::string_view spelling) const;

  std::string text_;
  std::vector<Span> spans_;
  std::vector<std::int32_t> slots_;  // open addressing, -1 is empty; the size is a power of two
  std::uint64_t seed_;
};

// Hashing of keys that come from files. The seed is drawn once per table, so that a file cannot be made to
// collide; nothing observable depends on it.
std::uint64_t random_seed();
std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed);

inline std::uint64_t mix_hash(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93U;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93U;
  return x ^ x >> 32;
}

}  // namespace ponder::text
