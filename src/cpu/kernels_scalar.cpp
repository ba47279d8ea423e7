#include "cpu/kernels/vec_scalar.hpp"

#define PONDER_KERNEL_TABLE kScalarKernels
#include "cpu/kernels/kernels.inl"
