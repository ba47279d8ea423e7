// Reference-counted blocks of one size: pages of keys and values, and recurrent states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.hpp"

namespace ponder::engine {

struct BlockPoolStats {
  std::size_t in_use = 0;     // blocks somebody holds
  std::size_t peak = 0;       // most blocks in use at one time
  std::size_t allocated = 0;  // blocks backed by memory, in use or free
  std::size_t copies = 0;     // blocks copied because they were shared when written
};

class BlockPool;

// Shared ownership of one block; copying shares it. Not thread-safe: one engine, one thread.
class BlockRef {
 public:
  BlockRef() = default;
  BlockRef(const BlockRef& other) noexcept;
  BlockRef(BlockRef&& other) noexcept : pool_(other.pool_), index_(other.index_) { other.pool_ = nullptr; }
  BlockRef& operator=(BlockRef other) noexcept;
  ~BlockRef();

  explicit operator bool() const noexcept { return pool_ != nullptr; }
  std::byte* data() const noexcept;
  bool shared() const noexcept;

 private:
  friend class BlockPool;
  BlockRef(BlockPool* pool, std::size_t index) : pool_(pool), index_(index) {}
  BlockPool* pool_ = nullptr;
  std::size_t index_ = 0;
};

// Grows on demand up to `limit_bytes` and keeps freed blocks for reuse. Must outlive its references.
class BlockPool {
 public:
  // `what` names the blocks in messages. Throws Error(invalid_input) when block_bytes is 0.
  BlockPool(std::string what, std::size_t block_bytes, std::uint64_t limit_bytes);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // A zeroed block. Throws Error(no_memory) at the limit.
  BlockRef take();
  // Makes `ref` safe to write: a shared block is replaced by a copy of its own.
  void make_unique(BlockRef& ref);

  // Asked at the limit to let go of blocks; false: it has none. The blocks it frees may be of other pools.
  void on_full(std::function<bool()> free_some) { free_some_ = std::move(free_some); }

  std::size_t block_bytes() const noexcept { return block_bytes_; }
  const BlockPoolStats& stats() const noexcept { return stats_; }

 private:
  friend class BlockRef;
  std::size_t take_index();
  void release(std::size_t index) noexcept;

  std::string what_;
  std::size_t block_bytes_;
  std::uint64_t limit_bytes_;
  std::vector<AlignedBuffer<std::byte>> blocks_;
  std::vector<std::uint32_t> references_;  // per block
  std::vector<std::size_t> free_;
  BlockPoolStats stats_;
  std::function<bool()> free_some_;
};

}  // namespace ponder::engine
