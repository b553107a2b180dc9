#include "launch/parameter_use.h"

#include "ir/ssa/ssa.h"
#include "launch/scalar_bytes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace ptxrewrite::launch {

namespace {

using Parts = std::vector<std::vector<ParameterPart>>;

// Results for called functions. A function in progress, as in a recursion, has no parts.
using KnownFunctions = std::map<const ir::Function*, Parts>;

bool is_variable_of_function(const ir::Operand& operand) {
  return operand.is(ir::OperandKind::symbol) && operand.as_symbol().kind() == ir::SymbolRef::Kind::local_variable;
}

// Traces each part of a parameter through copies, conversions and additions, through the function's stack, and into
// called functions.
class PartTracer {
public:
  PartTracer(const ir::Module& module, const ir::Function& function, KnownFunctions& known)
      : module_(module), copy_(function), known_(known) {
    // In SSA form a register that is used for several purposes is several values. Text that has no SSA form is traced
    // as it is.
    if (!copy_.is_ssa && !ir::construct_ssa(copy_)) copy_ = function;
    const auto list = function.variable_lists.view(function.signature.parameters);
    parts_.resize(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      parameter_of_variable_[list[i].index()] = i;
      const ir::Variable& variable = function.variables[list[i]];
      if (variable.register_parameter.valid())
        of_register_[variable.register_parameter.index()] = {part_at(i, 0, variable.type)};
    }
  }

  Parts trace() {
    // Iterate to a fixed point: a loop may use a register before its definition in the text.
    do {
      changed_ = false;
      for (ir::EdgeId edge : copy_.edges.ids())
        flow_edge(edge);
      for_each_instruction(
          [this](const ir::Form& form, std::span<const ir::Operand> operands) { flow(form, operands); });
    } while (changed_);
    for_each_instruction([this](const ir::Form& form, std::span<const ir::Operand> operands) { note(form, operands); });
    Parts result = std::move(parts_);
    for (std::vector<ParameterPart>& parts : result)
      std::ranges::sort(parts, {}, &ParameterPart::offset);
    return result;
  }

private:
  // The origin of a value: a part, and whether the value is the part itself or computed from it.
  struct Origin {
    size_t parameter = 0, part = 0;
    bool computed = false;
    auto operator<=>(const Origin&) const = default;
  };
  using Origins = std::vector<Origin>;
  // A position in a variable of the function: a stack slot, or a slot for a call's argument.
  using Slot = std::pair<uint32_t, int64_t>; // variable, byte offset

  template <typename Visit> void for_each_instruction(Visit visit) const {
    for (ir::BlockId block : copy_.layout)
      for (ir::InstructionId id : copy_.instructions_in(block))
        if (copy_.instructions[id].kind == ir::InstructionKind::real && !copy_.operands_of(id).empty())
          visit(copy_.form_of(id), copy_.operands_of(id));
  }

  void flow_edge(ir::EdgeId id) {
    const ir::Edge& edge = copy_.edges[id];
    const std::span<const ir::ValueId> arguments = copy_.arguments(id), parameters = copy_.parameters(edge.to);
    for (size_t i = 0; i < arguments.size() && i < parameters.size(); ++i)
      if (auto from = of_register_.find(arguments[i].index()); from != of_register_.end())
        merge(of_register_[parameters[i].index()], Origins(from->second), false, changed_);
  }

  // Old values of guarded definitions follow the operands of the text.
  static std::span<const ir::Operand> without_old_values(std::span<const ir::Operand> operands) {
    while (!operands.empty() && operands.back().has(ir::OperandFlag::old_value))
      operands = operands.first(operands.size() - 1);
    return operands;
  }

  Origin part_at(size_t parameter, uint64_t offset, ir::ScalarType type) {
    std::vector<ParameterPart>& parts = parts_[parameter];
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i].offset == offset) {
        if (byte_width(type) > byte_width(parts[i].type)) parts[i].type = type;
        return {parameter, i, false};
      }
    parts.push_back({.offset = offset, .type = type});
    return {parameter, parts.size() - 1, false};
  }
  ParameterPart& part(const Origin& origin) { return parts_[origin.parameter][origin.part]; }

  static void merge(Origins& into, const Origins& from, bool computed, bool& changed) {
    for (Origin origin : from) {
      origin.computed |= computed;
      auto place = std::ranges::lower_bound(into, origin);
      if (place != into.end() && *place == origin) continue;
      into.insert(place, origin);
      changed = true;
    }
  }

  const Origins* origins(const ir::Operand& operand) const {
    if (!operand.is(ir::OperandKind::value)) return nullptr;
    auto found = of_register_.find(operand.as_value().index());
    return found == of_register_.end() ? nullptr : &found->second;
  }

  void define(const ir::Operand& destination, const Origins& from, bool computed) {
    if (!destination.is(ir::OperandKind::value) || !destination.is_definition()) return;
    merge(of_register_[destination.as_value().index()], from, computed, changed_);
  }

  // The variable and offset that an address or a register refers to, if it is a known one of the function itself.
  std::optional<Slot> slot_of(const ir::Operand& base, int64_t offset) const {
    if (is_variable_of_function(base)) return Slot{base.as_symbol().variable().index(), base.immediate + offset};
    if (!base.is(ir::OperandKind::value)) return std::nullopt;
    auto found = slot_of_register_.find(base.as_value().index());
    if (found == slot_of_register_.end()) return std::nullopt;
    return Slot{found->second.first, found->second.second + offset};
  }

  void flow(const ir::Form& form, std::span<const ir::Operand> all) {
    const std::span<const ir::Operand> operands = without_old_values(all);
    for (const ir::Operand& old : all.subspan(operands.size()))
      if (const Origins* from = origins(old)) define(all[0], Origins(*from), false);
    switch (form.opcode) {
    case ir::Opcode::ld:
      return flow_load(form, operands);
    case ir::Opcode::st:
      return flow_store(operands);
    case ir::Opcode::mov:
    case ir::Opcode::cvt:
    case ir::Opcode::cvta:
      if (operands.size() == 2) flow_copy(form, operands);
      return;
    case ir::Opcode::mad:
      if (const Origins* addend = origins(operands.back())) define(operands[0], Origins(*addend), true);
      return;
    case ir::Opcode::add:
    case ir::Opcode::sub:
    case ir::Opcode::or_:
    case ir::Opcode::selp:
      for (const ir::Operand& operand : operands.subspan(1))
        if (const Origins* from = origins(operand))
          define(operands[0], Origins(*from), form.opcode != ir::Opcode::selp);
      if (operands.size() == 3 && operands[2].is(ir::OperandKind::integer) && form.opcode == ir::Opcode::add)
        name_slot(operands[0], slot_of(operands[1], operands[2].immediate));
      return;
    default:
      return;
    }
  }

  void name_slot(const ir::Operand& destination, std::optional<Slot> slot) {
    if (!slot || !destination.is(ir::OperandKind::value)) return;
    changed_ |= slot_of_register_.try_emplace(destination.as_value().index(), *slot).second;
  }

  void flow_copy(const ir::Form& form, std::span<const ir::Operand> operands) {
    name_slot(operands[0], slot_of(operands[1], 0));
    const Origins* from = origins(operands[1]);
    if (!from) return;
    if (form.opcode == ir::Opcode::cvta)
      for (const Origin& origin : *from)
        part(origin).is_address |= is_wide_enough(part(origin));
    define(operands[0], Origins(*from), false);
  }

  // operands: destination or a vector of them, then the address group.
  void flow_load(const ir::Form& form, std::span<const ir::Operand> operands) {
    const size_t address = ir::next_sibling(operands, 0);
    if (address + 1 >= operands.size() || !operands[address].is(ir::OperandKind::address)) return;
    const size_t first = operands[0].is_group() ? 1 : 0;
    const ir::Operand& base = operands[address + 1];
    const unsigned width = byte_width(form.type());
    for (size_t i = first; i < address; ++i) {
      const int64_t offset = operands[address].immediate + static_cast<int64_t>((i - first) * width);
      std::optional<Slot> slot = slot_of(base, offset);
      if (!slot || slot->second < 0) continue;
      auto parameter = parameter_of_variable_.find(slot->first);
      if (parameter != parameter_of_variable_.end())
        define(operands[i], {part_at(parameter->second, static_cast<uint64_t>(slot->second), form.type())}, false);
      else if (auto held = of_slot_.find(*slot); held != of_slot_.end())
        define(operands[i], Origins(held->second), false);
    }
  }

  // operands: the address group, then the stored value.
  void flow_store(std::span<const ir::Operand> operands) {
    const size_t stored = ir::next_sibling(operands, 0);
    if (stored + 1 != operands.size() || !operands[0].is(ir::OperandKind::address)) return;
    const Origins* from = origins(operands[stored]);
    if (!from) return;
    if (std::optional<Slot> slot = slot_of(operands[1], operands[0].immediate))
      merge(of_slot_[*slot], *from, false, changed_);
  }

  bool is_wide_enough(const ParameterPart& part) const {
    return byte_width(part.type) == (module_.address_size == 32 ? 4u : 8u);
  }

  // The part that an address is computed from: among several candidates, one that a cvta identifies as an address.
  ParameterPart* address_part(const ir::Operand& base) {
    const Origins* from = origins(base);
    if (!from) return nullptr;
    ParameterPart* best = nullptr;
    for (const Origin& origin : *from)
      if (ParameterPart& candidate = part(origin); is_wide_enough(candidate) && (!best || candidate.is_address))
        if (!best || !best->is_address) best = &candidate;
    return best;
  }

  void note(const ir::Form& form, std::span<const ir::Operand> all) {
    const std::span<const ir::Operand> operands = without_old_values(all);
    if (form.opcode == ir::Opcode::call) return note_call(operands);
    for (size_t i = 0; i + 1 < operands.size(); ++i)
      if (operands[i].is(ir::OperandKind::address)) note_access(form, operands[i + 1]);
    switch (form.opcode) {
    case ir::Opcode::mov:
    case ir::Opcode::cvt:
    case ir::Opcode::cvta:
    case ir::Opcode::ld:
    case ir::Opcode::st:
      return;
    case ir::Opcode::setp:
    case ir::Opcode::set: {
      const bool with_constant =
          std::ranges::any_of(operands, [](const ir::Operand& operand) { return operand.is_constant(); });
      return note_uses(operands,
                       with_constant ? &ParameterPart::is_compared_with_constants : &ParameterPart::has_other_uses);
    }
    case ir::Opcode::shl:
    case ir::Opcode::shr:
      note_uses(operands.last(1), &ParameterPart::counts_shifts);
      return note_uses(operands.first(operands.size() - 1), &ParameterPart::has_other_uses);
    default:
      return note_uses(operands, &ParameterPart::has_other_uses);
    }
  }

  void note_uses(std::span<const ir::Operand> operands, bool ParameterPart::*use) {
    for (const ir::Operand& operand : operands)
      if (const Origins* from = operand.is_definition() ? nullptr : origins(operand))
        for (const Origin& origin : *from)
          if (!origin.computed) part(origin).*use = true;
  }

  void note_access(const ir::Form& form, const ir::Operand& base) {
    ParameterPart* behind = address_part(base);
    if (!behind) return;
    const bool atomic = form.opcode == ir::Opcode::atom || form.opcode == ir::Opcode::red;
    behind->is_address = true;
    behind->is_atomic |= atomic;
    behind->is_written |= atomic || form.opcode == ir::Opcode::st;
    behind->is_read |= form.opcode != ir::Opcode::st;
    if (is_plain_type(form.type()) && byte_width(form.type()) > byte_width(behind->element_type))
      behind->element_type = form.type();
  }

  // The uses of the called function's parameters are uses of the arguments.
  void note_call(std::span<const ir::Operand> operands) {
    size_t callee = 0;
    while (callee < operands.size() && operands[callee].is(ir::OperandKind::list))
      callee = ir::next_sibling(operands, callee);
    if (callee >= operands.size() || !operands[callee].is(ir::OperandKind::symbol) ||
        operands[callee].as_symbol().kind() != ir::SymbolRef::Kind::function)
      return;
    const ir::Function* called = &module_.function(operands[callee].as_symbol().function());
    if (!called->has_body || callee + 1 >= operands.size() || !operands[callee + 1].is(ir::OperandKind::list)) return;
    const Parts& inside = parts_of(*called);
    size_t argument = callee + 2;
    for (size_t i = 0; i < inside.size() && argument < operands.size(); ++i) {
      for (const ParameterPart& use : inside[i])
        note_argument(operands[argument], use);
      argument = ir::next_sibling(operands, argument);
    }
  }

  const Parts& parts_of(const ir::Function& called) {
    auto [place, is_new] = known_.try_emplace(&called);
    if (is_new) place->second = PartTracer(module_, called, known_).trace();
    return place->second;
  }

  void note_argument(const ir::Operand& argument, const ParameterPart& use) {
    const Origins* from = origins(argument);
    if (is_variable_of_function(argument)) {
      auto held = of_slot_.find({argument.as_symbol().variable().index(), static_cast<int64_t>(use.offset)});
      from = held == of_slot_.end() ? nullptr : &held->second;
    }
    if (!from) return;
    for (const Origin& origin : *from) {
      ParameterPart& mine = part(origin);
      if (use.is_address && is_wide_enough(mine)) {
        mine.is_address = true;
        mine.is_read |= use.is_read;
        mine.is_written |= use.is_written;
        mine.is_atomic |= use.is_atomic;
        if (byte_width(use.element_type) > byte_width(mine.element_type)) mine.element_type = use.element_type;
      }
      if (origin.computed) continue;
      mine.counts_shifts |= use.counts_shifts;
      mine.is_compared_with_constants |= use.is_compared_with_constants;
      mine.has_other_uses |= use.has_other_uses;
    }
  }

  const ir::Module& module_;
  ir::Function copy_;
  KnownFunctions& known_;
  Parts parts_;
  std::map<uint32_t, size_t> parameter_of_variable_;
  std::map<uint32_t, Origins> of_register_;
  std::map<Slot, Origins> of_slot_;
  std::map<uint32_t, Slot> slot_of_register_;
  bool changed_ = false;
};

bool is_sized_by_launch(const ir::Variable& variable, std::span<const uint64_t> dimensions) {
  if (!is_shared(variable.space)) return false;
  return variable.unsized || (variable.is_array && std::ranges::find(dimensions, 0u) != dimensions.end());
}

} // namespace

std::vector<std::vector<ParameterPart>> parameter_parts(const ir::Module& module, const ir::Function& function) {
  KnownFunctions known;
  return PartTracer(module, function, known).trace();
}

bool uses_dynamic_shared_memory(const ir::Module& module, const ir::Function& kernel) {
  // The callee of an indirect call may be any function of the module: with a call, a use in any function counts.
  bool calls = false;
  const auto uses = [&](const ir::Function& function) {
    for (ir::BlockId block : function.layout)
      for (ir::InstructionId id : function.instructions_in(block)) {
        if (function.instructions[id].kind != ir::InstructionKind::real) continue;
        calls |= function.is_opcode(id, ir::Opcode::call);
        for (const ir::Operand& operand : function.operands_of(id)) {
          if (!operand.is(ir::OperandKind::symbol)) continue;
          const ir::SymbolRef symbol = operand.as_symbol();
          if (symbol.kind() == ir::SymbolRef::Kind::module_variable) {
            const ir::Variable& variable = module.variables[symbol.variable()];
            if (is_sized_by_launch(variable, module.dimensions.view(variable.dimensions))) return true;
          } else if (symbol.kind() == ir::SymbolRef::Kind::local_variable) {
            const ir::Variable& variable = function.variables[symbol.variable()];
            if (is_sized_by_launch(variable, function.dimensions.view(variable.dimensions))) return true;
          }
        }
      }
    return false;
  };
  if (uses(kernel)) return true;
  return calls && std::ranges::any_of(module.functions, [&](const auto& function) {
           return !function->is_entry && function->has_body && uses(*function);
         });
}

} // namespace ptxrewrite::launch
