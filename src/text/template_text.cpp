#include "text/template_text.hpp"

#include <algorithm>

#include <string.h>  // NOLINT: memmem

#include "base/error.hpp"
#include "text/template_unicode.hpp"

namespace ponder::text::jinja {

void Budget::out_of_steps() const {
  fail(ErrorKind::too_large, "rendering needs more than {} steps, the limit", limit_);
}

void Budget::text_too_large() const {
  fail(ErrorKind::too_large, "rendering makes a text of more than {} bytes, the limit", text_bytes_);
}

// ---- TextBuilder, MarkReader

void TextBuilder::mark(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!marks_.empty() && marks_.back().end == begin) {
    marks_.back().end = end;
  } else {
    marks_.push_back({begin, end});
  }
}

void TextBuilder::append(std::string_view piece, bool tainted) {
  budget_->spend_bytes(piece.size());
  budget_->allow_text(bytes_.size() + piece.size());
  bytes_ += piece;
  if (tainted) mark(bytes_.size() - piece.size(), bytes_.size());
}

void TextBuilder::append(const Text& piece, std::size_t begin, std::size_t end) {
  const std::size_t base = bytes_.size();
  append(piece.view().substr(begin, end - begin));
  const auto& marks = piece.marks();
  auto at = std::lower_bound(marks.begin(), marks.end(), begin,
                             [](const Mark& m, std::size_t value) { return m.end <= value; });
  for (; at != marks.end() && at->begin < end; ++at) {
    mark(base + std::max(at->begin, begin) - begin, base + std::min(at->end, end) - begin);
  }
}

void TextBuilder::append_repeated(std::string_view piece, std::size_t times, bool tainted) {
  if (piece.empty() || times == 0) return;
  std::size_t total = 0;
  if (__builtin_mul_overflow(piece.size(), times, &total)) total = SIZE_MAX / 2;
  budget_->allow_text(total);
  budget_->allow_text(bytes_.size() + total);
  budget_->spend_bytes(total);
  const std::size_t base = bytes_.size();
  bytes_.reserve(base + total);
  for (std::size_t i = 0; i < times; ++i) bytes_ += piece;
  if (tainted) mark(base, bytes_.size());
}

Text TextBuilder::take(bool markup) {
  Text text(std::move(bytes_), std::move(marks_), markup);
  bytes_.clear();
  marks_.clear();
  return text;
}

bool MarkReader::tainted(std::size_t begin, std::size_t end) {
  while (next_ < marks_->size() && (*marks_)[next_].end <= begin) ++next_;
  return next_ < marks_->size() && (*marks_)[next_].begin < end;
}

// ---- Cutting and repeating

Text cut(Budget& budget, const Text& text, std::size_t begin, std::size_t end) {
  TextBuilder out(budget);
  if (begin < end) out.append(text, begin, end);
  return out.take();
}

Text repeat(Budget& budget, const Text& text, std::int64_t times) {
  TextBuilder out(budget);
  if (times <= 0 || text.bytes().empty()) return out.take();
  if (text.marks().empty()) {
    out.append_repeated(text.view(), static_cast<std::size_t>(times));
    return out.take();
  }
  budget.spend(static_cast<std::uint64_t>(times));
  for (std::int64_t i = 0; i < times; ++i) out.append(text);
  return out.take();
}

Text reversed(Budget& budget, const Text& text) {
  std::vector<std::size_t> starts;
  budget.spend(text.length() / 8);
  for (std::size_t at = 0; at < text.bytes().size(); at += decode(text.view(), at).bytes)
    starts.push_back(at);
  TextBuilder out(budget);
  std::size_t end = text.bytes().size();
  for (auto at = starts.rbegin(); at != starts.rend(); end = *at, ++at) out.append(text, *at, end);
  return out.take();
}

Text strip(Budget& budget, const Text& text, const Text* chars, Side side) {
  budget.spend_bytes(text.bytes().size());
  std::vector<char32_t> set;
  if (chars != nullptr) {
    for (std::size_t at = 0; at < chars->bytes().size();) {
      const CodePoint c = decode(chars->view(), at);
      set.push_back(c.value);
      at += c.bytes;
    }
    budget.spend(set.size() / 4);
    std::sort(set.begin(), set.end());
  }
  const auto strippable = [&](char32_t c) {
    return chars == nullptr ? is_space(c) : std::binary_search(set.begin(), set.end(), c);
  };
  const std::string_view bytes = text.view();
  std::size_t begin = 0, end = bytes.size();
  while (side != Side::right && begin < end) {
    const CodePoint c = decode(bytes, begin);
    if (!strippable(c.value)) break;
    begin += c.bytes;
  }
  while (side != Side::left && end > begin) {
    // The last code point: at most four bytes back, found by decoding forward to exactly `end`.
    std::size_t start = end - 1;
    for (std::size_t back = 2; back <= 4 && back <= end - begin; ++back) {
      if (decode(bytes.substr(0, end), end - back).bytes == back) start = end - back;
    }
    if (!strippable(decode(bytes.substr(0, end), start).value)) break;
    end = start;
  }
  return cut(budget, text, begin, end);
}

// ---- Searching

std::size_t find_text(std::string_view hay, std::string_view needle, std::size_t from) {
  if (from > hay.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  const void* at = memmem(hay.data() + from, hay.size() - from, needle.data(), needle.size());
  if (at == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(at) - hay.data());
}

std::size_t rfind_text(std::string_view hay, std::string_view needle) {
  if (needle.size() > hay.size()) return std::string_view::npos;
  const std::string back_hay(hay.rbegin(), hay.rend()), back_needle(needle.rbegin(), needle.rend());
  const std::size_t at = find_text(back_hay, back_needle);
  return at == std::string_view::npos ? at : hay.size() - at - needle.size();
}

Text replace(Budget& budget, const Text& text, const Text& old, const Text& with, std::int64_t count) {
  const std::string_view bytes = text.view();
  budget.spend_bytes(bytes.size());
  TextBuilder out(budget);
  std::size_t copied = 0, at = 0;
  for (std::int64_t done = 0; count < 0 || done < count; ++done) {
    std::size_t hit = 0;
    if (old.bytes().empty()) {  // between all code points
      if (done > 0) {
        if (at >= bytes.size()) break;
        at += decode(bytes, at).bytes;
      }
      hit = at;
    } else {
      hit = find_text(bytes, old.view(), at);
      if (hit == std::string_view::npos) break;
      at = hit + old.bytes().size();
    }
    budget.spend(1);
    out.append(text, copied, hit);
    out.append(with);
    copied = old.bytes().empty() ? hit : at;
  }
  out.append(text, copied, bytes.size());
  return out.take();
}

// ---- Splitting

namespace {

std::vector<Value> split_spaces(Budget& budget, const Text& text, std::int64_t limit) {
  std::vector<Value> out;
  const std::string_view bytes = text.view();
  std::size_t at = 0;
  const auto skip = [&](bool spaces) {
    while (at < bytes.size()) {
      const CodePoint c = decode(bytes, at);
      if (is_space(c.value) != spaces) break;
      at += c.bytes;
    }
  };
  for (skip(true); at < bytes.size(); skip(true)) {
    budget.spend(2);
    const std::size_t begin = at;
    if (limit >= 0 && static_cast<std::int64_t>(out.size()) == limit) {
      out.push_back(make_text(cut(budget, text, begin, bytes.size())));
      break;
    }
    skip(false);
    out.push_back(make_text(cut(budget, text, begin, at)));
  }
  return out;
}

// Byte ranges of the words of a text, in order.
std::vector<Mark> words(const Text& text) {
  std::vector<Mark> out;
  const std::string_view bytes = text.view();
  bool inside = false;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = decode(bytes, at);
    const bool space = is_space(c.value);
    if (!space && !inside) out.push_back({at, at});
    at += c.bytes;
    if (!space) out.back().end = at;
    inside = !space;
  }
  return out;
}

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::vector<Value> split(Budget& budget, const Text& text, const Text* separator, std::int64_t limit) {
  budget.spend_bytes(text.bytes().size());
  if (separator == nullptr) return split_spaces(budget, text, limit);
  if (separator->bytes().empty()) fail(ErrorKind::invalid_input, "split: the separator is empty");
  std::vector<Value> out;
  std::size_t at = 0;
  while (limit < 0 || static_cast<std::int64_t>(out.size()) < limit) {
    const std::size_t hit = find_text(text.view(), separator->view(), at);
    if (hit == std::string_view::npos) break;
    budget.spend(2);
    out.push_back(make_text(cut(budget, text, at, hit)));
    at = hit + separator->bytes().size();
  }
  out.push_back(make_text(cut(budget, text, at, text.bytes().size())));
  return out;
}

std::vector<Value> rsplit(Budget& budget, const Text& text, const Text* separator, std::int64_t limit) {
  if (limit < 0) return split(budget, text, separator, limit);
  budget.spend_bytes(text.bytes().size());
  std::vector<Value> out;
  std::size_t end = text.bytes().size();
  if (separator == nullptr) {
    std::vector<Mark> found = words(text);
    budget.spend(found.size());
    while (!found.empty() && static_cast<std::int64_t>(out.size()) < limit) {
      out.push_back(make_text(cut(budget, text, found.back().begin, found.back().end)));
      found.pop_back();
    }
    if (!found.empty()) out.push_back(make_text(cut(budget, text, 0, found.back().end)));
  } else {
    if (separator->bytes().empty()) fail(ErrorKind::invalid_input, "rsplit: the separator is empty");
    while (static_cast<std::int64_t>(out.size()) < limit) {
      budget.spend(2 + 2 * end / 128);
      const std::size_t hit = rfind_text(text.view().substr(0, end), separator->view());
      if (hit == std::string_view::npos) break;
      out.push_back(make_text(cut(budget, text, hit + separator->bytes().size(), end)));
      end = hit;
    }
    out.push_back(make_text(cut(budget, text, 0, end)));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Value> split_lines(Budget& budget, const Text& text, bool keep_ends) {
  budget.spend_bytes(text.bytes().size());
  std::vector<Value> out;
  const std::string_view bytes = text.view();
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = decode(bytes, at);
    std::size_t next = at + c.bytes;
    if (is_line_end(c.value)) {
      if (c.value == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
      budget.spend(2);
      out.push_back(make_text(cut(budget, text, begin, keep_ends ? next : at)));
      begin = next;
    }
    at = next;
  }
  if (begin < bytes.size()) out.push_back(make_text(cut(budget, text, begin, bytes.size())));
  return out;
}

std::vector<Value> characters(Budget& budget, const Text& text) {
  std::vector<Value> out;
  budget.spend(2 * text.length());
  out.reserve(text.length());
  for (std::size_t at = 0; at < text.bytes().size();) {
    const std::size_t n = decode(text.view(), at).bytes;
    out.push_back(make_text(cut(budget, text, at, at + n)));
    at += n;
  }
  return out;
}

// ---- Case, padding, escaping

namespace {

// Whether the capital sigma at bytes[at] ends a word and so becomes a final small sigma.
bool final_sigma(std::string_view bytes, std::size_t at, bool cased_before) {
  if (!cased_before) return false;
  for (std::size_t next = at + 2; next < bytes.size();) {
    const CodePoint c = decode(bytes, next);
    if (!is_case_ignorable(c.value)) return !is_cased(c.value);
    next += c.bytes;
  }
  return true;
}

}  // namespace

Text change_case(Budget& budget, const Text& text, Case form) {
  budget.spend(text.length() / 16);
  TextBuilder out(budget);
  MarkReader marks(text);
  const std::string_view bytes = text.view();
  bool word = false;          // the code point before was cased
  bool cased_before = false;  // the same, looking through ignorable ones
  std::string mapped;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = decode(bytes, at);
    const bool first = form == Case::capitalize ? at == 0 : !word;
    const bool raise = form == Case::upper || (form == Case::swap && is_lower(c.value));
    const bool lower = form == Case::lower || (form == Case::swap && is_upper(c.value));
    mapped.clear();
    if (raise) {
      append_upper(mapped, c.value);
    } else if (!lower && form != Case::swap && first) {
      append_title(mapped, c.value);
    } else if (!lower && form == Case::swap) {
      encode(mapped, c.value);
    } else if (c.value == 0x3A3) {
      mapped = final_sigma(bytes, at, cased_before) ? "\u03C2" : "\u03C3";
    } else {
      append_lower(mapped, c.value);
    }
    out.append(mapped, marks.tainted(at, at + c.bytes));
    word = is_cased(c.value);
    if (!is_case_ignorable(c.value)) cased_before = word;
    at += c.bytes;
  }
  return out.take();
}

Text pad(Budget& budget, const Text& text, std::int64_t width, std::string_view fill, Side fill_side) {
  TextBuilder out(budget);
  const auto length = static_cast<std::int64_t>(text.length());
  const std::size_t missing = width > length ? static_cast<std::size_t>(width - length) : 0;
  std::size_t left = fill_side == Side::left ? missing : 0;
  // str.center puts the odd one on the left when the width is odd.
  if (fill_side == Side::both) left = missing / 2 + (missing & static_cast<std::size_t>(width) & 1U);
  out.append_repeated(fill, left);
  out.append(text);
  out.append_repeated(fill, missing - left);
  return out.take();
}

Text escape_html(Budget& budget, const Text& text) {
  TextBuilder out(budget);
  MarkReader marks(text);
  const std::string_view bytes = text.view();
  std::size_t copied = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string_view entity;
    switch (bytes[at]) {
      case '&':
        entity = "&amp;";
        break;
      case '<':
        entity = "&lt;";
        break;
      case '>':
        entity = "&gt;";
        break;
      case '\'':
        entity = "&#39;";
        break;
      case '"':
        entity = "&#34;";
        break;
      default:
        continue;
    }
    out.append(text, copied, at);
    out.append(entity, marks.tainted(at, at + 1));
    copied = at + 1;
  }
  out.append(text, copied, bytes.size());
  return out.take(true);
}

}  // namespace ponder::text::jinja
