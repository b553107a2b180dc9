// R2D2's register budget against the paper's figures (r2d2-isca23 §5.6), and at its limits.
#include "emulator/machines/r2d2/register_budget.h"

#include "tests/unit/emulator/run_ptx.h"

namespace ptxrewrite::tests::register_budget_test {

using namespace ptxrewrite;
using namespace ptxrewrite::emulator;

namespace {

const ir::Machine& titan_v() {
  const ir::Machine* machine = ir::find_machine("titanv");
  REQUIRE(machine);
  return *machine;
}

// block2D_hybrid_coarsen_x: 32 registers and 128 threads, 16 blocks fill the register file completely. Three registers
// of 8 bytes are removed; 4 thread-index, 16 block-index and 67 coefficient registers are added.
BudgetFacts hybrid_coarsen_x() {
  return {.threads_per_block = 128,
          .blocks = 10'000,
          .original_registers = 32,
          .body_registers = 26,
          .linear = {.threads = 4,
                     .blocks = 16,
                     .coefficients = 67,
                     .thread_units = 4,
                     .block_units = 32,
                     .coefficient_units = 67}};
}

} // namespace

TEST_CASE("the paper's example: 1091 registers needed, 12288 freed") {
  const RegisterBudget budget = register_budget(titan_v(), hybrid_coarsen_x());
  CHECK(budget.resident_blocks == 16);
  CHECK(budget.freed == 12'288);
  CHECK(budget.available == 12'288);
  CHECK(budget.needed == 1091);
  CHECK(budget.needed_in_paper == 1091);
  CHECK(budget.fits());
}

TEST_CASE("nothing freed, nothing left: it does not fit; one register more than there is does not either") {
  BudgetFacts facts = hybrid_coarsen_x();
  facts.body_registers = 32;
  RegisterBudget budget = register_budget(titan_v(), facts);
  CHECK(budget.freed == 0);
  CHECK(budget.available == 0);
  CHECK_FALSE(budget.fits());
  // One register per thread freed: 2048. 12 thread-index registers and 512 for block parts use all of them.
  facts.body_registers = 31;
  facts.linear.thread_units = 12;
  facts.linear.coefficient_units = 0;
  budget = register_budget(titan_v(), facts);
  CHECK(budget.available == 2048);
  CHECK(budget.needed == 2048);
  CHECK(budget.fits());
  facts.linear.coefficient_units = 1;
  CHECK_FALSE(register_budget(titan_v(), facts).fits());
}

TEST_CASE("what the original never used counts: shared memory or few blocks leave registers") {
  BudgetFacts facts = hybrid_coarsen_x();
  facts.body_registers = 32;
  facts.shared_bytes = 24 * 1024; // four blocks
  RegisterBudget budget = register_budget(titan_v(), facts);
  CHECK(budget.resident_blocks == 4);
  CHECK(budget.available == 65'536 - 4 * 128 * 32);
  CHECK(budget.needed == 4 * 128 + 32 * 4 + 67);
  CHECK(budget.fits());
  facts.shared_bytes = 0;
  facts.blocks = 81; // two for one SM, one for each of the others
  CHECK(register_budget(titan_v(), facts).resident_blocks == 2);
  CHECK(register_budget(titan_v(), facts).fits());
  // A body that needs more registers than the original does not fit if registers limit the number of blocks.
  facts.blocks = 10'000;
  facts.body_registers = 33;
  CHECK(register_budget(titan_v(), facts).available == 0);
}

TEST_CASE("registers are counted by the width of what is written into them, and only those that are kept") {
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("test.ptx", R"(//@ ptxrewrite hardware 1
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 step)
{
  .reg .b32 %r<4>;
  .reg .b64 %cr<8>, %tr<8>, %br<8>, %lr<8>;
  .r2d2.coefficient {
  ld.param.u64 %cr0, [out];
  ld.param.u32 %cr1, [step];
  mul.wide.u32 %cr2, %cr1, 4;
  mov.u32 %cr3, %ntid.x;
  mov.u32 %cr4, %ntid.y;
  }
  .r2d2.thread {
  cvt.u64.u32 %tr0, %tid.x;
  mad.lo.s64 %tr1, %tr0, %cr4, 0;
  mad.lo.s32 %tr2, %tr0, 3, 0;
  }
  .r2d2.block {
  cvt.u64.u32 %br0, %ctaid.x;
  mad.lo.s64 %br1, %br0, %cr2, %cr0;
  mad.lo.s32 %br2, %br0, %cr3, 0;
  }
  .r2d2.linear %lr0 = %tr1 + %br1;
  .r2d2.linear %lr1 = %tr2 + %br2;
  .r2d2.linear %lr2 = %tr1 + %br2;
  r2d2.mov.b32 %r1, %lr1, %cr1, 8;
  st.global.u32 [%lr0+%cr2], %r1;
  ret;
}
)"),
                                                            diagnostics);
  REQUIRE(module);
  const LinearRegisterUse use = linear_register_use(*module->functions[0]);
  CHECK(use.threads == 2); // %tr1, %tr2; %tr0 is an intermediate step
  CHECK(use.thread_units == 2 + 1);
  CHECK(use.blocks == 2);
  CHECK(use.block_units == 2 + 1);
  CHECK(use.coefficients == 4); // %cr0, %cr2, %cr3 of block parts, %cr1 of the body; not %cr4, of thread parts
  CHECK(use.coefficient_units == 2 + 2 + 1 + 1);
}

TEST_CASE("a kernel in PTX needs none") {
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(
      SourceFile("test.ptx", kernel("k", "", ".reg .b32 %r<2>;\nmov.u32 %r1, 1;\nret;")), diagnostics);
  REQUIRE(module);
  CHECK(linear_register_use(*module->functions[0]) == LinearRegisterUse{});
}

} // namespace ptxrewrite::tests::register_budget_test
