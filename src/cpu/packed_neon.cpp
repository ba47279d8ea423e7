#include "cpu/kernels/codes_neon.hpp"

#define PONDER_PACKED_TABLE kNeonPacked
#include "cpu/kernels/packed_kernels.inl"
