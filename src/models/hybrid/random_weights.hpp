// Weights of a configuration without a checkpoint, for measuring speed: random, but of sizes that keep every
// activation finite.
#pragma once

#include <cstdint>

#include "models/hybrid/drafter.hpp"
#include "models/hybrid/weights.hpp"

namespace ponder::hybrid {

// What make_random_weights will allocate. Throws Error(too_large) past 64 bits.
MemoryNeeds estimate_random_memory(const Config& config, TypeChoice type);

// The same weights for the same seed. Nothing chosen means bf16, as published checkpoints are stored.
Weights make_random_weights(const Config& config, ops::Backend& backend, TypeChoice type, std::uint64_t seed);

// A drafter of a configuration, whose guesses are worth nothing. Throw as check_draftable().
MemoryNeeds estimate_random_drafter_memory(const Config& config, TypeChoice type);
Drafter make_random_drafter(const Config& config, ops::Backend& backend, TypeChoice type, std::uint64_t seed);

}  // namespace ponder::hybrid
