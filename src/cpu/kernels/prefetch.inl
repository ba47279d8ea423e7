// Asks for memory `ahead` bytes behind p. A weight row is a short stream: without this the hardware's
// prefetcher starts anew in every tile. Addresses behind the matrix do no harm.
PONDER_INLINE void prefetch(const void* p, int64_t ahead) {
  __builtin_prefetch(
      reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(p) + static_cast<uintptr_t>(ahead)));
}
