#include "cpu/kernel_choice.hpp"

#include "base/error.hpp"

namespace ponder::cpu {

const KernelTable& kernels_for(InstructionSet set) {
  switch (set) {
    case InstructionSet::scalar:
      return kScalarKernels;
#if defined(__x86_64__)
    case InstructionSet::avx2:
      return kAvx2Kernels;
    case InstructionSet::avx512:
      return kAvx512Kernels;
#elif defined(__aarch64__)
    case InstructionSet::neon:
      return kNeonKernels;
#endif
    default:
      fail(ErrorKind::unsupported, "instruction set {}: this build has no kernels for it", name(set));
  }
}

}  // namespace ponder::cpu
