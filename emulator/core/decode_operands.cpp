// Finds the operands of an instruction: registers, immediates, special registers, addresses of variables.
#include "emulator/core/address.h"
#include "emulator/core/block.h"
#include "emulator/core/decode.h"
#include "emulator/core/engine.h"
#include "emulator/core/lanes.h"
#include "emulator/core/resize.h"

#include <fmt/format.h>

#include <bit>

namespace ptxrewrite::emulator {
namespace {

using ir::SpecialRegister;

// What %clock and similar registers count does not depend on the host, so that runs are reproducible (ClockUnit).
template <class T, unsigned shift> const MicroOp* read_clock(Warp& warp, const MicroOp& op) {
  const T value = static_cast<T>(warp.block->read_clock(warp) >> shift);
  detail::write_lanes<T>(warp, op.destination[0], warp.mask, [&](unsigned) { return value; });
  return &op + 1;
}

const MicroOp* local_variable_address(Warp& warp, const MicroOp& op) {
  const uint64_t address = warp.activation->local_offset + static_cast<uint64_t>(op.immediate);
  detail::write_lanes<uint64_t>(warp, op.destination[0], warp.mask, [&](unsigned) { return address; });
  return &op + 1;
}

// Address of a shared variable in a launch with clusters.
const MicroOp* shared_variable_address(Warp& warp, const MicroOp& op) {
  const uint64_t address =
      warp.lanes<uint32_t>(block_special(BlockSpecial::shared_begin))[0] + static_cast<uint64_t>(op.immediate);
  detail::write_lanes<uint64_t>(warp, op.destination[0], warp.mask, [&](unsigned) { return address; });
  return &op + 1;
}

const MicroOp* add_lanes(Warp& warp, const MicroOp& op) {
  const uint64_t* first = warp.lanes<uint64_t>(op.source[0]);
  const uint64_t* second = warp.lanes<uint64_t>(op.source[1]);
  const auto offset = static_cast<uint64_t>(op.immediate);
  detail::write_lanes<uint64_t>(warp, op.destination[0], warp.mask,
                                [&](unsigned lane) { return first[lane] + second[lane] + offset; });
  return &op + 1;
}

// Returns the state space of the variable that `symbol` names.
ir::StateSpace space_of(const ir::Function& function, ir::SymbolRef symbol) {
  if (symbol.kind() == ir::SymbolRef::Kind::module_variable)
    return function.module().variables[symbol.variable()].space;
  if (symbol.kind() == ir::SymbolRef::Kind::local_variable) return function.variables[symbol.variable()].space;
  return ir::StateSpace::global;
}

constexpr unsigned component_of(ir::Selector selector) {
  return selector == ir::no_selector ? 0 : (selector & 3u);
}

LaneRef by_component(LaneRef first, ir::Selector selector, LaneRef zero) {
  const unsigned component = component_of(selector);
  return component == 3 ? zero : LaneRef(first.base(), first.offset() + component * lane_array_bytes);
}

} // namespace

bool is_lane_sum(const MicroOp& op) {
  return op.handler == &add_lanes;
}

size_t Decoder::top_level(unsigned index) const {
  size_t position = 0;
  while (index-- > 0 && position < operands_.size())
    position = ir::next_sibling(operands_, position);
  return position;
}

unsigned Decoder::top_level_count() const {
  unsigned count = 0;
  for (size_t i = 0; i < operands_.size(); i = ir::next_sibling(operands_, i))
    if (!operands_[i].has(ir::OperandFlag::old_value)) ++count;
  return count;
}

LaneRef Decoder::temporary(unsigned bits) {
  std::vector<LaneRef>& pool = temporaries_[bits];
  unsigned& used = temporaries_used_[bits];
  if (used == pool.size()) pool.push_back(LaneRef(LaneBase::registers, allocate(lane_array_size(bits))));
  return pool[used++];
}

// Returns `to` if that is valid, else a temporary.
LaneRef Decoder::resize(LaneRef from, unsigned from_bits, unsigned to_bits, bool is_signed, bool guarded, LaneRef to) {
  if (from_bits == 1 || to_bits == 1) {
    unsupported("a predicate where another register is expected");
    return from;
  }
  if (!to) to = temporary(to_bits);
  MicroOp& op = emit_further(resize_handler(from_bits, to_bits, is_signed), guarded);
  op.source[0] = from;
  op.destination[0] = to;
  return to;
}

LaneRef Decoder::immediate(const ir::Operand& operand, LaneType type) {
  uint64_t bits = std::bit_cast<uint64_t>(operand.immediate);
  if (type.kind == LaneKind::predicate) return constant(bits != 0 ? 1 : 0, 1);
  // A double literal in a float instruction is rounded to the type at its use (PTX ISA 4.5.2). A 0f literal in a double
  // instruction gives the low 32 bits, and the high ones are zero: ptxas does the same.
  const bool single_precision =
      type.bits == 32 && (type.kind == LaneKind::floating || (form_ && form_->type(0) == ir::ScalarType::f32));
  if (operand.is(ir::OperandKind::float64) && single_precision)
    bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  if (operand.is(ir::OperandKind::integer) && type.kind == LaneKind::floating)
    bits = type.bits == 32 ? std::bit_cast<uint32_t>(static_cast<float>(operand.immediate))
                           : std::bit_cast<uint64_t>(static_cast<double>(operand.immediate));
  // A constant has 64 bits: the upper half of a 128-bit register becomes zero (as ptxas has it for `mov.b128 q, -2`).
  return image_.constants.get(bits, type.bits);
}

// Rejects special registers whose contents are not documented publicly.
static void refuse_without_meaning(Decoder& decoder, ir::SpecialRegister which) {
  using enum ir::SpecialRegister;
  for (ir::SpecialRegister unknown :
       {perctamemoryoffset, perctamemorysize, locality_domain_id, locality_domain_supplemental_sm})
    if (which == unknown) decoder.unsupported(fmt::format("nothing public says what {} holds", ir::info(which).name));
}

// Without a cluster size, every block is a cluster of its own.
LaneRef Decoder::cluster_special(ir::SpecialRegister which, ir::Selector selector) {
  const LaneRef zero = block_special(BlockSpecial::zero), one = block_special(BlockSpecial::one);
  const bool clustered = image_.clustered;
  const auto component = [&](BlockSpecial first) { return by_component(block_special(first), selector, zero); };
  switch (which) {
  case SpecialRegister::clusterid:
    return component(clustered ? BlockSpecial::clusterid_x : BlockSpecial::ctaid_x);
  case SpecialRegister::nclusterid:
    return component(clustered ? BlockSpecial::nclusterid_x : BlockSpecial::nctaid_x);
  case SpecialRegister::cluster_nctaid:
    if (clustered) return component(BlockSpecial::cluster_nctaid_x);
    return component_of(selector) == 3 ? zero : one;
  case SpecialRegister::cluster_nctarank:
    return clustered ? block_special(BlockSpecial::cluster_nctarank) : one;
  case SpecialRegister::cluster_ctaid:
    return clustered ? component(BlockSpecial::cluster_ctaid_x) : zero;
  default: // %cluster_ctarank
    return clustered ? block_special(BlockSpecial::cluster_ctarank) : zero;
  }
}

LaneRef Decoder::special(const ir::Operand& operand, unsigned& bits) {
  const auto which = static_cast<SpecialRegister>(operand.id);
  refuse_without_meaning(*this, which);
  const LaneRef zero = block_special(BlockSpecial::zero);
  bits = 32;
  auto clock = [&](Handler handler, unsigned width) {
    bits = width;
    MicroOp& op = emit_further(handler, false);
    op.destination[0] = temporary(width);
    return op.destination[0];
  };
  switch (which) {
  case SpecialRegister::tid:
    return by_component(thread_special(ThreadSpecial::tid_x), operand.selector, thread_special(ThreadSpecial::zero));
  case SpecialRegister::ntid:
    return by_component(block_special(BlockSpecial::ntid_x), operand.selector, zero);
  case SpecialRegister::ctaid:
    return by_component(block_special(BlockSpecial::ctaid_x), operand.selector, zero);
  case SpecialRegister::nctaid:
    return by_component(block_special(BlockSpecial::nctaid_x), operand.selector, zero);
  case SpecialRegister::clusterid:
  case SpecialRegister::nclusterid:
  case SpecialRegister::cluster_nctaid:
  case SpecialRegister::cluster_nctarank:
  case SpecialRegister::cluster_ctaid:
  case SpecialRegister::cluster_ctarank:
    return cluster_special(which, operand.selector);
  case SpecialRegister::is_explicit_cluster:
    bits = 1;
    return constant(image_.clustered ? 1 : 0, 1);
  case SpecialRegister::laneid:
    return thread_special(ThreadSpecial::laneid);
  case SpecialRegister::warpid:
    return thread_special(ThreadSpecial::warpid);
  case SpecialRegister::lanemask_eq:
    return thread_special(ThreadSpecial::lanemask_eq);
  case SpecialRegister::lanemask_le:
    return thread_special(ThreadSpecial::lanemask_le);
  case SpecialRegister::lanemask_lt:
    return thread_special(ThreadSpecial::lanemask_lt);
  case SpecialRegister::lanemask_ge:
    return thread_special(ThreadSpecial::lanemask_ge);
  case SpecialRegister::lanemask_gt:
    return thread_special(ThreadSpecial::lanemask_gt);
  case SpecialRegister::nwarpid:
    return block_special(BlockSpecial::nwarpid);
  case SpecialRegister::smid:
    return block_special(BlockSpecial::smid);
  case SpecialRegister::nsmid:
    return block_special(BlockSpecial::nsmid);
  case SpecialRegister::dynamic_smem_size:
    return block_special(BlockSpecial::dynamic_smem_size);
  case SpecialRegister::aggr_smem_size:
  case SpecialRegister::total_smem_size:
    return block_special(BlockSpecial::total_smem_size);
  case SpecialRegister::clock:
  case SpecialRegister::globaltimer_lo:
    return clock(&read_clock<uint32_t, 0>, 32);
  case SpecialRegister::clock_hi:
  case SpecialRegister::globaltimer_hi:
    return clock(&read_clock<uint32_t, 32>, 32);
  case SpecialRegister::clock64:
  case SpecialRegister::globaltimer:
    return clock(&read_clock<uint64_t, 0>, 64);
  default:
    break;
  }
  if (which == SpecialRegister::envreg1) return block_special(BlockSpecial::envreg1);
  if (which == SpecialRegister::envreg2) return block_special(BlockSpecial::envreg2);
  for (const auto& [machine, form] : forms_)
    if (const LaneRef lanes = form->special_register(*this, which, bits)) return lanes;
  // %gridid, other %envreg, %pm, reserved memory: always zero on the emulated machine.
  bits = lane_bits(ir::info(which).type);
  return constant(0, bits);
}

LaneRef Decoder::symbol_address(const ir::Operand& operand, unsigned bits) {
  const ir::SymbolRef symbol = operand.as_symbol();
  const auto offset = static_cast<uint64_t>(operand.immediate);
  if (symbol.kind() == ir::SymbolRef::Kind::function) {
    return constant(places_.functions[symbol.function().index()] + offset, bits);
  }
  Address place;
  place.symbol = symbol;
  if (symbol.kind() == ir::SymbolRef::Kind::local_variable) {
    if (auto local = output_.local_offsets.find(symbol.variable().index()); local != output_.local_offsets.end()) {
      MicroOp& op = emit_further(&local_variable_address, false);
      op.immediate = static_cast<int64_t>(local->second + offset);
      op.destination[0] = temporary(64);
      return bits == 64 ? op.destination[0] : resize(op.destination[0], 64, bits, false, false, {});
    }
  }
  if (std::optional<uint64_t> address = fixed_address(symbol)) {
    if (!image_.clustered || !ir::is_shared(space_of(function_, symbol))) return constant(*address + offset, bits);
    MicroOp& op = emit_further(&shared_variable_address, false);
    op.immediate = static_cast<int64_t>(*address + offset);
    op.destination[0] = temporary(64);
    return bits == 64 ? op.destination[0] : resize(op.destination[0], 64, bits, false, false, {});
  }
  unsupported(fmt::format("the address of '{}' is not known to the emulator", symbol_name(symbol)));
  return constant(0, bits);
}

std::string Decoder::symbol_name(ir::SymbolRef symbol) const {
  switch (symbol.kind()) {
  case ir::SymbolRef::Kind::module_variable:
    return std::string(module().text(module().variables[symbol.variable()].name));
  case ir::SymbolRef::Kind::local_variable:
    return std::string(module().text(function_.variables[symbol.variable()].name));
  case ir::SymbolRef::Kind::function:
    return std::string(module().text(module().function(symbol.function()).name));
  case ir::SymbolRef::Kind::undeclared:
    return std::string(module().text(symbol.name()));
  }
  return {};
}

std::optional<uint64_t> Decoder::fixed_address(ir::SymbolRef symbol) const {
  if (symbol.kind() == ir::SymbolRef::Kind::module_variable) {
    if (auto place = places_.variables.find({nullptr, symbol.variable().index()}); place != places_.variables.end())
      return place->second.address;
    if (!ir::is_shared(module().variables[symbol.variable()].space)) return std::nullopt;
  } else if (symbol.kind() == ir::SymbolRef::Kind::local_variable) {
    const ir::Function* owner = output_.stream_of ? output_.stream_of : &function_;
    if (auto place = places_.variables.find({owner, symbol.variable().index()}); place != places_.variables.end())
      return place->second.address;
    if (function_.is_entry)
      if (auto parameter = image_.parameter_offsets.find(symbol.variable().index());
          parameter != image_.parameter_offsets.end())
        return parameter->second;
  } else {
    return std::nullopt;
  }
  return image_.shared_offset(function_, symbol);
}

LaneRef Decoder::register_lanes(const ir::Operand& operand) const {
  const LaneRef first = registers_[operand.id];
  const ir::Value& value = function_.values[operand.as_value()];
  if (value.vector_width == 1) return first;
  return {first.base(), first.offset() + component_of(operand.selector) * lane_array_size(lane_bits(value.type))};
}

LaneRef Decoder::source(const ir::Operand& operand, LaneType type) {
  const LaneRef lanes = find_source(operand, type);
  output_.lanes_of[instruction_.index()].sources.push_back({lanes, type.bits});
  return lanes;
}

LaneRef Decoder::find_source(const ir::Operand& operand, LaneType type) {
  const bool is_signed = type.kind == LaneKind::signed_integer;
  switch (operand.kind) {
  case ir::OperandKind::value: {
    LaneRef lanes = register_lanes(operand);
    const unsigned bits = register_bits(operand.as_value());
    if (bits != type.bits) lanes = resize(lanes, bits, type.bits, is_signed, false, {});
    if (type.kind == LaneKind::predicate && operand.has(ir::OperandFlag::negated)) {
      MicroOp& op = emit_further(invert_predicate_handler(), false);
      op.source[0] = lanes;
      op.destination[0] = temporary(1);
      return op.destination[0];
    }
    return lanes;
  }
  case ir::OperandKind::integer:
  case ir::OperandKind::float32:
  case ir::OperandKind::float64:
    return immediate(operand, type);
  case ir::OperandKind::special_register: {
    unsigned bits = 32;
    LaneRef lanes = special(operand, bits);
    return bits == type.bits ? lanes : resize(lanes, bits, type.bits, is_signed, false, {});
  }
  case ir::OperandKind::symbol:
    return symbol_address(operand, type.bits);
  case ir::OperandKind::sink:
    return constant(0, type.bits);
  default:
    unsupported(fmt::format("an operand of '{}' that the emulator cannot read", form_->mnemonic));
    return {};
  }
}

LaneRef Decoder::destination(const ir::Operand& operand, LaneType type) {
  const LaneRef lanes = find_destination(operand, type);
  output_.lanes_of[instruction_.index()].results.push_back({lanes, type.bits});
  return lanes;
}

LaneRef Decoder::find_destination(const ir::Operand& operand, LaneType type) {
  if (operand.is(ir::OperandKind::sink)) return temporary(type.bits);
  if (!operand.is(ir::OperandKind::value)) {
    unsupported(fmt::format("an operand of '{}' that the emulator cannot write", form_->mnemonic));
    return {};
  }
  const LaneRef lanes = register_lanes(operand);
  const unsigned bits = register_bits(operand.as_value());
  if (bits == type.bits) return lanes;
  LaneRef result = temporary(type.bits);
  // A 32-bit thread part is sign-extended, whichever instruction wrote it.
  const bool is_signed = type.kind == LaneKind::signed_integer ||
                         function_.values[operand.as_value()].register_class == ir::RegisterClass::thread_index;
  pending_writes_.push_back({result, lanes, type.bits, bits, is_signed});
  return result;
}

const ParameterSlot* Decoder::slot(ir::SymbolRef symbol) const {
  if (symbol.kind() != ir::SymbolRef::Kind::local_variable) return nullptr;
  auto found = output_.slots.find(symbol.variable().index());
  return found == output_.slots.end() ? nullptr : &found->second;
}

LaneRef Decoder::emit_sum(const Sum& sum) {
  const LaneRef target = sum.target ? sum.target : temporary(64);
  MicroOp& op = emit_further(&add_lanes, sum.guarded);
  op.source[0] = sum.first;
  op.source[1] = sum.second;
  op.immediate = sum.offset;
  op.destination[0] = target;
  return target;
}

bool Decoder::is_hardware_register(const ir::Operand& operand) const {
  return operand.is(ir::OperandKind::value) &&
         function_.values[operand.as_value()].register_class != ir::RegisterClass::general;
}

Decoder::Address Decoder::address(size_t position, bool narrow_allowed) {
  Address result;
  const ir::Operand& group = operands_[position];
  if (!group.is(ir::OperandKind::address) || group.group_size() == 0) {
    unsupported(fmt::format("an address of '{}' that the emulator cannot read", form_->mnemonic));
    return result;
  }
  const ir::Operand& base = operands_[position + 1];
  result.offset = group.immediate;
  if (base.is(ir::OperandKind::symbol)) {
    result.symbol = base.as_symbol();
    result.is_symbol = true;
    result.offset += base.immediate;
    const ParameterSlot* parameter = slot(result.symbol);
    const ir::StateSpace of_symbol = space_of(function_, result.symbol);
    const Space space = decode_space(form_->space);
    // If instructions can reach the shared memory of other blocks, a variable's address is that of the own block.
    const bool is_own_shared =
        image_.clustered && ir::is_shared(of_symbol) && (space == Space::generic || space == Space::cluster);
    if (is_own_shared) {
      result.base = symbol_address(base, 64);
      result.offset -= base.immediate;
    } else if (std::optional<uint64_t> fixed = fixed_address(result.symbol)) {
      result.constant = true;
      result.offset += static_cast<int64_t>(*fixed);
    } else if (!parameter || parameter->in_local) {
      result.base = symbol_address(base, 64);
      result.offset -= base.immediate;
    }
    // An instruction on generic addresses may name a variable of any space.
    if (space == Space::generic) result.offset += static_cast<int64_t>(window_of(decode_space(of_symbol)));
  } else if (base.is(ir::OperandKind::integer)) {
    result.constant = true;
    result.offset += base.immediate;
  } else {
    result.narrow = narrow_allowed && base.is(ir::OperandKind::value) && register_bits(base.as_value()) == 32;
    result.base = source(base, lanes_of_bits(result.narrow ? 32 : 64));
  }
  // var[reg], or the second register of a hardware form.
  if (group.group_size() > 1) {
    if (!operands_[position + 2].is(ir::OperandKind::value) && !operands_[position + 2].is(ir::OperandKind::integer))
      return result; // coordinates: decoded by the caller
    if (!result.base) {
      unsupported("an address of a symbol and a register is not emulated");
      return result;
    }
    if (result.narrow) result.base = resize(result.base, 32, 64, false, false, {});
    result.narrow = false;
    result.base = emit_sum({result.base, source(operands_[position + 2], lanes_of_bits(64))});
  }
  // Linear and coefficient registers hold sums of sign-extended parts; for shared memory, only the low half is the
  // address.
  const bool hardware =
      is_hardware_register(base) || (group.group_size() > 1 && is_hardware_register(operands_[position + 2]));
  if (hardware && ir::is_shared(form_->space)) {
    result.base = resize(result.base, 64, 32, false, false, {});
    result.narrow = narrow_allowed;
    if (!narrow_allowed) result.base = resize(result.base, 32, 64, false, false, {});
  }
  return result;
}

} // namespace ptxrewrite::emulator
