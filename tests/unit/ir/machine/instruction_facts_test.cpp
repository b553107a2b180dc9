// The facts that rules look up, against walks over the operands of all instructions of the samples.
#include "ir/machine/prepare/instruction_facts.h"

#include "ir/flow/dominators.h"
#include "ir/machine/prepare/lowering_context.h"
#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/ir/random_functions.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <filesystem>

namespace ptxrewrite::tests::instruction_facts_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

const Form* form_of(const Function& function, InstructionId id) {
  return function.instructions[id].kind == InstructionKind::real ? &function.form_of(id) : nullptr;
}

const Operand* source_of(const Function& function, InstructionId id, size_t index) {
  const std::span<const Operand> operands = function.operands_of(id);
  const Form* form = form_of(function, id);
  size_t place = 0;
  for (size_t left = (form ? form->definitions : 0) + index; left > 0 && place < operands.size(); --left)
    place = next_sibling(operands, place);
  return place < operands.size() && !operands[place].has(OperandFlag::old_value) ? &operands[place] : nullptr;
}

ValueId result_of(const Function& function, InstructionId id) {
  std::vector<ValueId> written;
  for_each_definition(function, id, [&](ValueId value) { written.push_back(value); });
  return written.size() == 1 ? written[0] : ValueId();
}

// Number of operands compared.
size_t compare(const Function& function) {
  const ControlFlow flow{function};
  const ValueFlow values{function};
  const DominatorTree dominators{function, flow};
  std::vector<InstructionCost> costs;
  const LoweringContext context{function, flow, values, 80, costs, {}, {}, {}, dominators, {}, {}, {}, {}};
  size_t operands = 0;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      CHECK(context.form(id) == form_of(function, id));
      CHECK(context.result(id) == result_of(function, id));
      for (size_t i = 0; i < 12; ++i) {
        CHECK(context.source(id, i) == source_of(function, id, i));
        operands += source_of(function, id, i) != nullptr;
      }
    }
  return operands;
}

FunctionContents contents_of(const std::string& body) {
  ReadText text(".version 8.0\n.target sm_80\n.address_size 64\n.global .b32 g;\n.func f() { ret; }\n"
                ".entry k()\n{\n.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %l<4>; .shared .b32 s[8];\n" +
                body + "\nret;\n}\n");
  REQUIRE(text.ok());
  return facts_of(*text.module->functions.back()).contents;
}

} // namespace

TEST_CASE("forms, results and operands are those of a walk") {
  size_t operands = 0;
  for (const auto& folder : std::filesystem::directory_iterator(source_path("samples"))) {
    const std::filesystem::path path = folder.path() / (folder.path().filename().string() + ".ptx");
    if (!std::filesystem::exists(path)) continue;
    CAPTURE(path.string());
    ReadText read(*read_file(path.string()));
    if (!read.ok()) continue;
    for (const auto& function : read.module->functions) {
      if (!function->has_body) continue;
      operands += compare(*function);
      if (construct_ssa(*function)) operands += compare(*function);
    }
  }
  CHECK(operands > 10'000);
}

TEST_CASE("the same with guards on all kinds of instructions, which have old values in SSA form") {
  size_t operands = 0, old = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    ReadText read(RandomKernel(seed).text());
    REQUIRE(read.ok());
    Function& function = *read.module->functions[0];
    operands += compare(function);
    if (!construct_ssa(function)) continue;
    operands += compare(function);
    old += facts_of(function).contents.keeps_old_values;
  }
  CHECK(operands > 3'000);
  CHECK(old > 30);
}

TEST_CASE("a function contains what one of its instructions is") {
  const FunctionContents nothing = contents_of("mov.u32 %r1, 1; add.u32 %r2, %r1, 2; ld.global.u32 %r3, [%l1];");
  CHECK_FALSE(nothing.divides);
  CHECK_FALSE(nothing.accesses_vectors);
  CHECK_FALSE(nothing.accesses_shared);
  CHECK_FALSE(nothing.loads_anew);
  CHECK_FALSE(nothing.guards_memory);
  CHECK_FALSE(nothing.names_functions);
  CHECK_FALSE(nothing.names_variables);
  CHECK_FALSE(nothing.has(InstructionClass::atomic));
  CHECK(nothing.has(InstructionClass::load));
  CHECK(nothing.predicates == 0);
  CHECK(contents_of("setp.eq.u32 %p1, %r1, 1; setp.eq.u32 %p2, %r1, 2;").predicates == 2);
  CHECK(contents_of("div.u32 %r1, %r2, %r3;").divides);
  CHECK(contents_of("rem.s32 %r1, %r2, 7;").divides);
  CHECK(contents_of("ld.global.v2.u32 {%r1, %r2}, [%l1];").accesses_vectors);
  CHECK(contents_of("st.shared.u32 [s], %r1;").accesses_shared);
  CHECK(contents_of("ld.volatile.global.u32 %r1, [%l1];").loads_anew);
  CHECK(contents_of("ld.acquire.gpu.global.u32 %r1, [%l1];").loads_anew);
  CHECK(contents_of("@%p1 st.global.u32 [%l1], %r1;").guards_memory);
  CHECK_FALSE(contents_of("@%p1 add.u32 %r1, %r1, 1;").guards_memory);
  CHECK(contents_of("call f;").names_functions);
  CHECK(contents_of("ld.global.u32 %r1, [g];").names_variables);
  CHECK(contents_of("atom.global.add.u32 %r1, [%l1], 1;").has(InstructionClass::atomic));
}

} // namespace ptxrewrite::tests::instruction_facts_test
