// The table of live mappings that the SIGBUS handler reads; used by MappedFile alone.
#pragma once

#include <cstddef>
#include <string>

namespace ponder::detail {

// Remembers [data, data + size) and the complete line to print when reading it faults. Does nothing when the
// table is full or memory is short.
void register_mapping(const void* data, std::size_t size, const std::string& line) noexcept;
void forget_mapping(const void* data) noexcept;

}  // namespace ponder::detail
