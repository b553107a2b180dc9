#include "evaluate/prove/joined_accesses.h"

#include "ir/core/builder.h"
#include "ir/flow/def_use.h"

#include <algorithm>
#include <charconv>
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

// --- words for bytes ---

// The part of a word, or of several, that an access of the original has.
struct Piece {
  InstructionId source; // in the original
  Access access;
  unsigned bytes() const { return static_cast<unsigned>(access.elements.size()) * access.element_bytes; }
};

// Accesses of the original by one base register that together have as many bytes, from the offset on, as a joined one.
std::vector<Piece> pieces_from(const ir::Function& original, ir::BlockId block, const Access& joined, ir::ValueId base,
                               int64_t first) {
  std::vector<Piece> pieces;
  const int64_t end = first + int64_t(joined.elements.size()) * joined.element_bytes;
  for (int64_t place = first; place < end; place += pieces.back().bytes()) {
    std::optional<Piece> found;
    for (InstructionId id : original.instructions_in(block)) {
      if (original.instructions[id].kind != ir::InstructionKind::real) continue;
      const auto access = access_of(original, id);
      const bool is_piece = access && access->is_load == joined.is_load && access->base == base &&
                            access->offset == place && access->element_bytes > 0 &&
                            joined.element_bytes % access->element_bytes == 0;
      if (is_piece && !found) found = Piece{id, *access};
    }
    if (!found || place + found->bytes() > end) return {};
    pieces.push_back(*std::move(found));
  }
  return pieces;
}

// By the joined access's own base register, or else by that of the access from which it comes: which part of the word
// that one has is a guess, because the addresses are compared afterwards.
std::vector<Piece> pieces_of(const ir::Function& original, const ir::Function& rewritten, InstructionId id,
                             const Access& joined) {
  const ir::BlockId block = rewritten.instructions[id].block;
  if (block.index() >= original.blocks.size()) return {};
  if (auto pieces = pieces_from(original, block, joined, joined.base, joined.offset); !pieces.empty()) return pieces;
  const ir::ProvenanceId provenance = rewritten.instructions[id].provenance;
  for (InstructionId source : original.instructions_in(block)) {
    if (!provenance || original.instructions[source].provenance != provenance) continue;
    const auto access = access_of(original, source);
    const int64_t bytes = int64_t(joined.elements.size()) * joined.element_bytes;
    for (int64_t before = 0; access && before < bytes; ++before)
      if (auto pieces = pieces_from(original, block, joined, access->base, access->offset - before); !pieces.empty())
        return pieces;
  }
  return {};
}

// A register or a number of 8 to 64 bits, as an integer of a wider type.
Operand widened(ir::Builder& builder, Operand value, unsigned from, unsigned to) {
  if (from == to) return value;
  const std::string bits = std::to_string(to);
  return Operand::value(builder.emit_value("cvt.u" + bits + ".u" + std::to_string(from),
                                           to == 64 ? ir::ScalarType::b64 : ir::ScalarType::b32, {value}));
}

bool is_register_of_bits(ir::ScalarType type) {
  return ir::is_integer(type) || ir::is_bit_type(type);
}

class Words {
public:
  Words(const ir::Function& original, ir::Function& rewritten, InstructionId id, const Access& joined,
        const std::vector<Piece>& pieces)
      : original_(original), rewritten_(rewritten), builder_(rewritten), id_(id), joined_(joined), pieces_(pieces),
        width_(8 * joined.element_bytes) {
    builder_.before(id);
  }

  // Only registers of 16, 32 or 64 bits that hold integers, and words of 32 or 64.
  bool are_possible() const {
    const auto fits = [](const ir::Function& function, ir::ValueId value) {
      const unsigned width = ir::bit_width(function.values[value].type);
      return is_register_of_bits(function.values[value].type) && (width == 16 || width == 32 || width == 64);
    };
    const bool words_fit =
        (width_ == 32 || width_ == 64) && std::ranges::all_of(joined_.elements, [&](ir::ValueId word) {
          return fits(rewritten_, word) && ir::bit_width(rewritten_.values[word].type) == width_;
        });
    int64_t place = joined_.offset;
    for (const Piece& piece : pieces_)
      for (size_t i = 0; i < piece.access.elements.size(); ++i, place += piece.access.element_bytes)
        if ((place - joined_.offset) % joined_.element_bytes + piece.access.element_bytes > joined_.element_bytes)
          return false; // in two words
    return words_fit && std::ranges::all_of(pieces_, [&](const Piece& piece) {
             return std::ranges::all_of(piece.access.elements,
                                        [&](ir::ValueId value) { return fits(original_, value); });
           });
  }

  // Returns the first part; an invalid one if that is not possible.
  InstructionId run() {
    unsigned place = 0; // byte
    for (const Piece& piece : pieces_) {
      if (!add_piece(piece, place)) return {};
      place += piece.bytes();
    }
    if (joined_.is_load)
      for (size_t i = 0; i < joined_.elements.size(); ++i)
        builder_.emit("mov.b" + std::to_string(width_), {Operand::definition(joined_.elements[i]), words_[i]});
    rewritten_.remove(id_);
    return first_;
  }

private:
  std::string mnemonic_of(const Piece& piece) const {
    const ir::Form& form = original_.form_of(piece.source);
    std::string mnemonic(form.mnemonic);
    if (rewritten_.form_of(id_).has(ir::Modifier::nc) && !form.has(ir::Modifier::nc))
      mnemonic.insert(std::string("ld.global").size(), ".nc");
    return mnemonic;
  }

  bool add_piece(const Piece& piece, unsigned place) {
    const auto known = ir::resolve_form(mnemonic_of(piece));
    if (!known) return false;
    const auto old = original_.operands_of(piece.source);
    std::vector<Operand> operands(old.begin(), old.end());
    operands[piece.access.address].immediate = joined_.offset + place;
    operands[piece.access.address + 1] = Operand::value(joined_.base);
    std::vector<ir::ValueId> made;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (i == piece.access.address || i == piece.access.address + 1 || operands[i].is(OperandKind::vector)) continue;
      const ir::ScalarType type = original_.values[operands[i].as_value()].type;
      if (joined_.is_load) {
        made.push_back(builder_.new_value(type));
        operands[i] = Operand::definition(made.back());
      } else {
        operands[i] = part(place + static_cast<unsigned>(made.size()) * piece.access.element_bytes, type);
        made.push_back(operands[i].as_value());
      }
    }
    ir::Instruction row = rewritten_.instructions[id_];
    row.form = *known;
    row.provenance = original_.instructions[piece.source].provenance;
    row.previous = row.next = {};
    row.block = {};
    const InstructionId made_part = rewritten_.add_instruction(row, operands);
    if (!first_) first_ = made_part;
    rewritten_.insert_before(id_, made_part);
    for (size_t i = 0; joined_.is_load && i < made.size(); ++i)
      put(Operand::value(made[i]), ir::bit_width(rewritten_.values[made[i]].type),
          place + static_cast<unsigned>(i) * piece.access.element_bytes, piece.access.element_bytes);
    return true;
  }

  // Adds the loaded low bytes of a register to its word.
  void put(Operand value, unsigned from, unsigned place, unsigned bytes) {
    const std::string type = ".b" + std::to_string(width_);
    const ir::ScalarType own = width_ == 64 ? ir::ScalarType::b64 : ir::ScalarType::b32;
    value = widened(builder_, value, from, width_);
    if (8 * bytes < width_) {
      const auto mask = static_cast<int64_t>((uint64_t(1) << (8 * bytes)) - 1);
      value = Operand::value(builder_.emit_value("and" + type, own, {value, Operand::integer(mask)}));
    }
    const unsigned shift = 8 * (place % joined_.element_bytes);
    if (shift > 0) value = Operand::value(builder_.emit_value("shl" + type, own, {value, Operand::integer(shift)}));
    if (shift == 0)
      words_.push_back(value);
    else
      words_.back() = Operand::value(builder_.emit_value("or" + type, own, {words_.back(), value}));
  }

  // The bytes of a word from a place on, in a register of the type.
  Operand part(unsigned place, ir::ScalarType type) {
    const ir::ScalarType own = width_ == 64 ? ir::ScalarType::b64 : ir::ScalarType::b32;
    Operand value = Operand::value(joined_.elements[place / joined_.element_bytes]);
    if (const unsigned shift = 8 * (place % joined_.element_bytes); shift > 0)
      value =
          Operand::value(builder_.emit_value("shr.u" + std::to_string(width_), own, {value, Operand::integer(shift)}));
    const unsigned to = ir::bit_width(type);
    if (to == width_) return value;
    return Operand::value(
        builder_.emit_value("cvt.u" + std::to_string(to) + ".u" + std::to_string(width_), type, {value}));
  }

  const ir::Function& original_;
  ir::Function& rewritten_;
  ir::Builder builder_;
  InstructionId id_;
  Access joined_;
  const std::vector<Piece>& pieces_;
  unsigned width_; // of a word
  std::vector<Operand> words_;
  InstructionId first_; // part
};

unsigned bytes_of(const Access& access) {
  return static_cast<unsigned>(access.elements.size()) * access.element_bytes;
}

// The first part is invalid if the access is kept.
JoinedAccess take_words_apart(const ir::Function& original, ir::Function& rewritten, InstructionId id) {
  const auto joined = access_of(rewritten, id);
  if (!joined || joined->element_bytes < 4) return {};
  const std::vector<Piece> pieces = pieces_of(original, rewritten, id, *joined);
  const bool has_same_elements = std::ranges::all_of(
      pieces, [&](const Piece& piece) { return piece.access.element_bytes == joined->element_bytes; });
  if (pieces.empty() || has_same_elements) return {};
  Words words(original, rewritten, id, *joined, pieces);
  if (!words.are_possible()) return {};
  const bool is_one_access = pieces.size() == 1; // of the same size, so the original required this alignment, too
  return {words.run(), is_one_access ? 1 : bytes_of(*joined)};
}

// --- vectors ---

// The first part is invalid if the access is kept.
JoinedAccess take_apart(const ir::Function& original, const ir::DefUse& definitions, ir::Function& rewritten,
                        InstructionId id) {
  const auto joined = access_of(rewritten, id);
  if (!joined || rewritten.form_of(id).vector_width < 2) return {};
  std::vector<std::pair<InstructionId, Access>> parts;
  for (size_t first = 0; first < joined->elements.size(); first += parts.back().second.elements.size()) {
    Access part;
    auto found = original_part(original, definitions, rewritten.instructions[id].block, *joined, first, part);
    if (!found) return {};
    parts.emplace_back(*found, part);
  }
  if (parts.size() < 2) return {};
  InstructionId first;
  const bool read_only = rewritten.form_of(id).has(ir::Modifier::nc);
  int64_t offset = joined->offset;
  for (const auto& [source, part] : parts) {
    const ir::Form& form = original.form_of(source);
    std::string mnemonic(form.mnemonic);
    if (read_only && !form.has(ir::Modifier::nc)) mnemonic.insert(std::string("ld.global").size(), ".nc");
    auto known = ir::resolve_form(mnemonic);
    if (!known) return {};
    // The original's data operands, with this vector's address.
    std::vector<Operand> operands(original.operands_of(source).begin(), original.operands_of(source).end());
    operands[part.address].immediate = offset;
    operands[part.address + 1] = Operand::value(joined->base);
    ir::Instruction row = rewritten.instructions[id];
    row.form = *known;
    row.provenance = original.instructions[source].provenance;
    row.previous = row.next = {};
    row.block = {};
    const InstructionId made = rewritten.add_instruction(row, operands);
    if (!first) first = made;
    rewritten.insert_before(id, made);
    offset += int64_t(part.elements.size()) * int64_t(part.element_bytes);
  }
  rewritten.remove(id);
  return {first, bytes_of(*joined)};
}

} // namespace

std::vector<JoinedAccess> take_joined_accesses_apart(const ir::Function& original, ir::Function& rewritten) {
  const ir::DefUse definitions(original);
  std::vector<JoinedAccess> joined;
  for (ir::BlockId block : rewritten.layout)
    for (InstructionId id : rewritten.instructions_in(block)) {
      if (rewritten.instructions[id].kind != ir::InstructionKind::real) continue;
      const ir::ProvenanceId provenance = rewritten.instructions[id].provenance;
      // Vector accesses that the original also has are kept.
      const bool same = id.index() < original.instructions.size() &&
                        original.instructions[id].provenance == provenance &&
                        original.instructions[id].kind == ir::InstructionKind::real &&
                        original.form_of(id).vector_width == rewritten.form_of(id).vector_width &&
                        original.form_of(id).type() == rewritten.form_of(id).type();
      if (same) continue;
      JoinedAccess access = take_words_apart(original, rewritten, id);
      if (!access.first_part) access = take_apart(original, definitions, rewritten, id);
      if (access.first_part && access.bytes > 1) joined.push_back(access);
    }
  rewritten.changed();
  return joined;
}

bool is_read_only_form_of(const ir::Form& original, const ir::Form& rewritten) {
  std::string mnemonic(rewritten.mnemonic);
  const size_t place = mnemonic.find(".nc.");
  if (original.opcode != Opcode::ld || place == mnemonic.npos) return false;
  return mnemonic.erase(place, 3) == original.mnemonic;
}

namespace {

// The parameters that are summands of an address.
std::set<unsigned> pointers_in(const Terms& terms, TermId address) {
  std::set<unsigned> pointers;
  for (const auto& [monomial, coefficient] : terms[address].coefficients) {
    if (monomial.size() != 1 || coefficient != 1) continue;
    const std::string& name = terms.atom(monomial[0]).name; // P0, P0@8
    if (terms.atom(monomial[0]).kind != AtomKind::leaf || !name.starts_with('P')) continue;
    unsigned number = 0;
    if (std::from_chars(name.data() + 1, name.data() + name.size(), number).ptr != name.data() + 1)
      pointers.insert(number);
  }
  return pointers;
}

} // namespace

std::set<unsigned> read_only_pointers(const Terms& terms, const ir::Function& function, const SymbolicKernel& kernel,
                                      const std::vector<transforms::Obligation>& ledger) {
  constexpr std::string_view start = "the bytes read through P";
  std::set<unsigned> pointers;
  for (const transforms::Obligation& entry : ledger) {
    if (entry.raised_by != "memory: a load of what is not written" || !entry.statement.starts_with(start)) continue;
    unsigned number = 0;
    const char* const end = entry.statement.data() + entry.statement.size();
    if (std::from_chars(entry.statement.data() + start.size(), end, number).ec == std::errc()) pointers.insert(number);
  }
  for (const Observation& seen : kernel.observations()) {
    const ir::Form& form = function.form_of(seen.instruction);
    if (form.opaque || !form.effects.writes_memory) continue;
    for (const TermId term : seen.terms)
      for (const unsigned pointer : pointers_in(terms, term))
        pointers.erase(pointer);
  }
  return pointers;
}

bool is_by_pointer(const Terms& terms, TermId address, const std::set<unsigned>& pointers) {
  if (pointers.empty()) return false;
  const std::set<unsigned> visible = pointers_in(terms, address);
  return visible.empty() || std::ranges::any_of(visible, [&](unsigned one) { return pointers.contains(one); });
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
