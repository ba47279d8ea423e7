#include "cpu/kernels/codes_scalar.hpp"

#define PONDER_PACKED_TABLE kScalarPacked
#include "cpu/kernels/packed_kernels.inl"
