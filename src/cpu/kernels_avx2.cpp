#include "cpu/kernels/vec_avx2.hpp"

#define PONDER_KERNEL_TABLE kAvx2Kernels
#include "cpu/kernels/kernels.inl"
