// The differential driver finds planted defects of passes, and its reducers shrink them. The passes below are wrong on
// purpose; they are registered in this executable only.
#include "tests/fuzz/kernels/differential.h"

#include "evaluate/reduce/reducer.h"
#include "ir/core/function.h"
#include "launch/launch_file.h"
#include "support/file_io.h"
#include "tests/fuzz/kernels/kernel_generator.h"
#include "tests/fuzz/kernels/kernel_launch_file.h"
#include "tests/fuzz/kernels/kernel_operations.h"
#include "tests/fuzz/kernels/kernel_oracle.h"
#include "tests/fuzz/kernels/kernel_print.h"
#include "tests/fuzz/kernels/kernel_shrink.h"

#include <doctest/doctest.h>

using namespace ptxrewrite;
using namespace ptxrewrite::fuzz;
using transforms::Change;
using transforms::PassContext;

namespace {

template <class Visit> Change change_first(ir::Function& function, Visit&& visit) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == ir::InstructionKind::real && visit(id)) {
        function.changed();
        return Change::changed;
      }
  return Change::unchanged;
}

Change swap_sources_of_sub(ir::Function& function, PassContext&) {
  return change_first(function, [&](ir::InstructionId id) {
    auto operands = function.operands_of(id);
    const bool is_sub = function.is_opcode(id, ir::Opcode::sub) && operands.size() == 3;
    if (!is_sub || operands[1] == operands[2]) return false;
    std::swap(operands[1], operands[2]);
    return true;
  });
}

Change negate_a_guard(ir::Function& function, PassContext&) {
  return change_first(function, [&](ir::InstructionId id) {
    if (!function.instructions[id].guard) return false;
    function.instructions[id].guard_negated = !function.instructions[id].guard_negated;
    return true;
  });
}

Change shift_an_access(ir::Function& function, PassContext&) {
  return change_first(function, [&](ir::InstructionId id) {
    if (!function.is_opcode(id, ir::Opcode::ld) || ir::is_param(function.form_of(id).space)) return false;
    for (ir::Operand& operand : function.operands_of(id))
      if (operand.is(ir::OperandKind::address)) operand.immediate += 16;
    return true;
  });
}

Change drop_barriers(ir::Function& function, PassContext&) {
  Change change = Change::unchanged;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      const bool is_barrier = function.is_opcode(id, ir::Opcode::bar) || function.is_opcode(id, ir::Opcode::barrier);
      if (!is_barrier || function.operands_of(id)[0].is_definition()) continue;
      function.remove(id);
      change = Change::changed;
    }
  return change;
}

const transforms::RegisterPass planted[] = {transforms::RegisterPass({"planted-sub", "wrong", swap_sources_of_sub}),
                                            transforms::RegisterPass({"planted-guard", "wrong", negate_a_guard}),
                                            transforms::RegisterPass({"planted-access", "wrong", shift_an_access}),
                                            transforms::RegisterPass({"planted-barrier", "wrong", drop_barriers})};

Knobs small_integer_kernels() {
  Knobs knobs;
  knobs.floats = false;
  knobs.statements = 20;
  return knobs;
}

// The first seed whose kernel shows the chain's defect; 0 if none of fifty does.
uint64_t find_seed(const Chain& chain) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const Kernel kernel = generate_kernel(seed, small_integer_kernels());
    const std::string text = print_module(kernel);
    for (const Shape& shape : kernel.shapes)
      if (!disagreement(text, kernel, shape, chain).empty()) return seed;
  }
  return 0;
}

size_t count_lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), ';'));
}

} // namespace

TEST_CASE("planted defects are found") {
  for (const std::string pass : {"planted-sub", "planted-guard", "planted-access", "planted-barrier"}) {
    CAPTURE(pass);
    CHECK(find_seed({pass, transforms::OutputForm::legal, {}}) != 0);
    CHECK(find_seed({"dce," + pass + ",dce", transforms::OutputForm::legal, {}}) != 0);
  }
}

// Simulates a wrong instruction in the emulator: it runs another kernel than the oracle.
TEST_CASE("the comparison with the oracle notices instructions that do something slightly else") {
  constexpr std::pair<const char*, const char*> changes[] = {
      {"bfe.u32 ", "bfe.s32 "},           {"shr.s64 ", "shr.u64 "},
      {"min.u16 ", "min.s16 "},           {"setp.lt.s32 ", "setp.le.s32 "},
      {"mul.hi.u64 ", "mul.hi.s64 "},     {"fma.rn.f32 ", "fma.rz.f32 "},
      {"add.ftz.f32 ", "add.f32 "},       {"cvt.rzi.s32.f64 ", "cvt.rni.s32.f64 "},
      {"sub.f16x2 ", "add.f16x2 "},       {"div.rm.f64 ", "div.rp.f64 "},
      {"prmt.b32.ecl ", "prmt.b32.ecr "}, {"shf.l.wrap.b32 ", "shf.l.clamp.b32 "}};
  for (const auto& [right, wrong] : changes) {
    CAPTURE(right);
    bool noticed = false;
    for (uint32_t part = 0; part < sweep_count() && !noticed; ++part) {
      const Kernel kernel = generate_sweep(1, part);
      std::string text = print_module(kernel);
      size_t at = text.find(right);
      if (at == std::string::npos) continue;
      for (; at != std::string::npos; at = text.find(right, at + 1))
        text.replace(at, std::string_view(right).size(), wrong);
      std::string failed;
      const auto module = read_text(text, failed);
      REQUIRE(module);
      const Shape& shape = kernel.shapes[0];
      const Emulation emulation = emulate(*module, kernel, shape);
      REQUIRE(emulation.refused == "");
      noticed = !difference(kernel, shape, run_oracle(kernel, shape).buffers, emulation.buffers).empty();
    }
    CHECK(noticed);
  }
}

TEST_CASE("a find is reduced to a few instructions that still show it") {
  const Chain chain{"planted-sub", transforms::OutputForm::legal, {}};
  const uint64_t seed = find_seed(chain);
  REQUIRE(seed != 0);
  const Kernel kernel = generate_kernel(seed, small_integer_kernels());
  const std::string text = print_module(kernel);
  const Shape* shape = nullptr;
  for (const Shape& candidate : kernel.shapes)
    if (!disagreement(text, kernel, candidate, chain).empty()) shape = &candidate;
  REQUIRE(shape);
  evaluate::ReducerOptions options;
  options.test_limit = 3000;
  options.is_interesting = [&](const std::string& candidate) {
    return !disagreement(candidate, kernel, *shape, chain).empty();
  };
  const Result<evaluate::Reduction> reduction = evaluate::reduce(text, "kernel.ptx", options);
  REQUIRE(reduction.ok());
  INFO(reduction->text);
  CHECK(!disagreement(reduction->text, kernel, *shape, chain).empty());
  CHECK(reduction->text.find("sub.") != std::string::npos);
  CHECK(count_lines(reduction->text) <= 12);
}

TEST_CASE("chains: the identity, each pass in each form, and longer ones that depend on the seed") {
  const std::vector<Chain> chains = chains_for(5, 3);
  CHECK(chains.size() == 1 + 3 * transforms::all_passes().size() + 3);
  CHECK(chains[0].name() == "identity");
  bool differs = false;
  for (uint64_t seed = 6; seed < 16; ++seed)
    differs = differs || chains_for(seed, 3).back().name() != chains.back().name();
  CHECK(differs);
  CHECK(chains_for(5, 3).back().name() == chains.back().name());
}

TEST_CASE("a kernel shrinks to the statement that a property is about and what that needs") {
  const uint32_t wanted = operation_named("mul.hi.s32", "r", "rr");
  const auto has_stored_product = [&](const Kernel& kernel) {
    for (const Statement& statement : kernel.body)
      if (statement.kind == StatementKind::operation && statement.operation == wanted) return true;
    return false;
  };
  for (uint64_t seed = 1; seed < 400; ++seed) {
    const Kernel kernel = generate_kernel(seed, small_integer_kernels());
    if (!has_stored_product(kernel)) continue;
    const Kernel small = shrink_kernel(kernel, kernel.shapes[0], has_stored_product);
    CHECK(has_stored_product(small));
    CHECK(run_oracle(small, small.shapes[0]).problem == "");
    CHECK(count_statements(small) < 12);
    CHECK(count_statements(kernel) > 50);
    return;
  }
  FAIL("no kernel has the operation");
}

TEST_CASE("a kernel written as files can be read back: PTX, launch file, contents") {
  Result<TempDirectory> folder = TempDirectory::create();
  REQUIRE(folder.ok());
  const Kernel kernel = generate_kernel(3);
  const Shape& shape = kernel.shapes[1];
  REQUIRE(write_case(kernel, shape, folder->path().string()).ok());
  const std::string ptx = *read_file(folder->file(kernel.name + ".ptx"));
  CHECK(ptx == print_module(kernel));
  const std::string toml = *read_file(folder->file(kernel.name + ".toml"));
  CHECK(toml == launch_file(kernel, shape));
  for (size_t i = 0; i < kernel.buffers.size(); ++i)
    CHECK(read_file(folder->file(buffer_file(kernel, i)))->size() == kernel.buffer_size(i, shape));
}
