// The inputs of a product in the forms kernels read: rounded, packed, made once and shared by all matrices
// that read the same rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/aligned_buffer.hpp"
#include "base/function_ref.hpp"
#include "base/thread_pool.hpp"
#include "cpu/kernels/table.hpp"
#include "cpu/weight.hpp"
#include "ops/backend.hpp"

namespace ponder::cpu {

enum class InputForm : std::uint8_t {
  rows,          // floats as the caller has them
  rounded_rows,  // rounded to bf16, kept as floats
  padded_rows,   // floats, zeros up to a whole group of 32; also rounded to bf16 where that is asked for
  bf16,          // bfloat16, zeros up to a multiple of 32
  int8,          // tiles of kInputTile rows, see quantize_input, for q4 and q4tp
  int8_wide,     // the same for q8
};
inline constexpr int kInputForms = 6;

// Place of a quantised type in the tables of PackedKernels.
inline int packed_kind(ops::WeightType type) {
  return static_cast<int>(type) - static_cast<int>(ops::WeightType::q8);
}

struct LinearInput {
  InputForm form = InputForm::rows;
  const void* data = nullptr;
  std::int64_t stride = 0;  // elements between rows; int8: bytes between tiles
  std::int64_t cols = 0;
  int rows = 0;
  bool panel = false;  // float forms: cut into column blocks for linear_panel
  int block_rows = 0;  // rows that a task multiplies at a time
  int blocks() const { return (rows + block_rows - 1) / block_rows; }
  int rows_of(int block) const {
    return rows - block * block_rows < block_rows ? rows - block * block_rows : block_rows;
  }
};

// Makes forms of one set of rows on demand; its memory is kept for the next set.
class LinearInputs {
 public:
  LinearInputs(const KernelTable& kernels, const PackedKernels& packed, const Bf16Kernels* bf16,
               ops::ActivationType activations)
      : kernels_(kernels), packed_(packed), bf16_(bf16), activations_(activations) {}

  InputForm form_for(const CpuWeight& weight) const;
  // New rows: forms of earlier ones are forgotten. `x` must outlive the uses of get().
  void start(ops::ConstRows x, int rows, std::int64_t cols);
  // The rows in this form, made in parallel at the first call. Never call it from inside a region.
  const LinearInput& get(InputForm form, ThreadPool& pool);

 private:
  void make_floats(LinearInput& input, bool round, ThreadPool& pool);
  void make_padded(LinearInput& input, bool round, ThreadPool& pool);
  void make_bf16(LinearInput& input, ThreadPool& pool);
  void make_int8(LinearInput& input, ops::WeightType type, ThreadPool& pool);
  std::byte* memory(InputForm form, std::size_t bytes);

  const KernelTable& kernels_;
  const PackedKernels& packed_;
  const Bf16Kernels* bf16_;
  ops::ActivationType activations_;
  ops::ConstRows x_;
  int rows_ = 0;
  std::int64_t cols_ = 0;
  std::array<LinearInput, kInputForms> inputs_;
  std::array<bool, kInputForms> made_{};
  std::array<AlignedBuffer<std::byte>, kInputForms> buffers_;
};

}  // namespace ponder::cpu
