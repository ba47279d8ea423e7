// Which table of kernels belongs to an instruction set.
#pragma once

#include "cpu/cpu_features.hpp"
#include "cpu/kernels/table.hpp"

namespace ponder::cpu {

// Throws Error(unsupported) for a set this build has no kernels for. Does not ask the machine.
const KernelTable& kernels_for(InstructionSet set);

}  // namespace ponder::cpu
