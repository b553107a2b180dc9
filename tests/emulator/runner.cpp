#include "tests/emulator/runner.h"

#include "emulator/core/emulator.h"
#include "emulator/core/engine.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "tests/emulator/forms.h"
#include "tests/emulator/operand_kinds.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

namespace ptxrewrite::test {

namespace {

constexpr unsigned slot_bytes = 16; // per register in a thread's record and per output
constexpr size_t record_bytes = register_letters.size() * registers_per_letter * slot_bytes;

std::string name_of(const StatementOperand& operand) {
  return std::string("%") + operand.letter + std::to_string(operand.number);
}

// Returns the type of a register for loads and stores.
std::string_view memory_type(char letter) {
  switch (letter) {
  case 'c':
    return "b8";
  case 'h':
    return "b16";
  case 'l':
    return "b64";
  case 'q':
    return "b128";
  case 'f':
    return "f32";
  case 'd':
    return "f64";
  default:
    return "b32";
  }
}

// %l18: the thread's record; %l19: the thread's position in the first output.
class KernelWriter {
public:
  explicit KernelWriter(size_t threads) : threads_(threads) {
    text_.append(module_preamble()).append(".visible .entry k(.param .u64 records, .param .u64 outputs)\n{\n");
    text_.append(kernel_preamble()).append(kind_preamble());
    text_ += "mov.u32 %r18, %ctaid.x;\nmov.u32 %r17, %ntid.x;\nmov.u32 %r16, %tid.x;\n"
             "mad.lo.u32 %r18, %r18, %r17, %r16;\n"
             "ld.param.u64 %l18, [records];\nmul.wide.u32 %l17, %r18, " +
             std::to_string(record_bytes) +
             ";\nadd.u64 %l18, %l18, %l17;\n"
             "ld.param.u64 %l19, [outputs];\nmul.wide.u32 %l17, %r18, 16;\nadd.u64 %l19, %l19, %l17;\n";
    for (char letter : register_letters)
      for (unsigned number = 0; number < registers_per_letter; ++number)
        load(letter, number);
  }

  void add(const GuardedStatement& guarded) {
    // The carry flag is a copy of %p9, whether or not the instruction changes it.
    text_ += "selp.b32 %r17, 1, 0, %p9;\nadd.cc.u32 %r17, %r17, -1;\n";
    text_ += guarded.before;
    if (guarded.guard != Guard::none) text_ += guarded.guard == Guard::plain ? "@%p8 " : "@!%p8 ";
    text_.append(guarded.spelled.empty() ? guarded.statement.text : guarded.spelled).append("\n" + guarded.after);
    text_ += "addc.u32 %r17, 0, 0;\n";
    if (!guarded.statement.operands.empty())
      for (const StatementOperand* target : registers_of(guarded.statement.operands.front())) {
        store(*target);
        load(target->letter, target->number);
      }
    text_ += "st.global.b32 [%l19+" + next_output() + "], %r17;\n";
  }

  std::string finish() { return text_ + std::string(kernel_end()); }
  size_t outputs() const { return outputs_; }

private:
  void load(char letter, unsigned number) {
    const size_t offset = (register_letters.find(letter) * registers_per_letter + number) * slot_bytes;
    const std::string name = std::string("%") + letter + std::to_string(number);
    const std::string place = "[%l18+" + std::to_string(offset) + "]";
    if (letter == 'p')
      text_ += "ld.global.b32 %r16, " + place + ";\nsetp.ne.u32 " + name + ", %r16, 0;\n";
    else
      text_.append("ld.global.").append(memory_type(letter)).append(" " + name + ", " + place + ";\n");
  }

  void store(const StatementOperand& target) {
    const std::string place = "[%l19+" + next_output() + "]";
    if (target.letter == 'p')
      text_ += "selp.b32 %r16, 1, 0, " + name_of(target) + ";\nst.global.b32 " + place + ", %r16;\n";
    else
      text_.append("st.global.")
          .append(memory_type(target.letter))
          .append(" " + place + ", " + name_of(target) + ";\n");
  }

  std::string next_output() { return std::to_string(outputs_++ * threads_ * slot_bytes); }

  std::string text_;
  size_t threads_;
  size_t outputs_ = 0;
};

std::vector<std::byte> records_of(std::span<const ThreadRegisters> threads) {
  std::vector<std::byte> bytes(threads.size() * record_bytes);
  for (size_t i = 0; i < threads.size(); ++i)
    std::memcpy(bytes.data() + i * record_bytes, threads[i].values.data(), record_bytes);
  return bytes;
}

void write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// The environment's PTXREWRITE_KEEP_KERNELS names a folder that gets every kernel with a launch file, so that a GPU can
// run the same; names that begin with "approximate" are for inexact results. The modules only require
// a recent GPU as target; kernels with instructions that it lacks are not recorded.
void keep(std::string text, std::span<const std::byte> records, size_t threads, size_t result_bytes) {
  const char* folder = std::getenv("PTXREWRITE_KEEP_KERNELS");
  if (!folder) return;
  static unsigned count = 0;
  const bool approximate = text.find(".approx") != text.npos || text.find(".full") != text.npos;
  char name[32];
  std::snprintf(name, sizeof name, "%s%04u", approximate ? "approximate" : "exact", count++);
  if (const size_t target = text.find("sm_100a"); target != text.npos) text.replace(target, 7, "sm_90");
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  const std::string base = name;
  write(path.string() + ".ptx", text);
  // Most kernels start with the same registers.
  static std::map<std::string, std::string> known;
  auto [file, is_new] =
      known.try_emplace(std::string(reinterpret_cast<const char*>(records.data()), records.size()), base + ".bin");
  if (is_new) write(path.string() + ".bin", file->first);
  const size_t block = std::min<size_t>(threads, 128);
  write(path.string() + ".toml",
        "ptx = \"" + base + ".ptx\"\n\n[[launch]]\nkernel = \"k\"\ngrid = " + std::to_string(threads / block) +
            "\nblock = " + std::to_string(block) +
            "\nargs = [ { buffer = \"records\" }, { buffer = \"outputs\" } ]\n\n[buffer.records]\ntype = "
            "\"u64\"\ncount = " +
            std::to_string(records.size() / 8) + "\nfile = \"" + file->second +
            "\"\n\n[buffer.outputs]\ntype = \"b64\"\ncount = " + std::to_string(result_bytes / 8) +
            "\noutput = true\n");
}

std::unique_ptr<ir::Module> read(const std::string& text) {
  Diagnostics diagnostics;
  return grammar::read_module(SourceFile("statements.ptx", text), diagnostics);
}

std::unique_ptr<ir::Module> read_through_ssa(const std::string& text) {
  auto module = read(text);
  if (!module) return module;
  for (auto& function : module->functions)
    if (function->has_body && ir::construct_ssa(*function)) ir::destruct_ssa(*function);
  return read(ir::print(*module));
}

// The environment's PTXREWRITE_KEEP_TEXTS names a folder that gets the text of every kernel: judge_kernels.py passes
// them to ptxas.
void keep_text(const std::string& text) {
  static unsigned count = 0;
  if (const char* folder = std::getenv("PTXREWRITE_KEEP_TEXTS"))
    write(std::filesystem::path(folder) / (std::to_string(count++) + ".ptx"), text);
}

Result<std::unique_ptr<ir::Module>> read(const std::string& text, Way way) {
  auto module = way == Way::through_ssa ? read_through_ssa(text) : read(text);
  if (!module) return Error{"the reader refuses the statements", {}};
  return module;
}

// What the kernel leaves in its outputs, which are zeros before. Generated code is made when the kernel is launched for
// the second time.
Result<std::vector<std::byte>> launch(emulator::Program& program, const emulator::LaunchRequest& request,
                                      emulator::DeviceMemory& memory, uint64_t output, size_t bytes) {
  std::vector<std::byte> results(bytes);
  const int times = emulator::default_engine() == emulator::Engine::generated ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    if (Status status = memory.write(output, results); !status) return status.error();
    auto launched = program.launch(request);
    if (!launched) return launched.error();
    if (launched->failure) return Error{launched->failure->message, {}};
  }
  if (Status status = memory.read(output, results); !status) return status.error();
  return results;
}

Result<std::vector<std::byte>> execute(const std::string& text, std::span<const ThreadRegisters> threads,
                                       size_t outputs, Way way) {
  auto module = read(text, way);
  if (!module) return module.error();
  emulator::DeviceMemory memory(uint64_t(1) << 32);
  auto program = emulator::Program::load(**module, memory);
  if (!program) return program.error();
  const std::vector<std::byte> records = records_of(threads);
  const size_t result_bytes = outputs * threads.size() * slot_bytes;
  keep(text, records, threads.size(), result_bytes);
  keep_text(text);
  auto input = memory.allocate(records.size(), "records");
  auto output = memory.allocate(result_bytes, "outputs");
  if (!input) return input.error();
  if (!output) return output.error();
  if (Status status = memory.write(*input, records); !status) return status.error();
  emulator::LaunchRequest request;
  request.kernel = "k";
  request.block.x = static_cast<uint32_t>(std::min<size_t>(threads.size(), 128));
  request.grid.x = static_cast<uint32_t>(threads.size() / request.block.x);
  request.host_threads = 1;
  request.parameters.resize(16);
  std::memcpy(request.parameters.data(), &*input, 8);
  std::memcpy(request.parameters.data() + 8, &*output, 8);
  return launch(**program, request, memory, *output, result_bytes);
}

} // namespace

bool take_engine(std::vector<std::string_view>& words) {
  if (std::erase(words, "--generated") == 0) return true;
  if (const std::string reason = emulator::why_no_generator(); !reason.empty()) {
    std::printf("skipped: %s\n", reason.c_str());
    return false;
  }
  emulator::default_engine() = emulator::Engine::generated;
  return true;
}

Result<std::vector<std::byte>> run_text(const std::string& text, std::span<const std::byte> parameter,
                                        size_t result_bytes, Way way) {
  auto module = read(text, way);
  if (!module) return module.error();
  emulator::DeviceMemory memory(uint64_t(1) << 32);
  auto program = emulator::Program::load(**module, memory);
  if (!program) return program.error();
  auto output = memory.allocate(result_bytes, "outputs");
  if (!output) return output.error();
  keep_text(text);
  emulator::LaunchRequest request;
  request.kernel = "k";
  request.host_threads = 1;
  request.parameters.resize(64 + parameter.size());
  std::memcpy(request.parameters.data(), &*output, 8);
  std::copy(parameter.begin(), parameter.end(), request.parameters.begin() + 64);
  return launch(**program, request, memory, *output, result_bytes);
}

Result<std::vector<std::vector<Observation>>> run_statements(std::span<const GuardedStatement> statements,
                                                             std::span<const ThreadRegisters> threads, Way way) {
  KernelWriter writer(threads.size());
  for (const GuardedStatement& statement : statements)
    writer.add(statement);
  auto bytes = execute(writer.finish(), threads, writer.outputs(), way);
  if (!bytes) return bytes.error();
  auto output = [&](size_t slot, size_t thread) {
    Raw value = 0;
    std::memcpy(&value, bytes->data() + (slot * threads.size() + thread) * slot_bytes, slot_bytes);
    return value;
  };
  std::vector<std::vector<Observation>> result;
  size_t slot = 0;
  for (const GuardedStatement& guarded : statements) {
    const size_t targets =
        guarded.statement.operands.empty() ? 0 : registers_of(guarded.statement.operands.front()).size();
    std::vector<Observation>& observations = result.emplace_back(threads.size());
    for (size_t thread = 0; thread < threads.size(); ++thread) {
      for (size_t i = 0; i < targets; ++i)
        observations[thread].registers.push_back(output(slot + i, thread));
      observations[thread].carry = output(slot + targets, thread) != 0;
    }
    slot += targets + 1;
  }
  return result;
}

} // namespace ptxrewrite::test
