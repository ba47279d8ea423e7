#include "text/bpe.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace ponder::text {
namespace {

constexpr std::size_t kShort = 32;  // up to here a scan for the lowest rank beats a heap
constexpr std::uint32_t kNone = UINT32_MAX;

}  // namespace

MergeTable::MergeTable(std::size_t merges)
    : slots_(std::bit_ceil(2 * merges + 2)), mask_(slots_.size() - 1), seed_(random_seed()) {}

bool MergeTable::insert(std::int32_t left, std::int32_t right, Merge merge) {
  const std::uint64_t key = key_of(left, right);
  std::size_t slot = mix_hash(key ^ seed_) & mask_;
  while (slots_[slot].key != kEmpty) {
    if (slots_[slot].key == key) return false;
    slot = (slot + 1) & mask_;
  }
  slots_[slot] = {key, merge};
  return true;
}

void Bpe::merge(std::string_view piece, bool guarded, std::vector<std::int32_t>& out,
                MergeScratch& scratch) const {
  guarded = guarded && !barred_.empty();
  if (piece.size() <= kShort) return merge_short(piece, guarded, out, scratch);
  merge_long(piece, guarded, out, scratch);
}

void Bpe::merge_short(std::string_view piece, bool guarded, std::vector<std::int32_t>& out,
                      MergeScratch& scratch) const {
  std::array<std::int32_t, kShort> ids;              // NOLINT: filled below
  std::array<MergeTable::Merge, kShort + 1> merges;  // of symbol i with i + 1
  std::size_t n = piece.size();
  for (std::size_t i = 0; i < n; ++i) ids[i] = byte_ids_[static_cast<unsigned char>(piece[i])];
  for (std::size_t i = 0; i + 1 < n; ++i) merges[i] = find(ids[i], ids[i + 1], guarded, scratch);
  while (n > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < n; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == kNone) break;
    ids[best] = merges[best].id;
    --n;
    std::copy(ids.begin() + best + 2, ids.begin() + n + 1, ids.begin() + best + 1);
    if (best + 1 < n) std::copy(merges.begin() + best + 2, merges.begin() + n, merges.begin() + best + 1);
    if (best + 1 < n) merges[best] = find(ids[best], ids[best + 1], guarded, scratch);
    if (best > 0) merges[best - 1] = find(ids[best - 1], ids[best], guarded, scratch);
  }
  out.insert(out.end(), ids.begin(), ids.begin() + n);
}

// Symbols form a doubly linked list over the places of the piece; the heap holds (rank, place), so that the
// lowest rank and then the leftmost place comes first. An entry is stale when its place has another rank now.
void Bpe::merge_long(std::string_view piece, bool guarded, std::vector<std::int32_t>& out,
                     MergeScratch& scratch) const {
  const auto n = static_cast<std::int32_t>(piece.size());
  std::vector<std::int32_t>& ids = scratch.ids;
  std::vector<std::uint32_t>& ranks = scratch.ranks;
  std::vector<std::int32_t>& next = scratch.next;
  std::vector<std::int32_t>& previous = scratch.previous;
  std::vector<std::uint64_t>& heap = scratch.heap;
  ids.resize(piece.size());
  ranks.assign(piece.size(), kNone);
  next.resize(piece.size());
  previous.resize(piece.size());
  heap.clear();
  const auto index = [](std::int32_t i) { return static_cast<std::size_t>(i); };
  const auto entry = [](std::uint32_t rank, std::int32_t place) {
    return std::uint64_t{rank} << 32 | static_cast<std::uint32_t>(place);
  };
  const auto rank_at = [&](std::int32_t i) {
    const std::int32_t j = next[index(i)];
    return j == n ? kNone : find(ids[index(i)], ids[index(j)], guarded, scratch).rank;
  };
  for (std::int32_t i = 0; i < n; ++i) {
    ids[index(i)] = byte_ids_[static_cast<unsigned char>(piece[index(i)])];
    next[index(i)] = i + 1;
    previous[index(i)] = i - 1;
  }
  for (std::int32_t i = 0; i + 1 < n; ++i) {
    ranks[index(i)] = rank_at(i);
    if (ranks[index(i)] != kNone) heap.push_back(entry(ranks[index(i)], i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto refresh = [&](std::int32_t i) {
    ranks[index(i)] = rank_at(i);
    if (ranks[index(i)] == kNone) return;
    heap.push_back(entry(ranks[index(i)], i));
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const std::uint64_t top = heap.back();
    heap.pop_back();
    const auto i = static_cast<std::int32_t>(top & UINT32_MAX);
    if (ranks[index(i)] != top >> 32) continue;
    const std::int32_t gone = next[index(i)];
    ids[index(i)] = find(ids[index(i)], ids[index(gone)], guarded, scratch).id;
    ranks[index(gone)] = kNone;
    next[index(i)] = next[index(gone)];
    if (next[index(i)] < n) previous[index(next[index(i)])] = i;
    refresh(i);
    if (previous[index(i)] >= 0) refresh(previous[index(i)]);
  }
  for (std::int32_t i = 0; i < n; i = next[index(i)]) out.push_back(ids[index(i)]);
}

}  // namespace ponder::text
