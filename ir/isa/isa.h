// The PTX instruction set as data: the meaning of a mnemonic, its legal operands and its effects.
// Generated from ir/isa/opcodes.def, ir/isa/modifiers.def, ir/isa/specialregs.def and
// ir/isa/directives.def.
//
//   Result<FormId> id = resolve_form("ld.global.v4.f32");
//   const Form& f = form(*id);                 // f.opcode == Opcode::ld, f.space == StateSpace::global, ...
//   if (auto wrong = check_operands(f, operands)) ... wrong->operand_index, wrong->message
//
// Forms are interned for the whole process; all functions here are thread-safe.
#pragma once

#include "ir/isa/types.h"
#include "support/ids.h"
#include "support/result.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

// First words of mnemonics. C++ keywords have a trailing underscore (Opcode::and_); the extension instructions of the
// hardware forms carry their namespace (Opcode::r2d2_mov is `r2d2.mov`).
enum class Opcode : uint16_t {
  opaque, // an instruction that is not in the table
#define OPCODE(name, modifiers, operands, version, targets, kind, effects, ...) name,
#define EXTENSION(name, mnemonic, modifiers, operands, kind, effects) name,
#define FORM(name, modifiers, operands, version, targets, kind, effects, ...)
#define EXTENSION_FORM(name, mnemonic, modifiers, operands, kind, effects)
#include "ir/isa/opcodes.def"
#undef OPCODE
#undef EXTENSION
#undef FORM
#undef EXTENSION_FORM
};

// Modifier words, including types: the first enumerators are in the order of ScalarType, so that `ScalarType(modifier)`
// is valid if is_type(modifier).
enum class Modifier : uint16_t {
  none,
#define SCALAR_TYPE(name, bits, kind) name,
#include "ir/isa/types.def"
#undef SCALAR_TYPE
#define MODIFIER(name, spelling, ordering) name,
#include "ir/isa/modifiers.def"
#undef MODIFIER
};

constexpr bool is_type(Modifier modifier) {
  return modifier != Modifier::none && static_cast<unsigned>(modifier) < scalar_type_count;
}
// "and", "r2d2.mov"; "" for Opcode::opaque.
std::string_view spelling(Opcode opcode);
// The word without the dot: "shared::cta".
std::string_view spelling(Modifier modifier);
// `word` with or without its dot. Returns nullopt for other words.
std::optional<Modifier> parse_modifier(std::string_view word);

// The machine resource that executes an instruction (the `class` column).
enum class InstructionClass : uint8_t {
  opaque,
#define INSTRUCTION_CLASS(name, text) name,
#include "ir/isa/instruction_classes.def"
#undef INSTRUCTION_CLASS
};
std::string_view spelling(InstructionClass kind);

// The function that an instruction computes, for analyses of integers, predicates and addresses (the `operation`
// column). None for floating-point or packed arithmetic, memory accesses, control transfers and special-purpose
// instructions. Analyses switch over it without a default, so that the compiler reports those that lack a new one.
enum class Operation : uint8_t {
  none,
#define OPERATION(name, result) name,
#include "ir/isa/operations.def"
#undef OPERATION
};

// Effects of an instruction beyond computing its destinations from its operands.
struct Effects {
  bool reads_memory : 1 = false;
  bool writes_memory : 1 = false;
  bool atomic : 1 = false;     // read-modify-write in one step, or an access with memory-model meaning (ld.acquire)
  bool barrier : 1 = false;    // orders or waits for other threads or asynchronous copies; includes memory fences
  bool convergent : 1 = false; // result or legality depends on which other lanes execute it
  bool branch : 1 = false;     // bra, brx
  bool call : 1 = false;
  bool terminates : 1 = false;      // ret, exit, trap: control does not continue after it (when unguarded)
  bool volatile_result : 1 = false; // two executions with the same operands may differ (clock, activemask, ld.volatile)
  bool reads_carry : 1 = false;     // CC.CF, the carry flag
  bool writes_carry : 1 = false;
  bool may_trap : 1 = false;    // may fault or stop the kernel: memory accesses, trap, brkpt
  bool side_effect : 1 = false; // must not be removed even if its results are unused

  // No effect at all: may be removed, duplicated, moved and merged with an equal instruction wherever its operands are
  // available. (Callers have to check source operands that are volatile special registers: see SpecialRegister.)
  bool pure() const {
    // Asked for every instruction by most analyses: all bits at once, without the padding.
    if constexpr (std::endian::native == std::endian::little) {
      uint16_t bits;
      static_assert(sizeof(Effects) == sizeof bits);
      std::memcpy(&bits, this, sizeof bits);
      return (bits & 0x1fff) == 0;
    }
    return !(reads_memory || writes_memory || atomic || barrier || convergent || branch || call || terminates ||
             volatile_result || reads_carry || writes_carry || may_trap || side_effect);
  }
  bool transfers_control() const { return branch || call || terminates; }
};

struct FormTag;
using FormId = Id<FormTag>;

struct OperandShape; // requirements on one operand list of a form; private to ir/isa*.cpp

// One mnemonic and its entry in the table. Immutable; its address is stable.
struct Form {
  FormId id;
  std::string_view mnemonic; // as spelled: "ld.global.v4.f32"
  Opcode opcode = Opcode::opaque;
  InstructionClass kind = InstructionClass::opaque;
  Operation operation = Operation::none;
  std::span<const Modifier> modifiers; // as spelled, in order, including types; without words that the table lacks
  std::span<const ScalarType> types;   // instruction types in order: [0] destination, [1] source ...
  std::array<ScalarType, 2> first_types{ScalarType::none, ScalarType::none}; // of `types`
  uint64_t modifier_filter = 0;               // bit `modifier % 64` is set for each of `modifiers`
  StateSpace space = StateSpace::none;        // the first one spelled
  StateSpace source_space = StateSpace::none; // the second one (cp.async: shared <- global)
  uint8_t vector_width = 1;                   // .v2 .v4 .v8, else 1
  // Number of leading operands that are written: `p|q`, `{a,b,c,d}` and a sink count as one each. A call's `(ret)` list
  // is its first operand and counts. Maximum over the form's operand lists: see definition_count().
  uint8_t definitions = 0;
  bool definitions_vary = false; // depends on the operand list: `call` or wait with or without a result
  bool carry_out = false;        // .cc
  bool opaque = false;           // not in the table: kept verbatim, operands unchecked, all effects assumed
  bool extension = false;        // an instruction of a hardware form, unknown to ptxas
  bool lax = false;              // ptxas accepts it, the manual does not describe it
  bool integers_only = true;     // all types are integer or bit types or predicates
  Effects effects;
  std::span<const OperandShape> shapes;

  // The i-th instruction type, or none.
  ScalarType type(unsigned index = 0) const {
    if (index < first_types.size()) return first_types[index];
    return index < types.size() ? types[index] : ScalarType::none;
  }
  bool has(Modifier modifier) const {
    if ((modifier_filter >> (static_cast<unsigned>(modifier) % 64) & 1) == 0) return false;
    for (Modifier m : modifiers)
      if (m == modifier) return true;
    return false;
  }
};

// Returns the form of a mnemonic as spelled, without white space. An unknown opcode, or an unknown word after a known
// opcode, gives an opaque form. Known words that no row of the opcode combines are an error, which names the illegal
// word if one can be determined: "illegal modifier '.sat' for 'add.u32'".
Result<FormId> resolve_form(std::string_view mnemonic);

// For mnemonics that are known to be legal (builders); asserted.
FormId known_form(std::string_view mnemonic);

// Forms by id, beside the registry, so that form() need not check whether the registry has been constructed.
constexpr uint32_t form_limit = 1 << 20;
extern std::array<std::atomic<const Form*>, form_limit> forms_by_id;

// The form with this id. Lock-free: an id is published only after its form has been stored.
inline const Form& form(FormId id) {
  return *forms_by_id[id.index()].load(std::memory_order_relaxed);
}

enum class SummaryKind : uint8_t {
  register_,         // type, vector_width (a .v2/.v4 register used whole)
  integer_immediate, // value
  float_immediate,   // type: .f32 for 0f..., .f64 for 0d... and decimal numbers
  sink,              // _
  address,           // [base+offset] or var[4] (which in `mov` is a symbol); type: the base register's; base; elements:
                     // operands after the base inside the brackets, as in [tex, sampler, {x,y}]
  vector,            // {a, b, ...}: elements
  predicate_pair,    // p|q: two elements (register or sink)
  list,              // (a, b): a call's returns or arguments: elements
  symbol,            // address of a variable, function or parameter, with or without an offset
  label,             // of a block, .branchtargets, .calltargets or .callprototype
  special_register,  // special, vector_width 4 when %tid is read without selector
  string,            // other text; matches no operand pattern
};

enum class AddressBase : uint8_t { none, register_, symbol, immediate };

// The properties of one operand that check_operands examines. `elements` has to outlive the call only.
struct OperandSummary {
  SummaryKind kind = SummaryKind::string;
  ScalarType type = ScalarType::none; // registers and address base registers: as declared
  uint8_t vector_width = 1;
  AddressBase base = AddressBase::none; // addresses
  bool negated : 1 = false;             // !p
  bool minus : 1 = false;               // -a
  bool byte_selector : 1 = false;       // .b0 .h1 .b3210 .h10: selectors of the video instructions
  bool unified : 1 = false;             // [a].unified
  bool hardware : 1 = false; // register of a hardware form's class (%cr %tr %br %lr): matches any integer or bit type
  uint8_t special = 0;       // SpecialRegister
  uint64_t value = 0;        // integer immediate, sign-extended
  std::span<const OperandSummary> elements;
};

struct OperandError {
  int operand_index = -1; // -1: the number of operands is wrong
  std::string message;
};

// Returns nullopt, without heap allocation, if the operands match a list of the form. Guards (@p) are not operands.
std::optional<OperandError> check_operands(const Form& form, std::span<const OperandSummary> operands);

// Like Form::definitions, for one concrete operand list; the two differ only if definitions_vary.
unsigned definition_count(const Form& form, std::span<const OperandSummary> operands);

// The set of threads for which a special register has one value.
enum class Uniformity : uint8_t {
  launch,  // one value for the whole grid: %ntid, %nctaid, %gridid
  cluster, // one per cluster
  block,   // one per block: %ctaid
  warp,    // one per warp: %warpid
  thread,  // differs between lanes: %tid, %laneid
};

enum class SpecialRegister : uint8_t {
  none,
#define SPECIAL_REGISTER(name, text, type, width, uniformity, is_volatile, readers, version, targets, meaning) name,
#include "ir/isa/specialregs.def"
#undef SPECIAL_REGISTER
};

struct SpecialRegisterInfo {
  std::string_view name; // "%tid"
  ScalarType type = ScalarType::none;
  uint8_t vector_width = 1; // 4: has .x .y .z .w
  Uniformity uniformity = Uniformity::thread;
  bool is_volatile = false; // two reads in one thread may differ
  std::string_view readers; // mnemonics that may read it, space separated
  std::string_view version; // first PTX version
  std::string_view targets;
  std::string_view meaning;
};

// `name` with its % and without .x: "%tid", "%envreg7". WARP_SZ is a constant, not a register, and not found here.
std::optional<SpecialRegister> parse_special_register(std::string_view name);
const SpecialRegisterInfo& info(SpecialRegister special);

// The directives: `.reg`, `.loc` ...
struct DirectiveInfo {
  std::string_view name; // ".maxntid"
  std::string_view group;
  std::string_view syntax;
  std::string_view allowed_at;
  std::string_view version;
  std::string_view notes;
};
std::span<const DirectiveInfo> directives();
const DirectiveInfo* find_directive(std::string_view name);

// The table's entry for an opcode ("add", "r2d2.mov"), special register ("%tid") or directive (".loc") as text for
// people; empty if there is no such entry.
std::string isa_page(std::string_view name);
// All opcodes in table order.
std::vector<std::string_view> list_opcodes();
// Number of rows of the table, for tests and statistics.
size_t row_count();

} // namespace ptxrewrite::ir
