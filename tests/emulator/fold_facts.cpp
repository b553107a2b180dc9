// emulator_fold_facts FACTS EXCEPTIONS: computations on constants, executed by the emulator in one thread, against
// ptxas's constant folding. EXCEPTIONS lists queries whose answers may differ, with the reason: lines of the
// significant statement of a query, a tab and the reason.
#include "emulator/core/emulator.h"
#include "grammar/reader.h"
#include "support/file_io.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::test {
namespace {

struct Fact {
  std::string result; // register
  uint64_t value = 0;
  std::string statements;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    if (end > start && text[start] != '#') lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

Fact parse(const std::string& line) {
  const size_t first = line.find('\t');
  const size_t second = line.find('\t', first + 1);
  return {line.substr(0, first), std::strtoull(line.c_str() + first + 1, nullptr, 16), line.substr(second + 1)};
}

std::string kernel(const Fact& fact, size_t index) {
  std::string text = ".visible .entry k" + std::to_string(index) +
                     "(.param .u64 output)\n{\n"
                     ".reg .pred %p<20>;\n.reg .b8 %c<10>;\n.reg .b16 %h<30>;\n.reg .b32 %r<60>;\n.reg .b64 %l<30>;\n"
                     ".reg .f32 %f<30>;\n.reg .f64 %d<30>;\n.reg .b64 %place;\nld.param.u64 %place, [output];\n" +
                     fact.statements + "\n";
  if (fact.result[1] == 'p') text += "selp.u32 %r1, 1, 0, " + fact.result + ";\nst.global.u32 [%place], %r1;\n";
  if (fact.result[1] == 'r') text += "st.global.u32 [%place], " + fact.result + ";\n";
  if (fact.result[1] == 'l') text += "st.global.u64 [%place], " + fact.result + ";\n";
  return text + "ret;\n}\n";
}

struct Outcome {
  size_t agreed = 0, different = 0, not_run = 0, excepted = 0;
};

// Returns the stored value; an error if the emulator rejects the kernel or the kernel fails.
Result<uint64_t> run_kernel(emulator::Program& program, emulator::DeviceMemory& memory, uint64_t output,
                            const std::string& name) {
  const uint64_t zero = 0;
  if (Status status = memory.write(output, std::as_bytes(std::span(&zero, 1))); !status) return status.error();
  emulator::LaunchRequest request;
  request.kernel = name;
  request.host_threads = 1;
  request.parameters.resize(8);
  std::memcpy(request.parameters.data(), &output, 8);
  auto launched = program.launch(request);
  if (!launched) return launched.error();
  if (launched->failure) return Error{launched->failure->message, {}};
  uint64_t value = 0;
  if (Status status = memory.read(output, std::as_writable_bytes(std::span(&value, 1))); !status) return status.error();
  return value;
}

void check(const std::vector<Fact>& facts, const std::vector<std::string>& exceptions, Outcome& outcome) {
  std::string text = ".version 9.0\n.target sm_100a\n.address_size 64\n";
  for (size_t i = 0; i < facts.size(); ++i)
    text += kernel(facts[i], i);
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("facts.ptx", text), diagnostics);
  if (!module) {
    std::printf("the reader refuses the facts near: %s\n", facts.front().statements.c_str());
    outcome.different += facts.size();
    return;
  }
  emulator::DeviceMemory memory(uint64_t(1) << 28);
  auto program = emulator::Program::load(*module, memory);
  auto output = memory.allocate(8, "output");
  for (size_t i = 0; i < facts.size(); ++i) {
    const Fact& fact = facts[i];
    auto value = run_kernel(**program, memory, *output, "k" + std::to_string(i));
    const bool excepted = std::any_of(exceptions.begin(), exceptions.end(), [&](const std::string& line) {
      return fact.statements.find(line.substr(0, line.find('\t'))) != std::string::npos;
    });
    if (value && *value == fact.value) {
      ++outcome.agreed;
    } else if (excepted) {
      ++outcome.excepted;
    } else if (!value) {
      ++outcome.not_run;
      std::printf("not run: %s %s\n", fact.statements.c_str(), value.error().message.c_str());
    } else {
      ++outcome.different;
      std::printf("different: %s gives 0x%llx, ptxas folds it to 0x%llx\n", fact.statements.c_str(),
                  static_cast<unsigned long long>(*value), static_cast<unsigned long long>(fact.value));
    }
  }
}

int run(const std::string& facts_text, const std::string& exceptions_text) {
  const std::vector<std::string> exceptions = lines_of(exceptions_text);
  std::vector<Fact> facts;
  Outcome outcome;
  for (const std::string& line : lines_of(facts_text)) {
    facts.push_back(parse(line));
    if (facts.size() < 100) continue;
    check(facts, exceptions, outcome);
    facts.clear();
  }
  if (!facts.empty()) check(facts, exceptions, outcome);
  std::printf("%zu facts agree, %zu differ, %zu may differ and do, %zu are not emulated\n", outcome.agreed,
              outcome.different, outcome.excepted, outcome.not_run);
  return outcome.different == 0 && outcome.not_run == 0 && outcome.agreed > 1000 ? 0 : 1;
}

} // namespace
} // namespace ptxrewrite::test

int main(int argument_count, char** arguments) {
  if (argument_count != 3) return std::fprintf(stderr, "usage: emulator_fold_facts FACTS EXCEPTIONS\n"), 2;
  auto facts = ptxrewrite::read_file(arguments[1]);
  auto exceptions = ptxrewrite::read_file(arguments[2]);
  if (!facts || !exceptions) return std::fprintf(stderr, "cannot read the facts\n"), 2;
  return ptxrewrite::test::run(*facts, *exceptions);
}
