// Figures of assembled texts on disk, so that a file that is seen again needs no assembler.
//
// Below $PTXREWRITE_CACHE if set, else $XDG_CACHE_HOME/ptxrewrite or ~/.cache/ptxrewrite; PTXREWRITE_CACHE=off keeps
// nothing. One file an entry, which holds the whole question (assembler, architecture, text) beside the answer: a name
// that two questions share, or a file that somebody damaged, is no answer. Files appear at once with all they hold. A
// folder or file that another user owns or may write is not used. Nothing here can fail but by being of no use.
#pragma once

#include "ir/machine/figures/figures.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite::ir {

class FiguresStore {
public:
  // `folder` is made if it is missing. Empty: keeps nothing. `most_bytes`: of all files together; the ones that were
  // not asked for longest go first.
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
  uint64_t kept_bytes_ = UINT64_MAX; // since the folder was last measured
};

// The folder that the environment names; empty if it wants none.
std::string figures_folder();

} // namespace ptxrewrite::ir
