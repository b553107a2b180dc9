// Names are compared as pairs of stem and number ("%r", 12), so that `.reg .b32 %r<13>` is known to declare %r12
// whether it was declared as one name or as a member of a range.
#include "ir/ssa/ssa_names.h"

#include "ir/core/module.h"
#include "ir/ssa/ssa_steps.h"
#include "support/hash_index.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

namespace ptxrewrite::ir {

namespace {

constexpr uint32_t no_number = Value::no_number;

struct Name {
  Symbol stem;
  uint32_t number = no_number;
  uint64_t key() const { return uint64_t{stem.index()} << 32 | number; }
};

// A set of names by their keys: open addressing, at most half full.
class NameSet {
public:
  void reserve(size_t names) {
    if (2 * names > slots_.size()) grow(std::bit_ceil(2 * names));
  }
  // Returns false if the name is in the set already.
  bool insert(Name name) {
    reserve(count_ + 1);
    uint64_t& slot = slots_[place_of(name.key())];
    if (slot != none) return false;
    slot = name.key();
    ++count_;
    return true;
  }
  bool contains(Name name) const { return count_ > 0 && slots_[place_of(name.key())] != none; }

private:
  static constexpr uint64_t none = UINT64_MAX; // no stem has the last index

  // Of the key, or where it would be.
  size_t place_of(uint64_t key) const {
    size_t at = (key * 0x9E3779B97F4A7C15) >> 32 & (slots_.size() - 1);
    while (slots_[at] != none && slots_[at] != key)
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow(size_t size) {
    std::vector<uint64_t> old(std::max<size_t>(size, 64), none);
    old.swap(slots_);
    for (uint64_t key : old)
      if (key != none) slots_[place_of(key)] = key;
  }

  std::vector<uint64_t> slots_; // their number is a power of two
  size_t count_ = 0;
};

// "%r12" is ("%r", 12); "%r012" is ("%r0", 12), "x" is ("x", none). Each spelling has exactly one such pair.
Name split(Module& module, std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9')
    --begin;
  while (begin + 1 < text.size() && text[begin] == '0')
    ++begin;
  if (begin == 0 || begin == text.size() || text.size() - begin > 8) return {module.intern(text), no_number};
  uint32_t number = 0;
  for (char c : text.substr(begin))
    number = number * 10 + static_cast<uint32_t>(c - '0');
  return {module.intern(text.substr(0, begin)), number};
}

std::string_view default_stem(const Value& value) {
  switch (value.register_class) {
  case RegisterClass::coefficient:
    return "%cr";
  case RegisterClass::thread_index:
    return "%tr";
  case RegisterClass::block_index:
    return "%br";
  case RegisterClass::linear:
    return "%lr";
  default:
    break;
  }
  if (value.type == ScalarType::pred) return "%p";
  bool floating = type_kind(value.type) == TypeKind::floating;
  switch (bit_width(value.type)) {
  case 8:
    return "%rc";
  case 16:
    return floating ? "%h" : "%rs";
  case 32:
    return floating ? "%f" : "%r";
  case 64:
    return floating ? "%fd" : "%rd";
  default:
    return "%rq";
  }
}

class Registers {
public:
  explicit Registers(Function& function) : function_(function), module_(function.module()) {}

  void rename() {
    collect();
    take_other_names();
    choose();
  }

  void declare() {
    std::vector<std::vector<const Register*>> groups(stems_.size());
    for (const Register& row : registers_)
      groups[row.stem].push_back(&row);
    for (std::vector<const Register*>& group : groups) {
      auto is_single = [](const Register* row) { return row->name.number == no_number; };
      auto numbered = std::stable_partition(group.begin(), group.end(), is_single);
      list({group.begin(), numbered});
      std::vector<const Register*> rest(numbered, group.end());
      if (!range(rest)) list(rest);
    }
    InstructionId first = function_.blocks[function_.entry()].first;
    for (const std::string& text : texts_) {
      Operand operand;
      operand.kind = OperandKind::text;
      operand.id = module_.intern(text).index();
      Instruction row;
      row.kind = InstructionKind::declare_values;
      InstructionId id = function_.add_instruction(row, {&operand, 1});
      if (first)
        function_.insert_before(first, id);
      else
        function_.append(function_.entry(), id);
    }
  }

private:
  struct Register {
    ValueId value;
    Name name;
    uint32_t stem = 0; // place in stems_
  };
  struct Stem {
    Symbol name;
    uint32_t next_number = 0; // after the highest
  };

  // The place of a stem. Registers that follow each other mostly have the same.
  uint32_t place_of(Symbol name) {
    if (last_stem_ < stems_.size() && stems_[last_stem_].name == name) return last_stem_;
    const uint64_t hash = uint64_t{name.index()} * 0x9E3779B97F4A7C15;
    const uint32_t known = stem_index_.find(hash, [&](uint32_t place) { return stems_[place].name == name; });
    if (known != HashIndex::none) return last_stem_ = known;
    last_stem_ = static_cast<uint32_t>(stems_.size());
    stem_index_.add(hash, last_stem_);
    stems_.push_back({name});
    return last_stem_;
  }

  void collect() {
    std::vector<bool> mentioned(function_.values.size(), false);
    auto mention = [&](ValueId value) { mentioned[value.index()] = true; };
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block)) {
        for (const Operand& operand : function_.operands_of(id))
          if (operand.is(OperandKind::value)) mention(operand.as_value());
        if (const ValueId guard = function_.instructions[id].guard) mention(guard);
      }
    for (ValueId value : function_.values.ids())
      if (mentioned[value.index()] && !is_queue(function_.values[value].register_class))
        registers_.push_back({value, hint(value)});
    for (Register& row : registers_)
      row.stem = place_of(row.name.stem);
  }

  Name hint(ValueId value) {
    const Value& row = function_.values[value];
    if (row.name && row.name == last_plain_) return {row.name, row.number};
    std::string_view text = module_.text(row.name);
    if (text.empty()) return {module_.intern(default_stem(row)), row.number == no_number ? value.index() : row.number};
    bool plain = text.back() < '0' || text.back() > '9';
    if (plain) return {last_plain_ = row.name, row.number};
    return split(module_, function_.value_name(value));
  }

  // Variables and labels share the name space of registers.
  void take_other_names() {
    UniqueNames names(module_);
    take_names(function_, names);
    names.for_each([&](Symbol name) {
      Name other = split(module_, module_.text(name));
      taken_.insert(other);
      others_.insert(other);
      if (other.number != no_number) numbered_others_.insert(other.stem.index());
    });
  }

  // The first register with a name keeps it; others get numbers after the highest of their stem.
  void choose() {
    for (const Register& row : registers_)
      if (row.name.number != no_number) {
        uint32_t& next = stems_[row.stem].next_number;
        next = std::max(next, row.name.number + 1);
      }
    taken_.reserve(registers_.size());
    for (Register& row : registers_) {
      if (!taken_.insert(row.name)) {
        uint32_t& next = stems_[row.stem].next_number;
        do
          row.name.number = next++;
        while (!taken_.insert(row.name));
      }
      function_.values[row.value].name = row.name.stem;
      function_.values[row.value].number = row.name.number;
    }
  }

  std::string type_words(const Register& row) const {
    const Value& value = function_.values[row.value];
    return ".reg ." + std::string(spelling(value.type)) + " ";
  }

  // `%r<13>`, if all registers have one type and no other name falls into the range.
  bool range(const std::vector<const Register*>& group) {
    if (group.empty()) return true;
    uint32_t count = 0;
    for (const Register* row : group) {
      if (function_.values[row->value].type != function_.values[group[0]->value].type) return false;
      count = std::max(count, row->name.number + 1);
    }
    if (count / 64 > group.size() + 16) return false;
    Symbol stem = group[0]->name.stem;
    if (numbered_others_.count(stem.index()))
      for (uint32_t number = 0; number < count; ++number)
        if (others_.contains({stem, number})) return false;
    texts_.push_back(type_words(*group[0]) + std::string(module_.text(stem)) + "<" + std::to_string(count) + ">");
    return true;
  }

  void list(const std::vector<const Register*>& group) {
    constexpr unsigned per_line = 8;
    unsigned in_line = 0;
    std::string type;
    for (const Register* row : group) {
      std::string wanted = type_words(*row);
      if (type == wanted && in_line < per_line) {
        texts_.back() += ", ";
      } else {
        type = wanted;
        in_line = 0;
        texts_.push_back(type);
      }
      texts_.back() += function_.value_name(row->value);
      ++in_line;
    }
  }

  Function& function_;
  Module& module_;
  std::vector<Register> registers_; // by value
  NameSet taken_, others_;
  std::unordered_set<uint32_t> numbered_others_; // stems
  std::vector<Stem> stems_;                      // in the order of their first registers
  HashIndex stem_index_;
  uint32_t last_stem_ = 0;
  Symbol last_plain_; // the last spelling without a number at its end
  std::vector<std::string> texts_;
};

// Certainly no two names are the same, and all are pairs already, so that nothing would be renamed? Of most functions.
bool are_unique(const Function& function) {
  constexpr size_t most_stems = 16;
  Module& module = function.module();
  NameSet names;
  names.reserve(function.values.size());
  std::vector<Symbol> stems;
  for (const Value& row : function.values) {
    if (!names.insert({row.name, row.number})) return false;
    if (std::ranges::find(stems, row.name) != stems.end()) continue;
    const std::string_view text = module.text(row.name);
    if (text.empty() || (text.back() >= '0' && text.back() <= '9')) return false;
    if (stems.size() == most_stems) return false;
    stems.push_back(row.name);
  }
  UniqueNames others(module);
  take_names(function, others);
  bool are_apart = true;
  others.for_each([&](Symbol name) {
    are_apart &= std::ranges::find(stems, split(module, module.text(name)).stem) == stems.end();
  });
  return are_apart;
}

} // namespace

void make_register_names_unique(Function& function) {
  if (!are_unique(function)) Registers(function).rename();
}

void name_and_declare_registers(Function& function) {
  Registers registers(function);
  registers.rename();
  registers.declare();
}

} // namespace ptxrewrite::ir
