// Handles of the IR's entities. Each handle indexes a dense table of its Function or Module.
#pragma once

#include "support/ids.h"
#include "support/span_pool.h"
#include "support/string_pool.h"

namespace ptxrewrite::ir {

struct ValueTag;
struct InstructionTag;
struct BlockTag;
struct EdgeTag;
struct VariableTag;
struct FunctionTag;
struct PrototypeTag;
struct LabelTableTag;
struct ProvenanceTag;

using ValueId = Id<ValueTag>;             // a register; in SSA form, a value with one definition
using InstructionId = Id<InstructionTag>; //
using BlockId = Id<BlockTag>;             // basic block
using EdgeId = Id<EdgeTag>;               // control-flow edge, carries block arguments in SSA form
using VariableId = Id<VariableTag>;       // memory variable of a module or function, see SymbolRef
using FunctionId = Id<FunctionTag>;       //
using PrototypeId = Id<PrototypeTag>;     // .callprototype of a function body
using LabelTableId = Id<LabelTableTag>;   // .branchtargets or .calltargets of a function body
using ProvenanceId = Id<ProvenanceTag>;   // number of the source-text instruction that an instruction derives from

// The entity that a name in an operand refers to. Packed into 32 bits so that an operand takes 16 bytes.
class SymbolRef {
public:
  enum class Kind : uint8_t { module_variable, local_variable, function, undeclared };

  constexpr SymbolRef() = default;
  static constexpr SymbolRef module_variable(VariableId id) { return {Kind::module_variable, id.index()}; }
  static constexpr SymbolRef local_variable(VariableId id) { return {Kind::local_variable, id.index()}; }
  static constexpr SymbolRef function(FunctionId id) { return {Kind::function, id.index()}; }
  // A name that the module does not declare (OptiX callees, for example); identified by its spelling.
  static constexpr SymbolRef undeclared(Symbol name) { return {Kind::undeclared, name.index()}; }
  static constexpr SymbolRef from_bits(uint32_t bits) {
    SymbolRef ref;
    ref.bits_ = bits;
    return ref;
  }

  constexpr Kind kind() const { return static_cast<Kind>(bits_ >> 30); }
  constexpr uint32_t bits() const { return bits_; }
  constexpr VariableId variable() const { return VariableId(index()); }
  constexpr FunctionId function() const { return FunctionId(index()); }
  constexpr Symbol name() const { return Symbol(index()); }
  constexpr bool operator==(const SymbolRef&) const = default;

private:
  constexpr SymbolRef(Kind kind, uint32_t index) : bits_(static_cast<uint32_t>(kind) << 30 | (index & 0x3fffffffu)) {}
  constexpr uint32_t index() const { return bits_ & 0x3fffffffu; }

  uint32_t bits_ = UINT32_MAX;
};

} // namespace ptxrewrite::ir
