#include "evaluate/lower/sass_lines.h"

#include "ir/machine/figures/cubin.h"
#include "support/ptxas.h"

#include <algorithm>

namespace ptxrewrite::evaluate {

Result<SassByFunction> sass_of(std::string_view ptx, const std::string& architecture) {
  // Checked before ptxas is run, which takes longer.
  if (const Result<std::string> program = find_nvdisasm(); !program) return program.error();
  const Result<PtxasRun> run = assemble(ptx, {architecture, 3, {"-lineinfo"}});
  if (!run) return run.error();
  if (!run->ok) {
    const std::string first_line = run->messages.substr(0, run->messages.find('\n'));
    return Error{"ptxas does not assemble the text for " + architecture + ": " + first_line, {}};
  }
  const Result<ir::Cubin> cubin = ir::read_cubin(run->cubin);
  if (!cubin) return cubin.error();
  Result<std::vector<SassFunction>> functions = disassemble(run->cubin);
  if (!functions) return functions.error();
  SassByFunction by_function;
  for (SassFunction& function : *functions) {
    if (const ir::CubinFunction* known = cubin->find(function.name))
      function.instructions.resize(std::min<size_t>(function.instructions.size(), known->instructions));
    by_function.emplace(std::move(function.name), std::move(function.instructions));
  }
  return by_function;
}

void add_sass(MachineListing& listing, const std::vector<SassInstruction>& sass) {
  std::map<uint32_t, MachineListingLine*> first_of_line;
  for (MachineListingLine& line : listing.lines)
    if (line.line) first_of_line.try_emplace(line.line, &line);
  for (const SassInstruction& instruction : sass) {
    const auto found = first_of_line.find(instruction.ptx_line);
    (found == first_of_line.end() ? listing.sass_elsewhere : found->second->sass).push_back(instruction.text);
  }
  listing.has_sass = true;
}

} // namespace ptxrewrite::evaluate
