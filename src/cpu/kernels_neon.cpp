#include "cpu/kernels/vec_neon.hpp"

#define PONDER_KERNEL_TABLE kNeonKernels
#include "cpu/kernels/kernels.inl"
