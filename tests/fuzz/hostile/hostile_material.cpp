#include "emulator/core/emulator.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/isa/isa.h"
#include "tests/fuzz/hostile/hostile_generator.h"
#include "transforms/manager/pipeline.h"

#include <array>

namespace ptxrewrite::fuzz {

namespace {

std::unique_ptr<ir::Module> read(const std::string& text) {
  Diagnostics diagnostics;
  return grammar::read_module(SourceFile("material.ptx", text), diagnostics);
}

bool is_runnable(const std::string& statement, emulator::DeviceMemory& memory) {
  const std::unique_ptr<ir::Module> module = read(single_statement_module(statement));
  if (!module) return false;
  auto program = emulator::Program::load(*module, memory);
  return program.ok() && (*program)->check_supported("k").ok();
}

// No address, no name, no effect: permitted anywhere in a defined kernel.
bool is_pure(std::string_view statement) {
  if (statement.find_first_of("[@") != statement.npos || statement.find("%x") != statement.npos) return false;
  const Result<ir::FormId> form = ir::resolve_form(statement.substr(0, statement.find_first_of(" ;")));
  if (!form || !ir::form(*form).effects.pure()) return false;
  // Both fault on generic addresses outside of shared memory.
  if (ir::form(*form).opcode == ir::Opcode::mapa || ir::form(*form).opcode == ir::Opcode::getctarank) return false;
  const std::string_view operands = statement.substr(std::min(statement.find(' '), statement.size()));
  for (size_t i = 1; i < operands.size(); ++i)
    if (std::isalpha(static_cast<unsigned char>(operands[i])) && operands[i - 1] != '%' &&
        std::isalnum(static_cast<unsigned char>(operands[i - 1])) == 0)
      return false; // a name or a special register
  return operands.find("%clock") == operands.npos && operands.find("%t") == operands.npos;
}

} // namespace

HostileMaterial make_material(std::string_view statement_table, const std::vector<std::string>& modules) {
  HostileMaterial material;
  emulator::DeviceMemory memory(uint64_t(1) << 32);
  while (!statement_table.empty()) {
    const size_t end = std::min(statement_table.find('\n'), statement_table.size());
    std::string_view line = statement_table.substr(0, end);
    statement_table.remove_prefix(std::min(end + 1, statement_table.size()));
    if (!line.starts_with("+\t")) continue;
    const std::string statement(line.substr(2));
    material.statements.push_back(statement);
    if (!is_runnable(statement, memory)) continue;
    material.runnable.push_back(statement);
    if (is_pure(statement)) material.pure.push_back(statement);
  }
  using transforms::OutputForm;
  struct Way {
    const char* passes;
    OutputForm form;
  };
  constexpr std::array ways = {Way{"r2d2", OutputForm::hardware}, Way{"dac", OutputForm::hardware},
                               Way{"composite", OutputForm::hardware}, Way{"regless", OutputForm::annotated},
                               Way{"darsie", OutputForm::annotated}};
  for (const std::string& text : modules) {
    material.modules.push_back(text);
    for (const Way& way : ways) {
      const std::unique_ptr<ir::Module> module = read(text);
      if (!module) continue;
      const Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(way.passes);
      transforms::RunOptions options;
      options.form = way.form;
      if (pipeline && transforms::run_pipeline(*module, *pipeline, options).ok())
        material.modules.push_back(ir::print(*module));
    }
  }
  return material;
}

} // namespace ptxrewrite::fuzz
