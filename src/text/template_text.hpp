// Building and cutting text without losing its trust marks. Internal to the template engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/template_cells.hpp"

namespace ponder::text::jinja {

// What one rendering may still use. Every operation pays before it works, so that no template and no message
// can keep the machine busy or fill its memory.
class Budget {
 public:
  Budget(std::uint64_t steps, std::size_t text_bytes)
      : limit_(steps), left_(steps), text_bytes_(text_bytes) {}

  void spend(std::uint64_t steps) {
    if (steps > left_) out_of_steps();
    left_ -= steps;
  }
  void spend_bytes(std::size_t bytes) { spend(bytes / 128); }
  // Fails when one text would be larger than the limit.
  void allow_text(std::size_t bytes) const {
    if (bytes > text_bytes_) text_too_large();
  }

 private:
  [[noreturn]] void out_of_steps() const;
  [[noreturn]] void text_too_large() const;

  std::uint64_t limit_;
  std::uint64_t left_;
  std::size_t text_bytes_;
};

// A text in the making.
class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(&budget) {}

  void append(std::string_view piece, bool tainted = false);
  void append(const Text& piece) { append(piece, 0, piece.bytes().size()); }
  void append(const Text& piece, std::size_t begin, std::size_t end);  // bytes, with their marks
  void append_repeated(std::string_view piece, std::size_t times, bool tainted = false);
  std::size_t size() const { return bytes_.size(); }
  bool tainted() const { return !marks_.empty(); }
  Text take(bool markup = false);
  Value take_value(bool markup = false) { return make_text(take(markup)); }
  Budget& budget() const { return *budget_; }

 private:
  void mark(std::size_t begin, std::size_t end);

  Budget* budget_;
  std::string bytes_;
  std::vector<Mark> marks_;
};

// Reads marks in step with a walk over the text's bytes from front to back.
class MarkReader {
 public:
  explicit MarkReader(const Text& text) : marks_(&text.marks()) {}
  bool tainted(std::size_t begin, std::size_t end);

 private:
  const std::vector<Mark>* marks_;
  std::size_t next_ = 0;
};

Text cut(Budget& budget, const Text& text, std::size_t begin, std::size_t end);  // bytes [begin, end)
Text repeat(Budget& budget, const Text& text, std::int64_t times);
Text reversed(Budget& budget, const Text& text);

enum class Side { left, right, both };
// Python's str.strip family: of white space, or of any of the code points of `chars`.
Text strip(Budget& budget, const Text& text, const Text* chars, Side side);

// First place of `needle` in hay[from, to), npos when there is none. Linear time.
std::size_t find_text(std::string_view hay, std::string_view needle, std::size_t from = 0);
std::size_t rfind_text(std::string_view hay, std::string_view needle);

Text replace(Budget& budget, const Text& text, const Text& old, const Text& with, std::int64_t count);

// Python's str.split and rsplit; without a separator, at runs of white space. `limit` < 0: no limit.
std::vector<Value> split(Budget& budget, const Text& text, const Text* separator, std::int64_t limit);
std::vector<Value> rsplit(Budget& budget, const Text& text, const Text* separator, std::int64_t limit);
std::vector<Value> split_lines(Budget& budget, const Text& text, bool keep_ends);
std::vector<Value> characters(Budget& budget, const Text& text);

enum class Case { upper, lower, title, capitalize, swap };
Text change_case(Budget& budget, const Text& text, Case form);

// `text` padded with `fill` to `width` code points, extra fill on the given sides (both: as str.center).
Text pad(Budget& budget, const Text& text, std::int64_t width, std::string_view fill, Side fill_side);

// &, <, >, ' and " as HTML entities.
Text escape_html(Budget& budget, const Text& text);

}  // namespace ponder::text::jinja
