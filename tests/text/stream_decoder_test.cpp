#include "text/stream_decoder.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "text/data.hpp"
#include "text/utf8.hpp"

namespace ponder::text {
namespace {

using ponder::testing::Ids;
using ponder::testing::qwen3;
using ponder::testing::tiny_a;

// The tokens of single bytes, so that every cut of a character occurs.
Ids byte_ids(const Tokenizer& t, std::string_view bytes) {
  Ids ids;
  for (const char b : bytes) {
    for (std::int32_t id = 0; id < t.vocab_size(); ++id) {
      if (t.bytes(id) == std::string_view(&b, 1)) {
        ids.push_back(id);
        break;
      }
    }
  }
  return ids;
}

TEST(StreamDecoder, Complaint25_NeverHalfACharacter) {
  // U+1FAE0, U+1F979 and two Han characters whose tokens cut them in half.
  const std::string text = "a\xF0\x9F\xAB\xA0\xF0\x9F\xA5\xB9\xE9\xBE\x9C\xE5\x8C\x97z";
  for (const Tokenizer* t : {&tiny_a(), &qwen3()}) {
    for (const Ids& ids : {t->encode(text, SpecialTokens::none), byte_ids(*t, text)}) {
      StreamDecoder stream(*t);
      std::string all;
      int silent = 0;
      for (const std::int32_t id : ids) {
        const std::string part = stream.push(id);
        EXPECT_EQ(valid_utf8_prefix(part), part.size());
        EXPECT_EQ(part.find("\xEF\xBF\xBD"), std::string::npos);
        silent += part.empty() ? 1 : 0;
        all += part;
      }
      EXPECT_GT(silent, 0);  // or the text would not show anything
      EXPECT_EQ(all, text);
      EXPECT_EQ(stream.finish(), "");
    }
  }
}

TEST(StreamDecoder, Complaint25_DanglingTailBecomesReplacementCharacter) {
  const Tokenizer& t = tiny_a();
  StreamDecoder stream(t);
  std::string all;
  for (const std::int32_t id : byte_ids(t, "x\xF0\x9F\xAB")) all += stream.push(id);
  EXPECT_EQ(all, "x");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.push(byte_ids(t, "y")[0]), "y");
}

TEST(StreamDecoder, WhatCannotBecomeACharacterComesOutAtOnce) {
  const Tokenizer& t = tiny_a();
  StreamDecoder stream(t);
  std::string all;
  for (const std::int32_t id : byte_ids(t, "\xF0\x9F")) all += stream.push(id);
  EXPECT_EQ(all, "");
  EXPECT_EQ(stream.push(byte_ids(t, "a")[0]),
            "\xEF\xBF\xBD"
            "a");
}

RC_GTEST_PROP(StreamDecoder, Complaint25_PartsMakeTheWhole, ()) {
  const Tokenizer& t = **rc::gen::element(&tiny_a(), &qwen3());
  const bool skip = *rc::gen::arbitrary<bool>();
  // Ids around the bytes' tokens, the specials, and some that have no token.
  const auto id =
      rc::gen::weightedOneOf<std::int32_t>({{5, rc::gen::inRange(94, 256)},
                                            {2, rc::gen::inRange(0, 600)},
                                            {1, rc::gen::inRange(t.vocab_size() - 12, t.vocab_size() + 3)},
                                            {1, rc::gen::inRange(-2, t.vocab_size())}});
  const auto ids = *rc::gen::container<Ids>(id);
  StreamDecoder stream(t, skip);
  std::string all;
  for (const std::int32_t i : ids) {
    const std::string part = stream.push(i);
    RC_ASSERT(valid_utf8_prefix(part) == part.size());
    all += part;
  }
  RC_ASSERT(all + stream.finish() == t.decode(ids, skip));
}

}  // namespace
}  // namespace ponder::text
