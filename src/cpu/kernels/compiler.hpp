// What the compilers call the few things kernels ask of them.
#pragma once

#define PONDER_INLINE __attribute__((always_inline)) inline

// Before a loop over the registers of a tile: a loop left standing would put the tile's array into memory.
#if defined(__clang__)
#define PONDER_UNROLL _Pragma("clang loop unroll(full)")
#define PONDER_UNROLL16 _Pragma("clang loop unroll(full)")
#else
#define PONDER_UNROLL _Pragma("GCC unroll 8")
#define PONDER_UNROLL16 _Pragma("GCC unroll 16")
#endif

namespace ponder::cpu {
namespace {

// The same pointer, of which the compiler knows nothing: it addresses what lies around it by constant
// distances, where it would otherwise keep a register for each.
template <class T>
PONDER_INLINE T* as_base(T* p) {
  asm("" : "+r"(p));
  return p;
}

}  // namespace
}  // namespace ponder::cpu
