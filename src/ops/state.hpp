// Shapes and memory of what a sequence remembers, shared by every backend.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ponder::ops {

// ---- paged keys and values -------------------------------------------------------------------------------

// Positions in one page. Page p of a sequence holds positions [p * kPageRows, (p + 1) * kPageRows).
inline constexpr int kPageRows = 64;

// Keys and values of one attention layer.
struct KvShape {
  int heads = 0;      // key/value heads
  int key_dim = 0;    // size of a key head
  int value_dim = 0;  // size of a value head
};

// One layer's view of a sequence's pages: page p of this layer starts at pages[p] + offset and holds
// Backend::kv_page_bytes(shape) bytes in a layout private to the backend. Pages start zeroed; a page plus the
// offset is a multiple of 64.
struct KvPages {
  std::byte* const* pages = nullptr;
  std::size_t offset = 0;
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
//   keys   [Hk][chunk][Dk]         l2-normalised keys of the chunk's rows
//   values [Hv][chunk][Dv]         corrected values u = beta (v - S^T k)
//   decay  [Hv][chunk]             product of e over the rows after row s, up to the newest row
//   carry  [Hv]                    product of e over all rows of the chunk: what S has faded to
//
// All zeros is the state of an empty sequence; the number of rows in the open chunk is position %
// kDeltaChunk. Slots of keys, values and decay from that row on, and carry in an empty chunk, are never read.
struct DeltaStateLayout {
  explicit DeltaStateLayout(const DeltaShape& s)
      : keys(static_cast<std::size_t>(s.value_heads) * s.key_dim * s.value_dim),
        values(keys + static_cast<std::size_t>(s.key_heads) * kDeltaChunk * s.key_dim),
        decay(values + static_cast<std::size_t>(s.value_heads) * kDeltaChunk * s.value_dim),
        carry(decay + static_cast<std::size_t>(s.value_heads) * kDeltaChunk),
        floats(carry + static_cast<std::size_t>(s.value_heads)) {}

  std::size_t matrix = 0, keys, values, decay, carry;  // offsets in floats
  std::size_t floats;                                  // size of the whole block
};

}  // namespace ponder::ops
