#include "text/template_unicode.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include <utf8proc.h>

namespace ponder::text::jinja {
namespace {

struct Range {
  char32_t first, last;
};
struct Special {
  char32_t from;
  const char* to;
};

// What utf8proc's categories and one-to-one mappings leave out (Unicode 14: PropList, SpecialCasing,
// DerivedNumericType), each table in ascending order.
// Numeric_Type=Digit outside category Nd.
constexpr Range kOtherDigit[] = {
    {0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
    {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
    {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
    {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};
// Numeric_Type=Numeric outside the categories N*.
constexpr Range kOtherNumeric[] = {
    {0x3405, 0x3405},   {0x3483, 0x3483},   {0x382A, 0x382A},   {0x3B4D, 0x3B4D},   {0x4E00, 0x4E00},
    {0x4E03, 0x4E03},   {0x4E07, 0x4E07},   {0x4E09, 0x4E09},   {0x4E5D, 0x4E5D},   {0x4E8C, 0x4E8C},
    {0x4E94, 0x4E94},   {0x4E96, 0x4E96},   {0x4EBF, 0x4EC0},   {0x4EDF, 0x4EDF},   {0x4EE8, 0x4EE8},
    {0x4F0D, 0x4F0D},   {0x4F70, 0x4F70},   {0x5104, 0x5104},   {0x5146, 0x5146},   {0x5169, 0x5169},
    {0x516B, 0x516B},   {0x516D, 0x516D},   {0x5341, 0x5341},   {0x5343, 0x5345},   {0x534C, 0x534C},
    {0x53C1, 0x53C4},   {0x56DB, 0x56DB},   {0x58F1, 0x58F1},   {0x58F9, 0x58F9},   {0x5E7A, 0x5E7A},
    {0x5EFE, 0x5EFF},   {0x5F0C, 0x5F0E},   {0x5F10, 0x5F10},   {0x62FE, 0x62FE},   {0x634C, 0x634C},
    {0x67D2, 0x67D2},   {0x6F06, 0x6F06},   {0x7396, 0x7396},   {0x767E, 0x767E},   {0x8086, 0x8086},
    {0x842C, 0x842C},   {0x8CAE, 0x8CAE},   {0x8CB3, 0x8CB3},   {0x8D30, 0x8D30},   {0x9621, 0x9621},
    {0x9646, 0x9646},   {0x964C, 0x964C},   {0x9678, 0x9678},   {0x96F6, 0x96F6},   {0xF96B, 0xF96B},
    {0xF973, 0xF973},   {0xF978, 0xF978},   {0xF9B2, 0xF9B2},   {0xF9D1, 0xF9D1},   {0xF9D3, 0xF9D3},
    {0xF9FD, 0xF9FD},   {0x20001, 0x20001}, {0x20064, 0x20064}, {0x200E2, 0x200E2}, {0x20121, 0x20121},
    {0x2092A, 0x2092A}, {0x20983, 0x20983}, {0x2098C, 0x2098C}, {0x2099C, 0x2099C}, {0x20AEA, 0x20AEA},
    {0x20AFD, 0x20AFD}, {0x20B19, 0x20B19}, {0x22390, 0x22390}, {0x22998, 0x22998}, {0x23B1B, 0x23B1B},
    {0x2626D, 0x2626D}, {0x2F890, 0x2F890}};
// Other_Lowercase.
constexpr Range kOtherLower[] = {
    {0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},    {0x2E0, 0x2E4},
    {0x345, 0x345},     {0x37A, 0x37A},     {0x1D2C, 0x1D6A},   {0x1D78, 0x1D78},  {0x1D9B, 0x1DBF},
    {0x2071, 0x2071},   {0x207F, 0x207F},   {0x2090, 0x209C},   {0x2170, 0x217F},  {0x24D0, 0x24E9},
    {0x2C7C, 0x2C7D},   {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F8, 0xA7F9},  {0xAB5C, 0xAB5F},
    {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA}};
// Other_Uppercase.
constexpr Range kOtherUpper[] = {
    {0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
// Upper case of more than one code point.
constexpr Special kSpecialUpper[] = {{0xDF, "SS"},
                                     {0x149, "\u02BCN"},
                                     {0x1F0, "J\u030C"},
                                     {0x390, "\u0399\u0308\u0301"},
                                     {0x3B0, "\u03A5\u0308\u0301"},
                                     {0x587, "\u0535\u0552"},
                                     {0x1E96, "H\u0331"},
                                     {0x1E97, "T\u0308"},
                                     {0x1E98, "W\u030A"},
                                     {0x1E99, "Y\u030A"},
                                     {0x1E9A, "A\u02BE"},
                                     {0x1F50, "\u03A5\u0313"},
                                     {0x1F52, "\u03A5\u0313\u0300"},
                                     {0x1F54, "\u03A5\u0313\u0301"},
                                     {0x1F56, "\u03A5\u0313\u0342"},
                                     {0x1F80, "\u1F08\u0399"},
                                     {0x1F81, "\u1F09\u0399"},
                                     {0x1F82, "\u1F0A\u0399"},
                                     {0x1F83, "\u1F0B\u0399"},
                                     {0x1F84, "\u1F0C\u0399"},
                                     {0x1F85, "\u1F0D\u0399"},
                                     {0x1F86, "\u1F0E\u0399"},
                                     {0x1F87, "\u1F0F\u0399"},
                                     {0x1F88, "\u1F08\u0399"},
                                     {0x1F89, "\u1F09\u0399"},
                                     {0x1F8A, "\u1F0A\u0399"},
                                     {0x1F8B, "\u1F0B\u0399"},
                                     {0x1F8C, "\u1F0C\u0399"},
                                     {0x1F8D, "\u1F0D\u0399"},
                                     {0x1F8E, "\u1F0E\u0399"},
                                     {0x1F8F, "\u1F0F\u0399"},
                                     {0x1F90, "\u1F28\u0399"},
                                     {0x1F91, "\u1F29\u0399"},
                                     {0x1F92, "\u1F2A\u0399"},
                                     {0x1F93, "\u1F2B\u0399"},
                                     {0x1F94, "\u1F2C\u0399"},
                                     {0x1F95, "\u1F2D\u0399"},
                                     {0x1F96, "\u1F2E\u0399"},
                                     {0x1F97, "\u1F2F\u0399"},
                                     {0x1F98, "\u1F28\u0399"},
                                     {0x1F99, "\u1F29\u0399"},
                                     {0x1F9A, "\u1F2A\u0399"},
                                     {0x1F9B, "\u1F2B\u0399"},
                                     {0x1F9C, "\u1F2C\u0399"},
                                     {0x1F9D, "\u1F2D\u0399"},
                                     {0x1F9E, "\u1F2E\u0399"},
                                     {0x1F9F, "\u1F2F\u0399"},
                                     {0x1FA0, "\u1F68\u0399"},
                                     {0x1FA1, "\u1F69\u0399"},
                                     {0x1FA2, "\u1F6A\u0399"},
                                     {0x1FA3, "\u1F6B\u0399"},
                                     {0x1FA4, "\u1F6C\u0399"},
                                     {0x1FA5, "\u1F6D\u0399"},
                                     {0x1FA6, "\u1F6E\u0399"},
                                     {0x1FA7, "\u1F6F\u0399"},
                                     {0x1FA8, "\u1F68\u0399"},
                                     {0x1FA9, "\u1F69\u0399"},
                                     {0x1FAA, "\u1F6A\u0399"},
                                     {0x1FAB, "\u1F6B\u0399"},
                                     {0x1FAC, "\u1F6C\u0399"},
                                     {0x1FAD, "\u1F6D\u0399"},
                                     {0x1FAE, "\u1F6E\u0399"},
                                     {0x1FAF, "\u1F6F\u0399"},
                                     {0x1FB2, "\u1FBA\u0399"},
                                     {0x1FB3, "\u0391\u0399"},
                                     {0x1FB4, "\u0386\u0399"},
                                     {0x1FB6, "\u0391\u0342"},
                                     {0x1FB7, "\u0391\u0342\u0399"},
                                     {0x1FBC, "\u0391\u0399"},
                                     {0x1FC2, "\u1FCA\u0399"},
                                     {0x1FC3, "\u0397\u0399"},
                                     {0x1FC4, "\u0389\u0399"},
                                     {0x1FC6, "\u0397\u0342"},
                                     {0x1FC7, "\u0397\u0342\u0399"},
                                     {0x1FCC, "\u0397\u0399"},
                                     {0x1FD2, "\u0399\u0308\u0300"},
                                     {0x1FD3, "\u0399\u0308\u0301"},
                                     {0x1FD6, "\u0399\u0342"},
                                     {0x1FD7, "\u0399\u0308\u0342"},
                                     {0x1FE2, "\u03A5\u0308\u0300"},
                                     {0x1FE3, "\u03A5\u0308\u0301"},
                                     {0x1FE4, "\u03A1\u0313"},
                                     {0x1FE6, "\u03A5\u0342"},
                                     {0x1FE7, "\u03A5\u0308\u0342"},
                                     {0x1FF2, "\u1FFA\u0399"},
                                     {0x1FF3, "\u03A9\u0399"},
                                     {0x1FF4, "\u038F\u0399"},
                                     {0x1FF6, "\u03A9\u0342"},
                                     {0x1FF7, "\u03A9\u0342\u0399"},
                                     {0x1FFC, "\u03A9\u0399"},
                                     {0xFB00, "FF"},
                                     {0xFB01, "FI"},
                                     {0xFB02, "FL"},
                                     {0xFB03, "FFI"},
                                     {0xFB04, "FFL"},
                                     {0xFB05, "ST"},
                                     {0xFB06, "ST"},
                                     {0xFB13, "\u0544\u0546"},
                                     {0xFB14, "\u0544\u0535"},
                                     {0xFB15, "\u0544\u053B"},
                                     {0xFB16, "\u054E\u0546"},
                                     {0xFB17, "\u0544\u053D"}};
// Title case of more than one code point.
constexpr Special kSpecialTitle[] = {{0xDF, "Ss"},
                                     {0x149, "\u02BCN"},
                                     {0x1F0, "J\u030C"},
                                     {0x390, "\u0399\u0308\u0301"},
                                     {0x3B0, "\u03A5\u0308\u0301"},
                                     {0x587, "\u0535\u0582"},
                                     {0x1E96, "H\u0331"},
                                     {0x1E97, "T\u0308"},
                                     {0x1E98, "W\u030A"},
                                     {0x1E99, "Y\u030A"},
                                     {0x1E9A, "A\u02BE"},
                                     {0x1F50, "\u03A5\u0313"},
                                     {0x1F52, "\u03A5\u0313\u0300"},
                                     {0x1F54, "\u03A5\u0313\u0301"},
                                     {0x1F56, "\u03A5\u0313\u0342"},
                                     {0x1FB2, "\u1FBA\u0345"},
                                     {0x1FB4, "\u0386\u0345"},
                                     {0x1FB6, "\u0391\u0342"},
                                     {0x1FB7, "\u0391\u0342\u0345"},
                                     {0x1FC2, "\u1FCA\u0345"},
                                     {0x1FC4, "\u0389\u0345"},
                                     {0x1FC6, "\u0397\u0342"},
                                     {0x1FC7, "\u0397\u0342\u0345"},
                                     {0x1FD2, "\u0399\u0308\u0300"},
                                     {0x1FD3, "\u0399\u0308\u0301"},
                                     {0x1FD6, "\u0399\u0342"},
                                     {0x1FD7, "\u0399\u0308\u0342"},
                                     {0x1FE2, "\u03A5\u0308\u0300"},
                                     {0x1FE3, "\u03A5\u0308\u0301"},
                                     {0x1FE4, "\u03A1\u0313"},
                                     {0x1FE6, "\u03A5\u0342"},
                                     {0x1FE7, "\u03A5\u0308\u0342"},
                                     {0x1FF2, "\u1FFA\u0345"},
                                     {0x1FF4, "\u038F\u0345"},
                                     {0x1FF6, "\u03A9\u0342"},
                                     {0x1FF7, "\u03A9\u0342\u0345"},
                                     {0xFB00, "Ff"},
                                     {0xFB01, "Fi"},
                                     {0xFB02, "Fl"},
                                     {0xFB03, "Ffi"},
                                     {0xFB04, "Ffl"},
                                     {0xFB05, "St"},
                                     {0xFB06, "St"},
                                     {0xFB13, "\u0544\u0576"},
                                     {0xFB14, "\u0544\u0565"},
                                     {0xFB15, "\u0544\u056B"},
                                     {0xFB16, "\u054E\u0576"},
                                     {0xFB17, "\u0544\u056D"}};

template <std::size_t N>
bool in_table(const Range (&table)[N], char32_t c) {
  const auto* at = std::upper_bound(std::begin(table), std::end(table), c,
                                    [](char32_t value, const Range& range) { return value < range.first; });
  return at != std::begin(table) && c <= std::prev(at)->last;
}

template <std::size_t N>
const char* special(const Special (&table)[N], char32_t c) {
  const auto* at = std::lower_bound(std::begin(table), std::end(table), c,
                                    [](const Special& entry, char32_t value) { return entry.from < value; });
  return at != std::end(table) && at->from == c ? at->to : nullptr;
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

}  // namespace

CodePoint decode(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  utf8proc_int32_t value = -1;
  const std::size_t left = std::min<std::size_t>(text.size() - at, 4);
  const auto* start = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at);
  const utf8proc_ssize_t n = utf8proc_iterate(start, static_cast<utf8proc_ssize_t>(left), &value);
  if (n <= 0 || value < 0) return {0xDC00U + lead, 1};
  return {static_cast<char32_t>(value), static_cast<std::size_t>(n)};
}

void encode(std::string& out, char32_t value) {
  if (value >= 0xDC80 && value <= 0xDCFF) {
    out.push_back(static_cast<char>(value - 0xDC00));
    return;
  }
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(value), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    // Eight ASCII bytes at a time: most text, most of the time.
    std::uint64_t word = 0;
    while (text.size() - at >= sizeof word) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080U) != 0) break;
      at += sizeof word;
      count += sizeof word;
    }
    if (at == text.size()) break;
    at += decode(text, at).bytes;
  }
  return count;
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_alpha(char32_t c) {
  const auto cat = category(c);
  return cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t c) {
  return is_decimal(c) || in_table(kOtherDigit, c);
}

bool is_numeric(char32_t c) {
  const auto cat = category(c);
  return (cat >= UTF8PROC_CATEGORY_ND && cat <= UTF8PROC_CATEGORY_NO) || in_table(kOtherNumeric, c);
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  const auto cat = category(c);
  return cat != UTF8PROC_CATEGORY_CN && cat < UTF8PROC_CATEGORY_ZS;
}

bool is_lower(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || in_table(kOtherLower, c);
}
bool is_upper(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || in_table(kOtherUpper, c);
}
bool is_title(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LT;
}
bool is_cased(char32_t c) {
  return is_lower(c) || is_upper(c) || is_title(c);
}

bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:  // Word_Break MidLetter, MidNumLet and Single_Quote
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x387 || c == 0x55F || c == 0x5F4 ||
             c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027 || c == 0xFE13 || c == 0xFE52 ||
             c == 0xFE55 || c == 0xFF07 || c == 0xFF0E || c == 0xFF1A;
  }
}

bool is_identifier_part(char32_t c) {
  if (c == '_') return true;
  const auto cat = category(c);
  return (cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_LO) || cat == UTF8PROC_CATEGORY_MN ||
         cat == UTF8PROC_CATEGORY_MC || cat == UTF8PROC_CATEGORY_ND || cat == UTF8PROC_CATEGORY_NL ||
         cat == UTF8PROC_CATEGORY_PC;
}

void append_upper(std::string& out, char32_t c) {
  if (const char* several = special(kSpecialUpper, c)) {
    out += several;
  } else {
    encode(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_lower(std::string& out, char32_t c) {
  if (c == 0x130) {
    out += "i\u0307";
  } else {
    encode(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_title(std::string& out, char32_t c) {
  if (const char* several = special(kSpecialTitle, c)) {
    out += several;
  } else {
    encode(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_folded(std::string& out, char32_t c) {
  utf8proc_int32_t folded[8];
  int last_class = 0;
  const utf8proc_ssize_t n =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded, 8, UTF8PROC_CASEFOLD, &last_class);
  if (n < 0 || n > 8) {
    encode(out, c);
    return;
  }
  for (utf8proc_ssize_t i = 0; i < n; ++i) encode(out, static_cast<char32_t>(folded[i]));
}

}  // namespace ponder::text::jinja
