// Determined by assembling each operation with known operands, in straight-line code, after branches and in loops: see
// fold.h. Rules that ptxas 13.0 does not apply are missing here, too: values that every trip of a loop recomputes to
// the same constant, constants implied by branches on equality, and 64-bit products with one.
#include "ir/machine/prepare/fold.h"

#include "ir/core/builder.h"
#include "ir/core/kernel_parameters.h"
#include "ir/core/module.h"
#include "ir/machine/prepare/known_bits.h"
#include "ir/machine/prepare/sections.h"
#include "ir/machine/prepare/value_flow.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

namespace {

class Folder {
public:
  Folder(Function& function, ControlFlow& flow, DefinitionsBetweenSteps& definitions)
      : function_(function), flow_(flow), definitions_(definitions), bits_(function.values.size()),
        same_(function.values.size()) {
    for (const FunctionDirective& directive : function.directives)
      if (function.module().text(directive.name) == ".reqntid")
        for (unsigned i = 0; i < 3; ++i)
          block_shape_[i] = i < directive.count ? directive.numbers[i] : 1;
    in_section_ = instructions_in_sections(function_);
  }

  // Returns true if anything has changed.
  bool run() {
    constexpr int most_rounds = 8;
    bool any = false;
    for (int round = 0; round < most_rounds && visit_all(); ++round)
      any = true;
    return any;
  }

private:
  bool visit_all() {
    changed_ = false;
    values_ = &definitions_.of(function_);
    std::ranges::fill(bits_, KnownBits{});
    for (BlockId block : flow_.reverse_postorder()) {
      visit_parameters(block);
      for (InstructionId id : function_.instructions_in(block))
        if (!is_marked(in_section_, id)) visit(id); // sections execute as written
    }
    replace_values();
    drop_parameters();
    remove_unreached();
    if (changed_) definitions_.forget();
    return changed_;
  }

  // --- what is known ---

  bool is_general(ValueId value) const {
    const Value& row = function_.values[value];
    return row.register_class == RegisterClass::general && row.vector_width == 1;
  }

  ValueId known_as(ValueId value) const {
    while (same_[value.index()])
      value = same_[value.index()];
    return value;
  }

  void replace(ValueId value, ValueId by) {
    same_[value.index()] = by;
    has_same_ = true;
  }

  KnownBits bits_of(ValueId value) const { return bits_[known_as(value).index()]; }

  KnownBits bits_of(const Operand& operand, unsigned width) const {
    KnownBits bits;
    if (operand.selector == no_selector && !operand.has(OperandFlag::negated)) {
      if (operand.is(OperandKind::integer)) bits = KnownBits::literal(static_cast<uint64_t>(operand.immediate));
      if (operand.is(OperandKind::value)) bits = bits_of(operand.as_value());
    }
    if (operand.is(OperandKind::special_register)) bits = bits_of_special(operand);
    bits.may_be_one &= width >= 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1;
    return bits;
  }

  // ntid itself is read from launch data, even if the text fixes the block's shape.
  KnownBits bits_of_special(const Operand& operand) const {
    const auto special = static_cast<SpecialRegister>(operand.id);
    if (special == SpecialRegister::laneid) return KnownBits::below(32);
    for (unsigned i = 0; i < 3; ++i)
      if (special == SpecialRegister::tid && operand.selector == component_selector(i) && block_shape_[i] > 0)
        return KnownBits::below(block_shape_[i]);
    return {};
  }

  std::optional<bool> truth(ValueId predicate) const {
    const std::optional<uint64_t> value = bits_of(predicate).value();
    return value ? std::optional(*value != 0) : std::nullopt;
  }

  // --- block parameters ---

  void visit_parameters(BlockId block) {
    const std::span<const ValueId> parameters = std::as_const(function_).parameters(block);
    for (size_t i = 0; i < parameters.size(); ++i) {
      std::optional<KnownBits> number;
      ValueId only;
      bool one_number = true, one_value = true;
      for (EdgeId edge : flow_.predecessors(block)) {
        const ValueId argument = known_as(function_.arguments(edge)[i]);
        if (argument == parameters[i]) continue;
        const KnownBits bits = bits_[argument.index()];
        one_number &= bits.all && (!number || number->may_be_one == bits.may_be_one);
        one_value &= !only || only == argument;
        number = bits;
        only = argument;
      }
      if (!only || !is_general(parameters[i])) continue;
      if (one_value && is_general(only) && !function_.values[only].is_undefined)
        needless_.push_back({block, parameters[i], only, {}});
      else if (one_number)
        needless_.push_back({block, parameters[i], {}, number->may_be_one});
      else
        continue;
      bits_[parameters[i].index()] = one_number ? *number : bits_[only.index()];
    }
  }

  // --- instructions ---

  void visit(InstructionId id) {
    if (function_.instructions[id].kind != InstructionKind::real || function_.form_of(id).opaque) return;
    if (function_.instructions[id].guard && !visit_guard(id)) return;
    const Form& form = function_.form_of(id);
    if (form.opcode == Opcode::ld && is_param(form.space)) name_parameter(id);
    if (form.kind == InstructionClass::load && !is_param(form.space)) note_loaded(id);
    if (function_.instructions[id].guard || !form.effects.pure() || form.definitions != 1) return;
    const std::span<const Operand> operands = function_.operands_of(id);
    if (!operands[0].is(OperandKind::value) || !is_general(operands[0].as_value())) return;
    if (extend_sign(id)) return;
    if (std::ranges::any_of(operands, [](const Operand& operand) { return operand.is_group(); })) return;
    const ValueId result = operands[0].as_value();
    if (!form.integers_only && is_float(form.type())) { // no operand counts as known
      bits_[result.index()] = known_result(form, {});
      return;
    }
    const KnownBits bits = result_of(id);
    bits_[result.index()] = bits;
    if (bits.all)
      move_number(id, bits.may_be_one);
    else if (!simplify(id))
      place_literals(id);
  }

  // A load of a byte or half word sets the bits above it to zero.
  void note_loaded(InstructionId id) {
    const Form& form = function_.form_of(id);
    const unsigned width = bit_width(form.type());
    if (function_.instructions[id].guard || width > 16 || is_signed(form.type()) || is_float(form.type())) return;
    for_each_definition(function_, id, [&](ValueId value) {
      if (is_general(value)) bits_[value.index()] = KnownBits::below(uint64_t{1} << width);
    });
  }

  // An access to a kernel parameter through a register with a known address names the parameter instead.
  void name_parameter(InstructionId id) {
    const std::span<Operand> operands = function_.operands_of(id);
    const size_t address = next_sibling(operands, 0);
    if (!function_.is_entry || address + 2 != operands.size() || !operands[address].is(OperandKind::address) ||
        !operands[address + 1].is(OperandKind::value))
      return;
    Operand base = operands[address + 1];
    int64_t offset = operands[address].immediate;
    constexpr int most_steps = 8;
    for (int step = 0; step < most_steps && base.is(OperandKind::value); ++step) {
      const InstructionId from = values_->definition(base.as_value());
      if (!from || function_.instructions[from].guard) return;
      const std::span<const Operand> sources = function_.operands_of(from);
      const bool adds =
          function_.is_opcode(from, Opcode::add) && sources.size() == 3 && sources[2].is(OperandKind::integer);
      if (!adds && !(function_.is_opcode(from, Opcode::mov) && sources.size() == 2)) return;
      if (adds) offset += sources[2].immediate;
      base = sources[1];
    }
    if (!base.is(OperandKind::symbol) || !is_own_parameter(function_, base.as_symbol())) return;
    operands[address].immediate = offset + base.immediate;
    operands[address + 1] = Operand::symbol(base.as_symbol());
    changed_ = true;
  }

  // {a, a >> 31} becomes a sign extension of a.
  bool extend_sign(InstructionId id) {
    const std::span<const Operand> operands = function_.operands_of(id);
    if (!function_.is_opcode(id, Opcode::mov) || operands.size() != 4 || operands[1].group_size() != 2) return false;
    if (!operands[2].is(OperandKind::value) || !operands[3].is(OperandKind::value)) return false;
    const InstructionId shift = values_->definition(operands[3].as_value());
    if (!shift || !function_.is_opcode(shift, Opcode::shr) || function_.instructions[shift].guard ||
        function_.form_of(shift).type() != ScalarType::s32)
      return false;
    const std::span<const Operand> shifted = function_.operands_of(shift);
    if (shifted[1] != operands[2] || !shifted[2].is(OperandKind::integer) || shifted[2].immediate != 31) return false;
    become(id, "cvt.s64.s32", {operands[0], operands[2]});
    return true;
  }

  KnownBits result_of(InstructionId id) const {
    const Form& form = function_.form_of(id);
    const std::span<const Operand> operands = function_.operands_of(id);
    std::array<KnownBits, 4> sources;
    const size_t count = operands.size() - 1;
    if (count > sources.size()) return known_result(form, {}); // nothing is known of such instructions
    bool whole = true;
    for (size_t i = 0; i < count; ++i) {
      sources[i] = bits_of(operands[i + 1], source_width(form, i));
      whole &= sources[i].all;
    }
    const KnownBits bits = known_result(form, std::span(sources).first(count));
    // ptxas joins (a >> k) + b to one instruction before it determines the known bits of a.
    if (bits.all && !whole && is_added_shift(id)) return {bits.may_be_one, false};
    return bits;
  }

  bool is_added_shift(InstructionId id) const {
    const Form& form = function_.form_of(id);
    if (form.opcode != Opcode::shr || bit_width(form.type()) != 32) return false;
    const InstructionId reader = values_->only_reader(function_.operands_of(id)[0].as_value());
    return reader && function_.is_opcode(reader, Opcode::add) && bit_width(function_.form_of(reader).type()) == 32 &&
           function_.instructions[reader].block == function_.instructions[id].block;
  }

  // Returns false if the instruction has been removed or its guard is unknown.
  bool visit_guard(InstructionId id) {
    Instruction& instruction = function_.instructions[id];
    const std::optional<bool> guard = truth(instruction.guard);
    if (!guard) return false;
    const Form& form = function_.form_of(id);
    const bool executed = *guard != instruction.guard_negated;
    const bool leaves = form.effects.branch || form.effects.terminates;
    const bool last = function_.terminator(instruction.block) == id;
    if (leaves && !last) return false;
    if (form.opcode == Opcode::brx) return false;
    if (leaves) keep_edges(instruction.block, executed);
    changed_ = true;
    if (executed) {
      drop_guard(id);
      return !leaves;
    }
    drop(id);
    return false;
  }

  void keep_edges(BlockId block, bool taken) {
    const std::vector<EdgeId> edges(function_.successors(block).begin(), function_.successors(block).end());
    edges_changed_ = true;
    if (edges.size() >= 2) {
      const EdgeId kept = taken ? edges.front() : edges.back();
      function_.set_successors(block, {&kept, 1}, !taken);
    } else if (taken) {
      function_.set_successors(block, {}, false); // an exit that is always taken
    }
  }

  void drop_guard(InstructionId id) {
    std::vector<Operand> operands;
    for (const Operand& operand : function_.operands_of(id))
      if (!operand.has(OperandFlag::old_value)) operands.push_back(operand);
    function_.set_operands(id, operands);
    function_.instructions[id].guard = {};
    function_.instructions[id].guard_negated = false;
  }

  // Removes the instruction: its destinations keep their old values.
  void drop(InstructionId id) {
    std::vector<ValueId> written, kept;
    for (const Operand& operand : function_.operands_of(id)) {
      if (!operand.is(OperandKind::value)) continue;
      if (operand.is_definition()) written.push_back(operand.as_value());
      if (operand.has(OperandFlag::old_value)) kept.push_back(operand.as_value());
    }
    for (size_t i = 0; i < std::min(written.size(), kept.size()); ++i)
      replace(written[i], known_as(kept[i]));
    function_.remove(id);
  }

  static std::string move_of(unsigned bits) { return "mov.b" + std::to_string(bits); }
  static int64_t as_immediate(uint64_t number, unsigned width) {
    if (width == 0) return 0; // the form has no type at that index: no bit matters
    return width >= 64 ? static_cast<int64_t>(number) : static_cast<int64_t>(number << (64 - width)) >> (64 - width);
  }

  void move_number(InstructionId id, uint64_t number) {
    const Form& form = function_.form_of(id);
    const std::span<const Operand> operands = function_.operands_of(id);
    const unsigned width = bit_width(function_.values[operands[0].as_value()].type);
    if ((width != 16 && width != 32 && width != 64) || (form.opcode == Opcode::mov && operands[1].is_constant()))
      return;
    become(id, move_of(width), {operands[0], Operand::integer(as_immediate(number, width))});
  }

  void become(InstructionId id, std::string_view mnemonic, std::vector<Operand> operands) {
    function_.instructions[id].form = known_form(mnemonic);
    function_.set_operands(id, operands);
    changed_ = true;
  }

  // True for the address of a variable. The accesses of the variable add constants to it themselves.
  bool is_place(ValueId value) const {
    const InstructionId id = values_->definition(value);
    return id && function_.is_opcode(id, Opcode::mov) && function_.operands_of(id).size() == 2 &&
           function_.operands_of(id)[1].is(OperandKind::symbol);
  }

  // Replaces the result by another value, if possible.
  bool become_same(InstructionId id, const Operand& source) {
    const ValueId result = function_.operands_of(id)[0].as_value();
    if (!source.is(OperandKind::value) || !is_general(source.as_value()) || source.selector != no_selector ||
        source.has(OperandFlag::negated) || is_place(source.as_value()) ||
        bit_width(function_.values[result].type) != bit_width(function_.values[source.as_value()].type))
      return false;
    replace(result, known_as(source.as_value()));
    function_.remove(id);
    changed_ = true;
    return true;
  }

  bool is_number(const Operand& operand, unsigned width, uint64_t number) const {
    const KnownBits bits = bits_of(operand, width);
    return bits.all && bits.may_be_one == number;
  }

  // True if the mask is a literal that has every bit that the number may have. Special registers may have all.
  bool keeps_all(const Operand& number, const Operand& mask, unsigned width) const {
    const KnownBits kept = bits_of(mask, width);
    const InstructionId from = number.is(OperandKind::value) ? values_->definition(number.as_value()) : InstructionId();
    if (from && function_.is_opcode(from, Opcode::mov) &&
        function_.operands_of(from)[1].is(OperandKind::special_register))
      return false;
    return kept.all && (bits_of(number, width).may_be_one & ~kept.may_be_one) == 0;
  }

  // Applies identities, and rules for sums of products with a known part.
  bool simplify(InstructionId id) {
    const Form& form = function_.form_of(id);
    const unsigned width = bit_width(form.type());
    const std::span<const Operand> operands = std::as_const(function_).operands_of(id);
    if (is_float(form.type()) || form.has(Modifier::sat) || form.carry_out || operands.size() < 3) return false;
    const Operand &a = operands[1], &b = operands[2];
    auto is = [&](const Operand& operand, uint64_t number) { return is_number(operand, width, number); };
    switch (form.operation) {
    case Operation::add:
    case Operation::bit_or:
    case Operation::bit_xor:
      if (is(b, 0)) return become_same(id, a);
      if (is(a, 0)) return become_same(id, b);
      return false;
    case Operation::subtract:
      return is(b, 0) && become_same(id, a);
    case Operation::bit_and:
      return (keeps_all(a, b, width) && become_same(id, a)) || (keeps_all(b, a, width) && become_same(id, b));
    case Operation::shift_left:
      return (is_number(b, 32, 0) && become_same(id, a)) || scale_product(id, operands);
    case Operation::shift_right:
      return is_number(b, 32, 0) && become_same(id, a);
    case Operation::minimum:
    case Operation::maximum:
      return a == b && become_same(id, a);
    case Operation::multiply:
      if (!form.has(Modifier::lo) || width != 32) return false;
      if (is(b, 1)) return become_same(id, a);
      if (is(a, 1)) return become_same(id, b);
      return false;
    case Operation::select: {
      const std::optional<uint64_t> condition = bits_of(operands[3], 1).value();
      if (condition) return become_same(id, *condition ? a : b);
      return a == b && become_same(id, a);
    }
    case Operation::multiply_add:
      return simplify_multiply_add(id, form, operands);
    case Operation::none:
    case Operation::copy:
    case Operation::convert:
    case Operation::convert_address:
    case Operation::negate:
    case Operation::absolute:
    case Operation::multiply_24:
    case Operation::multiply_add_24:
    case Operation::divide:
    case Operation::remainder:
    case Operation::complement:
    case Operation::logic_of_three:
    case Operation::compare:
      break;
    }
    return false;
  }

  // (a * c) << k, 32-bit product extended to 64: becomes a * (c << k).
  bool scale_product(InstructionId id, std::span<const Operand> operands) {
    if (bit_width(function_.form_of(id).type()) != 64 || !operands[1].is(OperandKind::value)) return false;
    const std::optional<uint64_t> distance = bits_of(operands[2], 32).value();
    const InstructionId product = values_->definition(operands[1].as_value());
    if (!distance || *distance >= 32 || !product || !function_.is_opcode(product, Opcode::mul) ||
        function_.instructions[product].guard)
      return false;
    const Form& form = function_.form_of(product);
    const std::vector<Operand> factors(function_.operands_of(product).begin(), function_.operands_of(product).end());
    if (!form.has(Modifier::wide) || bit_width(form.type()) != 32 || !factors[2].is(OperandKind::integer)) return false;
    const int64_t scaled = factors[2].immediate * (int64_t(1) << *distance);
    const int64_t least = is_signed(form.type()) ? INT32_MIN : 0,
                  most = is_signed(form.type()) ? INT32_MAX : UINT32_MAX;
    if (factors[2].immediate < least || scaled < least || scaled > most) return false;
    become(id, "mul.wide." + std::string(spelling(form.type())), {operands[0], factors[1], Operand::integer(scaled)});
    return true;
  }

  bool simplify_multiply_add(InstructionId id, const Form& form, std::span<const Operand> operands) {
    const Operand &a = operands[1], &b = operands[2], &c = operands[3];
    const unsigned width = bit_width(form.type());
    const bool wide = form.has(Modifier::wide);
    if (!wide && !(form.has(Modifier::lo) && width == 32)) return false;
    if (is_number(a, width, 0) || is_number(b, width, 0)) {
      if (c.is(OperandKind::value)) return become_same(id, c);
      return false;
    }
    auto sum = [&] { return "add.s" + std::to_string(result_width(form)); };
    const KnownBits first = bits_of(a, width), second = bits_of(b, width);
    if (first.all && second.all) {
      const Form& product = ir::form(known_form((wide ? "mul.wide." : "mul.lo.") + std::string(spelling(form.type()))));
      const KnownBits factors[] = {first, second};
      const KnownBits number = known_result(product, factors);
      become(id, sum(), {operands[0], c, Operand::integer(as_immediate(number.may_be_one, result_width(form)))});
      return true;
    }
    if (wide) return false;
    for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)})
      if (is_number(one, width, 1)) {
        become(id, sum(), {operands[0], other, c});
        return true;
      }
    if (is_number(c, width, 0)) {
      become(id, "mul.lo." + std::string(spelling(form.type())), {operands[0], a, b});
      return true;
    }
    return false;
  }

  // Registers with known values become literals if the instruction word can encode one.
  void place_literals(InstructionId id) {
    const Form& form = function_.form_of(id);
    std::span<Operand> operands = function_.operands_of(id);
    switch (form.operation) {
    case Operation::add:
    case Operation::subtract:
    case Operation::multiply:
    case Operation::divide:
    case Operation::remainder:
    case Operation::minimum:
    case Operation::maximum:
    case Operation::bit_and:
    case Operation::bit_or:
    case Operation::bit_xor:
    case Operation::shift_left:
    case Operation::shift_right:
    case Operation::compare:
    case Operation::multiply_add:
      break;
    case Operation::none:
    case Operation::copy:
    case Operation::convert:
    case Operation::convert_address:
    case Operation::negate:
    case Operation::absolute:
    case Operation::multiply_24:
    case Operation::multiply_add_24:
    case Operation::complement:
    case Operation::logic_of_three:
    case Operation::select:
      return;
    }
    if (operands.size() < 3 || is_float(form.type()) || form.carry_out || form.type() == ScalarType::pred) return;
    const bool commutes = form.operation != Operation::subtract && form.operation != Operation::divide &&
                          form.operation != Operation::remainder && form.operation != Operation::shift_left &&
                          form.operation != Operation::shift_right && form.operation != Operation::compare;
    const unsigned width = source_width(form, 1);
    if (commutes && bits_of(operands[1], width).all && !bits_of(operands[2], width).all) {
      std::swap(operands[1], operands[2]);
      changed_ = true;
    }
    if (!operands[2].is(OperandKind::value) || !bits_of(operands[2], width).all || operands[1].is_constant()) return;
    operands[2] = Operand::integer(as_immediate(bits_of(operands[2], width).may_be_one, width));
    changed_ = true;
  }

  // --- rewriting ---

  void replace_values() {
    if (!has_same_) return;
    for (BlockId block : function_.layout) {
      for (InstructionId id : function_.instructions_in(block)) {
        for (Operand& operand : function_.operands_of(id))
          if (operand.is(OperandKind::value) && !operand.is_definition())
            operand.id = known_as(operand.as_value()).index();
        if (ValueId& guard = function_.instructions[id].guard) guard = known_as(guard);
      }
      for (EdgeId edge : function_.successors(block))
        for (ValueId& argument : function_.arguments(edge))
          argument = known_as(argument);
    }
  }

  // Block parameters that are the same value or constant on all edges.
  struct Needless {
    BlockId block;
    ValueId parameter, same;
    std::optional<uint64_t> number;
  };

  void drop_parameters() {
    for (const Needless& one : needless_) {
      const unsigned width = bit_width(function_.values[one.parameter].type);
      if (one.number && width != 16 && width != 32 && width != 64) continue;
      const ValueId same = one.same ? known_as(one.same) : ValueId();
      if (same == one.parameter) continue;
      changed_ = true;
      const std::vector<ValueId> parameters(function_.parameters(one.block).begin(),
                                            function_.parameters(one.block).end());
      const size_t place = static_cast<size_t>(std::ranges::find(parameters, one.parameter) - parameters.begin());
      auto without = [&](std::span<const ValueId> list) {
        std::vector<ValueId> rest(list.begin(), list.end());
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(place));
        return rest;
      };
      for (EdgeId edge : flow_.predecessors(one.block))
        function_.set_arguments(edge, without(function_.arguments(edge)));
      function_.set_parameters(one.block, without(parameters));
      if (same)
        replace(one.parameter, same);
      else
        define_number(one.block, one.parameter, as_immediate(*one.number, width), width);
    }
    if (!needless_.empty()) replace_values();
    needless_.clear();
  }

  void define_number(BlockId block, ValueId value, int64_t number, unsigned width) {
    Builder builder(function_);
    if (const InstructionId first = function_.blocks[block].first)
      builder.before(first);
    else
      builder.at_end(block);
    builder.emit(move_of(width), {Operand::definition(value), Operand::integer(number)});
  }

  void remove_unreached() {
    if (edges_changed_) flow_ = ControlFlow(function_);
    edges_changed_ = false;
    if (std::ranges::all_of(function_.layout, [&](BlockId block) { return flow_.reachable(block); })) return;
    const std::vector<BlockId> layout = function_.layout;
    for (BlockId block : layout)
      if (!flow_.reachable(block)) function_.remove_block(block);
    flow_ = ControlFlow(function_);
    changed_ = true;
  }

  Function& function_;
  ControlFlow& flow_;
  DefinitionsBetweenSteps& definitions_;
  bool edges_changed_ = false;               // since flow_ was computed
  const ValueDefinitions* values_ = nullptr; // of the current round
  std::array<uint32_t, 3> block_shape_{};
  std::vector<KnownBits> bits_; // by ValueId
  std::vector<ValueId> same_;   // by ValueId: the value that replaces it
  bool has_same_ = false;       // any of them is set
  std::vector<bool> in_section_;
  std::vector<Needless> needless_;
  bool changed_ = false;
};

} // namespace

bool fold(Function& function, ControlFlow& flow, DefinitionsBetweenSteps& definitions) {
  return function.is_ssa && !function.affine_stream && Folder(function, flow, definitions).run();
}

bool fold(Function& function, ControlFlow& flow) {
  DefinitionsBetweenSteps definitions;
  return fold(function, flow, definitions);
}

} // namespace ptxrewrite::ir
