// The bound on a candidate's gain, against the gain itself, which takes a lowering of both kernels.
#include "transforms/common/gain_bound.h"

#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "tests/unit/paths.h"
#include "tests/unit/transforms/variant_fixture.h"
#include "transforms/common/choice.h"

#include <cmath>
#include <filesystem>

namespace ptxrewrite::tests::gain_bound_test {

using namespace ptxrewrite;
using namespace ptxrewrite::transforms;
using namespace ptxrewrite::transforms::legal;

namespace {

ir::InstructionId find(const ir::Function& function, ir::Opcode opcode) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      if (function.is_opcode(id, opcode)) return id;
  FAIL("no such instruction");
  return {};
}

// The kernel of the text in SSA form.
struct Kernel {
  explicit Kernel(const std::string& body)
      : module(
            module_in(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)"
                      "\n{\n.reg .pred %p<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<9>;\n"
                      "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\n" +
                      body + "ret;\n}\n")),
        function(*module->functions.front()), bound(in_ssa(function), analyses) {}

  static ir::Function& in_ssa(ir::Function& function) {
    REQUIRE(ir::construct_ssa(function));
    return function;
  }

  std::unique_ptr<ir::Module> module;
  ir::Function& function;
  AnalysisCache analyses;
  GainBound bound;
};

// What a pass saves of each kernel of a sample, and its bound.
struct Comparison {
  unsigned kernels = 0;
  double worst = 0; // saved / bound
};

void compare(const std::string& text, const char* pass, Comparison& result) {
  std::unique_ptr<ir::Module> module = module_in(text);
  for (size_t i = 0, count = module->functions.size(); i < count; ++i) {
    ir::Function& function = *module->functions[i];
    if (!function.has_body || !ir::construct_ssa(function)) continue;
    const ir::Function original = function;
    PassContext context;
    context.options.set("force", "");
    context.options.set("cost", "model");
    if (find_pass(pass)->run(function, context) == Change::unchanged) continue;
    std::vector<const ir::Function*> candidates{&function};
    for (const std::unique_ptr<ir::Function>& variant : context.additions)
      candidates.push_back(variant.get());
    AnalysisCache analyses;
    const GainBound bound(original, analyses);
    for (const ir::Function* candidate : candidates) {
      const double saved = model_cost_of(original).weighted - model_cost_of(*candidate).weighted;
      const double most = bound.most_saved_by(*candidate);
      if (saved <= 0) continue;
      ++result.kernels;
      result.worst = std::max(result.worst, saved / most);
    }
  }
}

} // namespace

TEST_CASE("an unchanged copy saves nothing") {
  Kernel kernel("add.u32 %r2, %r1, 5;\nst.global.u32 [%rd1], %r2;\n");
  CHECK(kernel.bound.most_saved_by(ir::Function(kernel.function)) == 0);
}

TEST_CASE("a removed reader makes the instructions before it superfluous, as far as nothing else reads them") {
  // Two chains of remainders by registers, which are some 20 instructions each.
  const std::string text = "rem.u32 %r2, 1000, %r1;\nrem.u32 %r3, 2000, %r2;\nst.global.u32 [%rd1], %r2;\n"
                           "rem.u32 %r4, 3000, %r3;\nst.shared.u32 [%r1], %r4;\n";
  Kernel kernel(text);
  ir::Function without = kernel.function;
  for (ir::BlockId block : without.layout)
    for (ir::InstructionId id : without.instructions_in(block))
      if (without.is_opcode(id, ir::Opcode::st) && without.form_of(id).space == ir::StateSpace::shared)
        without.remove(id);
  const double saved = model_cost_of(kernel.function).weighted - model_cost_of(without).weighted;
  CHECK(saved > 30); // two of the three remainders
  CHECK(kernel.bound.most_saved_by(without) >= saved);
}

TEST_CASE("a changed operand bounds the gain by the instruction and its neighbours") {
  std::string text = "rem.u32 %r2, 1000, %r1;\n";
  for (int i = 2; i < 30; ++i)
    text += "rem.u32 %r" + std::to_string(i + 1) + ", 1000, %r" + std::to_string(i) + ";\n";
  Kernel kernel(text + "st.global.u32 [%rd1], %r30;\n");
  const double all = model_cost_of(kernel.function).weighted;
  ir::Function changed = kernel.function;
  const ir::InstructionId first = find(changed, ir::Opcode::rem);
  std::vector<ir::Operand> operands(changed.operands_of(first).begin(), changed.operands_of(first).end());
  operands[2] = ir::Operand::integer(7);
  changed.set_operands(first, operands);
  const double most = kernel.bound.most_saved_by(changed);
  CHECK(most >= all - model_cost_of(changed).weighted);
  CHECK(most < all / 3);
}

TEST_CASE("the balance: removed and rewritten instructions, less new ones; a rewritten access stays") {
  // Each value has another reader, so that no change makes an instruction superfluous.
  Kernel kernel("ld.global.u32 %r3, [%rd1];\nmul.lo.u32 %r2, %r1, %r3;\nst.global.u32 [%rd1], %r2;\n"
                "st.global.u32 [%rd1+4], %r1;\nst.global.u32 [%rd1+8], %r2;\nst.global.u32 [%rd1+12], %r3;\n");
  const auto balance = [&](const ir::Function& candidate) {
    return kernel.bound.bounds(candidate).by_balance / GainBound::usual_balance.slack;
  };
  ir::Function changed = kernel.function;
  CHECK(balance(changed) == 0);
  const auto set_source = [&](ir::InstructionId id, size_t place, ir::Operand operand) {
    std::vector<ir::Operand> operands(changed.operands_of(id).begin(), changed.operands_of(id).end());
    operands[place] = operand;
    changed.set_operands(id, operands);
  };
  // One multiplication is rewritten: at most it is saved.
  const ir::InstructionId product = find(changed, ir::Opcode::mul);
  set_source(product, 1, ir::Operand::integer(7));
  CHECK(balance(changed) == 1);
  // Another address: three quarters of the store's one instruction stay.
  const ir::InstructionId store = find(changed, ir::Opcode::st);
  for (size_t i = 0; i < changed.operands_of(store).size(); ++i)
    if (changed.operands_of(store)[i].is(ir::OperandKind::address)) {
      ir::Operand address = changed.operands_of(store)[i];
      address.immediate += 8;
      set_source(store, i, address);
    }
  CHECK(balance(changed) == 1.25);
  // A new computation, and a new load of a parameter, which costs nothing.
  const ir::BlockId block = changed.layout.front();
  const auto add_copy = [&](ir::Opcode opcode) {
    const ir::InstructionId from = find(changed, opcode);
    std::vector<ir::Operand> operands(changed.operands_of(from).begin(), changed.operands_of(from).end());
    const ir::OperandFlag flags = operands[0].flags;
    operands[0] = ir::Operand::value(changed.add_value(changed.values[operands[0].as_value()]));
    operands[0].flags = flags;
    ir::Instruction instruction;
    instruction.form = changed.instructions[from].form;
    changed.append(block, changed.add_instruction(instruction, operands));
  };
  add_copy(ir::Opcode::mul);
  CHECK(balance(changed) == 0.5);
  const GainBalance in_full{.new_share = 1, .slack = 3};
  CHECK(kernel.bound.bounds(changed, GainBound::usual_slack, in_full).by_balance == 3 * 0.25);
  add_copy(ir::Opcode::ld); // the first one is a parameter's
  CHECK(balance(changed) == 0.5);
}

TEST_CASE("a changed argument of an edge makes the old argument's definition superfluous") {
  Kernel kernel("mov.u32 %r2, 1;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra $End;\nrem.u32 %r2, 1000, %r1;\n$End:\n"
                "st.global.u32 [%rd1], %r2;\n");
  ir::Function changed = kernel.function;
  const ir::ValueId remainder = changed.operands_of(find(changed, ir::Opcode::rem))[0].as_value();
  for (ir::EdgeId edge : changed.edges.ids())
    for (ir::ValueId& argument : changed.arguments(edge))
      if (argument == remainder) argument = changed.operands_of(find(changed, ir::Opcode::mov))[0].as_value();
  changed.changed();
  const double saved = model_cost_of(kernel.function).weighted - model_cost_of(changed).weighted;
  CHECK(saved > 5);
  CHECK(kernel.bound.most_saved_by(changed) >= saved);
}

TEST_CASE("other control flow has no bound") {
  Kernel kernel("setp.eq.u32 %p1, %r1, 0;\n@%p1 bra $End;\nst.global.u32 [%rd1], %r1;\n$End:\n");
  ir::Function shorter = kernel.function;
  shorter.remove_block(shorter.layout[1]);
  CHECK(std::isinf(kernel.bound.most_saved_by(shorter)));
}

TEST_CASE("samples: no pass saves more than the bound") {
  Comparison all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_path("samples"))) {
    if (entry.path().extension() != ".ptx") continue;
    const Result<std::string> text = read_file(entry.path().string());
    REQUIRE(text);
    for (const char* pass : {"memory", "narrow", "divisor", "composite", "r2d2", "packed", "warp"}) {
      CAPTURE(entry.path());
      CAPTURE(pass);
      compare(*text, pass, all);
    }
  }
  MESSAGE(all.kernels << " candidates, at most " << all.worst << " of the bound");
  CHECK(all.kernels > 100);
  CHECK(all.worst <= 1);
}

} // namespace ptxrewrite::tests::gain_bound_test
