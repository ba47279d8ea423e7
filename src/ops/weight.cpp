#include "ops/weight.hpp"

#include "base/error.hpp"

namespace ponder::ops {

std::string_view weight_type_name(WeightType type) {
  switch (type) {
    case WeightType::f32:
      return "f32";
    case WeightType::bf16:
      return "bf16";
    case WeightType::f16:
      return "f16";
    case WeightType::f8_e4m3:
      return "f8_e4m3";
    case WeightType::q8:
      return "q8";
    case WeightType::q4:
      return "q4";
    case WeightType::q4tp:
      return "q4tp";
  }
  fail(ErrorKind::internal, "weight type {} does not exist", static_cast<int>(type));
}

double weight_type_bits(WeightType type) {
  switch (type) {
    case WeightType::f32:
      return 32;
    case WeightType::bf16:
    case WeightType::f16:
      return 16;
    case WeightType::f8_e4m3:
    case WeightType::q8:
      return 8;
    case WeightType::q4:
      return 4.5;
    case WeightType::q4tp:
      return 4.25;
  }
  fail(ErrorKind::internal, "weight type {} does not exist", static_cast<int>(type));
}

WeightType natural_weight_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return WeightType::f32;
    case DType::bf16:
      return WeightType::bf16;
    case DType::f16:
      return WeightType::f16;
    case DType::f8_e4m3:
      return WeightType::f8_e4m3;
    default:
      fail(ErrorKind::unsupported, "a weight matrix of type {}: expected f32, bf16, f16 or f8_e4m3",
           dtype_name(dtype));
  }
}

}  // namespace ponder::ops
