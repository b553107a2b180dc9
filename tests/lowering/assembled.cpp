// One line a text: a hash of release, architecture and text; then for each function its name, instructions, registers
// and spilled bytes, all separated by tabs. `refused` stands in place of functions where there are none.
#include "tests/lowering/assembled.h"

#include "ir/machine/figures/cubin.h"
#include "support/mix.h"
#include "support/ptxas.h"

#include <sstream>

namespace ptxrewrite::tests {

namespace {

constexpr double most_seconds = 60;

std::string hash_of(const std::string& text) {
  uint64_t first = text.size(), second = ~first;
  for (const char byte : text) {
    first = (first ^ static_cast<unsigned char>(byte)) * 0x100000001b3; // FNV-1a
    second = mixed_bits(second + static_cast<unsigned char>(byte));
  }
  std::ostringstream out;
  out << std::hex << first << '.' << second;
  return out.str();
}

std::optional<ir::FiguresByFunction> assembled(const std::string& text, const std::string& architecture) {
  Result<PtxasRun> run = assemble(text, {.arch = architecture, .timeout_seconds = most_seconds});
  if (!run || !run->ok) return std::nullopt;
  Result<ir::Cubin> cubin = ir::read_cubin(std::move(run->cubin));
  if (!cubin) return std::nullopt;
  ir::FiguresByFunction figures;
  for (const ir::CubinFunction& function : cubin->functions)
    figures[std::string(function.name)] = {function.instructions, function.registers,
                                           function.spill_stores.value_or(0) + function.spill_loads.value_or(0)};
  return figures;
}

} // namespace

AssembledTexts::AssembledTexts(const std::string& file) {
  if (Result<std::string> ptxas = find_ptxas()) assembler_ = ptxas_release(*ptxas);
  if (file.empty()) return;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string key, name;
    if (!std::getline(words, key, '\t')) continue;
    std::optional<ir::FiguresByFunction>& figures = known_[key];
    while (std::getline(words, name, '\t') && name != "refused") {
      if (!figures) figures.emplace();
      ir::MachineFigures& row = (*figures)[name];
      words >> row.instructions >> row.registers >> row.spilled_bytes;
      words.ignore(1);
    }
  }
  file_.open(file, std::ios::app);
}

std::optional<ir::FiguresByFunction> AssembledTexts::figures(const std::string& text, const std::string& architecture) {
  const std::string key = hash_of(assembler_ + '\n' + architecture + '\n' + text);
  if (auto known = known_.find(key); known != known_.end()) return known->second;
  std::optional<ir::FiguresByFunction> figures = assembled(text, architecture);
  keep(key, figures);
  return known_.emplace(key, std::move(figures)).first->second;
}

void AssembledTexts::keep(const std::string& key, const std::optional<ir::FiguresByFunction>& figures) {
  if (!file_.is_open()) return;
  std::ostringstream line; // written at once: two runs may share the file
  line << key;
  if (!figures || figures->empty()) line << "\trefused";
  if (figures)
    for (const auto& [name, row] : *figures)
      line << '\t' << name << '\t' << row.instructions << '\t' << row.registers << '\t' << row.spilled_bytes;
  line << '\n';
  file_ << line.str() << std::flush;
}

} // namespace ptxrewrite::tests
