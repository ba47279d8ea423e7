// Paged keys and values, and softmax attention over them.
#include <algorithm>

#include "cpu/attention_plan.hpp"
#include "cpu/attention_tile.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/kv_page.hpp"

namespace ponder::cpu {

using namespace ops;  // this room implements ops' vocabulary

std::size_t CpuBackend::kv_page_bytes(const KvShape& shape) const {
  return static_cast<std::size_t>(KvPageLayout(shape).head_bytes * shape.heads);
}

void CpuBackend::kv_append(const KvShape& shape, std::span<const KvAppend> segments, ConstRows keys,
                           ConstRows values) {
  // One head's part of one page a task; tasks of a segment follow those of the one before.
  const auto pages_of = [](const KvAppend& to) {
    return to.rows <= 0 ? 0 : (to.position + to.rows - 1) / kPageRows - to.position / kPageRows + 1;
  };
  std::int64_t tasks = 0, rows = 0;
  for (const KvAppend& to : segments) {
    tasks += pages_of(to) * shape.heads;
    rows += std::max(0, to.rows);
  }
  const KvPageLayout layout(shape);
  const auto work = [&](int task, int) {
    std::size_t s = 0;
    std::int64_t in_segment = task;
    for (; in_segment >= pages_of(segments[s]) * shape.heads; ++s) {
      in_segment -= pages_of(segments[s]) * shape.heads;
    }
    const KvAppend& to = segments[s];
    const std::int64_t page = to.position / kPageRows + in_segment / shape.heads;
    const int head = static_cast<int>(in_segment % shape.heads);
    const std::int64_t begin = std::max(to.position, page * kPageRows);
    const std::int64_t end = std::min(to.position + to.rows, (page + 1) * kPageRows);
    const std::int64_t source = to.first_row - to.position;  // batch row of position p is source + p
    const KvHeadPage at(shape, layout, to.cache.pages[page] + to.cache.offset, head);
    for (std::int64_t p = begin; p < end; ++p) {
      at.put_key(static_cast<int>(p % kPageRows), keys[source + p] + std::int64_t{head} * shape.key_dim);
      at.put_value(static_cast<int>(p % kPageRows),
                   values[source + p] + std::int64_t{head} * shape.value_width());
    }
  };
  constexpr std::int64_t worth_a_region = 16 * 1024;
  if (rows * shape.heads * (std::int64_t{shape.key_dim} + shape.value_width()) < worth_a_region) {
    for (std::int64_t task = 0; task < tasks; ++task) work(static_cast<int>(task), 0);
    return;
  }
  pool_->run(static_cast<int>(tasks), work);
}

void CpuBackend::attention(const AttentionArgs& args) {
  if (args.kv.heads <= 0) return;
  const KvPageLayout layout(args.kv);
  const int rep = args.heads / args.kv.heads;
  reserve(AttentionTile::scratch_floats(args));
  AttentionPlan& plan = attention_plan_;
  plan.make(args);
  while (plan.next_wave()) {
    const std::span<const AttentionTask> tasks = plan.tasks();
    pool_->run(static_cast<int>(tasks.size()) * args.kv.heads, [&](int index, int worker) {
      const AttentionTask& task = tasks[static_cast<std::size_t>(index / args.kv.heads)];
      const int kv_head = index % args.kv.heads;
      AttentionTile tile(kernels_, args, layout, kv_head, plan.rows(task), scratch(worker));
      if (task.kind == AttentionTask::Kind::all) return tile.run_all();
      task.kind == AttentionTask::Kind::own ? tile.run_own() : tile.run_part(task.part);
      for (int r = 0; r < task.count; ++r) {
        for (int g = 0; g < rep; ++g) {
          put_together(kernels_, plan.partial(task.first + r, task.part, kv_head * rep + g), true,
                       tile.part(r, g), args.kv.value_dim);
        }
      }
    });
    join_parts(args);
  }
}

// Puts this wave's parts of each row behind what there is, and finishes the rows with the last wave.
void CpuBackend::join_parts(const AttentionArgs& args) {
  AttentionPlan& plan = attention_plan_;
  const std::int64_t dv = args.kv.value_dim;
  for_rows(plan.split_rows() * args.heads, plan.wave_parts() * dv, [&](int index) {
    const int r = index / args.heads, head = index % args.heads;
    const AttentionRow& row = plan.split_row(r);
    plan.for_parts(r, [&](int part) {
      put_together(kernels_, plan.total(r, head), part == plan.first_part(row), plan.partial(r, part, head),
                   dv);
    });
    if (!plan.last_wave()) return;
    float* out = args.out[row.batch_row] + head * dv;
    if (plan.sees_nothing(row)) {
      std::fill_n(out, dv, 0.0F);
    } else {
      finish(kernels_, plan.total(r, head), dv, out);
    }
  });
}

}  // namespace ponder::cpu
