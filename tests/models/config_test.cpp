#include "models/hybrid/config.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace ponder::hybrid {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

std::string refusal(const std::string& text) {
  try {
    Config::parse(text, "x/config.json");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("x/config.json"));
    return error.what();
  }
  return "accepted";
}

TEST(Config, GoldenCases) {
  std::ifstream in(std::string(PONDER_TEST_DATA) + "/hybrid/cases-config.json");
  const Json cases = Json::parse(in);
  ASSERT_GT(cases.size(), 8U);
  for (const Json& c : cases) {
    SCOPED_TRACE(c["config"].dump());
    if (c.contains("error")) {
      EXPECT_NE(refusal(c["config"].dump()), "accepted");
      continue;
    }
    const Config got = Config::parse(c["config"].dump());
    const Json& want = c["parsed"];
    EXPECT_EQ(got.vocab_size, want["vocab_size"]);
    EXPECT_EQ(got.hidden_size, want["hidden_size"]);
    EXPECT_EQ(got.num_hidden_layers, want["num_hidden_layers"]);
    EXPECT_EQ(got.rope_theta, want["rope_theta"]);
    EXPECT_EQ(got.partial_rotary_factor, want["partial_rotary_factor"]);
    EXPECT_EQ(got.rotary_dim(), want["rotary_dim"]);
    EXPECT_EQ(got.key_dim(), want["key_dim"]);
    EXPECT_EQ(got.value_dim(), want["value_dim"]);
    EXPECT_EQ(got.conv_dim(), want["conv_dim"]);
    EXPECT_EQ(got.tie_word_embeddings, want["tie_word_embeddings"]);
    EXPECT_EQ(got.num_attention_heads, want["num_attention_heads"]);
    EXPECT_EQ(got.num_key_value_heads, want["num_key_value_heads"]);
    EXPECT_EQ(got.head_dim, want["head_dim"]);
    EXPECT_EQ(got.linear_conv_kernel_dim, want["linear_conv_kernel_dim"]);
    ASSERT_EQ(got.layers.size(), want["layer_types"].size());
    for (std::size_t i = 0; i < got.layers.size(); ++i) {
      EXPECT_EQ(got.layers[i] == LayerKind::attention, want["layer_types"][i] == "full_attention") << i;
    }
  }
}

// The public sizes, written as the family's multimodal configurations write them.
TEST(Config, PublicSizesLoadFromTheirConfigurationAlone) {
  struct Size {
    const char* name;
    int hidden, layers, heads, kv_heads, key_heads, value_heads, ffn;
    bool tied;
  };
  const Size sizes[] = {{"0.8B", 1024, 24, 8, 2, 16, 16, 3584, true},
                        {"4B", 2560, 32, 16, 4, 16, 32, 9216, true},
                        {"9B", 4096, 32, 16, 4, 16, 32, 12288, false},
                        {"27B", 5120, 64, 24, 4, 16, 48, 17408, false}};
  for (const Size& s : sizes) {
    SCOPED_TRACE(s.name);
    const Json text = {{"hidden_size", s.hidden},
                       {"num_hidden_layers", s.layers},
                       {"num_attention_heads", s.heads},
                       {"num_key_value_heads", s.kv_heads},
                       {"head_dim", 256},
                       {"linear_num_key_heads", s.key_heads},
                       {"linear_num_value_heads", s.value_heads},
                       {"linear_key_head_dim", 128},
                       {"linear_value_head_dim", 128},
                       {"linear_conv_kernel_dim", 4},
                       {"intermediate_size", s.ffn},
                       {"vocab_size", 248320},
                       {"hidden_act", "silu"},
                       {"attn_output_gate", true},
                       {"attention_bias", false},
                       {"full_attention_interval", 4},
                       {"rms_norm_eps", 1e-6},
                       {"mtp_num_hidden_layers", 1},
                       {"rope_parameters",
                        {{"rope_type", "default"},
                         {"rope_theta", 10000000},
                         {"partial_rotary_factor", 0.25},
                         {"mrope_interleaved", true},
                         {"mrope_section", {11, 11, 10}}}}};
    const Json root = {{"architectures", {"Qwen3_5ForConditionalGeneration"}},
                       {"tie_word_embeddings", s.tied},
                       {"text_config", text},
                       {"vision_config", {{"depth", 27}, {"hidden_size", 1152}}}};
    const Config c = Config::parse(root.dump());
    EXPECT_EQ(c.hidden_size, s.hidden);
    EXPECT_EQ(c.num_hidden_layers, s.layers);
    EXPECT_EQ(c.intermediate_size, s.ffn);
    EXPECT_EQ(c.linear_num_value_heads, s.value_heads);
    EXPECT_EQ(c.tie_word_embeddings, s.tied) << "given beside text_config";
    EXPECT_EQ(c.rotary_dim(), 64);
    EXPECT_EQ(std::count(c.layers.begin(), c.layers.end(), LayerKind::attention), s.layers / 4);
    EXPECT_EQ(c.layers[3], LayerKind::attention);
  }
}

TEST(Config, RefusalsNameTheFieldAndTheValue) {
  EXPECT_THAT(refusal(R"({"hidden_size": 0})"), HasSubstr("hidden_size is 0"));
  EXPECT_THAT(refusal(R"({"hidden_size": -5})"), HasSubstr("hidden_size is -5"));
  EXPECT_THAT(refusal(R"({"hidden_size": 12.5})"), HasSubstr("12.5"));
  EXPECT_THAT(refusal(R"({"hidden_size": "big"})"), HasSubstr("hidden_size"));
  EXPECT_THAT(refusal(R"({"vocab_size": 99999999999999999999})"), HasSubstr("vocab_size"));
  EXPECT_THAT(refusal(R"({"num_hidden_layers": 5000000})"), HasSubstr("num_hidden_layers"));
  EXPECT_THAT(refusal(R"({"rms_norm_eps": 0})"), HasSubstr("rms_norm_eps"));
  EXPECT_THAT(refusal(R"({"rope_theta": -1})"), HasSubstr("rope_theta"));
  EXPECT_THAT(refusal(R"({"partial_rotary_factor": 1.5})"), HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(refusal(R"({"rope_scaling": {"type": "linear", "factor": 2}})"), HasSubstr("\"linear\""));
  EXPECT_THAT(refusal(R"({"rope_parameters": {"rope_type": "yarn"}})"), HasSubstr("\"yarn\""));
  EXPECT_THAT(refusal(R"({"rope_parameters": 3})"), HasSubstr("rope_parameters"));
  EXPECT_THAT(refusal(R"({"hidden_act": "gelu"})"), HasSubstr("gelu"));
  EXPECT_THAT(refusal(R"({"attention_bias": 1})"), HasSubstr("attention_bias"));
  EXPECT_THAT(refusal(R"({"num_attention_heads": 6, "num_key_value_heads": 4})"),
              HasSubstr("num_attention_heads 6"));
  EXPECT_THAT(refusal(R"({"linear_num_value_heads": 5, "linear_num_key_heads": 2})"), HasSubstr("5"));
  EXPECT_THAT(refusal(R"({"layer_types": ["full_attention"]})"), HasSubstr("layer_types has 1"));
  EXPECT_THAT(refusal(R"({"num_hidden_layers": 1, "layer_types": ["sliding_attention"]})"),
              HasSubstr("sliding_attention"));
  EXPECT_THAT(refusal(R"({"linear_conv_kernel_dim": 100000})"), HasSubstr("linear_conv_kernel_dim"));
  EXPECT_THAT(refusal(R"({"head_dim": 67108864, "num_attention_heads": 64})"), HasSubstr("heads times"));
  EXPECT_THAT(refusal("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("{"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(std::string(100000, '[')), HasSubstr("100 levels"));
  EXPECT_THAT(refusal(std::string("{}\0", 3)), HasSubstr("NUL"));
}

}  // namespace
}  // namespace ponder::hybrid
