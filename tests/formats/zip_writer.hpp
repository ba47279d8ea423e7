// Zip archives for tests, with every field open to being wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/zip_archive.hpp"

namespace ponder::formats::test {

class ZipWriter {
 public:
  struct Entry {
    std::string name;  // in the directory; the local header keeps the name given to add()
    std::uint32_t crc = 0;
    std::uint32_t central_size = 0;
    std::uint32_t central_stored = 0;
    std::uint32_t central_offset = 0;
    std::uint64_t wide_size = 0;
    std::uint64_t wide_stored = 0;
    std::uint64_t wide_offset = 0;
  };

  bool zip64_sizes = false;  // sizes and offsets in the extra field
  bool zip64_end = false;
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  std::string comment;
  std::vector<Entry> entries;
  // Written instead of the right value.
  std::optional<std::uint16_t> end_count, end_here;
  std::optional<std::uint32_t> end_size, end_offset;
  std::uint16_t end_disk = 0;
  std::optional<std::uint64_t> end64_at, end64_offset, end64_size, end64_count;

  void add(std::string_view name, std::string_view contents) {
    Entry entry;
    entry.name = name;
    entry.crc = crc32(std::as_bytes(std::span(contents)));
    entry.wide_size = entry.wide_stored = contents.size();
    entry.wide_offset = file_.size();
    entry.central_size = entry.central_stored =
        zip64_sizes ? UINT32_MAX : static_cast<std::uint32_t>(contents.size());
    entry.central_offset = zip64_sizes ? UINT32_MAX : static_cast<std::uint32_t>(file_.size());
    put32(0x04034B50);
    put16(20, flags, method, 0, 0);
    put32(entry.crc, static_cast<std::uint32_t>(contents.size()),
          static_cast<std::uint32_t>(contents.size()));
    put16(static_cast<std::uint16_t>(name.size()), 0);
    file_.append(name).append(contents);
    entries.push_back(std::move(entry));
  }

  std::string finish() {
    const std::uint64_t begin = file_.size();
    for (const Entry& entry : entries) put_record(entry);
    const std::uint64_t size = file_.size() - begin;
    if (zip64_end) {
      const std::uint64_t at = file_.size();
      put32(0x06064B50);
      put64(44);
      put16(45, 45);
      put32(0, 0);
      put64(end64_count.value_or(entries.size()));
      put64(end64_count.value_or(entries.size()));
      put64(end64_size.value_or(size));
      put64(end64_offset.value_or(begin));
      put32(0x07064B50, 0);
      put64(end64_at.value_or(at));
      put32(1);
    }
    put32(0x06054B50);
    const auto count = static_cast<std::uint16_t>(entries.size());
    put16(end_disk, end_disk, end_here.value_or(end_count.value_or(count)), end_count.value_or(count));
    put32(zip64_end ? UINT32_MAX : end_size.value_or(static_cast<std::uint32_t>(size)));
    put32(zip64_end ? UINT32_MAX : end_offset.value_or(static_cast<std::uint32_t>(begin)));
    put16(static_cast<std::uint16_t>(comment.size()));
    file_ += comment;
    return file_;
  }

 private:
  void put_record(const Entry& entry) {
    put32(0x02014B50);
    put16(20, 20, flags, method, 0, 0);
    put32(entry.crc, entry.central_stored, entry.central_size);
    put16(static_cast<std::uint16_t>(entry.name.size()), zip64_sizes ? 4 + 28 + 5 : 0, 0, 0, 0);
    put32(0, entry.central_offset);
    file_ += entry.name;
    if (!zip64_sizes) return;
    put16(0x5555, 1);  // another field first
    file_ += 'x';
    put16(1, 28);
    put64(entry.wide_size);
    put64(entry.wide_stored);
    put64(entry.wide_offset);
    put32(0);
  }

  template <class T>
  void put_bytes(T value) {
    file_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class... T>
  void put16(T... values) {
    (put_bytes(static_cast<std::uint16_t>(values)), ...);
  }
  template <class... T>
  void put32(T... values) {
    (put_bytes(static_cast<std::uint32_t>(values)), ...);
  }
  void put64(std::uint64_t value) { put_bytes(value); }

  std::string file_;
};

}  // namespace ponder::formats::test
