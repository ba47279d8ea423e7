#include "ops/profiled_backend.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace ponder::ops {
namespace {

std::uint64_t count(std::int64_t n) {
  return n < 0 ? 0 : static_cast<std::uint64_t>(n);
}

template <class... Factors>
std::uint64_t product(Factors... factors) {
  return (count(static_cast<std::int64_t>(factors)) * ...);
}

OpRecord simple(Op op, int rows) {
  OpRecord cost;
  cost.op = op;
  cost.rows = count(rows);
  return cost;
}

bool same_kind(const OpRecord& a, const OpRecord& b) {
  return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs && a.type == b.type;
}

std::uint64_t kv_position_bytes(const Backend& backend, const KvShape& shape) {
  return backend.kv_page_bytes(shape) / kPageRows;
}

// Cache positions that row r of a segment sees.
std::int64_t visible(const AttentionSegment& s, std::int64_t row) {
  const std::int64_t end = std::max<std::int64_t>(0, s.visible_end + row * s.visible_step);
  if (s.window == 0 || end <= s.window) return end;
  return s.window + std::min(s.sinks, end - s.window);
}

// Cache positions that any row of a segment sees.
std::int64_t visible_to_any(const AttentionSegment& s) {
  const std::int64_t last = visible(s, s.rows - 1);
  if (s.window == 0) return last;
  const std::int64_t end =
      std::max<std::int64_t>(0, s.visible_end + (s.rows - 1) * std::int64_t{s.visible_step});
  return std::min(end, last + (s.rows - 1) * std::int64_t{s.visible_step});
}

OpRecord attention_cost(const Backend& backend, const AttentionArgs& args) {
  OpRecord cost = simple(Op::attention, 0);
  const std::uint64_t position = kv_position_bytes(backend, args.kv);
  const std::uint64_t pair = product(args.heads, args.kv.key_dim + args.kv.value_dim);
  for (const AttentionSegment& s : args.segments) {
    if (s.rows <= 0) continue;
    cost.rows += count(s.rows);
    cost.kv_bytes += product(visible_to_any(s)) * position;
    for (int r = 0; r < s.rows; ++r) cost.multiply_adds += product(visible(s, r) + s.own_rows) * pair;
  }
  return cost;
}

OpRecord conv_cost(const ConvArgs& args) {
  OpRecord cost = simple(Op::causal_conv, 0);
  cost.weight_bytes = product(args.kernel, args.channels, sizeof(float));
  for (const ConvSegment& s : args.segments) {
    cost.rows += count(s.rows);
    cost.state_bytes += 2 * product(args.kernel - 1, args.channels, sizeof(float));  // read and written
    cost.multiply_adds += product(s.rows, args.kernel, args.channels);
  }
  return cost;
}

// The state's matrix is read once and written where the rows end a chunk; the open chunk's rows are read, new
// ones written.
OpRecord delta_cost(const DeltaArgs& args) {
  OpRecord cost = simple(Op::delta_rule, 0);
  const DeltaShape& d = args.shape;
  const std::uint64_t matrix = product(d.value_heads, d.key_dim, d.value_dim);
  const std::uint64_t row =
      product(d.key_heads, d.key_dim) + product(d.value_heads, d.value_dim) + count(d.value_heads);
  for (const DeltaSegment& s : args.segments) {
    if (s.rows <= 0) continue;
    const std::int64_t end = s.position + s.rows;
    const bool ends_chunk = end / kDeltaChunk > s.position / kDeltaChunk;
    const std::int64_t kept = ends_chunk ? end % kDeltaChunk : s.rows;  // rows that stay in the state
    cost.rows += count(s.rows);
    cost.state_bytes += sizeof(float) * (matrix * (ends_chunk ? 2 : 1) +
                                         (product(s.position % kDeltaChunk) + product(kept)) * row);
    cost.multiply_adds += 3 * product(s.rows) * matrix;
  }
  return cost;
}

}  // namespace

std::string_view op_name(Op op) {
  constexpr std::string_view names[] = {
      "embed",     "rms_norm",    "gated_rms_norm", "linear",       "gated_linear",
      "silu_mul",  "sigmoid_mul", "rotary_table",   "rotary",       "kv_append",
      "attention", "causal_conv", "delta_rule",     "delta_settle", "masked_argmax",
  };
  return names[static_cast<std::size_t>(op)];
}

std::string OpRecord::label() const {
  std::string text(op_name(op));
  if (inputs == 0) return text;
  text += fmt::format(" {} -> {}", inputs, outputs[0]);
  for (std::size_t i = 1; i < outputs.size() && outputs[i] != 0; ++i) text += fmt::format("+{}", outputs[i]);
  return text + fmt::format(" {}", weight_type_name(type));
}

std::vector<OpRecord> ProfiledBackend::take() {
  return std::exchange(records_, {});
}

template <class Run>
void ProfiledBackend::timed(const OpRecord& cost, Run&& run) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  run();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  auto at = std::find_if(records_.begin(), records_.end(),
                         [&](const OpRecord& record) { return same_kind(record, cost); });
  if (at == records_.end()) {
    records_.push_back(cost);
    at = records_.end() - 1;
  } else {
    at->rows += cost.rows;
    at->weight_bytes += cost.weight_bytes;
    at->kv_bytes += cost.kv_bytes;
    at->state_bytes += cost.state_bytes;
    at->multiply_adds += cost.multiply_adds;
  }
  ++at->calls;
  at->seconds += seconds;
}

void ProfiledBackend::embed(const Weight& table, std::span<const std::int32_t> ids, Rows out) {
  if (!recording_) return inner_->embed(table, ids, out);
  OpRecord cost = simple(Op::embed, static_cast<int>(ids.size()));
  cost.type = table.type();
  cost.weight_bytes = table.rows() == 0 ? 0 : table.bytes() / count(table.rows()) * ids.size();
  timed(cost, [&] { inner_->embed(table, ids, out); });
}

void ProfiledBackend::rms_norm(ConstRows x, Rows y, int rows, Groups groups, const float* weight, float eps) {
  if (!recording_) return inner_->rms_norm(x, y, rows, groups, weight, eps);
  OpRecord cost = simple(Op::rms_norm, rows);
  cost.weight_bytes = product(groups.dim, sizeof(float));
  timed(cost, [&] { inner_->rms_norm(x, y, rows, groups, weight, eps); });
}

void ProfiledBackend::gated_rms_norm(ConstRows x, ConstRows z, Rows y, int rows, Groups groups,
                                     const float* weight, float eps) {
  if (!recording_) return inner_->gated_rms_norm(x, z, y, rows, groups, weight, eps);
  OpRecord cost = simple(Op::gated_rms_norm, rows);
  cost.weight_bytes = product(groups.dim, sizeof(float));
  timed(cost, [&] { inner_->gated_rms_norm(x, z, y, rows, groups, weight, eps); });
}

void ProfiledBackend::linear(std::span<const LinearOut> outs, ConstRows x, int rows) {
  if (!recording_ || outs.empty()) return inner_->linear(outs, x, rows);
  OpRecord cost = simple(Op::linear, rows);
  cost.inputs = outs.front().weight->cols();
  cost.type = outs.front().weight->type();
  for (std::size_t i = 0; i < outs.size(); ++i) {
    const Weight& w = *outs[i].weight;
    cost.outputs[std::min(i, OpRecord::kMostMatrices - 1)] += w.rows();
    cost.weight_bytes += w.bytes();
    cost.multiply_adds += product(rows, w.rows(), w.cols());
  }
  timed(cost, [&] { inner_->linear(outs, x, rows); });
}

void ProfiledBackend::gated_linear(const Weight& gate, const Weight& up, ConstRows x, int rows, Rows y) {
  if (!recording_) return inner_->gated_linear(gate, up, x, rows, y);
  OpRecord cost = simple(Op::gated_linear, rows);
  cost.inputs = gate.cols();
  cost.type = gate.type();
  cost.outputs = {gate.rows(), up.rows()};
  cost.weight_bytes = gate.bytes() + up.bytes();
  cost.multiply_adds = product(rows, gate.rows() + up.rows(), gate.cols());
  timed(cost, [&] { inner_->gated_linear(gate, up, x, rows, y); });
}

void ProfiledBackend::silu_mul(Rows gate, ConstRows up, int rows, int cols) {
  if (!recording_) return inner_->silu_mul(gate, up, rows, cols);
  timed(simple(Op::silu_mul, rows), [&] { inner_->silu_mul(gate, up, rows, cols); });
}

void ProfiledBackend::sigmoid_mul(Rows x, ConstRows gate, int rows, Groups gate_groups) {
  if (!recording_) return inner_->sigmoid_mul(x, gate, rows, gate_groups);
  timed(simple(Op::sigmoid_mul, rows), [&] { inner_->sigmoid_mul(x, gate, rows, gate_groups); });
}

void ProfiledBackend::rotary_table(std::span<const std::int64_t> positions, int dim, double theta, Rows cos,
                                   Rows sin) {
  if (!recording_) return inner_->rotary_table(positions, dim, theta, cos, sin);
  timed(simple(Op::rotary_table, static_cast<int>(positions.size())),
        [&] { inner_->rotary_table(positions, dim, theta, cos, sin); });
}

void ProfiledBackend::rotary(Rows x, int rows, Groups groups, int half, ConstRows cos, ConstRows sin) {
  if (!recording_) return inner_->rotary(x, rows, groups, half, cos, sin);
  timed(simple(Op::rotary, rows), [&] { inner_->rotary(x, rows, groups, half, cos, sin); });
}

void ProfiledBackend::kv_append(const KvShape& shape, std::span<const KvAppend> segments, ConstRows keys,
                                ConstRows values) {
  if (!recording_) return inner_->kv_append(shape, segments, keys, values);
  int rows = 0;
  for (const KvAppend& segment : segments) rows += segment.rows;
  OpRecord cost = simple(Op::kv_append, rows);
  cost.kv_bytes = cost.rows * kv_position_bytes(*inner_, shape);
  timed(cost, [&] { inner_->kv_append(shape, segments, keys, values); });
}

void ProfiledBackend::attention(const AttentionArgs& args) {
  if (!recording_) return inner_->attention(args);
  timed(attention_cost(*inner_, args), [&] { inner_->attention(args); });
}

void ProfiledBackend::causal_conv(const ConvArgs& args) {
  if (!recording_) return inner_->causal_conv(args);
  timed(conv_cost(args), [&] { inner_->causal_conv(args); });
}

void ProfiledBackend::delta_rule(const DeltaArgs& args) {
  if (!recording_) return inner_->delta_rule(args);
  timed(delta_cost(args), [&] { inner_->delta_rule(args); });
}

void ProfiledBackend::delta_settle(const DeltaShape& shape, float* state, std::int64_t position,
                                   int accepted) {
  if (!recording_) return inner_->delta_settle(shape, state, position, accepted);
  timed(simple(Op::delta_settle, accepted), [&] { inner_->delta_settle(shape, state, position, accepted); });
}

void ProfiledBackend::masked_argmax(ConstRows x, int rows, const Weight& head, std::int64_t limit,
                                    const std::uint64_t* banned, std::int32_t* ids) {
  if (!recording_) return inner_->masked_argmax(x, rows, head, limit, banned, ids);
  OpRecord cost = simple(Op::masked_argmax, rows);
  cost.inputs = head.cols();
  cost.outputs[0] = limit;
  cost.type = head.type();
  cost.weight_bytes = head.rows() == limit ? head.bytes() : head.bytes() / count(head.rows()) * count(limit);
  cost.multiply_adds = product(rows, limit, head.cols());
  timed(cost, [&] { inner_->masked_argmax(x, rows, head, limit, banned, ids); });
}

}  // namespace ponder::ops
