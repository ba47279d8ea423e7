#include "engine/engine.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"

namespace ponder::engine {

void Sequence::rewind(std::int64_t size) const {
  if (size == size_) return;
  fail(ErrorKind::unsupported,
       "cannot rewind a sequence of {} rows to {}: recurrent layers keep no earlier state", size_, size);
}

const float* Sequence::recurrent() const {
  return reinterpret_cast<const float*>(recurrent_.data());
}

std::vector<const std::byte*> Sequence::pages() const {
  std::vector<const std::byte*> out;
  out.reserve(pages_.size());
  for (const BlockRef& page : pages_) out.push_back(page.data());
  return out;
}

std::vector<const std::byte*> Sequence::draft_pages() const {
  std::vector<const std::byte*> out;
  out.reserve(draft_pages_.size());
  for (const BlockRef& page : draft_pages_) out.push_back(page ? page.data() : nullptr);
  return out;
}

// A model without attention or without recurrence still gets blocks, of the least size.
Engine::Engine(std::unique_ptr<models::Model> model, const Options& options)
    : model_(std::move(model)),
      page_pool_("key/value cache", std::max<std::size_t>(model_->state_layout().page_bytes, 1),
                 options.cache_limit_bytes),
      draft_pool_("draft cache", std::max<std::size_t>(model_->state_layout().draft_page_bytes, 1),
                  options.draft_limit_bytes),
      state_pool_("recurrent states",
                  std::max<std::size_t>(model_->state_layout().recurrent_floats, 1) * sizeof(float),
                  options.state_limit_bytes) {}

void Engine::on_full(const std::function<bool()>& free_some) {
  for (BlockPool* pool : {&page_pool_, &draft_pool_, &state_pool_}) pool->on_full(free_some);
}

Sequence Engine::new_sequence() {
  Sequence sequence;
  sequence.recurrent_ = state_pool_.take();
  return sequence;
}

void Engine::check(std::span<const ExtendJob> jobs) const {
  const int vocab = model_->vocab_size();
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const ExtendJob& job = jobs[j];
    if (job.sequence->held_ > 0) {
      fail(ErrorKind::internal, "a sequence with {} rows on probation cannot go on", job.sequence->held_);
    }
    const auto most = static_cast<std::size_t>(std::min(ops::kHeldRows, model_->max_rows()));
    if (job.hold && job.ids.size() > most) {
      fail(ErrorKind::internal, "{} rows on probation, at most {} fit", job.ids.size(), most);
    }
    for (std::size_t i = 0; i < job.ids.size(); ++i) {
      if (job.ids[i] < 0 || job.ids[i] >= vocab) {
        fail(ErrorKind::invalid_input, "token {} at row {} is outside the vocabulary of {}", job.ids[i], i,
             vocab);
      }
    }
    for (std::size_t i = 0; i < job.wanted.size(); ++i) {
      const int row = job.wanted[i];
      if (row < 0 || static_cast<std::size_t>(row) >= job.ids.size() || (i > 0 && row <= job.wanted[i - 1])) {
        fail(ErrorKind::internal, "wanted row {} of {} is out of order or range", row, job.ids.size());
      }
    }
    for (std::size_t other = 0; other < j; ++other) {
      if (jobs[other].sequence == job.sequence)
        fail(ErrorKind::internal, "a sequence occurs twice in one batch");
    }
  }
}

// Pages and recurrent block for `rows` more rows, all of them the sequence's own.
void Engine::prepare(Sequence& sequence, std::size_t rows) {
  const auto first = static_cast<std::size_t>(sequence.size_) / ops::kPageRows;
  const std::size_t pages =
      (static_cast<std::size_t>(sequence.size_) + rows + ops::kPageRows - 1) / ops::kPageRows;
  if (first < sequence.pages_.size()) page_pool_.make_unique(sequence.pages_[first]);
  while (sequence.pages_.size() < pages) sequence.pages_.push_back(page_pool_.take());
  // What rows on probation left behind may have filled a page that a fork now shares.
  for (std::size_t p = first + 1; p < pages; ++p) page_pool_.make_unique(sequence.pages_[p]);
  state_pool_.make_unique(sequence.recurrent_);
  if (can_draft()) prepare_draft_pages(sequence, first, pages);
}

void Engine::prepare_draft_pages(Sequence& sequence, std::size_t first, std::size_t pages) {
  if (sequence.draft_pages_.size() < pages) sequence.draft_pages_.resize(pages);
  for (std::size_t p = first; p < pages; ++p) {
    BlockRef& page = sequence.draft_pages_[p];
    if (page) {
      draft_pool_.make_unique(page);
    } else {
      page = draft_pool_.take();
    }
  }
}

// Lets go of pages that no mask row behind this sequence will see.
void Engine::drop_draft_pages(Sequence& sequence) {
  const models::StateLayout& layout = model_->state_layout();
  const std::int64_t begin = std::max<std::int64_t>(0, sequence.size_ - layout.draft_window) / ops::kPageRows;
  const std::int64_t kept = (layout.draft_sinks + ops::kPageRows - 1) / ops::kPageRows;
  for (std::int64_t p = kept; p < begin; ++p) sequence.draft_pages_[static_cast<std::size_t>(p)] = {};
}

std::byte* const* Engine::add_to_table(const std::vector<BlockRef>& pages) {
  std::byte* const* begin = page_table_.data() + page_table_.size();
  for (const BlockRef& page : pages) page_table_.push_back(page ? page.data() : nullptr);
  return begin;
}

bool Engine::form_step(std::span<const ExtendJob> jobs) {
  segments_.clear();
  page_table_.clear();
  auto room = static_cast<std::size_t>(model_->max_rows());
  std::size_t table = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const std::size_t left = jobs[j].ids.size() - progress_[j].fed;
    // Rows on probation go in one step.
    progress_[j].step = jobs[j].hold && left > room ? 0 : std::min(room, left);
    room -= progress_[j].step;
    if (progress_[j].step == 0) continue;
    prepare(*jobs[j].sequence, progress_[j].step);
    table += jobs[j].sequence->pages_.size() + jobs[j].sequence->draft_pages_.size();
  }
  page_table_.reserve(table);  // pointers into it must not move
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (progress_[j].step == 0) continue;
    const Sequence& sequence = *jobs[j].sequence;
    models::Segment segment;
    segment.ids = jobs[j].ids.subspan(progress_[j].fed, progress_[j].step);
    segment.position = sequence.size_;
    segment.pages = add_to_table(sequence.pages_);
    segment.recurrent = reinterpret_cast<float*>(sequence.recurrent_.data());
    segment.draft_pages = can_draft() ? add_to_table(sequence.draft_pages_) : nullptr;
    segment.hold = jobs[j].hold;
    segments_.push_back(segment);
  }
  return !segments_.empty();
}

void Engine::finish_step(std::span<const ExtendJob> jobs, ops::ConstRows hidden) {
  const std::size_t width = static_cast<std::size_t>(model_->hidden_size()) * sizeof(float);
  std::int64_t base = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    Progress& at = progress_[j];
    for (; at.wanted < jobs[j].wanted.size(); ++at.wanted) {
      const auto row = static_cast<std::size_t>(jobs[j].wanted[at.wanted]);
      if (row >= at.fed + at.step) break;
      std::memcpy(jobs[j].hidden[static_cast<std::int64_t>(at.wanted)],
                  hidden[base + static_cast<std::int64_t>(row - at.fed)], width);
    }
    base += static_cast<std::int64_t>(at.step);
    at.fed += at.step;
    Sequence& sequence = *jobs[j].sequence;
    counters_.rows += at.step;
    if (jobs[j].hold) {
      sequence.held_ += static_cast<int>(at.step);
      continue;
    }
    sequence.size_ += static_cast<std::int64_t>(at.step);
    if (can_draft() && at.step > 0) drop_draft_pages(sequence);
  }
  ++counters_.steps;
}

void Engine::extend(std::span<const ExtendJob> jobs, const std::stop_token& stop,
                    const models::LayerObserver* observer) {
  check(jobs);
  progress_.assign(jobs.size(), {});
  while (form_step(jobs)) {
    if (stop.stop_requested()) fail(ErrorKind::cancelled, "cancelled");
    finish_step(jobs, model_->forward(segments_, observer));
  }
}

void Engine::settle(Sequence& sequence, int accepted) {
  if (accepted < 0 || accepted > sequence.held_) {
    fail(ErrorKind::internal, "{} of {} rows on probation accepted", accepted, sequence.held_);
  }
  if (sequence.held_ == 0) return;
  models::Segment segment;
  const std::vector<std::int32_t> rows(static_cast<std::size_t>(sequence.held_));  // only their number counts
  segment.ids = rows;
  segment.position = sequence.size_;
  state_pool_.make_unique(sequence.recurrent_);  // a fork may have been taken while the rows were held
  segment.recurrent = reinterpret_cast<float*>(sequence.recurrent_.data());
  model_->settle(segment, accepted);
  sequence.held_ = 0;
  sequence.size_ += accepted;
  // Whole pages that only rejected rows had reached.
  const auto pages = static_cast<std::size_t>((sequence.size_ + ops::kPageRows - 1) / ops::kPageRows);
  if (sequence.pages_.size() > pages) sequence.pages_.resize(pages);
  if (sequence.draft_pages_.size() > pages) sequence.draft_pages_.resize(pages);
  if (can_draft()) drop_draft_pages(sequence);
}

ops::ConstRows Engine::draft(std::span<const DraftJob> jobs) {
  draft_segments_.clear();
  page_table_.clear();
  std::size_t table = 0;
  for (const DraftJob& job : jobs) {
    if (job.sequence->held_ > 0) {
      fail(ErrorKind::internal, "cannot draft behind {} rows on probation", job.sequence->held_);
    }
    table += job.sequence->pages_.size() + job.sequence->draft_pages_.size();
  }
  page_table_.reserve(table);
  for (const DraftJob& job : jobs) {
    models::DraftSegment segment;
    segment.position = job.sequence->size_;
    segment.rows = job.rows;
    segment.pages = add_to_table(job.sequence->pages_);
    segment.draft_pages = add_to_table(job.sequence->draft_pages_);
    draft_segments_.push_back(segment);
    counters_.draft_rows += static_cast<std::uint64_t>(job.rows);
  }
  ++counters_.steps;
  return model_->draft(draft_segments_);
}

}  // namespace ponder::engine
