#include "text/normalize.hpp"

#include <algorithm>
#include <array>

#include <utf8proc.h>

#include "base/error.hpp"
#include "text/utf8.hpp"

namespace ponder::text {
namespace {

using Code = utf8proc_int32_t;

bool composes(NormalForm form) {
  return form == NormalForm::nfc || form == NormalForm::nfkc;
}
bool is_compat(NormalForm form) {
  return form == NormalForm::nfkc || form == NormalForm::nfkd;
}

// First code point that the form could change or that could combine with what stands before it.
char32_t first_touchy(NormalForm form) {
  switch (form) {
    case NormalForm::nfc:
      return 0x300;
    case NormalForm::nfd:
      return 0xC0;
    default:
      return 0xA0;
  }
}

// A settled character stays as it is and begins a new stretch: normalising the text before it and the text
// from it on gives the same as normalising the whole. Errs on the side of "no".
bool settled(char32_t c, NormalForm form) {
  if (c >= 0xAC00 && c <= 0xD7A3) return composes(form);  // Hangul syllables
  if (c >= 0x1100 && c <= 0x11FF) return false;           // Hangul jamo
  if (c >= 0x16D40 && c <= 0x16D7F) return false;         // Kirat Rai: letters that compose (Unicode 16)
  const utf8proc_property_t* p = utf8proc_get_property(static_cast<Code>(c));
  if (p->category == UTF8PROC_CATEGORY_MN || p->category == UTF8PROC_CATEGORY_MC ||
      p->category == UTF8PROC_CATEGORY_ME || p->combining_class != 0) {
    return false;
  }
  return p->decomp_seqindex == UINT16_MAX || (p->decomp_type != 0 && !is_compat(form));
}

// Length of the run of settled characters at the start.
std::size_t settled_prefix(std::string_view text, NormalForm form, std::size_t* last_start = nullptr) {
  const char32_t touchy = first_touchy(form);
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t length = 0;
    const char32_t c = decode_valid(text.data() + at, length);
    if (c >= touchy && !settled(c, form)) break;
    if (last_start != nullptr) *last_start = at;
    at += length;
  }
  return at;
}

void decompose_to(std::vector<Code>& out, Code c, NormalForm form) {
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                      (is_compat(form) ? UTF8PROC_COMPAT : 0));
  std::array<Code, 32> parts{};  // 18 is the longest decomposition there is
  int boundary = 0;
  const utf8proc_ssize_t n = utf8proc_decompose_char(c, parts.data(), parts.size(), options, &boundary);
  if (n < 0 || n > static_cast<utf8proc_ssize_t>(parts.size())) {
    fail(ErrorKind::internal, "U+{:04X}: decomposition failed ({})", c, n);
  }
  out.insert(out.end(), parts.begin(), parts.begin() + n);
}

std::size_t combining_class(Code c) {
  return static_cast<std::size_t>(utf8proc_get_property(c)->combining_class) & 0xFF;
}

// Stable sort of a run of non-starters by combining class, by counting: linear for any run.
void sort_marks(Code* first, Code* last, std::vector<Code>& spare) {
  const auto n = static_cast<std::size_t>(last - first);
  if (n < 2) return;
  if (n <= 8) {
    for (Code* i = first + 1; i < last; ++i) {
      const Code c = *i;
      Code* j = i;
      for (; j > first && combining_class(j[-1]) > combining_class(c); --j) *j = j[-1];
      *j = c;
    }
    return;
  }
  std::array<std::size_t, 257> start{};
  for (const Code* i = first; i < last; ++i) ++start[combining_class(*i) + 1];
  for (std::size_t k = 1; k < start.size(); ++k) start[k] += start[k - 1];
  spare.resize(n);
  for (const Code* i = first; i < last; ++i) spare[start[combining_class(*i)]++] = *i;
  std::copy(spare.begin(), spare.end(), first);
}

struct Buffers {
  std::vector<Code> codes;
  std::vector<Code> spare;
};

void append_normalized(std::string& out, std::string_view text, NormalForm form, Buffers& buffers) {
  std::vector<Code>& codes = buffers.codes;
  codes.clear();
  for (std::size_t at = 0, length = 0; at < text.size(); at += length) {
    decompose_to(codes, static_cast<Code>(decode_valid(text.data() + at, length)), form);
  }
  std::size_t n = codes.size();
  for (std::size_t i = 0; i < n;) {
    std::size_t j = i;
    while (j < n && combining_class(codes[j]) != 0) ++j;
    sort_marks(codes.data() + i, codes.data() + j, buffers.spare);
    i = j + 1;
  }
  if (composes(form)) {
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    const utf8proc_ssize_t left =
        utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(n), options);
    if (left < 0) fail(ErrorKind::internal, "composing {} code points failed ({})", n, left);
    n = static_cast<std::size_t>(left);
  }
  for (std::size_t i = 0; i < n; ++i) append_code_point(out, static_cast<char32_t>(codes[i]));
}

}  // namespace

bool surely_normalized(std::string_view text, NormalForm form) {
  return form == NormalForm::none || settled_prefix(text, form) == text.size();
}

std::string normalize(std::string_view text, NormalForm form, std::vector<Rewritten>* rewritten) {
  if (form == NormalForm::none) return std::string(text);
  std::string out;
  out.reserve(text.size());
  Buffers buffers;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t last = 0;
    const std::size_t prefix = settled_prefix(text.substr(at), form, &last);
    if (at + prefix == text.size()) {
      out += text.substr(at);
      break;
    }
    // The character before a mark belongs to the mark's stretch.
    const std::size_t begin = prefix == 0 ? at : at + last;
    out += text.substr(at, begin - at);
    std::size_t end = at + prefix;
    while (end < text.size()) {
      std::size_t length = 0;
      const char32_t c = decode_valid(text.data() + end, length);
      if (c < first_touchy(form) || settled(c, form)) break;
      end += length;
    }
    const std::size_t out_begin = out.size();
    append_normalized(out, text.substr(begin, end - begin), form, buffers);
    if (rewritten != nullptr) rewritten->push_back({begin, end, out_begin, out.size()});
    at = end;
  }
  return out;
}

}  // namespace ponder::text
