#include "models/hybrid/stored_weights.hpp"

#include <fmt/format.h>

#include "base/float_types.hpp"

namespace ponder::hybrid {
namespace {

constexpr std::string_view kScaleSuffix = "_scale";
const std::string kHead = "lm_head.weight";

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

}  // namespace

std::string packed_name(const std::string& name, ops::WeightType type) {
  return fmt::format("{}.{}", name, ops::weight_type_name(type));
}

ops::WeightType held_type(ops::WeightType natural, TypeChoice choice, const MatrixShape& m) {
  if (!choice || *choice == natural) return natural;
  if (*choice == ops::WeightType::f8_e4m3) {
    const bool table = m.role == MatrixRole::table || m.role == MatrixRole::tied;
    return !table && quantizable(m.rows, m.cols) ? *choice : natural;
  }
  if (ops::is_quantized(*choice)) {
    return m.role == MatrixRole::table || m.role == MatrixRole::gate ? natural : *choice;
  }
  return *choice;
}

StoredWeights::StoredWeights(const formats::Checkpoint& checkpoint) {
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

bool StoredWeights::contains_matrix(const std::string& name) const {
  return contains(name) || contains(packed_name(name, ops::WeightType::q8)) ||
         contains(packed_name(name, ops::WeightType::q4)) ||
         contains(packed_name(name, ops::WeightType::q4tp));
}

StoredMatrix StoredWeights::take_matrix(const std::string& name, std::int64_t rows, std::int64_t cols) {
  if (!contains(name)) {
    for (const ops::WeightType type : {ops::WeightType::q8, ops::WeightType::q4, ops::WeightType::q4tp}) {
      const std::string packed = packed_name(name, type);
      if (!contains(packed)) continue;
      const auto bytes = static_cast<std::int64_t>(ops::PackedLayout(type, rows, cols).bytes());
      const formats::TensorView& tensor = take(packed, {bytes}, DType::u8);
      return {&tensor, type};
    }
  }
  return {&take(name, {rows, cols}), std::nullopt};
}

const formats::TensorView& StoredWeights::take(const std::string& name, const Shape& shape,
                                               std::optional<DType> dtype) {
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
  if (dtype ? tensor.dtype != *dtype : !is_plain_float(tensor.dtype)) {
    fail(ErrorKind::unsupported, "{}: tensor {} holds {}, expected {}", tensor.file, printable(tensor.name),
         dtype_name(tensor.dtype), dtype ? dtype_name(*dtype) : "floating-point values");
  }
  used_.insert(name);
  return tensor;
}

std::vector<float> StoredWeights::scales(const std::string& name, std::int64_t rows) {
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

std::vector<float> StoredWeights::vector(const std::string& name, std::int64_t size, float add) {
  std::vector<float> values = formats::float_values(take(name, {size}));
  for (float& v : values) v += add;
  return values;
}

void StoredWeights::check_all_used() const {
  for (const auto& [name, tensor] : tensors_) {
    if (used_.contains(name)) continue;
    fail(ErrorKind::bad_file,
         "{}: tensor {} with shape {} is not part of this model (expected: nothing by that name)",
         tensor->file, printable(tensor->name), formats::shape_text(tensor->shape));
  }
}

std::vector<MatrixShape> MatrixPlan::of_layer(std::size_t i) const {
  const std::string p = prefix(i);
  const std::int64_t hidden = c_.hidden_size;
  const std::int64_t kv = static_cast<std::int64_t>(c_.num_key_value_heads) * c_.head_dim;
  const std::int64_t q = static_cast<std::int64_t>(c_.num_attention_heads) * c_.head_dim;
  constexpr MatrixRole linear = MatrixRole::linear, gate = MatrixRole::gate;
  std::vector<MatrixShape> out;
  if (c_.layers[i] == LayerKind::delta) {
    const std::string a = p + "linear_attn.";
    out = {{a + "in_proj_qkv.weight", c_.conv_dim(), hidden, linear},
           {a + "in_proj_z.weight", c_.value_dim(), hidden, linear},
           {a + "in_proj_a.weight", c_.linear_num_value_heads, hidden, gate},
           {a + "in_proj_b.weight", c_.linear_num_value_heads, hidden, gate},
           {a + "out_proj.weight", hidden, c_.value_dim(), linear}};
  } else {
    const std::string a = p + "self_attn.";
    out = {{a + "q_proj.weight", 2 * q, hidden, linear},
           {a + "k_proj.weight", kv, hidden, linear},
           {a + "v_proj.weight", kv, hidden, linear},
           {a + "o_proj.weight", hidden, q, linear}};
  }
  out.push_back({p + "mlp.gate_proj.weight", c_.intermediate_size, hidden, linear});
  out.push_back({p + "mlp.up_proj.weight", c_.intermediate_size, hidden, linear});
  out.push_back({p + "mlp.down_proj.weight", hidden, c_.intermediate_size, linear});
  return out;
}

std::string MatrixPlan::prefix(std::size_t layer) {
  return fmt::format("model.layers.{}.", layer);
}

MatrixShape MatrixPlan::embedding() const {
  return {"model.embed_tokens.weight", c_.vocab_size, c_.hidden_size,
          has_head() ? MatrixRole::table : MatrixRole::tied};
}

MatrixShape MatrixPlan::head() const {
  return {kHead, c_.vocab_size, c_.hidden_size, MatrixRole::linear};
}

bool MatrixPlan::has_head() const {
  const bool untied = c_.tie_given && !c_.tie_word_embeddings;
  return stored_.contains_matrix(kHead) || untied;
}

}  // namespace ponder::hybrid
