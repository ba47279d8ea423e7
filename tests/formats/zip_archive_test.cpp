#include "formats/zip_archive.hpp"

#include "formats/support.hpp"
#include "formats/utf8.hpp"
#include "formats/zip_writer.hpp"

namespace ponder::formats {
namespace {

using test::as_bytes;
using test::expect_error;
using test::ZipWriter;

std::string text(const ZipEntry& entry) {
  return {reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()};
}

void refuse(const std::string& file, ErrorKind kind, std::vector<std::string> parts) {
  parts.emplace_back("f.zip");
  expect_error([&] { const ZipArchive archive(as_bytes(file), "f.zip"); }, kind, parts);
}

TEST(ZipArchive, ReadsStoredEntries) {
  ZipWriter writer;
  writer.add("b/two", "second");
  writer.add("a", "");
  const std::string file = writer.finish();
  const ZipArchive archive(as_bytes(file), "f.zip");
  ASSERT_EQ(archive.entries().size(), 2U);
  EXPECT_EQ(archive.entries()[0].name, "a");
  EXPECT_EQ(text(*archive.find("b/two")), "second");
  EXPECT_EQ(archive.find("two"), nullptr);
  archive.verify(*archive.find("b/two"));
  archive.verify(*archive.find("a"));
  const std::string empty = ZipWriter().finish();
  EXPECT_TRUE(ZipArchive(as_bytes(empty), "f.zip").entries().empty());
}

TEST(ZipArchive, ReadsZip64FieldsAndACommentThatLooksLikeAnEnd) {
  ZipWriter writer;
  writer.zip64_sizes = true;
  writer.zip64_end = true;
  writer.add("a", "contents");
  writer.comment = "PK\x05\x06 and more than twenty-two bytes of it";
  const std::string file = writer.finish();
  EXPECT_EQ(text(*ZipArchive(as_bytes(file), "f.zip").find("a")), "contents");
}

TEST(ZipArchive, CrcHasTheKnownCheckValue) {
  EXPECT_EQ(crc32(as_bytes("123456789")), 0xCBF43926U);  // the catalogue's check value for CRC-32
  EXPECT_EQ(crc32({}), 0U);
}

TEST(ZipArchive, AFlippedBitIsFound) {
  ZipWriter writer;
  writer.add("a", "contents");
  std::string file = writer.finish();
  file[file.find("contents")] ^= 1;
  const ZipArchive archive(as_bytes(file), "f.zip");
  expect_error([&] { archive.verify(*archive.find("a")); }, ErrorKind::bad_file,
               {"f.zip", "'a'", "checksum"});
}

TEST(ZipArchive, RefusesCompressedAndEncryptedEntriesByName) {
  ZipWriter compressed;
  compressed.method = 8;
  compressed.add("dir/squeezed", "x");
  refuse(compressed.finish(), ErrorKind::unsupported, {"'dir/squeezed'", "method 8"});
  for (const std::uint16_t flag : {1, 1 << 6, 1 << 13}) {
    ZipWriter encrypted;
    encrypted.flags = flag;
    encrypted.add("secret", "x");
    refuse(encrypted.finish(), ErrorKind::unsupported, {"'secret'", "encrypted"});
  }
}

TEST(ZipArchive, EachFieldWrongOnce) {
  const auto changed = [](auto change) {
    ZipWriter writer;
    writer.add("a", "first");
    writer.add("bb", "second");
    change(writer);
    return writer.finish();
  };
  const auto bad = [&](auto change, std::vector<std::string> parts) {
    refuse(changed(change), ErrorKind::bad_file, std::move(parts));
  };
  refuse("", ErrorKind::bad_file, {"0 bytes"});
  refuse("not a zip archive at all, but text", ErrorKind::bad_file, {"34 bytes", "torch.save"});
  bad([](ZipWriter& w) { w.entries[1].name = "a"; }, {"differs"});
  bad([](ZipWriter& w) { w.entries[1].central_size = 7; }, {"'bb'", "7"});
  bad([](ZipWriter& w) { w.entries[1].central_size = w.entries[1].central_stored = 1000; }, {"'bb'", "1000"});
  bad([](ZipWriter& w) { w.entries[1].central_offset = 0; }, {"'bb'", "differs"});
  bad([](ZipWriter& w) { w.entries[1].central_offset = 1; }, {"'bb'", "no header"});
  bad([](ZipWriter& w) { w.entries[1].central_offset = 0xFFFFFFF0; }, {"'bb'", "no header"});
  bad([](ZipWriter& w) { w.entries[1].central_offset = 0xFFFFFFFF; }, {"'bb'", "zip64"});
  bad([](ZipWriter& w) { w.end_count = 3; }, {"directory"});
  bad([](ZipWriter& w) { w.end_count = 1; }, {"after the last of 1"});
  bad([](ZipWriter& w) { w.end_count = 0xFFFF; }, {"65535 entries"});
  bad([](ZipWriter& w) { w.end_here = 1; }, {"split"});
  bad([](ZipWriter& w) { w.end_disk = 1; }, {"split"});
  bad([](ZipWriter& w) { w.end_offset = 0xFFFFFFF0; }, {"directory at byte 4294967280"});
  bad([](ZipWriter& w) { w.end_size = 0xFFFFFFF0; }, {"4294967280 bytes"});
  bad([](ZipWriter& w) { w.end_size = 10; }, {"cannot hold 2"});
  for (const std::uint64_t wrong : {std::uint64_t{1} << 40, std::uint64_t{1} << 63, UINT64_MAX}) {
    const std::string number = std::to_string(wrong);
    const auto with64 = [&](auto field) {
      return [&, field](ZipWriter& w) {
        w.zip64_end = true;
        w.*field = wrong;
      };
    };
    bad(with64(&ZipWriter::end64_at), {number});
    bad(with64(&ZipWriter::end64_offset), {number});
    bad(with64(&ZipWriter::end64_size), {number});
    bad(with64(&ZipWriter::end64_count), {});
    ZipWriter sizes;
    sizes.zip64_sizes = true;
    sizes.add("a", "x");
    sizes.entries[0].wide_size = wrong;
    sizes.entries[0].wide_stored = wrong;
    refuse(sizes.finish(), ErrorKind::bad_file, {"'a'", number});
    ZipWriter offset;
    offset.zip64_sizes = true;
    offset.add("a", "x");
    offset.entries[0].wide_offset = wrong;
    refuse(offset.finish(), ErrorKind::bad_file, {"'a'", number});
  }
}

TEST(ZipArchive, EntriesMayNotShareBytesOrNames) {
  ZipWriter twice;
  twice.add("a", "first");
  twice.add("a", "second");
  refuse(twice.finish(), ErrorKind::bad_file, {"'a'", "twice"});
  // Two records of one local entry: each would be read and checked again.
  ZipWriter shared;
  shared.add("a", "first");
  shared.add("a", "first");
  shared.entries[1].central_offset = 0;
  refuse(shared.finish(), ErrorKind::bad_file, {"share bytes"});
  // An entry inside another's contents.
  ZipWriter inner;
  inner.add("inner", "payload");
  const std::string nested = inner.finish();
  ZipWriter outer;
  outer.add("o", nested);
  outer.add("inner", "payload");
  outer.entries[1].central_offset = 30 + 1;
  refuse(outer.finish(), ErrorKind::bad_file, {"'o'", "'inner'", "share bytes"});
}

TEST(ZipArchive, NamesAreBounded) {
  ZipWriter longest;
  longest.add(std::string(1024, 'n'), "x");
  EXPECT_EQ(ZipArchive(as_bytes(longest.finish()), "f.zip").entries().size(), 1U);
  ZipWriter longer;
  longer.add(std::string(1025, 'n'), "x");
  refuse(longer.finish(), ErrorKind::bad_file, {"1025 bytes"});
  ZipWriter nameless;
  nameless.add("", "x");
  refuse(nameless.finish(), ErrorKind::bad_file, {"0 bytes"});
}

TEST(ZipArchive, EveryCutIsRefused) {
  ZipWriter writer;
  writer.zip64_end = true;
  writer.zip64_sizes = true;
  writer.add("a", "first");
  writer.add("b", "second");
  const std::string file = writer.finish();
  for (std::size_t kept = 0; kept < file.size(); ++kept)
    refuse(file.substr(0, kept), ErrorKind::bad_file, {});
}

TEST(Utf8, KnowsTheEdgesOfEveryRange) {
  for (const char* good :
       {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "aé中😀z"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x7F", "\xC2\xC0",
                          "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF", "\xE2\x82", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xF0\x9F\x98", "\xFF", "a\x80z"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
  }
}

}  // namespace
}  // namespace ponder::formats
