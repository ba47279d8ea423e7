// Matrices as files hold them, for the parts of the op suite that make weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/float_types.hpp"
#include "op_suite_tools.hpp"

namespace ponder::ops::testing {

inline constexpr DType kSources[] = {DType::f32, DType::bf16, DType::f16, DType::f8_e4m3};
inline constexpr WeightType kQuantized[] = {WeightType::q8, WeightType::q4, WeightType::q4tp};
inline constexpr WeightType kAllTypes[] = {WeightType::f32,     WeightType::bf16, WeightType::f16,
                                           WeightType::f8_e4m3, WeightType::q8,   WeightType::q4,
                                           WeightType::q4tp};

// A matrix as a file would hold it: bytes at any address.
struct Stored {
  DType dtype = DType::f32;
  std::int64_t rows = 0, cols = 0;
  std::size_t misalign = 0;
  std::vector<std::byte> bytes;
  std::vector<float> scales;  // f8_e4m3 only

  Stored() = default;
  Stored(Random& rng, DType type, std::int64_t r, std::int64_t c, double scale = 1.0)
      : dtype(type), rows(r), cols(c), misalign(chance(rng, 0.5) ? 0 : rng.below(64)) {
    std::vector<float> values(static_cast<std::size_t>(r * c));
    for (float& v : values) v = static_cast<float>(scale * rng.normal());
    if (type == DType::f8_e4m3) {
      for (float& v : values) v = 100.0F * v / static_cast<float>(scale);
      for (std::int64_t i = 0; i < r; ++i)
        scales.push_back(static_cast<float>(scale * rng.uniform(0.5, 2) / 100));
    }
    assign(values);
  }

  void assign(std::span<const float> values) {
    bytes.assign(misalign + values.size() * dtype_info(dtype).block_bytes, std::byte{0x7F});
    from_floats(dtype, values, std::span(bytes).subspan(misalign));
  }

  // The bytes live in a buffer of their own, which `owner` keeps, as a mapped file is kept.
  WeightData data() const {
    auto kept = std::make_shared<std::vector<std::byte>>(bytes);
    WeightData out;
    out.dtype = dtype;
    out.rows = rows;
    out.cols = cols;
    out.data = kept->data() + misalign;
    out.row_scale = scales.empty() ? nullptr : scales.data();
    out.owner = kept;
    return out;
  }

  WeightPtr make(Backend& b, WeightType type) const { return b.make_weight(data(), type); }
  WeightPtr make(Backend& b) const { return make(b, natural_weight_type(dtype)); }
};

// The rows of a weight as floats, [rows][cols].
inline std::vector<float> decoded(Backend& b, const Weight& weight) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(weight.rows()));
  std::iota(ids.begin(), ids.end(), 0);
  Matrix out(weight.rows(), weight.cols());
  b.embed(weight, ids, out.view());
  return out.dense();
}

// Weights made once for each backend that runs a case.
class WeightCache {
 public:
  WeightCache() = default;
  WeightCache(Stored stored, WeightType type) : stored_(std::move(stored)), type_(type) {}
  // A stored matrix in its own type, rounded to bf16, or quantised.
  static WeightCache random(Random& rng, std::int64_t rows, std::int64_t cols) {
    const DType source = kSources[rng.below(std::size(kSources))];
    WeightType type = natural_weight_type(source);
    if (source == DType::f32 && chance(rng, 0.3)) type = WeightType::bf16;
    if (chance(rng, 0.5)) type = kQuantized[rng.below(std::size(kQuantized))];
    return {Stored(rng, source, rows, cols), type};
  }

  const Stored& stored() const { return stored_; }
  WeightType type() const { return type_; }
  const Weight& of(Backend& b) const {
    WeightPtr& slot = made_[&b];
    if (!slot) slot = stored_.make(b, type_);
    return *slot;
  }

 private:
  Stored stored_;
  WeightType type_ = WeightType::f32;
  mutable std::map<const Backend*, WeightPtr> made_;
};

}  // namespace ponder::ops::testing
