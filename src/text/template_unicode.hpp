// Code points as Python's str sees them: what a template's string methods need to know.
//
// Text is bytes that should be UTF-8. A byte that starts no well-formed sequence counts as one code point of
// its own (0xDC00 + byte, as Python's "surrogateescape" names it), so every byte string has a length, an
// order and slices, and passes through unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ponder::text::jinja {

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;  // length in the text
};

// The code point that starts at text[at]; `at` must be inside the text.
CodePoint decode(std::string_view text, std::size_t at);
void encode(std::string& out, char32_t value);
std::size_t count_code_points(std::string_view text);

bool is_space(char32_t c);      // str.isspace, and \s of a regular expression
bool is_alpha(char32_t c);      // categories L*
bool is_decimal(char32_t c);    // category Nd
bool is_digit(char32_t c);      // decimals, superscripts, circled digits
bool is_numeric(char32_t c);    // digits, fractions, numerals
bool is_printable(char32_t c);  // not escaped by repr()
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);            // category Lt
bool is_cased(char32_t c);            // has an upper, lower or title form
bool is_case_ignorable(char32_t c);   // skipped when looking for the end of a word
bool is_identifier_part(char32_t c);  // may stand inside a template's names

inline bool is_alnum(char32_t c) {
  return is_alpha(c) || is_numeric(c);
}

// Full case mapping (one code point may become several), without context.
void append_upper(std::string& out, char32_t c);
void append_lower(std::string& out, char32_t c);
void append_title(std::string& out, char32_t c);
void append_folded(std::string& out, char32_t c);  // str.casefold

}  // namespace ponder::text::jinja
