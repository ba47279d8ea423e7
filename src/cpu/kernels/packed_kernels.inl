// Kernels of quantised weights for the byte operations of the including file, which has defined
// PONDER_PACKED_TABLE. Everything but the table has internal linkage.
#include "cpu/kernels/table.hpp"

namespace ponder::cpu {
namespace {

// In this order.
// clang-format off
#include "cpu/kernels/prefetch.inl"
#include "cpu/kernels/packed.inl"
// clang-format on

}  // namespace

const PackedKernels PONDER_PACKED_TABLE = {
    {packed_dot<Q8Packed, NoScales>, packed_dot<Q4Packed, HalfScales>, packed_dot<Q4Packed, LadderScales>},
    {packed_float<Q8Packed, NoScales>, packed_float<Q4Packed, HalfScales>,
     packed_float<Q4Packed, LadderScales>},
    {quantize_input<Q8Packed>, quantize_input<Q4Packed>, quantize_input<Q4Packed>},
};

}  // namespace ponder::cpu
