// Figures of assembled texts on disk, so that a file needs to be assembled only once.
//
// Located in $PTXREWRITE_CACHE if set, else $XDG_CACHE_HOME/ptxrewrite or ~/.cache/ptxrewrite; PTXREWRITE_CACHE=off
// disables the store. Each entry is one file, which contains the full key (assembler, architecture, text) and the
// figures: hash collisions and damaged files are detected. Files are created atomically. A folder or file that another
// user owns or may write is not used. Errors are not reported; the store then has no entry.
#pragma once

#include "ir/machine/figures/figures.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite::ir {

class FiguresStore {
public:
  // Creates `folder` if it is missing. Empty: stores nothing. `most_bytes`: limit of the total size of the files; the
  // least recently used ones are removed first.
  explicit FiguresStore(const std::string& folder, uint64_t most_bytes = uint64_t{256} << 20);
  ~FiguresStore();
  FiguresStore(const FiguresStore&) = delete;
  FiguresStore& operator=(const FiguresStore&) = delete;

  std::optional<FiguresByFunction> find(std::string_view question) const;
  void keep(std::string_view question, const FiguresByFunction& figures);

private:
  void drop_oldest() const;

  int folder_ = -1; // open directory; -1: none
  uint64_t most_bytes_;
  uint64_t kept_bytes_ = UINT64_MAX; // bytes written since the folder was last measured
};

// The folder that the environment selects; empty if the store is disabled.
std::string figures_folder();

} // namespace ptxrewrite::ir
