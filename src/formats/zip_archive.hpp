// The directory of a zip file whose entries are stored, not compressed, as torch.save writes it; internal to
// this room. (PKWARE APPNOTE 6.3, the parts that concern one unsplit, unencrypted archive, with zip64.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ponder::formats {

// CRC-32 as zip uses it (reflected 0xEDB88320, all bits inverted before and after).
std::uint32_t crc32(std::span<const std::byte> bytes) noexcept;

struct ZipEntry {
  std::string_view name;             // points into the archive; any bytes
  std::span<const std::byte> bytes;  // contents, inside the archive
  std::uint32_t crc = 0;             // as recorded, not yet compared
};

class ZipArchive {
 public:
  // Throws bad_file for a damaged archive, unsupported for compressed or encrypted entries. No two entries
  // share a name or bytes, so working on every entry once costs no more than the archive's size.
  ZipArchive(std::span<const std::byte> bytes, std::string_view file);

  const std::vector<ZipEntry>& entries() const noexcept { return entries_; }  // sorted by name
  const ZipEntry* find(std::string_view name) const noexcept;

  // Throws bad_file when the contents do not match the recorded checksum.
  void verify(const ZipEntry& entry) const;

 private:
  std::string file_;
  std::vector<ZipEntry> entries_;
};

}  // namespace ponder::formats
