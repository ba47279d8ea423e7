// All kernels for the vector type of the including file, which has defined PONDER_KERNEL_TABLE. Everything
// but the table has internal linkage.
#include "cpu/kernels/table.hpp"

namespace ponder::cpu {
namespace {

// Each uses what stands before it.
// clang-format off
#include "cpu/kernels/prefetch.inl"
#include "cpu/kernels/codes.inl"
#include "cpu/kernels/gemm.inl"
#include "cpu/kernels/linear.inl"
#include "cpu/kernels/math.inl"
#include "cpu/kernels/rows.inl"
#include "cpu/kernels/delta.inl"
// clang-format on

}  // namespace

const KernelTable PONDER_KERNEL_TABLE = {
    2 * kDotInputs,
    {linear<F32Codes>, linear<Bf16Codes>, linear<F16Codes>, linear<E4m3Codes>},
    {linear_panel<F32Codes>, linear_panel<Bf16Codes>, linear_panel<F16Codes>, linear_panel<E4m3Codes>},
    {embed<F32Codes>, embed<Bf16Codes>, embed<F16Codes>, embed<E4m3Codes>},
    round_bf16_row,
    gemm,
    softmax,
    rms_norm,
    gated_rms_norm,
    l2_norm,
    silu_mul,
    sigmoid_mul,
    rotate,
    scale_row,
    combine,
    conv_silu,
    delta_gates,
    delta_factors,
    lower_product,
    expand_q8,
};

}  // namespace ponder::cpu
