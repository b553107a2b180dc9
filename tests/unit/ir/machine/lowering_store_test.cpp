// Cached lowerings against recomputed ones, for every change of an operand, guard or directive of a kernel.
#include "ir/machine/select/lowering_store.h"

#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::lowering_store_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

std::unique_ptr<ReadText> sample(const std::string& name) {
  auto read = std::make_unique<ReadText>(*read_file(source_path("samples/" + name + "/" + name + ".ptx")));
  REQUIRE(read->ok());
  for (const auto& function : read->module->functions)
    if (function->has_body) REQUIRE(construct_ssa(*function));
  return read;
}

bool same_costs(const Lowering& a, const Lowering& b, const Function& function) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (a.cost(id).weight != b.cost(id).weight || a.cost(id).uniform != b.cost(id).uniform ||
          a.needed(id) != b.needed(id) || a.absorbed(id) != b.absorbed(id))
        return false;
  return a.static_instructions() == b.static_instructions();
}

} // namespace

TEST_CASE("a kernel and its copy are lowered once, for each capability") {
  const auto read = sample("hotspot");
  LoweringStore store;
  const Function copy(read->function());
  const auto first = store.of(read->function(), 80);
  CHECK(store.of(copy, 80) == first);
  CHECK(store.computed() == 1);
  CHECK(store.of(copy, 90) != first);
  CHECK(store.computed() == 2);
  store.clear();
  store.of(copy, 80);
  CHECK(store.computed() == 3);
}

TEST_CASE("what was changed is never taken for what was there") {
  size_t edits = 0;
  for (const char* name : {"hotspot", "backprop", "reduction", "matmul"}) {
    const auto read = sample(name);
    for (const auto& function : read->module->functions) {
      LoweringStore store;
      store.of(*function, 80);
      for (BlockId block : function->layout)
        for (InstructionId id : function->instructions_in(block)) {
          Function edited(*function);
          if (edited.instructions[id].guard.valid()) {
            edited.instructions[id].guard_negated = !edited.instructions[id].guard_negated;
            CHECK(content_hash(edited) != content_hash(*function));
            edited = *function;
          }
          for (size_t i = 0; i < edited.operands_of(id).size(); ++i) {
            Operand& operand = edited.operands_of(id)[i];
            if (operand.kind != OperandKind::integer && operand.kind != OperandKind::address) continue;
            const auto before = operand.immediate;
            operand.immediate = before + 1;
            edited.changed();
            CHECK(content_hash(edited) != content_hash(*function));
            CHECK(store.content_of(edited) == content_hash(edited));
            CHECK(same_costs(*store.of(edited, 80), lower(edited, 80), edited));
            edited.operands_of(id)[i].immediate = before;
            edited.changed();
            CHECK(content_hash(edited) == content_hash(*function));
            CHECK(store.content_of(edited) == content_hash(edited));
            ++edits;
          }
        }
      // One for the kernel, one for each edit, none for the restored versions.
      CHECK(store.computed() == store.asked());
    }
  }
  CHECK(edits > 50);
}

TEST_CASE("callers are lowered each time: what they call may have changed") {
  ReadText read(".version 9.0\n.target sm_90\n.address_size 64\n"
                ".func (.reg .u32 a) f(.reg .u32 b) { add.u32 a, b, 1; ret; }\n"
                ".visible .entry k(.param .u64 p) { .reg .u32 %r<3>; mov.u32 %r1, 2; call (%r2), f, (%r1); ret; }\n");
  REQUIRE_MESSAGE(read.ok(), read.messages());
  LoweringStore store;
  store.of(read.function(1), 80);
  store.of(read.function(1), 80);
  CHECK(store.computed() == 2);
}

} // namespace ptxrewrite::tests::lowering_store_test
