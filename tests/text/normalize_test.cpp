#include "text/normalize.hpp"

#include <array>
#include <cstdlib>
#include <memory>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <utf8proc.h>

#include "text/data.hpp"
#include "text/utf8.hpp"

namespace ponder::text {
namespace {

std::string utf8(char32_t c) {
  std::string s;
  append_code_point(s, c);
  return s;
}

// The library's own whole-string form: independent of how normalize() cuts the text and sorts marks.
std::string library_form(const std::string& text, utf8proc_option_t form) {
  utf8proc_uint8_t* out = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | form);
  const utf8proc_ssize_t n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                          static_cast<utf8proc_ssize_t>(text.size()), &out, options);
  std::string result(reinterpret_cast<char*>(out), static_cast<std::size_t>(n));
  std::free(out);  // NOLINT: malloc'd by the C library
  return result;
}

std::string library_nfc(const std::string& text) {
  return library_form(text, UTF8PROC_COMPOSE);
}
std::string library_nfd(const std::string& text) {
  return library_form(text, UTF8PROC_DECOMPOSE);
}

TEST(Normalize, Complaint31_FormsArePythons) {
  const auto cases = ponder::testing::read_json("tokenizer/normalize.json");
  ASSERT_GE(cases.size(), 300U);
  const std::array forms = {NormalForm::nfc, NormalForm::nfd, NormalForm::nfkc, NormalForm::nfkd};
  for (const auto& c : cases) {
    const auto text = c[0].get<std::string>();
    EXPECT_EQ(normalize(text, NormalForm::none), text);
    for (std::size_t f = 0; f < forms.size(); ++f) {
      EXPECT_EQ(normalize(text, forms[f]), c[f + 1].get<std::string>()) << f << " " << c[0];
    }
  }
}

// Composed, decomposed and bare, alone and after a letter that could combine with what follows.
TEST(Normalize, EveryCodePointInContext) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    if (c >= 0xAC20 && c < 0xD7A0) continue;  // Hangul syllables are all alike
    const std::string composed = utf8(c);
    const std::string decomposed = library_nfd(composed);
    for (const std::string& before : {std::string(), std::string("a"), std::string("\xE1\x84\x80")}) {
      ASSERT_EQ(normalize(before + composed, NormalForm::nfc), library_nfc(before + composed)) << unsigned{c};
      ASSERT_EQ(normalize(before + decomposed, NormalForm::nfc), library_nfc(before + decomposed))
          << unsigned{c};
      ASSERT_EQ(normalize(before + composed, NormalForm::nfd), before + decomposed) << unsigned{c};
    }
  }
}

rc::Gen<std::string> marked_text() {
  const auto character = rc::gen::weightedOneOf<char32_t>({
      {4, rc::gen::inRange<char32_t>(0x41, 0x7B)},
      {4, rc::gen::inRange<char32_t>(0x300, 0x362)},
      {2, rc::gen::inRange<char32_t>(0xC0, 0x250)},
      {1, rc::gen::inRange<char32_t>(0x1100, 0x1200)},
      {1, rc::gen::inRange<char32_t>(0xAC00, 0xAC40)},
      {1, rc::gen::inRange<char32_t>(0x900, 0xE00)},
      {1, rc::gen::inRange<char32_t>(0x1D150, 0x1D1C0)},
      {1, rc::gen::inRange<char32_t>(0x1E00, 0x2000)},
  });
  return rc::gen::map(rc::gen::container<std::vector<char32_t>>(character),
                      [](const std::vector<char32_t>& codes) {
                        std::string s;
                        for (const char32_t c : codes) append_code_point(s, c);
                        return s;
                      });
}

RC_GTEST_PROP(Normalize, AgreesWithTheLibraryOnMarkedText, ()) {
  const std::string text = *marked_text();
  std::vector<Rewritten> parts;
  const std::string nfc = normalize(text, NormalForm::nfc, &parts);
  RC_ASSERT(nfc == library_nfc(text));
  RC_ASSERT(normalize(text, NormalForm::nfd) == library_nfd(text));
  RC_ASSERT(normalize(nfc, NormalForm::nfc) == nfc);
  RC_ASSERT(!surely_normalized(text, NormalForm::nfc) || nfc == text);
  // What was not rewritten was copied.
  std::size_t at = 0;
  std::size_t out_at = 0;
  for (const Rewritten& r : parts) {
    RC_ASSERT(text.substr(at, r.begin - at) == nfc.substr(out_at, r.out_begin - out_at));
    at = r.end;
    out_at = r.out_end;
  }
  RC_ASSERT(text.substr(at) == nfc.substr(out_at));
}

TEST(Normalize, Complaint29_MegabytesOfMarksAreSortedStably) {
  // 220 230 230 220 ... below and above; sorted, all of 220 come first and each class keeps its order.
  std::string text = "q";
  std::string below;
  std::string above;
  for (int i = 0; i < 200000; ++i) {
    const std::string b = i % 3 == 0 ? "\xCC\xA3" : "\xCC\xAD";
    const std::string a = i % 2 == 0 ? "\xCC\x81" : "\xCC\x82";
    text += a + b;
    below += b;
    above += a;
  }
  EXPECT_EQ(normalize(text, NormalForm::nfc), "q" + below + above);
}

}  // namespace
}  // namespace ponder::text
