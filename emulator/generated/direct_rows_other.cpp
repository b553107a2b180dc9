// Rows of conversions, comparisons, selections and floats. What they give is what emulator/semantics gives: a NaN of
// f32 is the canonical one, of f64 the first operand's.
#include "emulator/generated/direct_rows.h"

#include "emulator/core/resize.h"

#include <cstddef>

namespace ptxrewrite::emulator::generated {

using namespace x86;

namespace {

template <size_t offset> Place table_place() {
  return {tables, static_cast<int32_t>(offset)};
}

// --- widths ---

void keep(RowCode&) {}
// Parts of 64 bits to their low halves: 4 lanes in the low half of the register.
void narrow_to_32(RowCode& x) {
  x.code.unary(vpshufd, y0, y0, uint8_t(0x08));
  x.code.unary(vpermq, y0, y0, uint8_t(0x08));
}
// Parts of 32 bits to their low halves: 8 lanes in the low half of the register.
void narrow_to_16(RowCode& x) {
  x.code.vector_shift(shift_d, shift_left, y0, y0, 16);
  x.code.vector_shift(shift_d, shift_right_signed, y0, y0, 16);
  x.code.vector(vpackssdw, y0, y0, y0);
  x.code.unary(vpermq, y0, y0, uint8_t(0x08));
}
void zero_16_to_32(RowCode& x) {
  x.one(vpmovzxwd);
}
void sign_16_to_32(RowCode& x) {
  x.one(vpmovsxwd);
}
void zero_16_to_64(RowCode& x) {
  x.one(vpmovzxwq);
}
void sign_16_to_64(RowCode& x) {
  x.one(vpmovsxwq);
}
void zero_32_to_64(RowCode& x) {
  x.one(vpmovzxdq);
}
void sign_32_to_64(RowCode& x) {
  x.one(vpmovsxdq);
}

void add_conversion(DirectTable& table, std::string_view pattern, unsigned from, unsigned to, DirectBuild build) {
  table.add(pattern, {build, nullptr, static_cast<uint8_t>(std::max(from, to))});
}

void add_integer_conversions(DirectTable& table) {
#define BOTH(from, to, signed_build, unsigned_build)                                                                   \
  add_conversion(table, "cvt.u" #to ".s" #from, from, to, signed_build);                                               \
  add_conversion(table, "cvt.s" #to ".s" #from, from, to, signed_build);                                               \
  add_conversion(table, "cvt.u" #to ".u" #from, from, to, unsigned_build);                                             \
  add_conversion(table, "cvt.s" #to ".u" #from, from, to, unsigned_build);
  BOTH(16, 16, keep, keep)
  BOTH(16, 32, sign_16_to_32, zero_16_to_32)
  BOTH(16, 64, sign_16_to_64, zero_16_to_64)
  BOTH(32, 16, narrow_to_16, narrow_to_16)
  BOTH(32, 32, keep, keep)
  BOTH(32, 64, sign_32_to_64, zero_32_to_64)
  BOTH(64, 32, narrow_to_32, narrow_to_32)
  BOTH(64, 64, keep, keep)
#undef BOTH
  table.handler(resize_handler(16, 32, false), {zero_16_to_32, nullptr, 32});
  table.handler(resize_handler(16, 32, true), {sign_16_to_32, nullptr, 32});
  table.handler(resize_handler(16, 64, false), {zero_16_to_64, nullptr, 64});
  table.handler(resize_handler(16, 64, true), {sign_16_to_64, nullptr, 64});
  table.handler(resize_handler(32, 64, false), {zero_32_to_64, nullptr, 64});
  table.handler(resize_handler(32, 64, true), {sign_32_to_64, nullptr, 64});
  for (const bool is_signed : {false, true}) {
    table.handler(resize_handler(32, 16, is_signed), {narrow_to_16, nullptr, 32});
    table.handler(resize_handler(64, 32, is_signed), {narrow_to_32, nullptr, 64});
  }
  for (unsigned bits : {16, 32, 64})
    table.handler(copy_handler(bits), {keep, nullptr, static_cast<uint8_t>(bits)});
}

// --- comparisons ---

void inverted(RowCode& x) {
  x.code.vector(vpxor, y0, y0, y8);
}
void ones_in_y8(RowCode& x) {
  x.code.vector(vpcmpeqd, y8, y8, y8);
}
// Turns unsigned numbers into signed ones of the same order.
void shift_order(RowCode& x) {
  x.code.vector(vpxor, y0, y0, y9);
  x.code.vector(vpxor, y1, y1, y9);
}
void ones_and_sign64(RowCode& x) {
  ones_in_y8(x);
  x.code.unary(vpbroadcastq, y9, table_place<offsetof(LaneTables, sign64)>());
}
template <const VectorOp& equal> void equal_parts(RowCode& x) {
  x.op(equal);
}
template <const VectorOp& equal> void different_parts(RowCode& x) {
  x.op(equal);
  inverted(x);
}
template <const VectorOp& greater> void less_parts(RowCode& x) {
  x.code.vector(greater, y0, y1, y0);
}
template <const VectorOp& greater> void greater_parts(RowCode& x) {
  x.op(greater);
}
template <const VectorOp& greater> void at_most_parts(RowCode& x) {
  x.op(greater);
  inverted(x);
}
template <const VectorOp& greater> void at_least_parts(RowCode& x) {
  x.code.vector(greater, y0, y1, y0);
  inverted(x);
}
// a >= b: the greater of both is a; a <= b: the lesser of both is a.
template <const VectorOp& extreme, const VectorOp& equal, bool inverts> void unsigned_parts(RowCode& x) {
  x.code.vector(extreme, y4, y0, y1);
  x.code.vector(equal, y0, y0, y4);
  if (inverts) inverted(x);
}
template <DirectBuild build> void in_signed_order(RowCode& x) {
  shift_order(x);
  build(x);
}

template <const VectorOp& equal, const VectorOp& greater>
void add_signed(DirectTable& table, unsigned bits, const char* const (&patterns)[6]) {
  const DirectBuild builds[] = {equal_parts<equal>,     different_parts<equal>, less_parts<greater>,
                                at_most_parts<greater>, greater_parts<greater>, at_least_parts<greater>};
  for (size_t i = 0; i < 6; ++i)
    table.add(patterns[i], {builds[i], ones_in_y8, static_cast<uint8_t>(bits)});
}
template <const VectorOp& equal, const VectorOp& least, const VectorOp& most>
void add_unsigned(DirectTable& table, unsigned bits, const char* const (&patterns)[4]) {
  const DirectBuild builds[] = {unsigned_parts<most, equal, true>, unsigned_parts<least, equal, false>,
                                unsigned_parts<least, equal, true>, unsigned_parts<most, equal, false>};
  for (size_t i = 0; i < 4; ++i)
    table.add(patterns[i], {builds[i], ones_in_y8, static_cast<uint8_t>(bits)});
}

#define SIGNED_PATTERNS(both, own)                                                                                     \
  { "setp.eq." both, "setp.ne." both, "setp.lt." own, "setp.le." own, "setp.gt." own, "setp.ge." own }
#define UNSIGNED_PATTERNS(own)                                                                                         \
  { "setp.{lt|lo}." own, "setp.{le|ls}." own, "setp.{gt|hi}." own, "setp.{ge|hs}." own }

void add_integer_comparisons(DirectTable& table) {
  add_signed<vpcmpeqw, vpcmpgtw>(table, 16, SIGNED_PATTERNS("{b16|u16|s16}", "s16"));
  add_signed<vpcmpeqd, vpcmpgtd>(table, 32, SIGNED_PATTERNS("{b32|u32|s32}", "s32"));
  add_signed<vpcmpeqq, vpcmpgtq>(table, 64, SIGNED_PATTERNS("{b64|u64|s64}", "s64"));
  add_unsigned<vpcmpeqw, vpminuw, vpmaxuw>(table, 16, UNSIGNED_PATTERNS("u16"));
  add_unsigned<vpcmpeqd, vpminud, vpmaxud>(table, 32, UNSIGNED_PATTERNS("u32"));
  const DirectBuild of_64[] = {in_signed_order<less_parts<vpcmpgtq>>, in_signed_order<at_most_parts<vpcmpgtq>>,
                               in_signed_order<greater_parts<vpcmpgtq>>, in_signed_order<at_least_parts<vpcmpgtq>>};
  const char* const patterns[] = UNSIGNED_PATTERNS("u64");
  for (size_t i = 0; i < 4; ++i)
    table.add(patterns[i], {of_64[i], ones_and_sign64, 64});
}

// The predicates of vcmpps and vcmppd; all are quiet.
template <uint8_t predicate> void add_float_comparison(DirectTable& table, const char* of_f32, const char* of_f64) {
  table.row(of_f32, 32, [](RowCode& x) { x.code.vector(vcmpps, y0, y0, y1, predicate); });
  table.row(of_f64, 64, [](RowCode& x) { x.code.vector(vcmppd, y0, y0, y1, predicate); });
}

void add_float_comparisons(DirectTable& table) {
#define COMPARISON(word, predicate) add_float_comparison<predicate>(table, "setp." word ".f32", "setp." word ".f64");
  COMPARISON("eq", 0x00)
  COMPARISON("ne", 0x0c)
  COMPARISON("lt", 0x11)
  COMPARISON("le", 0x12)
  COMPARISON("gt", 0x1e)
  COMPARISON("ge", 0x1d)
  COMPARISON("equ", 0x08)
  COMPARISON("neu", 0x04)
  COMPARISON("ltu", 0x19)
  COMPARISON("leu", 0x1a)
  COMPARISON("gtu", 0x16)
  COMPARISON("geu", 0x15)
  COMPARISON("num", 0x07)
  COMPARISON("nan", 0x03)
#undef COMPARISON
}

void add_selections(DirectTable& table) {
  const DirectBuild selected = [](RowCode& x) { x.code.blend(vpblendvb, y0, y1, y0, y2); };
  table.add("selp.{b16|u16|s16}", {selected, nullptr, 16});
  table.add("selp.{b32|u32|s32|f32}", {selected, nullptr, 32});
  table.add("selp.{b64|u64|s64|f64}", {selected, nullptr, 64});
}

// --- floats ---

void canonical_nan_in_y9(RowCode& x) {
  x.code.unary(vpbroadcastd, y9, table_place<offsetof(LaneTables, canonical_nan)>());
}
void one_and_nan(RowCode& x) {
  x.code.unary(vpbroadcastd, y8, table_place<offsetof(LaneTables, one32)>());
  canonical_nan_in_y9(x);
}
void canonical(RowCode& x) {
  x.code.vector(vcmpps, y4, y0, y0, uint8_t(3));
  x.code.blend(vblendvps, y0, y0, y9, y4);
}
template <const VectorOp& op> void f32_operation(RowCode& x) {
  x.op(op);
  canonical(x);
}
template <const VectorOp& op> void f64_operation(RowCode& x) {
  x.op(op);
}
template <unsigned bits> void sign_and_quiet(RowCode& x) {
  if (bits == 32) {
    x.code.unary(vpbroadcastd, y8, table_place<offsetof(LaneTables, sign32)>());
    x.code.unary(vpbroadcastd, y9, table_place<offsetof(LaneTables, quiet32)>());
  } else {
    x.code.unary(vpbroadcastq, y8, table_place<offsetof(LaneTables, sign64)>());
    x.code.unary(vpbroadcastq, y9, table_place<offsetof(LaneTables, quiet64)>());
  }
}
// NaNs become quiet.
template <unsigned bits, bool negates> void other_sign(RowCode& x) {
  x.code.vector(bits == 32 ? vcmpps : vcmppd, y4, y0, y0, uint8_t(3));
  x.code.vector(vpand, y4, y4, y9);
  x.code.vector(vpor, y0, y0, y4);
  if (negates)
    x.code.vector(vpxor, y0, y0, y8);
  else
    x.code.vector(vpandn, y0, y8, y0);
}

void add_floats(DirectTable& table) {
  table.add("add[.rn].f32", {f32_operation<vaddps>, canonical_nan_in_y9, 32});
  table.add("sub[.rn].f32", {f32_operation<vsubps>, canonical_nan_in_y9, 32});
  table.add("mul[.rn].f32", {f32_operation<vmulps>, canonical_nan_in_y9, 32});
  table.add("div.rn.f32", {f32_operation<vdivps>, canonical_nan_in_y9, 32});
  const DirectBuild fused = [](RowCode& x) {
    x.code.vector(vfmadd213ps, y0, y1, y2);
    canonical(x);
  };
  table.add("fma.rn.f32", {fused, canonical_nan_in_y9, 32});
  table.add("mad.rn.f32", {fused, canonical_nan_in_y9, 32});
  const DirectBuild reciprocal = [](RowCode& x) {
    x.code.vector(vdivps, y0, y8, y0);
    canonical(x);
  };
  table.add("rcp.rn.f32", {reciprocal, one_and_nan, 32});
  const DirectBuild root = [](RowCode& x) {
    x.one(vsqrtps);
    canonical(x);
  };
  table.add("sqrt.rn.f32", {root, canonical_nan_in_y9, 32});
  table.add("neg.f32", {other_sign<32, true>, sign_and_quiet<32>, 32});
  table.add("abs.f32", {other_sign<32, false>, sign_and_quiet<32>, 32});
  table.add("neg.f64", {other_sign<64, true>, sign_and_quiet<64>, 64});
  table.add("abs.f64", {other_sign<64, false>, sign_and_quiet<64>, 64});
  table.add("add[.rn].f64", {f64_operation<vaddpd>, nullptr, 64, true});
  table.add("sub[.rn].f64", {f64_operation<vsubpd>, nullptr, 64, true});
  table.add("mul[.rn].f64", {f64_operation<vmulpd>, nullptr, 64, true});
  table.add("div[.rn].f64", {f64_operation<vdivpd>, nullptr, 64, true});
  const DirectBuild fused64 = [](RowCode& x) { x.code.vector(vfmadd213pd, y0, y1, y2); };
  table.add("fma.rn.f64", {fused64, nullptr, 64, true});
  table.add("mad[.rn].f64", {fused64, nullptr, 64, true});
  table.row("cvt.rn[.ftz].f32.s32", 32, [](RowCode& x) { x.one(vcvtdq2ps); });
  table.row("cvt.rn.f64.s32", 64, [](RowCode& x) { x.one(vcvtdq2pd); });
}

} // namespace

void add_direct_widths(DirectTable& table) {
  add_integer_conversions(table);
}
void add_direct_comparisons(DirectTable& table) {
  add_integer_comparisons(table);
  add_float_comparisons(table);
  add_selections(table);
}
void add_direct_floats(DirectTable& table) {
  add_floats(table);
}

} // namespace ptxrewrite::emulator::generated
