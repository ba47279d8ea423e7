// tokenize, logits and info through the program itself.
#include <cmath>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/process.hpp"

namespace ponder::test {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

Json read_cases(const std::string& checkpoint, const std::string& file) {
  std::ifstream in(golden(checkpoint) + "/" + file);
  return Json::parse(in);
}

TEST(TokenizeVerb, EncodesAndDecodesLines) {
  const Json golden_text = read_cases("tiny-b", "cases-text.json");
  std::string lines;
  for (const Json& c : golden_text["encode"]) lines += Json{{"text", c["text"]}}.dump() + "\n";
  const Output encoded = ponder({"tokenize", "--model", golden("tiny-b")}, lines);
  ASSERT_EQ(encoded.status, 0) << encoded.err;
  const auto ids = encoded.lines();
  ASSERT_EQ(ids.size(), golden_text["encode"].size());
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i]["ids"], golden_text["encode"][i]["ids"]);

  const Output decoded = ponder({"tokenize", "--model", golden("tiny-b"), "--decode"}, encoded.out);
  ASSERT_EQ(decoded.status, 0) << decoded.err;
  const auto texts = decoded.lines();
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(texts[i]["text"], golden_text["encode"][i]["decoded"]);
}

TEST(TokenizeVerb, PlainReadsControlTokensAsText) {
  const std::string line = R"({"text": "<|im_end|>"})";
  const auto special = ponder({"tokenize", "--model", golden("tiny-a")}, line).json()["ids"];
  const auto plain = ponder({"tokenize", "--model", golden("tiny-a"), "--plain"}, line).json()["ids"];
  EXPECT_EQ(special.size(), 1U);
  EXPECT_GT(plain.size(), 1U);
}

TEST(TokenizeVerb, RendersTheTemplate) {
  const Json request = {{"messages", {{{"role", "user"}, {"content", " hi "}}}},
                        {"add_generation_prompt", true}};
  const Output run = ponder({"tokenize", "--model", golden("tiny-a"), "--render"}, request.dump());
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.json()["text"], "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n");
}

TEST(TokenizeVerb, WrongLinesAreNamed) {
  expect_error(ponder({"tokenize", "--model", golden("tiny-a")}, "{\"txt\": 1}"), 1, "line 1");
  expect_error(ponder({"tokenize", "--model", golden("tiny-a")}, "\n\n[1]"), 1, "line 3");
  expect_error(ponder({"tokenize", "--model", golden("tiny-a"), "--decode"}, "{\"ids\": [1, -2]}"), 1,
               "entry 1");
  expect_error(ponder({"tokenize", "--model", golden("tiny-a"), "--render"}, "{\"ids\": []}"), 1, "messages");
}

// Largest difference over the RMS of the golden row.
double relative(const Json& got, const Json& want) {
  double worst = 0;
  double square = 0;
  EXPECT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    worst = std::max(worst, std::abs(got[i].get<double>() - want[i].get<double>()));
    square += want[i].get<double>() * want[i].get<double>();
  }
  return worst / std::sqrt(square / static_cast<double>(want.size()) + 1e-30);
}

std::string comma_list(const Json& ids) {
  std::string out;
  for (const Json& id : ids) out += (out.empty() ? "" : ",") + id.dump();
  return out;
}

TEST(LogitsVerb, MatchesTheGoldenLayers) {
  for (const char* checkpoint : {"tiny-a", "tiny-b", "tiny-c", "tiny-d"}) {
    SCOPED_TRACE(checkpoint);
    const Json want = read_cases(checkpoint, "cases-layers.json");
    const Output run =
        ponder({"logits", "--model", golden(checkpoint), "--ids", comma_list(want["ids"]), "--hidden"});
    ASSERT_EQ(run.status, 0) << run.err;
    const Json got = run.json();
    EXPECT_LT(relative(got["logits"], want["last_logits"]), 1e-3);
    ASSERT_EQ(got["layers"].size(), want["layers"].size());
    for (std::size_t i = 0; i < want["layers"].size(); ++i) {
      ASSERT_EQ(got["layers"][i].size(), want["ids"].size());
      for (std::size_t r = 0; r < want["ids"].size(); ++r) {
        EXPECT_LT(relative(got["layers"][i][r], want["layers"][i][r]), 1e-3) << "layer " << i << " row " << r;
      }
    }
    for (std::size_t r = 0; r < want["ids"].size(); ++r) {
      EXPECT_LT(relative(got["final_norm"][r], want["final_norm"][r]), 1e-3);
    }
  }
}

TEST(LogitsVerb, PiecesOfAnySizeGiveTheSameText) {
  const std::string ids = comma_list(read_cases("tiny-b", "cases-layers.json")["ids"]);
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"logits", "--model", golden("tiny-b"), "--ids",
                                          ids,      "--all",   "--hidden"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Output output = ponder(arguments);
    EXPECT_EQ(output.status, 0) << output.err;
    return output.out;
  };
  const std::string whole = run({});
  const auto rows = Json::parse(whole)["logits"].size();
  ASSERT_GT(rows, 8U);
  EXPECT_EQ(run({"--chunks", "3,1,4," + std::to_string(rows - 8)}), whole);
  EXPECT_EQ(run({"--step-rows", "1"}), whole);
  EXPECT_EQ(run({"--threads", "3"}), whole);
}

TEST(LogitsVerb, IdsOutsideTheVocabularyAreNamed) {
  expect_error(ponder({"logits", "--model", golden("tiny-a"), "--ids", "1,576"}), 1, "576");
  expect_error(ponder({"logits", "--model", golden("tiny-a"), "--ids=-1"}), 1, "-1");
}

// Bytes that a safetensors file keeps for tensors, read from its header.
std::pair<std::size_t, std::uint64_t> tensors_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::uint64_t length = 0;
  in.read(reinterpret_cast<char*>(&length), sizeof length);
  std::string header(length, ' ');
  in.read(header.data(), static_cast<std::streamsize>(length));
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  const Json parsed = Json::parse(header);
  for (const auto& [name, tensor] : parsed.items()) {
    if (name == "__metadata__") continue;
    ++count;
    bytes += tensor["data_offsets"][1].get<std::uint64_t>() - tensor["data_offsets"][0].get<std::uint64_t>();
  }
  return {count, bytes};
}

TEST(InfoVerb, WhatTheDrafterKeepsStandsBesideWhatWasPublished_Complaint03) {
  for (const char* checkpoint : {"tiny-a", "tiny-b", "tiny-c"}) {
    const Output run = ponder({"info", "--model", golden(checkpoint), "--json"});
    ASSERT_EQ(run.status, 0) << run.err;
    const Json info = run.json(), &c = info["config"], &drafter = info["decision"]["drafters"][0];
    const auto [tensors, bytes] = tensors_of(drafter["path"]);
    EXPECT_EQ(drafter["tensors"], tensors);
    EXPECT_EQ(drafter["bytes"], bytes);
    EXPECT_GE(tensors, 1 + 3 * c["layer_types"].size()) << "a mask and three matrices a layer";
    std::int64_t delta = 0;
    for (const Json& type : c["layer_types"]) delta += type.get<std::string>() == "linear_attention" ? 1 : 0;
    const std::int64_t key = c["linear_key_head_dim"], value = c["linear_value_head_dim"];
    const std::int64_t key_heads = c["linear_num_key_heads"], value_heads = c["linear_num_value_heads"];
    const Json& memory = info["decision"]["draft_memory"];
    EXPECT_EQ(memory["type"], "q8");
    EXPECT_EQ(memory["window"], 512);
    EXPECT_EQ(memory["sinks"], 64);
    // A scale of four bytes for every 32 numbers of a key head, and of the values that go with it.
    const auto q8 = [](std::int64_t n) { return n + 4 * ((n + 31) / 32); };
    EXPECT_EQ(memory["bytes_per_token"],
              delta * key_heads * (q8(key) + q8(value * (value_heads / key_heads))));
    EXPECT_EQ(memory["published_bytes_per_token"], delta * value_heads * value * 2 * 2);
  }
  const Output text = ponder({"info", golden("tiny-a")});
  EXPECT_THAT(text.out, HasSubstr("tensors"));
  EXPECT_THAT(text.out, HasSubstr("as published"));
}

TEST(InfoVerb, SaysWhatTheFolderHolds) {
  const Output run = ponder({"info", "--model", golden("tiny-c"), "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const Json info = run.json();
  EXPECT_EQ(info["kind"], "hybrid");
  EXPECT_EQ(info["config"]["hidden_size"], 256);
  EXPECT_EQ(info["config"]["layer_types"], Json({"linear_attention", "full_attention"}));
  EXPECT_EQ(info["weights"]["types"]["f8_e4m3"]["tensors"], 7);
  EXPECT_EQ(info["weights"]["files"].size(), 2U);
  EXPECT_EQ(info["decision"]["temperature"], 1.6);
  EXPECT_EQ(info["decision"]["drafters"].size(), 1U);
  // 4 heads of 64, keys and values, float32
  EXPECT_EQ(info["memory"]["kv_bytes_per_token"], 4 * 64 * 2 * 4);

  EXPECT_EQ(info["memory"]["kv_bytes_per_token_by_type"],
            Json({{"f32", 4 * 64 * 2 * 4}, {"bf16", 4 * 64 * 2 * 2}, {"q8", 4 * (64 + 4 * 2) * 2}}));

  const Output text = ponder({"info", golden("tiny-d")});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, testing::Not(HasSubstr("draft")));
  EXPECT_THAT(text.out, HasSubstr("tied"));
  EXPECT_THAT(text.out, HasSubstr("2 delta, 2 attention"));
}

}  // namespace
}  // namespace ponder::test
