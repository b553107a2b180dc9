// Stores lowerings by a 128-bit hash of the function's contents.
#include "ir/machine/select/lowering_store.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <utility>

namespace ptxrewrite::ir {

namespace {

// Limits beyond which the oldest entries are evicted. Comparing candidates lowers a few dozen versions of a kernel.
constexpr size_t most_entries = 64;
constexpr size_t most_instructions = 1'000'000;

// 128 running bits: each word is mixed by a product of 128 bits, whose halves both stay.
class ContentHasher {
public:
  void add(uint64_t word) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide(word ^ first_) * (second_ | 1);
    first_ = static_cast<uint64_t>(product >> 64) ^ second_;
    second_ = static_cast<uint64_t>(product) + word + 0x9E3779B97F4A7C15;
  }
  void add(uint64_t high, uint64_t low) { add(high << 32 | low); }
  // Two words of 64 bits, by one product.
  void add_pair(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide(a ^ first_) * (b ^ second_);
    first_ = static_cast<uint64_t>(product >> 64) + b + 0x9E3779B97F4A7C15;
    second_ = static_cast<uint64_t>(product) ^ std::rotl(a, 32) ^ first_;
  }
  ContentHash result() const { return {first_, second_}; }

private:
  uint64_t first_ = 0x243F6A8885A308D3, second_ = 0x13198A2E03707344;
};

void add_operands(ContentHasher& hash, std::span<const Operand> operands) {
  static_assert(std::has_unique_object_representations_v<Operand>); // no padding
  for (const Operand& operand : operands) {
    const auto words = std::bit_cast<std::array<uint64_t, 2>>(operand);
    hash.add_pair(words[0], words[1]);
  }
}

void add_head(ContentHasher& hash, const Function& function) {
  hash.add(uint64_t(function.is_entry) << 1 | uint64_t(function.is_ssa));
  hash.add(function.signature.parameters.offset, function.signature.parameters.count);
  hash.add(function.signature.results.offset, function.signature.results.count);
  for (const FunctionDirective& directive : function.directives) {
    hash.add(directive.name.index(), directive.count);
    for (uint32_t number : directive.numbers)
      hash.add(number);
  }
  for (const Value& value : function.values)
    hash.add(uint64_t(value.type) << 24 | uint64_t(value.vector_width) << 16 | uint64_t(value.register_class) << 8 |
             uint64_t(value.is_undefined));
  for (const Variable& variable : function.variables) {
    hash.add(uint64_t(variable.space) << 40 | uint64_t(variable.type) << 32 | uint64_t(variable.vector_width) << 24 |
             uint64_t(variable.linkage) << 16 | uint64_t(variable.is_array) << 8 | uint64_t(variable.unsized));
    hash.add(variable.alignment, variable.bank);
    for (uint64_t dimension : function.dimensions.view(variable.dimensions))
      hash.add(dimension);
  }
  for (const LabelTable& table : function.label_tables) {
    hash.add(table.operands.count);
    add_operands(hash, function.operands.view(table.operands));
  }
  hash.add(function.instructions.size(), function.blocks.size());
  hash.add(function.edges.size(), function.layout.size());
}

bool stands_alone(const Function& function) {
  if (function.affine_stream) return false;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (function.is_opcode(id, Opcode::call)) return false;
  return true;
}

} // namespace

ContentHash content_hash(const Function& function) {
  ContentHasher hash;
  add_head(hash, function);
  for (BlockId block : function.layout) {
    hash.add(block.index(), uint64_t(function.blocks[block].falls_through));
    for (ValueId parameter : function.parameters(block))
      hash.add(parameter.index());
    for (InstructionId id : function.instructions_in(block)) {
      const Instruction& instruction = function.instructions[id];
      // Enough bits of the number of operands: whole lists of 65,536 would have to be the same as other instructions.
      hash.add_pair(uint64_t(id.index()) << 32 | uint64_t(instruction.operands.count & 0xffff) << 16 |
                        uint64_t(instruction.kind) << 8 | uint64_t(instruction.guard_negated),
                    uint64_t(instruction.form.index()) << 32 | instruction.guard.index());
      add_operands(hash, function.operands_of(id));
    }
    for (EdgeId edge : function.successors(block)) {
      hash.add(edge.index(), function.edges[edge].to.index());
      for (ValueId argument : function.arguments(edge))
        hash.add(argument.index());
    }
  }
  return hash.result();
}

const ContentHash& LoweringStore::content_of(const Function& function) {
  if (std::exchange(last_version_, function.version()) != function.version()) last_content_ = content_hash(function);
  return last_content_;
}

std::shared_ptr<const Lowering> LoweringStore::of(const Function& function, uint32_t compute_capability) {
  ++asked_;
  const bool keeps = stands_alone(function);
  const ContentHash hash = keeps ? content_of(function) : ContentHash{};
  if (keeps)
    for (const Entry& entry : entries_)
      if (entry.hash == hash && entry.compute_capability == compute_capability) return entry.lowering;
  ++computed_;
  auto lowering = std::make_shared<const Lowering>(lower(function, compute_capability));
  if (!keeps) return lowering;
  entries_.push_back({hash, compute_capability, function.instructions.size(), lowering});
  instructions_ += function.instructions.size();
  while (entries_.size() > 1 && (entries_.size() > most_entries || instructions_ > most_instructions)) {
    instructions_ -= entries_.front().instructions;
    entries_.erase(entries_.begin());
  }
  return lowering;
}

void LoweringStore::clear() {
  entries_.clear();
  instructions_ = 0;
}

} // namespace ptxrewrite::ir
