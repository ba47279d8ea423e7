// Snapshots of sequences by the tokens they were fed, so that prompts which begin alike are computed once.
//
// A radix tree over token ids, one page of ids a node. A snapshot is a fork: pages by reference, the
// recurrent block as it was at that page border. Chunks of every recurrence start at page borders, so going
// on from a snapshot gives the bits that feeding everything gives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine.hpp"

namespace ponder::engine {

struct PrefixStoreStats {
  std::uint64_t lookups = 0;
  std::uint64_t hits = 0;           // lookups that found something
  std::uint64_t reused_tokens = 0;  // tokens that hits saved
  std::uint64_t snapshots = 0;      // held now
  std::uint64_t dropped = 0;        // let go for lack of room
  std::uint64_t bytes = 0;          // states and pages that snapshots hold, shared pages once
};

// Belongs to one engine and must not outlive it; used from the engine's thread.
class PrefixStore {
 public:
  // Least recently used snapshots are dropped to stay within `limit_bytes`; 0 stores nothing.
  PrefixStore(Engine& engine, std::uint64_t limit_bytes);
  ~PrefixStore();
  PrefixStore(const PrefixStore&) = delete;
  PrefixStore& operator=(const PrefixStore&) = delete;

  bool enabled() const noexcept { return limit_bytes_ > 0; }
  // A fork of the longest snapshot whose tokens `ids` begin with; an empty sequence when there is none.
  Sequence find(std::span<const std::int32_t> ids);
  // Keeps a fork of `sequence`, which was fed exactly `ids`, whole pages of them; anything else is not kept.
  void put(std::span<const std::int32_t> ids, const Sequence& sequence);
  // Drops the least recently used snapshot; false when there is none.
  bool drop_oldest();
  void clear();

  const PrefixStoreStats& stats() const noexcept { return stats_; }

 private:
  struct Node;

  Node* child(Node& node, std::span<const std::int32_t> page) const;
  Node* oldest(Node& node) const;
  void remove(Node& node);

  Engine& engine_;
  std::uint64_t limit_bytes_;
  std::uint64_t clock_ = 0;
  std::unique_ptr<Node> root_;
  PrefixStoreStats stats_;
};

}  // namespace ponder::engine
