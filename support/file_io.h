// Reading whole files, and writing them such that a failed run leaves the old file unchanged.
#pragma once

#include "support/result.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace ptxrewrite {

// Positions in a source are 32-bit, so no input may be larger than this (bytes).
constexpr size_t default_read_limit = size_t{1} << 30;

// Returns the bytes of a file, or of standard input if `path` is "-". Returns an error if the file is missing,
// unreadable, a directory, or larger than `limit` bytes.
Result<std::string> read_file(const std::string& path, size_t limit = default_read_limit);

// Replaces the contents of `path` atomically: a temporary file in the same directory is renamed over it, so a reader
// sees either the old or the new content. Keeps the old file's mode and follows symbolic links. "-" is standard output;
// devices and pipes are written in place.
Status write_file(const std::string& path, std::string_view bytes);

// Creates a file that only its owner may read and write. Returns an error if a file of that name exists or cannot be
// written.
Status create_private_file(const std::string& path, std::string_view bytes);

// A new directory below $TMPDIR (or the system's default), removed with its contents by the destructor.
class TempDirectory {
public:
  static Result<TempDirectory> create();
  TempDirectory(TempDirectory&& other) noexcept;
  TempDirectory& operator=(TempDirectory&& other) noexcept;
  ~TempDirectory();

  const std::filesystem::path& path() const { return path_; }
  std::string file(std::string_view name) const { return (path_ / name).string(); }

private:
  explicit TempDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  void remove();

  std::filesystem::path path_;
};

} // namespace ptxrewrite
