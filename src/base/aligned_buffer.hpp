// Memory for numbers: 64-byte aligned (a cache line, an AVX-512 register), owned by one holder, never
// resized.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace ponder {

inline constexpr std::size_t kBufferAlignment = 64;

enum class Fill {
  zero,  // every byte 0; a large buffer gets untouched zero pages from the kernel, so this costs nothing up
         // front
  none,  // undefined contents: the threads that write it first decide on which memory node it lies
};

enum class HugePages {
  no,
  yes,  // asks the kernel for 2 MiB pages where the buffer holds some; a wish, never an error
};

namespace detail {
// Fails with ErrorKind::no_memory, naming the size, when the machine or the address space cannot give it.
void* allocate_aligned(std::size_t count, std::size_t element_bytes, Fill fill, HugePages huge, void** block);
void free_aligned(void* block) noexcept;
}  // namespace detail

template <class T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(alignof(T) <= kBufferAlignment);

 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t count, Fill fill = Fill::zero, HugePages huge = HugePages::no)
      : data_(static_cast<T*>(detail::allocate_aligned(count, sizeof(T), fill, huge, &block_))),
        size_(count) {}
  AlignedBuffer(AlignedBuffer&& other) noexcept { swap(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    AlignedBuffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer() { detail::free_aligned(block_); }

  // nullptr when the size is 0.
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return size_ * sizeof(T); }
  bool empty() const noexcept { return size_ == 0; }

  T& operator[](std::size_t i) noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }

  std::span<T> span() noexcept { return {data_, size_}; }
  std::span<const T> span() const noexcept { return {data_, size_}; }

  void swap(AlignedBuffer& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

 private:
  void* block_ =
      nullptr;  // what to free; data_ may lie a few bytes into it. Before data_: set while that is.
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ponder
