// Hand-written splitters. Each alternative of a pattern is one function that returns the end of its match or
// null; they are tried in the pattern's order, as a backtracking engine does, with the backtracking worked
// out: where a greedy run has to give characters back, the place it gives back to is found while scanning. No
// run is scanned more than a fixed number of times, so the time is linear.
#include <optional>

#include "text/char_class.hpp"
#include "text/splitter.hpp"

namespace ponder::text {

const std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCased =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Rules {
  enum class Words : std::uint8_t {
    letters,      // [^\r\n\p{L}\p{N}]?\p{L}+
    with_marks,   // [^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+
    cased,        // the pair of upper-then-lower alternatives
    after_space,  //  ?\p{L}+
  };
  enum class Contractions : std::uint8_t { none, first, first_as_written, after_word };

  Words words = Words::letters;
  Contractions contractions = Contractions::first;
  int max_digits = 1;               // \p{N}{1,max}; 0:  ?\p{N}+
  bool lines = true;                // has \s*[\r\n]+, and punctuation takes the newlines behind it
  bool slash_in_tail = false;       // [\r\n/]* instead of [\r\n]*
  bool marks_are_no_punct = false;  // [^\s\p{L}\p{M}\p{N}]
};

class Scanner {
 public:
  Scanner(const Rules& rules, const char* end) : rules_(rules), end_(end) {}

  const char* next(const char* p) const {
    const ClassedChar c = classed_char(p);
    if (*p == '\'' && (rules_.contractions == Rules::Contractions::first ||
                       rules_.contractions == Rules::Contractions::first_as_written)) {
      const bool fold = rules_.contractions == Rules::Contractions::first;
      if (const char* e = contraction(p, fold)) return e;
    }
    if (const char* e = word(p, c)) return e;
    if (const char* e = number(p, c)) return e;
    if (const char* e = punctuation(p, c)) return e;
    if ((c.bits & kSpace) != 0) return spaces(p);
    return p + c.length;  // not reached: the classes above cover every character
  }

 private:
  const char* run(const char* p, CharClass wanted) const {
    while (p < end_) {
      const ClassedChar c = classed_char(p);
      if ((c.bits & wanted) == 0) break;
      p += c.length;
    }
    return p;
  }

  // 's 't 're 've 'm 'll 'd; with `fold` in any case, where U+017F also counts as s.
  const char* contraction(const char* p, bool fold) const {
    const auto letter = [&](int i) -> char {
      if (end_ - p <= i) return 0;
      const char c = p[i];
      return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    const char a = letter(1);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
    if (fold && end_ - p > 2 && p[1] == '\xC5' && p[2] == '\xBF') return p + 3;
    const char b = letter(2);
    const bool two = (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
    return two ? p + 3 : nullptr;
  }

  const char* word(const char* p, ClassedChar c) const {
    switch (rules_.words) {
      case Rules::Words::letters:
        return plain_word(p, c, kLetter);
      case Rules::Words::with_marks:
        return plain_word(p, c, kLetter | kMark);
      case Rules::Words::after_space: {
        const char* q = *p == ' ' ? p + 1 : p;
        const char* e = run(q, kLetter);
        return e > q ? e : nullptr;
      }
      case Rules::Words::cased:
        return cased_word(p, c);
    }
    return nullptr;
  }

  static bool may_lead(ClassedChar c) { return (c.bits & (kNewline | kLetter | kNumber)) == 0; }

  const char* plain_word(const char* p, ClassedChar c, CharClass letters) const {
    if ((c.bits & letters) == 0 && !may_lead(c)) return nullptr;
    const char* q = p + c.length;
    const char* e = run(q, letters);
    return (c.bits & letters) != 0 || e > q ? e : nullptr;
  }

  const char* cased_word(const char* p, ClassedChar c) const {
    const bool lead = may_lead(c);
    const char* q = p + c.length;
    const char* e = lead ? upper_lower(q) : nullptr;
    if (e == nullptr) e = upper_lower(p);
    if (e == nullptr && lead) e = upper_only(q);
    if (e == nullptr) e = upper_only(p);
    if (e != nullptr && rules_.contractions == Rules::Contractions::after_word && e < end_ && *e == '\'') {
      if (const char* with = contraction(e, true)) e = with;
    }
    return e;
  }

  // [upper]*[lower]+. When no lower character follows the upper run, the run gives back up to its last
  // character that is in both classes.
  const char* upper_lower(const char* p) const {
    const char* both_end = nullptr;
    while (p < end_) {
      const ClassedChar c = classed_char(p);
      if ((c.bits & kUpper) == 0) {
        if ((c.bits & kLower) != 0) return run(p, kLower);
        break;
      }
      p += c.length;
      if ((c.bits & kLower) != 0) both_end = p;
    }
    return both_end;
  }

  // [upper]+[lower]*, tried after upper_lower() has failed at the same place: no lower can follow.
  const char* upper_only(const char* p) const {
    const char* e = run(p, kUpper);
    return e > p ? e : nullptr;
  }

  const char* number(const char* p, ClassedChar c) const {
    if (rules_.max_digits == 0) {
      const char* q = *p == ' ' ? p + 1 : p;
      const char* e = run(q, kNumber);
      return e > q ? e : nullptr;
    }
    if ((c.bits & kNumber) == 0) return nullptr;
    p += c.length;
    for (int i = 1; i < rules_.max_digits && p < end_; ++i) {
      const ClassedChar next = classed_char(p);
      if ((next.bits & kNumber) == 0) break;
      p += next.length;
    }
    return p;
  }

  const char* punctuation(const char* p, ClassedChar c) const {
    const auto no =
        static_cast<CharClass>(kSpace | kLetter | kNumber | (rules_.marks_are_no_punct ? kMark : 0));
    const char* q = *p == ' ' ? p + 1 : p;
    if (q == p && (c.bits & no) != 0) return nullptr;
    const char* e = q;
    while (e < end_) {
      const ClassedChar next = classed_char(e);
      if ((next.bits & no) != 0) break;
      e += next.length;
    }
    if (e == q) return nullptr;
    if (rules_.lines) {
      while (e < end_ && (*e == '\r' || *e == '\n' || (rules_.slash_in_tail && *e == '/'))) ++e;
    }
    return e;
  }

  // \s*[\r\n]+ | \s+(?!\S) | \s+
  const char* spaces(const char* p) const {
    const char* last_newline_end = nullptr;
    const char* last_start = p;
    const char* e = p;
    while (e < end_) {
      const ClassedChar c = classed_char(e);
      if ((c.bits & kSpace) == 0) break;
      last_start = e;
      e += c.length;
      if ((c.bits & kNewline) != 0) last_newline_end = e;
    }
    if (rules_.lines && last_newline_end != nullptr) return last_newline_end;
    return e == end_ || last_start == p ? e : last_start;
  }

  const Rules& rules_;
  const char* end_;
};

class KnownSplitter final : public Splitter {
 public:
  explicit KnownSplitter(const Rules& rules) : rules_(rules) {}

  void split(std::string_view text, std::uint32_t begin, std::uint32_t end,
             std::vector<std::uint32_t>& ends) const override {
    const char* const base = text.data();
    const char* const stop = base + end;
    const Scanner scanner(rules_, stop);
    for (const char* p = base + begin; p < stop;) {
      p = scanner.next(p);
      ends.push_back(static_cast<std::uint32_t>(p - base));
    }
  }

 private:
  Rules rules_;
};

std::optional<Rules> rules_of(std::string_view pattern) {
  Rules r;
  if (pattern == kQwen2) return r;
  if (pattern == kQwen35) {
    r.words = Rules::Words::with_marks;
    r.marks_are_no_punct = true;
    return r;
  }
  if (pattern == kLlama3) {
    r.max_digits = 3;
    return r;
  }
  if (pattern == kByteLevelPattern) {
    r.words = Rules::Words::after_space;
    r.contractions = Rules::Contractions::first_as_written;
    r.max_digits = 0;
    r.lines = false;
    return r;
  }
  if (pattern == kCased || pattern == kO200k) {
    r.words = Rules::Words::cased;
    r.slash_in_tail = true;
    r.contractions = pattern == kO200k ? Rules::Contractions::after_word : Rules::Contractions::none;
    r.max_digits = pattern == kO200k ? 3 : 1;
    return r;
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<const Splitter> make_known_splitter(std::string_view pattern) {
  const std::optional<Rules> rules = rules_of(pattern);
  return rules ? std::make_unique<const KnownSplitter>(*rules) : nullptr;
}

}  // namespace ponder::text
