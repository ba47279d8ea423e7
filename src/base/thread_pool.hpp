// The threads that share the work of an operation.
//
// A pool of size n keeps n - 1 threads; the thread that calls run() is the n-th. There is no global pool: the
// owner of several engines builds one and gives each a shared_ptr to it, so that together they never use more
// threads than one would.
//
// run() gives each thread a share of neighbouring task numbers; who has done his helps the others. Which
// thread gets which task is chance; a result must depend on the task number only. Threads that are asleep or
// busy elsewhere are not waited for: a region ends when its tasks have, so a thread the kernel does not
// schedule (another process on the machine, a used-up cgroup quota) costs its share of the speed and no more.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/function_ref.hpp"

namespace ponder {

struct ThreadPoolOptions {
  // How long a thread with nothing to do looks for work before it sleeps (waking one costs some ten
  // microseconds). Use 0 when the pool is larger than the CPUs it may run on: spinning then takes the CPU
  // from the very thread that is waited for. pool_options() in cpu_budget.hpp chooses.
  std::chrono::microseconds spin{30};
  // CPUs the pool's own threads may run on; empty: those of the creating thread. A wish: an impossible set is
  // ignored. The calling threads stay where they are.
  std::vector<int> cpus;
};

class ThreadPool {
 public:
  using Body = FunctionRef<void(int task, int worker)>;

  // `threads` counts the caller: at least 1. Fails with ErrorKind::usage below that, and with
  // ErrorKind::no_memory when the system gives no more threads.
  explicit ThreadPool(int threads, ThreadPoolOptions options = {});
  // No run() may be in progress.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls body(task, worker) once for every task in [0, tasks) and returns when all have returned; what they
  // wrote is then visible to the caller. `worker` is in [0, size()), 0 being the caller, and no two tasks of
  // this pool with the same `worker` ever run at the same time: index per-thread scratch with it.
  //
  // Any number of threads may call run() at once: one region runs at a time, the others wait their turn.
  // Called from inside a task the region runs inline, one task after the other: with the task's own `worker`
  // on the same pool; as worker 0, without waiting for anybody, on another pool (there the promise about
  // `worker` holds only within the one call).
  //
  // When a task throws, no further task is started, and the exception that came first is rethrown here once
  // the running ones have returned. The pool is then as good as new.
  //
  // Allocates nothing.
  void run(int tasks, Body body);

 private:
  struct Job;
  struct Share;

  void start(const std::vector<int>& cpus);
  void stop() noexcept;
  void work(int worker) noexcept;
  bool join_region(std::uint32_t& seen, int worker) noexcept;
  void run_region(int tasks, Body body);
  void wait_for_workers() noexcept;
  void wake_workers(int wanted) noexcept;

  // See thread_pool.cpp for how these work together.
  std::mutex region_mutex_;                          // held by the caller whose region runs
  Job* job_ = nullptr;                               // the region's; read only by those counted in state_
  alignas(64) std::atomic<std::uint32_t> state_{0};  // region number, open flag, workers inside
  alignas(64) std::atomic<std::uint32_t> left_{0};   // grows when the last worker leaves a closed region
  std::atomic<bool> stopping_{false};
  std::chrono::nanoseconds spin_;
  std::unique_ptr<Share[]> shares_;  // of the region's tasks
  std::vector<std::thread> threads_;
};

}  // namespace ponder
