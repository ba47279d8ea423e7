#include "models/hybrid/weights.hpp"

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/float_types.hpp"

namespace ponder::hybrid {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::string_view kScaleSuffix = "_scale";

// The rule of the fp8 export format for which matrices are stored as codes.
bool quantizable(std::int64_t out, std::int64_t in) {
  return in % 256 == 0 && out >= 1024 && out % 16 == 0;
}

// Name inside the text model; empty for the parts that are skipped (vision tower, multi-token head).
std::string model_name(std::string_view name) {
  constexpr std::string_view nested = "model.language_model.";
  if (name.starts_with("model.visual.") || name.starts_with("mtp.")) return {};
  if (name.starts_with(nested)) return "model." + std::string(name.substr(nested.size()));
  return std::string(name);
}

bool has_shape(const formats::TensorView& t, const Shape& shape) {
  return t.shape == shape;
}

// Looks tensors up by their model name, checks them, and remembers which were used.
class Source {
 public:
  explicit Source(const formats::Checkpoint& checkpoint) {
    for (const formats::TensorView& tensor : checkpoint) {
      std::string name = model_name(tensor.name);
      if (name.empty()) continue;
      const auto [at, fresh] = tensors_.emplace(std::move(name), &tensor);
      if (!fresh) {
        fail(ErrorKind::bad_file, "{}: tensor {} and tensor {} are the same part of the model", tensor.file,
             printable(at->second->name), printable(tensor.name));
      }
    }
    where_ = checkpoint.files().empty() ? "checkpoint" : checkpoint.files().front().path;
    if (checkpoint.files().size() > 1)
      where_ += fmt::format(" and {} more files", checkpoint.files().size() - 1);
  }

  bool contains(const std::string& name) const { return tensors_.contains(name); }

  const formats::TensorView& take(const std::string& name, const Shape& shape) {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) {
      fail(ErrorKind::bad_file, "{}: tensor {} is missing, expected with shape {}", where_, name,
           formats::shape_text(shape));
    }
    const formats::TensorView& tensor = *it->second;
    if (!has_shape(tensor, shape)) {
      fail(ErrorKind::bad_file, "{}: tensor {} has shape {}, the configuration asks for {}", tensor.file,
           printable(tensor.name), formats::shape_text(tensor.shape), formats::shape_text(shape));
    }
    if (!is_plain_float(tensor.dtype)) {
      fail(ErrorKind::unsupported, "{}: tensor {} holds {}, expected floating-point values", tensor.file,
           printable(tensor.name), dtype_name(tensor.dtype));
    }
    used_.insert(name);
    return tensor;
  }

  // Row scales of an e4m3 matrix: "<name>_scale", one float a row.
  std::vector<float> scales(const std::string& name, std::int64_t rows) {
    const std::string scale = name + std::string(kScaleSuffix);
    const auto it = tensors_.find(scale);
    const bool column = it != tensors_.end() && has_shape(*it->second, {rows, 1});
    std::vector<float> values = formats::float_values(take(scale, column ? Shape{rows, 1} : Shape{rows}));
    for (std::size_t r = 0; r < values.size(); ++r) {
      if (!std::isfinite(values[r])) {
        fail(ErrorKind::bad_file, "{}: tensor {} has scale {} in row {}, expected a finite number",
             it->second->file, scale, values[r], r);
      }
    }
    return values;
  }

  std::vector<float> vector(const std::string& name, std::int64_t size, float add = 0) {
    std::vector<float> values = formats::float_values(take(name, {size}));
    for (float& v : values) v += add;
    return values;
  }

  void check_all_used() const {
    for (const auto& [name, tensor] : tensors_) {
      if (used_.contains(name)) continue;
      fail(ErrorKind::bad_file,
           "{}: tensor {} with shape {} is not part of this model (expected: nothing by that name)",
           tensor->file, printable(tensor->name), formats::shape_text(tensor->shape));
    }
  }

 private:
  std::map<std::string, const formats::TensorView*, std::less<>> tensors_;
  std::set<std::string, std::less<>> used_;
  std::string where_;
};

// What a matrix will be held as. `linear` is false for the embedding, which the fp8 rule leaves alone.
ops::WeightType target_type(const formats::TensorView& tensor, TypeChoice choice, bool linear) {
  const ops::WeightType natural = ops::natural_weight_type(tensor.dtype);
  if (!choice || *choice == natural) return natural;
  if (*choice == ops::WeightType::f8_e4m3 && !(linear && quantizable(tensor.shape[0], tensor.shape[1]))) {
    return natural;
  }
  return *choice;
}

// The names, shapes and order of every matrix, told to a visitor; one place for loading and for estimating.
class Layout {
 public:
  Layout(const Config& config, Source& source) : c_(config), source_(source) {}

  // visit(name, rows, cols, is_linear)
  template <class Visit>
  void each_matrix(Visit&& visit) const {
    visit(embedding(), c_.vocab_size, c_.hidden_size, false);
    if (has_head()) visit(head(), c_.vocab_size, c_.hidden_size, true);
    for (std::size_t i = 0; i < c_.layers.size(); ++i) {
      for (const auto& m : layer_matrices(i)) visit(m.name, m.rows, m.cols, true);
    }
  }

  struct Matrix {
    std::string name;
    std::int64_t rows, cols;
  };

  std::vector<Matrix> layer_matrices(std::size_t i) const {
    const std::string p = prefix(i);
    const std::int64_t hidden = c_.hidden_size;
    const std::int64_t kv = static_cast<std::int64_t>(c_.num_key_value_heads) * c_.head_dim;
    const std::int64_t q = static_cast<std::int64_t>(c_.num_attention_heads) * c_.head_dim;
    std::vector<Matrix> out;
    if (c_.layers[i] == LayerKind::delta) {
      const std::string a = p + "linear_attn.";
      out = {{a + "in_proj_qkv.weight", c_.conv_dim(), hidden},
             {a + "in_proj_z.weight", c_.value_dim(), hidden},
             {a + "in_proj_a.weight", c_.linear_num_value_heads, hidden},
             {a + "in_proj_b.weight", c_.linear_num_value_heads, hidden},
             {a + "out_proj.weight", hidden, c_.value_dim()}};
    } else {
      const std::string a = p + "self_attn.";
      out = {{a + "q_proj.weight", 2 * q, hidden},
             {a + "k_proj.weight", kv, hidden},
             {a + "v_proj.weight", kv, hidden},
             {a + "o_proj.weight", hidden, q}};
    }
    out.push_back({p + "mlp.gate_proj.weight", c_.intermediate_size, hidden});
    out.push_back({p + "mlp.up_proj.weight", c_.intermediate_size, hidden});
    out.push_back({p + "mlp.down_proj.weight", hidden, c_.intermediate_size});
    return out;
  }

  static std::string prefix(std::size_t layer) { return fmt::format("model.layers.{}.", layer); }
  static std::string embedding() { return "model.embed_tokens.weight"; }
  static std::string head() { return "lm_head.weight"; }

  // Without a head of its own the model reads out through its embedding, unless config.json says otherwise.
  bool has_head() const {
    const bool untied = c_.tie_given && !c_.tie_word_embeddings;
    return source_.contains(head()) || untied;
  }

 private:
  const Config& c_;
  Source& source_;
};

class Loader {
 public:
  Loader(const Config& config, const formats::Checkpoint& checkpoint, ops::Backend& backend, TypeChoice type)
      : c_(config),
        source_(checkpoint),
        layout_(config, source_),
        backend_(backend),
        type_(type),
        owner_(std::make_shared<formats::Checkpoint>(checkpoint)) {}

  Weights load() {
    Weights w;
    w.embedding = matrix(Layout::embedding(), c_.vocab_size, c_.hidden_size, false);
    w.head = layout_.has_head() ? matrix(Layout::head(), c_.vocab_size, c_.hidden_size, true) : w.embedding;
    w.final_norm = source_.vector("model.norm.weight", c_.hidden_size, 1);
    for (std::size_t i = 0; i < c_.layers.size(); ++i) w.layers.push_back(layer(i));
    source_.check_all_used();
    w.owned_bytes = owned_bytes_;
    // The embedding table itself is not read whole; when tied it is, as the head.
    w.bytes_per_row = matrix_bytes_ - (w.head == w.embedding ? 0 : w.embedding->bytes());
    return w;
  }

 private:
  ops::WeightPtr matrix(const std::string& name, std::int64_t rows, std::int64_t cols, bool linear) {
    const formats::TensorView& tensor = source_.take(name, {rows, cols});
    std::vector<float> scales;
    if (tensor.dtype == DType::f8_e4m3) scales = source_.scales(name, rows);
    ops::WeightData data;
    data.dtype = tensor.dtype;
    data.rows = rows;
    data.cols = cols;
    data.data = tensor.bytes.data();
    data.row_scale = scales.empty() ? nullptr : scales.data();
    data.owner = owner_;
    ops::WeightPtr weight = backend_.make_weight(data, target_type(tensor, type_, linear));
    owned_bytes_ += weight->owned_bytes();
    matrix_bytes_ += weight->bytes();
    return weight;
  }

  Linear linear(const std::string& name, std::int64_t rows, std::int64_t cols, bool bias = false) {
    Linear out;
    out.weight = matrix(name + ".weight", rows, cols, true);
    if (bias) out.bias = source_.vector(name + ".bias", rows);
    return out;
  }

  LayerWeights layer(std::size_t i) {
    const std::string p = Layout::prefix(i);
    LayerWeights w;
    w.kind = c_.layers[i];
    w.input_norm = source_.vector(p + "input_layernorm.weight", c_.hidden_size, 1);
    w.post_norm = source_.vector(p + "post_attention_layernorm.weight", c_.hidden_size, 1);
    if (w.kind == LayerKind::delta) {
      w.delta = delta(p + "linear_attn.");
    } else {
      w.attention = attention(p + "self_attn.");
    }
    w.gate = linear(p + "mlp.gate_proj", c_.intermediate_size, c_.hidden_size);
    w.up = linear(p + "mlp.up_proj", c_.intermediate_size, c_.hidden_size);
    w.down = linear(p + "mlp.down_proj", c_.hidden_size, c_.intermediate_size);
    return w;
  }

  DeltaWeights delta(const std::string& p) {
    const int heads = c_.linear_num_value_heads;
    DeltaWeights w;
    w.qkv = linear(p + "in_proj_qkv", c_.conv_dim(), c_.hidden_size);
    w.z = linear(p + "in_proj_z", c_.value_dim(), c_.hidden_size);
    w.a = linear(p + "in_proj_a", heads, c_.hidden_size);
    w.b = linear(p + "in_proj_b", heads, c_.hidden_size);
    w.out = linear(p + "out_proj", c_.hidden_size, c_.value_dim());
    w.dt_bias = source_.vector(p + "dt_bias", heads);
    w.rate = source_.vector(p + "A_log", heads);
    for (float& v : w.rate) v = std::exp(v);
    w.norm = source_.vector(p + "norm.weight", c_.linear_value_head_dim);

    const auto channels = static_cast<std::size_t>(c_.conv_dim());
    const auto kernel = static_cast<std::size_t>(c_.linear_conv_kernel_dim);
    const Shape shape{c_.conv_dim(), 1, c_.linear_conv_kernel_dim};
    const std::vector<float> stored = formats::float_values(source_.take(p + "conv1d.weight", shape));
    w.conv.resize(stored.size());
    for (std::size_t ch = 0; ch < channels; ++ch) {
      for (std::size_t j = 0; j < kernel; ++j) w.conv[j * channels + ch] = stored[ch * kernel + j];
    }
    return w;
  }

  AttentionWeights attention(const std::string& p) {
    const std::int64_t q = static_cast<std::int64_t>(c_.num_attention_heads) * c_.head_dim;
    const std::int64_t kv = static_cast<std::int64_t>(c_.num_key_value_heads) * c_.head_dim;
    const bool bias = c_.attention_bias;
    AttentionWeights w;
    w.q = linear(p + "q_proj", 2 * q, c_.hidden_size, bias);
    w.k = linear(p + "k_proj", kv, c_.hidden_size, bias);
    w.v = linear(p + "v_proj", kv, c_.hidden_size, bias);
    w.o = linear(p + "o_proj", c_.hidden_size, q, bias);
    w.q_norm = source_.vector(p + "q_norm.weight", c_.head_dim, 1);
    w.k_norm = source_.vector(p + "k_norm.weight", c_.head_dim, 1);
    return w;
  }

  const Config& c_;
  Source source_;
  Layout layout_;
  ops::Backend& backend_;
  TypeChoice type_;
  std::shared_ptr<const void> owner_;
  std::size_t owned_bytes_ = 0;
  std::size_t matrix_bytes_ = 0;
};

}  // namespace

MemoryNeeds estimate_memory(const Config& config, const formats::Checkpoint& checkpoint, TypeChoice type) {
  Source source(checkpoint);
  MemoryNeeds needs;
  const auto visit = [&](const std::string& name, std::int64_t rows, std::int64_t cols, bool linear) {
    const formats::TensorView& tensor = source.take(name, {rows, cols});
    const ops::WeightType target = target_type(tensor, type, linear);
    const auto elements = static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(cols);
    if (target == ops::natural_weight_type(tensor.dtype)) {
      needs.mapped += tensor.bytes.size();
    } else {
      needs.allocated += elements * static_cast<std::uint64_t>(ops::weight_type_bits(target)) / 8;
    }
  };
  Layout(config, source).each_matrix(visit);
  return needs;
}

Weights load_weights(const Config& config, const formats::Checkpoint& checkpoint, ops::Backend& backend,
                     TypeChoice type) {
  return Loader(config, checkpoint, backend, type).load();
}

}  // namespace ponder::hybrid
