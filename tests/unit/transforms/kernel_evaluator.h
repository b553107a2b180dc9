// Runs integer kernels one thread at a time, by the definitions of the PTX instructions, and records every memory
// access: the reference for rewritten kernels. Slow, small, and independent of the analyses.
//
// Loads return a hash of their address; instructions outside of the integer subset return a hash of their operands. So
// two equivalent kernels leave equal traces on equal data, whatever the data are. Supports both states of a function
// and executes the sections of hardware forms, checking that each reads only permitted registers.
#pragma once

#include "ir/analysis/linear/expression.h"
#include "ir/core/module.h"

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

struct MemoryEvent {
  std::string mnemonic;
  uint64_t address = 0;
  uint64_t data = 0; // hash of the stored data
  ir::InstructionId instruction;
  bool operator==(const MemoryEvent& other) const {
    return mnemonic == other.mnemonic && address == other.address && data == other.data;
  }
};
using ThreadTrace = std::vector<MemoryEvent>;

class KernelEvaluator {
public:
  KernelEvaluator(const ir::Function& function, const ir::LaunchValues& launch) : f_(function), launch_(launch) {}

  // Traces of all threads, block by block.
  std::vector<ThreadTrace> run() {
    std::vector<ThreadTrace> traces;
    for_each_place(launch_.grid, [&](std::array<uint32_t, 3> block) {
      for_each_place(launch_.block,
                     [&](std::array<uint32_t, 3> thread) { traces.push_back(run_thread(thread, block)); });
    });
    return traces;
  }

  ThreadTrace run_thread(std::array<uint32_t, 3> tid, std::array<uint32_t, 3> ctaid) {
    tid_ = tid;
    ctaid_ = ctaid;
    registers_.assign(f_.values.size(), 0);
    trace_.clear();
    section_ = no_section;
    ir::BlockId block = f_.entry();
    uint64_t steps = 0;
    while (block)
      block = run_block(block, steps);
    return trace_;
  }

private:
  static constexpr int64_t no_section = -1;
  static constexpr uint64_t step_limit = 200000;

  template <class Visit> static void for_each_place(const std::array<uint32_t, 3>& size, Visit&& visit) {
    for (uint32_t z = 0; z < size[2]; ++z)
      for (uint32_t y = 0; y < size[1]; ++y)
        for (uint32_t x = 0; x < size[0]; ++x)
          visit(std::array<uint32_t, 3>{x, y, z});
  }
  [[noreturn]] static void fail(const std::string& what) { throw std::runtime_error("evaluator: " + what); }
  static uint64_t hash(uint64_t seed, uint64_t value) {
    uint64_t x = (seed ^ value) * 0x9e3779b97f4a7c15ull;
    x ^= x >> 29;
    return x * 0xbf58476d1ce4e5b9ull;
  }
  static uint64_t hash(uint64_t seed, std::string_view text) {
    for (char c : text)
      seed = hash(seed, static_cast<unsigned char>(c));
    return seed;
  }
  static uint64_t cut(uint64_t value, unsigned bits) {
    return bits >= 64 ? value : value & ((uint64_t(1) << bits) - 1);
  }
  static int64_t sign(uint64_t value, unsigned bits) {
    return bits >= 64 ? static_cast<int64_t>(value) : static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
  }

  // The next block; invalid at the end.
  ir::BlockId run_block(ir::BlockId block, uint64_t& steps) {
    for (ir::InstructionId id : f_.instructions_in(block)) {
      if (++steps > step_limit) fail("too many steps");
      const ir::Instruction& row = f_.instructions[id];
      switch (row.kind) {
      case ir::InstructionKind::section_begin:
        section_ = f_.operands_of(id)[0].immediate;
        continue;
      case ir::InstructionKind::section_end:
        section_ = no_section;
        continue;
      case ir::InstructionKind::linear_row: {
        auto operands = f_.operands_of(id);
        registers_[operands[0].id] = read(operands[1]) + read(operands[2]);
        continue;
      }
      case ir::InstructionKind::real:
        break;
      default:
        continue;
      }
      bool on = !row.guard || ((registers_[row.guard.index()] & 1) != 0) != row.guard_negated;
      const ir::Form& form = f_.form_of(id);
      if (form.opcode == ir::Opcode::bra) {
        if (!on) continue;
        for (const ir::Operand& operand : f_.operands_of(id))
          if (operand.is(ir::OperandKind::block)) return enter(block, operand.as_block());
        fail("bra without target");
      }
      if (form.opcode == ir::Opcode::ret || form.opcode == ir::Opcode::exit) {
        if (on) return {};
        continue;
      }
      if (on)
        execute(id, form);
      else
        keep_old_values(id);
    }
    if (!f_.blocks[block].falls_through) return {};
    return enter(block, f_.edges[f_.successors(block).back()].to);
  }

  ir::BlockId enter(ir::BlockId from, ir::BlockId to) {
    for (ir::EdgeId edge : f_.successors(from)) {
      if (f_.edges[edge].to != to) continue;
      std::vector<uint64_t> values;
      for (ir::ValueId argument : f_.arguments(edge))
        values.push_back(registers_[argument.index()]);
      auto parameters = f_.parameters(to);
      for (size_t i = 0; i < parameters.size(); ++i)
        registers_[parameters[i].index()] = values.at(i);
      return to;
    }
    fail("no edge");
  }

  void keep_old_values(ir::InstructionId id) {
    std::vector<ir::ValueId> written;
    ir::for_each_definition(f_, id, [&](ir::ValueId value) { written.push_back(value); });
    size_t next = 0;
    for (const ir::Operand& operand : f_.operands_of(id))
      if (operand.has(ir::OperandFlag::old_value)) registers_[written.at(next++).index()] = read(operand);
  }

  uint64_t read(const ir::Operand& operand) {
    switch (operand.kind) {
    case ir::OperandKind::value: {
      check_read(f_.values[operand.as_value()].register_class);
      uint64_t value = registers_[operand.id];
      if (operand.has(ir::OperandFlag::negated)) value ^= 1;
      return value;
    }
    case ir::OperandKind::integer:
      return static_cast<uint64_t>(operand.immediate);
    case ir::OperandKind::float32:
    case ir::OperandKind::float64:
      return hash(3, static_cast<uint64_t>(operand.immediate));
    case ir::OperandKind::symbol:
      return symbol_address(operand.as_symbol()) + static_cast<uint64_t>(operand.immediate);
    case ir::OperandKind::special_register:
      return special(operand);
    default:
      return hash(5, static_cast<uint64_t>(operand.kind));
    }
  }

  // Sections may only read registers that are computed before they run (paper §3.2).
  void check_read(ir::RegisterClass register_class) {
    using enum ir::RegisterClass;
    switch (section_) {
    case static_cast<int64_t>(ir::SectionKind::r2d2_coefficient):
      if (register_class != coefficient) fail("the coefficient section reads another register");
      break;
    case static_cast<int64_t>(ir::SectionKind::r2d2_thread):
      if (register_class != coefficient && register_class != thread_index)
        fail("the thread section reads another register");
      break;
    case static_cast<int64_t>(ir::SectionKind::r2d2_block):
      if (register_class != coefficient && register_class != block_index)
        fail("the block section reads another register");
      break;
    default:
      break;
    }
  }
  void check_write(ir::RegisterClass register_class) {
    using enum ir::RegisterClass;
    ir::RegisterClass wanted = section_ == 0   ? coefficient
                               : section_ == 1 ? thread_index
                               : section_ == 2 ? block_index
                                               : general;
    if (register_class != wanted) fail("a section writes another register class");
  }

  static uint64_t symbol_address(ir::SymbolRef ref) { return 0x1000 + 0x2000 * uint64_t(ref.bits() & 0xff); }

  uint64_t special(const ir::Operand& operand) {
    unsigned component = 0;
    for (unsigned c = 0; c < 4; ++c)
      if (operand.selector == ir::component_selector(c)) component = c;
    switch (static_cast<ir::SpecialRegister>(operand.id)) {
    case ir::SpecialRegister::tid:
      if (section_ == 0 || section_ == 2) fail("%tid outside the thread section");
      return tid_.at(component);
    case ir::SpecialRegister::ctaid:
      if (section_ == 0 || section_ == 1) fail("%ctaid outside the block section");
      return ctaid_.at(component);
    case ir::SpecialRegister::ntid:
      return launch_.block.at(component);
    case ir::SpecialRegister::nctaid:
      return launch_.grid.at(component);
    default:
      return hash(7, operand.id);
    }
  }

  void write(const ir::Operand& target, uint64_t value, unsigned bits) {
    if (!target.is(ir::OperandKind::value)) return;
    const ir::Value& row = f_.values[target.as_value()];
    check_write(row.register_class);
    uint64_t kept = cut(value, std::min<unsigned>(bits, ir::bit_width(row.type)));
    // A thread part of 32 bits is signed.
    if (row.register_class == ir::RegisterClass::thread_index && bits == 32)
      kept = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(kept)));
    registers_[target.id] = kept;
  }

  // Address of the group at `index`: the sum of its registers, whatever their classes.
  uint64_t address(std::span<const ir::Operand> operands, size_t index, ir::StateSpace space) {
    uint64_t sum = static_cast<uint64_t>(operands[index].immediate);
    for (size_t i = index + 1; i < ir::next_sibling(operands, index); ++i)
      sum += read(operands[i]);
    bool small = ir::is_shared(space) || space == ir::StateSpace::local || space == ir::StateSpace::constant;
    return small ? cut(sum, 32) : sum;
  }

  uint64_t parameter(std::span<const ir::Operand> operands, size_t index, unsigned bits) {
    const ir::Operand& base = operands[index + 1];
    auto own = f_.variable_lists.view(f_.signature.parameters);
    for (size_t i = 0; i < own.size(); ++i) {
      if (!base.is(ir::OperandKind::symbol) || base.as_symbol() != ir::SymbolRef::local_variable(own[i])) continue;
      uint64_t value = 0;
      size_t offset = static_cast<size_t>(operands[index].immediate + base.immediate);
      for (unsigned byte = 0; byte < bits / 8; ++byte)
        value |= uint64_t(launch_.parameters.at(i).at(offset + byte)) << (8 * byte);
      return value;
    }
    fail("unknown parameter");
  }

  void access(ir::InstructionId id, const ir::Form& form) {
    auto operands = f_.operands_of(id);
    MemoryEvent event{std::string(form.mnemonic), 0, 0, id};
    unsigned bits = ir::bit_width(form.type(0));
    size_t definitions = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].has(ir::OperandFlag::old_value)) continue;
      if (operands[i].is(ir::OperandKind::address)) {
        if (form.opcode == ir::Opcode::ld && ir::is_param(form.space)) {
          uint64_t value = parameter(operands, i, bits);
          if (ir::is_signed(form.type(0))) value = static_cast<uint64_t>(sign(value, bits));
          write(operands[0], value, 64);
          return;
        }
        event.address = address(operands, i, form.space);
        i = ir::next_sibling(operands, i) - 1;
      } else if (operands[i].is_definition()) {
        ++definitions;
      } else if (!operands[i].is_group()) {
        event.data = hash(event.data + 1, read(operands[i]));
      }
    }
    trace_.push_back(event);
    for (size_t i = 0; i < operands.size() && definitions; ++i)
      if (operands[i].is_definition()) write(operands[i], hash(hash(11, event.address), i), bits);
  }

  void execute(ir::InstructionId id, const ir::Form& form) {
    using ir::Opcode;
    switch (form.opcode) {
    case Opcode::ld:
    case Opcode::ldu:
    case Opcode::st:
    case Opcode::atom:
    case Opcode::red:
      return access(id, form);
    case Opcode::bar:
    case Opcode::barrier:
      return;
    default:
      break;
    }
    auto operands = f_.operands_of(id);
    std::array<uint64_t, 4> in{};
    size_t count = 0;
    for (size_t i = 1; i < operands.size() && count < 4; ++i)
      if (!operands[i].is_definition() && !operands[i].has(ir::OperandFlag::old_value)) in[count++] = read(operands[i]);
    uint64_t result = 0;
    unsigned bits = ir::bit_width(form.type(0));
    if (!integer_result(form, in, count, result, bits)) {
      result = hash(13, form.mnemonic);
      for (size_t i = 0; i < count; ++i)
        result = hash(result, in[i]);
      bits = 64;
    }
    for (const ir::Operand& operand : operands)
      if (operand.is_definition()) write(operand, result, bits);
  }

  // Returns true if the instruction is in the integer subset. `bits`: of the instruction type in, of the result out.
  // Long: one case per instruction.
  bool integer_result(const ir::Form& form, std::array<uint64_t, 4> in, size_t count, uint64_t& result,
                      unsigned& bits) {
    using ir::Modifier;
    using ir::Opcode;
    ir::ScalarType type = form.type(0);
    bool is_signed = ir::is_signed(type);
    if (form.opcode == Opcode::r2d2_mov) {
      result = in[0] + in[1] + in[2];
      return true;
    }
    if (form.opcode == Opcode::mov) {
      result = in[0];
      return true;
    }
    if (form.opcode == Opcode::cvta) {
      result = in[0] + (form.space == ir::StateSpace::global ? 0 : 0x7f0000000000ull);
      return true;
    }
    if (ir::is_float(type)) return false;
    if (form.opcode == Opcode::cvt) {
      ir::ScalarType source = form.type(1);
      if (ir::is_float(source) || form.has(Modifier::sat)) return false;
      result = ir::is_signed(source) ? static_cast<uint64_t>(sign(in[0], ir::bit_width(source)))
                                     : cut(in[0], ir::bit_width(source));
      return true;
    }
    bool wide = form.has(Modifier::wide), high = form.has(Modifier::hi);
    auto extended = [&](uint64_t value) {
      return is_signed ? static_cast<uint64_t>(sign(value, bits)) : cut(value, bits);
    };
    uint64_t a = extended(in[0]), b = extended(in[1]);
    switch (form.opcode) {
    case Opcode::add:
      result = a + b;
      return !form.has(Modifier::sat) && !form.carry_out;
    case Opcode::sub:
      result = a - b;
      return !form.has(Modifier::sat) && !form.carry_out;
    case Opcode::neg:
      result = -a;
      return true;
    case Opcode::not_:
      result = ~in[0];
      return true;
    case Opcode::and_:
      result = in[0] & in[1];
      return true;
    case Opcode::or_:
      result = in[0] | in[1];
      return true;
    case Opcode::xor_:
      result = in[0] ^ in[1];
      return true;
    case Opcode::mul:
    case Opcode::mad: {
      ir::Int128 product = is_signed ? ir::Int128(static_cast<int64_t>(a)) * static_cast<int64_t>(b)
                                     : ir::Int128(static_cast<unsigned __int128>(a) * b);
      result = static_cast<uint64_t>(high ? product >> bits : product);
      if (wide) bits *= 2;
      if (form.opcode == Opcode::mad) result += in[2];
      return true;
    }
    case Opcode::shl:
      result = cut(in[1], 32) >= bits ? 0 : in[0] << cut(in[1], 32);
      return true;
    case Opcode::shr: {
      uint64_t amount = cut(in[1], 32);
      if (is_signed)
        result = static_cast<uint64_t>(sign(in[0], bits) >> std::min<uint64_t>(amount, bits - 1));
      else
        result = amount >= bits ? 0 : cut(in[0], bits) >> amount;
      return true;
    }
    case Opcode::min:
    case Opcode::max: {
      bool less = is_signed ? static_cast<int64_t>(a) < static_cast<int64_t>(b) : a < b;
      result = less == (form.opcode == Opcode::min) ? a : b;
      return true;
    }
    case Opcode::div:
    case Opcode::rem: {
      if (cut(b, bits) == 0) return false;
      const bool quotient = form.opcode == Opcode::div;
      if (!is_signed)
        result = quotient ? a / b : a % b;
      else if (static_cast<int64_t>(b) == -1)
        result = quotient ? -a : 0;
      else
        result = static_cast<uint64_t>(quotient ? static_cast<int64_t>(a) / static_cast<int64_t>(b)
                                                : static_cast<int64_t>(a) % static_cast<int64_t>(b));
      return true;
    }
    case Opcode::selp:
      result = (in[2] & 1) != 0 ? in[0] : in[1];
      return true;
    case Opcode::setp:
      if (count > 3 || !comparison(form, a, b, is_signed, result)) return false;
      if (count == 3 && form.has(Modifier::and_)) result &= in[2] & 1;
      if (count == 3 && form.has(Modifier::or_)) result |= in[2] & 1;
      return count == 2 || form.has(Modifier::and_) || form.has(Modifier::or_);
    default:
      return false;
    }
  }

  static bool comparison(const ir::Form& form, uint64_t a, uint64_t b, bool is_signed, uint64_t& result) {
    using ir::Modifier;
    bool less = is_signed ? static_cast<int64_t>(a) < static_cast<int64_t>(b) : a < b;
    if (form.has(Modifier::eq))
      result = a == b;
    else if (form.has(Modifier::ne))
      result = a != b;
    else if (form.has(Modifier::lt) || form.has(Modifier::lo))
      result = less;
    else if (form.has(Modifier::ge) || form.has(Modifier::hs))
      result = !less;
    else if (form.has(Modifier::le) || form.has(Modifier::ls))
      result = less || a == b;
    else if (form.has(Modifier::gt))
      result = !less && a != b;
    else
      return false;
    return true;
  }

  const ir::Function& f_;
  const ir::LaunchValues& launch_;
  std::array<uint32_t, 3> tid_{}, ctaid_{};
  std::vector<uint64_t> registers_;
  ThreadTrace trace_;
  int64_t section_ = no_section;
};

} // namespace ptxrewrite::tests
