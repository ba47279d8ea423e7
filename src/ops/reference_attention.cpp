// Paged keys and values, and softmax attention over them. A page of the reference holds floats,
// rounded as the cache's type says:
// keys [kPageRows][heads][key_dim], then values [kPageRows][heads][value_dim].
#include <algorithm>
#include <limits>

#include "base/float_types.hpp"
#include "ops/kv_rounding.hpp"
#include "ops/reference.hpp"

namespace ponder::ops {
namespace {

std::int64_t key_row_floats(const KvShape& shape) {
  return static_cast<std::int64_t>(shape.heads) * shape.key_dim;
}
std::int64_t value_row_floats(const KvShape& shape) {
  return static_cast<std::int64_t>(shape.values()) * shape.value_dim;
}

float* cached_keys(const KvShape& shape, KvPages cache, std::int64_t position) {
  auto* page = reinterpret_cast<float*>(cache.pages[position / kPageRows] + cache.offset);
  return page + position % kPageRows * key_row_floats(shape);
}

float* cached_values(const KvShape& shape, KvPages cache, std::int64_t position) {
  auto* page = reinterpret_cast<float*>(cache.pages[position / kPageRows] + cache.offset);
  return page + kPageRows * key_row_floats(shape) + position % kPageRows * value_row_floats(shape);
}

// One row a query may look at: its key and value vectors of all heads.
struct Seen {
  const float* keys;
  const float* values;
  bool own;
};

// Sinks that lie inside the window, or past the rows that are visible at all, are no second or future rows.
void collect(const AttentionSegment& segment, int row, const KvShape& shape, std::vector<Seen>& seen) {
  const std::int64_t end =
      std::max<std::int64_t>(0, segment.visible_end + static_cast<std::int64_t>(row) * segment.visible_step);
  const std::int64_t begin = segment.window > 0 ? std::max<std::int64_t>(0, end - segment.window) : 0;
  const std::int64_t sinks = std::min(segment.sinks, begin);
  seen.clear();
  auto add = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t p = from; p < to; ++p) {
      seen.push_back({cached_keys(shape, segment.cache, p), cached_values(shape, segment.cache, p), false});
    }
  };
  add(0, sinks);
  add(begin, end);
  for (int i = 0; i < segment.own_rows; ++i)
    seen.push_back({segment.own_keys[i], segment.own_values[i], true});
}

// out[value_dim] = sum_j softmax(scale * q . k_j) v_j; zeros when nothing is seen.
void attend_head(const float* q, const std::vector<Seen>& seen, const KvShape& shape, int head, int heads,
                 float scale, float* out) {
  const std::int64_t cached_at = static_cast<std::int64_t>(head / (heads / shape.heads)) * shape.key_dim;
  const std::int64_t own_at =
      shape.values_per_key() > 1 ? static_cast<std::int64_t>(head) * shape.key_dim : cached_at;
  const std::int64_t value_at = static_cast<std::int64_t>(head / (heads / shape.values())) * shape.value_dim;
  std::vector<double> scores(seen.size());
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < seen.size(); ++j) {
    const float* k = seen[j].keys + (seen[j].own ? own_at : cached_at);
    double sum = 0;
    for (int i = 0; i < shape.key_dim; ++i) sum += static_cast<double>(q[i]) * k[i];
    scores[j] = sum * static_cast<double>(scale);
    largest = std::max(largest, scores[j]);
  }
  double total = 0;
  for (double& s : scores) {
    s = std::exp(s - largest);
    total += s;
  }
  for (int i = 0; i < shape.value_dim; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < seen.size(); ++j) sum += scores[j] * seen[j].values[value_at + i];
    out[i] = seen.empty() ? 0.0F : static_cast<float>(sum / total);
  }
}

}  // namespace

std::size_t ReferenceBackend::kv_page_bytes(const KvShape& shape) const {
  return static_cast<std::size_t>(key_row_floats(shape) + value_row_floats(shape)) * kPageRows *
         sizeof(float);
}

namespace {

// What a cache of this type gives back for a head's vector.
void keep_rounded(KvType type, const float* x, int dim, float* out) {
  for (int g = 0; g < dim; g += kKvGroup) {
    const int end = std::min(dim, g + kKvGroup);
    const float scale = type == KvType::q8 ? q8_scale(x + g, end - g) : 1.0F;
    for (int i = g; i < end; ++i) {
      if (type == KvType::f32) out[i] = x[i];
      if (type == KvType::bf16) out[i] = bf16_to_float(float_to_bf16(x[i]));
      if (type == KvType::q8) out[i] = static_cast<float>(q8_code(x[i], scale)) * scale;
    }
  }
}

}  // namespace

void ReferenceBackend::kv_append(const KvShape& shape, std::span<const KvAppend> segments, ConstRows keys,
                                 ConstRows values) {
  for (const KvAppend& to : segments) {
    for (int r = 0; r < to.rows; ++r) {
      for (std::int64_t h = 0; h < shape.heads; ++h) {
        const std::int64_t key = h * shape.key_dim, value = h * shape.value_width();
        keep_rounded(shape.type, keys[to.first_row + r] + key, shape.key_dim,
                     cached_keys(shape, to.cache, to.position + r) + key);
        keep_rounded(shape.type, values[to.first_row + r] + value, shape.value_width(),
                     cached_values(shape, to.cache, to.position + r) + value);
      }
    }
  }
}

void ReferenceBackend::attention(const AttentionArgs& args) {
  std::vector<Seen> seen;
  for (const AttentionSegment& segment : args.segments) {
    for (int r = 0; r < segment.rows; ++r) {
      collect(segment, r, args.kv, seen);
      const std::int64_t row = segment.first_row + r;
      for (int h = 0; h < args.heads; ++h) {
        attend_head(args.q[row] + h * args.q_head_stride, seen, args.kv, h, args.heads, args.scale,
                    args.out[row] + static_cast<std::int64_t>(h) * args.kv.value_dim);
      }
    }
  }
}

}  // namespace ponder::ops
