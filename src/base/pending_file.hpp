// A file that takes its name once complete, and disappears otherwise.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace ponder {

// Where the file system can, the file has no name until then, so that not even a killed program leaves a part
// of it behind. All errors are Error(bad_file) naming `target`.
class PendingFile {
 public:
  explicit PendingFile(const std::filesystem::path& target);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void write(std::span<const std::byte> bytes);
  // Permissions of the file that is to be replaced, if there is one.
  void take_over_mode();
  // Puts it in place in one step; a symbolic link there is replaced, not followed.
  void commit();

 private:
  template <class Make>
  bool with_free_name(Make make);
  [[noreturn]] void fail_errno(const char* what) const;

  std::string target_;
  std::string temporary_;
  int descriptor_ = -1;
  bool named_ = false;  // under temporary_
};

}  // namespace ponder
