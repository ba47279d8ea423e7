// Paged keys and values, and softmax attention over them. A page of the reference holds floats:
// keys [kPageRows][heads][key_dim], then values [kPageRows][heads][value_dim].
#include <algorithm>
#include <limits>

#include "ops/reference.hpp"

namespace ponder::ops {
namespace {

std::int64_t key_row_floats(const KvShape& shape) {
  return static_cast<std::int64_t>(shape.heads) * shape.key_dim;
}
std::int64_t value_row_floats(const KvShape& shape) {
  return static_cast<std::int64_t>(shape.heads) * shape.value_dim;
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
      seen.push_back({cached_keys(shape, segment.cache, p), cached_values(shape, segment.cache, p)});
    }
  };
  add(0, sinks);
  add(begin, end);
  for (int i = 0; i < segment.own_rows; ++i) seen.push_back({segment.own_keys[i], segment.own_values[i]});
}

// out[value_dim] = sum_j softmax(scale * q . k_j) v_j; zeros when nothing is seen.
void attend_head(const float* q, const std::vector<Seen>& seen, const KvShape& shape, int kv_head,
                 float scale, float* out) {
  const std::int64_t key_at = static_cast<std::int64_t>(kv_head) * shape.key_dim;
  const std::int64_t value_at = static_cast<std::int64_t>(kv_head) * shape.value_dim;
  std::vector<double> scores(seen.size());
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < seen.size(); ++j) {
    const float* k = seen[j].keys + key_at;
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

void ReferenceBackend::kv_append(const KvShape& shape, KvPages cache, std::int64_t position, int first_row,
                                 int rows, ConstRows keys, ConstRows values) {
  for (int r = 0; r < rows; ++r) {
    std::copy_n(keys[first_row + r], key_row_floats(shape), cached_keys(shape, cache, position + r));
    std::copy_n(values[first_row + r], value_row_floats(shape), cached_values(shape, cache, position + r));
  }
}

void ReferenceBackend::attention(const AttentionArgs& args) {
  const int rep = args.heads / std::max(1, args.kv.heads);
  std::vector<Seen> seen;
  for (const AttentionSegment& segment : args.segments) {
    for (int r = 0; r < segment.rows; ++r) {
      collect(segment, r, args.kv, seen);
      const std::int64_t row = segment.first_row + r;
      for (int h = 0; h < args.heads; ++h) {
        attend_head(args.q[row] + h * args.q_head_stride, seen, args.kv, h / rep, args.scale,
                    args.out[row] + static_cast<std::int64_t>(h) * args.kv.value_dim);
      }
    }
  }
}

}  // namespace ponder::ops
