#include "cpu/kernels/vec_avx512.hpp"

#define PONDER_KERNEL_TABLE kAvx512Kernels
#include "cpu/kernels/kernels.inl"
