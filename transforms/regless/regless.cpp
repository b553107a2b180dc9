// Pass `regless`: slices kernels into regions whose registers a small operand staging unit holds, and annotates the
// requirements of each region and the last access to each register (RegLess §4; ir/machine/registers/regions.h).
//
// Annotated form only: adds comments to the text as read and leaves every other byte unchanged; the machine code stays
// the same. The annotations are the compiler's input to the proposed hardware. A function that needs more registers
// than there are must first be rewritten by pass `spill`, in a separate run, because annotations name the registers of
// the text.
#include "ir/core/module.h"
#include "ir/machine/figures/target.h"
#include "ir/machine/registers/allocation.h"
#include "ir/ssa/ssa.h"
#include "transforms/regless/regless_text.h"

#include <algorithm>

namespace ptxrewrite::transforms {

namespace {

using namespace ir;

// Gives every register of the function as read a unique name, regardless of the scope that declares it.
void number_registers(Function& copy) {
  Symbol name = copy.module().intern("%register");
  for (ValueId value : copy.values.ids()) {
    copy.values[value].name = name;
    copy.values[value].number = value.index();
  }
}

// Replaces a numbered register in the message by the register's name in the text.
Error with_names(const Function& function, Error error) {
  constexpr std::string_view numbered = "%register";
  const size_t at = error.message.find(numbered);
  if (at == std::string::npos) return error;
  const size_t end =
      std::min(error.message.find_first_not_of("0123456789", at + numbered.size()), error.message.size());
  const auto number = static_cast<uint32_t>(std::stoul(error.message.substr(at + numbered.size())));
  if (number < function.values.size()) error.message.replace(at, end - at, function.value_name(ValueId(number)));
  return error;
}

bool has_vector_registers(const Function& function) {
  return std::ranges::any_of(function.values, [](const Value& value) { return value.vector_width > 1; });
}

// A register of the text has machine registers for all its definitions or for none: so a reader of the text can tell
// from names which instructions write machine registers.
Result<Allocation> allocate_by_name(const Function& copy, AllocationOptions wanted, uint32_t known) {
  std::vector<bool> placed(known);
  while (true) {
    Result<Allocation> allocation = allocate_registers(copy, wanted);
    if (!allocation) return allocation;
    const size_t before = wanted.apart.size();
    auto general = [&](ValueId value) {
      return copy.values[value].number < known && copy.values[value].type != ScalarType::pred;
    };
    for (ValueId value : copy.values.ids())
      if (general(value) && allocation->first_register(value) != Allocation::no_register)
        placed[copy.values[value].number] = true;
    for (ValueId value : copy.values.ids())
      if (general(value) && placed[copy.values[value].number]) wanted.apart.insert(value);
    if (wanted.apart.size() == before) return allocation;
  }
}

// Returns an instruction that writes registers asynchronously, so that no region may hold them; invalid if there is
// none.
InstructionId asynchronous_writer(const Function& function) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (function.is_opcode(id, Opcode::wgmma)) return id;
  return {};
}

// Returns an instruction that shares its statement with the one before it, so that no annotation can name it alone:
// the reader makes an addition and a store of `st.u32 [%rd1], %r1+4`. Invalid if there is none.
InstructionId second_of_statement(const Function& function) {
  SourceRange before;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      const Instruction& instruction = function.instructions[id];
      if (instruction.kind != InstructionKind::real || instruction.range.empty()) continue;
      if (instruction.range.begin == before.begin) return id;
      before = instruction.range;
    }
  return {};
}

} // namespace

Result<RegLessPlan> plan_regless(const Function& function, const RegLessOptions& options) {
  if (const InstructionId writer = asynchronous_writer(function); writer.valid())
    return Error{"has matrix products that write registers asynchronously", function.instructions[writer].range};
  if (const InstructionId sum = second_of_statement(function); sum.valid())
    return Error{"has a sum as an operand, which is a machine instruction without text of its own",
                 function.instructions[sum].range};
  if (has_vector_registers(function)) return Error{"has registers that are vectors", function.header_range};
  Function copy = function;
  number_registers(copy);
  const uint32_t known = static_cast<uint32_t>(copy.values.size());
  if (Status status = construct_ssa(copy); !status.ok()) return status.error();
  // Predicates do not use the staging unit, and ptxas can allocate all of them.
  AllocationOptions wanted{.compute_capability = options.compute_capability,
                           .register_limit = register_limit_of(function, options.register_limit),
                           .predicate_limit = 255,
                           .keep_names = true};
  Result<Allocation> allocation = allocate_by_name(copy, wanted, known);
  if (!allocation) return with_names(function, allocation.error());
  ControlFlow flow(copy);
  MachineValues values(copy, flow, options.compute_capability, allocation->apart);
  RegLessPlan plan;
  plan.compute_capability = options.compute_capability;
  plan.program = register_program(copy, values, *allocation);
  plan.regions = create_regions(plan.program, WarpLiveness(plan.program), options.regions);
  for (InstructionId id : copy.instructions.ids())
    plan.ranges.push_back(copy.instructions[id].range);
  std::vector<RegLessPlan::Registers> of_text(known);
  for (ValueId value : copy.values.ids()) {
    uint16_t first = allocation->first_register(value);
    uint32_t origin = copy.values[value].number;
    if (first == Allocation::no_register || values.is_predicate(value) || origin >= known) continue;
    of_text[origin] = {first, static_cast<uint16_t>(values.units(value))};
  }
  for (uint32_t i = 0; i < known; ++i)
    if (of_text[i].count > 0) plan.registers.push_back({ValueId(i), of_text[i]});
  return plan;
}

namespace {

RegLessOptions options_of(const Function& function, const PassContext& context) {
  auto number = [&](std::string_view name, uint32_t fallback, int64_t most) {
    return static_cast<uint32_t>(std::clamp<int64_t>(context.options.number(name, fallback), 1, most));
  };
  RegLessOptions options;
  options.compute_capability = number("machine", target_capability(function.module()), 1000);
  options.register_limit = number("limit", 255, 255);
  options.regions.live = number("live", options.regions.live, 255);
  options.regions.per_bank = number("bank", options.regions.per_bank, 255);
  return options;
}

std::vector<TextInsertion> annotate(const Function& function, PassContext& context) {
  if (ir::has_regless_marks(function)) {
    context.remarks.push_back(Remark("left as it is: it has annotations already", function.header_range));
    return {};
  }
  Result<RegLessPlan> plan = plan_regless(function, options_of(function, context));
  if (!plan) {
    context.remarks.push_back(Remark("left as it is: " + plan.error().message, plan.error().range));
    return {};
  }
  for (const Region& region : plan->regions) {
    ++context.statistics["regless.regions"];
    context.statistics["regless.instructions"] += region.weight;
    context.statistics["regless.metadata"] += metadata_instructions(region);
    context.statistics["regless.inputs"] += static_cast<int64_t>(region.inputs.count());
    context.statistics["regless.live"] += region.live;
  }
  return regless_insertions(function, *plan);
}

Change run(Function&, PassContext& context) {
  context.remarks.push_back(Remark(context.form == OutputForm::annotated
                                       ? "annotates text as it was read, and cannot follow other passes in one run"
                                       : "has an annotated form only"));
  return Change::unchanged;
}

const RegisterPass
    registration({"regless",
                  "slice kernels into regions whose registers a small staging unit holds (annotated form)",
                  run,
                  {{"limit", "registers of a thread, at most 255", PassOptionKind::number},
                   {"live", "registers that a region may hold at one time (32)", PassOptionKind::number},
                   {"bank", "of them in one of the unit's eight banks (16)", PassOptionKind::number},
                   {"machine", "compute capability of the machine, 52 for a GTX 980; the text's target if not given",
                    PassOptionKind::number}},
                  annotate});

} // namespace
} // namespace ptxrewrite::transforms
