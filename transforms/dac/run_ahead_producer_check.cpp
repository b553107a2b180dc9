// Checks whether a loop and its kernel can use a producer warp.
//
//   * the loop is outermost and has one entry; whether it is entered and its number of trips are the same for all
//     threads of the block and independent of loaded data; every trip executes every load;
//   * a trip's loads read one contiguous row: adjacent threads in the order of their numbers, 16-byte aligned;
//   * the kernel does not write the loaded data (run_ahead_memory.h), and waits for other threads only by barriers of
//     the block, because the producer warp does not take part in other waits;
//   * barriers are plain ones of the whole block, no instruction reads the number of warps, and there are no clusters
//     and no calls.
#include "ir/core/module.h"
#include "transforms/dac/run_ahead_producer.h"

#include <algorithm>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::EdgeId;
using ir::ExpressionId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::SpecialRegister;
using ir::ValueId;
namespace form_index = ir::form_index;

constexpr unsigned alignment = 16; // of bulk copies: both addresses and the size

bool is_same_in_block(const ir::LinearForms& forms, ValueId value) {
  const ir::ValueClass kind = forms.form(value).kind;
  return kind == ir::ValueClass::constant || kind == ir::ValueClass::launch_uniform ||
         kind == ir::ValueClass::block_uniform;
}

std::string instruction_refusal(const ir::Function& function, InstructionId id) {
  const ir::Form& form = function.form_of(id);
  const std::string what = "'" + std::string(form.mnemonic) + "'";
  if (form.effects.call) return "the kernel calls functions";
  if (function.instructions[id].guard && form.effects.terminates) return "some threads may end before others";
  if (form.kind == ir::InstructionClass::async_copy || form.kind == ir::InstructionClass::bulk_copy ||
      form.kind == ir::InstructionClass::mbarrier)
    return "the kernel has asynchronous copies of its own";
  if (form.opcode == Opcode::bar || form.opcode == Opcode::barrier) {
    if (form.mnemonic.starts_with("bar.warp")) return {};
    const auto operands = function.operands_of(id);
    if (operands.size() != 1 || !operands[0].is(OperandKind::integer) || form.definitions != 0 ||
        !(form.mnemonic == "bar.sync" || form.mnemonic == "barrier.sync" || form.mnemonic == "barrier.sync.aligned"))
      return what + " is no plain barrier of the block";
  }
  // The producer warp does not take part in what other threads wait for.
  const bool is_block_barrier = form.opcode == Opcode::bar || form.opcode == Opcode::barrier;
  const bool is_ordered_load =
      form.effects.reads_memory && !form.effects.writes_memory && (form.effects.atomic || form.effects.volatile_result);
  if ((form.effects.barrier && !is_block_barrier) || is_ordered_load || form.opcode == Opcode::griddepcontrol)
    return what + " orders memory";
  for (const Operand& operand : function.operands_of(id)) {
    if (!operand.is(OperandKind::special_register)) continue;
    const std::string_view name = info(static_cast<SpecialRegister>(operand.id)).name;
    if (name == "%nwarpid" || name.find("cluster") != name.npos) return "the kernel reads " + std::string(name);
  }
  return {};
}

std::string kernel_refusal(const ir::Function& function) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == InstructionKind::real)
        if (std::string why = instruction_refusal(function, id); !why.empty()) return why;
  for (const ir::FunctionDirective& directive : function.directives)
    if (function.module().text(directive.name).find("cluster") != std::string_view::npos)
      return "the kernel runs in clusters";
  return {};
}

bool reads_further_dimensions(const ir::Function& function) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      for (const Operand& operand : function.operands_of(id))
        if (operand.is(OperandKind::special_register) &&
            static_cast<SpecialRegister>(operand.id) == SpecialRegister::tid && (operand.selector & 3) != 0)
          return true;
  return false;
}

class ProducerCheck {
public:
  ProducerCheck(ir::LinearForms& forms, const RunAheadPlanner& planner, ProducerPlan& producer)
      : forms_(forms), function_(forms.function()), planner_(planner), producer_(producer) {}

  std::string run();

private:
  std::string check_control();
  std::string check_load(const RunAheadLoad& load);
  // Adds a condition on the launch; returns false if it cannot be decided at launch.
  bool require_multiple(ExpressionId expression, const RunAheadLoad& load);
  void claim(std::string statement, std::string predicate, const RunAheadLoad& load);

  ir::LinearForms& forms_;
  const ir::Function& function_;
  const RunAheadPlanner& planner_;
  ProducerPlan& producer_;
};

void ProducerCheck::claim(std::string statement, std::string predicate, const RunAheadLoad& load) {
  MemoryClaim one;
  one.statement = std::move(statement);
  one.predicate = std::move(predicate);
  one.load = load.instruction;
  producer_.claims.push_back(std::move(one));
}

bool ProducerCheck::require_multiple(ExpressionId expression, const RunAheadLoad& load) {
  const ir::ExpressionPool& pool = forms_.expressions();
  if (pool.trailing_zeros(expression) >= 4) return true;
  if (!pool[expression].evaluable) return false;
  const std::string text = pool.print_predicate(expression);
  claim("rows are aligned to 16 bytes", "(" + text + ") % " + std::to_string(alignment) + " == 0", load);
  return true;
}

std::string ProducerCheck::check_load(const RunAheadLoad& load) {
  const ir::LinearForm& form = forms_.address_form(load.instruction, load.address);
  const ir::ExpressionPool& pool = forms_.expressions();
  if (function_.instructions[load.instruction].guard) return "a load is guarded";
  // Every block from the loop's header down to that of the load is executed in every trip.
  for (BlockId block = load.block; block.valid();) {
    const Reach& reach = producer_.plan.slice.reach.at(block);
    if (!reach.edges.empty()) return "a load is not made in every trip";
    block = reach.same_as;
  }
  if (!form.has_coefficients() || form.varies || form.width != 64) return "a row's address is not affine";
  if (!pool.is_literal(form.coefficients[form_index::tid_x], load.bytes)) return "rows are not contiguous";
  for (unsigned place : {form_index::tid_y, form_index::tid_z}) {
    const ExpressionId coefficient = form.coefficients[place];
    if (!producer_.several_dimensions) continue; // the other extents are 1
    if (!pool[coefficient].evaluable) return "rows are not contiguous";
    const std::string below = place == form_index::tid_y ? "ntid.x" : "ntid.x*ntid.y";
    const std::string extent = place == form_index::tid_y ? "ntid.y" : "ntid.z";
    claim("threads read side by side in the order of their numbers",
          "(" + extent + " == 1 || " + pool.print_predicate(coefficient) + " == " + std::to_string(load.bytes) + "*" +
              below + ")",
          load);
  }
  std::vector<ExpressionId> parts{form.coefficients[form_index::constant]};
  for (unsigned place : {form_index::ctaid_x, form_index::ctaid_y, form_index::ctaid_z})
    parts.push_back(form.coefficients[place]);
  for (const ir::LoopOffset& offset : form.loops())
    parts.push_back(offset.step);
  for (ExpressionId part : parts)
    if (!require_multiple(part, load)) return "whether rows are aligned is not known before the launch";
  const Operand& base = function_.operands_of(load.instruction)[load.address + 1];
  const auto obligations = forms_.obligations(base.as_value());
  producer_.claims.back().obligations.assign(obligations.begin(), obligations.end());
  return {};
}

// Are the loop's conditions the same for all threads of the block?
std::string ProducerCheck::check_control() {
  bool same = true;
  const auto look_at = [&](EdgeId edge) {
    const ValueId predicate = condition_of(function_, edge).predicate;
    same = same && (!predicate || is_same_in_block(forms_, predicate));
  };
  look_at(producer_.entry);
  for (const auto& [block, reach] : producer_.preamble.reach)
    std::ranges::for_each(reach.edges, look_at);
  if (!same) return "threads of a block may go past the loop";
  look_at(producer_.plan.back_edge);
  for (const auto& [block, reach] : producer_.plan.slice.reach)
    std::ranges::for_each(reach.edges, look_at);
  return same ? std::string() : "threads of a block may leave the loop in different trips";
}

std::string ProducerCheck::run() {
  const RunAheadPlan& plan = producer_.plan;
  if (std::string why = kernel_refusal(function_); !why.empty()) return why;
  if (forms_.loops().loops()[plan.loop].depth != 1) return "the loop is inside another one";
  std::vector<EdgeId> entries;
  for (EdgeId edge : forms_.control_flow().predecessors(plan.header))
    if (edge != plan.back_edge) entries.push_back(edge);
  if (entries.size() != 1) return "the loop has several ways in";
  producer_.entry = entries.front();
  std::string refusal;
  std::optional<RunAheadSlice> preamble = planner_.preamble_of(plan, producer_.entry, refusal);
  if (!preamble) return "what stands in front of the loop cannot be known by another warp: " + refusal;
  producer_.preamble = *std::move(preamble);
  if (std::string why = check_control(); !why.empty()) return why;
  producer_.several_dimensions = reads_further_dimensions(function_);
  const RunAheadLoad& first = plan.loads.front();
  const std::string threads = std::to_string(producer_.threads);
  claim("a block has whole warps, and room for one more",
        "ntid.x*ntid.y*ntid.z % 32 == 0 && ntid.x*ntid.y*ntid.z <= " + threads, first);
  if (!producer_.several_dimensions) claim("blocks are one row", "ntid.y*ntid.z == 1", first);
  for (const RunAheadLoad& load : plan.loads)
    if (std::string why = check_load(load); !why.empty()) return why;
  return {};
}

} // namespace

std::string check_producer(ir::LinearForms& forms, const RunAheadPlanner& planner, ProducerPlan& producer) {
  return ProducerCheck(forms, planner, producer).run();
}

} // namespace ptxrewrite::transforms::legal
