// Candidates that are assembled together have the same figures as alone, and a kernel causes no more runs of ptxas than
// permitted: counted by a script that replaces ptxas.
#include "transforms/manager/assemblies.h"

#include "evaluate/common/optimise.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "support/ptxas.h"
#include "tests/unit/paths.h"
#include "transforms/manager/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace ptxrewrite::tests::assemblies_test {

using namespace ptxrewrite;
using namespace ptxrewrite::transforms;
using State = Assemblies::Answer::State;

namespace {

const std::vector<std::string> both{"sm_80", "sm_90"};

bool has_ptxas() {
  if (find_ptxas()) return true;
  MESSAGE("skipped: no ptxas");
  return false;
}

std::unique_ptr<ir::Module> read(const std::string& text) {
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  REQUIRE(module);
  return module;
}

// Remainders by 7, 8 and 1 give machine code of different lengths.
std::string text_with_remainder(unsigned divisor, const std::string& in_front = "", const std::string& first = "") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + in_front +
         ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n.reg .b64 %rd<2>;\n.reg .b32 %r<3>;\n"
         "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\n" +
         first + "rem.u32 %r2, %r1, " + std::to_string(divisor) + ";\nst.global.u32 [%rd1], %r2;\nret;\n}\n";
}

// The kernel with a literal instead of the operand at `place` of each such instruction.
ir::Function with_literal(const ir::Function& kernel, ir::Opcode opcode, size_t place, int64_t literal) {
  ir::Function changed(kernel);
  for (ir::BlockId block : changed.layout)
    for (ir::InstructionId id : changed.instructions_in(block))
      if (changed.is_opcode(id, opcode)) {
        std::vector<ir::Operand> operands(changed.operands_of(id).begin(), changed.operands_of(id).end());
        operands[place].immediate = literal;
        changed.set_operands(id, operands);
      }
  return changed;
}
ir::Function with_divisor(const ir::Function& kernel, int64_t divisor) {
  return with_literal(kernel, ir::Opcode::rem, 2, divisor);
}
ir::Function with_barrier(const ir::Function& kernel, int64_t barrier) {
  return with_literal(kernel, ir::Opcode::bar, 0, barrier);
}

ir::MachineFigures alone(const std::string& text, const std::string& architecture) {
  const Result<ir::FiguresByFunction> figures = ir::machine_figures(text, architecture);
  REQUIRE(figures.ok());
  return figures->at("k");
}

// A program that replaces ptxas and counts its runs, during its lifetime.
class CountingPtxas {
public:
  explicit CountingPtxas(const TempDirectory& folder) : log_(folder.file("log")) {
    const Result<std::string> real = find_ptxas();
    REQUIRE(real.ok());
    const std::string program = folder.file("ptxas");
    REQUIRE(write_file(program, "#!/bin/sh\necho run >> '" + log_ + "'\nexec '" + *real + "' \"$@\"\n").ok());
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    if (const char* set = std::getenv("PTXREWRITE_PTXAS")) before_ = set;
    setenv("PTXREWRITE_PTXAS", program.c_str(), 1);
  }
  ~CountingPtxas() {
    if (before_.empty())
      unsetenv("PTXREWRITE_PTXAS");
    else
      setenv("PTXREWRITE_PTXAS", before_.c_str(), 1);
  }
  size_t runs() const {
    const Result<std::string> log = read_file(log_);
    return log ? static_cast<size_t>(std::count(log->begin(), log->end(), '\n')) : 0;
  }

private:
  std::string log_, before_;
};

} // namespace

TEST_CASE("versions that are assembled together are what each is alone, in a run for each architecture") {
  if (!has_ptxas()) return;
  const std::unique_ptr<ir::Module> module = read(text_with_remainder(7));
  ir::Function& kernel = *module->functions[0];
  REQUIRE(ir::construct_ssa(kernel));
  Assemblies assemblies({});
  assemblies.begin(*module, ir::FunctionId(0));
  const unsigned divisors[] = {7, 8, 1};
  for (unsigned divisor : divisors)
    CHECK(assemblies.figures(with_divisor(kernel, divisor), both).state == State::asked);
  CHECK(assemblies.figures(with_divisor(kernel, 8), both).state == State::asked); // the same question
  const std::string before = ir::print(*module);
  assemblies.answer();
  CHECK(ir::print(*module) == before);
  CHECK(assemblies.runs() == 2);
  CHECK(assemblies.assembled_kernels() == 6);
  std::set<uint32_t> lengths;
  for (unsigned divisor : divisors) {
    const Assemblies::Answer answer = assemblies.figures(with_divisor(kernel, divisor), both);
    REQUIRE(answer.state == State::known);
    REQUIRE(answer.figures.size() == 2);
    for (const auto& [architecture, figures] : answer.figures)
      CHECK(figures == alone(text_with_remainder(divisor), architecture));
    lengths.insert(answer.figures[0].second.instructions);
  }
  CHECK(lengths.size() > 1);
}

TEST_CASE("when the runs are spent, what was not assembled is left out") {
  if (!has_ptxas()) return;
  const std::unique_ptr<ir::Module> module = read(text_with_remainder(7));
  ir::Function& kernel = *module->functions[0];
  REQUIRE(ir::construct_ssa(kernel));
  Assemblies assemblies({.assemblies = 3});
  assemblies.begin(*module, ir::FunctionId(0));
  CHECK(assemblies.figures(kernel, both).state == State::asked);
  assemblies.answer();
  CHECK(assemblies.figures(with_divisor(kernel, 8), both).state == State::left_out); // one run is left, it needs two
  CHECK_FALSE(assemblies.has_questions());
  CHECK(assemblies.figures(kernel, both).state == State::known);
  CHECK(assemblies.runs() == 2);
}

TEST_CASE("a version that ptxas refuses takes no other along") {
  if (!has_ptxas()) return;
  const std::unique_ptr<ir::Module> module = read(text_with_remainder(7, "", "bar.sync 0;\n"));
  ir::Function& kernel = *module->functions[0];
  REQUIRE(ir::construct_ssa(kernel));
  Assemblies assemblies({});
  assemblies.begin(*module, ir::FunctionId(0));
  for (unsigned barrier : {0u, 99u, 1u}) // there are 16
    CHECK(assemblies.figures(with_barrier(kernel, barrier), {"sm_80"}).state == State::asked);
  assemblies.answer();
  CHECK(assemblies.figures(with_barrier(kernel, 0), {"sm_80"}).state == State::known);
  CHECK(assemblies.figures(with_barrier(kernel, 99), {"sm_80"}).state == State::refused);
  CHECK(assemblies.figures(with_barrier(kernel, 1), {"sm_80"}).state == State::known);
  CHECK(assemblies.runs() == 4); // together, then each alone
  CHECK(assemblies.has_refused());
}

TEST_CASE("kernels that call functions are assembled alone") {
  if (!has_ptxas()) return;
  const std::unique_ptr<ir::Module> module =
      read(text_with_remainder(7, ".func helper()\n{\nret;\n}\n", "call.uni helper;\n"));
  REQUIRE(module->functions.size() == 2);
  ir::Function& kernel = *module->functions[1];
  REQUIRE(ir::construct_ssa(kernel));
  Assemblies assemblies({});
  assemblies.begin(*module, ir::FunctionId(1));
  for (unsigned divisor : {7u, 8u})
    CHECK(assemblies.figures(with_divisor(kernel, divisor), both).state == State::asked);
  assemblies.answer();
  for (unsigned divisor : {7u, 8u})
    CHECK(assemblies.figures(with_divisor(kernel, divisor), both).state == State::known);
  CHECK(assemblies.runs() == 4);
}

namespace {

// Runs -O on each kernel of the text, and checks that no kernel causes more than `effort` runs.
void check_runs(const std::string& path, unsigned effort) {
  CAPTURE(path);
  const Result<std::string> text = read_file(source_path(path));
  REQUIRE(text.ok());
  const Result<TempDirectory> folder = TempDirectory::create();
  REQUIRE(folder.ok());
  const CountingPtxas ptxas(*folder);
  const Result<Pipeline> pipeline = parse_pipeline(evaluate::optimising_pipeline);
  REQUIRE(pipeline.ok());
  evaluate::OptimiseSettings settings;
  settings.gives_back = true;
  settings.run.run_ptxas = true;
  settings.run.effort.assemblies = effort;
  const Result<evaluate::Optimised> result = evaluate::optimise(read(*text), *pipeline, settings);
  REQUIRE(result.ok());
  CHECK(result->report.most_assemblies <= effort);
  CHECK(ptxas.runs() <= effort * result->report.functions.size());
  // Weighed step by step: nothing gets longer.
  const Result<ir::FiguresByFunction> before = ir::machine_figures(*text, ""),
                                      after = ir::machine_figures(result->text, "");
  REQUIRE(before.ok());
  REQUIRE(after.ok());
  for (const auto& [name, row] : *before)
    CHECK_MESSAGE(after->at(name).instructions <= row.instructions, name);
}

} // namespace

TEST_CASE("-O takes at most six runs of ptxas a kernel, all passes together") {
  if (!has_ptxas()) return;
  for (const char* path : {"samples/mvt/mvt.ptx", "tests/launchtime/idioms/divisor.ptx"})
    check_runs(path, 6);
}

} // namespace ptxrewrite::tests::assemblies_test
