// Bytes that were costly to compute, on disk by what they were computed from.
//
// Each entry is one file, which contains the whole question and the answer: hash collisions are detected, and so are
// damaged questions; users check answers themselves. Files are created atomically. A folder or file that another user
// owns or may write is not used. Errors are not reported; the store then has no entry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite {

class ContentStore {
public:
  // Creates `folder` if it is missing. Empty: stores nothing. `header` begins every file: what the answers are, and
  // their version. `most_bytes`: limit of the total size of the files; the least recently used ones are removed first.
  ContentStore(const std::string& folder, std::string header, uint64_t most_bytes);
  ~ContentStore();
  ContentStore(const ContentStore&) = delete;
  ContentStore& operator=(const ContentStore&) = delete;

  std::optional<std::string> find(std::string_view question) const;
  void keep(std::string_view question, std::string_view answer);

private:
  void drop_oldest() const;

  int folder_ = -1; // open directory; -1: none
  std::string header_;
  uint64_t most_bytes_;
  uint64_t kept_bytes_ = UINT64_MAX; // bytes written since the folder was last measured
};

// The folder of a store that the environment selects: below $PTXREWRITE_CACHE if set, else $XDG_CACHE_HOME/ptxrewrite
// or ~/.cache/ptxrewrite. Empty: PTXREWRITE_CACHE=off, or there is no such place.
std::string cache_folder(std::string_view store);

} // namespace ptxrewrite
