#include "base/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "allocation_count.hpp"
#include "base/cpu_set.hpp"
#include "base/error.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PONDER_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PONDER_TEST_SANITIZED 1
#endif
#endif

namespace ponder {
namespace {

using std::chrono::microseconds;

// Every way of waiting: asleep at once, and awake for long enough to be met awake.
const std::vector<ThreadPoolOptions>& all_options() {
  static const std::vector<ThreadPoolOptions> options = {{.spin = microseconds(0), .cpus = {}},
                                                         {.spin = microseconds(30), .cpus = {}},
                                                         {.spin = microseconds(300), .cpus = {}}};
  return options;
}

// Tasks that return only when `count` of them have begun: each needs a thread of its own.
class Rendezvous {
 public:
  explicit Rendezvous(int count) : missing_(count) {}
  void arrive() {
    missing_.fetch_sub(1);
    while (missing_.load() > 0) std::this_thread::yield();
  }

 private:
  std::atomic<int> missing_;
};

TEST(ThreadPool, EveryTaskRunsOnceAndItsWritesAreSeen) {
  for (const ThreadPoolOptions& options : all_options()) {
    for (const int threads : {1, 2, 3, 8, 40}) {
      ThreadPool pool(threads, options);
      EXPECT_EQ(pool.size(), threads);
      for (const int tasks : {0, 1, 2, 3, 7, 64, 1000}) {
        std::vector<int> runs(static_cast<std::size_t>(tasks), 0);
        pool.run(tasks, [&](int task, int) { ++runs[static_cast<std::size_t>(task)]; });
        EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), tasks)
            << threads << " threads, " << tasks << " tasks";
      }
    }
  }
}

TEST(ThreadPool, AllThreadsTakePartAndPersist) {
  constexpr int kThreads = 5;
  for (const ThreadPoolOptions& options : all_options()) {
    ThreadPool pool(kThreads, options);
    std::vector<std::thread::id> ids(kThreads);
    for (int round = 0; round < 60; ++round) {
      Rendezvous all(kThreads);
      std::vector<std::thread::id> now(kThreads);
      std::vector<int> used(kThreads, 0);
      pool.run(kThreads, [&](int, int worker) {
        all.arrive();
        now[static_cast<std::size_t>(worker)] = std::this_thread::get_id();
        ++used[static_cast<std::size_t>(worker)];
      });
      EXPECT_EQ(used, std::vector<int>(kThreads, 1));
      EXPECT_EQ(now[0], std::this_thread::get_id());
      EXPECT_EQ(std::set<std::thread::id>(now.begin(), now.end()).size(), static_cast<std::size_t>(kThreads));
      if (round == 0) ids = now;
      EXPECT_EQ(now, ids);  // each worker is the same thread for good
    }
  }
}

TEST(ThreadPool, WakingOfFewerThanAllNeverLosesOne) {
  ThreadPool pool(8, {.spin = microseconds(0), .cpus = {}});
  for (int round = 0; round < 2000; ++round) {
    const int tasks = 2 + round % 7;
    Rendezvous all(tasks);
    pool.run(tasks, [&](int, int) { all.arrive(); });
  }
}

TEST(ThreadPool, OneTaskOrOneThreadStaysWithTheCaller) {
  const auto self = std::this_thread::get_id();
  ThreadPool four(4);
  for (int i = 0; i < 100; ++i) {
    four.run(1, [&](int task, int worker) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      EXPECT_EQ(task, 0);
      EXPECT_EQ(worker, 0);
    });
  }
  ThreadPool one(1);
  std::vector<int> order;
  one.run(50, [&](int task, int worker) {
    EXPECT_EQ(std::this_thread::get_id(), self);
    EXPECT_EQ(worker, 0);
    order.push_back(task);
  });
  std::vector<int> ascending(50);
  std::iota(ascending.begin(), ascending.end(), 0);
  EXPECT_EQ(order, ascending);
}

TEST(ThreadPool, ResultsDoNotDependOnTheNumberOfThreads) {
  const auto sums = [](int threads) {
    ThreadPool pool(threads);
    std::vector<float> out(100);
    for (int round = 0; round < 20; ++round) {
      pool.run(100, [&](int task, int) {
        float sum = out[static_cast<std::size_t>(task)];
        for (int i = 1; i < 200; ++i) sum += 1.0f / static_cast<float>(task * 7 + i);
        out[static_cast<std::size_t>(task)] = sum;
      });
    }
    return out;
  };
  const std::vector<float> expected = sums(1);
  for (const int threads : {2, 3, 16}) EXPECT_EQ(sums(threads), expected);
}

// Counts what runs at once, in all and for each worker.
class Usage {
 public:
  explicit Usage(int workers) : busy_(static_cast<std::size_t>(workers)) {}
  void begin(int worker) {
    if (busy_[static_cast<std::size_t>(worker)].exchange(true)) clash_ = true;
    const int now = running_.fetch_add(1) + 1;
    int most = most_.load();
    while (now > most && !most_.compare_exchange_weak(most, now)) {
    }
  }
  void end(int worker) {
    running_.fetch_sub(1);
    busy_[static_cast<std::size_t>(worker)] = false;
  }
  bool clash() const { return clash_; }
  int most() const { return most_; }

 private:
  std::vector<std::atomic<bool>> busy_;
  std::atomic<bool> clash_{false};
  std::atomic<int> running_{0};
  std::atomic<int> most_{0};
};

TEST(ThreadPool, Complaint50_ManyCallersShareTheThreads) {
  // Several engines on one pool: never more tasks at once than the pool has threads, never two on one worker.
  for (const ThreadPoolOptions& options : all_options()) {
    for (const int threads : {1, 2, 4}) {
      ThreadPool pool(threads, options);
      Usage usage(threads);
      std::atomic<long> total{0};
      std::vector<std::thread> callers;
      callers.reserve(6);
      for (int caller = 0; caller < 6; ++caller) {
        callers.emplace_back([&, caller] {
          for (int round = 0; round < 50; ++round) {
            const int tasks = 1 + (caller + round) % 9;
            std::vector<int> runs(static_cast<std::size_t>(tasks), 0);
            pool.run(tasks, [&](int task, int worker) {
              usage.begin(worker);
              ++runs[static_cast<std::size_t>(task)];
              total.fetch_add(1, std::memory_order_relaxed);
              std::this_thread::yield();  // gives the others the chance to break in
              usage.end(worker);
            });
            EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), tasks);
          }
        });
      }
      for (std::thread& caller : callers) caller.join();
      long expected = 0;
      for (int caller = 0; caller < 6; ++caller) {
        for (int round = 0; round < 50; ++round) expected += 1 + (caller + round) % 9;
      }
      EXPECT_EQ(total.load(), expected);
      EXPECT_FALSE(usage.clash());
      EXPECT_LE(usage.most(), threads);
    }
  }
}

TEST(ThreadPool, NestedRegionsStayOnTheirThread) {
  ThreadPool pool(4);
  Usage usage(4);
  std::atomic<int> leaves{0};
  for (int round = 0; round < 50; ++round) {
    Rendezvous all(4);  // so that every worker is met
    pool.run(4, [&](int, int worker) {
      all.arrive();
      const auto self = std::this_thread::get_id();
      usage.begin(worker);
      pool.run(3, [&](int, int inner) {
        EXPECT_EQ(inner, worker);
        EXPECT_EQ(std::this_thread::get_id(), self);
        pool.run(2, [&](int, int innermost) {
          EXPECT_EQ(innermost, worker);
          leaves.fetch_add(1);
        });
      });
      usage.end(worker);
    });
  }
  EXPECT_EQ(leaves.load(), 50 * 4 * 3 * 2);
  EXPECT_FALSE(usage.clash());
}

TEST(ThreadPool, NestingInsideAnInlineRegionIsRecognised) {
  ThreadPool pool(2);
  int calls = 0;
  pool.run(1, [&](int, int) { pool.run(5, [&](int, int) { ++calls; }); });
  EXPECT_EQ(calls, 5);
}

TEST(ThreadPool, TwoPoolsThatUseEachOtherDoNotLock) {
  ThreadPool left(3);
  ThreadPool right(2);
  std::atomic<int> count{0};
  const auto cross = [&](ThreadPool& outer, ThreadPool& inner) {
    for (int round = 0; round < 300; ++round) {
      Rendezvous all(outer.size());
      outer.run(outer.size(), [&](int, int worker) {
        all.arrive();
        inner.run(4, [&](int, int other) {
          EXPECT_EQ(other, 0);
          outer.run(2, [&](int, int back) {
            EXPECT_EQ(back, worker);
            count.fetch_add(1);
          });
        });
      });
    }
  };
  std::thread one([&] { cross(left, right); });
  std::thread two([&] { cross(right, left); });
  one.join();
  two.join();
  EXPECT_EQ(count.load(), (3 + 2) * 300 * 4 * 2);
}

TEST(ThreadPool, AnExceptionComesBackAndThePoolGoesOn) {
  for (const ThreadPoolOptions& options : all_options()) {
    for (const int threads : {1, 2, 4}) {
      ThreadPool pool(threads, options);
      for (int round = 0; round < 50; ++round) {
        std::atomic<int> started{0};
        try {
          pool.run(100000, [&](int task, int) {
            started.fetch_add(1);
            if (task == 3) throw std::runtime_error("task " + std::to_string(task));
          });
          ADD_FAILURE() << "nothing thrown";
        } catch (const std::runtime_error& error) {
          EXPECT_STREQ(error.what(), "task 3");
        }
        EXPECT_GE(started.load(), 4);
        std::atomic<int> after{0};
        pool.run(10, [&](int, int) { after.fetch_add(1); });
        EXPECT_EQ(after.load(), 10);
      }
    }
  }
}

TEST(ThreadPool, NoTaskStartsAfterAnException) {
  ThreadPool one(1);
  int started = 0;
  EXPECT_THROW(one.run(10,
                       [&](int task, int) {
                         ++started;
                         if (task == 2) throw 7;
                       }),
               int);
  EXPECT_EQ(started, 3);
  // With two threads: the caller throws at task 2 while the other thread is held in its own task until then.
  ThreadPool two(2);
  std::atomic<int> count{0};
  std::atomic<bool> thrown{false};
  Rendezvous both(2);
  EXPECT_THROW(two.run(1000000,
                       [&](int, int worker) {
                         if (count.fetch_add(1) < 2) both.arrive();
                         if (worker == 0) {
                           thrown = true;
                           throw 8;
                         }
                         while (!thrown.load()) std::this_thread::yield();
                       }),
               int);
  EXPECT_LT(count.load(), 1000000);
}

TEST(ThreadPool, ExceptionsOfAllThreadsLeaveOne) {
  constexpr int kThreads = 4;
  ThreadPool pool(kThreads);
  for (int round = 0; round < 100; ++round) {
    Rendezvous all(kThreads);
    std::string caught;
    try {
      pool.run(kThreads, [&](int task, int) {
        all.arrive();
        fail(ErrorKind::invalid_input, "task {}", task);
      });
    } catch (const Error& error) {
      caught = error.what();
    }
    EXPECT_EQ(caught.substr(0, 5), "task ");
  }
}

TEST(ThreadPool, AnExceptionOfAWorkerReachesTheCaller) {
  ThreadPool pool(2);
  for (int round = 0; round < 100; ++round) {
    Rendezvous both(2);
    EXPECT_THROW(pool.run(2,
                          [&](int, int worker) {
                            both.arrive();
                            if (worker == 1) throw std::string("from the other thread");
                          }),
                 std::string);
  }
}

TEST(ThreadPool, NestedExceptionsPassThrough) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.run(5,
                        [&](int, int) {
                          pool.run(2, [](int task, int) {
                            if (task == 1) throw std::logic_error("inner");
                          });
                        }),
               std::logic_error);
  int calls = 0;
  pool.run(1, [&](int, int) { ++calls; });
  EXPECT_EQ(calls, 1);
  // The caller is outside again: a region of its own is spread over threads.
  Rendezvous all(3);
  pool.run(3, [&](int, int) { all.arrive(); });
}

TEST(ThreadPool, RunningAllocatesNothing) {
  for (const ThreadPoolOptions& options : all_options()) {
    ThreadPool pool(3, options);
    std::atomic<int> sum{0};
    pool.run(10, [&](int task, int) { sum.fetch_add(task); });
    const long before = test::allocation_count();
    for (int round = 0; round < 500; ++round)
      pool.run(1 + round % 10, [&](int task, int) { sum.fetch_add(task); });
    EXPECT_EQ(test::allocation_count(), before);
  }
}

TEST(ThreadPool, PoolsComeAndGo) {
  for (const ThreadPoolOptions& options : all_options()) {
    for (int round = 0; round < 100; ++round) {
      ThreadPool pool(1 + round % 5, options);
      if (round % 3 != 0) pool.run(round % 4, [](int, int) {});
    }
  }
}

TEST(ThreadPool, SharedByItsOwners) {
  std::weak_ptr<ThreadPool> watch;
  {
    const auto pool = std::make_shared<ThreadPool>(2);
    watch = pool;
    const std::vector<std::shared_ptr<ThreadPool>> engines(3, pool);
    for (const auto& engine : engines) engine->run(4, [](int, int) {});
  }
  EXPECT_TRUE(watch.expired());
}

TEST(ThreadPool, WrongNumbersAreRefused) {
  for (const int threads : {0, -1, 1025}) {
    try {
      ThreadPool pool(threads);
      ADD_FAILURE() << threads;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
    }
  }
  ThreadPool pool(2);
  EXPECT_THROW(pool.run(-1, [](int, int) {}), Error);
}

TEST(ThreadPool, Complaint54_WorkersKeepToTheirCpusAndTheCallerIsLeftAlone) {
  const std::vector<int> mine = allowed_cpus();
  ASSERT_FALSE(mine.empty());
  const std::vector<int> last = {mine.back()};
  ThreadPool pool(2, {.spin = microseconds(0), .cpus = last});
  std::vector<std::vector<int>> seen(2);
  Rendezvous both(2);
  pool.run(2, [&](int, int worker) {
    both.arrive();
    seen[static_cast<std::size_t>(worker)] = allowed_cpus();
  });
  EXPECT_EQ(seen[0], mine);
  EXPECT_EQ(seen[1], last);
  // A set that does not exist is a wish that cannot be granted.
  ThreadPool other(2, {.spin = microseconds(0), .cpus = {100000}});
  other.run(4, [](int, int) {});
}

#ifndef PONDER_TEST_SANITIZED

std::atomic<bool> held{false};
std::atomic<bool> release{false};

void hold_thread(int) {
  held = true;
  const timespec pause = {0, 100000};
  while (!release.load()) nanosleep(&pause, nullptr);
}

TEST(ThreadPool, Complaint50_AThreadTheKernelDoesNotRunIsNotWaitedFor) {
  // A signal handler keeps the worker from running, as a used-up quota or a busy CPU would.
  struct sigaction action = {};
  struct sigaction old = {};
  action.sa_handler = hold_thread;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &old), 0);
  ThreadPool pool(2, {.spin = microseconds(0), .cpus = {}});
  pthread_t worker_thread{};
  Rendezvous both(2);
  pool.run(2, [&](int, int worker) {
    both.arrive();
    if (worker == 1) worker_thread = pthread_self();
  });
  held = false;
  release = false;
  ASSERT_EQ(pthread_kill(worker_thread, SIGUSR1), 0);
  while (!held.load()) std::this_thread::yield();
  for (int round = 0; round < 100; ++round) {
    int count = 0;  // the caller alone: no need to be atomic
    pool.run(50, [&](int, int worker) {
      EXPECT_EQ(worker, 0);
      ++count;
    });
    EXPECT_EQ(count, 50);
  }
  release = true;
  Rendezvous again(2);
  pool.run(2, [&](int, int) { again.arrive(); });
  sigaction(SIGUSR1, &old, nullptr);
}

// Exit status 0 when a pool too large for the address space is refused and a small one still works.
int refuse_a_large_pool() {
  std::ifstream statm("/proc/self/statm");
  unsigned long pages = 0;
  statm >> pages;
  const rlim_t limit = pages * static_cast<unsigned long>(sysconf(_SC_PAGESIZE)) + (rlim_t{96} << 20);
  const rlimit bounds = {limit, limit};
  if (setrlimit(RLIMIT_AS, &bounds) != 0) return 2;
  try {
    const ThreadPool pool(1000);
    return 3;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::no_memory) return 4;
    if (std::string(error.what()).find(" of 1000 threads") == std::string::npos) return 5;
  }
  ThreadPool small(2);
  std::atomic<int> count{0};
  small.run(8, [&](int, int) { count.fetch_add(1); });
  return count.load() == 8 ? 0 : 6;
}

TEST(ThreadPool, RefusedThreadsAreAnErrorNotACrash) {
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) _exit(refuse_a_large_pool());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

#endif  // PONDER_TEST_SANITIZED

}  // namespace
}  // namespace ponder
