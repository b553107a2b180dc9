#include "support/file_io.h"

#include "support/interruption.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace ptxrewrite {

namespace {

Error system_error(const std::string& path, const char* action, int code) {
  return {path + ": cannot " + action + ": " + std::strerror(code), {}};
}

class OpenFile {
public:
  explicit OpenFile(int number) : number_(number) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (number_ > STDERR_FILENO) ::close(number_);
  }
  int get() const { return number_; }
  int close_now() {
    int number = number_;
    number_ = -1;
    return ::close(number);
  }

private:
  int number_;
};

// Returns 0 or the errno of the failure.
int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

// `mode`: of the file that is replaced. The mode of a new file follows the umask, which open() applies: querying the
// umask would change it for a moment, which other threads may notice (exec --html).
Status replace_file(const std::string& path, std::string_view bytes, std::optional<mode_t> mode) {
  std::string temporary_path = path;
  OpenFile temporary(interruption::make_file(temporary_path, mode ? 0600 : 0666));
  if (temporary.get() < 0) return system_error(path, "create a temporary file beside it", errno);
  int code = write_all(temporary.get(), bytes);
  if (code == 0 && mode && ::fchmod(temporary.get(), *mode) != 0) code = errno;
  if (temporary.close_now() != 0 && code == 0) code = errno;
  if (code == 0 && ::rename(temporary_path.c_str(), path.c_str()) != 0) code = errno;
  if (code != 0) ::unlink(temporary_path.c_str());
  interruption::file_finished(temporary_path);
  if (code == 0) return {};
  return system_error(path, "write", code);
}

} // namespace

Result<std::string> read_file(const std::string& path, size_t limit) {
  bool standard_input = path == "-";
  std::string shown = standard_input ? "<stdin>" : path;
  OpenFile file(standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return system_error(shown, "open", errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return system_error(shown, "read", errno);
  if (S_ISDIR(info.st_mode)) return system_error(shown, "read", EISDIR);
  Error too_large{shown + ": larger than the limit of " + std::to_string(limit) + " bytes", {}};
  std::string bytes;
  size_t expected = S_ISREG(info.st_mode) && info.st_size > 0 ? static_cast<size_t>(info.st_size) : 0;
  if (expected > limit) return too_large;
  size_t used = 0;
  bytes.resize(expected + 1); // one more byte than announced: end of file is then detected without growing the buffer
  for (;;) {
    if (used == bytes.size()) bytes.resize(std::max<size_t>(bytes.size() * 2, 65536));
    ssize_t count = ::read(file.get(), bytes.data() + used, bytes.size() - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(shown, "read", errno);
    if (count == 0) break;
    used += static_cast<size_t>(count);
    if (used > limit) return too_large;
  }
  bytes.resize(used);
  return bytes;
}

Status write_file(const std::string& path, std::string_view bytes) {
  if (path == "-") {
    int code = write_all(STDOUT_FILENO, bytes);
    return code == 0 ? Status() : Status(system_error("<stdout>", "write", code));
  }
  struct stat info {};
  bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return system_error(path, "write", EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    OpenFile device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    int code = device.get() < 0 ? errno : write_all(device.get(), bytes);
    return code == 0 ? Status() : Status(system_error(path, "write", code));
  }
  if (!exists) return replace_file(path, bytes, std::nullopt);
  std::error_code failure;
  std::filesystem::path real = std::filesystem::canonical(path, failure);
  return replace_file(failure ? path : real.string(), bytes, info.st_mode & 07777);
}

Status create_private_file(const std::string& path, std::string_view bytes) {
  OpenFile file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) return system_error(path, "create", errno);
  int code = write_all(file.get(), bytes);
  if (file.close_now() != 0 && code == 0) code = errno;
  return code == 0 ? Status() : Status(system_error(path, "write", code));
}

Result<TempDirectory> TempDirectory::create() {
  std::error_code failure;
  std::filesystem::path base = std::filesystem::temp_directory_path(failure);
  if (failure) return Error{"no directory for temporary files: " + failure.message(), {}};
  std::string name = (base / "ptxrewrite-XXXXXX").string();
  if (!interruption::make_folder(name)) return system_error(base.string(), "make a temporary directory in", errno);
  return TempDirectory(std::filesystem::path(name));
}

TempDirectory::TempDirectory(TempDirectory&& other) noexcept : path_(std::move(other.path_)) {
  other.path_.clear();
}

TempDirectory& TempDirectory::operator=(TempDirectory&& other) noexcept {
  if (this != &other) {
    remove();
    path_ = std::move(other.path_);
    other.path_.clear();
  }
  return *this;
}

TempDirectory::~TempDirectory() {
  remove();
}

void TempDirectory::remove() {
  if (!path_.empty()) interruption::remove_folder(path_.string());
}

} // namespace ptxrewrite
