// Operations on rows by themselves: norms, gates, rotation.
#include "ops/reference.hpp"

namespace ponder::ops {
namespace {

double inverse_rms(const float* x, int dim, float eps) {
  double sum = 0;
  for (int i = 0; i < dim; ++i) sum += static_cast<double>(x[i]) * x[i];
  return 1.0 / std::sqrt(sum / dim + static_cast<double>(eps));
}

}  // namespace

std::unique_ptr<Backend> make_reference_backend(ActivationType activations) {
  return std::make_unique<ReferenceBackend>(activations);
}

std::string ReferenceBackend::describe() const {
  std::string line = "reference: scalar, double sums, one thread by design";
  if (activations_ == ActivationType::bf16) line += ", bf16 inputs to products";
  if (activations_ == ActivationType::native) line += ", inputs to products rounded to suit the weights";
  return line;
}

void ReferenceBackend::rms_norm(ConstRows x, Rows y, int rows, Groups groups, const float* weight,
                                float eps) {
  for (int r = 0; r < rows; ++r) {
    for (int g = 0; g < groups.count; ++g) {
      const float* in = x[r] + g * groups.stride;
      float* out = y[r] + g * groups.stride;
      const double factor = inverse_rms(in, groups.dim, eps);
      for (int i = 0; i < groups.dim; ++i) out[i] = static_cast<float>(in[i] * factor * weight[i]);
    }
  }
}

void ReferenceBackend::gated_rms_norm(ConstRows x, ConstRows z, Rows y, int rows, Groups groups,
                                      const float* weight, float eps) {
  for (int r = 0; r < rows; ++r) {
    for (int g = 0; g < groups.count; ++g) {
      const float* in = x[r] + g * groups.stride;
      const float* gate = z[r] + g * groups.stride;
      float* out = y[r] + g * groups.stride;
      const double factor = inverse_rms(in, groups.dim, eps);
      for (int i = 0; i < groups.dim; ++i) {
        out[i] = static_cast<float>(in[i] * factor * weight[i] * silu(gate[i]));
      }
    }
  }
}

void ReferenceBackend::silu_mul(Rows gate, ConstRows up, int rows, int cols) {
  for (int r = 0; r < rows; ++r) {
    for (int i = 0; i < cols; ++i) gate[r][i] = static_cast<float>(silu(gate[r][i]) * up[r][i]);
  }
}

void ReferenceBackend::sigmoid_mul(Rows x, ConstRows gate, int rows, Groups gate_groups) {
  const int dim = gate_groups.dim;
  for (int r = 0; r < rows; ++r) {
    for (int g = 0; g < gate_groups.count; ++g) {
      float* out = x[r] + static_cast<std::int64_t>(g) * dim;
      const float* by = gate[r] + g * gate_groups.stride;
      for (int i = 0; i < dim; ++i) out[i] = static_cast<float>(out[i] * sigmoid(by[i]));
    }
  }
}

void ReferenceBackend::rotary_table(std::span<const std::int64_t> positions, int dim, double theta, Rows cos,
                                    Rows sin) {
  for (std::size_t r = 0; r < positions.size(); ++r) {
    const auto row = static_cast<std::int64_t>(r);
    for (int j = 0; j < (dim + 1) / 2; ++j) {
      const double angle = static_cast<double>(positions[r]) * std::pow(theta, -2.0 * j / dim);
      cos[row][j] = static_cast<float>(std::cos(angle));
      sin[row][j] = static_cast<float>(std::sin(angle));
    }
  }
}

void ReferenceBackend::rotary(Rows x, int rows, Groups groups, int half, ConstRows cos, ConstRows sin) {
  for (int r = 0; r < rows; ++r) {
    for (int g = 0; g < groups.count; ++g) {
      float* v = x[r] + g * groups.stride;
      for (int j = 0; j < half; ++j) {
        const double a = v[j], b = v[j + half], c = cos[r][j], s = sin[r][j];
        v[j] = static_cast<float>(a * c - b * s);
        v[j + half] = static_cast<float>(b * c + a * s);
      }
    }
  }
}

}  // namespace ponder::ops
