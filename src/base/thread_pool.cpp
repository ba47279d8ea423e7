#include "base/thread_pool.hpp"

#include <system_error>
#include <utility>

#include "base/cpu_set.hpp"
#include "base/error.hpp"

namespace ponder {

// How a region runs. `state_` holds, in one word that workers sleep on,
//
//   bits 12..31  number of the region, so that a worker enters each at most once
//   bit  11      open: workers may enter
//   bits 0..10   workers inside
//
// The caller fills in a Job, then opens the region: the release store of state_ publishes it. A worker enters
// by counting itself in with a compare-and-swap that fails once the region is closed. Caller and workers take
// tasks from their shares, then from each other's, until none is left. The caller closes the region and waits
// until nobody is inside; only then does the Job, which lives on its stack, go away. A worker that comes late
// finds the region closed and touches nothing.
//
// A region number may wrap round while a worker sleeps; at worst that worker misses one region, which the
// others finish without it. All changes that somebody may sleep on are sequentially consistent
// read-modify-writes: a plain store could still be on its way when the sleepers are counted.

// Tasks [begin, end) that nobody has taken, in one word.
struct alignas(64) ThreadPool::Share {
  std::atomic<std::uint64_t> range{0};

  void set(std::uint32_t begin, std::uint32_t end) noexcept {
    range.store(std::uint64_t{end} << 32U | begin, std::memory_order_relaxed);
  }
  // The first task, or for a thief the last; -1 when none is left.
  int take(bool last) noexcept {
    std::uint64_t now = range.load(std::memory_order_relaxed);
    for (;;) {
      const auto begin = static_cast<std::uint32_t>(now), end = static_cast<std::uint32_t>(now >> 32U);
      if (begin >= end) return -1;
      const std::uint64_t then =
          last ? std::uint64_t{end - 1} << 32U | begin : std::uint64_t{end} << 32U | (begin + 1);
      if (range.compare_exchange_weak(now, then, std::memory_order_relaxed)) {
        return static_cast<int>(last ? end - 1 : begin);
      }
    }
  }
};

struct ThreadPool::Job {
  Body body;
  Share* shares;  // one for each worker
  int workers;
  alignas(64) std::atomic<bool> failed{false};
  std::exception_ptr error = nullptr;  // written by the one thread that set `failed`

  // Neighbouring tasks mostly read neighbouring memory, so a worker goes through its share in order, and what
  // is left of others' from behind.
  void work(int worker) noexcept {
    for (int i = 0; i < workers; ++i) {
      Share& share = shares[(worker + i) % workers];
      for (int task = share.take(i > 0); task >= 0; task = share.take(i > 0)) {
        if (failed.load(std::memory_order_relaxed)) return;
        try {
          body(task, worker);
        } catch (...) {
          if (!failed.exchange(true)) error = std::current_exception();
          return;
        }
      }
    }
  }
};

namespace {

constexpr std::uint32_t kInside = (1u << 11) - 1;
constexpr std::uint32_t kOpen = 1u << 11;
constexpr std::uint32_t kRegion = 1u << 12;
constexpr std::uint32_t kNoRegion = ~0u;  // more than 20 bits
constexpr int kMostThreads = 1024;        // fits kInside

std::uint32_t region_of(std::uint32_t state) {
  return state / kRegion;
}

// What this thread is doing for which pool, innermost first, so that run() inside a task is recognised.
class Place;
thread_local const Place* innermost = nullptr;

class Place {
 public:
  Place(const ThreadPool* pool, int worker) : pool_(pool), worker_(worker), outer_(innermost) {
    innermost = this;
  }
  ~Place() { innermost = outer_; }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  // The worker this thread is in `pool`, 0 when it works for other pools only.
  static int worker_in(const ThreadPool* pool) {
    for (const Place* place = innermost; place != nullptr; place = place->outer_) {
      if (place->pool_ == pool) return place->worker_;
    }
    return 0;
  }

 private:
  const ThreadPool* pool_;
  int worker_;
  const Place* outer_;
};

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// True as soon as done() is; false after `limit` without.
template <class Done>
bool spin_until(Done done, std::chrono::nanoseconds limit) {
  if (done()) return true;
  if (limit.count() <= 0) return false;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < 8; ++i) {
      relax();
      if (done()) return true;
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return false;
}

void run_inline(int tasks, ThreadPool::Body body, int worker) {
  for (int task = 0; task < tasks; ++task) body(task, worker);
}

}  // namespace

ThreadPool::ThreadPool(int threads, ThreadPoolOptions options) : spin_(options.spin) {
  if (threads < 1 || threads > kMostThreads) {
    fail(ErrorKind::usage, "a pool of {} threads: expected 1 to {}", threads, kMostThreads);
  }
  threads_.reserve(static_cast<std::size_t>(threads - 1));
  shares_ = std::make_unique<Share[]>(static_cast<std::size_t>(threads));
  try {
    for (int worker = 1; worker < threads; ++worker) {
      threads_.emplace_back([this, worker] { work(worker); });
      if (!options.cpus.empty()) restrict_thread(threads_.back().native_handle(), options.cpus);
    }
  } catch (const std::system_error& error) {
    const std::size_t started = threads_.size() + 1;
    stop();
    fail(ErrorKind::no_memory, "the system gave {} of {} threads: {}", started, threads,
         printable(error.what()));
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() noexcept {
  stopping_.store(true);
  state_.fetch_add(kRegion);
  state_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ThreadPool::run(int tasks, Body body) {
  if (tasks < 0) fail(ErrorKind::internal, "{} tasks asked of a thread pool", tasks);
  if (tasks == 0) return;
  if (innermost != nullptr) {
    const Place place(this, Place::worker_in(this));
    run_inline(tasks, body, Place::worker_in(this));
    return;
  }
  const std::scoped_lock lock(region_mutex_);
  const Place place(this, 0);
  if (tasks == 1 || threads_.empty()) {
    run_inline(tasks, body, 0);
  } else {
    run_region(tasks, body);
  }
}

void ThreadPool::run_region(int tasks, Body body) {
  const int workers = size();
  for (int worker = 0; worker < workers; ++worker) {
    const auto border = [&](int w) { return static_cast<std::uint32_t>(std::int64_t{tasks} * w / workers); };
    shares_[static_cast<std::size_t>(worker)].set(border(worker), border(worker + 1));
  }
  Job job{.body = body, .shares = shares_.get(), .workers = workers};
  job_ = &job;
  // The region before is closed and empty, so nobody else changes state_ now.
  state_.exchange((region_of(state_.load()) + 1) * kRegion | kOpen);
  wake_workers(tasks - 1);
  job.work(0);
  state_.fetch_and(~kOpen);
  wait_for_workers();
  job_ = nullptr;
  if (job.error) std::rethrow_exception(std::move(job.error));
}

void ThreadPool::wake_workers(int wanted) noexcept {
  if (wanted >= static_cast<int>(threads_.size())) {
    state_.notify_all();
  } else {
    for (int i = 0; i < wanted; ++i) state_.notify_one();
  }
}

void ThreadPool::wait_for_workers() noexcept {
  const auto empty = [this] { return (state_.load(std::memory_order_acquire) & kInside) == 0; };
  if (spin_until(empty, spin_)) return;
  for (;;) {
    const std::uint32_t left = left_.load();  // before the test: a worker leaving after it is then noticed
    if (empty()) return;
    left_.wait(left);
  }
}

void ThreadPool::work(int worker) noexcept {
  const Place place(this, worker);
  std::uint32_t seen = kNoRegion;
  while (!stopping_.load(std::memory_order_acquire)) {
    if (join_region(seen, worker)) continue;
    const auto news = [&] {
      return region_of(state_.load(std::memory_order_acquire)) != seen ||
             stopping_.load(std::memory_order_relaxed);
    };
    if (spin_until(news, spin_)) continue;
    const std::uint32_t state = state_.load();
    if (region_of(state) == seen && !stopping_.load()) state_.wait(state);
  }
}

// Takes part in the open region, if there is one this worker has not been in. `seen` becomes its number.
bool ThreadPool::join_region(std::uint32_t& seen, int worker) noexcept {
  std::uint32_t state = state_.load(std::memory_order_acquire);
  do {
    if (region_of(state) == seen) return false;
    if ((state & kOpen) == 0) {
      seen = region_of(state);
      return false;
    }
  } while (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire));
  seen = region_of(state);
  job_->work(worker);
  const std::uint32_t before = state_.fetch_sub(1);
  if ((before & kInside) == 1 && (before & kOpen) == 0) {
    left_.fetch_add(1);
    left_.notify_one();
  }
  return true;
}

}  // namespace ponder
