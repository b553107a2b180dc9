// Files are opened relative to the folder, without following links; see content_store.h.
#include "support/content_store.h"

#include "support/mix.h"

#include <algorithm>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ptxrewrite {

namespace {

constexpr size_t most_bytes_of_entry = size_t{16} << 20;

// Names the file of an entry; the contents identify the entry.
std::string file_name_of(std::string_view question) {
  uint64_t first = question.size(), second = ~first;
  for (const char byte : question) {
    first = (first ^ static_cast<unsigned char>(byte)) * 0x100000001b3; // FNV-1a
    second = mixed_bits(second + static_cast<unsigned char>(byte));
  }
  std::string name;
  for (uint64_t part : {first, second})
    for (int shift = 60; shift >= 0; shift -= 4)
      name += "0123456789abcdef"[part >> shift & 15];
  return name;
}

// True if only this user can have written the file.
bool is_ours(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

class EntryFile {
public:
  explicit EntryFile(int descriptor) : descriptor_(descriptor) {}
  ~EntryFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  EntryFile(const EntryFile&) = delete;
  EntryFile& operator=(const EntryFile&) = delete;

  int descriptor() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

private:
  int descriptor_;
};

std::optional<std::string> contents_of(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || !is_ours(status) ||
      static_cast<uint64_t>(status.st_size) > most_bytes_of_entry)
    return std::nullopt;
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = read(descriptor, bytes.data() + done, bytes.size() - done);
    if (count <= 0) return std::nullopt;
    done += static_cast<size_t>(count);
  }
  return bytes;
}

bool write_bytes(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(descriptor, bytes.data(), bytes.size());
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// The answer of an entry; nullopt unless the text is that of this question.
std::optional<std::string> answer_in(std::string_view text, std::string_view header, std::string_view question) {
  if (!text.starts_with(header)) return std::nullopt;
  text.remove_prefix(header.size());
  const std::string length = std::to_string(question.size()) + '\n';
  if (!text.starts_with(length)) return std::nullopt;
  text.remove_prefix(length.size());
  if (!text.starts_with(question)) return std::nullopt;
  return std::string(text.substr(question.size()));
}

} // namespace

ContentStore::ContentStore(const std::string& folder, std::string header, uint64_t most_bytes)
    : header_(std::move(header)), most_bytes_(most_bytes) {
  if (folder.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), ignored);
  mkdir(folder.c_str(), 0700);
  folder_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status {};
  if (folder_ >= 0 && (fstat(folder_, &status) != 0 || !is_ours(status))) {
    close(folder_);
    folder_ = -1;
  }
}

ContentStore::~ContentStore() {
  if (folder_ >= 0) close(folder_);
}

std::optional<std::string> ContentStore::find(std::string_view question) const {
  if (folder_ < 0) return std::nullopt;
  const EntryFile file(openat(folder_, file_name_of(question).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return std::nullopt;
  const std::optional<std::string> text = contents_of(file.descriptor());
  if (!text) return std::nullopt;
  std::optional<std::string> answer = answer_in(*text, header_, question);
  if (answer) futimens(file.descriptor(), nullptr); // marks it as recently used
  return answer;
}

void ContentStore::keep(std::string_view question, std::string_view answer) {
  if (folder_ < 0) return;
  std::string text = header_ + std::to_string(question.size()) + '\n';
  text.append(question).append(answer);
  if (text.size() > most_bytes_of_entry) return;
  const std::string name = file_name_of(question), temporary = name + '.' + std::to_string(getpid());
  {
    const EntryFile file(
        openat(folder_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return;
    if (!write_bytes(file.descriptor(), text) || renameat(folder_, temporary.c_str(), folder_, name.c_str()) != 0) {
      unlinkat(folder_, temporary.c_str(), 0);
      return;
    }
  }
  // Measured at the first entry, and whenever a sixteenth of the limit has been written.
  kept_bytes_ = kept_bytes_ == UINT64_MAX ? most_bytes_ : kept_bytes_ + text.size();
  if (kept_bytes_ < most_bytes_ / 16) return;
  drop_oldest();
  kept_bytes_ = 0;
}

void ContentStore::drop_oldest() const {
  const int again = openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(fdopendir(again), closedir);
  if (!list) {
    close(again);
    return;
  }
  std::vector<std::tuple<int64_t, int64_t, uint64_t, std::string>> entries; // seconds, nanoseconds, bytes, name
  uint64_t sum = 0;
  while (const dirent* entry = readdir(list.get())) {
    struct stat status {};
    if (fstatat(folder_, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
    const auto bytes = static_cast<uint64_t>(status.st_size);
    entries.emplace_back(status.st_mtim.tv_sec, status.st_mtim.tv_nsec, bytes, entry->d_name);
    sum += bytes;
  }
  std::ranges::sort(entries);
  for (const auto& [seconds, nanoseconds, bytes, name] : entries) {
    if (sum <= most_bytes_) return;
    if (unlinkat(folder_, name.c_str(), 0) == 0) sum -= bytes;
  }
}

std::string cache_folder(std::string_view store) {
  const std::string name = '/' + std::string(store);
  if (const char* chosen = std::getenv("PTXREWRITE_CACHE"); chosen != nullptr && *chosen != '\0')
    return std::string_view(chosen) == "off" ? std::string() : chosen + name;
  if (const char* caches = std::getenv("XDG_CACHE_HOME"); caches != nullptr && *caches == '/')
    return std::string(caches) + "/ptxrewrite" + name;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return std::string(home) + "/.cache/ptxrewrite" + name;
  return {};
}

} // namespace ptxrewrite
