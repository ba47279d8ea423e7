#include "models/hybrid/convert.hpp"

#include <memory>
#include <utility>

#include "models/hybrid/stored_weights.hpp"
#include "ops/packed_layout.hpp"

namespace ponder::hybrid {
namespace {

std::string part_of(const MatrixShape& m) {
  if (m.role == MatrixRole::tied || m.role == MatrixRole::table) return "embedding";
  if (m.name.find(".mlp.") != std::string::npos) return "mlp";
  if (m.name.find(".self_attn.") != std::string::npos) return "attention";
  if (m.name.find(".linear_attn.") != std::string::npos) return "delta";
  return "head";
}

ConvertedTensor as_stored(std::string name, const formats::TensorView& tensor) {
  ConvertedTensor out;
  out.name = std::move(name);
  out.dtype = tensor.dtype;
  out.shape = tensor.shape;
  out.bytes = tensor.bytes.size();
  out.make = [bytes = tensor.bytes] { return ConvertedTensor::Content{bytes, nullptr, {}}; };
  return out;
}

}  // namespace

std::vector<ConvertedTensor> plan_conversion(const Config& config, const formats::Checkpoint& checkpoint,
                                             ops::Backend& backend, ops::WeightType type) {
  if (!ops::is_quantized(type)) {
    fail(ErrorKind::unsupported, "cannot pack a model as {}: expected q8, q4 or q4tp",
         ops::weight_type_name(type));
  }
  load_weights(config, checkpoint, backend, std::nullopt);  // refuses what is not this model
  auto stored = std::make_shared<StoredWeights>(checkpoint);
  std::vector<ConvertedTensor> packed, rest;
  MatrixPlan(config, *stored).each([&](const MatrixShape& m) {
    StoredWeights look(checkpoint);
    const StoredMatrix source = look.take_matrix(m.name, m.rows, m.cols);
    const ops::WeightType target = held_type(source.type(), type, m);
    if (!ops::is_quantized(target)) return;
    stored->take_matrix(m.name, m.rows, m.cols);
    ConvertedTensor out;
    out.name = packed_name(m.name, target);
    out.dtype = DType::u8;
    out.bytes = ops::PackedLayout(target, m.rows, m.cols).bytes();
    out.shape = {static_cast<std::int64_t>(out.bytes)};
    out.part = part_of(m);
    if (source.tensor->dtype == DType::f8_e4m3) stored->scales(m.name, m.rows);  // replaced as well
    out.make = [&backend, stored, m, target] {
      const ops::WeightPtr weight = load_matrix(*stored, m, target, backend, nullptr);
      return ConvertedTensor::Content{weight->packed(), weight, weight->error()};
    };
    packed.push_back(std::move(out));
  });
  stored->each_unused([&](const std::string& name, const formats::TensorView& tensor) {
    rest.push_back(as_stored(name, tensor));
  });
  packed.insert(packed.end(), std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
  return packed;
}

}  // namespace ponder::hybrid
