#include "tests/rules/statements.h"

#include <functional>
#include <map>

namespace ptxrewrite::tests {

namespace {

using z3::expr;
using Operands = std::vector<expr>;

unsigned width(const expr& a) {
  return a.get_sort().bv_size();
}
expr number(const expr& like, uint64_t value) {
  return like.ctx().bv_val(value, width(like));
}
expr resized(const expr& a, unsigned to) {
  return width(a) >= to ? a.extract(to - 1, 0) : z3::zext(a, to - width(a));
}
expr bit(const expr& a, unsigned index) {
  return a.extract(index, index);
}
expr flag(const expr& condition) {
  return z3::ite(condition, condition.ctx().bv_val(1, 1), condition.ctx().bv_val(0, 1));
}

// 9.7.8.8, 9.7.8.9: amounts above the width are clamped to the width.
expr shift_left(const expr& a, const expr& amount) {
  const unsigned n = width(a);
  return z3::ite(z3::uge(amount, number(amount, n)), number(a, 0), z3::shl(a, resized(amount, n)));
}
expr shift_right(const expr& a, const expr& amount) {
  const unsigned n = width(a);
  return z3::ite(z3::uge(amount, number(amount, n)), number(a, 0), z3::lshr(a, resized(amount, n)));
}
expr shift_right_signed(const expr& a, const expr& amount) {
  const unsigned n = width(a);
  const expr last = number(amount, n - 1);
  return z3::ashr(a, resized(z3::ite(z3::ugt(amount, last), last, amount), n));
}

// 9.7.8.7
expr funnel(const Operands& x, bool left, bool wraps) {
  const expr n = wraps ? x[2] & number(x[2], 31) : z3::ite(z3::ult(x[2], number(x[2], 32)), x[2], number(x[2], 32));
  const expr both = z3::concat(x[1], x[0]), amount = z3::zext(n, 32);
  return left ? z3::shl(both, amount).extract(63, 32) : z3::lshr(both, amount).extract(31, 0);
}

// 9.7.1.19, bit by bit as the manual's loop
expr extracted_field(const Operands& x, bool is_signed) {
  const expr& a = x[0];
  const unsigned n = width(a);
  const expr position = x[1] & number(x[1], 0xff), length = x[2] & number(x[2], 0xff);
  const expr last = position + length - number(length, 1), top = number(length, n - 1);
  const expr fill_at = z3::ite(z3::ugt(last, top), top, last);
  expr fill = a.ctx().bv_val(0, 1);
  if (is_signed) fill = z3::ite(length == number(length, 0), fill, z3::lshr(a, resized(fill_at, n)).extract(0, 0));
  expr result = a.ctx().bv_val(0, 1);
  for (unsigned i = 0; i < n; ++i) {
    const expr from = position + number(position, i);
    const expr inside = z3::ult(number(length, i), length) && z3::ule(from, top);
    const expr one = z3::ite(inside, z3::lshr(a, resized(from, n)).extract(0, 0), fill);
    result = i == 0 ? one : z3::concat(one, result);
  }
  return result;
}

// 9.7.1.20
expr inserted_field(const Operands& x) {
  const expr &a = x[0], &b = x[1];
  const unsigned n = width(a);
  const expr position = x[2] & number(x[2], 0xff), length = x[3] & number(x[3], 0xff);
  expr result = bit(b, 0);
  for (unsigned i = 0; i < n; ++i) {
    const expr index = number(position, i);
    const expr inside = z3::uge(index, position) && z3::ult(index, position + length);
    const expr one = z3::ite(inside, z3::lshr(a, resized(index - position, n)).extract(0, 0), bit(b, i));
    result = i == 0 ? one : z3::concat(one, result);
  }
  return result;
}

// 9.7.9.7, default mode
expr permuted(const Operands& x) {
  const expr both = z3::concat(x[1], x[0]);
  expr result = x[0];
  for (unsigned i = 0; i < 4; ++i) {
    const expr digit = x[2].extract(4 * i + 3, 4 * i);
    const expr place = z3::zext(digit & digit.ctx().bv_val(7, 4), 60) * both.ctx().bv_val(8, 64);
    const expr byte = z3::lshr(both, place).extract(7, 0);
    const expr sign = z3::sext(bit(byte, 7), 7);
    const expr one = z3::ite(bit(digit, 3) == digit.ctx().bv_val(1, 1), sign, byte);
    result = i == 0 ? one : z3::concat(one, result);
  }
  return result;
}

expr smaller(const expr& a, const expr& b, bool is_signed) {
  return z3::ite(is_signed ? z3::slt(a, b) : z3::ult(a, b), a, b);
}
expr larger(const expr& a, const expr& b, bool is_signed) {
  return z3::ite(is_signed ? z3::sgt(a, b) : z3::ugt(a, b), a, b);
}
// 9.7.1.7
expr absolute_difference(const Operands& x, bool is_signed) {
  const expr below = is_signed ? z3::slt(x[0], x[1]) : z3::ult(x[0], x[1]);
  return x[2] + z3::ite(below, x[1] - x[0], x[0] - x[1]);
}

// 9.7.3.11, 9.7.3.12: a NaN operand is ignored, -0 is below +0.
expr is_nan(const expr& a) {
  return z3::ugt(a & number(a, 0x7fffffff), number(a, 0x7f800000));
}
expr order_of_float(const expr& a) {
  return z3::ite(bit(a, 31) == a.ctx().bv_val(1, 1), ~a, a | number(a, 0x80000000));
}
expr float_extreme(const Operands& x, bool is_minimum) {
  expr result = number(x[0], 0x7fffffff);
  for (const expr& one : x) {
    const expr order = order_of_float(one), so_far = order_of_float(result);
    const expr better = is_minimum ? z3::ult(order, so_far) : z3::ugt(order, so_far);
    result = z3::ite(is_nan(one), result, z3::ite(is_nan(result) || better, one, result));
  }
  return result;
}

expr byte_of(const expr& a, unsigned index, bool is_signed) {
  const expr byte = a.extract(8 * index + 7, 8 * index);
  return is_signed ? z3::sext(byte, 24) : z3::zext(byte, 24);
}
// 9.7.1.23
expr dot_product(const Operands& x, bool a_signed, bool b_signed) {
  expr sum = x[2];
  for (unsigned i = 0; i < 4; ++i)
    sum = sum + byte_of(x[0], i, a_signed) * byte_of(x[1], i, b_signed);
  return sum;
}

// 9.7.18: of four unsigned bytes each; all four are written, or summed up.
expr byte_difference(const Operands& x, unsigned index) {
  const expr a = byte_of(x[0], index, false), b = byte_of(x[1], index, false);
  return z3::ite(z3::ult(a, b), b - a, a - b);
}
expr byte_differences(const Operands& x) {
  expr result = byte_difference(x, 0).extract(7, 0);
  for (unsigned i = 1; i < 4; ++i)
    result = z3::concat(byte_difference(x, i).extract(7, 0), result);
  return result;
}
expr sum_of_byte_differences(const Operands& x) {
  expr sum = x[2];
  for (unsigned i = 0; i < 4; ++i)
    sum = sum + byte_difference(x, i);
  return sum;
}

// 9.7.1.24: halves of the first by the lower or the upper two bytes of the second
expr half_product(const Operands& x, bool is_signed, bool upper) {
  expr sum = x[2];
  for (unsigned i = 0; i < 2; ++i) {
    const expr half = x[0].extract(16 * i + 15, 16 * i);
    sum = sum + (is_signed ? z3::sext(half, 16) : z3::zext(half, 16)) * byte_of(x[1], i + (upper ? 2 : 0), is_signed);
  }
  return sum;
}

expr wide_product(const Operands& x, bool is_signed) {
  return is_signed ? z3::sext(x[0], 32) * z3::sext(x[1], 32) : z3::zext(x[0], 32) * z3::zext(x[1], 32);
}

using Statement = std::function<expr(const Operands&)>;

std::map<std::string, Statement> comparisons() {
  std::map<std::string, Statement> table;
  table["setp.lt.s32"] = [](const Operands& x) { return flag(z3::slt(x[0], x[1])); };
  table["setp.le.s32"] = [](const Operands& x) { return flag(z3::sle(x[0], x[1])); };
  table["setp.gt.s32"] = [](const Operands& x) { return flag(z3::sgt(x[0], x[1])); };
  table["setp.ge.s32"] = [](const Operands& x) { return flag(z3::sge(x[0], x[1])); };
  table["setp.lt.u32"] = [](const Operands& x) { return flag(z3::ult(x[0], x[1])); };
  table["setp.le.u32"] = [](const Operands& x) { return flag(z3::ule(x[0], x[1])); };
  table["setp.gt.u32"] = [](const Operands& x) { return flag(z3::ugt(x[0], x[1])); };
  table["setp.ge.u32"] = [](const Operands& x) { return flag(z3::uge(x[0], x[1])); };
  for (const char* name : {"setp.eq.s32", "setp.eq.u32", "setp.eq.b32"})
    table[name] = [](const Operands& x) { return flag(x[0] == x[1]); };
  for (const char* name : {"setp.ne.s32", "setp.ne.u32", "setp.ne.b32"})
    table[name] = [](const Operands& x) { return flag(x[0] != x[1]); };
  for (const char* name : {"selp.b32", "selp.u32", "selp.s32"})
    table[name] = [](const Operands& x) { return z3::ite(x[2] == x[2].ctx().bv_val(1, 1), x[0], x[1]); };
  return table;
}

void add_arithmetic(std::map<std::string, Statement>& table) {
  for (const char* type : {"s32", "u32", "s64", "u64"}) {
    const std::string t = type;
    table["add." + t] = [](const Operands& x) { return x[0] + x[1]; };
    table["sub." + t] = [](const Operands& x) { return x[0] - x[1]; };
    table["mul.lo." + t] = [](const Operands& x) { return x[0] * x[1]; };
    table["mad.lo." + t] = [](const Operands& x) { return x[0] * x[1] + x[2]; };
  }
  for (const bool is_signed : {false, true}) {
    const std::string t = is_signed ? "s32" : "u32";
    table["mul.wide." + t] = [=](const Operands& x) { return wide_product(x, is_signed); };
    table["mad.wide." + t] = [=](const Operands& x) { return wide_product(x, is_signed) + x[2]; };
    table["min." + t] = [=](const Operands& x) { return smaller(x[0], x[1], is_signed); };
    table["max." + t] = [=](const Operands& x) { return larger(x[0], x[1], is_signed); };
    table["sad." + t] = [=](const Operands& x) { return absolute_difference(x, is_signed); };
    for (const bool other_signed : {false, true})
      table["dp4a." + t + (other_signed ? ".s32" : ".u32")] = [=](const Operands& x) {
        return dot_product(x, is_signed, other_signed);
      };
    for (const bool upper : {false, true})
      table[std::string(upper ? "dp2a.hi." : "dp2a.lo.") + t + "." + t] = [=](const Operands& x) {
        return half_product(x, is_signed, upper);
      };
    for (unsigned i = 0; i < 4; ++i)
      table["byte" + std::to_string(i) + "." + t] = [=](const Operands& x) { return byte_of(x[0], i, is_signed); };
  }
  table["vabsdiff4.u32.u32.u32"] = byte_differences;
  table["vabsdiff4.u32.u32.u32.add"] = sum_of_byte_differences;
  table["mov.b32"] = [](const Operands& x) { return x[0]; };
  table["min.relu.s32"] = [](const Operands& x) { return larger(smaller(x[0], x[1], true), number(x[0], 0), true); };
  table["max.relu.s32"] = [](const Operands& x) { return larger(larger(x[0], x[1], true), number(x[0], 0), true); };
  table["neg.s32"] = [](const Operands& x) { return -x[0]; };
  table["abs.s32"] = [](const Operands& x) { return z3::ite(z3::slt(x[0], number(x[0], 0)), -x[0], x[0]); };
  table["min.f32"] = [](const Operands& x) { return float_extreme(x, true); };
  table["max.f32"] = [](const Operands& x) { return float_extreme(x, false); };
  table["popc.b32"] = [](const Operands& x) { return population(x[0]); };
}

void add_bits(std::map<std::string, Statement>& table) {
  for (const char* type : {"b32", "b64"}) {
    const std::string t = type;
    table["and." + t] = [](const Operands& x) { return x[0] & x[1]; };
    table["or." + t] = [](const Operands& x) { return x[0] | x[1]; };
    table["xor." + t] = [](const Operands& x) { return x[0] ^ x[1]; };
    table["not." + t] = [](const Operands& x) { return ~x[0]; };
    table["shl." + t] = [](const Operands& x) { return shift_left(x[0], x[1]); };
  }
  for (unsigned i = 0; i < 4; ++i)
    table["byte" + std::to_string(i) + ".u16"] = [=](const Operands& x) {
      return byte_of(x[0], i, false).extract(15, 0);
    };
  for (const char* name : {"add.s16", "add.u16"})
    table[name] = [](const Operands& x) { return x[0] + resized(x[1], width(x[0])); };
  for (const bool is_signed : {false, true}) {
    const std::string t = is_signed ? "s16" : "u16";
    table["min." + t] = [=](const Operands& x) { return smaller(x[0], x[1], is_signed); };
    table["max." + t] = [=](const Operands& x) { return larger(x[0], x[1], is_signed); };
  }
  table["and.b16"] = [](const Operands& x) { return x[0] & resized(x[1], 16); };
  table["shl.b16"] = [](const Operands& x) { return shift_left(x[0], resized(x[1], 16)); };
  table["shr.u16"] = [](const Operands& x) { return shift_right(x[0], resized(x[1], 16)); };
  for (const char* name : {"shr.u32", "shr.b32", "shr.u64", "shr.b64"})
    table[name] = [](const Operands& x) { return shift_right(x[0], x[1]); };
  table["shr.s32"] = table["shr.s64"] = [](const Operands& x) { return shift_right_signed(x[0], x[1]); };
  for (const bool left : {false, true})
    for (const bool wraps : {false, true})
      table[std::string("shf.") + (left ? "l" : "r") + (wraps ? ".wrap" : ".clamp") + ".b32"] = [=](const Operands& x) {
        return funnel(x, left, wraps);
      };
  table["bfe.u32"] = [](const Operands& x) { return extracted_field(x, false); };
  table["bfe.s32"] = [](const Operands& x) { return extracted_field(x, true); };
  table["bfi.b32"] = inserted_field;
  table["prmt.b32"] = permuted;
  table["lop3.b32"] = [](const Operands& x) { return stated_lop3(x[0], x[1], x[2], x[3]); };
  // 9.7.1.21: length 0 gives 0, 32 or more the source.
  table["szext.clamp.s32"] = [](const Operands& x) {
    return z3::ite(x[1] == number(x[1], 0), number(x[0], 0), sign_extension(x[0], x[1]));
  };
  table["szext.clamp.u32"] = [](const Operands& x) { return x[0] & low_ones(x[1]); };
  // 9.7.1.22
  table["bmsk.clamp.b32"] = [](const Operands& x) { return shift_left(low_ones(x[1]), x[0]); };
}

// 9.7.9.22: the two saturated numbers, below c's lower half.
expr packed_saturated(const Operands& x) {
  const auto saturated = [](const expr& a) {
    return smaller(larger(a, number(a, 0), true), number(a, 255), true).extract(7, 0);
  };
  return z3::concat(x[2].extract(15, 0), z3::concat(saturated(x[0]), saturated(x[1])));
}

// 9.7.9.21: rounds towards zero; clamps to the range, NaN gives 0.
expr cut_float(const expr& a, bool is_signed) {
  const expr exponent = z3::zext(a.extract(30, 23), 24),
             wide = z3::zext(z3::concat(a.ctx().bv_val(1, 1), a.extract(22, 0)), 40);
  const expr places = z3::zext(exponent - number(exponent, 127), 32);
  const expr moved = z3::lshr(z3::shl(wide, places), number(wide, 23)).extract(31, 0);
  const bool negative_fits = is_signed;
  const expr negative = bit(a, 31) == a.ctx().bv_val(1, 1);
  const expr magnitude = z3::ite(z3::ult(exponent, number(exponent, 127)), number(a, 0), moved);
  const expr too_large = z3::uge(exponent, number(exponent, 127 + (is_signed ? 31 : 32)));
  const expr positive_result = z3::ite(too_large, number(a, is_signed ? 0x7fffffff : 0xffffffff), magnitude);
  const expr negative_result = negative_fits ? z3::ite(too_large, number(a, 0x80000000), -magnitude) : number(a, 0);
  return z3::ite(is_nan(a), number(a, 0), z3::ite(negative, negative_result, positive_result));
}

void add_conversions(std::map<std::string, Statement>& table) {
  table["cvt.pack.sat.u8.s32.b32"] = packed_saturated;
  table["cvt.rzi.u32.f32"] = [](const Operands& x) { return cut_float(x[0], false); };
  table["cvt.rzi.s32.f32"] = [](const Operands& x) { return cut_float(x[0], true); };
  table["cvt.u32.u16"] = [](const Operands& x) { return z3::zext(x[0], 16); };
  table["cvt.s32.s16"] = [](const Operands& x) { return z3::sext(x[0], 16); };
  table["cvt.u16.u32"] = [](const Operands& x) { return x[0].extract(15, 0); };
  table["cvt.u32.u8"] = [](const Operands& x) { return byte_of(x[0], 0, false); };
  table["cvt.s32.s8"] = [](const Operands& x) { return byte_of(x[0], 0, true); };
  table["cvt.u64.u32"] = [](const Operands& x) { return z3::zext(x[0], 32); };
  table["cvt.s64.s32"] = [](const Operands& x) { return z3::sext(x[0], 32); };
  table["low.b64"] = [](const Operands& x) { return x[0].extract(31, 0); };
  table["high.b64"] = [](const Operands& x) { return x[0].extract(63, 32); };
  table["pack.b64"] = [](const Operands& x) { return z3::concat(x[1], x[0]); };
}

const std::map<std::string, Statement>& all_statements() {
  static const std::map<std::string, Statement> table = [] {
    std::map<std::string, Statement> list = comparisons();
    add_arithmetic(list);
    add_bits(list);
    add_conversions(list);
    return list;
  }();
  return table;
}

} // namespace

expr stated(const std::string& mnemonic, const Operands& operands) {
  return all_statements().at(mnemonic)(operands);
}

bool is_stated(const std::string& mnemonic) {
  return all_statements().contains(mnemonic);
}

expr stated_lop3(const expr& a, const expr& b, const expr& c, const expr& table) {
  expr result = number(a, 0);
  for (unsigned row = 0; row < 8; ++row) {
    const expr here = (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
    result = result | (z3::sext(bit(table, row), width(a) - 1) & here);
  }
  return result;
}

expr sign_extension(const expr& a, const expr& bits) {
  const expr unused = number(bits, 32) - bits;
  return z3::ite(z3::uge(bits, number(bits, 32)), a, z3::ashr(z3::shl(a, unused), unused));
}

expr low_ones(const expr& count) {
  return z3::ite(z3::uge(count, number(count, 32)), number(count, UINT32_MAX),
                 z3::shl(number(count, 1), count) - number(count, 1));
}

expr population(const expr& a) {
  constexpr unsigned count_bits = 6;
  expr sum = a.ctx().bv_val(0, count_bits);
  for (unsigned i = 0; i < 32; ++i)
    sum = sum + z3::zext(bit(a, i), count_bits - 1);
  return z3::zext(sum, width(a) - count_bits);
}

} // namespace ptxrewrite::tests
