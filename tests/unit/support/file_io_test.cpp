// Reading and replacing whole files, checked independently in the file system.
#include "support/file_io.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sys/stat.h>

namespace ptxrewrite::tests::file_io_test {

using namespace ptxrewrite;
namespace fs = std::filesystem;

namespace {
size_t entries(const fs::path& directory) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}
} // namespace

TEST_CASE("what is written is read back, bytes with zeros included") {
  auto directory = TempDirectory::create();
  REQUIRE(directory.ok());
  std::string path = directory->file("a");
  for (const std::string& bytes : {std::string(), std::string("a\0b\r\n", 5), std::string(3 << 20, 'z')}) {
    REQUIRE(write_file(path, bytes).ok());
    auto read = read_file(path);
    REQUIRE(read.ok());
    CHECK(*read == bytes);
  }
  CHECK(entries(directory->path()) == 1);
}

TEST_CASE("the limit is exact") {
  auto directory = TempDirectory::create();
  REQUIRE(directory.ok());
  REQUIRE(write_file(directory->file("a"), "12345").ok());
  CHECK(read_file(directory->file("a"), 5).ok());
  CHECK_FALSE(read_file(directory->file("a"), 4).ok());
  CHECK_FALSE(read_file("/dev/zero", 100000).ok()); // never ends, reports size 0
}

TEST_CASE("reading what is not a file") {
  CHECK(read_file("/no/such/file").error().message == "/no/such/file: cannot open: No such file or directory");
  CHECK(read_file("/").error().message == "/: cannot read: Is a directory");
}

TEST_CASE("a failed write leaves the old file and no litter") {
  auto directory = TempDirectory::create();
  REQUIRE(directory.ok());
  REQUIRE(fs::create_directory(directory->path() / "target"));
  CHECK_FALSE(write_file(directory->file("target"), "x").ok());
  CHECK(fs::is_directory(directory->path() / "target"));
  CHECK(entries(directory->path()) == 1);
  CHECK_FALSE(write_file(directory->file("missing/a"), "x").ok());
}

TEST_CASE("a reader that opened the old file keeps the old content") {
  auto directory = TempDirectory::create();
  REQUIRE(directory.ok());
  std::string path = directory->file("a");
  REQUIRE(write_file(path, "old content").ok());
  std::ifstream reader(path);
  REQUIRE(write_file(path, "new").ok());
  std::string line;
  std::getline(reader, line);
  CHECK(line == "old content");
}

TEST_CASE("mode and symbolic links survive") {
  auto directory = TempDirectory::create();
  REQUIRE(directory.ok());
  std::string path = directory->file("a"), link = directory->file("link");
  REQUIRE(write_file(path, "1").ok());
  REQUIRE(::chmod(path.c_str(), 0751) == 0);
  fs::create_symlink("a", link);
  REQUIRE(write_file(link, "2").ok());
  CHECK(fs::is_symlink(link));
  CHECK(*read_file(path) == "2");
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0751);
}

TEST_CASE("devices are written in place") {
  CHECK(write_file("/dev/null", "x").ok());
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("a temporary directory goes with its owner") {
  fs::path kept;
  {
    auto directory = TempDirectory::create();
    REQUIRE(directory.ok());
    kept = directory->path();
    REQUIRE(write_file(directory->file("a"), "x").ok());
    TempDirectory moved = std::move(*directory);
    CHECK(fs::exists(kept / "a"));
  }
  CHECK_FALSE(fs::exists(kept));
}

} // namespace ptxrewrite::tests::file_io_test
