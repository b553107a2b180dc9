// Figures of assembled texts on disk, so that a file needs to be assembled only once. The full key is assembler,
// architecture and text.
#pragma once

#include "ir/machine/figures/figures.h"
#include "support/content_store.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite::ir {

class FiguresStore {
public:
  // As ContentStore.
  explicit FiguresStore(const std::string& folder, uint64_t most_bytes = uint64_t{256} << 20);

  std::optional<FiguresByFunction> find(std::string_view question) const;
  void keep(std::string_view question, const FiguresByFunction& figures);

private:
  ContentStore store_;
};

// The folder that the environment selects; empty if the store is disabled.
std::string figures_folder();

} // namespace ptxrewrite::ir
