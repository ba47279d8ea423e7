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
};

// Rows of one sequence in a step: ids at positions [position, position + ids.size()). The pages that cover
// these positions and all earlier ones, and the recurrent block, are writable and belong to nobody else.
struct Segment {
  std::span<const std::int32_t> ids;
  std::int64_t position = 0;
  std::byte* const* pages = nullptr;
  float* recurrent = nullptr;
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

  // out[r] = logits [vocab_size] of hidden row r.
  virtual void logits(ops::ConstRows hidden, int rows, ops::Rows out) = 0;

  // Greedy choice among ids < limit that are not banned (a bit set, or null); see Backend::masked_argmax.
  virtual void argmax(ops::ConstRows hidden, int rows, std::int64_t limit, const std::uint64_t* banned,
                      std::int32_t* ids) = 0;
};

}  // namespace ponder::models
