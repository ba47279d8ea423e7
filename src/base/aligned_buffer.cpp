#include "base/aligned_buffer.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <sys/mman.h>
#include <unistd.h>

#include "base/checked_math.hpp"
#include "base/error.hpp"
#include "base/format_bytes.hpp"

namespace ponder::detail {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// From here on the C library maps fresh pages, which calloc knows to be zero already.
constexpr std::size_t kLazyZero = std::size_t{1} << 20;

std::size_t checked_bytes(std::size_t count, std::size_t element_bytes) {
  // Leaves room for the alignment slack below.
  constexpr std::size_t kMost =
      static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) - kHugePage;
  const auto bytes = checked_mul(count, element_bytes);
  if (!bytes || *bytes > kMost) {
    fail(ErrorKind::no_memory, "cannot allocate {} elements of {} bytes: more than the address space holds",
         count, element_bytes);
  }
  return *bytes;
}

void* align_up(void* pointer, std::size_t alignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const std::uintptr_t step = (alignment - address % alignment) % alignment;
  return static_cast<std::byte*>(pointer) + step;
}

void advise_huge(void* data, std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* const first = static_cast<std::byte*>(align_up(data, page));
  const auto skipped = static_cast<std::size_t>(first - static_cast<std::byte*>(data));
  const std::size_t whole = (bytes - skipped) / page * page;
  // Fails where huge pages are switched off: the buffer is as good without.
  if (whole > 0) static_cast<void>(madvise(first, whole, MADV_HUGEPAGE));
#else
  static_cast<void>(data);
  static_cast<void>(bytes);
#endif
}

}  // namespace

void* allocate_aligned(std::size_t count, std::size_t element_bytes, Fill fill, HugePages huge,
                       void** block) {
  *block = nullptr;
  const std::size_t bytes = checked_bytes(count, element_bytes);
  if (bytes == 0) return nullptr;
  const bool use_huge = huge == HugePages::yes && bytes >= 2 * kHugePage;
  const std::size_t alignment = use_huge ? kHugePage : kBufferAlignment;
  if (fill == Fill::zero && bytes >= kLazyZero) {
    *block = std::calloc(bytes + alignment - 1, 1);
  } else if (posix_memalign(block, alignment, bytes) != 0) {
    *block = nullptr;
  }
  if (*block == nullptr) fail(ErrorKind::no_memory, "cannot allocate {} of memory", format_bytes(bytes));
  void* const data = align_up(*block, alignment);
  if (use_huge) advise_huge(data, bytes);
  if (fill == Fill::zero && bytes < kLazyZero) std::memset(data, 0, bytes);
  return data;
}

void free_aligned(void* block) noexcept {
  std::free(block);
}

}  // namespace ponder::detail
