#include "cpu/kernels/codes_avx2.hpp"

#define PONDER_PACKED_TABLE kAvx2VnniPacked
#include "cpu/kernels/packed_kernels.inl"
