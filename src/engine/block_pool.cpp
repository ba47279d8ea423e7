#include "engine/block_pool.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace ponder::engine {

BlockRef::BlockRef(const BlockRef& other) noexcept : pool_(other.pool_), index_(other.index_) {
  if (pool_ != nullptr) ++pool_->references_[index_];
}

BlockRef& BlockRef::operator=(BlockRef other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(index_, other.index_);
  return *this;
}

BlockRef::~BlockRef() {
  if (pool_ != nullptr) pool_->release(index_);
}

std::byte* BlockRef::data() const noexcept {
  return pool_->blocks_[index_].data();
}

bool BlockRef::shared() const noexcept {
  return pool_->references_[index_] > 1;
}

BlockPool::BlockPool(std::string what, std::size_t block_bytes, std::uint64_t limit_bytes)
    : what_(std::move(what)), block_bytes_(block_bytes), limit_bytes_(limit_bytes) {
  if (block_bytes_ == 0) fail(ErrorKind::invalid_input, "{}: blocks of 0 bytes", what_);
}

std::size_t BlockPool::take_index() {
  const auto full = [this] {
    return (blocks_.size() + 1) * static_cast<std::uint64_t>(block_bytes_) > limit_bytes_;
  };
  while (free_.empty() && full() && free_some_ && free_some_()) {
  }
  if (free_.empty()) {
    if (full()) {
      fail(ErrorKind::no_memory, "{}: all {} blocks of {} bytes are in use and the limit is {} bytes", what_,
           blocks_.size(), block_bytes_, limit_bytes_);
    }
    blocks_.emplace_back(block_bytes_);
    references_.push_back(0);
    free_.reserve(blocks_.size());  // so that release() never allocates
    free_.push_back(blocks_.size() - 1);
    stats_.allocated = blocks_.size();
  }
  const std::size_t index = free_.back();
  free_.pop_back();
  references_[index] = 1;
  stats_.peak = std::max(stats_.peak, ++stats_.in_use);
  return index;
}

BlockRef BlockPool::take() {
  const std::size_t index = take_index();
  std::memset(blocks_[index].data(), 0, block_bytes_);
  return {this, index};
}

void BlockPool::make_unique(BlockRef& ref) {
  if (!ref.shared()) return;
  const std::size_t copy = take_index();
  std::memcpy(blocks_[copy].data(), ref.data(), block_bytes_);
  ++stats_.copies;
  ref = BlockRef(this, copy);
}

void BlockPool::release(std::size_t index) noexcept {
  if (--references_[index] != 0) return;
  free_.push_back(index);
  --stats_.in_use;
}

}  // namespace ponder::engine
