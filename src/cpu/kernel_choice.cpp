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

const PackedKernels& packed_kernels_for(InstructionSet set, [[maybe_unused]] const CpuFeatures& features) {
  switch (set) {
    case InstructionSet::scalar:
      return kScalarPacked;
#if defined(__x86_64__)
    case InstructionSet::avx2:
      return features.avx_vnni ? kAvx2VnniPacked : kAvx2Packed;
    case InstructionSet::avx512:
      return features.avx512_vnni ? kAvx512VnniPacked : kAvx512Packed;
#elif defined(__aarch64__)
    case InstructionSet::neon:
      return features.neon_dotprod ? kNeonDotPacked : kNeonPacked;
#endif
    default:
      fail(ErrorKind::unsupported, "instruction set {}: this build has no kernels for it", name(set));
  }
}

const Bf16Kernels* bf16_kernels_for([[maybe_unused]] InstructionSet set,
                                    [[maybe_unused]] const CpuFeatures& features) {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512 && features.fast_bf16_dot) return &kAvx512Bf16;
#endif
  return nullptr;
}

}  // namespace ponder::cpu
