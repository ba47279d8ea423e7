#include "formats/zip_archive.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace ponder::formats {
namespace {

constexpr std::uint32_t local_signature = 0x04034B50;
constexpr std::uint32_t central_signature = 0x02014B50;
constexpr std::uint32_t end_signature = 0x06054B50;
constexpr std::uint32_t end64_signature = 0x06064B50;
constexpr std::uint32_t locator64_signature = 0x07064B50;
constexpr std::size_t local_size = 30;
constexpr std::size_t central_size = 46;
constexpr std::size_t end_size = 22;
constexpr std::size_t end64_size = 56;
constexpr std::size_t locator64_size = 20;
constexpr std::uint16_t zip64_extra = 1;
constexpr std::size_t max_name = 1024;
constexpr std::uint16_t encrypted_flags = 1U | (1U << 6) | (1U << 13);

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1U) != 0 ? 0xEDB88320U : 0U);
    table[i] = value;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> crc_table = make_crc_table();

// Reads at an offset the caller has checked to be inside.
template <class T>
T read(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
};

struct Record {
  ZipEntry entry;
  std::uint64_t begin = 0;  // of the local header
  std::uint64_t end = 0;    // of the contents
};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view file)
      : bytes_(bytes), file_(printable(file, 4096)) {}

  std::vector<ZipEntry> read_all() {
    const Directory directory = find_directory();
    std::vector<Record> records;
    records.reserve(directory.count);
    const std::span<const std::byte> list = bytes_.subspan(directory.offset, directory.size);
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < directory.count; ++i)
      records.push_back(read_record(list, at, directory.offset));
    if (at != list.size()) {
      damaged("its directory has {} bytes after the last of {} entries", list.size() - at, directory.count);
    }
    check_disjoint(records);
    std::vector<ZipEntry> entries;
    entries.reserve(records.size());
    for (const Record& record : records) entries.push_back(record.entry);
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    const auto twice = std::adjacent_find(entries.begin(), entries.end(),
                                          [](const auto& a, const auto& b) { return a.name == b.name; });
    if (twice != entries.end()) damaged("the entry '{}' occurs twice", printable(twice->name));
    return entries;
  }

 private:
  template <class... Args>
  [[noreturn]] void damaged(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::bad_file, "{}: damaged zip archive: {}", file_,
         fmt::format(format, std::forward<Args>(args)...));
  }

  // The end record is followed by nothing but its comment, of at most 64 KiB.
  std::size_t find_end_record() const {
    const std::size_t furthest = end_size + UINT16_MAX;
    const std::size_t first = bytes_.size() > furthest ? bytes_.size() - furthest : 0;
    for (std::size_t at = bytes_.size() < end_size ? 0 : bytes_.size() - end_size + 1; at-- > first;) {
      if (read<std::uint32_t>(bytes_, at) != end_signature) continue;
      if (at + end_size + read<std::uint16_t>(bytes_, at + 20) == bytes_.size()) return at;
    }
    fail(
        ErrorKind::bad_file,
        "{}: no zip archive's end in its {} bytes: cut short, or not written by torch.save in its zip format",
        file_, bytes_.size());
  }

  Directory find_directory() const {
    const std::size_t end = find_end_record();
    Directory found;
    std::uint32_t this_disk = read<std::uint16_t>(bytes_, end + 4);
    std::uint32_t first_disk = read<std::uint16_t>(bytes_, end + 6);
    std::uint64_t here = read<std::uint16_t>(bytes_, end + 8);
    found.count = read<std::uint16_t>(bytes_, end + 10);
    found.size = read<std::uint32_t>(bytes_, end + 12);
    found.offset = read<std::uint32_t>(bytes_, end + 16);
    std::uint64_t limit = end;
    if (end >= locator64_size && read<std::uint32_t>(bytes_, end - locator64_size) == locator64_signature) {
      const std::size_t locator = end - locator64_size;
      const auto at = read<std::uint64_t>(bytes_, locator + 8);
      if (at > locator || locator - at < end64_size || read<std::uint32_t>(bytes_, at) != end64_signature) {
        damaged("its zip64 end record is not at byte {}", at);
      }
      this_disk = read<std::uint32_t>(bytes_, at + 16);
      first_disk = read<std::uint32_t>(bytes_, at + 20);
      here = read<std::uint64_t>(bytes_, at + 24);
      found.count = read<std::uint64_t>(bytes_, at + 32);
      found.size = read<std::uint64_t>(bytes_, at + 40);
      found.offset = read<std::uint64_t>(bytes_, at + 48);
      limit = at;
    }
    if (this_disk != 0 || first_disk != 0 || here != found.count)
      damaged("it is one part of a split archive");
    if (found.offset > limit || found.size > limit - found.offset) {
      damaged("its directory at byte {} with {} bytes does not lie before byte {}", found.offset, found.size,
              limit);
    }
    if (found.count > found.size / central_size) {
      damaged("its directory of {} bytes cannot hold {} entries", found.size, found.count);
    }
    return found;
  }

  // Reads the directory record at list[at] and moves `at` past it. Contents must end before `limit`.
  Record read_record(std::span<const std::byte> list, std::size_t& at, std::uint64_t limit) const {
    if (list.size() - at < central_size || read<std::uint32_t>(list, at) != central_signature) {
      damaged("no directory record at byte {} of the directory", at);
    }
    const auto flags = read<std::uint16_t>(list, at + 8);
    const auto method = read<std::uint16_t>(list, at + 10);
    const std::size_t name_size = read<std::uint16_t>(list, at + 28);
    const std::size_t extra_size = read<std::uint16_t>(list, at + 30);
    const std::size_t comment_size = read<std::uint16_t>(list, at + 32);
    const std::size_t record_size = central_size + name_size + extra_size + comment_size;
    if (record_size > list.size() - at) damaged("the directory record at byte {} is cut short", at);
    Record record;
    record.entry.crc = read<std::uint32_t>(list, at + 16);
    record.entry.name = as_text(list.subspan(at + central_size, name_size));
    const std::string shown = printable(record.entry.name);
    if (name_size == 0 || name_size > max_name) {
      damaged("the entry '{}' has a name of {} bytes, expected 1 to {}", shown, name_size, max_name);
    }
    if ((flags & encrypted_flags) != 0)
      fail(ErrorKind::unsupported, "{}: zip entry '{}' is encrypted", file_, shown);
    if (method != 0) {
      fail(ErrorKind::unsupported,
           "{}: zip entry '{}' is compressed (method {}), expected stored as torch.save does", file_, shown,
           method);
    }
    std::array<std::uint64_t, 3> fields{read<std::uint32_t>(list, at + 24),
                                        read<std::uint32_t>(list, at + 20),
                                        read<std::uint32_t>(list, at + 42)};
    widen(fields, list.subspan(at + central_size + name_size, extra_size), shown);
    const auto [size, stored_size, begin] = fields;
    if (size != stored_size)
      damaged("the entry '{}' is stored, but has sizes {} and {}", shown, size, stored_size);
    locate(record, begin, size, limit, shown);
    at += record_size;
    return record;
  }

  // Fields that do not fit 32 bits are all ones, and stand in the zip64 extra field in this order.
  void widen(std::array<std::uint64_t, 3>& fields, std::span<const std::byte> extra,
             const std::string& shown) const {
    const auto is_wide = [](std::uint64_t v) { return v == UINT32_MAX; };
    if (std::none_of(fields.begin(), fields.end(), is_wide)) return;
    while (extra.size() >= 4) {
      const auto id = read<std::uint16_t>(extra, 0);
      const std::size_t size = read<std::uint16_t>(extra, 2);
      if (size > extra.size() - 4) break;
      std::span<const std::byte> values = extra.subspan(4, size);
      extra = extra.subspan(4 + size);
      if (id != zip64_extra) continue;
      for (std::uint64_t& field : fields) {
        if (!is_wide(field)) continue;
        if (values.size() < 8) damaged("the entry '{}' has a zip64 field of only {} bytes", shown, size);
        field = read<std::uint64_t>(values, 0);
        values = values.subspan(8);
      }
      return;
    }
    damaged("the entry '{}' has 64-bit sizes without a zip64 field", shown);
  }

  // Follows the record to its local header, whose name and kind must agree, and to the contents behind it.
  void locate(Record& record, std::uint64_t begin, std::uint64_t size, std::uint64_t limit,
              const std::string& shown) const {
    if (begin > limit || limit - begin < local_size ||
        read<std::uint32_t>(bytes_, begin) != local_signature) {
      damaged("the entry '{}' has no header at byte {}", shown, begin);
    }
    const auto flags = read<std::uint16_t>(bytes_, begin + 6);
    const auto method = read<std::uint16_t>(bytes_, begin + 8);
    const std::size_t name_size = read<std::uint16_t>(bytes_, begin + 26);
    const std::size_t skipped = name_size + read<std::uint16_t>(bytes_, begin + 28);
    const std::uint64_t room = limit - begin - local_size;
    if (skipped > room || size > room - skipped) {
      damaged("the entry '{}' at byte {} with {} bytes does not end before the directory at {}", shown, begin,
              size, limit);
    }
    if ((flags & encrypted_flags) != 0 || method != 0 ||
        as_text(bytes_.subspan(begin + local_size, name_size)) != record.entry.name) {
      damaged("the entry '{}' differs between the directory and its header at byte {}", shown, begin);
    }
    record.entry.bytes = bytes_.subspan(begin + local_size + skipped, size);
    record.begin = begin;
    record.end = begin + local_size + skipped + size;
  }

  void check_disjoint(std::vector<Record>& records) const {
    std::sort(records.begin(), records.end(),
              [](const Record& a, const Record& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < records.size(); ++i) {
      if (records[i].begin >= records[i - 1].end) continue;
      damaged("the entries '{}' and '{}' share bytes", printable(records[i - 1].entry.name),
              printable(records[i].entry.name));
    }
  }

  std::span<const std::byte> bytes_;
  std::string file_;
};

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes) noexcept {
  std::uint32_t crc = UINT32_MAX;
  for (const std::byte byte : bytes) {
    crc = crc_table[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFFU] ^ (crc >> 8);
  }
  return ~crc;
}

ZipArchive::ZipArchive(std::span<const std::byte> bytes, std::string_view file)
    : file_(printable(file, 4096)), entries_(Reader(bytes, file).read_all()) {}

const ZipEntry* ZipArchive::find(std::string_view name) const noexcept {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                                   [](const ZipEntry& entry, std::string_view n) { return entry.name < n; });
  return at != entries_.end() && at->name == name ? &*at : nullptr;
}

void ZipArchive::verify(const ZipEntry& entry) const {
  const std::uint32_t actual = crc32(entry.bytes);
  if (actual == entry.crc) return;
  fail(ErrorKind::bad_file, "{}: zip entry '{}' is damaged: its checksum is {:08x}, expected {:08x}", file_,
       printable(entry.name), actual, entry.crc);
}

}  // namespace ponder::formats
