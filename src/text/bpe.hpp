// Byte-pair merging (https://arxiv.org/abs/1508.07909, the byte-level form): the pair of neighbours with the
// lowest rank is merged first, the leftmost on ties, until no pair of neighbours has a rank.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/vocabulary.hpp"

namespace ponder::text {

class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = UINT32_MAX;  // UINT32_MAX: this pair does not merge
    std::int32_t id = -1;             // the token it becomes
  };

  explicit MergeTable(std::size_t merges);

  // False when the pair already has a rank.
  bool insert(std::int32_t left, std::int32_t right, Merge merge);

  Merge find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t slot = mix_hash(key ^ seed_) & mask_;; slot = (slot + 1) & mask_) {
      if (slots_[slot].key == key) return slots_[slot].merge;
      if (slots_[slot].key == kEmpty) return {};
    }
  }

 private:
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge;
  };
  static constexpr std::uint64_t kEmpty = UINT64_MAX;  // not a pair: ids are not negative

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }

  std::vector<Slot> slots_;
  std::size_t mask_;
  std::uint64_t seed_;
};

// Working memory of merging, kept from piece to piece of one encode.
struct MergeScratch {
  std::vector<std::int32_t> ids;
  std::vector<std::uint32_t> ranks;
  std::vector<std::int32_t> next;
  std::vector<std::int32_t> previous;
  std::vector<std::uint64_t> heap;
  std::uint64_t lookups = 0;  // pairs looked up so far: the measure of work that tests hold to a bound
};

class Bpe {
 public:
  // byte_ids: the token of every single byte (-1: none). barred[id] marks tokens that `guarded` merging must
  // not make; empty when no merge could.
  Bpe(MergeTable merges, const std::array<std::int32_t, 256>& byte_ids, std::vector<bool> barred)
      : merges_(std::move(merges)), byte_ids_(byte_ids), barred_(std::move(barred)) {}

  // Appends the tokens of one piece. O(n log n). Every byte of the piece must have a token.
  void merge(std::string_view piece, bool guarded, std::vector<std::int32_t>& out,
             MergeScratch& scratch) const;

 private:
  MergeTable::Merge find(std::int32_t left, std::int32_t right, bool guarded, MergeScratch& scratch) const {
    ++scratch.lookups;
    const MergeTable::Merge m = merges_.find(left, right);
    return guarded && m.id >= 0 && barred_[static_cast<std::size_t>(m.id)] ? MergeTable::Merge{} : m;
  }
  void merge_short(std::string_view piece, bool guarded, std::vector<std::int32_t>& out,
                   MergeScratch& scratch) const;
  void merge_long(std::string_view piece, bool guarded, std::vector<std::int32_t>& out,
                  MergeScratch& scratch) const;

  MergeTable merges_;
  std::array<std::int32_t, 256> byte_ids_;
  std::vector<bool> barred_;
};

}  // namespace ponder::text
