#include <array>

#include "base/error.hpp"
#include "text/splitter.hpp"
#include "text/utf8.hpp"

namespace ponder::text {
namespace {

// White_Space as ranges. PCRE2's own \s differs from it (U+180E).
constexpr std::string_view kSpaceRanges =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNonSpaceRanges =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{d7ff}\x{e000}-\x{10ffff})";

constexpr std::array<std::string_view, 37> kCategories = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",  "Nd", "Nl",
    "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk",
    "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf", "Cs", "Co", "Cn"};

// Letters that fold to one character together ("ss" to U+00DF, "fi" to U+FB01): Oniguruma lets (?i:...) match
// that character, PCRE2 does not.
constexpr std::array<std::string_view, 5> kFoldingPairs = {"ss", "st", "ff", "fi", "fl"};

constexpr std::size_t kMaxPattern = 4096;
constexpr std::size_t kMaxDepth = 50;

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  std::string run() {
    if (in_.size() > kMaxPattern) {
      fail(ErrorKind::unsupported, "split pattern of {} bytes; at most {} are handled", in_.size(),
           kMaxPattern);
    }
    while (at_ < in_.size()) item();
    if (!fold_.empty()) refuse(at_, "'(' without ')'");
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::size_t at, std::string_view what) const {
    fail(ErrorKind::unsupported, "split pattern \"{}\": {} at byte {} is not handled", printable(in_, 200),
         printable(what), at);
  }

  bool folding() const { return !fold_.empty() && fold_.back(); }
  bool starts(std::string_view s) const { return in_.substr(at_).starts_with(s); }
  bool take(std::string_view s) {
    if (!starts(s)) return false;
    at_ += s.size();
    return true;
  }

  void item() {
    const char c = in_[at_];
    if (c == '(') return open();
    if (c == ')') return close();
    if (c == '[') return char_class();
    if (c == '\\') return escape(false);
    if (c == '|' || c == '.') {
      last_literal_ = 0;
      quantifiable_ = c == '.';
      out_ += c;
      ++at_;
      return;
    }
    if (c == '?' || c == '*' || c == '+' || c == '{') return quantifier();
    if (c == '$') {  // Oniguruma's is the end of a line
      out_ += "(?m:$)";
      quantifiable_ = false;
      last_literal_ = 0;
      ++at_;
      return;
    }
    if (c == '^' || c == ']' || c == '}') refuse(at_, std::string("'") + c + "'");
    literal();
  }

  void open() {
    static constexpr std::array<std::string_view, 6> kGroups = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    const std::size_t start = at_;
    last_literal_ = 0;
    quantifiable_ = false;
    if (fold_.size() >= kMaxDepth) refuse(at_, "nesting deeper than 50 groups");
    if (take("(?i:")) {
      out_ += "(?i:";
      fold_.push_back(true);
      return;
    }
    const bool inner = folding();
    for (const std::string_view g : kGroups) {
      if (take(g)) {
        out_ += g;
        fold_.push_back(inner);
        return;
      }
    }
    ++at_;
    if (starts("?") || starts("*")) refuse(start, in_.substr(start, 3));
    out_ += "(?:";  // nothing refers to groups
    fold_.push_back(inner);
  }

  void close() {
    if (fold_.empty()) refuse(at_, "')' without '('");
    fold_.pop_back();
    ++at_;
    out_ += ')';
    last_literal_ = 0;
    quantifiable_ = true;
  }

  void quantifier() {
    if (!quantifiable_) refuse(at_, "a repeat of nothing");
    quantifiable_ = false;
    last_literal_ = 0;
    if (in_[at_] == '{') return counted();
    out_ += in_[at_++];
    // A lazy or possessive sign; any further sign would mean different things to different engines.
    if (at_ < in_.size() && (in_[at_] == '?' || in_[at_] == '+')) out_ += in_[at_++];
  }

  void counted() {
    const std::size_t start = at_++;
    const auto number = [&] {
      const std::size_t from = at_;
      while (at_ < in_.size() && in_[at_] >= '0' && in_[at_] <= '9') ++at_;
      return at_ - from;
    };
    const std::size_t low = number();
    if (low == 0 || low > 3) refuse(start, "this repeat count");
    if (take(",") && number() > 3) refuse(start, "this repeat count");
    if (!take("}")) refuse(start, "'{'");
    if (starts("?") || starts("+")) refuse(start, "a sign after a counted repeat");
    out_ += in_.substr(start, at_ - start);
  }

  void put_code_point(char32_t c) { out_ += fmt::format("\\x{{{:x}}}", static_cast<std::uint32_t>(c)); }

  void literal_code_point(char32_t c, bool in_class) {
    if (folding()) {
      if (c >= 128) refuse(at_, "a character beyond ASCII under (?i:");
      const char lower = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
      const std::array<char, 2> pair = {last_literal_, lower};
      for (const std::string_view p : kFoldingPairs) {
        if (!in_class && std::string_view(pair.data(), 2) == p)
          refuse(at_, "letters that fold together under (?i:");
      }
      last_literal_ = lower;
    }
    put_code_point(c);
    quantifiable_ = true;
  }

  void literal() {
    std::size_t length = 0;
    const char32_t c = decode_valid(in_.data() + at_, length);
    literal_code_point(c, false);
    at_ += length;
  }

  // Returns the code point of an escape that stands for one character; 0 bytes consumed otherwise.
  bool simple_escape(bool in_class) {
    const char c = in_[at_ + 1];
    char32_t value = 0;
    switch (c) {
      case 'r':
        value = '\r';
        break;
      case 'n':
        value = '\n';
        break;
      case 't':
        value = '\t';
        break;
      case 'f':
        value = '\f';
        break;
      case 'x':
      case 'u':
        return hex_escape(in_class);
      default:
        if (static_cast<unsigned char>(c) >= 128 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
            (c >= 'a' && c <= 'z')) {
          return false;
        }
        value = static_cast<unsigned char>(c);
    }
    literal_code_point(value, in_class);
    at_ += 2;
    return true;
  }

  // \x{H...}, \xHH below 0x80 (above, Oniguruma means a byte), \uHHHH
  bool hex_escape(bool in_class) {
    const std::size_t start = at_;
    const bool wide = in_[at_ + 1] == 'u';
    at_ += 2;
    const bool braces = !wide && take("{");
    const std::size_t most = braces ? 6 : wide ? 4 : 2;
    char32_t value = 0;
    std::size_t digits = 0;
    for (; digits < most && at_ < in_.size(); ++digits, ++at_) {
      const char h = in_[at_];
      const bool upper = h >= 'A' && h <= 'F';
      if (!upper && !(h >= 'a' && h <= 'f') && !(h >= '0' && h <= '9')) break;
      value = value * 16 + static_cast<char32_t>(h <= '9' ? h - '0' : (upper ? h - 'A' : h - 'a') + 10);
    }
    const bool whole = braces ? digits > 0 && take("}") : digits == most;
    if (!whole || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000) ||
        (!wide && !braces && value >= 0x80)) {
      refuse(start, "this character number");
    }
    literal_code_point(value, in_class);
    return true;
  }

  void escape(bool in_class) {
    if (at_ + 1 >= in_.size()) refuse(at_, "'\\' at the end");
    if (simple_escape(in_class)) return;
    last_literal_ = 0;
    quantifiable_ = true;
    const char c = in_[at_ + 1];
    if (c == 'p' || c == 'P') return property();
    if (c == 's' || c == 'S') {
      const std::string_view ranges = c == 's' ? kSpaceRanges : kNonSpaceRanges;
      out_ += in_class ? std::string(ranges) : fmt::format("[{}]", ranges);
    } else if (c == 'd') {
      out_ += "\\p{Nd}";
    } else if (c == 'D') {
      out_ += "\\P{Nd}";
    } else {
      refuse(at_, in_.substr(at_, 2));
    }
    at_ += 2;
  }

  void property() {
    const std::size_t start = at_;
    bool negated = in_[at_ + 1] == 'P';
    at_ += 2;
    const std::size_t close = in_.find('}', at_);
    if (!take("{") || close == std::string_view::npos) refuse(start, in_.substr(start, 2));
    if (take("^")) negated = !negated;
    const std::string_view name = in_.substr(at_, close - at_);
    bool category = false;
    for (const std::string_view known : kCategories) category = category || known == name;
    bool plain = !name.empty() && name.size() <= 32;
    for (const char c : name) plain = plain && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_');
    if (!category && (!plain || name.size() < 3)) refuse(start, in_.substr(start, close + 1 - start));
    if (folding()) refuse(start, "a property under (?i:");
    // Scripts: Oniguruma's are Script, PCRE2's bare names are Script_Extensions.
    out_ += fmt::format("\\{}{{{}{}}}", negated ? 'P' : 'p', category ? "" : "sc:", name);
    at_ = close + 1;
  }

  void char_class() {
    const std::size_t start = at_++;
    out_ += '[';
    if (take("^")) out_ += '^';
    if (starts("]")) refuse(start, "an empty class");
    bool single_before = false;  // a '-' makes a range only between two single characters
    while (at_ < in_.size() && in_[at_] != ']') {
      const char c = in_[at_];
      if (c == '[' || starts("&&")) refuse(at_, "a class within a class");
      if (c == '-') {
        const bool edge = at_ == start + 1 || starts("-]") || (at_ == start + 2 && in_[start + 1] == '^');
        ++at_;
        if (edge) {
          put_code_point('-');
          continue;
        }
        if (!single_before || !single(start)) refuse(at_ - 1, "this range");
        single_before = false;
        continue;
      }
      single_before = c == '\\' ? escaped_single() : (class_literal(), true);
    }
    if (at_ >= in_.size()) refuse(start, "'[' without ']'");
    ++at_;
    out_ += ']';
    last_literal_ = 0;
    quantifiable_ = true;
  }

  void class_literal() {
    std::size_t length = 0;
    const char32_t c = decode_valid(in_.data() + at_, length);
    literal_code_point(c, true);
    at_ += length;
  }

  bool escaped_single() {
    const std::size_t before = out_.size();
    escape(true);
    return out_.compare(before, 3, "\\x{") == 0 && out_.find('}', before) + 1 == out_.size();
  }

  // The upper end of a range.
  bool single(std::size_t start) {
    if (at_ >= in_.size()) refuse(start, "'[' without ']'");
    if (in_[at_] == '[') return false;
    out_ += '-';
    if (in_[at_] == '\\') return escaped_single();
    class_literal();
    return true;
  }

  std::string_view in_;
  std::size_t at_ = 0;
  std::string out_;
  std::vector<bool> fold_;  // one entry an open group: are its letters folded?
  char last_literal_ = 0;   // the literal just before, under (?i:
  bool quantifiable_ = false;
};

}  // namespace

std::string translate_pattern(std::string_view pattern) {
  if (valid_utf8_prefix(pattern) != pattern.size()) fail(ErrorKind::bad_file, "split pattern is not UTF-8");
  return Translator(pattern).run();
}

}  // namespace ponder::text
