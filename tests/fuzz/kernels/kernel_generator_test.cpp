// The generator's guarantees: the same kernel for a seed, all features within two hundred seeds, text accepted by our
// reader, verifier and ptxas, no races and no undefined behaviour according to the oracle, whose own checks fail on
// corrupted kernels.
#include "grammar/reader.h"
#include "ir/verify/verify.h"
#include "support/ptxas.h"
#include "tests/fuzz/kernels/kernel_generator.h"
#include "tests/fuzz/kernels/kernel_operations.h"
#include "tests/fuzz/kernels/kernel_oracle.h"
#include "tests/fuzz/kernels/kernel_print.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <set>

using namespace ptxrewrite;
using namespace ptxrewrite::fuzz;

namespace {

constexpr uint64_t seed_count = 200;

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all = [] {
    std::vector<Kernel> result;
    for (uint64_t seed = 1; seed <= seed_count; ++seed)
      result.push_back(generate_kernel(seed));
    return result;
  }();
  return all;
}

std::vector<Kernel> sweeps() {
  std::vector<Kernel> all;
  for (uint32_t part = 0; part < sweep_count(); ++part)
    all.push_back(generate_sweep(1, part));
  return all;
}

template <class Visit> void for_each_statement(std::vector<Statement>& statements, Visit&& visit) {
  for (Statement& statement : statements) {
    visit(statement);
    for (std::vector<Statement>& body : statement.bodies)
      for_each_statement(body, visit);
  }
}

// Text of several kernels at a time: starting ptxas costs more than assembling a kernel.
void check_assembles(const std::vector<Kernel>& all) {
  if (!find_ptxas().ok()) {
    MESSAGE("skipped: no ptxas on this machine");
    return;
  }
  constexpr size_t batch = 25;
  for (size_t at = 0; at < all.size(); at += batch) {
    std::vector<const Kernel*> some;
    for (size_t i = at; i < std::min(all.size(), at + batch); ++i)
      some.push_back(&all[i]);
    PtxasOptions options;
    options.optimization_level = 0;
    const Result<PtxasRun> run = assemble(print_module(some), options);
    REQUIRE(run.ok());
    CAPTURE(some.front()->seed);
    INFO(run->messages.substr(0, 600));
    CHECK(run->ok);
  }
}

void check_reads(const Kernel& kernel) {
  Diagnostics diagnostics;
  const SourceFile source("kernel.ptx", print_module(kernel));
  const auto module = grammar::read_module(source, diagnostics);
  CAPTURE(kernel.seed);
  INFO((diagnostics.list().empty() ? std::string() : render(diagnostics.list().front(), source)));
  REQUIRE(module);
  const auto findings = ir::verify(*module);
  INFO((findings.empty() ? std::string() : findings.front().rule));
  CHECK(findings.empty());
}

// { read %laneid; if (it is `lane`) statement }
Statement only_in_lane(uint32_t lane, Kernel& kernel, const Statement& statement) {
  const auto first = static_cast<uint32_t>(kernel.variables.size());
  kernel.variables.resize(first + 2);
  kernel.variables[first + 1].kind = Kind::predicate;
  Statement read, compare, branch, all;
  read.kind = StatementKind::special_register;
  read.special = SpecialRegister::laneid;
  read.results = {first};
  compare.operation = operation_named("setp.eq.u32", "p", "rr");
  compare.results = {first + 1};
  compare.sources = {Operand::of(first), Operand::immediate(Kind::b32, lane)};
  branch.kind = StatementKind::branch;
  branch.guard = {true, false, first + 1};
  branch.bodies = {{statement}};
  all.kind = StatementKind::scope;
  all.bodies = {{read, compare, branch}};
  return all;
}

// The oracle's problem with any of the corrupted kernels, or "".
template <class Spoil> std::string problem_after(Spoil&& spoil) {
  for (Kernel kernel : kernels()) {
    spoil(kernel);
    const OracleResult result = run_oracle(kernel, kernel.shapes[0]);
    if (!result.problem.empty()) return result.problem;
  }
  return "";
}

} // namespace

TEST_CASE("the same seed gives the same kernel, another seed another") {
  for (uint64_t seed : {3, 77, 1000003})
    CHECK(print_module(generate_kernel(seed)) == print_module(generate_kernel(seed)));
  std::set<std::string> texts;
  for (const Kernel& kernel : kernels())
    texts.insert(print_module(kernel));
  CHECK(texts.size() == kernels().size());
}

TEST_CASE("every feature occurs within two hundred seeds") {
  std::printf("%s\n", statistics_line(kernels()).c_str());
  std::map<std::string, uint64_t> sums;
  for (const Kernel& kernel : kernels())
    for (const auto& [feature, times] : kernel.features)
      sums[feature] += times;
  for (const std::string& feature : all_features()) {
    CAPTURE(feature);
    CHECK(sums[feature] >= 5);
  }
}

TEST_CASE("a knob turned off turns its feature off") {
  Knobs knobs;
  knobs.guard = 0;
  knobs.weights["loop"] = 0;
  knobs.weights["f64 arithmetic"] = 0;
  uint64_t loops = 0, guards = 0, doubles = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Kernel kernel = generate_kernel(seed, knobs);
    loops += kernel.features["uniform loop"] + kernel.features["divergent loop"];
    guards += kernel.features["guard"];
    doubles += kernel.features["f64 arithmetic"];
  }
  CHECK(loops == 0);
  CHECK(guards == 0);
  CHECK(doubles == 0);
}

TEST_CASE("sweeps hold every exact operation") {
  std::set<uint32_t> seen;
  for (Kernel& kernel : sweeps())
    for_each_statement(kernel.body, [&](const Statement& statement) {
      if (statement.kind == StatementKind::operation) seen.insert(statement.operation);
    });
  for (uint32_t i = 0; i < operations().size(); ++i) {
    if (!operations()[i].evaluate || operations()[i].group == "address arithmetic") continue;
    CAPTURE(operations()[i].text);
    CHECK(seen.count(i) == 1);
  }
  CHECK(operations().size() > 1000);
}

TEST_CASE("our reader takes the kernels and our verifier finds nothing") {
  for (const Kernel& kernel : kernels())
    check_reads(kernel);
  for (const Kernel& kernel : sweeps())
    check_reads(kernel);
}

TEST_CASE("ptxas assembles the kernels") {
  check_assembles(kernels());
  check_assembles(sweeps());
}

TEST_CASE("the oracle finds the kernels sound in all their shapes") {
  uint64_t steps = 0;
  for (const Kernel& kernel : kernels())
    for (const Shape& shape : kernel.shapes) {
      const OracleResult result = run_oracle(kernel, shape);
      CAPTURE(kernel.seed);
      CHECK(result.problem == "");
      steps += result.steps;
    }
  CHECK(steps > 1'000'000);
}

TEST_CASE("of kernels about index arithmetic a third wraps around, and is meant to") {
  size_t meant = 0;
  constexpr size_t count = 90;
  for (uint64_t seed = 1; seed <= count; ++seed) {
    const Kernel kernel = generate_kernel(seed, index_knobs());
    uint64_t wrapped = 0;
    for (const Shape& shape : kernel.shapes)
      wrapped += run_oracle(kernel, shape).wrapped;
    CAPTURE(seed);
    CHECK((wrapped != 0) == kernel.may_wrap);
    meant += kernel.may_wrap;
  }
  CHECK(meant >= count / 4);
}

TEST_CASE("the oracle notices kernels that are not sound") {
  CHECK(problem_after([](Kernel& kernel) {
          for_each_statement(kernel.body, [](Statement& statement) {
            if (statement.kind == StatementKind::barrier && statement.results.empty())
              statement.kind = StatementKind::no_effect;
          });
        }).starts_with("data race"));
  CHECK(problem_after([](Kernel& kernel) {
          for (Statement& statement : kernel.body)
            if (statement.kind == StatementKind::load_or_store && statement.memory.is_store &&
                statement.text.find("local") != std::string::npos)
              statement.kind = StatementKind::no_effect;
        }).starts_with("load of memory without contents"));
  CHECK(problem_after([](Kernel& kernel) { kernel.buffers[1].size_per_thread /= 2; }).find("out of bounds") !=
        std::string::npos);
  CHECK(problem_after([](Kernel& kernel) { kernel.buffers[1].size_per_thread = 256; }) != "");
  CHECK(problem_after([](Kernel& kernel) { kernel.arguments[2].offset = 1; }).starts_with("misaligned"));
  CHECK(problem_after([](Kernel& kernel) {
          for (Statement& statement : kernel.body)
            if (statement.kind == StatementKind::special_register) statement.kind = StatementKind::no_effect;
        }).find("has no value") != std::string::npos);
  CHECK(problem_after([](Kernel& kernel) {
          for_each_statement(kernel.body, [](Statement& statement) {
            if (statement.kind != StatementKind::branch || statement.bodies.size() != 1) return;
            Statement barrier;
            barrier.kind = StatementKind::barrier;
            statement.bodies[0].push_back(barrier);
          });
        }) == "barrier in divergent code");
  CHECK(problem_after([](Kernel& kernel) {
          for (Statement& statement : kernel.body)
            if (statement.kind == StatementKind::warp && statement.warp_function != WarpFunction::sync) {
              statement = only_in_lane(7, kernel, statement);
              return;
            }
        }) == "warp function in divergent code");
}
