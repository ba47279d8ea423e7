// Asks for memory `ahead` bytes behind p. A weight row is a short stream: without this the hardware's
// prefetcher starts anew in every tile. Addresses behind the matrix do no harm.
PONDER_INLINE void prefetch(const void* p, int64_t ahead) {
  __builtin_prefetch(
      reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(p) + static_cast<uintptr_t>(ahead)));
}

// Lines of [p, p + bytes), `ahead` bytes further on.
PONDER_INLINE void prefetch_block(const void* p, int bytes, int64_t ahead) {
  PONDER_UNROLL for (int at = 0; at < bytes; at += 64) prefetch(p, ahead + at);
}
