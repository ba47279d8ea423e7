// Files that are there whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace ponder::cli {

// Writes beside `path` and puts the result in its place in one step, keeping the mode of a file that was
// there; a symbolic link is replaced, not followed. Throws Error(bad_file).
void write_whole_file(const std::filesystem::path& path, std::string_view text);

// Throws Error(bad_file) when write_whole_file() could not: before work whose result would be lost.
void require_writable(const std::filesystem::path& path);

}  // namespace ponder::cli
