// Analyses and the emulator in a program: the linear forms of a kernel's addresses, then a launch without a GPU, its
// results against the host's and the warp instructions that it took.
#include "emulator/core/emulator.h"
#include "grammar/reader.h"
#include "ir/analysis/linear/linear.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "support/file_io.h"

#include <cstring>
#include <iostream>

using namespace ptxrewrite;

static int fail(const std::string& message) {
  return std::cerr << message << '\n', 1;
}

static std::unique_ptr<ir::Module> read_file_as_module(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) return fail(text.error().message), nullptr;
  const SourceFile source(path, *text);
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(source, diagnostics);
  for (const Diagnostic& one : diagnostics.list())
    std::cerr << render(one, source);
  return module;
}

// Addresses of global memory as sums over thread and block indices.
static int show_addresses(ir::Module& module) {
  ir::Function& function = *module.functions.front();
  if (Status status = ir::construct_ssa(function); !status) return fail(status.error().message);
  const ir::LinearForms forms(function);
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      const bool is_access = function.is_opcode(id, ir::Opcode::ld) || function.is_opcode(id, ir::Opcode::st);
      if (!is_access || function.form_of(id).space != ir::StateSpace::global) continue;
      const std::span<const ir::Operand> operands = function.operands_of(id);
      size_t address = 0;
      while (!operands[address].is(ir::OperandKind::address))
        ++address;
      std::cout << ir::print_instruction(function, id) << "  " << forms.print(forms.address_form(id, address)) << '\n';
    }
  return 0;
}

static int launch(const ir::Module& module) {
  const uint32_t count = 1000;
  const float a = 2;
  std::vector<float> x(count), y(count);
  for (uint32_t i = 0; i < count; ++i)
    x[i] = static_cast<float>(i), y[i] = 1;

  emulator::DeviceMemory memory;
  Result<std::unique_ptr<emulator::Program>> program = emulator::Program::load(module, memory);
  if (!program) return fail(program.error().message);
  uint64_t addresses[2] = {};
  for (const std::vector<float>* values : {&x, &y}) {
    Result<uint64_t> address = memory.allocate(count * sizeof(float), values == &x ? "x" : "y");
    if (!address) return fail(address.error().message);
    addresses[values == &y] = *address;
    if (Status status = memory.write(*address, std::as_bytes(std::span(*values))); !status)
      return fail(status.error().message);
  }
  // As the kernel's .param space lies: two addresses, a float, a 32-bit number.
  std::vector<std::byte> parameters(24);
  std::memcpy(parameters.data(), addresses, 16);
  std::memcpy(parameters.data() + 16, &a, 4);
  std::memcpy(parameters.data() + 20, &count, 4);

  Result<emulator::LaunchResult> result = (*program)->launch(
      {.kernel = "saxpy", .grid = {(count + 255) / 256}, .block = {256}, .parameters = parameters, .check = true});
  if (!result) return fail(result.error().message);
  if (result->failure) return fail(result->failure->message);
  std::vector<float> computed(count);
  if (Status status = memory.read(addresses[1], std::as_writable_bytes(std::span(computed))); !status)
    return fail(status.error().message);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < count; ++i)
    wrong += computed[i] != a * x[i] + y[i];
  std::cout << wrong << " of " << count << " elements are wrong; " << result->counters.warp_instructions
            << " warp instructions in " << result->counters.blocks << " blocks\n";
  return wrong != 0;
}

int main(int argument_count, char** arguments) {
  const std::string path = argument_count > 1 ? arguments[1] : "saxpy.ptx";
  std::unique_ptr<ir::Module> module = read_file_as_module(path), analysed = read_file_as_module(path);
  if (!module || !analysed) return 1;
  if (int code = show_addresses(*analysed)) return code;
  return launch(*module);
}
