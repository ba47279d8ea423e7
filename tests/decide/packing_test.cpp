#include "decide/packing.hpp"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "support.hpp"

namespace ponder::decide {

std::ostream& operator<<(std::ostream& out, const Place& p) {
  return out << '(' << p.request << ',' << p.question << ')';
}

namespace {

using test::at;
using test::items;
using Groups = std::vector<std::vector<Place>>;

std::size_t count_of(const Value& v) {
  return static_cast<std::size_t>(test::number(v));
}

TEST(Packing, GoldenCases) {
  const Value golden = test::read_json("decide/cases-packing.json");
  EXPECT_GE(items(at(golden, "pack_requests")).size(), 18U);
  for (const Value& c : items(at(golden, "pack_requests"))) {
    std::vector<std::size_t> sizes;
    for (const Value& s : items(at(c, "sizes"))) sizes.push_back(count_of(s));
    Groups expected;
    for (const Value& group : items(at(c, "groups"))) {
      expected.emplace_back();
      for (const Value& p : items(group))
        expected.back().push_back({count_of(items(p)[0]), count_of(items(p)[1])});
    }
    EXPECT_EQ(pack_requests(sizes, count_of(at(c, "capacity"))), expected);
  }
}

// The rule read literally: every part looks at every group from the first.
Groups plain_first_fit(const std::vector<std::size_t>& sizes, std::size_t capacity) {
  Groups groups;
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    for (std::size_t start = 0; start < sizes[r]; start += capacity) {
      std::vector<Place> part;
      for (std::size_t i = start; i < std::min(sizes[r], start + capacity); ++i) part.push_back({r, i});
      std::size_t g = 0;
      while (g < groups.size() && groups[g].size() + part.size() > capacity) ++g;
      if (g == groups.size()) groups.emplace_back();
      groups[g].insert(groups[g].end(), part.begin(), part.end());
    }
  }
  return groups;
}

TEST(Packing, IsFirstFitAndCutsOnlyWhatMustBeCut) {
  EXPECT_TRUE(rc::check([] {
    const auto capacity = *rc::gen::inRange<std::size_t>(1, 12);
    const auto sizes = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 30));
    const Groups groups = pack_requests(sizes, capacity);
    RC_ASSERT(groups == plain_first_fit(sizes, capacity));
    std::vector<std::set<std::size_t>> homes(sizes.size());
    std::vector<std::size_t> seen(sizes.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
      RC_ASSERT(!groups[g].empty() && groups[g].size() <= capacity);
      for (const Place& p : groups[g]) {
        homes[p.request].insert(g);
        ++seen[p.request];
      }
    }
    RC_ASSERT(seen == sizes);
    for (std::size_t r = 0; r < sizes.size(); ++r) RC_ASSERT(sizes[r] > capacity || homes[r].size() <= 1);
  }));
}

TEST(Packing, Extremes) {
  const std::vector<std::size_t> one{3};
  EXPECT_TRUE(pack_requests({}, 8).empty());
  EXPECT_EQ(pack_requests(one, SIZE_MAX).size(), 1U);
  EXPECT_EQ(test::failure_of([&] { pack_requests(one, 0); })->kind, ErrorKind::usage);
  // no group is ever full here: a search from the first group each time would take 10^10 steps
  EXPECT_EQ(pack_requests(std::vector<std::size_t>(200000, 5), 8).size(), 200000U);
}

std::size_t prefix_of(const std::vector<std::vector<std::int32_t>>& sequences) {
  std::vector<std::span<const std::int32_t>> views(sequences.begin(), sequences.end());
  return common_prefix(views);
}

TEST(CommonPrefix, GoldenCases) {
  const Value golden = test::read_json("decide/cases-packing.json");
  for (const Value& c : items(at(golden, "common_prefix"))) {
    std::vector<std::vector<std::int32_t>> sequences;
    for (const Value& s : items(at(c, "sequences"))) {
      sequences.emplace_back();
      for (const Value& id : items(s))
        sequences.back().push_back(static_cast<std::int32_t>(test::number(id)));
    }
    EXPECT_EQ(prefix_of(sequences), count_of(at(c, "length")));
  }
}

TEST(CommonPrefix, SharedByAllAndOneShortOfTheShortest) {
  EXPECT_EQ(prefix_of({}), 0U);
  EXPECT_EQ(prefix_of({{1, 2, 3}}), 2U);
  EXPECT_EQ(prefix_of({{1, 2, 3}, {}}), 0U);
  EXPECT_TRUE(rc::check([] {
    const auto token = rc::gen::inRange<std::int32_t>(0, 2);
    const auto sequences = *rc::gen::container<std::vector<std::vector<std::int32_t>>>(
        rc::gen::container<std::vector<std::int32_t>>(token));
    const std::size_t n = prefix_of(sequences);
    if (sequences.empty()) return;
    std::size_t shortest = SIZE_MAX;
    bool goes_on = true;  // whether one more token would still be shared
    for (const auto& s : sequences) {
      shortest = std::min(shortest, s.size());
      RC_ASSERT(n <= s.size());
      RC_ASSERT(std::equal(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(n), sequences[0].begin()));
      goes_on = goes_on && s.size() > n && s[n] == sequences[0][n];
    }
    RC_ASSERT(n == 0 || n < shortest);
    RC_ASSERT(!goes_on || n + 1 == shortest);
  }));
}

}  // namespace
}  // namespace ponder::decide
