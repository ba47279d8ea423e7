// Working memory of a step: one buffer, sized once, handed out from the front and taken back as a whole.
//
// Nothing is allocated after construction and nothing is cleared: take() returns undefined contents. One
// arena belongs to one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

#include "base/aligned_buffer.hpp"
#include "base/error.hpp"

namespace ponder {

class ScratchArena {
 public:
  ScratchArena() = default;
  explicit ScratchArena(std::size_t capacity_bytes) : buffer_(capacity_bytes, Fill::none) {}

  // What take<T>(count) uses up, alignment included: add these up to size an arena. Fails with
  // ErrorKind::too_large when the size cannot be represented.
  template <class T>
  static std::size_t bytes_for(std::size_t count) {
    if (count > (PTRDIFF_MAX - kBufferAlignment) / sizeof(T)) {
      fail(ErrorKind::too_large, "scratch for {} elements of {} bytes: the size overflows", count, sizeof(T));
    }
    return (count * sizeof(T) + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  }

  // `count` elements at a 64-byte boundary, valid until a rewind() before them. An arena too small is a
  // mistake in its sizing: ErrorKind::internal, naming the sizes.
  template <class T>
  std::span<T> take(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<T>);
    static_assert(alignof(T) <= kBufferAlignment);
    const std::size_t needed = bytes_for<T>(count);
    if (needed > capacity() - used_) {
      fail(ErrorKind::internal, "scratch of {} bytes, {} in use, cannot give {} more", capacity(), used_,
           needed);
    }
    T* const first = reinterpret_cast<T*>(buffer_.data() + used_);
    used_ += needed;
    peak_ = std::max(peak_, used_);
    return {first, count};
  }

  std::size_t capacity() const { return buffer_.size() / kBufferAlignment * kBufferAlignment; }
  std::size_t used() const { return used_; }
  std::size_t peak() const { return peak_; }  // the most ever in use at once

  // A place to come back to. rewind() to a mark gives back all that was taken after it.
  std::size_t mark() const { return used_; }
  void rewind(std::size_t mark) {
    if (mark > used_) fail(ErrorKind::internal, "scratch rewound forward, from {} to {} bytes", used_, mark);
    used_ = mark;
  }

 private:
  AlignedBuffer<std::byte> buffer_;
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
};

// Gives back, at the end of a block, what was taken from the arena inside it. Scopes nest like blocks do.
class ScratchScope {
 public:
  explicit ScratchScope(ScratchArena& arena) : arena_(arena), mark_(arena.mark()) {}
  // Not rewind(): that may throw, and a scope that was already rewound past has nothing left to give back.
  ~ScratchScope() {
    if (arena_.used() > mark_) arena_.rewind(mark_);
  }
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

 private:
  ScratchArena& arena_;
  std::size_t mark_;
};

}  // namespace ponder
