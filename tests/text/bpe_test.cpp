#include "text/bpe.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "text/byte_alphabet.hpp"
#include "text/data.hpp"

namespace ponder::text {
namespace {

using ponder::testing::Ids;
using Pair = std::pair<std::int32_t, std::int32_t>;

// Merging as it is defined: look at all pairs, merge the lowest rank, leftmost, and look again.
Ids merge_by_definition(const std::map<Pair, MergeTable::Merge>& merges, const std::string& piece) {
  Ids ids;
  for (const char c : piece) ids.push_back(static_cast<unsigned char>(c));
  for (;;) {
    MergeTable::Merge best;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto it = merges.find({ids[i], ids[i + 1]});
      if (it != merges.end() && it->second.rank < best.rank) {
        best = it->second;
        at = i;
      }
    }
    if (best.id < 0) return ids;
    ids[at] = best.id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

std::array<std::int32_t, 256> identity() {
  std::array<std::int32_t, 256> ids{};
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

// Random merges over the letters a-d: every new token joins two that exist. Several pairs may make the same
// text, as in real files; then they make the same token.
struct Toy {
  std::map<Pair, MergeTable::Merge> merges;
  std::map<std::string, std::int32_t> tokens;

  explicit Toy(const std::vector<std::uint32_t>& draws) {
    std::vector<std::string> spelled;
    for (const char c : {'a', 'b', 'c', 'd'}) {
      tokens[std::string(1, c)] = static_cast<unsigned char>(c);
      spelled.emplace_back(1, c);
    }
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i + 1 < draws.size(); i += 2) {
      const std::string left = spelled[draws[i] % spelled.size()];
      const std::string right = spelled[draws[i + 1] % spelled.size()];
      const std::string joined = left + right;
      if (joined.size() > 12) continue;
      const auto id = tokens.emplace(joined, 256 + static_cast<std::int32_t>(tokens.size())).first->second;
      if (merges.insert({{tokens[left], tokens[right]}, {rank++, id}}).second) spelled.push_back(joined);
    }
  }

  Bpe bpe(std::vector<bool> barred = {}) const {
    MergeTable table(merges.size());
    for (const auto& [pair, merge] : merges) EXPECT_TRUE(table.insert(pair.first, pair.second, merge));
    return Bpe(std::move(table), identity(), std::move(barred));
  }
};

RC_GTEST_PROP(Bpe, MergesAsDefined, ()) {
  const Toy toy(*rc::gen::container<std::vector<std::uint32_t>>(60, rc::gen::arbitrary<std::uint32_t>()));
  const auto length = *rc::gen::inRange<std::size_t>(1, 120);  // short and long pieces take different ways
  const auto piece = *rc::gen::container<std::string>(length, rc::gen::elementOf(std::string("abcd")));
  Ids ids;
  MergeScratch scratch;
  toy.bpe().merge(piece, false, ids, scratch);
  RC_ASSERT(ids == merge_by_definition(toy.merges, piece));
}

RC_GTEST_PROP(Bpe, GuardedMergingNeverMakesABarredToken, ()) {
  const Toy toy(*rc::gen::container<std::vector<std::uint32_t>>(60, rc::gen::arbitrary<std::uint32_t>()));
  const auto length = *rc::gen::inRange<std::size_t>(1, 80);
  const auto piece = *rc::gen::container<std::string>(length, rc::gen::elementOf(std::string("abcd")));
  std::vector<bool> barred(256 + toy.tokens.size() + 1);
  auto allowed = toy.merges;
  for (std::size_t i = 256; i < barred.size(); i += 3) barred[i] = true;
  std::erase_if(allowed, [&](const auto& m) { return barred[static_cast<std::size_t>(m.second.id)]; });
  Ids guarded;
  Ids free;
  MergeScratch scratch;
  const Bpe bpe = toy.bpe(barred);
  bpe.merge(piece, true, guarded, scratch);
  bpe.merge(piece, false, free, scratch);
  RC_ASSERT(guarded == merge_by_definition(allowed, piece));
  RC_ASSERT(free == merge_by_definition(toy.merges, piece));
}

TEST(Bpe, Complaint29_WorkOnOneLongPieceIsLinearInLookups) {
  // a a -> aa, aa aa -> aaaa, ...: the deepest merging there is.
  Toy toy({});
  std::map<Pair, MergeTable::Merge> merges;
  std::int32_t last = 'a';
  for (std::uint32_t rank = 0; rank < 18; ++rank) {
    const auto id = static_cast<std::int32_t>(300 + rank);
    merges[{last, last}] = {rank, id};
    last = id;
  }
  toy.merges = merges;
  const std::string piece(std::size_t{1} << 20, 'a');
  Ids ids;
  MergeScratch scratch;
  toy.bpe().merge(piece, false, ids, scratch);
  EXPECT_EQ(ids, Ids(4, last));
  EXPECT_LE(scratch.lookups, 5 * piece.size());
}

TEST(MergeTable, RefusesAPairTwiceAndFindsOnlyWhatIsThere) {
  MergeTable table(2);
  EXPECT_TRUE(table.insert(1, 2, {0, 7}));
  EXPECT_FALSE(table.insert(1, 2, {1, 8}));
  EXPECT_TRUE(table.insert(2, 1, {1, 9}));
  EXPECT_EQ(table.find(1, 2).id, 7);
  EXPECT_EQ(table.find(2, 1).id, 9);
  EXPECT_EQ(table.find(2, 2).rank, UINT32_MAX);
}

TEST(ByteAlphabet, SpellsAsGpt2Does) {
  // Facts of the format: a blank is U+0120, a line feed U+010A, 0xAD is U+0143, printable Latin-1 is itself.
  EXPECT_EQ(spell_bytes(" a\n\xC3\xA9\xAD"),
            "\xC4\xA0"
            "a\xC4\x8A\xC3\x83\xC2\xA9\xC5\x83");
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  std::string back;
  EXPECT_TRUE(append_spelled_bytes(back, spell_bytes(all)));
  EXPECT_EQ(back, all);
  std::string raw;
  EXPECT_FALSE(append_spelled_bytes(raw, "two words"));
  EXPECT_EQ(raw, "two words");
}

}  // namespace
}  // namespace ponder::text
