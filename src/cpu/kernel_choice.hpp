// The kernels of an instruction set.
#pragma once

#include "cpu/cpu_features.hpp"
#include "cpu/kernels/table.hpp"

namespace ponder::cpu {

// Throws Error(unsupported) for a set this build has no kernels for.
const KernelTable& kernels_for(InstructionSet set);
// With the dot product instructions that `features` has on top of the set. The same bits with and without.
const PackedKernels& packed_kernels_for(InstructionSet set, const CpuFeatures& features);
// Null where products of bf16 pairs are not there.
const Bf16Kernels* bf16_kernels_for(InstructionSet set, const CpuFeatures& features);

}  // namespace ponder::cpu
