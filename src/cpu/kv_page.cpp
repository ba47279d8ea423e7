#include "cpu/kv_page.hpp"

#include "base/float_types.hpp"
#include "ops/kv_rounding.hpp"

namespace ponder::cpu {

using namespace ops;  // this room implements ops' vocabulary

namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

std::int64_t bytes_of_code(KvType type) {
  return type == KvType::f32 ? 4 : type == KvType::bf16 ? 2 : 1;
}

std::int64_t scale_bytes(KvType type, int dim) {
  if (type != KvType::q8) return 0;
  return std::int64_t{(dim + kKvGroup - 1) / kKvGroup} * kPageRows * 4;
}

}  // namespace

KvPageLayout::KvPageLayout(const KvShape& shape) {
  row_bytes = bytes_of_code(shape.type) * kPageRows;
  key_scales = aligned(row_bytes * shape.key_dim);
  values = key_scales + scale_bytes(shape.type, shape.key_dim);
  value_scales = values + aligned(row_bytes * shape.value_width());
  head_bytes = value_scales + scale_bytes(shape.type, shape.value_width());
}

const float* KvHeadPage::keys(const KernelTable& kernels, int first, int count, float* space) const {
  const std::int64_t from = std::int64_t{first} * kPageRows;
  switch (shape_->type) {
    case KvType::f32:
      return codes<float>(0) + from;
    case KvType::bf16:
      kernels.embed[static_cast<int>(WeightType::bf16)](codes<std::uint16_t>(0) + from,
                                                        std::int64_t{count} * kPageRows, 1.0F, space);
      return space;
    case KvType::q8:
      break;
  }
  for (int i = 0; i < count; i += kKvGroup) {
    for (int position = 0; position < kPageRows; position += kKeyLanes) {
      Q8Tile tile{};
      tile.codes = codes<std::int8_t>(0) + q8_key_at(position, first + i);
      tile.code_stride = kKeyLanes;
      tile.column_scale =
          codes<float>(at_->key_scales) + std::int64_t{first + i} / kKvGroup * kPageRows + position;
      tile.out = space + std::int64_t{i} * kPageRows + position;
      tile.stride = kPageRows;
      tile.rows = count - i < kKvGroup ? count - i : kKvGroup;
      tile.cols = kKeyLanes;
      kernels.expand_q8(tile);
    }
  }
  return space;
}

const float* KvHeadPage::values(const KernelTable& kernels, int first, int width, int begin, int end,
                                float* space) const {
  const std::int64_t from = std::int64_t{first} * kPageRows;
  const std::int64_t part = std::int64_t{begin} * width, floats = std::int64_t{end - begin} * width;
  switch (shape_->type) {
    case KvType::f32:
      return codes<float>(at_->values) + from;
    case KvType::bf16:
      kernels.embed[static_cast<int>(WeightType::bf16)](codes<std::uint16_t>(at_->values) + from + part,
                                                        floats, 1.0F, space + part);
      return space;
    case KvType::q8:
      break;
  }
  for (int i = 0; i < width; i += kKvGroup) {
    Q8Tile tile{};
    tile.codes = codes<std::int8_t>(at_->values) + from + part + i;
    tile.row_scale = codes<float>(at_->value_scales) + std::int64_t{first + i} / kKvGroup * kPageRows + begin;
    tile.out = space + part + i;
    tile.code_stride = tile.stride = width;
    tile.rows = end - begin;
    tile.cols = width - i < kKvGroup ? width - i : kKvGroup;
    kernels.expand_q8(tile);
  }
  return space;
}

void KvHeadPage::put_key(int position, const float* key) const {
  switch (shape_->type) {
    case KvType::f32:
      for (std::int64_t i = 0; i < shape_->key_dim; ++i) codes<float>(0)[i * kPageRows + position] = key[i];
      return;
    case KvType::bf16:
      for (std::int64_t i = 0; i < shape_->key_dim; ++i) {
        codes<std::uint16_t>(0)[i * kPageRows + position] = float_to_bf16(key[i]);
      }
      return;
    case KvType::q8:
      break;
  }
  float* scales = codes<float>(at_->key_scales) + position;
  for (int g = 0; g < shape_->key_dim; g += kKvGroup, scales += kPageRows) {
    const int end = shape_->key_dim - g < kKvGroup ? shape_->key_dim : g + kKvGroup;
    *scales = q8_scale(key + g, end - g);
    std::int8_t group[kKvGroup];
    q8_codes(key + g, end - g, *scales, group);
    std::int8_t* to = codes<std::int8_t>(0) + q8_key_at(position, g);
    for (int i = 0; i < end - g; ++i) to[std::ptrdiff_t{i} * kKeyLanes] = group[i];
  }
}

void KvHeadPage::put_value(int position, const float* value) const {
  float* scales = codes<float>(at_->value_scales) + position;
  const int width = shape_->value_width();
  for (int c = 0; c < width; c += kKvGroup, scales += kPageRows) {  // a panel holds whole groups
    const int count = width - c < kKvGroup ? width - c : kKvGroup;
    const std::int64_t at = value_at(position, c);
    switch (shape_->type) {
      case KvType::f32:
        for (int i = 0; i < count; ++i) codes<float>(at_->values)[at + i] = value[c + i];
        break;
      case KvType::bf16:
        for (int i = 0; i < count; ++i) {
          codes<std::uint16_t>(at_->values)[at + i] = float_to_bf16(value[c + i]);
        }
        break;
      case KvType::q8:
        *scales = q8_scale(value + c, count);
        q8_codes(value + c, count, *scales, codes<std::int8_t>(at_->values) + at);
        break;
    }
  }
}

}  // namespace ponder::cpu
