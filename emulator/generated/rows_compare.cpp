// Rows of comparisons and selections of integers and floats.
#include "emulator/generated/rows.h"

namespace ptxrewrite::emulator::generated {
namespace {

Value always(Ir& ir, bool value) {
  return ir.constant(1, value);
}

// Comparison by the flags of the outcomes for which it is true.
template <bool is_signed> Value holds(Ir& ir, const Operands& x) {
  switch (x.flags & (flag_less | flag_equal | flag_greater)) {
  case 0:
    return always(ir, false);
  case flag_less:
    return ir.icmp(is_signed ? LLVMIntSLT : LLVMIntULT, x.a, x.b);
  case flag_equal:
    return ir.icmp(LLVMIntEQ, x.a, x.b);
  case flag_greater:
    return ir.icmp(is_signed ? LLVMIntSGT : LLVMIntUGT, x.a, x.b);
  case flag_less | flag_equal:
    return ir.icmp(is_signed ? LLVMIntSLE : LLVMIntULE, x.a, x.b);
  case flag_greater | flag_equal:
    return ir.icmp(is_signed ? LLVMIntSGE : LLVMIntUGE, x.a, x.b);
  case flag_less | flag_greater:
    return ir.icmp(LLVMIntNE, x.a, x.b);
  default:
    return always(ir, true);
  }
}

Value joined(Ir& ir, Value comparison, Value other, uint32_t flags) {
  if (flags & flag_and) return ir.bit_and(comparison, other);
  if (flags & flag_or) return ir.bit_or(comparison, other);
  if (flags & flag_xor) return ir.xor_conditions(comparison, other);
  return comparison;
}

template <bool is_signed> Results both_predicates(Ir& ir, const Operands& x) {
  const Value comparison = holds<is_signed>(ir, x);
  return {comparison, ir.bit_not(comparison)};
}
template <bool is_signed> Results joined_predicates(Ir& ir, const Operands& x) {
  const Value comparison = holds<is_signed>(ir, x);
  return {joined(ir, comparison, x.c, x.flags), joined(ir, ir.bit_not(comparison), x.c, x.flags)};
}
template <bool is_signed, uint32_t true_value> Value set(Ir& ir, const Operands& x) {
  return ir.select(holds<is_signed>(ir, x), ir.constant(32, true_value), ir.constant(32, 0));
}

// An ordered float comparison is false if an operand is NaN; LLVM's predicates are the same set of outcomes.
template <LLVMRealPredicate predicate, unsigned bits> Value float_comparison(Ir& ir, const Operands& x) {
  return ir.fcmp(predicate, ir.to_float(x.a, bits), ir.to_float(x.b, bits));
}

Value selected(Ir& ir, const Operands& x) {
  return ir.select(x.c, x.a, x.b);
}
Value selected_by_sign(Ir& ir, const Operands& x) {
  return ir.select(ir.icmp(LLVMIntSGE, x.c, ir.constant(32, 0)), x.a, x.b);
}

#define ROW(pattern, ...) table.row(pattern, [](Ir& ir, const Operands& x) { return __VA_ARGS__(ir, x); })
#define INTEGER_ROWS(word, predicate, types, ...)                                                                      \
  table.row("setp." word "." types, [](Ir& ir, const Operands& x) { return ir.icmp(predicate, x.a, x.b); });

void add_integer_comparisons(RowTable& table) {
  INTEGER_ROWS("eq", LLVMIntEQ, "{b16|u16|s16}")
  INTEGER_ROWS("eq", LLVMIntEQ, "{b32|u32|s32}")
  INTEGER_ROWS("eq", LLVMIntEQ, "{b64|u64|s64}")
  INTEGER_ROWS("ne", LLVMIntNE, "{b16|u16|s16}")
  INTEGER_ROWS("ne", LLVMIntNE, "{b32|u32|s32}")
  INTEGER_ROWS("ne", LLVMIntNE, "{b64|u64|s64}")
#define UNSIGNED_ROWS(word, predicate)                                                                                 \
  INTEGER_ROWS(word, predicate, "u16") INTEGER_ROWS(word, predicate, "u32") INTEGER_ROWS(word, predicate, "u64")
#define SIGNED_ROWS(word, predicate)                                                                                   \
  INTEGER_ROWS(word, predicate, "s16") INTEGER_ROWS(word, predicate, "s32") INTEGER_ROWS(word, predicate, "s64")
  UNSIGNED_ROWS("{lt|lo}", LLVMIntULT)
  UNSIGNED_ROWS("{le|ls}", LLVMIntULE)
  UNSIGNED_ROWS("{gt|hi}", LLVMIntUGT)
  UNSIGNED_ROWS("{ge|hs}", LLVMIntUGE)
  SIGNED_ROWS("lt", LLVMIntSLT)
  SIGNED_ROWS("le", LLVMIntSLE)
  SIGNED_ROWS("gt", LLVMIntSGT)
  SIGNED_ROWS("ge", LLVMIntSGE)
}

#define ANY_UNSIGNED "{.eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs}"
#define ANY_SIGNED "{.eq|.ne|.lt|.le|.gt|.ge}"
#define JOIN "{.and|.or|.xor}"

void add_predicate_pairs(RowTable& table) {
  for (const char* pattern :
       {"setp" ANY_UNSIGNED ".{b16|u16}", "setp" ANY_UNSIGNED ".{b32|u32}", "setp" ANY_UNSIGNED ".{b64|u64}"})
    ROW(pattern, both_predicates<false>);
  for (const char* pattern : {"setp" ANY_SIGNED ".s16", "setp" ANY_SIGNED ".s32", "setp" ANY_SIGNED ".s64"})
    ROW(pattern, both_predicates<true>);
  for (const char* pattern : {"setp" ANY_UNSIGNED JOIN ".{b16|u16}", "setp" ANY_UNSIGNED JOIN ".{b32|u32}",
                              "setp" ANY_UNSIGNED JOIN ".{b64|u64}"})
    ROW(pattern, joined_predicates<false>);
  for (const char* pattern :
       {"setp" ANY_SIGNED JOIN ".s16", "setp" ANY_SIGNED JOIN ".s32", "setp" ANY_SIGNED JOIN ".s64"})
    ROW(pattern, joined_predicates<true>);
  ROW("set" ANY_UNSIGNED ".{u32|s32}.{b32|u32}", set<false, 0xffffffff>);
  ROW("set" ANY_SIGNED ".{u32|s32}.s32", set<true, 0xffffffff>);
  ROW("set" ANY_UNSIGNED ".f32.{b32|u32}", set<false, 0x3f800000>);
  ROW("set" ANY_SIGNED ".f32.s32", set<true, 0x3f800000>);
}

#define FLOAT_ROWS(word, predicate)                                                                                    \
  table.row(                                                                                                           \
      "setp." word ".f32", [](Ir& ir, const Operands& x) { return float_comparison<predicate, 32>(ir, x); },           \
      takes_open_nans);                                                                                                \
  table.row(                                                                                                           \
      "setp." word ".f64", [](Ir& ir, const Operands& x) { return float_comparison<predicate, 64>(ir, x); },           \
      takes_open_nans);

void add_float_comparisons(RowTable& table) {
  FLOAT_ROWS("eq", LLVMRealOEQ)
  FLOAT_ROWS("ne", LLVMRealONE)
  FLOAT_ROWS("lt", LLVMRealOLT)
  FLOAT_ROWS("le", LLVMRealOLE)
  FLOAT_ROWS("gt", LLVMRealOGT)
  FLOAT_ROWS("ge", LLVMRealOGE)
  FLOAT_ROWS("equ", LLVMRealUEQ)
  FLOAT_ROWS("neu", LLVMRealUNE)
  FLOAT_ROWS("ltu", LLVMRealULT)
  FLOAT_ROWS("leu", LLVMRealULE)
  FLOAT_ROWS("gtu", LLVMRealUGT)
  FLOAT_ROWS("geu", LLVMRealUGE)
  FLOAT_ROWS("num", LLVMRealORD)
  FLOAT_ROWS("nan", LLVMRealUNO)
}

void add_selections(RowTable& table) {
  ROW("selp.{b16|u16|s16}", selected);
  ROW("selp.{b32|u32|s32|f32}", selected);
  ROW("selp.{b64|u64|s64|f64}", selected);
  ROW("slct.{b16|u16|s16}.s32", selected_by_sign);
  ROW("slct.{b32|u32|s32|f32}.s32", selected_by_sign);
  ROW("slct.{b64|u64|s64|f64}.s32", selected_by_sign);
}

} // namespace

void add_comparison_rows(RowTable& table) {
  add_integer_comparisons(table);
  add_predicate_pairs(table);
  add_float_comparisons(table);
  add_selections(table);
}

} // namespace ptxrewrite::emulator::generated
