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

// A model without attention or without recurrence still gets blocks, of the least size.
Engine::Engine(std::unique_ptr<models::Model> model, const Options& options)
    : model_(std::move(model)),
      page_pool_("key/value cache", std::max<std::size_t>(model_->state_layout().page_bytes, 1),
                 options.cache_limit_bytes),
      state_pool_("recurrent states",
                  std::max<std::size_t>(model_->state_layout().recurrent_floats, 1) * sizeof(float),
                  options.state_limit_bytes) {}

Sequence Engine::new_sequence() {
  Sequence sequence;
  sequence.recurrent_ = state_pool_.take();
  return sequence;
}

void Engine::check(std::span<const ExtendJob> jobs) const {
  const int vocab = model_->vocab_size();
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const ExtendJob& job = jobs[j];
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
  state_pool_.make_unique(sequence.recurrent_);
}

bool Engine::form_step(std::span<const ExtendJob> jobs) {
  segments_.clear();
  page_table_.clear();
  auto room = static_cast<std::size_t>(model_->max_rows());
  std::size_t table = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    progress_[j].step = std::min(room, jobs[j].ids.size() - progress_[j].fed);
    room -= progress_[j].step;
    if (progress_[j].step == 0) continue;
    prepare(*jobs[j].sequence, progress_[j].step);
    table += jobs[j].sequence->pages_.size();
  }
  page_table_.reserve(table);  // pointers into it must not move
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (progress_[j].step == 0) continue;
    const Sequence& sequence = *jobs[j].sequence;
    std::byte* const* pages = page_table_.data() + page_table_.size();
    for (const BlockRef& page : sequence.pages_) page_table_.push_back(page.data());
    segments_.push_back({jobs[j].ids.subspan(progress_[j].fed, progress_[j].step), sequence.size_, pages,
                         reinterpret_cast<float*>(sequence.recurrent_.data())});
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
    jobs[j].sequence->size_ += static_cast<std::int64_t>(at.step);
    counters_.rows += at.step;
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

}  // namespace ponder::engine
