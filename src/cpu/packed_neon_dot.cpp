#include "cpu/kernels/codes_neon.hpp"

#define PONDER_PACKED_TABLE kNeonDotPacked
#include "cpu/kernels/packed_kernels.inl"
