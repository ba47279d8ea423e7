// How the codes of each weight type become floats. `factor` is what a finished sum is multiplied by, for
// types whose codes are read off by a power of two.

struct F32Codes {
  using Code = float;
  static constexpr float factor = 1.0F;
  PONDER_INLINE static Vec read(const Code* p) { return load(p); }
};

struct Bf16Codes {
  using Code = uint16_t;
  static constexpr float factor = 1.0F;
  PONDER_INLINE static Vec read(const Code* p) { return load_bf16(p); }
};

struct F16Codes {
  using Code = uint16_t;
  static constexpr float factor = 1.0F;
  PONDER_INLINE static Vec read(const Code* p) { return load_f16(p); }
};

struct E4m3Codes {
  using Code = uint8_t;
  static constexpr float factor = 256.0F;
  PONDER_INLINE static Vec read(const Code* p) { return load_e4m3(p); }
};

// The first n codes, 0 < n < kLanes; zeros behind them.
template <class Codes>
PONDER_INLINE Vec read_first(const typename Codes::Code* p, int n) {
  typename Codes::Code lanes[kLanes] = {};
  __builtin_memcpy(lanes, p, static_cast<size_t>(n) * sizeof(lanes[0]));
  return Codes::read(lanes);
}

// n codes as floats, zeros up to the next whole vector; out holds whole vectors.
template <class Codes>
void expand(const typename Codes::Code* codes, int64_t n, float* out) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, Codes::read(codes + i));
  if (i < n) store(out + i, read_first<Codes>(codes + i, static_cast<int>(n - i)));
}

template <class Codes>
void embed(const void* codes, int64_t n, float scale, float* out) {
  const auto* p = static_cast<const typename Codes::Code*>(codes);
  const Vec factor = splat(Codes::factor), by = splat(scale);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(out + i, Codes::read(p + i) * factor * by);
  if (i < n) {
    const auto left = static_cast<int>(n - i);
    store_first(out + i, left, read_first<Codes>(p + i, left) * factor * by);
  }
}
