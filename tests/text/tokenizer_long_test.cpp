// A megabyte of one character on a small stack: no recursion, no quadratic time, and the right ids.
#include <exception>
#include <functional>

#include <gtest/gtest.h>
#include <pthread.h>

#include "text/data.hpp"
#include "text/normalize.hpp"

namespace ponder::text {
namespace {

using nlohmann::json;
using ponder::testing::Ids;

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PONDER_LARGE_FRAMES
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define PONDER_LARGE_FRAMES
#endif
#ifdef PONDER_LARGE_FRAMES
constexpr std::size_t kStack = std::size_t{1} << 20;  // frames are larger with the sanitizer
#else
constexpr std::size_t kStack = std::size_t{256} << 10;
#endif

void run_on_small_stack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStack), 0);
  pthread_t thread{};
  const auto start = [](void* argument) -> void* {
    try {
      (*static_cast<std::function<void()>*>(argument))();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, start, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::string repeated(const std::string& unit, std::size_t bytes = std::size_t{1} << 20) {
  std::string text;
  for (std::size_t i = 0; i < bytes / unit.size(); ++i) text += unit;
  return text;
}

Ids unpacked(const json& blocks) {
  Ids ids;
  for (const json& block : blocks) {
    for (int i = 0; i < block[1].get<int>(); ++i) {
      for (const json& id : block[0]) ids.push_back(id.get<std::int32_t>());
    }
  }
  return ids;
}

TEST(TokenizerLong, Complaint29_MegabyteOfOneCharacterOnASmallStack) {
  const json cases = ponder::testing::read_json("tokenizer/hf-long.json");
  ASSERT_EQ(cases.size(), 22U);
  for (const json& c : cases) {
    const Tokenizer& t = c["tokenizer"] == "qwen3" ? ponder::testing::qwen3() : ponder::testing::tiny_a();
    const std::string text = repeated(c["unit"].get<std::string>());
    run_on_small_stack([&] {
      const Ids ids = t.encode(text, SpecialTokens::none);
      EXPECT_TRUE(ids == unpacked(c["blocks"])) << c["unit"] << " " << c["tokenizer"];
      EXPECT_TRUE(t.encode(text, SpecialTokens::parse) == ids);
      EXPECT_TRUE(t.decode(ids) == normalize(text, NormalForm::nfc)) << c["unit"];
    });
  }
}

TEST(TokenizerLong, Complaint29_OtherSplittersOnASmallStack) {
  const json variants = ponder::testing::read_json("tokenizer/hf-cases.json")["variants"];
  for (const char* name : {"qwen2", "llama3", "gpt2", "cased", "o200k", "digits", "one_piece", "several",
                           "other_1", "other_2", "other_3", "other_4"}) {
    json spec = ponder::testing::tiny_a_json();
    for (const auto& [key, value] : variants[name].items()) spec[key] = value;
    const Tokenizer t = Tokenizer::parse(spec.dump());
    for (const std::string unit : {" ", "\n", "\r\n", "Z", "z", "1", "!", "'", "\xC3\xA9", "\xCC\x81",
                                   "\xE4\xB8\xAD", "\xF0\x9F\x98\x80", " \n", "aB", "\xE4\xB8\xADZ"}) {
      const std::string text = repeated(unit, 200000);
      run_on_small_stack([&] {
        EXPECT_TRUE(t.decode(t.encode(text, SpecialTokens::none)) == text) << name << " " << json(unit);
      });
    }
  }
}

TEST(TokenizerLong, ManyMarkersAndNearMarkers) {
  const Tokenizer& t = ponder::testing::tiny_a();
  for (const char* unit : {"<|im_end|>", "<|im_end|", "<", "<think>", "</think"}) {
    const std::string text = repeated(unit, 400000);
    run_on_small_stack([&] {
      const Ids ids = t.encode(text, SpecialTokens::parse);
      EXPECT_TRUE(t.decode(ids) == text) << unit;
      if (t.id(unit)) {
        EXPECT_TRUE(ids == Ids(text.size() / std::string(unit).size(), *t.id(unit))) << unit;
      }
    });
  }
}

}  // namespace
}  // namespace ponder::text
