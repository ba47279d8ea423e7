// How much memory this process may use, and a plain refusal when a model does not fit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/format_bytes.hpp"
#include "base/system_files.hpp"

namespace ponder {

struct MemoryBudget {
  // Bytes the process may hold at all: the machine's memory or the tightest cgroup limit, own group or any
  // parent. UINT64_MAX when nothing is known.
  std::uint64_t total = UINT64_MAX;
  // Bytes that could be allocated now, without swapping: what the kernel calls available, and what each
  // cgroup has left, counting file pages nobody used lately as free. At most `total`.
  std::uint64_t available = UINT64_MAX;
  std::string reason;        // one line for the log: both figures and where they come from
  std::string limit_source;  // the cgroup directory that sets `total`; empty when the machine does
};

// Never fails: files that are missing count as no limit, files that make no sense are named in `reason`.
MemoryBudget detect_memory_budget(const MemoryBudgetSources& sources = {});

// Fails with ErrorKind::no_memory, naming the need and what there is, when `allocated_bytes` are not
// available or do not fit the total together with `mapped_bytes`. Mapped file pages need no free memory, as
// the kernel can drop and reread them, but a model whose pages do not stay in memory reads its file anew for
// each token. `what` is the subject of the message, e.g. "model demo.cmf".
void require_memory(const MemoryBudget& budget, std::uint64_t mapped_bytes, std::uint64_t allocated_bytes,
                    std::string_view what);

}  // namespace ponder
