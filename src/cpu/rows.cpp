// Operations on rows by themselves: norms, gates, rotation; and the causal convolution.
#include <algorithm>
#include <cmath>

#include "cpu/cpu_backend.hpp"

namespace ponder::cpu {

using namespace ops;  // this room implements ops' vocabulary

void CpuBackend::rms_norm(ConstRows x, Rows y, int rows, Groups groups, const float* weight, float eps) {
  for_rows(rows, std::int64_t{groups.count} * groups.dim, [&](int r) {
    for (int g = 0; g < groups.count; ++g) {
      kernels_.rms_norm(x[r] + g * groups.stride, groups.dim, weight, eps, y[r] + g * groups.stride);
    }
  });
}

void CpuBackend::gated_rms_norm(ConstRows x, ConstRows z, Rows y, int rows, Groups groups,
                                const float* weight, float eps) {
  for_rows(rows, std::int64_t{2} * groups.count * groups.dim, [&](int r) {
    for (int g = 0; g < groups.count; ++g) {
      const std::int64_t at = g * groups.stride;
      kernels_.gated_rms_norm(x[r] + at, z[r] + at, groups.dim, weight, eps, y[r] + at);
    }
  });
}

void CpuBackend::silu_mul(Rows gate, ConstRows up, int rows, int cols) {
  for_rows(rows, std::int64_t{2} * cols, [&](int r) { kernels_.silu_mul(gate[r], up[r], cols); });
}

void CpuBackend::sigmoid_mul(Rows x, ConstRows gate, int rows, Groups gate_groups) {
  const std::int64_t dim = gate_groups.dim;
  for_rows(rows, 2 * dim * gate_groups.count, [&](int r) {
    for (int g = 0; g < gate_groups.count; ++g) {
      kernels_.sigmoid_mul(x[r] + g * dim, gate[r] + g * gate_groups.stride, dim);
    }
  });
}

void CpuBackend::rotary_table(std::span<const std::int64_t> positions, int dim, double theta, Rows cos,
                              Rows sin) {
  constexpr std::int64_t cost = 64;  // a sine costs what some tens of floats cost elsewhere
  for_rows(static_cast<int>(positions.size()), cost * dim, [&](int r) {
    const auto position = static_cast<double>(positions[static_cast<std::size_t>(r)]);
    for (int j = 0; j < (dim + 1) / 2; ++j) {
      const double angle = position * std::pow(theta, -2.0 * j / dim);
      cos[r][j] = static_cast<float>(std::cos(angle));
      sin[r][j] = static_cast<float>(std::sin(angle));
    }
  });
}

void CpuBackend::rotary(Rows x, int rows, Groups groups, int half, ConstRows cos, ConstRows sin) {
  for_rows(rows, std::int64_t{2} * groups.count * half, [&](int r) {
    for (int g = 0; g < groups.count; ++g) kernels_.rotate(x[r] + g * groups.stride, half, cos[r], sin[r]);
  });
}

namespace {

// The newest kernel - 1 inputs of channels [c, c + count), out of the old ones and the rows just seen.
void advance_inputs(const ConvArgs& args, const ConvSegment& segment, std::int64_t c, std::int64_t count) {
  const int past = args.kernel - 1;
  if (segment.hold) {
    for (int r = 0; r < segment.rows; ++r) {
      std::copy_n(args.x[segment.first_row + r] + c, count,
                  segment.state + std::int64_t{past + r} * args.channels + c);
    }
    return;
  }
  for (int i = 0; i < past; ++i) {
    const int from = i + segment.rows;  // counted from the oldest input held
    const float* source = from < past ? segment.state + std::int64_t{from} * args.channels
                                      : args.x[segment.first_row + from - past];
    std::copy_n(source + c, count, segment.state + std::int64_t{i} * args.channels + c);
  }
}

}  // namespace

// Tasks are blocks of rows and channels. Rows see only inputs, so blocks are independent; the state moves on
// with a segment's only block of rows, or when all are through.
void CpuBackend::causal_conv(const ConvArgs& args) {
  constexpr std::int64_t channels_per_task = 1024;  // a row's part fills a memory page
  const std::int64_t past = args.kernel - 1;
  const std::int64_t rows_per_task = std::max<std::int64_t>(64, past);
  const std::int64_t blocks = (args.channels + channels_per_task - 1) / channels_per_task;
  const auto work = [&](const ConvSegment& segment, std::int64_t row, std::int64_t c, std::int64_t count) {
    const std::int64_t first = segment.first_row + row;
    ConvBlock b{};
    b.state = row == 0 ? segment.state + c : args.x[first - past] + c;
    b.state_stride = row == 0 ? args.channels : args.x.stride;
    b.x = args.x[first] + c;
    b.x_stride = args.x.stride;
    b.weight = args.weight + c;
    b.weight_stride = args.channels;
    b.y = args.y[first] + c;
    b.y_stride = args.y.stride;
    b.rows = static_cast<int>(std::min(rows_per_task, segment.rows - row));
    b.kernel = args.kernel;
    b.channels = count;
    kernels_.conv_silu(b);
    if (segment.rows <= rows_per_task) advance_inputs(args, segment, c, count);
  };
  std::int64_t rows = 0;
  conv_tasks_.clear();
  for (const ConvSegment& segment : args.segments) {
    for (std::int64_t row = 0; row < segment.rows; row += rows_per_task)
      conv_tasks_.push_back({&segment, row});
    rows += segment.rows;
  }
  constexpr std::int64_t worth_a_region = 16 * 1024;
  if (rows * args.channels < worth_a_region) {
    for (const auto& [segment, row] : conv_tasks_) work(*segment, row, 0, args.channels);
  } else {
    pool_->run(static_cast<int>(blocks * static_cast<std::int64_t>(conv_tasks_.size())), [&](int task, int) {
      const std::int64_t c = task % blocks * channels_per_task;
      const auto& [segment, row] = conv_tasks_[static_cast<std::size_t>(task / blocks)];
      work(*segment, row, c, std::min(channels_per_task, args.channels - c));
    });
  }
  for (const ConvSegment& segment : args.segments) {
    if (segment.rows > rows_per_task) advance_inputs(args, segment, 0, args.channels);
  }
}

}  // namespace ponder::cpu
