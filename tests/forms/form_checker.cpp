#include "tests/forms/form_checker.h"

#include "ir/ssa/ssa.h"
#include "launch/predicate.h"
#include "launch/signature.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::tests {

namespace {

constexpr uint64_t all_blocks_up_to = 12; // larger grids: the first and last blocks and some between
constexpr size_t most_mismatches = 20;

using Index = std::array<uint32_t, 3>;

// One form in one launch, as numbers.
struct NumericForm {
  bool is_known = false;
  bool has_threads = false;
  unsigned width = 0;
  std::array<uint64_t, ir::form_index::count> coefficients{};
  std::vector<std::pair<uint32_t, uint64_t>> loops; // loop number, step
};

Index as_index(const emulator::Dimensions& dimensions) {
  return {dimensions.x, dimensions.y, dimensions.z};
}

} // namespace

void FormCounts::add(const FormCounts& other) {
  for (uint64_t FormCounts::*number :
       {&FormCounts::values, &FormCounts::with_threads, &FormCounts::with_loops, &FormCounts::obliged,
        &FormCounts::unfulfilled, &FormCounts::uniform, &FormCounts::lost})
    this->*number += other.*number;
}

// The SSA form of a kernel: instructions keep their numbers.
struct FormChecker::Analysis {
  explicit Analysis(const ir::Function& kernel) : function(kernel) {
    has_forms = bool(ir::construct_ssa(function));
    if (!has_forms) return;
    forms = std::make_unique<ir::LinearForms>(function);
    order.resize(function.instructions.size());
    last.resize(function.blocks.size());
    for (ir::BlockId block : function.layout) {
      uint32_t number = 0;
      for (ir::InstructionId id : function.instructions_in(block))
        if (function.instructions[id].kind == ir::InstructionKind::real)
          last[block.index()] = order[id.index()] = ++number;
    }
  }

  // The edges on which control flows from the end of one block to another, through empty blocks; nullptr if this is not
  // one path.
  const std::vector<ir::EdgeId>* path(ir::BlockId from, ir::BlockId to) {
    auto [row, is_new] = paths.try_emplace({from.index(), to.index()});
    if (!is_new) return row->second.empty() ? nullptr : &row->second;
    for (ir::EdgeId first : function.successors(from)) {
      std::vector<ir::EdgeId> edges{first};
      ir::BlockId at = function.edges[first].to;
      while (at != to && last[at.index()] == 0 && function.successors(at).size() == 1) {
        edges.push_back(function.successors(at)[0]);
        at = function.edges[edges.back()].to;
      }
      if (at == to) row->second = edges;
      if (at == to && edges.size() == 1) break;
    }
    return row->second.empty() ? nullptr : &row->second;
  }

  ir::Function function;
  bool has_forms = false;
  std::unique_ptr<ir::LinearForms> forms;
  std::vector<uint32_t> order; // by instruction: its position among the real instructions of its block, from 1
  std::vector<uint32_t> last;  // by block: position of its last real instruction, 0 if none
  std::map<std::pair<uint32_t, uint32_t>, std::vector<ir::EdgeId>> paths;
};

struct FormChecker::Thread {
  ir::BlockId block;
  uint32_t order = 0;
  std::vector<uint64_t> trips; // by loop
};

// The forms of a kernel in one launch.
struct FormChecker::LaunchForms {
  LaunchForms(Analysis& of_kernel, const emulator::Block& block) : analysis(of_kernel) {
    const emulator::LaunchRequest& request = *block.launch->request;
    grid = as_index(request.grid), extents = as_index(request.block);
    launch.block = extents, launch.grid = grid;
    const launch::Signature signature = launch::signature_of(analysis.function);
    const launch::LaunchFacts facts = launch::facts_of(signature, request.parameters, {grid[0], grid[1], grid[2]},
                                                       {extents[0], extents[1], extents[2]});
    for (const std::vector<std::byte>& bytes : facts.parameters) {
      launch.parameters.emplace_back();
      for (std::byte byte : bytes)
        launch.parameters.back().push_back(static_cast<uint8_t>(byte));
    }
    for (ir::ObligationId id : analysis.forms->all_obligations().ids())
      holds.push_back(analysis.forms->evaluate(id, launch));
  }

  bool is_watched(uint64_t block) const {
    const uint64_t count = uint64_t(grid[0]) * grid[1] * grid[2];
    if (count <= all_blocks_up_to) return true;
    return block < 4 || block + 3 >= count || block % (count / 4) == 1;
  }

  std::vector<Thread>& threads_of(uint64_t block) {
    std::vector<Thread>& threads = blocks[block];
    if (threads.empty()) {
      threads.resize((size_t(extents[0]) * extents[1] * extents[2] + 31) / 32 * 32);
      for (Thread& thread : threads)
        thread.trips.resize(analysis.forms->loops().loops().size());
    }
    return threads;
  }

  // `block` as in compare().
  const NumericForm& numbers_of(ir::ValueId value, ir::BlockId block, const ir::LinearForm& form) {
    auto [row, is_new] = numeric.try_emplace(uint64_t(value.index()) << 32 | block.index());
    if (is_new) row->second = make_numbers(form);
    return row->second;
  }

  NumericForm make_numbers(const ir::LinearForm& form) const {
    NumericForm result;
    result.width = form.width;
    if (!form.has_coefficients() || form.kind >= ir::ValueClass::mod_linear) return result;
    const ir::ExpressionPool& pool = analysis.forms->expressions();
    for (size_t i = 0; i < form.coefficients.size(); ++i) {
      const std::optional<uint64_t> value = pool.evaluate(form.coefficients[i], launch);
      if (!value) return result;
      result.coefficients[i] = *value + (i == ir::form_index::tid_x ? excess : 0);
      if (i != 0 && !pool.is_zero(form.coefficients[i])) result.has_threads = true;
    }
    for (const ir::LoopOffset& offset : form.loops()) {
      const std::optional<uint64_t> step = pool.evaluate(offset.step, launch);
      if (!step) return result;
      result.loops.emplace_back(offset.loop.index(), *step);
    }
    result.is_known = true;
    return result;
  }

  bool fulfils(ir::ValueId value) const {
    return std::ranges::all_of(analysis.forms->obligations(value),
                               [&](ir::ObligationId id) { return holds[id.index()] != 0; });
  }

  Index thread_index(uint32_t number) const {
    return {number % extents[0], number / extents[0] % extents[1], number / extents[0] / extents[1]};
  }

  Analysis& analysis;
  Index grid{}, extents{};
  uint64_t excess = 0; // added to coefficients, for spoil()
  ir::LaunchValues launch;
  std::vector<char> holds;                           // by obligation
  std::unordered_map<uint64_t, NumericForm> numeric; // by value and block
  std::unordered_map<uint64_t, std::vector<Thread>> blocks;
  std::map<std::vector<uint64_t>, uint64_t> seen; // values that must be equal, by everything that they may depend on
};

FormChecker::FormChecker(const ir::Module& module) : module_(module) {}
FormChecker::~FormChecker() = default;

void FormChecker::new_launch() {
  launch_.reset();
}

FormChecker::LaunchForms* FormChecker::forms_of(const emulator::Block& block) {
  if (!launch_) {
    const std::string& kernel = block.launch->request->kernel;
    auto [row, is_new] = analyses_.try_emplace(kernel);
    if (is_new)
      if (const ir::Function* function = launch::find_kernel(module_, kernel))
        row->second = std::make_unique<Analysis>(*function);
    if (!row->second || !row->second->has_forms) return nullptr;
    launch_ = std::make_unique<LaunchForms>(*row->second, block);
    launch_->excess = is_spoilt_ ? 1 : 0;
  }
  return launch_->is_watched(block.linear) ? launch_.get() : nullptr;
}

// These lanes have reached an instruction: determines the blocks that they have entered since the last one.
void FormChecker::visit(LaunchForms& launch, const emulator::Block& block, const emulator::Warp& warp,
                        ir::InstructionId id, uint32_t lanes) {
  Analysis& analysis = launch.analysis;
  const ir::BlockId here = analysis.function.instructions[id].block;
  const uint32_t order = analysis.order[id.index()];
  const ir::LoopForest& loops = analysis.forms->loops();
  std::vector<Thread>& threads = launch.threads_of(block.linear);
  for (; lanes; lanes &= lanes - 1) {
    Thread& thread = threads[warp.index * 32 + static_cast<unsigned>(std::countr_zero(lanes))];
    const bool is_first = !thread.block.valid();
    // The same instruction again without leaving the block: it waited.
    const bool moves =
        is_first ? here != analysis.function.entry()
                 : here != thread.block || (order <= thread.order && thread.order == analysis.last[here.index()]);
    if (moves) {
      const ir::BlockId from = is_first ? analysis.function.entry() : thread.block;
      const std::vector<ir::EdgeId>* path = analysis.path(from, here);
      if (!path) {
        if (here != from) ++counts_.lost;
      } else {
        for (ir::EdgeId id_of_edge : *path) {
          const ir::Edge& edge = analysis.function.edges[id_of_edge];
          for (ir::LoopId loop = loops.innermost(edge.to); loop; loop = loops.loops()[loop].parent)
            if (loops.loops()[loop].header == edge.to)
              thread.trips[loop.index()] = loops.contains(loop, edge.from) ? thread.trips[loop.index()] + 1 : 0;
        }
      }
    }
    thread.block = here;
    thread.order = order;
  }
}

// `block_of_use`: where the value is read; invalid: it has just been computed.
void FormChecker::compare(LaunchForms& launch, const emulator::ObservedInstruction& at,
                          const emulator::ObservedValue& value, ir::ValueId id, ir::BlockId block_of_use) {
  const ir::LinearForms& forms = *launch.analysis.forms;
  const ir::LinearForm& form = block_of_use.valid() ? forms.form_at(id, block_of_use) : forms.form(id);
  const char* const where = block_of_use.valid() ? "source" : "result";
  if (form.kind == ir::ValueClass::any || form.kind == ir::ValueClass::divergent_linear) return;
  if (!launch.fulfils(id)) {
    counts_.unfulfilled += static_cast<unsigned>(std::popcount(at.mask));
    return;
  }
  const NumericForm& numbers = launch.numbers_of(id, block_of_use, form);
  const unsigned bits = std::min(form.width, static_cast<uint8_t>(std::min(value.bits, 64u)));
  const std::vector<Thread>& threads = launch.threads_of(at.block->linear);
  const Index block = as_index(at.block->index);
  const bool is_obliged = !forms.obligations(id).empty();
  for (uint32_t lanes = at.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const uint32_t number = at.warp->index * 32 + lane;
    const uint64_t is = ir::low_bits(value.low(lane), bits);
    const Index thread = launch.thread_index(number);
    std::optional<uint64_t> expected;
    if (numbers.is_known) {
      uint64_t sum = numbers.coefficients[0];
      for (unsigned axis = 0; axis < 3; ++axis)
        sum += numbers.coefficients[ir::form_index::tid_x + axis] * thread[axis] +
               numbers.coefficients[ir::form_index::ctaid_x + axis] * block[axis];
      for (const auto& [loop, step] : numbers.loops)
        sum += step * threads[number].trips[loop];
      expected = sum;
      counts_.with_threads += numbers.has_threads;
      counts_.with_loops += !numbers.loops.empty();
    } else if (form.kind == ir::ValueClass::mod_linear) {
      ir::ThreadPosition position{thread, block, {}, {}};
      for (ir::LoopId loop : forms.loops().loops().ids())
        position.trips.emplace_back(loop, threads[number].trips[loop.index()]);
      expected = forms.evaluate(form, launch.launch, position);
    }
    if (expected) {
      ++counts_.values;
      counts_.obliged += is_obliged;
      if (is != ir::low_bits(*expected, bits)) report(launch, at, lane, id, form, is, *expected, where);
      continue;
    }
    if (form.kind > ir::ValueClass::block_uniform) continue;
    // Equal in all threads, in the same iteration if it may change between iterations.
    std::vector<uint64_t> key{id.index(), block_of_use.index(), bits};
    if (form.kind == ir::ValueClass::block_uniform) key.push_back(at.block->linear);
    const ir::BlockId definition = forms.def_use().definition(id).block;
    for (ir::LoopId loop = forms.loops().innermost(definition); form.varies && loop;
         loop = forms.loops().loops()[loop].parent)
      key.push_back(threads[number].trips[loop.index()]);
    ++counts_.uniform;
    const auto [found, is_new] = launch.seen.try_emplace(std::move(key), is);
    if (!is_new && found->second != is) report(launch, at, lane, id, form, is, found->second, where);
  }
}

void FormChecker::report(LaunchForms& launch, const emulator::ObservedInstruction& at, unsigned lane, ir::ValueId id,
                         const ir::LinearForm& form, uint64_t is, uint64_t expected, const char* where) {
  if (mismatches_.size() >= most_mismatches) return;
  const ir::LinearForms& forms = *launch.analysis.forms;
  const ir::Function& function = launch.analysis.function;
  const Index thread = launch.thread_index(at.warp->index * 32 + lane), block = as_index(at.block->index);
  const SourceRange range = function.instructions[at.instruction].range;
  const auto triple = [](const Index& index) {
    return std::to_string(index[0]) + "," + std::to_string(index[1]) + "," + std::to_string(index[2]);
  };
  mismatches_.push_back(std::string(module_.text(function.name)) + ": '" +
                        std::string(module_.source.text().substr(range.begin, range.end - range.begin)) + "', " +
                        where + " " + function.value_name(id) + " is " + std::to_string(is) + ", its form " +
                        std::string(ir::spelling(form.kind)) + " " + forms.print_exact(form) + " says " +
                        std::to_string(expected) + " in thread " + triple(thread) + " of block " + triple(block));
}

void FormChecker::executing(const emulator::ObservedInstruction& at) {
  LaunchForms* launch = forms_of(*at.block);
  if (!launch || at.warp->activation != &at.warp->root) return;
  visit(*launch, *at.block, *at.warp, at.instruction, at.warp->active);
  const Analysis& analysis = launch->analysis;
  // Values among the sources, in the order of the operands; every other observed source must match one of these.
  std::vector<const ir::Operand*> operands;
  for (const ir::Operand& operand : analysis.function.operands_of(at.instruction)) {
    const bool is_read = !operand.is_group() && !operand.is_definition() && !operand.has(ir::OperandFlag::old_value);
    if (is_read) operands.push_back(&operand);
  }
  if (operands.size() != at.sources.size()) return;
  const ir::BlockId block = analysis.function.instructions[at.instruction].block;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]->is(ir::OperandKind::value) || operands[i]->has(ir::OperandFlag::negated)) continue;
    const ir::ValueId value = operands[i]->as_value();
    compare(*launch, at, at.sources[i], value, block);
  }
}

void FormChecker::passed(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) {
  LaunchForms* launch = forms_of(block);
  if (!launch || warp.activation != &warp.root) return;
  // The entry's instructions are numbered first.
  visit(*launch, block, warp, ir::InstructionId(op.instruction), warp.active);
}

void FormChecker::executed(const emulator::ObservedInstruction& at) {
  LaunchForms* launch = forms_of(*at.block);
  if (!launch || at.warp->activation != &at.warp->root) return;
  const Analysis& analysis = launch->analysis;
  std::vector<const ir::Operand*> results;
  for (const ir::Operand& operand : analysis.function.operands_of(at.instruction))
    if (operand.is_definition() || operand.is(ir::OperandKind::sink)) results.push_back(&operand);
  if (results.size() != at.results.size()) return;
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i]->is(ir::OperandKind::value)) compare(*launch, at, at.results[i], results[i]->as_value(), {});
}

void FormChecker::block_ended(emulator::Block& block) {
  if (launch_) launch_->blocks.erase(block.linear);
}

} // namespace ptxrewrite::tests
