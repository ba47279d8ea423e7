// Where keys and values lie in a page, and how they get there.
//
// A page holds a part for each key head, with the values of all value heads that go with it side by side
// (value_dim below stands for all of them):
//   keys         [key_dim][kPageRows], so that scores of a page are products with lanes along positions;
//                in q8 [key_dim / 64][kPageRows / 16][64][16]: a new key touches a quarter of the lines
//   key scales   [key_dim / 32][kPageRows], q8 only
//   values       [value_dim / 64][kPageRows][64], panels that fit the first-level cache; the last may be
//                narrower
//   value scales [value_dim / 32][kPageRows], q8 only
// of float, bfloat16 or int8, scales of float.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/kernels/table.hpp"
#include "ops/backend.hpp"

namespace ponder::cpu {

inline constexpr int kValuePanel = 64;
inline constexpr int kKeyBlock = 64;  // key components expanded to floats at a time
inline constexpr int kKeyLanes = 16;  // positions whose codes of a component lie together in q8

struct KvPageLayout {
  explicit KvPageLayout(const ops::KvShape& shape);
  std::int64_t key_scales, values, value_scales, head_bytes;  // offsets in a head's part, and its size
  std::int64_t row_bytes;                                     // of kPageRows codes
};

// One head's part of a page.
class KvHeadPage {
 public:
  KvHeadPage(const ops::KvShape& shape, const KvPageLayout& at, std::byte* page, int head)
      : shape_(&shape), at_(&at), data_(page + head * at.head_bytes) {}

  // Key components [first, first + count) of all positions, [count][kPageRows]: floats in place or expanded
  // into `space` (kKeyBlock * kPageRows). `first` is a multiple of kKeyBlock, count at most that.
  const float* keys(const KernelTable& kernels, int first, int count, float* space) const;
  // Positions [begin, end) of the values' panel from component `first` on, `width` wide; the result is where
  // position 0 lies or would lie, `width` floats a position.
  const float* values(const KernelTable& kernels, int first, int width, int begin, int end,
                      float* space) const;

  // Where the codes of what keys() and values() read begin, to have them fetched.
  const void* key_codes(int first) const { return data_ + code_bytes(first); }
  const void* value_codes(int first) const { return data_ + at_->values + code_bytes(first); }

  // Takes a vector of each at one position.
  void put_key(int position, const float* key) const;
  void put_value(int position, const float* value) const;

 private:
  template <class Code>
  Code* codes(std::int64_t offset) const {
    return reinterpret_cast<Code*>(data_ + offset);
  }
  // Of whole rows of kPageRows codes.
  std::int64_t code_bytes(int rows) const { return std::int64_t{rows} * at_->row_bytes; }
  // Where a position's code of component c of a q8 key lies; those of the next components of its block follow
  // kKeyLanes apart.
  std::int64_t q8_key_at(int position, int c) const {
    const int block = c / kKeyBlock * kKeyBlock;
    const int left = shape_->key_dim - block;
    const int width = left < kKeyBlock ? left : kKeyBlock;
    return std::int64_t{block} * ops::kPageRows + std::int64_t{position / kKeyLanes} * width * kKeyLanes +
           std::int64_t{c - block} * kKeyLanes + position % kKeyLanes;
  }
  // Where component c of the values at a position lies.
  std::int64_t value_at(int position, int c) const {
    const int panel = c / kValuePanel * kValuePanel;
    const int left = shape_->value_width() - panel;
    const int width = left < kValuePanel ? left : kValuePanel;
    return std::int64_t{panel} * ops::kPageRows + std::int64_t{position} * width + (c - panel);
  }

  const ops::KvShape* shape_;
  const KvPageLayout* at_;
  std::byte* data_;
};

}  // namespace ponder::cpu
