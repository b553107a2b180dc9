// A kernel or device function: values, variables, blocks, instructions, and the edit operations that passes use.
//
// A function is in one of two states. As read, a ValueId is a declared register and may be written many times; the body
// contains the text's scopes and declarations as instructions. In SSA form (`is_ssa`) each value has one definition (an
// instruction's operand or a block parameter) or is flagged as undefined; scopes and register declarations are removed,
// and the entry block has no predecessors. Control-flow edges are explicit in both states.
//
// The carry flag that add.cc, addc and related instructions pass on is not a value: a pass may not reorder, remove or
// insert instructions that access it (Effects::reads_carry, writes_carry). destruct_ssa inserts only moves, which do
// not change it.
#pragma once

#include "ir/core/instruction.h"
#include "ir/core/operand.h"
#include "ir/isa/types.h"

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

class Module;

// The register file that a value belongs to; all classes but `general` occur only in hardware forms.
enum class RegisterClass : uint8_t {
  general,
  coefficient, // R2D2: %cr %tr %br %lr
  thread_index,
  block_index,
  linear,
  queued_data, // DAC's queues (ir/forms/dac.h). Each read of such a value takes an entry from its queue; the value is
               // never
  queued_address,   // written: `[dac.deq.data(3)]`, `[dac.deq.addr(3)]`, `@dac.deq.pred(3)`. The number
  queued_predicate, // in the text is the value's. In SSA form the value is flagged as undefined.
  taken_predicate,  // `@dac.take.pred(3)` of an affine stream
};
// True if reading a value of this class dequeues an entry of a queue.
constexpr bool is_queue(RegisterClass register_class) {
  return register_class >= RegisterClass::queued_data;
}

struct Value {
  ScalarType type = ScalarType::none;
  uint8_t vector_width = 1; // 1, 2 or 4: `.reg .v4 .f32 v`
  RegisterClass register_class = RegisterClass::general;
  // SSA form only: the value has no definition; it represents a register that no path has written yet. Undefined values
  // may be operands, old values and edge arguments, have no live range, and are never copied by destruct_ssa.
  bool is_undefined = false;
  Symbol name; // spelled name, or the prefix when `number` is set; a hint once in SSA form
  uint32_t number = no_number;
  static constexpr uint32_t no_number = UINT32_MAX;
};

enum class Linkage : uint8_t { none, external, visible, weak, common };

// Memory variable or parameter.
struct Variable {
  Symbol name;
  StateSpace space = StateSpace::none;
  ScalarType type = ScalarType::none;
  uint8_t vector_width = 1;
  Linkage linkage = Linkage::none;
  bool is_array = false;
  bool unsized = false; // x[]
  bool byte_address_initialiser = false;
  uint32_t alignment = 0;     // bytes; 0 = not stated
  uint32_t bank = 0;          // .const[bank]
  PoolSpan dimensions;        // element counts; owner's `dimensions`
  PoolSpan initialiser;       // operands in the owner's `initialisers`, pre-order: nested braces are vector groups, a
                              // pair is `mask(symbol)` or, with two texts, `property = value`
  Symbol attributes;          // .attribute(...) or .ptr ... text as spelled, with blanks normalised; or invalid
  ValueId register_parameter; // the register of a `.reg` parameter of a function (old PTX)
  SourceRange range;
};

// .callprototype, or a function's own signature.
struct Prototype {
  Symbol label;     // of a .callprototype
  PoolSpan results; // VariableIds in Function::signature_variables
  PoolSpan parameters;
  bool has_result_list = false;
  bool has_parameter_list = false;
  Symbol trailing; // .noreturn, .abi_preserve N ... as spelled
};

// L: .branchtargets a, b;   or   L: .calltargets f, g;
struct LabelTable {
  Symbol label;
  bool is_call_targets = false;
  PoolSpan operands; // blocks or symbols
};

struct Edge {
  BlockId from;
  BlockId to;
  PoolSpan arguments; // ValueIds, Function::value_lists; one per parameter of `to`
};

struct Block {
  Symbol label; // invalid: no label in the text
  InstructionId first;
  InstructionId last;
  PoolSpan parameters;        // ValueIds, Function::value_lists; SSA form only
  PoolSpan successors;        // EdgeIds, Function::edge_lists. Order: branch targets as the terminator names
                              // them, then the fall-through edge if control can leave at the end
  bool falls_through = false; // the last successor edge is the fall-through one, to the next block in layout
  bool in_layout = false;
};

// .maxntid 16,16 and the like, in the order of the text.
struct FunctionDirective {
  Symbol name; // with its dot
  std::array<uint32_t, 3> numbers{};
  uint8_t count = 0; // of numbers
  Symbol text;       // .pragma string, or other text that is not numeric
};

class Function;

// A function that is part of another function and is copied with it.
class OwnedFunction {
public:
  OwnedFunction() = default;
  explicit OwnedFunction(std::unique_ptr<Function> function);
  OwnedFunction(const OwnedFunction& other);
  OwnedFunction(OwnedFunction&& other) noexcept;
  OwnedFunction& operator=(OwnedFunction other) noexcept;
  ~OwnedFunction();

  explicit operator bool() const { return function_ != nullptr; }
  Function& operator*() const { return *function_; }
  Function* operator->() const { return function_.get(); }
  Function* get() const { return function_.get(); }

private:
  std::unique_ptr<Function> function_;
};

class Function {
public:
  explicit Function(Module& module) : module_(&module) {}

  Module& module() const { return *module_; }

  // --- identity ---
  Symbol name;
  bool is_entry = false;
  bool has_body = false;
  bool is_ssa = false;
  Linkage linkage = Linkage::none;
  Symbol attributes;
  Prototype signature;
  std::vector<FunctionDirective> directives;
  SourceRange range; // of the whole item
  SourceRange header_range;
  // DAC's affine stream if the kernel has one (ir/forms/dac.h): `.dac.affine { ... }`. A section_begin directly
  // followed by a section_end marks its position in the body.
  OwnedFunction affine_stream;

  // --- tables ---
  Table<ValueId, Value> values;
  Table<VariableId, Variable> variables; // parameters and local variables
  Table<InstructionId, Instruction> instructions;
  Table<BlockId, Block> blocks;
  Table<EdgeId, Edge> edges;
  Table<PrototypeId, Prototype> prototypes;
  Table<LabelTableId, LabelTable> label_tables;
  std::vector<BlockId> layout; // blocks in the order of the text; the first is the entry
  SpanPool<Operand> operands;
  SpanPool<ValueId> value_lists;
  SpanPool<EdgeId> edge_lists;
  SpanPool<VariableId> variable_lists;
  SpanPool<uint64_t> dimensions;
  SpanPool<Operand> initialisers;
  uint32_t source_instruction_count = 0; // provenance ids are below this

  // --- queries ---
  BlockId entry() const { return layout.front(); }
  std::span<const Operand> operands_of(InstructionId id) const { return operands.view(instructions[id].operands); }
  std::span<Operand> operands_of(InstructionId id) { return operands.view(instructions[id].operands); }
  std::span<const EdgeId> successors(BlockId id) const { return edge_lists.view(blocks[id].successors); }
  std::span<const ValueId> parameters(BlockId id) const { return value_lists.view(blocks[id].parameters); }
  std::span<const ValueId> arguments(EdgeId id) const { return value_lists.view(edges[id].arguments); }
  std::span<ValueId> arguments(EdgeId id) { return value_lists.view(edges[id].arguments); }
  // The form of a real instruction.
  const Form& form_of(InstructionId id) const { return form(instructions[id].form); }
  // True if this is a real instruction with this opcode.
  bool is_opcode(InstructionId id, Opcode opcode) const {
    return instructions[id].kind == InstructionKind::real && form_of(id).opcode == opcode;
  }
  // True if the instruction may leave part of its destinations' old contents: guarded instructions, and
  // wgmma.mma_async, which accumulates into its destination registers.
  bool keeps_old_values(InstructionId id) const;
  // The last real instruction of a block if it can transfer control (bra, brx, ret, exit, trap), else invalid.
  InstructionId terminator(BlockId block) const;
  // The name that a value is printed with ("%r12").
  std::string value_name(ValueId id) const;
  std::string block_name(BlockId id) const;

  // Iterates over the instructions of a block. The current instruction may be removed while iterating.
  class InstructionRange;
  InstructionRange instructions_in(BlockId block) const;

  // --- editing (every edit invalidates `version`, on which cached analyses depend) ---
  // A number unique in this process to this state of the function; unmodified copies share it.
  uint64_t version() const;
  void changed() { version_ = 0; }

  ValueId add_value(Value value);
  BlockId add_block(Symbol label = {}); // not yet in the layout
  void place_block(BlockId block);      // at the end of the layout
  void place_block_before(BlockId block, BlockId position);
  void remove_block(BlockId block); // from the layout, with its instructions
  // `operand_list` is copied into the pool. The instruction is not linked into a block yet.
  InstructionId add_instruction(Instruction instruction, std::span<const Operand> operand_list);
  void append(BlockId block, InstructionId instruction);
  void insert_before(InstructionId position, InstructionId instruction);
  void insert_after(InstructionId position, InstructionId instruction);
  void remove(InstructionId instruction); // unlinks it from its block
  void set_operands(InstructionId instruction, std::span<const Operand> operand_list);
  EdgeId add_edge(BlockId from, BlockId to, std::span<const ValueId> argument_list = {});
  void set_successors(BlockId block, std::span<const EdgeId> edge_list, bool falls_through);
  void set_parameters(BlockId block, std::span<const ValueId> value_list);
  void set_arguments(EdgeId edge, std::span<const ValueId> value_list);

private:
  void link(InstructionId instruction, BlockId block, InstructionId previous, InstructionId next);

  Module* module_;
  mutable uint64_t version_ = 0; // 0: no number has been assigned since the last edit
};

class Function::InstructionRange {
public:
  class Iterator {
  public:
    Iterator(const Function& function, InstructionId id) : function_(&function), id_(id) { look_ahead(); }
    InstructionId operator*() const { return id_; }
    Iterator& operator++() {
      id_ = next_;
      look_ahead();
      return *this;
    }
    bool operator==(const Iterator& other) const { return id_ == other.id_; }

  private:
    void look_ahead() { next_ = id_ ? function_->instructions[id_].next : InstructionId(); }
    const Function* function_;
    InstructionId id_;
    InstructionId next_;
  };
  InstructionRange(const Function& function, InstructionId first) : function_(&function), first_(first) {}
  Iterator begin() const { return {*function_, first_}; }
  Iterator end() const { return {*function_, InstructionId()}; }

private:
  const Function* function_;
  InstructionId first_;
};

inline Function::InstructionRange Function::instructions_in(BlockId block) const {
  return {*this, blocks[block].first};
}

// Calls `visit(ValueId)` for every register the instruction reads: operands, old values and the guard.
template <class Visit> void for_each_use(const Function& function, InstructionId id, Visit&& visit) {
  for (const Operand& operand : function.operands_of(id))
    if (operand.is(OperandKind::value) && !operand.is_definition()) visit(operand.as_value());
  if (ValueId guard = function.instructions[id].guard) visit(guard);
}

// Calls `visit(ValueId)` for every register the instruction writes.
template <class Visit> void for_each_definition(const Function& function, InstructionId id, Visit&& visit) {
  for (const Operand& operand : function.operands_of(id))
    if (operand.is(OperandKind::value) && operand.is_definition()) visit(operand.as_value());
}

} // namespace ptxrewrite::ir
