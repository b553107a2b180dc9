// Addresses that differ by a launch-uniform number, such as those of a stencil's planes: each is the one before plus
// that number, if this makes the indices unnecessary that they were computed from.
//
// ptxas takes two instructions for an address from an index of its own: the index's sum, and its product added to the
// base. The sum of the address before and a product takes one. ptxas cannot know that the sum of 32-bit indices does
// not wrap; conditions on the launch exclude this.
#include "transforms/memory/workspace.h"

#include "ir/core/builder.h"
#include "transforms/common/cost.h"
#include "transforms/common/moved_extensions.h"

#include <algorithm>
#include <map>

namespace ptxrewrite::transforms::memory {

namespace {

using ir::BlockId;
using ir::ExpressionId;
using ir::InstructionId;
using ir::LinearForm;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;
namespace form_index = ir::form_index;

constexpr std::string_view chained_for = "memory: an address as the one before plus a launch constant";
constexpr size_t class_limit = 64; // addresses that differ by launch constants only

// An address, and the launch-uniform part of its form.
struct Address {
  ValueId value;
  InstructionId definition;
  ExpressionId constant;
  std::vector<ir::ObligationId> obligations; // of the form and of this writing of its constant
};

// `address` is `before` plus `step`.
struct Link {
  const Address* address;
  const Address* before;
  ValueId step;
};

class Chains {
public:
  Chains(Workspace& workspace, AnalysisCache& analyses)
      : workspace_(workspace), analyses_(analyses), function_(workspace.function), forms_(workspace.forms()),
        original_(forms_.function()) {}

  size_t run();

private:
  bool is_address(ValueId value) const;
  void collect();
  void number_instructions();
  void find_steps();
  bool precedes(InstructionId first, InstructionId second) const;
  bool is_computed_before(ValueId value, InstructionId place) const;
  bool can_be_repeated(InstructionId step, InstructionId place) const;
  std::optional<ValueId> step_for(ExpressionId difference, InstructionId place) const;
  std::optional<Link> link_to(std::span<const Address> before, const Address& address) const;
  std::vector<Link> links_of(const std::vector<Address>& addresses) const;
  // Removes links that free no instruction. Returns whether the others free more than one each.
  bool pays(std::vector<Link>& links);
  std::optional<std::vector<Need>> needs_of(const std::vector<Link>& links);
  void write(const std::vector<Link>& links);

  Workspace& workspace_;
  AnalysisCache& analyses_;
  ir::Function& function_;
  ir::LinearForms& forms_;
  const ir::Function& original_;
  std::map<std::vector<uint32_t>, std::vector<Address>> classes_; // by the varying part of the form, in program order
  std::map<ExpressionId, std::vector<ValueId>> steps_;            // launch-uniform values, by their expressions
  std::vector<uint32_t> position_;                                // by InstructionId, in its block
  std::optional<ir::ReaderCounts> counts_;
  std::map<ValueId, ValueId> repeated_; // steps that are computed again, earlier
};

// True for a 64-bit sum with a linear form.
bool Chains::is_address(ValueId value) const {
  if (value.index() >= original_.values.size()) return false;
  const InstructionId id = forms_.def_use().definition(value).instruction;
  if (!id || original_.instructions[id].kind != ir::InstructionKind::real || original_.instructions[id].guard ||
      !original_.is_opcode(id, Opcode::add) || original_.form_of(id).effects.writes_carry)
    return false;
  const LinearForm& form = forms_.form(value);
  return form.width == 64 && form.has_coefficients() && !form.varies && form.kind != ir::ValueClass::any &&
         form.kind != ir::ValueClass::divergent_linear && form.kind != ir::ValueClass::mod_linear;
}

void Chains::collect() {
  std::set<ValueId> seen;
  for (BlockId block : forms_.control_flow().reverse_postorder())
    for (InstructionId id : function_.instructions_in(block)) {
      if (function_.instructions[id].kind != ir::InstructionKind::real ||
          function_.form_of(id).space != ir::StateSpace::global)
        continue;
      const auto operands = function_.operands_of(id);
      for (size_t i = 0; i + 1 < operands.size(); ++i) {
        if (!operands[i].is(OperandKind::address) || operands[i].group_size() != 1 ||
            !operands[i + 1].is(OperandKind::value))
          continue;
        const ValueId base = operands[i + 1].as_value();
        if (!is_address(base) || !seen.insert(base).second) continue;
        const LinearForm& form = forms_.form(base);
        const BlockId home = forms_.def_use().definition(base).block;
        std::vector<uint32_t> key{forms_.loops().innermost(home).index()};
        for (unsigned place = form_index::tid_x; place < form_index::count; ++place)
          key.push_back(form.coefficients[place].index());
        for (const ir::LoopOffset& offset : form.loops()) {
          key.push_back(offset.loop.index());
          key.push_back(offset.step.index());
        }
        auto& list = classes_[key];
        if (list.size() >= class_limit) continue;
        Address address{base, forms_.def_use().definition(base).instruction, {}, {}};
        const auto needed = forms_.obligations(base);
        address.obligations.assign(needed.begin(), needed.end());
        address.constant =
            move_extensions(forms_, form.coefficients[form_index::constant], address.definition, address.obligations);
        list.push_back(std::move(address));
      }
    }
}

void Chains::number_instructions() {
  position_.assign(original_.instructions.size(), 0);
  for (BlockId block : original_.layout) {
    uint32_t position = 0;
    for (InstructionId id : original_.instructions_in(block))
      position_[id.index()] = ++position;
  }
}

void Chains::find_steps() {
  for (uint32_t index = 0; index < original_.values.size(); ++index) {
    const ValueId value(index);
    const LinearForm& form = forms_.form(value);
    if (form.kind != ir::ValueClass::launch_uniform || form.width != 64 || !form.has_coefficients() || form.varies)
      continue;
    const InstructionId id = forms_.def_use().definition(value).instruction;
    if (id && !original_.instructions[id].guard) steps_[form.coefficients[form_index::constant]].push_back(value);
  }
}

bool Chains::precedes(InstructionId first, InstructionId second) const {
  const BlockId upper = original_.instructions[first].block, lower = original_.instructions[second].block;
  if (upper == lower) return position_[first.index()] < position_[second.index()];
  return forms_.dominators().dominates(upper, lower);
}

bool Chains::is_computed_before(ValueId value, InstructionId place) const {
  const InstructionId id = forms_.def_use().definition(value).instruction;
  return id && precedes(id, place);
}

// True if the step has a single source register, which is defined before `place`, and no side effects: a copy of the
// step can then be inserted after that definition.
bool Chains::can_be_repeated(InstructionId step, InstructionId place) const {
  if (!ir::removable_when_unused(original_, step) || original_.form_of(step).effects.reads_memory) return false;
  size_t sources = 0;
  const auto operands = original_.operands_of(step);
  if (operands.empty() || !operands[0].is(OperandKind::value) || !operands[0].is_definition()) return false;
  for (const Operand& operand : operands.subspan(1)) {
    if (operand.is(OperandKind::integer)) continue;
    if (!operand.is(OperandKind::value) || !is_computed_before(operand.as_value(), place)) return false;
    ++sources;
  }
  return sources == 1;
}

std::optional<ValueId> Chains::step_for(ExpressionId difference, InstructionId place) const {
  const auto found = steps_.find(difference);
  if (found == steps_.end()) return std::nullopt;
  for (ValueId value : found->second)
    if (is_computed_before(value, place)) return value;
  for (ValueId value : found->second)
    if (can_be_repeated(forms_.def_use().definition(value).instruction, place)) return value;
  return std::nullopt;
}

// The nearest earlier address of the class from which a step leads to this one.
std::optional<Link> Chains::link_to(std::span<const Address> before, const Address& address) const {
  for (size_t i = before.size(); i-- > 0;) {
    if (!precedes(before[i].definition, address.definition)) continue;
    const ExpressionId difference = forms_.expressions().subtract(address.constant, before[i].constant);
    if (forms_.expressions().literal_value(difference)) continue; // an immediate offset
    if (const auto step = step_for(difference, address.definition)) return Link{&address, &before[i], *step};
  }
  return std::nullopt;
}

std::vector<Link> Chains::links_of(const std::vector<Address>& addresses) const {
  std::vector<Link> links;
  for (size_t i = 1; i < addresses.size(); ++i) {
    const auto link = link_to(std::span(addresses).first(i), addresses[i]);
    if (!link) continue;
    // Already so in the kernel?
    const bool is_sum =
        std::ranges::any_of(original_.operands_of(link->address->definition), [&](const Operand& operand) {
          return operand.is(OperandKind::value) && operand.as_value() == link->before->value;
        });
    if (!is_sum) links.push_back(*link);
  }
  return links;
}

bool Chains::pays(std::vector<Link>& links) {
  if (!counts_) counts_ = legal::reader_counts(original_, analyses_);
  std::erase_if(links, [&](const Link& link) { return counts_->readers(link.address->value) == 0; }); // dead code
  for (bool is_stable = false; !is_stable && !links.empty();) {
    std::vector<ValueId> released;
    for (const Link& link : links)
      for (const Operand& operand : original_.operands_of(link.address->definition))
        if (operand.is(OperandKind::value) && !operand.is_definition()) released.push_back(operand.as_value());
    std::set<InstructionId> freed;
    counts_->release(released, [&](InstructionId id) {
      // Copies and conversions of address spaces take no machine instruction.
      const Opcode opcode = original_.form_of(id).opcode;
      if (opcode != Opcode::mov && opcode != Opcode::cvta && opcode != Opcode::ld) freed.insert(id);
      return 1.0;
    });
    const size_t before = links.size();
    std::erase_if(links, [&](const Link& link) {
      return std::ranges::none_of(original_.operands_of(link.address->definition), [&](const Operand& operand) {
        return operand.is(OperandKind::value) && !operand.is_definition() &&
               freed.contains(forms_.def_use().definition(operand.as_value()).instruction);
      });
    });
    is_stable = links.size() == before;
    // The product that an address adds is freed, and the step's takes its place.
    if (is_stable && freed.size() > links.size()) return true;
    counts_->undo();
  }
  return false;
}

std::optional<std::vector<Need>> Chains::needs_of(const std::vector<Link>& links) {
  std::vector<Need> needs;
  for (const Link& link : links) {
    std::vector<ir::ObligationId> obligations = link.address->obligations;
    for (const auto& more :
         {std::span(link.before->obligations.data(), link.before->obligations.size()), forms_.obligations(link.step)})
      obligations.insert(obligations.end(), more.begin(), more.end());
    const auto conditions = workspace_.extents().discharge(obligations);
    if (!conditions) return std::nullopt;
    for (const std::string& condition : *conditions)
      needs.push_back({"the index of the address does not wrap", condition, link.address->definition});
  }
  return needs;
}

void Chains::write(const std::vector<Link>& links) {
  ir::Builder builder(function_);
  for (const Link& link : links) {
    ValueId step = link.step;
    if (!is_computed_before(step, link.address->definition)) {
      const auto [found, is_new] = repeated_.try_emplace(step);
      if (is_new) {
        const InstructionId definition = forms_.def_use().definition(step).instruction;
        const auto operands = original_.operands_of(definition);
        std::vector<Operand> all(operands.begin(), operands.end());
        const auto source = std::ranges::find_if(
            all, [](const Operand& operand) { return operand.is(OperandKind::value) && !operand.is_definition(); });
        builder.after(forms_.def_use().definition(source->as_value()).instruction).standing_for(definition);
        const ir::ScalarType type = function_.values[step].type;
        found->second = builder.new_value(type, "%rd");
        all[0] = Operand::definition(found->second);
        builder.emit(original_.form_of(definition).mnemonic, all);
      }
      step = found->second;
    }
    const Operand result = function_.operands_of(link.address->definition)[0];
    const std::vector<Operand> sum{result, Operand::value(link.before->value), Operand::value(step)};
    function_.set_operands(link.address->definition, sum);
  }
}

size_t Chains::run() {
  if (forms_.loops().irreducible()) return 0;
  collect();
  std::erase_if(classes_, [](const auto& row) { return row.second.size() < 2; });
  if (classes_.empty()) return 0;
  number_instructions();
  find_steps();
  size_t count = 0;
  for (const auto& [key, addresses] : classes_) {
    std::vector<Link> links = links_of(addresses);
    const auto needs = needs_of(links);
    if (!needs || !workspace_.can_rest_on(*needs) || !pays(links)) continue;
    const std::string text = std::to_string(links.size()) + " address(es) as the one before plus a launch constant";
    if (!workspace_.sites.take(links.front().address->definition, text)) {
      counts_->undo();
      continue;
    }
    for (const Link& link : links) {
      counts_->add_reader(link.before->value);
      counts_->add_reader(link.step);
    }
    workspace_.rest_on(*needs, chained_for);
    write(links);
    count += links.size();
  }
  return count;
}

} // namespace

size_t chain_addresses(Workspace& workspace, AnalysisCache& analyses) {
  return Chains(workspace, analyses).run();
}

} // namespace ptxrewrite::transforms::memory
