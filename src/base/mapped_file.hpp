// A file mapped read-only: weights stay on disk until they are used.
//
// If somebody shortens the file while it is mapped, reading a page past its new end raises SIGBUS; no mapping
// can prevent that. Two things keep it from being a silent death: check_unchanged(), called before work
// starts, turns a shortened, rewritten or replaced file into an Error; and the command-line program calls
// install_mapping_fault_handler(), which turns the remaining window into one line and exit status 1.
// Replacing a file by renaming another over it is harmless to the mapping, which keeps the old contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace ponder {

class MappedFile {
 public:
  enum class Advice { normal, sequential, random, will_need, dont_need };

  // Throws bad_file, naming the path, when it is missing, unreadable, empty or anything but a regular file
  // (links are followed; pipes and devices are refused without being opened).
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // The whole file, page-aligned. Valid while this object (or the one it was moved into) lives.
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  std::uint64_t size() const noexcept { return size_; }
  // As given to the constructor, for messages.
  const std::string& path() const noexcept { return path_; }

  // A hint for [offset, offset + length), widened to pages and cut at the end of the file; never an error.
  void advise(Advice advice, std::size_t offset = 0, std::size_t length = SIZE_MAX) const noexcept;

  // Whether the path no longer names the file that was mapped, or its size or modification time differ.
  bool changed() const { return !difference().empty(); }
  // Throws bad_file saying what changed.
  void check_unchanged() const;

 private:
  struct Identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t size = 0;
    std::int64_t modified_s = 0;
    std::int64_t modified_ns = 0;
  };

  std::string difference() const;
  void release() noexcept;

  std::string path_;
  std::string absolute_path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Identity identity_;
};

// From now on a SIGBUS inside a live MappedFile writes one line naming the file to stderr and ends the
// process with status 1; any other SIGBUS gets the default action. For a program's main(), never for a
// library's user. Mappings past the first 4096 alive at once are not covered.
void install_mapping_fault_handler();

}  // namespace ponder
