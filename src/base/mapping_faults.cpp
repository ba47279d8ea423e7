#include "base/mapping_faults.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <new>

#include <unistd.h>

#include "base/mapped_file.hpp"

namespace ponder {
namespace {

// A signal handler can reach nothing but globals, may not allocate or lock, and must see whole entries: a
// slot is live while `line` is set, and its other fields are written before that.
struct Slot {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<std::size_t> length{0};
  std::atomic<char*> line{nullptr};
};

constexpr std::size_t slot_count = 4096;
constinit std::array<Slot, slot_count> slots;
constinit std::mutex slots_mutex;  // writers only

void on_bus_error(int signal_number, siginfo_t* info, void* /*context*/) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Slot& slot : slots) {
    const char* line = slot.line.load(std::memory_order_acquire);
    // si_code > 0: raised by the kernel for an access, so that si_addr is an address.
    if (line == nullptr || info->si_code <= 0) continue;
    if (address < slot.begin.load(std::memory_order_relaxed)) continue;
    if (address >= slot.end.load(std::memory_order_relaxed)) continue;
    std::size_t left = slot.length.load(std::memory_order_relaxed);
    while (left > 0) {
      const ssize_t written = ::write(STDERR_FILENO, line, left);
      if (written <= 0) break;
      line += written;
      left -= static_cast<std::size_t>(written);
    }
    ::_exit(1);
  }
  // Not ours: let the default action take it, as soon as this handler returns.
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

}  // namespace

namespace detail {

void register_mapping(const void* data, std::size_t size, const std::string& line) noexcept {
  char* copy = new (std::nothrow) char[line.size()];
  if (copy == nullptr) return;
  std::copy_n(line.data(), line.size(), copy);
  // The kernel maps whole pages: a fault is reported anywhere up to the end of the last one.
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::scoped_lock lock(slots_mutex);
  for (Slot& slot : slots) {
    if (slot.line.load(std::memory_order_relaxed) != nullptr) continue;
    slot.begin.store(begin, std::memory_order_relaxed);
    slot.end.store((begin + size + page - 1) / page * page, std::memory_order_relaxed);
    slot.length.store(line.size(), std::memory_order_relaxed);
    slot.line.store(copy, std::memory_order_release);
    return;
  }
  delete[] copy;
}

void forget_mapping(const void* data) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::scoped_lock lock(slots_mutex);
  for (Slot& slot : slots) {
    if (slot.line.load(std::memory_order_relaxed) == nullptr) continue;
    if (slot.begin.load(std::memory_order_relaxed) != begin) continue;
    delete[] slot.line.exchange(nullptr, std::memory_order_acq_rel);
    return;
  }
}

}  // namespace detail

void install_mapping_fault_handler() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace ponder
