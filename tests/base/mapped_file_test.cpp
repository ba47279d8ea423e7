#include "base/mapped_file.hpp"

#include <csignal>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/support.hpp"

namespace ponder {
namespace {

namespace fs = std::filesystem;
using formats::test::expect_error;
using formats::test::TempFolder;
using formats::test::write_file;

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// Moves the modification time by a second, so that no test depends on the clock's grain.
void touch_later(const fs::path& path) {
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(1));
}

TEST(MappedFile, HoldsTheBytesAndThePathAsGiven) {
  const TempFolder folder;
  const std::string contents("weights\0of\nall kinds", 20);
  write_file(folder / "w.bin", contents);
  const MappedFile file(folder / "w.bin");
  EXPECT_EQ(text_of(file), contents);
  EXPECT_EQ(file.size(), contents.size());
  EXPECT_EQ(file.path(), (folder / "w.bin").string());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.bytes().data()) % 4096, 0U);
  for (const auto advice :
       {MappedFile::Advice::normal, MappedFile::Advice::sequential, MappedFile::Advice::random,
        MappedFile::Advice::will_need, MappedFile::Advice::dont_need}) {
    file.advise(advice);
    file.advise(advice, 3, 4);
    file.advise(advice, 1U << 20, SIZE_MAX);
  }
  EXPECT_EQ(text_of(file), contents);
}

TEST(MappedFile, MovesWithoutCopying) {
  const TempFolder folder;
  write_file(folder / "a", "first");
  write_file(folder / "b", "second");
  MappedFile a(folder / "a");
  const std::byte* where = a.bytes().data();
  MappedFile moved(std::move(a));
  EXPECT_EQ(moved.bytes().data(), where);
  moved = MappedFile(folder / "b");
  EXPECT_EQ(text_of(moved), "second");
  EXPECT_EQ(moved.path(), (folder / "b").string());
  EXPECT_FALSE(moved.changed());
  static_assert(!std::is_copy_constructible_v<MappedFile> && !std::is_copy_assignable_v<MappedFile>);
}

TEST(MappedFile, FollowsLinksToFiles) {
  const TempFolder folder;
  write_file(folder / "blob", "contents");
  fs::create_symlink("blob", folder / "link");
  const MappedFile file(folder / "link");
  EXPECT_EQ(text_of(file), "contents");
  EXPECT_FALSE(file.changed());
}

TEST(MappedFile, RefusesEverythingButRegularFiles) {
  const TempFolder folder;
  const auto open = [](const fs::path& path) { return [path] { const MappedFile file(path); }; };
  const std::string missing = (folder / "missing").string();
  expect_error(open(missing), ErrorKind::bad_file, {missing, "No such file"});
  expect_error(open(folder.path()), ErrorKind::bad_file, {folder.path().string(), "a directory"});
  write_file(folder / "empty", "");
  expect_error(open(folder / "empty"), ErrorKind::bad_file, {(folder / "empty").string(), "empty"});
  // Opening a pipe for reading would wait for a writer for ever.
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error(open(folder / "pipe"), ErrorKind::bad_file, {(folder / "pipe").string(), "a pipe"});
  expect_error(open("/dev/zero"), ErrorKind::bad_file, {"/dev/zero", "a device"});
  fs::create_symlink("nowhere", folder / "dangling");
  expect_error(open(folder / "dangling"), ErrorKind::bad_file, {"dangling", "No such file"});
  expect_error(open(folder / "empty" / "below"), ErrorKind::bad_file, {"empty/below", "Not a directory"});
  expect_error(open(std::string("a\0b", 3)), ErrorKind::bad_file, {"a\\x00b", "NUL"});
  expect_error(open(folder / "two\nlines"), ErrorKind::bad_file, {"two\\x0alines"});
}

TEST(MappedFile, RefusesWhatItMayNotRead) {
  const TempFolder folder;
  write_file(folder / "secret", "x");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod((folder / "secret").c_str(), 0), 0);
  const bool root = ::geteuid() == 0;
  if (root && ::seteuid(65534) != 0) GTEST_SKIP() << "root that cannot step down reads everything";
  expect_error([&] { const MappedFile file(folder / "secret"); }, ErrorKind::bad_file,
               {"secret", "Permission denied"});
  ASSERT_TRUE(!root || ::seteuid(0) == 0);
}

TEST(MappedFile, Complaint38_SeesThatTheFileWasShortened) {
  const TempFolder folder;
  write_file(folder / "w", std::string(10'000, 'w'));
  const MappedFile file(folder / "w");
  EXPECT_FALSE(file.changed());
  file.check_unchanged();
  fs::resize_file(folder / "w", 9'999);
  EXPECT_TRUE(file.changed());
  expect_error([&] { file.check_unchanged(); }, ErrorKind::bad_file,
               {(folder / "w").string(), "10000 bytes", "9999", "load the model again"});
}

TEST(MappedFile, Complaint38_SeesOtherChanges) {
  const TempFolder folder;
  const auto changed_by = [&](const auto& change) {
    write_file(folder / "w", "contents");
    const MappedFile file(folder / "w");
    file.check_unchanged();
    change();
    std::string message;
    try {
      file.check_unchanged();
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_EQ(file.changed(), !message.empty());
    return message;
  };
  EXPECT_NE(
      changed_by([&] { write_file(folder / "w", "contents and more"); }).find("had 8 bytes and now has 17"),
      std::string::npos);
  EXPECT_NE(changed_by([&] {
              write_file(folder / "w", "CONTENTS");
              touch_later(folder / "w");
            }).find("written to"),
            std::string::npos);
  EXPECT_NE(changed_by([&] {
              write_file(folder / "other", "contents");
              fs::rename(folder / "other", folder / "w");
            }).find("another file"),
            std::string::npos);
  EXPECT_NE(changed_by([&] { fs::remove(folder / "w"); }).find("can no longer be found"), std::string::npos);
  EXPECT_EQ(changed_by([] {}), "");
  EXPECT_EQ(changed_by([&] { write_file(folder / "neighbour", "x"); }), "");
}

TEST(MappedFile, RelativePathsSurviveAChangeOfFolder) {
  const TempFolder folder;
  write_file(folder / "w", "contents");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const MappedFile file("w");
  fs::current_path(before);
  EXPECT_EQ(file.path(), "w");
  EXPECT_FALSE(file.changed());
}

// Reads one byte in a way no optimiser drops.
int read_byte(const MappedFile& file, std::size_t at) {
  return std::to_integer<int>(*static_cast<const volatile std::byte*>(file.bytes().data() + at));
}

class MappingFault : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "fast"; }
  TempFolder folder_;
};

TEST_F(MappingFault, Complaint38_ReadingPastAShortenedFileIsOneLineAndStatusOne) {
  write_file(folder_ / "model.safetensors", std::string(5 * 4096, 'w'));
  const std::string expected =
      "^ponder: .*/model\\.safetensors: can no longer be read: .*20480 bytes when opened\\)\n$";
  EXPECT_EXIT(
      {
        install_mapping_fault_handler();
        const MappedFile other(folder_ / "model.safetensors");
        std::optional<MappedFile> first(folder_ / "model.safetensors");
        const MappedFile file(std::move(*first));
        first.reset();  // what was moved stays covered
        fs::resize_file(folder_ / "model.safetensors", 100);
        if (read_byte(file, 99) != 'w') std::exit(3);
        read_byte(file, 4 * 4096);
        std::exit(4);
      },
      testing::ExitedWithCode(1), expected);
}

TEST_F(MappingFault, Complaint38_TheFaultMayComeInAnyThread) {
  write_file(folder_ / "w", std::string(2 * 4096, 'w'));
  EXPECT_EXIT(
      {
        install_mapping_fault_handler();
        const MappedFile file(folder_ / "w");
        fs::resize_file(folder_ / "w", 1);
        std::thread([&] { read_byte(file, 4096); }).join();
        std::exit(4);
      },
      testing::ExitedWithCode(1), "can no longer be read");
}

TEST_F(MappingFault, OtherFaultsKeepTheDefaultAction) {
  write_file(folder_ / "w", std::string(2 * 4096, 'w'));
  EXPECT_EXIT(
      {
        install_mapping_fault_handler();
        const MappedFile file(folder_ / "w");
        std::raise(SIGBUS);
        std::exit(4);
      },
      testing::KilledBySignal(SIGBUS), "^$");
  // A mapping that was never one of ours, and one that no longer is.
  EXPECT_EXIT(
      {
        install_mapping_fault_handler();
        std::optional<MappedFile> file(folder_ / "w");
        const auto* was = file->bytes().data();
        file.reset();
        const int descriptor = ::open((folder_ / "w").c_str(), O_RDONLY);
        void* data =
            ::mmap(const_cast<std::byte*>(was), 2 * 4096, PROT_READ, MAP_SHARED | MAP_FIXED, descriptor, 0);
        fs::resize_file(folder_ / "w", 1);
        static_cast<void>(static_cast<const volatile char*>(data)[4096]);
        std::exit(4);
      },
      testing::KilledBySignal(SIGBUS), "^$");
}

// Foreign mappings on both sides of one of ours, whichever way the kernel hands addresses out.
TEST_F(MappingFault, FaultsBesideALiveMappingKeepTheDefaultAction) {
  write_file(folder_ / "ours", "contents");
  write_file(folder_ / "foreign", std::string(2 * 4096, 'w'));
  for (const bool foreign_first : {true, false}) {
    EXPECT_EXIT(
        {
          install_mapping_fault_handler();
          const int descriptor = ::open((folder_ / "foreign").c_str(), O_RDONLY);
          const auto map = [&] { return ::mmap(nullptr, 2 * 4096, PROT_READ, MAP_SHARED, descriptor, 0); };
          void* data = foreign_first ? map() : nullptr;
          const MappedFile ours(folder_ / "ours");
          if (!foreign_first) data = map();
          fs::resize_file(folder_ / "foreign", 1);
          static_cast<void>(static_cast<const volatile char*>(data)[4096]);
          std::exit(4);
        },
        testing::KilledBySignal(SIGBUS), "^$");
    write_file(folder_ / "foreign", std::string(2 * 4096, 'w'));
  }
}

TEST(MappedFile, ManyMappingsComeAndGo) {
  const TempFolder folder;
  write_file(folder / "w", "contents");
  for (int round = 0; round < 3; ++round) {
    std::vector<MappedFile> files;
    files.reserve(5'000);
    for (int i = 0; i < 5'000; ++i) files.emplace_back(folder / "w");
    EXPECT_EQ(text_of(files.back()), "contents");
  }
}

}  // namespace
}  // namespace ponder
