// Split patterns on PCRE2, with a bound on the work that is linear in the text.
//
// One match is tried in a window of the text with "hard" partial matching: PCRE2 then says so as soon as any
// path looks at the window's end, and the match is tried again in a window twice as large. So the windows
// show how much text each match has really looked at. Their sum is held to a multiple of the text's size, and
// the steps within a window by PCRE2's match limit; a pattern that rescans the rest of the text at every
// match, or backtracks without end, is stopped with an error instead of hanging.
#include <algorithm>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.hpp"
#include "text/splitter.hpp"
#include "text/utf8.hpp"

namespace ponder::text {
namespace {

constexpr std::uint32_t kFirstWindow = 64;
constexpr std::uint64_t kWorkPerByte = 256;        // bytes of window a byte of text may cost
constexpr std::uint32_t kStepsPerByte = 32;        // PCRE2 match limit a byte of window
constexpr std::uint32_t kHeapLimitKib = 64 << 10;  // PCRE2 heap (interpreter)
constexpr std::uint32_t kDepthLimit = 1 << 20;
constexpr std::size_t kJitStackMax = std::size_t{16} << 20;

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* p) const {
    Free(p);
  }
};
using Code = std::unique_ptr<pcre2_code, Freer<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Freer<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Freer<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freer<pcre2_match_data_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Freer<pcre2_jit_stack_free>>;

template <class Pointer>
Pointer need(Pointer p) {
  if (p == nullptr) fail(ErrorKind::no_memory, "PCRE2 could not allocate");
  return p;
}

std::string pcre2_message(int code) {
  std::string text(256, '\0');
  const int n = pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(text.data()), text.size());
  text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return text;
}

// What one split() needs beside the compiled pattern.
struct Session {
  MatchData data;
  MatchContext context{need(pcre2_match_context_create(nullptr))};
  JitStack stack;

  explicit Session(const pcre2_code* code) : data(need(pcre2_match_data_create_from_pattern(code, nullptr))) {
    pcre2_set_heap_limit(context.get(), kHeapLimitKib);
    pcre2_set_depth_limit(context.get(), kDepthLimit);
  }

  // The JIT's own stack starts as a small piece of the thread's; the large one is made only when that is
  // full.
  bool grow_stack() {
    if (stack != nullptr) return false;
    stack.reset(need(pcre2_jit_stack_create(std::size_t{64} << 10, kJitStackMax, nullptr)));
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    return true;
  }
};

class PatternSplitter final : public Splitter {
 public:
  PatternSplitter(std::string_view pattern, bool literal) : pattern_(printable(pattern, 200)) {
    if (literal && valid_utf8_prefix(pattern) != pattern.size())
      fail(ErrorKind::bad_file, "split string is not UTF-8");
    const std::string translated = literal ? std::string(pattern) : translate_pattern(pattern);
    const std::uint32_t options =
        PCRE2_UTF | PCRE2_NO_UTF_CHECK | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
    const CompileContext context(need(pcre2_compile_context_create(nullptr)));
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    int code = 0;
    PCRE2_SIZE at = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), options,
                              &code, &at, context.get()));
    if (code_ == nullptr) {
      fail(ErrorKind::unsupported, "split pattern \"{}\": PCRE2 cannot compile it: {}", pattern_,
           printable(pcre2_message(code), 200));
    }
    std::uint32_t may_be_empty = 0;
    pcre2_pattern_info(code_.get(), PCRE2_INFO_MATCHEMPTY, &may_be_empty);
    if (may_be_empty != 0 || translated.empty()) {
      fail(ErrorKind::unsupported, "split pattern \"{}\": it can match nothing, which is not handled",
           pattern_);
    }
    pcre2_jit_compile(code_.get(),
                      PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);  // without it: the interpreter
  }

  void split(std::string_view text, std::uint32_t begin, std::uint32_t end,
             std::vector<std::uint32_t>& ends) const override {
    Session session(code_.get());
    const std::string_view piece = text.substr(begin, end - begin);
    std::uint64_t work_left = kWorkPerByte * (piece.size() + kFirstWindow);
    std::uint32_t at = 0;
    const auto size = static_cast<std::uint32_t>(piece.size());
    while (at < size) {
      const bool found = match(session, piece, at, work_left);
      const PCRE2_SIZE* span = pcre2_get_ovector_pointer(session.data.get());
      const std::uint32_t first = found ? static_cast<std::uint32_t>(span[0]) : size;
      if (first > at) ends.push_back(begin + first);
      if (!found) return;
      at = static_cast<std::uint32_t>(span[1]);
      ends.push_back(begin + at);
    }
  }

 private:
  // The leftmost match from `at` on.
  bool match(Session& session, std::string_view piece, std::uint32_t at, std::uint64_t& work_left) const {
    const auto size = static_cast<std::uint32_t>(piece.size());
    for (std::uint32_t window = kFirstWindow;;) {
      const std::uint32_t end = size - at <= window ? size : char_start(piece, at + window);
      const std::uint32_t looked = end - at;
      if (looked > work_left) {
        fail(ErrorKind::too_large,
             "split pattern \"{}\": over the limit of {} bytes looked at per byte of text, at byte {} of {}",
             pattern_, kWorkPerByte, at, size);
      }
      work_left -= looked;
      const std::uint64_t steps = std::uint64_t{kStepsPerByte} * looked + 10000;
      pcre2_set_match_limit(session.context.get(),
                            static_cast<std::uint32_t>(std::min<std::uint64_t>(steps, UINT32_MAX)));
      const std::uint32_t options = PCRE2_NO_UTF_CHECK | (end < size ? PCRE2_PARTIAL_HARD : 0);
      const int rc = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(piece.data()), end, at, options,
                                 session.data.get(), session.context.get());
      if (rc >= 0) return true;
      if (rc == PCRE2_ERROR_JIT_STACKLIMIT && session.grow_stack()) continue;
      if (rc == PCRE2_ERROR_PARTIAL || (rc == PCRE2_ERROR_NOMATCH && end < size)) {
        window = looked > (1U << 30) ? size : 2 * looked;
        continue;
      }
      if (rc == PCRE2_ERROR_NOMATCH) return false;
      fail(ErrorKind::too_large, "split pattern \"{}\": PCRE2 stopped at byte {} of {}: {}", pattern_, at,
           size, printable(pcre2_message(rc), 200));
    }
  }

  static std::uint32_t char_start(std::string_view text, std::uint32_t at) {
    while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    return at;
  }

  std::string pattern_;
  Code code_;
};

}  // namespace

std::unique_ptr<const Splitter> make_pattern_splitter(std::string_view pattern, bool literal) {
  return std::make_unique<const PatternSplitter>(pattern, literal);
}

}  // namespace ponder::text
