// Rows of integer arithmetic, logic and shifts.
#include "emulator/generated/direct_rows.h"

#include <cstddef>
#include <tuple>

namespace ptxrewrite::emulator::generated {

using namespace x86;

LaneTables::LaneTables() {
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    bits32[lane] = uint32_t(1) << lane;
    bits64[2 * lane] = bits64[2 * lane + 1] = uint32_t(1) << lane;
  }
  for (unsigned i = 0; i < ramps; ++i)
    for (unsigned lane = 0; lane < warp_size; ++lane)
      ramp64[i][lane] = ramp32[i][lane] = lane << i;
  for (unsigned lane = 0; lane < 16; ++lane)
    bits16[lane] = static_cast<uint16_t>(1u << lane);
}
const LaneTables& LaneTables::get() {
  static const LaneTables made;
  return made;
}

DirectTable::DirectTable() {
  for (const Operation& operation : OperationTable::get().rows())
    if (!operation.special && operation.destinations == 1) by_pattern_[operation.pattern].push_back(operation.handler);
  add_direct_integers(*this);
  add_direct_widths(*this);
  add_direct_comparisons(*this);
  add_direct_floats(*this);
}

void DirectTable::add(std::string_view pattern, const DirectRow& row) {
  const auto found = by_pattern_.find(pattern);
  if (found == by_pattern_.end()) {
    unknown_.push_back(pattern);
    return;
  }
  for (Handler handler : found->second)
    rows_[handler] = row;
}

const DirectTable& DirectTable::get() {
  static const DirectTable table;
  return table;
}

namespace {

// --- sums, logic ---

void add_sums(DirectTable& table) {
  table.row("add.{u16|s16}", 16, [](RowCode& x) { x.op(vpaddw); });
  table.row("add.{u32|s32}", 32, [](RowCode& x) { x.op(vpaddd); });
  table.row("add.{u64|s64}", 64, [](RowCode& x) { x.op(vpaddq); });
  table.row("sub.{u16|s16}", 16, [](RowCode& x) { x.op(vpsubw); });
  table.row("sub.{u32|s32}", 32, [](RowCode& x) { x.op(vpsubd); });
  table.row("sub.{u64|s64}", 64, [](RowCode& x) { x.op(vpsubq); });
  const DirectBuild zero = [](RowCode& x) { x.code.vector(vpxor, y8, y8, y8); };
  table.row(
      "neg.s16", 16, [](RowCode& x) { x.code.vector(vpsubw, y0, y8, y0); }, zero);
  table.row(
      "neg.s32", 32, [](RowCode& x) { x.code.vector(vpsubd, y0, y8, y0); }, zero);
  table.row(
      "neg.s64", 64, [](RowCode& x) { x.code.vector(vpsubq, y0, y8, y0); }, zero);
  table.row("abs.s16", 16, [](RowCode& x) { x.one(vpabsw); });
  table.row("abs.s32", 32, [](RowCode& x) { x.one(vpabsd); });
}

void ones_in_y8(RowCode& x) {
  x.code.vector(vpcmpeqd, y8, y8, y8);
}

void add_logic(DirectTable& table) {
  for (const auto& [bits, conjunction, disjunction, difference, inversion] :
       {std::tuple{16, "and.b16", "or.b16", "xor.b16", "not.b16"},
        {32, "and.b32", "or.b32", "xor.b32", "not.b32"},
        {64, "and.b64", "or.b64", "xor.b64", "not.b64"}}) {
    const auto width = static_cast<unsigned>(bits);
    table.row(conjunction, width, [](RowCode& x) { x.op(vpand); });
    table.row(disjunction, width, [](RowCode& x) { x.op(vpor); });
    table.row(difference, width, [](RowCode& x) { x.op(vpxor); });
    table.row(
        inversion, width, [](RowCode& x) { x.code.vector(vpxor, y0, y0, y8); }, ones_in_y8);
  }
}

// --- products ---

void wide_product(RowCode& x, VectorOp product) {
  x.one(vpmovzxdq);
  x.code.unary(vpmovzxdq, y1, y1);
  x.code.vector(product, y0, y0, y1);
}
// a * b of 64 bits: a.low * b.low + (a.high * b.low + a.low * b.high << 32).
void product64(RowCode& x) {
  x.code.vector_shift(shift_q, shift_right, y4, y0, 32);
  x.code.vector(vpmuludq, y4, y4, y1);
  x.code.vector_shift(shift_q, shift_right, y5, y1, 32);
  x.code.vector(vpmuludq, y5, y5, y0);
  x.code.vector(vpaddq, y4, y4, y5);
  x.code.vector_shift(shift_q, shift_left, y4, y4, 32);
  x.code.vector(vpmuludq, y0, y0, y1);
  x.code.vector(vpaddq, y0, y0, y4);
}
// The high halves of products of 32 bits: of even lanes, then of odd ones.
void high_product(RowCode& x, VectorOp product) {
  x.code.vector(product, y4, y0, y1);
  x.code.vector_shift(shift_q, shift_right, y4, y4, 32);
  x.code.vector_shift(shift_q, shift_right, y0, y0, 32);
  x.code.vector_shift(shift_q, shift_right, y1, y1, 32);
  x.code.vector(product, y0, y0, y1);
  x.code.vector(vpblendd, y0, y4, y0, uint8_t(0xaa));
}

void add_products(DirectTable& table) {
  table.row("mul.lo.{u16|s16}", 16, [](RowCode& x) { x.op(vpmullw); });
  table.row("mul.lo.{u32|s32}", 32, [](RowCode& x) { x.op(vpmulld); });
  table.row("mul.lo.{u64|s64}", 64, product64);
  table.row("mul.hi.u16", 16, [](RowCode& x) { x.op(vpmulhuw); });
  table.row("mul.hi.s16", 16, [](RowCode& x) { x.op(vpmulhw); });
  table.row("mul.hi.u32", 32, [](RowCode& x) { high_product(x, vpmuludq); });
  table.row("mul.hi.s32", 32, [](RowCode& x) { high_product(x, vpmuldq); });
  table.row("mul.wide.u32", 64, [](RowCode& x) { wide_product(x, vpmuludq); });
  table.row("mul.wide.s32", 64, [](RowCode& x) { wide_product(x, vpmuldq); });
  table.row("mad.lo.{u16|s16}", 16, [](RowCode& x) {
    x.op(vpmullw);
    x.code.vector(vpaddw, y0, y0, y2);
  });
  table.row("mad.lo.{u32|s32}", 32, [](RowCode& x) {
    x.op(vpmulld);
    x.code.vector(vpaddd, y0, y0, y2);
  });
  table.row("mad.lo.{u64|s64}", 64, [](RowCode& x) {
    product64(x);
    x.code.vector(vpaddq, y0, y0, y2);
  });
  table.row("mad.wide.u32", 64, [](RowCode& x) {
    wide_product(x, vpmuludq);
    x.code.vector(vpaddq, y0, y0, y2);
  });
  table.row("mad.wide.s32", 64, [](RowCode& x) {
    wide_product(x, vpmuldq);
    x.code.vector(vpaddq, y0, y0, y2);
  });
}

void add_extremes(DirectTable& table) {
  table.row("min.u16", 16, [](RowCode& x) { x.op(vpminuw); });
  table.row("min.s16", 16, [](RowCode& x) { x.op(vpminsw); });
  table.row("max.u16", 16, [](RowCode& x) { x.op(vpmaxuw); });
  table.row("max.s16", 16, [](RowCode& x) { x.op(vpmaxsw); });
  table.row("min.u32", 32, [](RowCode& x) { x.op(vpminud); });
  table.row("min.s32", 32, [](RowCode& x) { x.op(vpminsd); });
  table.row("max.u32", 32, [](RowCode& x) { x.op(vpmaxud); });
  table.row("max.s32", 32, [](RowCode& x) { x.op(vpmaxsd); });
  table.row("min.s64", 64, [](RowCode& x) {
    x.code.vector(vpcmpgtq, y4, y0, y1);
    x.code.blend(vpblendvb, y0, y0, y1, y4);
  });
  table.row("max.s64", 64, [](RowCode& x) {
    x.code.vector(vpcmpgtq, y4, y0, y1);
    x.code.blend(vpblendvb, y0, y1, y0, y4);
  });
}

// --- shifts. Amounts of as many bits as the value has, or more, shift everything out, as in PTX. ---

void wide_amount(RowCode& x) {
  x.code.unary(vpmovzxdq, y1, y1);
}
void amounts_in_y8_y9(RowCode& x) {
  x.code.unary(vpbroadcastd, y8, Place{tables, offsetof(LaneTables, small) + 4});
  x.code.unary(vpbroadcastd, y9, Place{tables, offsetof(LaneTables, small) + 8});
}
// y2: the amount, made 0 to 31 or 0 to 32. y4: 32 less that.
void funnel_amounts(RowCode& x, bool wraps) {
  if (wraps)
    x.code.vector(vpand, y2, y2, y8);
  else
    x.code.vector(vpminud, y2, y2, y9);
  x.code.vector(vpsubd, y4, y9, y2);
}
void funnel(RowCode& x, bool wraps, bool left) {
  funnel_amounts(x, wraps);
  x.code.vector(vpsrlvd, y0, y0, left ? y4 : y2);
  x.code.vector(vpsllvd, y1, y1, left ? y2 : y4);
  x.op(vpor);
}

void add_shifts(DirectTable& table) {
  table.row("shl.b32", 32, [](RowCode& x) { x.op(vpsllvd); });
  table.row("shr.{b32|u32}", 32, [](RowCode& x) { x.op(vpsrlvd); });
  table.row("shr.s32", 32, [](RowCode& x) { x.op(vpsravd); });
  table.row("shl.b64", 64, [](RowCode& x) {
    wide_amount(x);
    x.op(vpsllvq);
  });
  table.row("shr.{b64|u64}", 64, [](RowCode& x) {
    wide_amount(x);
    x.op(vpsrlvq);
  });
  table.row(
      "shf.l.wrap.b32", 32, [](RowCode& x) { funnel(x, true, true); }, amounts_in_y8_y9);
  table.row(
      "shf.r.wrap.b32", 32, [](RowCode& x) { funnel(x, true, false); }, amounts_in_y8_y9);
  table.row(
      "shf.l.clamp.b32", 32, [](RowCode& x) { funnel(x, false, true); }, amounts_in_y8_y9);
  table.row(
      "shf.r.clamp.b32", 32, [](RowCode& x) { funnel(x, false, false); }, amounts_in_y8_y9);
}

} // namespace

void add_direct_integers(DirectTable& table) {
  add_sums(table);
  add_logic(table);
  add_products(table);
  add_extremes(table);
  add_shifts(table);
}

} // namespace ptxrewrite::emulator::generated
