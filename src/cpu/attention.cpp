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

void CpuBackend::kv_append(const KvShape& shape, KvPages cache, std::int64_t position, int first_row,
                           int rows, ConstRows keys, ConstRows values) {
  if (rows <= 0) return;
  const KvPageLayout layout(shape);
  const std::int64_t first_page = position / kPageRows;
  const auto pages = static_cast<int>((position + rows - 1) / kPageRows - first_page + 1);
  // One head's part of one page.
  const auto work = [&](int task, int) {
    const std::int64_t page = first_page + task / shape.heads;
    const int head = task % shape.heads;
    const std::int64_t begin = std::max(position, page * kPageRows);
    const std::int64_t end = std::min(position + rows, (page + 1) * kPageRows);
    const std::int64_t source = first_row - position;  // batch row of position p is source + p
    const KvHeadPage to(shape, layout, cache.pages[page] + cache.offset, head);
    for (std::int64_t p = begin; p < end; ++p) {
      to.put_key(static_cast<int>(p % kPageRows), keys[source + p] + std::int64_t{head} * shape.key_dim);
      to.put_value(static_cast<int>(p % kPageRows),
                   values[source + p] + std::int64_t{head} * shape.value_width());
    }
  };
  constexpr std::int64_t worth_a_region = 32 * 1024;
  const int tasks = pages * shape.heads;
  if (std::int64_t{rows} * shape.heads * (std::int64_t{shape.key_dim} + shape.value_width()) <
      worth_a_region) {
    for (int task = 0; task < tasks; ++task) work(task, 0);
    return;
  }
  pool_->run(tasks, work);
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
