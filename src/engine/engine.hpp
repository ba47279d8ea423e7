// Sequences and the loop that runs them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/block_pool.hpp"
#include "models/model.hpp"

namespace ponder::engine {

class Engine;

// What a model remembers of the tokens fed so far: pages of keys and values held by reference, and one
// recurrent block. fork() is cheap (references only); whoever writes to something shared first copies it, so
// a fork that is thrown away leaves no trace. Belongs to its engine and must not outlive it.
class Sequence {
 public:
  Sequence(Sequence&&) = default;
  Sequence& operator=(Sequence&&) = default;

  std::int64_t size() const noexcept { return size_; }
  // Rows fed on probation that Engine::settle() has not decided on yet; not counted in size().
  int held() const noexcept { return held_; }
  Sequence fork() const { return Sequence(*this); }
  // Takes over the state of `other` (a fork kept as a snapshot).
  void restore(const Sequence& other) { *this = Sequence(other); }
  // Recurrent layers cannot forget single rows: anything but the present size is refused with
  // Error(unsupported) and nothing changes. Keep a fork to come back to.
  void rewind(std::int64_t size) const;

  // For inspection: the recurrent block and the pages, in position order; of those for drafting, null where
  // nothing is kept any more.
  const float* recurrent() const;
  std::vector<const std::byte*> pages() const;
  std::vector<const std::byte*> draft_pages() const;

 private:
  friend class Engine;
  Sequence() = default;
  Sequence(const Sequence&) = default;
  Sequence& operator=(const Sequence&) = default;

  std::int64_t size_ = 0;
  int held_ = 0;
  std::vector<BlockRef> pages_;
  std::vector<BlockRef> draft_pages_;  // by page number; empty references outside what drafting sees
  BlockRef recurrent_;
};

struct Options {
  std::uint64_t cache_limit_bytes = ~0ULL;  // pages of keys and values
  std::uint64_t draft_limit_bytes = ~0ULL;  // pages that only drafting reads
  std::uint64_t state_limit_bytes = ~0ULL;  // recurrent blocks
};

// Rows to append to one sequence, and which of their final-normed hidden states to keep.
struct ExtendJob {
  Sequence* sequence = nullptr;
  std::span<const std::int32_t> ids;
  std::span<const int> wanted;  // row numbers within ids, ascending
  ops::Rows hidden;             // [wanted.size()][hidden_size], filled in the order of `wanted`
  // The rows (at most ops::kHeldRows) are on probation until settle().
  bool hold = false;
};

// Mask rows behind a sequence; see models::Model::draft.
struct DraftJob {
  const Sequence* sequence = nullptr;
  int rows = 0;
};

struct Counters {
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;        // ordinary rows, those on probation among them
  std::uint64_t draft_rows = 0;  // mask rows
};

class Engine {
 public:
  explicit Engine(std::unique_ptr<models::Model> model, const Options& options = {});

  models::Model& model() noexcept { return *model_; }
  Sequence new_sequence();

  // Feeds all jobs, several sequences in one step as far as they fit. A sequence may occur once.
  // Throws Error(invalid_input) before any work for ids outside the vocabulary, Error(cancelled) between
  // steps when `stop` asks for it (the sequences then hold a part of their rows), Error(no_memory) at a
  // limit.
  void extend(std::span<const ExtendJob> jobs, const std::stop_token& stop = {},
              const models::LayerObserver* observer = nullptr);

  // The first `accepted` of the rows on probation count, the others leave no trace: state, sizes and later
  // results are to the last bit those of a sequence that was never fed them.
  void settle(Sequence& sequence, int accepted);

  // Whether sequences of this engine can be drafted for.
  bool can_draft() const noexcept { return model_->state_layout().draft_page_bytes != 0; }
  // Final-normed hidden states of the jobs' mask rows, in order; all rows must fit one step. The sequences
  // must hold nothing on probation; nothing of them changes. Valid until the next call.
  ops::ConstRows draft(std::span<const DraftJob> jobs);

  // Called when a cache is full, to let go of sequences kept for later; false when there are none.
  void on_full(const std::function<bool()>& free_some);
  // Bytes of one page of a sequence, what drafting reads included, and of its recurrent block.
  std::uint64_t page_bytes() const noexcept { return page_pool_.block_bytes() + draft_pool_.block_bytes(); }
  std::uint64_t state_bytes() const noexcept { return state_pool_.block_bytes(); }

  const Counters& counters() const noexcept { return counters_; }
  const BlockPoolStats& page_stats() const noexcept { return page_pool_.stats(); }
  const BlockPoolStats& draft_stats() const noexcept { return draft_pool_.stats(); }
  const BlockPoolStats& state_stats() const noexcept { return state_pool_.stats(); }

 private:
  struct Progress {
    std::size_t fed = 0;     // rows of the job already run
    std::size_t wanted = 0;  // entries of `wanted` already copied
    std::size_t step = 0;    // rows of the job in the present step
  };

  void check(std::span<const ExtendJob> jobs) const;
  void prepare(Sequence& sequence, std::size_t rows);
  void prepare_draft_pages(Sequence& sequence, std::size_t first, std::size_t pages);
  void drop_draft_pages(Sequence& sequence);
  std::byte* const* add_to_table(const std::vector<BlockRef>& pages);
  bool form_step(std::span<const ExtendJob> jobs);
  void finish_step(std::span<const ExtendJob> jobs, ops::ConstRows hidden);

  std::unique_ptr<models::Model> model_;
  BlockPool page_pool_;
  BlockPool draft_pool_;
  BlockPool state_pool_;
  Counters counters_;

  // Buffers of a step, kept between calls.
  std::vector<Progress> progress_;
  std::vector<models::Segment> segments_;
  std::vector<models::DraftSegment> draft_segments_;
  std::vector<std::byte*> page_table_;
};

}  // namespace ponder::engine
