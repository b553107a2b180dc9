// Checks whether a kernel can use persistent blocks.
//
// One thread runs several virtual blocks one after the other. A kernel is refused if it could distinguish that from
// separate blocks:
//   * %gridid, %envreg (where cooperative launches keep their workspace) and everything about clusters;
//   * waiting for other blocks: a loop with a test that depends on a volatile, acquiring or relaxed load, or on an
//     atomic, outside shared memory. It may wait for blocks that are not resident yet. Retrying a compare-and-swap
//     whose expected value changes in the loop does not count as waiting;
//   * a barrier or warp operation that some threads may have bypassed by returning: nothing waits for a thread that
//     returned, but the operation waits for a thread that continues with the next virtual block. That is: a barrier
//     between a divergent branch of a block's threads and its reconvergence point; a warp operation there, if no
//     barrier follows and the branch diverges within warps;
//   * state beyond registers and memory that ends with a block: mbarrier objects, bulk copies, barriers that only some
//     threads arrive at, wgmma and tcgen05, setmaxnreg, alloca. Pending cp.async groups are waited for instead;
//   * calls of functions that read the block index, end the thread, or are not in the module.
// %nctaid is allowed: the variant gets the virtual grid's extents as parameters, so that even its use in data is exact.
// %smid, %warpid, the clocks and the like have no values that a block could rely on.
//
// Not detected: programs that are wrong in themselves, such as waiting by plain loads, or reading uninitialised shared
// memory (`run --check` finds those).
#include "transforms/r2d2/persistent.h"

#include "ir/analysis/linear/linear.h"
#include "ir/core/last_return.h"
#include "transforms/common/variant.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ptxrewrite::transforms::legal {

namespace {

using ir::BlockId;
using ir::EdgeId;
using ir::Form;
using ir::InstructionClass;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Modifier;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::SpecialRegister;
using ir::ValueId;

// The limit for kernel parameters that every target supports, in bytes.
constexpr uint64_t parameter_limit = 4096;

// Functions outside the module whose behaviour does not depend on virtual blocks.
constexpr std::string_view harmless_functions[] = {"vprintf", "malloc", "free", "__assertfail"};

constexpr std::string_view cluster_directives[] = {".reqnctapercluster", ".explicitcluster", ".maxclusterrank",
                                                   ".blocksareclusters"};

bool is_cluster_register(std::string_view name) {
  return name.find("cluster") != name.npos;
}

// The operands, without the elements of groups and without old values.
std::vector<Operand> plain_operands(const ir::Function& function, InstructionId id) {
  std::vector<Operand> list;
  std::span<const Operand> operands = function.operands_of(id);
  for (size_t i = 0; i < operands.size(); i = ir::next_sibling(operands, i))
    if (!operands[i].has(ir::OperandFlag::old_value)) list.push_back(operands[i]);
  return list;
}

// Does the barrier specify a thread count? Its operands are a number, optionally the count, and for reductions the
// result before and the predicate after them.
bool is_counted(const ir::Function& function, InstructionId id) {
  return plain_operands(function, id).size() > (function.form_of(id).has(Modifier::red) ? 3 : 1);
}

// Can the access observe writes of a running block of the same grid?
bool sees_other_blocks(const Form& form) {
  if (ir::is_shared(form.space)) return false;
  return form.effects.atomic || (form.effects.reads_memory && form.effects.volatile_result);
}

class Checker {
public:
  Checker(const ir::Function& kernel, PassContext& context) : kernel_(kernel), context_(context) {}

  PersistentCheck run();

private:
  bool refuse(std::string why, SourceRange range) {
    if (check_.refusal.empty()) {
      check_.refusal = std::move(why);
      check_.range = range;
    }
    return false;
  }
  // Each returns false after it has refused the kernel.
  bool check_header();
  bool scan(const ir::Function& function);
  bool scan_instruction(const ir::Function& function, InstructionId id);
  bool scan_operand(const ir::Function& function, InstructionId id, const Operand& operand);
  bool scan_barrier(const ir::Function& function, InstructionId id);
  bool scan_call(const ir::Function& function, InstructionId id);
  bool check_waiting();
  bool check_returns();

  bool waits(InstructionId id, ir::LoopId loop) const;
  bool depends_on_waiting(ValueId test, ir::LoopId loop, std::set<ValueId>& seen, SourceRange& where) const;
  bool is_block_uniform(ValueId value) const;
  bool is_warp_uniform(ValueId test) const;
  bool is_thread_index(ValueId value) const;
  bool is_warp_index(ValueId value) const;
  enum class Meeting : uint8_t { none, of_warp, of_block }; // the threads that an instruction may wait for
  Meeting meeting_at(InstructionId id) const;
  bool leaves_without_barrier(BlockId block) const;
  bool check_meeting(InstructionId id, ValueId test, Meeting meeting, BlockId join);
  bool check_parting(BlockId block, InstructionId id, ValueId test, BlockId join);
  SourceRange place(const ir::Function& function, InstructionId id) const {
    return &function == &kernel_ ? function.instructions[id].range : call_range_;
  }
  std::string prefix(const ir::Function& function) const {
    return &function == &kernel_ ? "" : "calls " + std::string(function.module().text(function.name)) + ", which ";
  }

  const ir::Function& kernel_;
  PassContext& context_;
  PersistentCheck check_;
  std::set<const ir::Function*> scanned_;
  SourceRange call_range_;         // of the kernel's call that led to the function being scanned
  bool convergent_callee_ = false; // some called function has warp operations or barriers
  std::optional<ir::LinearForms> forms_;
  std::vector<std::vector<InstructionId>> meetings_; // by block: instructions that wait for other threads
};

PersistentCheck Checker::run() {
  if (check_header() && scan(kernel_)) {
    forms_.emplace(kernel_);
    if (check_waiting()) check_returns();
  }
  if (check_.refusal.empty() && check_.needs.dimensions == 0)
    refuse("does not read the block index", kernel_.header_range);
  return std::move(check_);
}

bool Checker::check_header() {
  if (std::string why = why_no_variant(kernel_, "r2d2", context_); !why.empty())
    return refuse(std::move(why), kernel_.header_range);
  for (const ir::FunctionDirective& directive : kernel_.directives)
    if (std::ranges::find(cluster_directives, kernel_.module().text(directive.name)) != std::end(cluster_directives))
      return refuse("runs in clusters", kernel_.header_range);
  uint64_t bytes = 0;
  for (ir::VariableId id : kernel_.variable_lists.view(kernel_.signature.parameters)) {
    const ir::Variable& parameter = kernel_.variables[id];
    uint64_t count = parameter.vector_width;
    for (uint64_t dimension : kernel_.dimensions.view(parameter.dimensions))
      count *= dimension;
    const uint64_t size = std::max(1u, ir::byte_width(parameter.type));
    bytes += count * size + std::max<uint64_t>(parameter.alignment, size) - 1;
  }
  if (bytes + 4 * 3 + 3 > parameter_limit) return refuse("has no room for further parameters", kernel_.header_range);
  return true;
}

bool Checker::scan(const ir::Function& function) {
  if (!scanned_.insert(&function).second) return true;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      const InstructionKind kind = function.instructions[id].kind;
      if (kind == InstructionKind::section_begin) return refuse("is in hardware form", kernel_.header_range);
      if (kind == InstructionKind::real && !scan_instruction(function, id)) return false;
    }
  return true;
}

bool Checker::scan_instruction(const ir::Function& function, InstructionId id) {
  const Form& form = function.form_of(id);
  const SourceRange range = place(function, id);
  auto refused = [&](const std::string& what) { return refuse(prefix(function) + what, range); };
  if (form.opaque || form.extension) return refused("has an instruction that is not known");
  switch (form.kind) {
  case InstructionClass::mbarrier:
  case InstructionClass::bulk_copy:
  case InstructionClass::tensor_copy:
    return refused("uses asynchronous barriers or copies that outlive a block");
  case InstructionClass::matrix_wgmma:
  case InstructionClass::matrix_tcgen05:
    return refused("uses asynchronous matrix instructions");
  case InstructionClass::barrier:
    if (!scan_barrier(function, id)) return false;
    break;
  default:
    break;
  }
  switch (form.opcode) {
  case Opcode::exit:
    if (&function != &kernel_) return refused("ends the thread");
    break;
  case Opcode::mapa:
  case Opcode::getctarank:
  case Opcode::clusterlaunchcontrol:
    return refused("is about clusters");
  case Opcode::setmaxnreg:
  case Opcode::griddepcontrol:
  case Opcode::alloca:
    return refused("has " + std::string(spelling(form.opcode)) + ", which is for a whole block");
  case Opcode::cp:
    if (form.has(Modifier::mbarrier)) return refused("uses asynchronous barriers or copies that outlive a block");
    check_.needs.async_copies = true;
    break;
  case Opcode::call:
    if (!scan_call(function, id)) return false;
    break;
  default:
    break;
  }
  if (form.space == ir::StateSpace::shared_cluster || form.source_space == ir::StateSpace::shared_cluster)
    return refused("reads or writes the shared memory of other blocks");
  if (&function != &kernel_ && sees_other_blocks(form) && form.opcode != Opcode::red)
    return refused("may wait for other blocks");
  check_.needs.shared_memory |= ir::is_shared(form.space) || ir::is_shared(form.source_space);
  if (form.effects.convergent && form.kind != InstructionClass::barrier) {
    check_.needs.warp_operations = true;
    convergent_callee_ |= &function != &kernel_;
  }
  for (const Operand& operand : function.operands_of(id))
    if (!scan_operand(function, id, operand)) return false;
  return true;
}

bool Checker::scan_operand(const ir::Function& function, InstructionId id, const Operand& operand) {
  const SourceRange range = place(function, id);
  if (operand.is(OperandKind::symbol)) {
    const ir::SymbolRef symbol = operand.as_symbol();
    ir::StateSpace space = ir::StateSpace::none;
    if (symbol.kind() == ir::SymbolRef::Kind::module_variable)
      space = function.module().variables[symbol.variable()].space;
    else if (symbol.kind() == ir::SymbolRef::Kind::local_variable)
      space = function.variables[symbol.variable()].space;
    check_.needs.shared_memory |= ir::is_shared(space);
    return true;
  }
  if (!operand.is(OperandKind::special_register)) return true;
  const auto special = static_cast<SpecialRegister>(operand.id);
  const std::string_view name = info(special).name;
  if (special == SpecialRegister::gridid || name.starts_with("%envreg"))
    return refuse(prefix(function) + "reads " + std::string(name) + ", which is about the real launch", range);
  if (is_cluster_register(name)) return refuse(prefix(function) + "is about clusters", range);
  if (special != SpecialRegister::ctaid && special != SpecialRegister::nctaid) return true;
  if (&function != &kernel_) return refuse(prefix(function) + "reads " + std::string(name), range);
  if (operand.selector == ir::no_selector)
    return refuse("reads the vector " + std::string(name) + " as a whole", range);
  const Opcode opcode = function.form_of(id).opcode;
  if (opcode != Opcode::mov && opcode != Opcode::cvt)
    return refuse("reads " + std::string(name) + " in an unusual place", range);
  const unsigned component = operand.selector & 3;
  if (special == SpecialRegister::ctaid && component < 3)
    check_.needs.dimensions = std::max(check_.needs.dimensions, component + 1);
  return true;
}

bool Checker::scan_barrier(const ir::Function& function, InstructionId id) {
  const Form& form = function.form_of(id);
  const SourceRange range = place(function, id);
  if (form.has(Modifier::cluster)) return refuse(prefix(function) + "is about clusters", range);
  convergent_callee_ |= &function != &kernel_;
  if (form.has(Modifier::warp)) {
    check_.needs.warp_operations = true;
    return true;
  }
  if (form.has(Modifier::arrive))
    return refuse(prefix(function) + "arrives at a barrier without waiting; that may be left over", range);
  check_.needs.block_barriers = true;
  check_.needs.counted_barriers |= is_counted(function, id);
  const std::vector<Operand> operands = plain_operands(function, id);
  const size_t number = form.has(Modifier::red) ? 1 : 0;
  if (number < operands.size() && operands[number].is(OperandKind::integer)) {
    check_.needs.barriers.insert(static_cast<uint32_t>(operands[number].immediate));
    return true;
  }
  return refuse(prefix(function) + "has a barrier whose number is computed", range);
}

bool Checker::scan_call(const ir::Function& function, InstructionId id) {
  const SourceRange range = place(function, id);
  const ir::Module& module = function.module();
  bool direct = false;
  for (const Operand& operand : function.operands_of(id)) {
    if (!operand.is(OperandKind::symbol)) continue;
    const ir::SymbolRef symbol = operand.as_symbol();
    if (symbol.kind() == ir::SymbolRef::Kind::undeclared)
      return refuse(prefix(function) + "calls what the module does not declare", range);
    if (symbol.kind() != ir::SymbolRef::Kind::function) continue;
    direct = true;
    const std::string_view name = module.text(module.function(symbol.function()).name);
    // A prototype and the definition of the function are two entries of the module.
    auto definition = std::ranges::find_if(
        module.functions, [&](const auto& other) { return other->has_body && module.text(other->name) == name; });
    if (definition == module.functions.end()) {
      if (std::ranges::find(harmless_functions, name) != std::end(harmless_functions)) continue;
      return refuse(prefix(function) + "calls " + std::string(name) + ", which is not in the module", range);
    }
    if (&function == &kernel_) call_range_ = range;
    if (!scan(**definition)) return false;
  }
  return direct || refuse(prefix(function) + "calls through a pointer", range);
}

// --- waiting for other blocks ---

bool Checker::waits(InstructionId id, ir::LoopId loop) const {
  if (kernel_.instructions[id].kind != InstructionKind::real) return false;
  const Form& form = kernel_.form_of(id);
  if (!sees_other_blocks(form)) return false;
  if (form.opcode == Opcode::atom && form.has(Modifier::cas)) {
    const std::vector<Operand> operands = plain_operands(kernel_, id);
    if (operands.size() > 2 && operands[2].is(OperandKind::value)) {
      const ir::DefinitionSite& site = forms_->def_use().definition(operands[2].as_value());
      if (site.block && forms_->loops().contains(loop, site.block)) return false;
    }
  }
  return true;
}

// Does the test depend on an instruction for which `waits` returns true, through the values of the loop?
bool Checker::depends_on_waiting(ValueId test, ir::LoopId loop, std::set<ValueId>& seen, SourceRange& where) const {
  std::vector<ValueId> work;
  auto reach = [&](ValueId value) {
    if (seen.insert(value).second) work.push_back(value);
  };
  reach(test);
  while (!work.empty()) {
    const ValueId value = work.back();
    work.pop_back();
    const ir::DefinitionSite& site = forms_->def_use().definition(value);
    if (!site.block || !forms_->loops().contains(loop, site.block)) continue;
    if (site.is_parameter()) {
      for (EdgeId edge : forms_->control_flow().predecessors(site.block))
        reach(kernel_.arguments(edge)[site.parameter]);
    } else if (site.instruction) {
      if (waits(site.instruction, loop)) {
        where = kernel_.instructions[site.instruction].range;
        return true;
      }
      ir::for_each_use(kernel_, site.instruction, reach);
    }
  }
  return false;
}

bool Checker::check_waiting() {
  const ir::LoopForest& loops = forms_->loops();
  constexpr const char* reason = "may wait for other blocks: a test in a loop depends on what they write";
  for (ir::LoopId loop : loops.loops().ids()) {
    const std::span<const BlockId> blocks = loops.loops()[loop].blocks;
    const bool may_wait = std::ranges::any_of(blocks, [&](BlockId block) {
      for (InstructionId id : kernel_.instructions_in(block))
        if (waits(id, loop)) return true;
      return false;
    });
    if (!may_wait) continue;
    std::set<ValueId> seen; // of all tests of the loop: none of these values depends on waiting
    for (BlockId block : blocks)
      for (InstructionId id : kernel_.instructions_in(block)) {
        const ir::Instruction& instruction = kernel_.instructions[id];
        if (instruction.kind != InstructionKind::real || !kernel_.form_of(id).effects.transfers_control()) continue;
        SourceRange where;
        bool found = false;
        ir::for_each_use(kernel_, id,
                         [&](ValueId value) { found = found || depends_on_waiting(value, loop, seen, where); });
        if (found) return refuse(reason, where);
      }
  }
  if (!loops.irreducible()) return true;
  for (BlockId block : kernel_.layout)
    for (InstructionId id : kernel_.instructions_in(block))
      if (waits(id, {})) return refuse(reason, kernel_.instructions[id].range);
  return true;
}

// --- divergent returns ---

bool Checker::is_block_uniform(ValueId value) const {
  if (forms_->form(value).kind > ir::ValueClass::block_uniform) return false;
  return std::ranges::all_of(forms_->obligations(value),
                             [&](ir::ObligationId id) { return forms_->obligation(id).proved; });
}

Checker::Meeting Checker::meeting_at(InstructionId id) const {
  if (kernel_.instructions[id].kind != InstructionKind::real) return Meeting::none;
  const Form& form = kernel_.form_of(id);
  if (form.effects.call) return convergent_callee_ ? Meeting::of_block : Meeting::none;
  // A barrier with a count waits only for that many arrivals, not for the whole block.
  if (form.kind == InstructionClass::barrier && !form.has(Modifier::warp))
    return is_counted(kernel_, id) ? Meeting::none : Meeting::of_block;
  // Without .sync, a warp operation applies to the active lanes and does not wait for others.
  return form.effects.convergent && form.has(Modifier::sync) ? Meeting::of_warp : Meeting::none;
}

// May a thread return from the start of `block` without having waited for the other threads of its block?
bool Checker::leaves_without_barrier(BlockId block) const {
  std::set<BlockId> seen{block};
  std::vector<BlockId> work{block};
  while (!work.empty()) {
    const BlockId next = work.back();
    work.pop_back();
    bool waited = false;
    for (InstructionId id : kernel_.instructions_in(next)) {
      waited = meeting_at(id) == Meeting::of_block && !kernel_.instructions[id].guard;
      if (waited) break;
      if (kernel_.is_opcode(id, Opcode::ret) || kernel_.is_opcode(id, Opcode::exit)) return true;
    }
    if (waited) continue;
    if (ir::runs_off_the_end(kernel_, next)) return true;
    for (EdgeId edge : kernel_.successors(next))
      if (seen.insert(kernel_.edges[edge].to).second) work.push_back(kernel_.edges[edge].to);
  }
  return false;
}

// Is the test uniform within each warp? If each warp's threads are in one row, which the launch checks, %tid.x / 32 is,
// and so is %tid.x < 32 * k.
bool Checker::is_warp_uniform(ValueId test) const {
  const InstructionId id = forms_->def_use().definition(test).instruction;
  if (!id || !kernel_.is_opcode(id, Opcode::setp) || kernel_.instructions[id].guard) return false;
  const std::vector<Operand> operands = plain_operands(kernel_, id);
  if (operands.size() != 3 || !operands[1].is(OperandKind::value)) return false;
  const Form& form = kernel_.form_of(id);
  if (is_warp_index(operands[1].as_value()))
    return operands[2].is(OperandKind::integer) ||
           (operands[2].is(OperandKind::value) && is_block_uniform(operands[2].as_value()));
  if (!is_thread_index(operands[1].as_value()) || !operands[2].is(OperandKind::integer)) return false;
  const int64_t limit = operands[2].immediate;
  if (form.has(Modifier::lt) || form.has(Modifier::ge) || form.has(Modifier::lo) || form.has(Modifier::hs))
    return limit % 32 == 0;
  if (form.has(Modifier::le) || form.has(Modifier::gt) || form.has(Modifier::ls) || form.has(Modifier::hi))
    return limit % 32 == 31;
  return false;
}

bool Checker::is_thread_index(ValueId value) const {
  const InstructionId id = forms_->def_use().definition(value).instruction;
  if (!id || !kernel_.is_opcode(id, Opcode::mov) || kernel_.instructions[id].guard) return false;
  const Operand& source = kernel_.operands_of(id).back();
  return source.is(OperandKind::special_register) && static_cast<SpecialRegister>(source.id) == SpecialRegister::tid &&
         source.selector == ir::component_selector(0);
}

bool Checker::is_warp_index(ValueId value) const {
  const InstructionId id = forms_->def_use().definition(value).instruction;
  if (!id || !kernel_.is_opcode(id, Opcode::shr) || kernel_.instructions[id].guard) return false;
  const std::vector<Operand> operands = plain_operands(kernel_, id);
  return operands.size() == 3 && operands[1].is(OperandKind::value) && is_thread_index(operands[1].as_value()) &&
         operands[2].is(OperandKind::integer) && operands[2].immediate >= 5;
}

// Threads diverge at `id`, by `test`, and reconverge at `join`, if it exists.
bool Checker::check_meeting(InstructionId id, ValueId test, Meeting meeting, BlockId join) {
  constexpr const char* reason =
      "a barrier or warp operation is reachable when some threads of the block have returned";
  if (meeting == Meeting::none) return true;
  const SourceRange range = kernel_.instructions[id].range;
  if (meeting == Meeting::of_block) return refuse(reason, range);
  if (join && !leaves_without_barrier(join)) return true;
  if (!is_warp_uniform(test)) return refuse(reason, range);
  check_.needs.warps_in_rows = true;
  return true;
}

// Checks all instructions between the divergence at `id` and the reconvergence.
bool Checker::check_parting(BlockId block, InstructionId id, ValueId test, BlockId join) {
  for (InstructionId next = kernel_.instructions[id].next; next; next = kernel_.instructions[next].next)
    if (!check_meeting(next, test, meeting_at(next), join)) return false;
  std::vector<bool> seen(kernel_.blocks.size());
  std::vector<BlockId> work;
  auto reach_successors = [&](BlockId from) {
    for (EdgeId edge : kernel_.successors(from)) {
      const BlockId to = kernel_.edges[edge].to;
      if (to != join && !seen[to.index()]) work.push_back(to);
      seen[to.index()] = true;
    }
  };
  reach_successors(block);
  while (!work.empty()) {
    const BlockId next = work.back();
    work.pop_back();
    for (InstructionId met : meetings_[next.index()])
      if (!check_meeting(met, test, meeting_at(met), join)) return false;
    reach_successors(next);
  }
  return true;
}

bool Checker::check_returns() {
  bool returns = false, meetings = false;
  meetings_.resize(kernel_.blocks.size());
  for (BlockId block : kernel_.layout) {
    returns |= ir::runs_off_the_end(kernel_, block);
    for (InstructionId id : kernel_.instructions_in(block)) {
      returns |= kernel_.is_opcode(id, Opcode::ret) || kernel_.is_opcode(id, Opcode::exit);
      if (meeting_at(id) == Meeting::none) continue;
      meetings = true;
      meetings_[block.index()].push_back(id);
    }
  }
  if (!returns) return refuse("never returns", kernel_.header_range);
  if (!meetings) return true;
  const ir::PostDominatorTree post_dominators(kernel_, forms_->control_flow());
  for (BlockId block : kernel_.layout)
    for (InstructionId id : kernel_.instructions_in(block)) {
      if (kernel_.instructions[id].kind != InstructionKind::real) continue;
      const ir::Effects& effects = kernel_.form_of(id).effects;
      const Meeting guarded = kernel_.instructions[id].guard ? meeting_at(id) : Meeting::none;
      const bool is_return = effects.terminates && kernel_.form_of(id).opcode != Opcode::trap;
      if (!effects.branch && !is_return && guarded == Meeting::none) continue;
      ValueId test = kernel_.instructions[id].guard;
      if (!test) ir::for_each_use(kernel_, id, [&](ValueId value) { test = value; }); // the index of a brx
      if (!test || is_block_uniform(test)) continue;
      if (guarded != Meeting::none && !check_meeting(id, test, guarded, BlockId())) return false;
      if (guarded != Meeting::none) continue;
      const BlockId join = effects.branch ? post_dominators.immediate_post_dominator(block) : BlockId();
      if (!check_parting(block, id, test, join)) return false;
    }
  return true;
}

} // namespace

std::optional<uint32_t> PersistentNeeds::barrier_between() const {
  if (!shared_memory && !block_barriers) return std::nullopt;
  if (!counted_barriers) return 0;
  // Some threads may arrive here while others still wait at another barrier.
  for (uint32_t number = 0; number < 16; ++number)
    if (!barriers.contains(number)) return number;
  return std::nullopt;
}

PersistentCheck check_persistent(const ir::Function& function, PassContext& context) {
  PersistentCheck check = Checker(function, context).run();
  const PersistentNeeds& needs = check.needs;
  if (check.refusal.empty() && needs.counted_barriers && !needs.barrier_between()) {
    check.refusal = "uses all barriers there are";
    check.range = function.header_range;
  }
  return check;
}

} // namespace ptxrewrite::transforms::legal
