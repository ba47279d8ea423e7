#include "cpu/kernels/codes_avx512.hpp"

#define PONDER_PACKED_TABLE kAvx512VnniPacked
#include "cpu/kernels/packed_kernels.inl"
