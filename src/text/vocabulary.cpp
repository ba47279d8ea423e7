#include "text/vocabulary.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "base/error.hpp"

namespace ponder::text {
namespace {

constexpr std::size_t kSpareIds = 1 << 16;  // how many more ids than twice the tokens are put up with

}  // namespace

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) {
  std::uint64_t h = seed ^ mix_hash(bytes.size());
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    h = mix_hash(h ^ word) + seed;
  }
  return h;
}

Vocabulary::Vocabulary(const std::vector<Entry>& entries) : seed_(random_seed()) {
  std::size_t bytes = 0;
  std::int32_t largest = -1;
  for (const Entry& e : entries) {
    bytes += e.spelling.size();
    largest = std::max(largest, e.id);
    if (e.id < 0) fail(ErrorKind::bad_file, "token '{}': negative id {}", printable(e.spelling), e.id);
    if (e.spelling.empty()) fail(ErrorKind::bad_file, "token {} is spelled with nothing", e.id);
  }
  const auto count = static_cast<std::size_t>(largest + std::int64_t{1});
  if (count > 2 * entries.size() + kSpareIds) {
    fail(ErrorKind::bad_file, "token id {} is out of range: there are {} tokens", largest, entries.size());
  }
  if (bytes > UINT32_MAX) fail(ErrorKind::too_large, "the tokens take {} bytes", bytes);
  text_.reserve(bytes);
  spans_.resize(count);
  slots_.assign(std::bit_ceil(2 * entries.size() + 2), -1);
  for (const Entry& e : entries) {
    Span& span = spans_[static_cast<std::size_t>(e.id)];
    if (span.length != 0) {
      fail(ErrorKind::bad_file, "token id {} is given to both '{}' and '{}'", e.id, printable(spelling(e.id)),
           printable(e.spelling));
    }
    const std::size_t slot = slot_of(e.spelling);
    if (slots_[slot] >= 0) {
      fail(ErrorKind::bad_file, "token '{}' has two ids, {} and {}", printable(e.spelling), slots_[slot],
           e.id);
    }
    span = {static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(e.spelling.size())};
    text_ += e.spelling;
    slots_[slot] = e.id;
  }
}

std::size_t Vocabulary::slot_of(std::string_view spelled) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash_bytes(spelled, seed_) & mask;
  while (slots_[slot] >= 0 && spelling(slots_[slot]) != spelled) slot = (slot + 1) & mask;
  return slot;
}

std::optional<std::int32_t> Vocabulary::id(std::string_view spelled) const {
  const std::int32_t found = slots_[slot_of(spelled)];
  return found < 0 ? std::nullopt : std::optional(found);
}

}  // namespace ponder::text
