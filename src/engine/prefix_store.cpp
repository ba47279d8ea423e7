#include "engine/prefix_store.hpp"

#include <algorithm>

namespace ponder::engine {

struct PrefixStore::Node {
  std::vector<std::int32_t> ids;  // one page; none at the root
  Node* parent = nullptr;
  std::vector<std::unique_ptr<Node>> children;
  std::optional<Sequence> snapshot;
  std::uint64_t used = 0;
};

PrefixStore::PrefixStore(Engine& engine, std::uint64_t limit_bytes)
    : engine_(engine), limit_bytes_(limit_bytes), root_(std::make_unique<Node>()) {
  // Snapshots are the first to go when the caches are full.
  engine_.on_full([this] { return drop_oldest(); });
}

PrefixStore::~PrefixStore() {
  engine_.on_full({});
}

PrefixStore::Node* PrefixStore::child(Node& node, std::span<const std::int32_t> page) const {
  for (const auto& next : node.children) {
    if (std::equal(page.begin(), page.end(), next->ids.begin(), next->ids.end())) return next.get();
  }
  return nullptr;
}

Sequence PrefixStore::find(std::span<const std::int32_t> ids) {
  constexpr auto page = static_cast<std::size_t>(ops::kPageRows);
  if (!enabled()) return engine_.new_sequence();
  ++stats_.lookups;
  Node* best = nullptr;
  Node* node = root_.get();
  for (std::size_t at = 0; at + page <= ids.size(); at += page) {
    node = child(*node, ids.subspan(at, page));
    if (node == nullptr) break;
    if (node->snapshot) best = node;
  }
  if (best == nullptr) return engine_.new_sequence();
  ++stats_.hits;
  stats_.reused_tokens += static_cast<std::uint64_t>(best->snapshot->size());
  best->used = ++clock_;
  return best->snapshot->fork();
}

void PrefixStore::put(std::span<const std::int32_t> ids, const Sequence& sequence) {
  constexpr auto page = static_cast<std::size_t>(ops::kPageRows);
  if (!enabled() || ids.empty() || ids.size() % page != 0) return;
  if (sequence.held() != 0 || sequence.size() != static_cast<std::int64_t>(ids.size())) return;
  std::uint64_t fresh = 0;
  Node* node = root_.get();
  for (std::size_t at = 0; at < ids.size(); at += page) {
    Node* next = child(*node, ids.subspan(at, page));
    if (next == nullptr) {
      auto made = std::make_unique<Node>();
      made->ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(at),
                       ids.begin() + static_cast<std::ptrdiff_t>(at + page));
      made->parent = node;
      next = made.get();
      node->children.push_back(std::move(made));
      fresh += engine_.page_bytes();
    }
    node = next;
  }
  node->used = ++clock_;
  stats_.bytes += fresh;
  if (node->snapshot) return;
  node->snapshot = sequence.fork();
  stats_.bytes += engine_.state_bytes();
  ++stats_.snapshots;
  while (stats_.bytes > limit_bytes_ && drop_oldest()) {
  }
}

PrefixStore::Node* PrefixStore::oldest(Node& node) const {
  Node* best = node.snapshot ? &node : nullptr;
  for (const auto& next : node.children) {
    Node* other = oldest(*next);
    if (other != nullptr && (best == nullptr || other->used < best->used)) best = other;
  }
  return best;
}

// Takes the snapshot out, and every node that leads to none any more.
void PrefixStore::remove(Node& gone) {
  gone.snapshot.reset();
  stats_.bytes -= engine_.state_bytes();
  --stats_.snapshots;
  Node* node = &gone;
  while (node->parent != nullptr && node->children.empty() && !node->snapshot) {
    Node* parent = node->parent;
    std::erase_if(parent->children, [node](const auto& next) { return next.get() == node; });
    stats_.bytes -= engine_.page_bytes();
    node = parent;
  }
}

bool PrefixStore::drop_oldest() {
  Node* node = oldest(*root_);
  if (node == nullptr) return false;
  remove(*node);
  ++stats_.dropped;
  return true;
}

void PrefixStore::clear() {
  while (Node* node = oldest(*root_)) remove(*node);
}

}  // namespace ponder::engine
