#include "text/template_lexer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/error.hpp"
#include "text/template_ops.hpp"
#include "text/template_unicode.hpp"

namespace ponder::text::jinja {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

// Every line break as \n, and the last one gone.
std::string normalised(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      out.push_back('\n');
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), text_(source_) {}
  std::vector<Token> run();

 private:
  template <class... Args>
  [[noreturn]] void syntax(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::bad_file, "chat template, line {}: {}", line_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  bool has(std::size_t i, std::string_view what) const {
    return text_.substr(std::min(i, text_.size())).starts_with(what);
  }
  std::size_t after_spaces(std::size_t i) const;
  void push(Token::Kind kind, std::string text = {}) {
    tokens_.push_back({kind, std::move(text), {}, line_});
  }
  void advance(std::size_t to);

  std::size_t tag_end(std::size_t i, std::string_view close) const;
  void data_before(std::size_t end, char sign, bool variable);
  bool raw_block(std::size_t begin);
  void comment(std::size_t begin);
  void inside_tag(bool variable);
  bool number();
  bool name();
  bool string();
  bool op();
  std::string unescape(std::string_view body) const;
  std::size_t numeric_escape(std::string& out, std::string_view body, std::size_t i) const;

  std::string source_;
  std::string_view text_;
  std::size_t pos_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
  std::vector<char> open_;  // the brackets to close
};

std::size_t Lexer::after_spaces(std::size_t i) const {
  while (i < text_.size()) {
    const CodePoint c = decode(text_, i);
    if (!is_space(c.value)) break;
    i += c.bytes;
  }
  return i;
}

void Lexer::advance(std::size_t to) {
  line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(pos_),
                                       text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
  pos_ = to;
}

// Where the text goes on after a tag's end at i (`close` is "%}" or "#}"), kNone when there is none.
std::size_t Lexer::tag_end(std::size_t i, std::string_view close) const {
  if (at(i) == '+' && has(i + 1, close)) return i + 3;
  if (at(i) == '-' && has(i + 1, close)) return after_spaces(i + 3);
  if (has(i, close)) return i + 2 + (at(i + 2) == '\n' ? 1 : 0);
  return kNone;
}

// The text from pos_ up to a tag, cut as the tag's sign says.
void Lexer::data_before(std::size_t end, char sign, bool variable) {
  std::string_view data = text_.substr(pos_, end - pos_);
  if (sign == '-') {
    // Trailing white space, Unicode's included.
    std::size_t keep = 0;
    for (std::size_t i = 0; i < data.size();) {
      const CodePoint c = decode(data, i);
      i += c.bytes;
      if (!is_space(c.value)) keep = i;
    }
    data = data.substr(0, keep);
  } else if (sign != '+' && !variable) {
    const std::size_t newline = data.rfind('\n');
    const std::size_t from = newline == kNone ? 0 : newline + 1;
    const bool line_start = newline != kNone || pos_ == 0 || text_[pos_ - 1] == '\n';
    if (line_start && from < data.size() && after_spaces(pos_ + from) >= end) data = data.substr(0, from);
  }
  if (!data.empty()) push(Token::Kind::data, std::string(data));
}

// {% raw %} ... {% endraw %} at `begin`; false when this is another tag.
bool Lexer::raw_block(std::size_t begin) {
  std::size_t i = begin + 2;
  const char sign = at(i) == '-' || at(i) == '+' ? at(i) : '\0';
  if (sign != '\0') ++i;
  i = after_spaces(i);
  if (!has(i, "raw")) return false;
  i = after_spaces(i + 3);
  if (has(i, "-%}")) {
    i = after_spaces(i + 3);
  } else if (has(i, "%}")) {
    i += 2;
  } else {
    return false;
  }
  data_before(begin, sign, false);
  advance(i);
  for (std::size_t tag = text_.find("{%", i); tag != kNone; tag = text_.find("{%", tag + 2)) {
    std::size_t k = tag + 2;
    const char end_sign = at(k) == '-' || at(k) == '+' ? at(k) : '\0';
    k = after_spaces(end_sign == '\0' ? k : k + 1);
    if (!has(k, "endraw")) continue;
    const std::size_t end = tag_end(after_spaces(k + 6), "%}");
    if (end == kNone) continue;
    data_before(tag, end_sign, false);
    advance(end);
    return true;
  }
  syntax("a raw block is not closed");
}

void Lexer::comment(std::size_t begin) {
  std::size_t i = begin + 2;
  if (at(i) == '-' || at(i) == '+') ++i;
  advance(i);
  const std::size_t close = text_.find("#}", i);
  if (close == kNone) syntax("a comment is not closed");
  const bool signed_end = close > i && (text_[close - 1] == '-' || text_[close - 1] == '+');
  advance(tag_end(close - (signed_end ? 1 : 0), "#}"));
}

std::vector<Token> Lexer::run() {
  while (pos_ < text_.size()) {
    std::size_t tag = text_.find('{', pos_);
    while (tag != kNone && at(tag + 1) != '%' && at(tag + 1) != '{' && at(tag + 1) != '#')
      tag = text_.find('{', tag + 1);
    if (tag == kNone) {
      push(Token::Kind::data, std::string(text_.substr(pos_)));
      advance(text_.size());
      break;
    }
    const char type = text_[tag + 1];
    if (type == '%' && raw_block(tag)) continue;
    const char sign = at(tag + 2) == '-' || at(tag + 2) == '+' ? at(tag + 2) : '\0';
    data_before(tag, sign, type == '{');
    advance(tag);
    if (type == '#') {
      comment(tag);
      continue;
    }
    push(type == '{' ? Token::Kind::variable_begin : Token::Kind::block_begin);
    advance(tag + (sign == '\0' ? 2 : 3));
    inside_tag(type == '{');
  }
  push(Token::Kind::end);
  return std::move(tokens_);
}

// Tokens up to and with the end of the tag.
void Lexer::inside_tag(bool variable) {
  open_.clear();
  while (pos_ < text_.size()) {
    if (open_.empty()) {
      std::size_t end = kNone;
      if (!variable) {
        end = tag_end(pos_, "%}");
      } else if (has(pos_, "-}}")) {
        end = after_spaces(pos_ + 3);
      } else if (has(pos_, "}}")) {
        end = pos_ + 2;
      }
      if (end != kNone) {
        push(variable ? Token::Kind::variable_end : Token::Kind::block_end);
        advance(end);
        return;
      }
    }
    const std::size_t next = after_spaces(pos_);
    if (next != pos_) {
      advance(next);
    } else if (!number() && !name() && !string() && !op()) {
      syntax("unexpected character \"{}\"", printable(text_.substr(pos_, decode(text_, pos_).bytes)));
    }
  }
}

bool Lexer::number() {
  if (!is_ascii_digit(at(pos_))) return false;
  // Digits, with single underscores between them.
  const auto digits = [&](std::size_t i, auto accepts) {
    while (accepts(at(i)) || (at(i) == '_' && accepts(at(i + 1)))) ++i;
    return i;
  };
  const std::size_t whole = digits(pos_, is_ascii_digit);
  std::size_t end = whole;
  if (pos_ == 0 || text_[pos_ - 1] != '.') {
    if (at(end) == '.' && is_ascii_digit(at(end + 1))) end = digits(end + 1, is_ascii_digit);
    if (at(end) == 'e' || at(end) == 'E') {
      const std::size_t from = end + (at(end + 1) == '+' || at(end + 1) == '-' ? 2 : 1);
      if (is_ascii_digit(at(from))) end = digits(from, is_ascii_digit);
    }
  }
  std::string spelled;
  const auto plain = [&] {
    for (const char c : text_.substr(pos_, end - pos_)) {
      if (c != '_') spelled.push_back(c);
    }
  };
  Value value;
  if (end != whole) {
    plain();
    value = parse_float(spelled).value_or(0.0);
  } else {
    int base = 10;
    if (at(pos_) == '0') {
      const char letter = static_cast<char>(at(pos_ + 1) | 0x20);
      const int by = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
      const auto accepts = [by](char c) {
        const char low = static_cast<char>(c | 0x20);
        return by == 16 ? is_ascii_digit(c) || (low >= 'a' && low <= 'f') : c >= '0' && c < '0' + by;
      };
      const std::size_t from = pos_ + (at(pos_ + 2) == '_' ? 3 : 2);
      if (by != 10 && accepts(at(from))) {
        base = by;
        end = digits(from, accepts);
      } else {
        end = digits(pos_, [](char c) { return c == '0'; });
      }
    }
    plain();
    const std::optional<Value> parsed = parse_int(spelled, base);
    if (!parsed.has_value()) syntax("not a number: \"{}\"", printable(spelled));
    value = *parsed;
  }
  tokens_.push_back({Token::Kind::number, {}, std::move(value), line_});
  advance(end);
  return true;
}

bool Lexer::name() {
  std::size_t end = pos_;
  while (end < text_.size()) {
    const CodePoint c = decode(text_, end);
    if (!is_identifier_part(c.value)) break;
    end += c.bytes;
  }
  if (end == pos_) return false;
  push(Token::Kind::name, std::string(text_.substr(pos_, end - pos_)));
  advance(end);
  return true;
}

bool Lexer::string() {
  const char quote = at(pos_);
  if (quote != '\'' && quote != '"') return false;
  std::size_t end = pos_ + 1;
  while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
  if (end >= text_.size()) syntax("a string is not closed");
  push(Token::Kind::string, unescape(text_.substr(pos_ + 1, end - pos_ - 1)));
  advance(end + 1);
  return true;
}

bool Lexer::op() {
  static constexpr std::array<std::string_view, 26> kOps = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                            "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                            ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
  const auto* found =
      std::find_if(kOps.begin(), kOps.end(), [&](std::string_view op) { return has(pos_, op); });
  if (found == kOps.end()) return false;
  const char c = (*found)[0];
  if (c == '(' || c == '[' || c == '{') open_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
  if (c == ')' || c == ']' || c == '}') {
    if (open_.empty()) syntax("unexpected '{}'", c);
    if (open_.back() != c) syntax("unexpected '{}', expected '{}'", c, open_.back());
    open_.pop_back();
  }
  push(Token::Kind::op, std::string(*found));
  advance(pos_ + found->size());
  return true;
}

// \xhh, \uhhhh, \Uhhhhhhhh or octal at body[i] (after the backslash); gives the place behind it.
std::size_t Lexer::numeric_escape(std::string& out, std::string_view body, std::size_t i) const {
  const char type = body[i];
  const bool octal = type >= '0' && type <= '7';
  const std::size_t from = octal ? i : i + 1;
  std::size_t want = type == 'x' ? 2 : type == 'u' ? 4 : 8;
  if (octal) {
    want = 0;
    while (want < 3 && from + want < body.size() && body[from + want] >= '0' && body[from + want] <= '7')
      ++want;
  }
  std::uint32_t value = 0;
  const std::string_view digits = body.substr(from, want);
  const auto got = std::from_chars(digits.data(), digits.data() + digits.size(), value, octal ? 8 : 16);
  if (digits.size() != want || got.ec != std::errc() || got.ptr != digits.data() + digits.size()) {
    syntax("a \\{} escape needs {} hexadecimal digits", type, want);
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
    syntax("an escape names no character: \\{}{}", type, digits);
  encode(out, value);
  return from + want;
}

std::string Lexer::unescape(std::string_view body) const {
  constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeaning = "\a\b\f\n\r\t\v\\'\"";
  std::string out;
  for (std::size_t i = 0; i < body.size();) {
    if (body[i] != '\\' || i + 1 == body.size()) {
      out.push_back(body[i++]);
      continue;
    }
    const char c = body[++i];
    const std::size_t known = kLetters.find(c);
    if (known != kNone) {
      out.push_back(kMeaning[known]);
      ++i;
    } else if (c == '\n') {
      ++i;
    } else if (c == 'x' || c == 'u' || c == 'U' || (c >= '0' && c <= '7')) {
      i = numeric_escape(out, body, i);
    } else if (c == 'N') {
      syntax("character names (\\N) in strings are not supported");
    } else {
      out.push_back('\\');
    }
  }
  return out;
}

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(normalised(source)).run();
}

}  // namespace ponder::text::jinja
