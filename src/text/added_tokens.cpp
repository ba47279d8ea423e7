#include "text/added_tokens.hpp"

#include <algorithm>

#include "text/char_class.hpp"

namespace ponder::text {
namespace {

bool is_space_at(std::string_view text, std::size_t at, std::size_t& length) {
  const ClassedChar c = classed_char(text.data() + at);
  length = c.length;
  return (c.bits & kSpace) != 0;
}

std::size_t spaces_begin(std::string_view text, std::size_t at, std::size_t floor) {
  while (at > floor) {
    const std::size_t before = previous_start(text, at);
    std::size_t length = 0;
    if (!is_space_at(text, before, length)) break;
    at = before;
  }
  return at;
}

std::size_t spaces_end(std::string_view text, std::size_t at) {
  std::size_t length = 0;
  while (at < text.size() && is_space_at(text, at, length)) at += length;
  return at;
}

bool touches_word(std::string_view text, std::size_t begin, std::size_t end) {
  std::size_t length = 0;
  if (begin > 0 && is_word_char(decode_valid(text.data() + previous_start(text, begin), length))) return true;
  return end < text.size() && is_word_char(decode_valid(text.data() + end, length));
}

}  // namespace

AddedMatcher::AddedMatcher(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {
  // Of texts that have become equal by normalisation the first counts.
  const auto less = [](const Pattern& a, const Pattern& b) { return a.text < b.text; };
  const auto same = [](const Pattern& a, const Pattern& b) { return a.text == b.text; };
  std::stable_sort(patterns_.begin(), patterns_.end(), less);
  patterns_.erase(std::unique(patterns_.begin(), patterns_.end(), same), patterns_.end());
  for (const Pattern& p : patterns_) first_[static_cast<unsigned char>(p.text[0])] = true;
}

// Narrows the sorted patterns to those that agree with the text, byte by byte. A pattern that has matched in
// full is the first of its range, since all others there are longer.
const AddedMatcher::Pattern* AddedMatcher::longest_at(std::string_view text) const {
  const Pattern* best = nullptr;
  auto low = patterns_.begin();
  auto high = patterns_.end();
  for (std::size_t depth = 0; depth < text.size() && low != high; ++depth) {
    const auto wanted = static_cast<unsigned char>(text[depth]);
    const auto byte = [depth](const Pattern& p) { return static_cast<unsigned char>(p.text[depth]); };
    low = std::partition_point(low, high, [&](const Pattern& p) { return byte(p) < wanted; });
    high = std::partition_point(low, high, [&](const Pattern& p) { return byte(p) == wanted; });
    if (low != high && low->text.size() == depth + 1) best = &*low++;
  }
  return best;
}

std::vector<AddedMatch> AddedMatcher::find(std::string_view text, std::span<const TrustRun> runs) const {
  std::vector<AddedMatch> found;
  if (patterns_.empty()) return found;
  std::size_t run_begin = 0;
  std::size_t last_end = 0;
  for (const TrustRun& run : runs) {
    for (std::size_t at = run_begin; run.trusted && at < run.end; ++at) {
      if (!first_[static_cast<unsigned char>(text[at])]) continue;
      const Pattern* p = longest_at(text.substr(at, run.end - at));
      if (p == nullptr) continue;
      AddedMatch m{at, at + p->text.size(), p->id};
      at = m.end - 1;
      if (p->single_word && touches_word(text, m.begin, m.end)) continue;
      if (p->lstrip) m.begin = spaces_begin(text, m.begin, last_end);
      if (p->rstrip) m.end = spaces_end(text, m.end);
      last_end = m.end;
      found.push_back(m);
    }
    run_begin = run.end;
  }
  return found;
}

}  // namespace ponder::text
