// Shapes and memory of what a sequence remembers, shared by every backend.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ponder::ops {

// ---- paged keys and values -------------------------------------------------------------------------------

// Positions in one page. Page p of a sequence holds positions [p * kPageRows, (p + 1) * kPageRows).
inline constexpr int kPageRows = 64;

// How keys and values are held; every backend rounds them the same way (ops/kv_rounding.hpp).
enum class KvType : std::uint8_t {
  f32,   // as they come
  bf16,  // to the nearest bfloat16, ties to even
  q8,    // whole numbers up to 127 times a float32 scale for each kKvGroup components of a head's vector
};
inline constexpr int kKvGroup = 32;

// Keys and values of one attention layer.
struct KvShape {
  int heads = 0;      // key/value heads
  int key_dim = 0;    // size of a key head
  int value_dim = 0;  // size of a value head
  KvType type = KvType::f32;
  int value_heads =
      0;  // 0: as many as key heads; else a multiple of them, each value head of its own size value_dim

  int values() const { return value_heads == 0 ? heads : value_heads; }
  int values_per_key() const { return heads == 0 ? 1 : values() / heads; }
  // Floats of the values that go with one key head.
  int value_width() const { return value_dim * values_per_key(); }
};

// One layer's view of a sequence's pages: page p of this layer starts at pages[p] + offset and holds
// Backend::kv_page_bytes(shape) bytes in a layout private to the backend. Pages start zeroed; a page plus the
// offset is a multiple of 64.
struct KvPages {
  std::byte* const* pages = nullptr;
  std::size_t offset = 0;
};

// Batch rows [first_row, first_row + rows) go to positions [position, position + rows) of a cache.
struct KvAppend {
  KvPages cache;
  std::int64_t position = 0;
  int first_row = 0;
  int rows = 0;
};

// ---- gated delta rule ------------------------------------------------------------------------------------

// Rows between two updates of the recurrent matrix. Chunks start at absolute positions that are multiples of
// this, so a prompt gives the same bits however it is cut into calls.
inline constexpr int kDeltaChunk = 32;

struct DeltaShape {
  int key_heads = 0;    // Hk
  int value_heads = 0;  // Hv, a multiple of Hk; key head h serves value heads [h * rep, (h + 1) * rep)
  int key_dim = 0;      // Dk
  int value_dim = 0;    // Dv

  int rep() const { return value_heads / key_heads; }
};

// The recurrence S_t = e_t S_{t-1} + k_t (x) u_t is kept in chunk form: S as it was at the last chunk border,
// and for the rows since then their normalised keys, corrected values u and decays. A row is then exact from
// S and the rows before it in its chunk, S moves once a chunk, and a state is a plain block of floats:
//
//   matrix [Hv][Dk][Dv]            S at the last chunk border
//   keys   [Hk][Dk][chunk]         l2-normalised keys of the chunk's rows
//   values [Hv][chunk][Dv]         corrected values u = beta (v - S^T k)
//   decay  [Hv][chunk]             product of e over the rows after row s, up to the newest row
//   fade   [Hv][chunk]             e of each row
//   carry  [Hv]                    product of e over all rows of the chunk: what S has faded to
//
// All zeros is the state of an empty sequence; the number of rows in the open chunk is position %
// kDeltaChunk. Slots of keys, values, decay and fade from that row on, and carry in an empty chunk, are never
// read.
//
// Rows may be run on probation (DeltaSegment::hold): they then take their slots, but S stays where it is, and
// those past the chunk's border take slots of a second set of kHeldSlots, until
// Backend::delta_settle says how many of them count. That set follows the first, laid out alike:
//   keys [Hk][Dk][held], values [Hv][held][Dv], decay [Hv][held], fade [Hv][held], carry [Hv]
inline constexpr int kHeldRows = 8;
inline constexpr int kHeldSlots = 16;  // a whole vector of any instruction set

struct DeltaStateLayout {
  // One set of slots; offsets in floats.
  struct Slots {
    Slots() = default;
    Slots(const DeltaShape& s, std::size_t at, int slot_count)
        : keys(at),
          values(keys + size(s.key_heads, slot_count, s.key_dim)),
          decay(values + size(s.value_heads, slot_count, s.value_dim)),
          fade(decay + size(s.value_heads, slot_count, 1)),
          carry(fade + size(s.value_heads, slot_count, 1)),
          end(carry + static_cast<std::size_t>(s.value_heads)),
          count(slot_count) {}
    std::size_t keys = 0, values = 0, decay = 0, fade = 0, carry = 0, end = 0;
    int count = 0;

   private:
    static std::size_t size(int heads, int slot_count, int dim) {
      return static_cast<std::size_t>(heads) * static_cast<std::size_t>(slot_count) *
             static_cast<std::size_t>(dim);
    }
  };

  explicit DeltaStateLayout(const DeltaShape& s)
      : open(s, static_cast<std::size_t>(s.value_heads) * s.key_dim * s.value_dim, kDeltaChunk),
        held(s, open.end, kHeldSlots),
        floats(held.end) {}

  std::size_t matrix = 0;
  Slots open, held;
  std::size_t floats;  // size of the whole block
};

}  // namespace ponder::ops
