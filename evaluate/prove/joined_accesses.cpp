#include "evaluate/prove/joined_accesses.h"

#include "ir/core/builder.h"
#include "ir/flow/def_use.h"

#include <algorithm>
#include <optional>

namespace ptxrewrite::prove {

namespace {

using ir::InstructionId;
using ir::Opcode;
using ir::Operand;
using ir::OperandKind;

// A plain load or store of global memory, with the positions of its operands.
struct Access {
  bool is_load = false;
  size_t address = 0;
  std::vector<ir::ValueId> elements;
  ir::ValueId base;
  int64_t offset = 0;
  unsigned element_bytes = 0;
};

std::optional<Access> access_of(const ir::Function& function, InstructionId id) {
  if (!function.is_opcode(id, Opcode::ld) && !function.is_opcode(id, Opcode::st)) return std::nullopt;
  const ir::Form& form = function.form_of(id);
  if (form.space != ir::StateSpace::global || function.instructions[id].guard || form.effects.atomic ||
      form.effects.volatile_result)
    return std::nullopt;
  Access access;
  access.is_load = form.opcode == Opcode::ld;
  access.element_bytes = ir::bit_width(form.type()) / 8;
  const auto operands = function.operands_of(id);
  access.address = access.is_load ? ir::next_sibling(operands, 0) : 0;
  if (access.address + 1 >= operands.size() || !operands[access.address].is(OperandKind::address) ||
      operands[access.address].group_size() != 1 || !operands[access.address + 1].is(OperandKind::value))
    return std::nullopt;
  access.base = operands[access.address + 1].as_value();
  access.offset = operands[access.address].immediate;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i == access.address || i == access.address + 1 || operands[i].is(OperandKind::vector)) continue;
    if (!operands[i].is(OperandKind::value)) return std::nullopt;
    access.elements.push_back(operands[i].as_value());
  }
  return access.elements.size() == form.vector_width ? std::optional(access) : std::nullopt;
}

// Finds the original access for the data elements from `first` on.
std::optional<InstructionId> original_part(const ir::Function& original, const ir::DefUse& definitions,
                                           ir::BlockId block, const Access& joined, size_t first, Access& part) {
  auto matches = [&](InstructionId id) {
    auto access = access_of(original, id);
    if (!access || access->is_load != joined.is_load || access->element_bytes != joined.element_bytes ||
        first + access->elements.size() > joined.elements.size() ||
        !std::equal(access->elements.begin(), access->elements.end(),
                    joined.elements.begin() + static_cast<std::ptrdiff_t>(first)))
      return false;
    // A scalar load is matched by the register that it defines, a scalar store by its address.
    if (!access->is_load && (access->base != joined.base ||
                             access->offset != joined.offset + int64_t(first) * int64_t(joined.element_bytes)))
      return false;
    part = *access;
    return true;
  };
  if (joined.is_load) {
    const ir::ValueId value = joined.elements[first];
    if (value.index() >= original.values.size()) return std::nullopt;
    const InstructionId id = definitions.definition(value).instruction;
    return id && matches(id) ? std::optional(id) : std::nullopt;
  }
  if (block.index() >= original.blocks.size()) return std::nullopt;
  for (InstructionId id : original.instructions_in(block))
    if (original.instructions[id].kind == ir::InstructionKind::real && matches(id)) return id;
  return std::nullopt;
}

// A weak load or store of memory that global accesses cannot reach.
bool is_elsewhere(const ir::Function& function, InstructionId id) {
  if (!function.is_opcode(id, Opcode::ld) && !function.is_opcode(id, Opcode::st)) return false;
  const ir::Form& form = function.form_of(id);
  return (ir::is_shared(form.space) || form.space == ir::StateSpace::local) && !form.effects.atomic &&
         !form.effects.volatile_result;
}

void take_apart(const ir::Function& original, const ir::DefUse& definitions, ir::Function& rewritten,
                InstructionId id) {
  const auto joined = access_of(rewritten, id);
  if (!joined || rewritten.form_of(id).vector_width < 2) return;
  std::vector<std::pair<InstructionId, Access>> parts;
  for (size_t first = 0; first < joined->elements.size(); first += parts.back().second.elements.size()) {
    Access part;
    auto found = original_part(original, definitions, rewritten.instructions[id].block, *joined, first, part);
    if (!found) return;
    parts.emplace_back(*found, part);
  }
  if (parts.size() < 2) return;
  const bool read_only = rewritten.form_of(id).has(ir::Modifier::nc);
  int64_t offset = joined->offset;
  for (const auto& [source, part] : parts) {
    const ir::Form& form = original.form_of(source);
    std::string mnemonic(form.mnemonic);
    if (read_only && !form.has(ir::Modifier::nc)) mnemonic.insert(std::string("ld.global").size(), ".nc");
    auto known = ir::resolve_form(mnemonic);
    if (!known) return;
    // The original's data operands, with this vector's address.
    std::vector<Operand> operands(original.operands_of(source).begin(), original.operands_of(source).end());
    operands[part.address].immediate = offset;
    operands[part.address + 1] = Operand::value(joined->base);
    ir::Instruction row = rewritten.instructions[id];
    row.form = *known;
    row.provenance = original.instructions[source].provenance;
    row.previous = row.next = {};
    row.block = {};
    rewritten.insert_before(id, rewritten.add_instruction(row, operands));
    offset += int64_t(part.elements.size()) * int64_t(part.element_bytes);
  }
  rewritten.remove(id);
}

} // namespace

void take_joined_accesses_apart(const ir::Function& original, ir::Function& rewritten) {
  const ir::DefUse definitions(original);
  for (ir::BlockId block : rewritten.layout)
    for (InstructionId id : rewritten.instructions_in(block)) {
      if (rewritten.instructions[id].kind != ir::InstructionKind::real) continue;
      const ir::ProvenanceId provenance = rewritten.instructions[id].provenance;
      // Vector accesses that the original also has are kept.
      const bool same = id.index() < original.instructions.size() &&
                        original.instructions[id].provenance == provenance &&
                        original.instructions[id].kind == ir::InstructionKind::real &&
                        original.form_of(id).vector_width == rewritten.form_of(id).vector_width;
      if (!same) take_apart(original, definitions, rewritten, id);
    }
  rewritten.changed();
}

bool is_read_only_form_of(const ir::Form& original, const ir::Form& rewritten) {
  std::string mnemonic(rewritten.mnemonic);
  const size_t place = mnemonic.find(".nc.");
  if (original.opcode != Opcode::ld || place == mnemonic.npos) return false;
  return mnemonic.erase(place, 3) == original.mnemonic;
}

bool keeps_ranges_apart(const std::vector<transforms::Obligation>& ledger) {
  return std::ranges::any_of(ledger, [](const transforms::Obligation& entry) {
    return entry.raised_by == "memory: a load of what is not written";
  });
}

bool may_change_places(Terms& terms, const ir::Function& function, const Observation& earlier, const Observation& later,
                       bool either_is_read_only) {
  const auto a = access_of(function, earlier.instruction), b = access_of(function, later.instruction);
  if ((a && is_elsewhere(function, later.instruction)) || (b && is_elsewhere(function, earlier.instruction)))
    return true;
  if (!a || !b || earlier.terms.empty() || later.terms.empty()) return false;
  if ((a->is_load && b->is_load) || either_is_read_only) return true;
  // The first term is the address, because neither access has a guard.
  const TermId distance = terms.subtract(later.terms.front(), earlier.terms.front());
  const auto literal = terms.literal_value(distance);
  if (!literal) return false;
  const ir::Int128 bytes = as_signed(*literal, terms.width(distance));
  const auto size = [](const Access& access) { return ir::Int128(access.elements.size()) * access.element_bytes; };
  return bytes >= size(*a) || bytes <= -size(*b);
}

} // namespace ptxrewrite::prove
