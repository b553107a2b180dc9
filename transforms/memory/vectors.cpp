// Adjacent loads or stores of one block -> one vector access of the same bytes.
//
// Loads move up to the first of them, stores down to the last. Accesses in between must not touch their bytes in the
// same thread; other threads' accesses are not ordered with any of them, because accesses that order memory, barriers
// and fences end a group.
#include "transforms/memory/packing.h"
#include "transforms/memory/workspace.h"

#include "ir/core/builder.h"
#include "ir/core/module.h"

#include <algorithm>

namespace ptxrewrite::transforms::memory {

namespace {

using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

constexpr std::string_view joined_for = "memory: adjacent accesses";
constexpr size_t group_limit = 64; // members, and also stores in between
constexpr size_t open_limit = 32;  // groups at a time

struct Member {
  InstructionId instruction;
  size_t address = 0; // operand index
  ValueId base;
  int64_t offset = 0;
  unsigned bytes = 0;
  std::vector<Operand> elements; // registers or literals, in address order
};

struct Group {
  bool loads = false;
  ir::FormId form;
  std::vector<Member> members;       // in text order
  std::vector<InstructionId> stores; // stores that joined loads would move across
};

// An access to be emitted: members in address order.
struct Vector {
  bool loads = false;
  bool in_words = false; // bytes or halves, packed four or two to a register
  std::vector<Member> members;
  ir::FormId form;
  std::vector<Need> needs;
};

class Joiner {
public:
  explicit Joiner(Workspace& workspace) : workspace_(workspace), function_(workspace.function) {}

  size_t run() {
    for (ir::BlockId block : function_.layout) {
      for (InstructionId id : function_.instructions_in(block))
        if (function_.instructions[id].kind == ir::InstructionKind::real) look_at(id);
      close_all();
    }
    for (const Vector& vector : vectors_) {
      const ir::Form& form = function_.form_of(vector.members.front().instruction);
      if (vector.loads && ir::bit_width(form.type()) == 8) ++workspace_.attempt.statistics[joined_bytes];
      write(vector);
    }
    return vectors_.size();
  }

private:
  void look_at(InstructionId id);
  std::optional<Member> member_of(InstructionId id) const;
  void join(Member member, bool is_load);
  bool may_overlap(InstructionId a, InstructionId b);
  bool apart_by_forms(InstructionId a, InstructionId b);
  void close(Group& group);
  void close_all() {
    for (Group& group : open_)
      close(group);
    open_.clear();
  }
  bool choose(const Group& group, std::span<const Member> members);
  std::optional<ir::FormId> vector_form(ir::FormId form, size_t elements) const;
  std::optional<ir::FormId> word_form(const Group& group, std::span<const Member> members, size_t elements) const;
  void write(const Vector& vector);

  Workspace& workspace_;
  ir::Function& function_;
  std::vector<Group> open_;
  std::vector<Vector> vectors_;
};

std::optional<Member> Joiner::member_of(InstructionId id) const {
  const ir::Form& form = function_.form_of(id);
  if ((form.opcode != ir::Opcode::ld && form.opcode != ir::Opcode::st) || form.space != ir::StateSpace::global ||
      function_.instructions[id].guard || form.effects.atomic || form.effects.volatile_result)
    return std::nullopt;
  const unsigned bits = ir::bit_width(form.type());
  if (bits < 8 || bits > 64 || form.vector_width > 4) return std::nullopt;
  Member member;
  member.instruction = id;
  member.bytes = bits / 8 * form.vector_width;
  const auto operands = function_.operands_of(id);
  const bool is_load = form.opcode == ir::Opcode::ld;
  const size_t data = is_load ? 0 : 2;
  member.address = is_load ? ir::next_sibling(operands, 0) : 0;
  const size_t end = is_load ? member.address + 2 : ir::next_sibling(operands, std::min(data, operands.size() - 1));
  if (operands.size() != end || !operands[member.address].is(OperandKind::address) ||
      operands[member.address].group_size() != 1 || !operands[member.address + 1].is(OperandKind::value))
    return std::nullopt;
  member.base = operands[member.address + 1].as_value();
  member.offset = operands[member.address].immediate;
  const size_t first = form.vector_width > 1 ? data + 1 : data;
  if (form.vector_width > 1 && !operands[data].is(OperandKind::vector)) return std::nullopt;
  for (size_t i = first; i < first + form.vector_width; ++i) {
    // Registers of vector type and sinks are not supported; a literal would need a register.
    if (!operands[i].is(OperandKind::value) || function_.values[operands[i].as_value()].vector_width != 1 ||
        operands[i].selector != ir::no_selector || function_.values[operands[i].as_value()].is_undefined)
      return std::nullopt;
    member.elements.push_back(operands[i]);
  }
  return member;
}

// Do the forms of two accesses differ by a constant that keeps them disjoint in every thread?
bool Joiner::apart_by_forms(InstructionId a, InstructionId b) {
  auto member_a = member_of(a), member_b = member_of(b);
  if (!member_a || !member_b) return false;
  if (member_a->base != member_b->base) return false;
  return member_a->offset + member_a->bytes <= member_b->offset ||
         member_b->offset + member_b->bytes <= member_a->offset;
}

bool Joiner::may_overlap(InstructionId a, InstructionId b) {
  return !workspace_.read_only.contains(a) && !workspace_.read_only.contains(b) && !apart_by_forms(a, b);
}

void Joiner::look_at(InstructionId id) {
  if (orders_memory(function_, id)) return close_all();
  const ir::Form& form = function_.form_of(id);
  const bool elsewhere = ir::is_shared(form.space) || form.space == ir::StateSpace::local ||
                         form.space == ir::StateSpace::constant || ir::is_param(form.space);
  if (elsewhere || (!form.effects.reads_memory && !form.effects.writes_memory)) return;
  auto member = member_of(id);
  const bool is_load = form.opcode == ir::Opcode::ld;
  // Ends groups of stores that would have to move across this one.
  for (Group& group : open_) {
    if (group.loads) continue;
    const bool over =
        std::ranges::any_of(group.members, [&](const Member& store) { return may_overlap(store.instruction, id); });
    if (over) close(group);
  }
  std::erase_if(open_, [](const Group& group) { return group.members.empty(); });
  if (!is_load)
    for (Group& group : open_)
      if (group.loads) group.stores.push_back(id);
  for (Group& group : open_)
    if (group.stores.size() > group_limit) close(group);
  std::erase_if(open_, [](const Group& group) { return group.members.empty(); });
  if (open_.size() >= open_limit) {
    close(open_.front());
    open_.erase(open_.begin());
  }
  if (member) join(std::move(*member), is_load);
}

void Joiner::join(Member member, bool is_load) {
  const ir::FormId form = function_.instructions[member.instruction].form;
  for (Group& group : open_) {
    const Member& first = group.members.front();
    if (group.loads != is_load || group.form != form || first.base != member.base) continue;
    const bool over =
        std::ranges::any_of(group.stores, [&](InstructionId store) { return may_overlap(member.instruction, store); });
    const bool again = std::ranges::any_of(group.members, [&](const Member& other) {
      return member.offset < other.offset + other.bytes && other.offset < member.offset + member.bytes;
    });
    if (!over && !again && group.members.size() < group_limit) {
      group.members.push_back(std::move(member));
      return;
    }
    close(group);
    break;
  }
  std::erase_if(open_, [](const Group& group) { return group.members.empty(); });
  Group group;
  group.loads = is_load;
  group.form = form;
  group.members.push_back(std::move(member));
  open_.push_back(std::move(group));
}

std::optional<ir::FormId> Joiner::vector_form(ir::FormId form, size_t elements) const {
  const ir::Form& row = ir::form(form);
  std::string mnemonic(row.mnemonic);
  if (row.vector_width > 1) {
    const std::string word = ".v" + std::to_string(row.vector_width);
    const size_t place = mnemonic.find(word + ".");
    if (place == mnemonic.npos) return std::nullopt;
    mnemonic.erase(place, word.size());
  }
  mnemonic.insert(mnemonic.rfind('.'), ".v" + std::to_string(elements));
  return workspace_.form_of(mnemonic);
}

// Stored bytes, 8 or 16 loaded bytes, and eight halves are accessed as words: `st.v4.u8` would be assembled from
// registers one by one, and no vector has eight bytes.
std::optional<ir::FormId> Joiner::word_form(const Group& group, std::span<const Member> members,
                                            size_t elements) const {
  const ir::Form& row = ir::form(group.form);
  const unsigned bits = ir::bit_width(row.type());
  const bool bytes = bits == 8 && elements % 4 == 0 && (!group.loads || elements > 4),
             halves = bits == 16 && elements == 8;
  if (!bytes && !halves) return std::nullopt;
  for (const Member& member : members)
    for (const Operand& element : member.elements) {
      const unsigned width = ir::bit_width(function_.values[element.as_value()].type);
      if (bytes ? width != 16 && width != 32 : width != 16) return std::nullopt;
    }
  std::string mnemonic(row.mnemonic);
  if (row.vector_width > 1) {
    const std::string word = ".v" + std::to_string(row.vector_width);
    const size_t place = mnemonic.find(word + ".");
    if (place == mnemonic.npos) return std::nullopt;
    mnemonic.erase(place, word.size());
  }
  mnemonic.erase(mnemonic.rfind('.'));
  const size_t words = elements * bits / 32;
  if (words > 1) mnemonic += ".v" + std::to_string(words);
  return workspace_.form_of(mnemonic + ".b32");
}

// Takes as many of the members, which are contiguous, as form one vector. Returns false if no vector starts at the
// first one.
bool Joiner::choose(const Group& group, std::span<const Member> members) {
  const unsigned element = ir::bit_width(ir::form(group.form).type()) / 8;
  unsigned bytes = 0;
  size_t elements = 0;
  for (const Member& member : members) {
    bytes += member.bytes;
    elements += member.elements.size();
  }
  if ((elements & (elements - 1)) != 0 || elements < 2 || elements > 16 || bytes != elements * element) return false;
  const auto words = word_form(group, members, elements);
  const auto form = words ? words : vector_form(group.form, elements);
  if (!form) return false;
  const auto residue = workspace_.extents().residue_of(members.front().instruction, members.front().address, bytes);
  if (!residue || residue->value != 0) return false;
  Vector vector;
  vector.loads = group.loads;
  vector.form = *form;
  vector.in_words = words.has_value();
  vector.members.assign(members.begin(), members.end());
  for (const std::string& condition : residue->conditions)
    vector.needs.push_back(
        {"the address is a multiple of " + std::to_string(bytes), condition, members.front().instruction});
  if (!workspace_.can_rest_on(vector.needs) || !(vector.needs.empty() || workspace_.attempt.policy().alignment))
    return false;
  // The original mnemonic, independent of whether the loads became read-only.
  std::string old(ir::form(group.form).mnemonic);
  if (const size_t place = old.find(".nc."); place != old.npos) old.erase(place, 3);
  const std::string text = std::to_string(members.size()) + " adjacent " + old + " -> " +
                           (words ? std::to_string(bytes / 4) + " word(s)" : ".v" + std::to_string(elements));
  if (!workspace_.sites.take(members.front().instruction, text)) return true;
  workspace_.rest_on(vector.needs, joined_for);
  if (!vector.needs.empty()) workspace_.attempt.set_needs_alignment();
  vectors_.push_back(std::move(vector));
  return true;
}

void Joiner::close(Group& group) {
  std::vector<Member> members = std::move(group.members);
  group.members.clear();
  if (members.size() < 2) return;
  std::ranges::sort(members, {}, &Member::offset);
  for (size_t start = 0; start < members.size();) {
    size_t run = 1;
    while (start + run < members.size() && run < 16 &&
           members[start + run].offset == members[start + run - 1].offset + members[start + run - 1].bytes)
      ++run;
    size_t taken = 0;
    for (size_t count = run; count >= 2 && taken == 0; --count)
      if (choose(group, std::span(members).subspan(start, count))) taken = count;
    start += std::max<size_t>(taken, 1);
  }
}

void Joiner::write(const Vector& vector) {
  // Loads are placed at the first access, stores at the last.
  std::vector<InstructionId> order;
  for (const Member& member : vector.members)
    order.push_back(member.instruction);
  const auto in_block = [&](InstructionId id) { return std::ranges::find(order, id) != order.end(); };
  InstructionId place;
  for (InstructionId id : function_.instructions_in(function_.instructions[order.front()].block))
    if (in_block(id) && (!vector.loads || !place)) place = id;
  ir::Builder builder(function_);
  builder.before(place).standing_for(place);
  std::vector<Operand> elements, operands;
  for (const Member& member : vector.members)
    elements.insert(elements.end(), member.elements.begin(), member.elements.end());
  const ir::ScalarType type = function_.form_of(order.front()).type();
  std::vector<Operand> parts; // for loads as words: the elements to unpack after the load
  if (vector.in_words) {
    parts = elements;
    const unsigned bits = ir::bit_width(type);
    elements = vector.loads ? fresh_words(builder, elements.size() * bits / 32)
                            : pack_words(function_, builder, elements, bits);
  }
  auto append_elements = [&] {
    if (elements.size() > 1)
      operands.push_back(Operand::group(OperandKind::vector, static_cast<uint32_t>(elements.size())));
    operands.insert(operands.end(), elements.begin(), elements.end());
  };
  if (vector.loads) append_elements();
  ir::append_address(operands, Operand::value(vector.members.front().base), vector.members.front().offset);
  if (!vector.loads) append_elements();
  for (InstructionId id : order)
    if (id != place) function_.remove(id);
  builder.emit(ir::form(vector.form).mnemonic, operands);
  if (vector.in_words && vector.loads) split_words(function_, builder, elements, parts, type);
  function_.remove(place);
}

} // namespace

size_t join_accesses(Workspace& workspace) {
  return Joiner(workspace).run();
}

} // namespace ptxrewrite::transforms::memory
