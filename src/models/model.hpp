// What the engine knows of a model: how much a sequence remembers, and how to run rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "ops/backend.hpp"

namespace ponder::models {

// Memory of one sequence. Both kinds start zeroed.
struct StateLayout {
  std::size_t page_bytes = 0;        // keys and values of all layers for ops::kPageRows positions
  std::size_t recurrent_floats = 0;  // everything that does not grow with the sequence

  // What only drafting reads, for ops::kPageRows positions; 0 for a model without a drafter. Kept for the
  // last draft_window positions and the first draft_sinks ones.
  std::size_t draft_page_bytes = 0;
  std::int64_t draft_window = 0;
  std::int64_t draft_sinks = 0;
};

// Rows of one sequence in a step: ids at positions [position, position + ids.size()). The pages that cover
// these positions and all earlier ones, and the recurrent block, are writable and belong to nobody else.
struct Segment {
  std::span<const std::int32_t> ids;
  std::int64_t position = 0;
  std::byte* const* pages = nullptr;
  float* recurrent = nullptr;
  // Null: this sequence does not draft. Pages outside the window and the first rows may be null.
  std::byte* const* draft_pages = nullptr;
  // The rows (at most ops::kHeldRows) are on probation: settle() says how many of them count.
  bool hold = false;
};

// `rows` mask rows behind a sequence of `position` rows, which they see; nothing of the sequence changes.
struct DraftSegment {
  std::int64_t position = 0;
  int rows = 0;
  std::byte* const* pages = nullptr;
  std::byte* const* draft_pages = nullptr;
};

// Called with the residual stream [rows][hidden] before the first layer (0) and after layer i (i + 1).
using LayerObserver = std::function<void(int layer, ops::ConstRows x, int rows)>;

// A model with its weights and the work space of one step; used by one engine.
class Model {
 public:
  virtual ~Model() = default;

  virtual const StateLayout& state_layout() const = 0;
  virtual int hidden_size() const = 0;
  virtual int vocab_size() const = 0;
  // Most rows of one step.
  virtual int max_rows() const = 0;

  // Runs all rows of all segments, at most max_rows() together, and moves their states on. Returns the
  // final-normed hidden rows in the order of the segments, valid until the next call.
  // Throws Error(invalid_input) for an id outside the vocabulary, before any state changes.
  virtual ops::ConstRows forward(std::span<const Segment> segments,
                                 const LayerObserver* observer = nullptr) = 0;

  // After a forward() with Segment::hold: the sequence goes on from its first `accepted` rows alone, to the
  // last bit as if the others had never been. `segment` is the one given to forward().
  virtual void settle(const Segment& segment, int accepted) = 0;

  // Final-normed hidden rows of mask rows; row i's greedy choice is a guess at the token i + 1 positions
  // behind the sequence's newest row's own. Only for a model with a drafter. Valid until the next call.
  virtual ops::ConstRows draft(std::span<const DraftSegment> segments) = 0;

  // out[r] = logits [vocab_size] of hidden row r.
  virtual void logits(ops::ConstRows hidden, int rows, ops::Rows out) = 0;

  // Greedy choice among ids < limit that are not banned (a bit set, or null); see Backend::masked_argmax.
  virtual void argmax(ops::ConstRows hidden, int rows, std::int64_t limit, const std::uint64_t* banned,
                      std::int32_t* ids) = 0;
};

}  // namespace ponder::models
