// The loop over virtual blocks.
//
// The position in the virtual grid is kept as an index in each dimension that the kernel reads. It is advanced by the
// size of the wave, decomposed in the same way (nctaid.x blocks = a number of columns, rows and layers), by additions
// with carry. The only divisions are before the loop, and nothing can wrap: extents are at most 2^31 - 1, 65535 and
// 65535, the wave has at most 2^31 - 1 blocks, so each sum stays below 2^32. A dimension that the kernel does not read
// must have the extent 1 (checked at launch): otherwise the work of every block would be repeated.
#include "transforms/r2d2/persistent.h"

#include "ir/core/builder.h"
#include "ir/core/last_return.h"
#include "ir/edit/dead_code.h"

#include <algorithm>
#include <array>
#include <vector>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::Builder;
using ir::EdgeId;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ScalarType;
using ir::SpecialRegister;
using ir::ValueId;

// Limit for values kept in registers throughout the loop, which cost occupancy, in 32-bit registers.
constexpr unsigned hoisting_limit = 8;

constexpr std::array<std::string_view, 3> extents = {"nctaid.x", "nctaid.y", "nctaid.z"};
using Triple = std::array<ValueId, 3>; // by dimension; those beyond `dimensions` are unused

class PersistentLoop {
public:
  PersistentLoop(Attempt& attempt, const PersistentNeeds& needs)
      : attempt_(attempt), function_(attempt.function()), needs_(needs), builder_(function_) {}

  void run();

private:
  ValueId emit(std::string_view mnemonic, std::initializer_list<Operand> sources) {
    return builder_.emit_value(mnemonic, ScalarType::b32, sources, "%r");
  }
  ValueId emit_test(std::string_view mnemonic, ValueId left, ValueId right) {
    return builder_.emit_value(mnemonic, ScalarType::pred, {Operand::value(left), Operand::value(right)}, "%p");
  }
  ValueId read_special(SpecialRegister special) {
    return emit("mov.u32", {Operand::special(static_cast<uint32_t>(special), ir::component_selector(0))});
  }
  ValueId read_extent(unsigned dimension);
  Symbol new_label(std::string_view stem);

  void add_terms();
  void make_blocks();
  void redirect_returns();
  void redirect(BlockId block, InstructionId id);
  BlockId split_behind(BlockId block, InstructionId id);
  // Decomposes `number` = x + extent.x * (y + extent.y * z); the last dimension takes the remainder.
  Triple decode(ValueId number);
  void emit_preheader();
  void emit_latch();
  void replace_reads();
  void replace_read(InstructionId id, size_t operand);

  Attempt& attempt_;
  ir::Function& function_;
  const PersistentNeeds& needs_;
  Builder builder_;
  std::array<ir::VariableId, 3> parameters_; // extents of the virtual grid
  BlockId preheader_, header_, latch_, between_, exit_;
  Triple index_, step_;
};

Symbol PersistentLoop::new_label(std::string_view stem) {
  ir::Module& module = function_.module();
  // If no text of the module contains the name, it is unused in the function, too.
  const std::string prefix = "$L_" + std::string(module.text(function_.name)) + '_' + std::string(stem);
  std::string label = prefix;
  for (unsigned number = 1; module.strings.find(label); ++number)
    label = prefix + '_' + std::to_string(number);
  return module.intern(label);
}

ValueId PersistentLoop::read_extent(unsigned dimension) {
  if (dimension >= needs_.dimensions) return emit("mov.u32", {Operand::integer(1)});
  const ValueId value = builder_.new_value(ScalarType::b32, "%r");
  std::vector<Operand> operands{Operand::definition(value)};
  ir::append_address(operands, Operand::symbol(ir::SymbolRef::local_variable(parameters_[dimension])));
  builder_.emit("ld.param.u32", operands);
  return value;
}

// The launcher passes the extents, and checks that dimensions that the kernel does not read are 1.
void PersistentLoop::add_terms() {
  const auto rest_on = [&](const std::string& statement, const std::string& predicate) {
    attempt_.rest_on(statement, "r2d2: persistent blocks", predicate, "block and grid limits", function_.header_range);
  };
  for (unsigned dimension = 0; dimension < 3; ++dimension) {
    const std::string extent(extents[dimension]);
    if (dimension < needs_.dimensions)
      parameters_[dimension] = attempt_.launch_parameter(ScalarType::u32, extent);
    else
      rest_on(extent + " == 1", extent + " == 1");
  }
  if (needs_.warps_in_rows)
    rest_on("all threads of a warp have one tid.x / 32", "ntid.x % 32 == 0 || ntid.y * ntid.z == 1");
  attempt_.set_persistent();
  rest_on("the next virtual block's index is below 2^32", "");
}

void PersistentLoop::make_blocks() {
  ir::spell_last_return(function_);
  header_ = function_.entry();
  if (!function_.blocks[header_].label) function_.blocks[header_].label = new_label("block");
  preheader_ = function_.add_block();
  function_.place_block_before(preheader_, header_);
  // Declarations are moved to the preheader, so that they precede all hoisted code.
  for (InstructionId id : function_.instructions_in(header_)) {
    const InstructionKind kind = function_.instructions[id].kind;
    if (kind != InstructionKind::declare_variable && kind != InstructionKind::prototype) continue;
    function_.remove(id);
    function_.append(preheader_, id);
  }
  latch_ = function_.add_block(new_label("next"));
  function_.place_block(latch_);
  if (needs_.barrier_between() || needs_.async_copies || needs_.warp_operations) {
    between_ = function_.add_block();
    function_.place_block(between_);
  }
  exit_ = function_.add_block(new_label("done"));
  function_.place_block(exit_);
}

// Splits the block after `id`; control falls through to the new block.
BlockId PersistentLoop::split_behind(BlockId block, InstructionId id) {
  const BlockId rest = function_.add_block();
  const auto place = std::ranges::find(function_.layout, block) + 1; // valid: the latch follows in the layout
  function_.place_block_before(rest, *place);
  for (InstructionId next = function_.instructions[id].next; next;) {
    const InstructionId moved = next;
    next = function_.instructions[moved].next;
    function_.remove(moved);
    function_.append(rest, moved);
  }
  const auto successors = function_.successors(block);
  const std::vector<EdgeId> edges(successors.begin(), successors.end());
  for (EdgeId edge : edges)
    function_.edges[edge].from = rest;
  function_.set_successors(rest, edges, function_.blocks[block].falls_through);
  return rest;
}

// Replaces `ret` and `exit` by branches to the latch; a guard stays on the instruction.
void PersistentLoop::redirect(BlockId block, InstructionId id) {
  const bool guarded = function_.instructions[id].guard.valid();
  const auto place = std::ranges::find(function_.layout, block);
  if (!guarded && *(place + 1) == latch_) {
    function_.remove(id);
    function_.set_successors(block, std::array{function_.add_edge(block, latch_)}, true);
    return;
  }
  std::vector<EdgeId> edges{function_.add_edge(block, latch_)};
  if (guarded) edges.push_back(function_.add_edge(block, split_behind(block, id)));
  function_.set_successors(block, edges, guarded);
  function_.instructions[id].form = ir::known_form("bra");
  function_.set_operands(id, std::vector<Operand>{Operand::block(latch_)});
}

void PersistentLoop::redirect_returns() {
  // The layout grows after the current position: blocks that were split off are visited next.
  for (size_t place = 0; place < function_.layout.size(); ++place) {
    const BlockId block = function_.layout[place];
    for (InstructionId id : function_.instructions_in(block)) {
      if (!function_.is_opcode(id, Opcode::ret) && !function_.is_opcode(id, Opcode::exit)) continue;
      redirect(block, id);
      break;
    }
  }
}

Triple PersistentLoop::decode(ValueId number) {
  Triple parts;
  for (unsigned dimension = 0; dimension + 1 < needs_.dimensions; ++dimension) {
    const ValueId extent = read_extent(dimension);
    const ValueId quotient = emit("div.u32", {Operand::value(number), Operand::value(extent)});
    const ValueId whole = emit("mul.lo.u32", {Operand::value(quotient), Operand::value(extent)});
    parts[dimension] = emit("sub.u32", {Operand::value(number), Operand::value(whole)});
    number = quotient;
  }
  parts[needs_.dimensions - 1] = number;
  return parts;
}

void PersistentLoop::emit_preheader() {
  builder_.at_end(preheader_);
  const Triple first = decode(read_special(SpecialRegister::ctaid));
  // For one dimension, the step is nctaid.x, which can be read as an operand.
  if (needs_.dimensions > 1) step_ = decode(read_special(SpecialRegister::nctaid));
  const unsigned last = needs_.dimensions - 1;
  builder_.guarded_by(emit_test("setp.ge.u32", first[last], read_extent(last)));
  builder_.emit("bra", {Operand::block(exit_)});
  builder_.unguarded();

  std::vector<ValueId> arguments, indices;
  for (unsigned dimension = 0; dimension < needs_.dimensions; ++dimension) {
    index_[dimension] = builder_.new_value(ScalarType::b32, "%r");
    indices.push_back(index_[dimension]);
    arguments.push_back(first[dimension]);
  }
  function_.set_parameters(header_, indices);
  const std::array edges{function_.add_edge(preheader_, exit_), function_.add_edge(preheader_, header_, arguments)};
  function_.set_successors(preheader_, edges, true);
}

void PersistentLoop::emit_latch() {
  builder_.at_end(latch_);
  const unsigned last = needs_.dimensions - 1;
  if (last == 0) step_[0] = read_special(SpecialRegister::nctaid);
  std::vector<ValueId> next;
  ValueId carry;
  for (unsigned dimension = 0; dimension <= last; ++dimension) {
    ValueId sum = emit("add.u32", {Operand::value(index_[dimension]), Operand::value(step_[dimension])});
    if (carry) {
      const ValueId one_more = emit("add.u32", {Operand::value(sum), Operand::integer(1)});
      sum = emit("selp.b32", {Operand::value(one_more), Operand::value(sum), Operand::value(carry)});
    }
    if (dimension < last) {
      const ValueId extent = read_extent(dimension);
      carry = emit_test("setp.ge.u32", sum, extent);
      const ValueId wrapped = emit("sub.u32", {Operand::value(sum), Operand::value(extent)});
      sum = emit("selp.b32", {Operand::value(wrapped), Operand::value(sum), Operand::value(carry)});
    }
    next.push_back(sum);
  }
  const ValueId extent = read_extent(last);
  if (between_) {
    builder_.guarded_by(emit_test("setp.ge.u32", next[last], extent));
    builder_.emit("bra", {Operand::block(exit_)});
    builder_.unguarded();
    const std::array edges{function_.add_edge(latch_, exit_), function_.add_edge(latch_, between_)};
    function_.set_successors(latch_, edges, true);
    builder_.at_end(between_);
    // Pending copies would write to the shared memory of the next virtual block.
    if (needs_.async_copies) builder_.emit("cp.async.wait_all", {});
    if (const std::optional<uint32_t> number = needs_.barrier_between())
      builder_.emit("bar.sync", {Operand::integer(*number)});
    else if (needs_.warp_operations && function_.module().version_major >= 6)
      // Operations of two virtual blocks must not be matched. Before PTX 6.0 a warp reconverges here by itself.
      builder_.emit("bar.warp.sync", {Operand::integer(-1)});
    builder_.emit("bra", {Operand::block(header_)});
    const std::array back{function_.add_edge(between_, header_, next)};
    function_.set_successors(between_, back, false);
  } else {
    builder_.guarded_by(emit_test("setp.lt.u32", next[last], extent));
    builder_.emit("bra", {Operand::block(header_)});
    builder_.unguarded();
    const std::array edges{function_.add_edge(latch_, header_, next), function_.add_edge(latch_, exit_)};
    function_.set_successors(latch_, edges, true);
  }
  builder_.at_end(exit_).emit("ret", {});
}

void PersistentLoop::replace_reads() {
  for (size_t place = 0; place < function_.layout.size(); ++place) {
    const BlockId block = function_.layout[place];
    if (block == preheader_ || block == latch_) continue;
    for (InstructionId id : function_.instructions_in(block)) {
      if (function_.instructions[id].kind != InstructionKind::real) continue;
      std::span<const Operand> operands = function_.operands_of(id);
      for (size_t i = 0; i < operands.size(); ++i) {
        if (!operands[i].is(OperandKind::special_register)) continue;
        const auto special = static_cast<SpecialRegister>(operands[i].id);
        if (special != SpecialRegister::ctaid && special != SpecialRegister::nctaid) continue;
        replace_read(id, i);
        break; // mov and cvt have one source
      }
    }
  }
}

void PersistentLoop::replace_read(InstructionId id, size_t operand) {
  const Operand read = function_.operands_of(id)[operand];
  const unsigned component = read.selector & 3;
  builder_.before(id).standing_for(id);
  ValueId value;
  if (component == 3)
    value = emit("mov.u32", {Operand::integer(0)});
  else if (static_cast<SpecialRegister>(read.id) == SpecialRegister::nctaid)
    value = read_extent(component);
  else
    value = index_[component];
  builder_ = Builder(function_);
  // A 16-bit move of the special register reads its low half; from a 32-bit register it would be illegal.
  const ir::Form& form = function_.form_of(id);
  if (form.opcode == Opcode::mov && ir::bit_width(form.type()) == 16)
    function_.instructions[id].form = ir::known_form("cvt.u16.u32");
  function_.operands_of(id)[operand] = Operand::value(value);
  function_.changed();
}

void PersistentLoop::run() {
  add_terms();
  make_blocks();
  redirect_returns();
  emit_preheader();
  emit_latch();
  replace_reads();
  const size_t hoisted = hoist_invariants(function_, preheader_, header_, hoisting_limit);
  std::string text = "one resident wave of blocks loops over the grid; ";
  text += std::to_string(hoisted) + " instruction(s) are computed in front of the loop";
  if (needs_.barrier_between()) text += ", and the block waits before it uses shared memory again";
  attempt_.remark(std::move(text), function_.header_range);
  ++attempt_.statistics["r2d2.persistent-kernels"];
  attempt_.statistics["r2d2.hoisted-instructions"] += static_cast<int64_t>(hoisted);
}

} // namespace

void make_persistent(Attempt& attempt, const PersistentNeeds& needs) {
  PersistentLoop(attempt, needs).run();
}

} // namespace ptxrewrite::transforms::legal
