// Instruction and register counts of texts by ptxas, kept in a file between runs: the texts stay the same when the
// lowering changes.
#pragma once

#include "ir/machine/figures/figures.h"

#include <fstream>
#include <map>
#include <optional>
#include <string>

namespace ptxrewrite::tests {

class AssembledTexts {
public:
  // Reads what an earlier run kept; an empty name keeps nothing.
  explicit AssembledTexts(const std::string& file);

  // Figures of the text's functions; nullopt if the assembler refuses it or takes longer than a minute.
  std::optional<ir::FiguresByFunction> figures(const std::string& text, const std::string& architecture);

private:
  void keep(const std::string& key, const std::optional<ir::FiguresByFunction>& figures);

  std::string assembler_; // its release
  std::map<std::string, std::optional<ir::FiguresByFunction>> known_;
  std::ofstream file_;
};

} // namespace ptxrewrite::tests
