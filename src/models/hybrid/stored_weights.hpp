// The tensors of a hybrid checkpoint by their place in the model: what loading, estimating and converting
// share.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "formats/checkpoint.hpp"
#include "models/hybrid/config.hpp"
#include "models/hybrid/weights.hpp"
#include "ops/packed_layout.hpp"

namespace ponder::hybrid {

using Shape = std::vector<std::int64_t>;

// A matrix as a checkpoint holds it: plain, or packed as a quantised type.
struct StoredMatrix {
  const formats::TensorView* tensor = nullptr;
  std::optional<ops::WeightType> packed;

  ops::WeightType type() const { return packed ? *packed : ops::natural_weight_type(tensor->dtype); }
};

// Looks tensors up by their name in the text model, checks them, and remembers which were used. Every
// function throws Error(bad_file) that names the tensor, its file and both shapes.
class StoredWeights {
 public:
  explicit StoredWeights(const formats::Checkpoint& checkpoint);

  bool contains(const std::string& name) const { return tensors_.contains(name); }
  bool contains_matrix(const std::string& name) const;
  // A matrix under its own name, or packed under its name and its type's ("X.weight.q4", see
  // WeightData::packed).
  StoredMatrix take_matrix(const std::string& name, std::int64_t rows, std::int64_t cols);
  // `dtype`: the type it must have; by default any floating-point type.
  const formats::TensorView& take(const std::string& name, const Shape& shape,
                                  std::optional<DType> dtype = std::nullopt);
  // Row scales of an e4m3 matrix: "<name>_scale", one float a row.
  std::vector<float> scales(const std::string& name, std::int64_t rows);
  std::vector<float> vector(const std::string& name, std::int64_t size, float add = 0);
  void check_all_used() const;
  // In the order of their names: visit(name, tensor), those not used so far.
  template <class Visit>
  void each_unused(Visit&& visit) const {
    for (const auto& [name, tensor] : tensors_) {
      if (!used_.contains(name)) visit(name, *tensor);
    }
  }

 private:
  std::map<std::string, const formats::TensorView*, std::less<>> tensors_;
  std::set<std::string, std::less<>> used_;
  std::string where_;
};

// The names, shapes and order of every matrix; one place for loading, estimating and converting.
class MatrixPlan {
 public:
  MatrixPlan(const Config& config, const StoredWeights& stored) : c_(config), stored_(stored) {}

  // visit(matrix)
  template <class Visit>
  void each(Visit&& visit) const {
    visit(embedding());
    if (has_head()) visit(head());
    for (std::size_t i = 0; i < c_.layers.size(); ++i) {
      for (const MatrixShape& m : of_layer(i)) visit(m);
    }
  }

  std::vector<MatrixShape> of_layer(std::size_t i) const;
  static std::string prefix(std::size_t layer);
  MatrixShape embedding() const;
  MatrixShape head() const;
  // Without a head of its own the model reads out through its embedding, unless config.json says otherwise.
  bool has_head() const;

 private:
  const Config& c_;
  const StoredWeights& stored_;
};

// Adds what holding a matrix takes.
void add_needs(const StoredMatrix& stored, const MatrixShape& m, TypeChoice type, MemoryNeeds& needs);

// One matrix as `target`, used in place where `owner` (of the checkpoint) allows it.
ops::WeightPtr load_matrix(StoredWeights& stored, const MatrixShape& m, ops::WeightType target,
                           ops::Backend& backend, const std::shared_ptr<const void>& owner);

}  // namespace ponder::hybrid
