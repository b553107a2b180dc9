// A value is described by the origin of each of its bytes. The rows of BYTES define what an instruction does to the
// bytes of its operands; sums of values that are zero in each other's bytes assemble them. The values at which a
// description ends are the sources.
#include "transforms/composite/composite_bytes.h"

#include "transforms/composite/composite_match.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

namespace ptxrewrite::transforms::legal::composite {

namespace {

using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;

struct SourceByte {
  Byte::Kind kind = Byte::Kind::zero;
  uint8_t index = 0;
  Operand source;
};
using Description = std::array<SourceByte, 4>;

constexpr size_t most_sources = 4;
constexpr unsigned deepest = 12;
constexpr size_t most_instructions = 64; // of one tree

bool same_register(const Operand& a, const Operand& b) {
  return a.kind == b.kind && a.id == b.id && a.immediate == b.immediate;
}

// How the bytes of an instruction's result derive from the bytes of its operands.
struct ByteMeaning {
  enum class Kind : uint8_t { join, permutation, rows } kind = Kind::rows;
  std::vector<const ByteRule*> rows;
  bool nests = false; // some row's pattern has more than one instruction
};

// Returns nullptr if the instruction does more than move, join or sign-extend bytes.
const ByteMeaning* byte_meaning(MnemonicId mnemonic) {
  static const std::vector<std::optional<ByteMeaning>> table = [] {
    std::vector<std::optional<ByteMeaning>> meanings; // by MnemonicId
    const auto meaning_of = [&](MnemonicId id) -> ByteMeaning& {
      if (meanings.size() <= id) meanings.resize(id + 1);
      return meanings[id] ? *meanings[id] : meanings[id].emplace();
    };
    for (const ByteRule& row : byte_rules()) {
      ByteMeaning& meaning = meaning_of(row.pattern.mnemonic);
      meaning.rows.push_back(&row);
      meaning.nests |= std::ranges::any_of(
          row.pattern.operands, [](const RuleTerm& term) { return term.kind == RuleTerm::Kind::application; });
    }
    for (std::string_view name : {"or.b32", "xor.b32", "add.s32", "or.b16"})
      meaning_of(mnemonic_id(name)).kind = ByteMeaning::Kind::join;
    meaning_of(mnemonic_id("prmt.b32")).kind = ByteMeaning::Kind::permutation;
    return meanings;
  }();
  return mnemonic < table.size() && table[mnemonic] ? &*table[mnemonic] : nullptr;
}

class Describer {
public:
  // `through_shared`: continue through instructions that have other readers, too.
  Describer(const Editor& editor, bool through_shared) : editor_(editor), through_shared_(through_shared) {}

  std::optional<Description> of(InstructionId id, unsigned depth);
  const std::vector<InstructionId>& inside() const { return inside_; }
  unsigned joins() const { return joins_; }
  // Is an instruction a source because it has other readers?
  bool stopped_at_shared() const { return stopped_at_shared_; }

private:
  Description of(const Operand& operand, unsigned depth);
  Description of_source(const Operand& operand) const;
  std::optional<Description> joined(std::span<const Operand> sources, unsigned depth);
  std::optional<Description> permuted(std::span<const Operand> sources, unsigned depth);
  std::optional<Description> by_row(std::span<const ByteRule* const> rows, InstructionId id, unsigned depth);
  std::optional<Description> by_instruction(InstructionId id, unsigned depth);

  const Editor& editor_;
  bool through_shared_;
  bool stopped_at_shared_ = false;
  // By ValueId: a value with several readers is described once. A tree is small, so that a list will do.
  std::vector<uint32_t> known_values_;
  std::vector<Description> known_;
  std::vector<InstructionId> inside_;
  unsigned joins_ = 0; // sums that the machine would merge with one of their operands
};

Description Describer::of_source(const Operand& operand) const {
  Operand source = operand;
  if (source.is(OperandKind::value)) source.flags = ir::OperandFlag::none;
  const uint32_t zeros = editor_.known_zeros(operand);
  Description bytes;
  for (uint8_t i = 0; i < 4; ++i)
    if ((zeros >> (8 * i) & 0xff) != 0xff) bytes[i] = {Byte::Kind::byte, i, source};
  return bytes;
}

Description Describer::of(const Operand& operand, unsigned depth) {
  const InstructionId id = editor_.computation(operand);
  if (!id || depth == 0 || inside_.size() >= most_instructions) return of_source(operand);
  if (!through_shared_ && editor_.readers(operand.as_value()) != 1) {
    stopped_at_shared_ = true;
    return of_source(operand);
  }
  if (const auto known = std::ranges::find(known_values_, operand.id); known != known_values_.end())
    return known_[static_cast<size_t>(known - known_values_.begin())];
  const size_t size = inside_.size();
  const unsigned joins = joins_;
  std::optional<Description> bytes = of(id, depth);
  if (!bytes) {
    inside_.resize(size);
    joins_ = joins;
    bytes = of_source(operand);
  }
  known_values_.push_back(operand.id);
  known_.push_back(*bytes);
  return *bytes;
}

std::optional<Description> Describer::joined(std::span<const Operand> sources, unsigned depth) {
  const Description a = of(sources[0], depth - 1), b = of(sources[1], depth - 1);
  Description bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (a[i].kind != Byte::Kind::zero && b[i].kind != Byte::Kind::zero) return std::nullopt;
    bytes[i] = a[i].kind == Byte::Kind::zero ? b[i] : a[i];
  }
  return bytes;
}

// prmt in its default mode: each digit of the selector names a byte of b:a, or eight copies of its sign bit.
std::optional<Description> Describer::permuted(std::span<const Operand> sources, unsigned depth) {
  const std::optional<uint32_t> selector = editor_.literal(sources[2]);
  if (!selector) return std::nullopt;
  const Description a = of(sources[0], depth - 1), b = of(sources[1], depth - 1);
  Description bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint32_t digit = *selector >> (4 * i) & 0xf;
    bytes[i] = digit & 4 ? b[digit & 3] : a[digit & 3];
    if (digit & 8 && bytes[i].kind == Byte::Kind::byte) bytes[i].kind = Byte::Kind::sign;
  }
  return bytes;
}

Editor::BytesMatch match_rows(const Editor& editor, std::span<const ByteRule* const> rows, InstructionId id) {
  for (const ByteRule* row : rows) {
    const std::optional<Match> found = match(editor, row->pattern, row->conditions, id);
    if (!found) continue;
    Editor::BytesMatch result{row, {}};
    for (const auto& [name, operand] : found->variables)
      result.operands.emplace_back(name[0], operand);
    return result;
  }
  return {};
}

std::optional<Description> Describer::by_row(std::span<const ByteRule* const> rows, InstructionId id, unsigned depth) {
  const Editor::BytesMatch& found = editor_.bytes_match(id, [&] { return match_rows(editor_, rows, id); });
  if (!found.row) return std::nullopt;
  const ByteRule& row = *found.row;
  const std::vector<std::pair<char, Operand>> variables = found.operands; // the reference lasts until the next match
  std::vector<std::pair<char, Description>> operands;
  for (const auto& [name, operand] : variables)
    operands.emplace_back(name, of(operand, depth - 1));
  Description bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (row.bytes[i].kind == Byte::Kind::zero) continue;
    const auto from = std::ranges::find(operands, row.bytes[i].variable, &std::pair<char, Description>::first);
    assert(from != operands.end());
    bytes[i] = from->second[row.bytes[i].index];
    if (row.bytes[i].kind == Byte::Kind::sign && bytes[i].kind == Byte::Kind::byte) bytes[i].kind = Byte::Kind::sign;
  }
  return bytes;
}

std::optional<Description> Describer::by_instruction(InstructionId id, unsigned depth) {
  const ByteMeaning* meaning = byte_meaning(editor_.mnemonic_id(id));
  if (!meaning) return std::nullopt;
  inside_.push_back(id);
  const size_t size = inside_.size();
  switch (meaning->kind) {
  case ByteMeaning::Kind::join: {
    const std::optional<Description> bytes = joined(editor_.sources(id), depth);
    joins_ += inside_.size() > size;
    return bytes;
  }
  case ByteMeaning::Kind::permutation:
    return permuted(editor_.sources(id), depth);
  case ByteMeaning::Kind::rows:
    break;
  }
  return by_row(meaning->rows, id, depth);
}

// Sources have 32 bits: a narrower value ends the description where it is converted to 32 bits.
std::optional<Description> Describer::of(InstructionId id, unsigned depth) {
  std::optional<Description> bytes = by_instruction(id, depth);
  const ir::Function& function = editor_.function();
  const auto is_wide = [&](ir::ValueId value) { return ir::bit_width(function.values[value].type) == 32; };
  if (!bytes || !is_wide(editor_.result(id))) return bytes;
  for (const SourceByte& byte : *bytes)
    if (byte.kind != Byte::Kind::zero && byte.source.is(OperandKind::value) && !is_wide(byte.source.as_value()))
      return std::nullopt;
  return bytes;
}

// The prmt instructions for a description.
class Permutation {
public:
  Permutation(const Editor& editor, const Description& bytes);
  size_t sources() const { return sources_.size(); }
  // The result is an unchanged register.
  bool is_copy() const;
  // An instruction cannot hold a literal besides the selector: the literal is moved into a register first.
  unsigned cost() const {
    if (is_copy()) return 0;
    const auto moved = std::ranges::count_if(
        sources_, [](const Operand& source) { return source.is_constant() && source.immediate != 0; });
    return static_cast<unsigned>(std::max<size_t>(sources_.size(), 2) - 1 + static_cast<size_t>(moved));
  }
  void emit(Editor& editor, InstructionId root) const;

private:
  size_t position(const Operand& source) const {
    auto row = std::ranges::find_if(sources_, [&](const Operand& one) { return same_register(one, source); });
    return static_cast<size_t>(row - sources_.begin());
  }
  Description bytes_; // zeros replaced by bytes of sources
  std::vector<Operand> sources_;
};

Permutation::Permutation(const Editor& editor, const Description& bytes) : bytes_(bytes) {
  for (const SourceByte& byte : bytes_)
    if (byte.kind != Byte::Kind::zero && position(byte.source) == sources_.size()) sources_.push_back(byte.source);
  SourceByte nothing{Byte::Kind::byte, 0, Operand::integer(0)};
  // If a source has a byte that is zero, no source 0 is needed.
  if (sources_.size() > 1)
    for (const Operand& source : sources_)
      for (uint8_t i = 0; i < 4; ++i)
        if ((editor.known_zeros(source) >> (8 * i) & 0xff) == 0xff) nothing = {Byte::Kind::byte, i, source};
  for (SourceByte& byte : bytes_)
    if (byte.kind == Byte::Kind::zero) {
      byte = nothing;
      if (position(byte.source) == sources_.size()) sources_.push_back(byte.source);
    }
}

bool Permutation::is_copy() const {
  for (uint8_t i = 0; i < 4; ++i)
    if (bytes_[i].kind != Byte::Kind::byte || bytes_[i].index != i) return false;
  return sources_.size() == 1 && sources_[0].is(OperandKind::value);
}

void Permutation::emit(Editor& editor, InstructionId root) const {
  editor.begin(root);
  if (is_copy()) {
    editor.finish("mov.b32", sources_);
    return;
  }
  Operand current = sources_[0];
  const size_t last = std::max<size_t>(sources_.size(), 2) - 1;
  for (size_t next = 1; next <= last; ++next) {
    const Operand added = next < sources_.size() ? sources_[next] : Operand::integer(0);
    uint32_t selector = 0;
    for (size_t i = 0; i < bytes_.size(); ++i) {
      const size_t from = position(bytes_[i].source);
      uint32_t digit = static_cast<uint32_t>(i); // already in place, or not available yet
      if (from == next || (from == 0 && next == 1))
        digit = bytes_[i].index | (from == next ? 4u : 0u) | (bytes_[i].kind == Byte::Kind::sign ? 8u : 0u);
      selector |= digit << (4 * i);
    }
    const Operand operands[] = {current, added, literal_operand("prmt.b32", selector)};
    if (next == last)
      editor.finish("prmt.b32", operands);
    else
      current = Operand::value(editor.emit("prmt.b32", ir::ScalarType::b32, operands));
  }
}

} // namespace

std::optional<ExtendedByte> as_extended_byte(const Editor& editor, const Operand& operand) {
  const InstructionId id = editor.computation(operand);
  if (!id) return std::nullopt;
  Describer describer(editor, true);
  const std::optional<Description> bytes = describer.of(id, deepest);
  if (!bytes || (*bytes)[0].kind != Byte::Kind::byte || !(*bytes)[0].source.is(OperandKind::value)) return std::nullopt;
  const SourceByte& low = (*bytes)[0];
  if (ir::bit_width(editor.function().values[low.source.as_value()].type) != 32) return std::nullopt;
  auto is_filled_with = [&](Byte::Kind kind) {
    return std::all_of(bytes->begin() + 1, bytes->end(), [&](const SourceByte& byte) {
      return byte.kind == kind &&
             (kind == Byte::Kind::zero || (same_register(byte.source, low.source) && byte.index == low.index));
    });
  };
  const bool is_signed = is_filled_with(Byte::Kind::sign);
  if (!is_signed && !is_filled_with(Byte::Kind::zero)) return std::nullopt;
  return ExtendedByte{low.source, low.index, is_signed, describer.inside()};
}

std::optional<FourBytes> as_four_bytes(const Editor& editor, InstructionId root) {
  if (!editor.is_computation(root)) return std::nullopt;
  const ir::Value& value = editor.function().values[editor.result(root)];
  if (ir::bit_width(value.type) != 32 || ir::is_float(value.type)) return std::nullopt;
  Describer describer(editor, true);
  const std::optional<Description> bytes = describer.of(root, deepest);
  if (!bytes) return std::nullopt;
  FourBytes four;
  for (size_t i = 0; i < bytes->size(); ++i) {
    const SourceByte& byte = (*bytes)[i];
    if (byte.kind != Byte::Kind::byte || byte.index != 0 || !editor.computation(byte.source)) return std::nullopt;
    four.sources[i] = byte.source;
  }
  four.inside = describer.inside();
  return four;
}

// Can the description of the root's bytes include a second instruction? Replacing only one saves nothing.
static bool has_tree(const Editor& editor, InstructionId root) {
  const ByteMeaning* meaning = byte_meaning(editor.mnemonic_id(root));
  if (!meaning || meaning->nests) return meaning;
  return std::ranges::any_of(editor.sources(root), [&](const Operand& operand) {
    const InstructionId id = editor.computation(operand);
    return id && byte_meaning(editor.mnemonic_id(id));
  });
}

bool permute_bytes(Editor& editor, InstructionId root, bool force) {
  if (!editor.is_computation(root)) return false;
  const ir::Value& value = editor.function().values[editor.result(root)];
  if (ir::bit_width(value.type) != 32 || ir::is_float(value.type)) return false;
  if (!has_tree(editor, root) || (!force && editor.is_only_converted(editor.result(root)))) return false;
  std::optional<Permutation> best;
  int best_gain = 0;
  bool has_shared = false;
  for (bool through_shared : {false, true}) {
    if (through_shared && !has_shared) break; // the description would be the same
    Describer describer(editor, through_shared);
    const std::optional<Description> bytes = describer.of(root, deepest);
    has_shared = describer.stopped_at_shared();
    if (!bytes || describer.inside().size() < 2) continue;
    Permutation permutation(editor, *bytes);
    if (permutation.sources() > most_sources) continue;
    const unsigned dying = editor.dying(root, describer.inside());
    const int gain =
        static_cast<int>(dying - std::min(describer.joins(), dying)) - static_cast<int>(permutation.cost());
    const bool is_shorter = permutation.cost() < describer.inside().size();
    if (best ? gain <= best_gain : gain <= 0 && !(force && is_shorter)) continue;
    best = std::move(permutation);
    best_gain = gain;
  }
  if (!best) return false;
  best->emit(editor, root);
  return true;
}

} // namespace ptxrewrite::transforms::legal::composite
