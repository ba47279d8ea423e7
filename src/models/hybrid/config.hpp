// Configuration of the hybrid (gated delta net + gated attention) backbone, read from a checkpoint's
// config.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/state.hpp"

namespace ponder::hybrid {

enum class LayerKind : std::uint8_t { delta, attention };

// Field names follow config.json; defaults are those of the public 9B model. Sizes are validated: positive,
// heads divide, rotary_dim <= head_dim.
struct Config {
  int vocab_size = 248320;
  int hidden_size = 4096;
  int intermediate_size = 12288;
  int num_hidden_layers = 32;
  std::vector<LayerKind> layers;  // [num_hidden_layers]

  int num_attention_heads = 16;
  int num_key_value_heads = 4;
  int head_dim = 256;
  bool attention_bias = false;

  int linear_num_key_heads = 16;
  int linear_num_value_heads = 32;
  int linear_key_head_dim = 128;
  int linear_value_head_dim = 128;
  int linear_conv_kernel_dim = 4;

  double rms_norm_eps = 1e-6;
  double rope_theta = 1e7;
  double partial_rotary_factor = 0.25;
  bool tie_word_embeddings = false;
  bool tie_given = false;  // config.json says so itself, either way

  // How keys and values are held: the loader's choice, not the file's.
  ops::KvType kv_type = ops::KvType::f32;

  int rotary_dim() const { return static_cast<int>(head_dim * partial_rotary_factor); }
  int key_dim() const { return linear_num_key_heads * linear_key_head_dim; }
  int value_dim() const { return linear_num_value_heads * linear_value_head_dim; }
  int conv_dim() const { return 2 * key_dim() + value_dim(); }
  ops::DeltaShape delta_shape() const {
    return {linear_num_key_heads, linear_num_value_heads, linear_key_head_dim, linear_value_head_dim};
  }
  ops::KvShape kv_shape() const { return {num_key_value_heads, head_dim, head_dim, kv_type}; }

  // Text of a config.json, flat or with the text model under "text_config". `where` names the file in
  // messages. Throws Error(bad_file) naming the field, Error(unsupported) for a kind this model is not.
  static Config parse(std::string_view json, const std::string& where = "config.json");
};

}  // namespace ponder::hybrid
