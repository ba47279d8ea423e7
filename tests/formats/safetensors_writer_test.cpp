#include <algorithm>
#include <bit>
#include <csignal>
#include <random>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "formats/safetensors.hpp"
#include "formats/safetensors_dtypes.hpp"
#include "formats/support.hpp"

namespace ponder::formats {
namespace {

using nlohmann::json;
using test::as_bytes;
using test::expect_error;
using test::read_file;
using test::TempFolder;
using test::write_file;

std::vector<TensorData> some_tensors() {
  return {{"b", DType::u8, {3}, as_bytes("xyz")},
          {"z", DType::f32, {1, 1}, as_bytes("zzzz")},
          {"a", DType::f32, {2}, as_bytes("aaaabbbb")},
          {"half", DType::bf16, {}, as_bytes("hh")},
          {"none", DType::f64, {0, 5}, {}}};
}

// The written bytes, taken apart by another JSON reader: (header, data).
std::pair<json, std::string> take_apart(const std::filesystem::path& path) {
  const std::string file = read_file(path);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  return {json::parse(file.substr(8, length)), file.substr(8 + length)};
}

TEST(SafetensorsWriter, WidestElementsComeFirstThenNames) {
  const TempFolder folder;
  write_safetensors(folder / "w.safetensors", some_tensors(), {{"k", "v\"\n"}, {"format", "pt"}});
  const auto [header, data] = take_apart(folder / "w.safetensors");
  EXPECT_EQ(data, "aaaabbbbzzzzhhxyz");
  EXPECT_EQ(header["__metadata__"], (json{{"format", "pt"}, {"k", "v\"\n"}}));
  EXPECT_EQ(header["none"], (json{{"dtype", "F64"}, {"shape", {0, 5}}, {"data_offsets", {0, 0}}}));
  EXPECT_EQ(header["a"], (json{{"dtype", "F32"}, {"shape", {2}}, {"data_offsets", {0, 8}}}));
  EXPECT_EQ(header["half"], (json{{"dtype", "BF16"}, {"shape", json::array()}, {"data_offsets", {12, 14}}}));
  EXPECT_EQ(header["b"], (json{{"dtype", "U8"}, {"shape", {3}}, {"data_offsets", {14, 17}}}));
}

TEST(SafetensorsWriter, TheGivenOrderCanBeKept) {
  const TempFolder folder;
  write_safetensors(folder / "w.safetensors", some_tensors(), {}, TensorOrder::as_given);
  const auto [header, data] = take_apart(folder / "w.safetensors");
  EXPECT_EQ(data, "xyzzzzzaaaabbbbhh");
  EXPECT_FALSE(header.contains("__metadata__"));
  const Checkpoint checkpoint = open_safetensors(folder / "w.safetensors");
  EXPECT_EQ(checkpoint.tensors()[0].name, "b");
  EXPECT_EQ(checkpoint.tensors()[4].name, "none");
}

TEST(SafetensorsWriter, TheSameTensorsGiveTheSameBytes) {
  const TempFolder folder;
  std::vector<TensorData> tensors = some_tensors();
  write_safetensors(folder / "a.safetensors", tensors);
  std::reverse(tensors.begin(), tensors.end());
  write_safetensors(folder / "b.safetensors", tensors);
  EXPECT_EQ(read_file(folder / "a.safetensors"), read_file(folder / "b.safetensors"));
}

TEST(SafetensorsWriter, ReplacesWholeFilesAndLeavesNothingBehind) {
  const TempFolder folder;
  write_file(folder / "w.safetensors", "old");
  const MappedFile old(folder / "w.safetensors");
  write_safetensors(folder / "w.safetensors", some_tensors());
  EXPECT_EQ(open_safetensors(folder / "w.safetensors").size(), 5U);
  EXPECT_EQ(std::to_integer<char>(old.bytes()[0]), 'o');  // a mapping of the old file keeps its contents
  struct stat status {};
  ASSERT_EQ(::stat((folder / "w.safetensors").c_str(), &status), 0);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(status.st_mode & 0777U, 0666U & ~mask);
  std::filesystem::create_directory(folder / "taken.safetensors");
  expect_error([&] { write_safetensors(folder / "taken.safetensors", some_tensors()); }, ErrorKind::bad_file,
               {"taken.safetensors"});
  expect_error([&] { write_safetensors(folder / "absent" / "w.safetensors", some_tensors()); },
               ErrorKind::bad_file, {"absent/w.safetensors", "No such file"});
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    left.insert(entry.path().filename());
  EXPECT_EQ(left, (std::set<std::string>{"w.safetensors", "taken.safetensors"}));
}

// A limit on file sizes stands in for a full disk.
TEST(SafetensorsWriter, AWriteThatFailsLeavesTheOldFileAndNothingElse) {
  const TempFolder folder;
  write_file(folder / "w.safetensors", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit tight{256, before.rlim_max};
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const std::string large(10'000, 'x');
  const TensorData tensor{"a", DType::u8, {10'000}, as_bytes(large)};
  expect_error([&] { write_safetensors(folder / "w.safetensors", std::span(&tensor, 1)); },
               ErrorKind::bad_file, {"w.safetensors", "cannot be written", "File too large"});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(folder / "w.safetensors"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(SafetensorsWriter, RefusesWhatNoFileCanHold) {
  const TempFolder folder;
  const auto refuse = [&](std::vector<TensorData> tensors, const std::vector<std::string>& parts) {
    expect_error([&] { write_safetensors(folder / "w.safetensors", tensors); }, ErrorKind::invalid_input,
                 parts);
    EXPECT_FALSE(std::filesystem::exists(folder / "w.safetensors"));
  };
  refuse({{"a", DType::u8, {2}, as_bytes("x")}}, {"'a'", "1 bytes", "u8", "[2]"});
  refuse({{"a", DType::u8, {-1}, as_bytes("x")}}, {"'a'", "[-1]"});
  refuse({{"a", DType::f4, {1}, as_bytes("x")}}, {"'a'", "f4"});
  refuse({{"a", DType::u8, {1}, as_bytes("x")}, {"a", DType::u8, {1}, as_bytes("x")}}, {"'a'", "twice"});
  refuse({{"__metadata__", DType::u8, {1}, as_bytes("x")}}, {"__metadata__"});
  refuse({{"\xFF", DType::u8, {1}, as_bytes("x")}}, {"\\xff", "UTF-8"});
}

// Any set of tensors comes back as it was, aligned to its elements, in either order.
RC_GTEST_PROP(SafetensorsWriter, WhatIsWrittenIsRead, ()) {
  const auto names = *rc::gen::unique<std::vector<std::string>>(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("abc.0\"\\\n\x01 /"))));
  std::vector<std::string> bytes;
  std::vector<TensorData> tensors;
  for (const std::string& name : names) {
    const DType dtype =
        safetensors_dtypes[*rc::gen::inRange<std::size_t>(0, safetensors_dtypes.size())].second;
    std::vector<std::int64_t> shape;
    for (int d = *rc::gen::inRange(0, 4); d > 0; --d) shape.push_back(*rc::gen::inRange(0, 5));
    shape.push_back(4 * *rc::gen::inRange(0, 3));  // whole bytes for every type
    const std::uint64_t size = *dtype_bytes(dtype, *checked_elements(shape));
    std::string& data = bytes.emplace_back(size, '\0');
    std::mt19937 random(static_cast<std::uint32_t>(size * 31 + name.size()));
    for (char& c : data) c = static_cast<char>(random());
    tensors.push_back({name, dtype, shape, {}});
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].bytes = as_bytes(bytes[i]);
  const bool as_given = *rc::gen::arbitrary<bool>();
  const TempFolder folder;
  write_safetensors(folder / "w", tensors, {{"k", "v"}},
                    as_given ? TensorOrder::as_given : TensorOrder::by_size_then_name);
  const Checkpoint checkpoint = open_safetensors(folder / "w");
  RC_ASSERT(checkpoint.size() == tensors.size());
  for (const TensorData& expected : tensors) {
    const TensorView& found = checkpoint.at(expected.name);
    RC_ASSERT(found.dtype == expected.dtype);
    RC_ASSERT(found.shape == expected.shape);
    RC_ASSERT(
        std::equal(found.bytes.begin(), found.bytes.end(), expected.bytes.begin(), expected.bytes.end()));
    const DTypeInfo info = dtype_info(found.dtype);
    const bool power_of_two = std::has_single_bit(info.block_bytes);
    if (!as_given && info.block_elements == 1 && power_of_two && info.block_bytes <= 8) {
      RC_ASSERT(reinterpret_cast<std::uintptr_t>(found.bytes.data()) % info.block_bytes == 0);
    }
  }
}

}  // namespace
}  // namespace ponder::formats
