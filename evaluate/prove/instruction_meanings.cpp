// See instruction_meanings.h. Empty without Z3.
#ifdef PTXREWRITE_HAS_Z3
#include "evaluate/prove/instruction_meanings.h"

#include <functional>
#include <map>
#include <string>

namespace ptxrewrite::prove {

namespace {

using z3::expr;
using Operands = std::vector<expr>;

constexpr unsigned word = 32;

expr number(const expr& like, uint64_t value) {
  return like.ctx().bv_val(value, like.get_sort().bv_size());
}
expr byte(const expr& x, unsigned index) {
  return x.extract(8 * index + 7, 8 * index);
}
expr extended(const expr& x, bool is_signed) {
  const unsigned more = word - x.get_sort().bv_size();
  return is_signed ? z3::sext(x, more) : z3::zext(x, more);
}
expr smaller(const expr& x, const expr& y) {
  return z3::ite(z3::ult(x, y), x, y);
}
// The absolute difference of two numbers, if it fits a word.
expr difference(const expr& x, const expr& y, bool is_signed) {
  return z3::ite(is_signed ? x > y : z3::ugt(x, y), x - y, y - x);
}

expr permuted(const Operands& from) {
  const expr both = z3::concat(from[1], from[0]), &selector = from[2];
  std::optional<expr> result;
  for (unsigned i = 0; i < 4; ++i) {
    const expr digit = selector.extract(4 * i + 3, 4 * i);
    const expr place = z3::zext(digit.extract(2, 0), 61) * both.ctx().bv_val(8, 64);
    const expr chosen = z3::lshr(both, place).extract(7, 0);
    const expr sign = z3::sext(chosen.extract(7, 7), 7);
    const expr one = z3::ite(digit.extract(3, 3) == both.ctx().bv_val(1, 1), sign, chosen);
    result = result ? z3::concat(one, *result) : one;
  }
  return *result;
}

expr count_of_ones(const Operands& from) {
  expr sum = number(from[0], 0);
  for (unsigned i = 0; i < word; ++i)
    sum = sum + z3::zext(from[0].extract(i, i), word - 1);
  return sum;
}

// Position and length are taken modulo 256; bits above the register are copies of its sign, or 0.
expr field(const Operands& from, bool is_signed) {
  const expr place = z3::zext(from[1].extract(7, 0), 24), length = z3::zext(from[2].extract(7, 0), 24);
  const expr moved = is_signed ? z3::ashr(from[0], place) : z3::lshr(from[0], place);
  const expr unused = number(length, word) - smaller(length, number(length, word));
  const expr cut = z3::shl(moved, unused);
  if (!is_signed) return z3::ite(length == number(length, 0), number(length, 0), z3::lshr(cut, unused));
  // The sign is that of the field's last bit, or of the register if the field extends beyond it.
  return z3::ite(length == number(length, 0), number(length, 0), z3::ashr(cut, unused));
}

// bfi: inserts the low bits of from[0] into from[1].
expr inserted(const Operands& from) {
  const expr place = z3::zext(from[2].extract(7, 0), 24), length = z3::zext(from[3].extract(7, 0), 24);
  const expr ones = z3::ite(z3::uge(length, number(length, word)), number(length, 0xffffffff),
                            z3::shl(number(length, 1), length) - number(length, 1));
  const expr mask = z3::shl(ones, place);
  return (from[1] & ~mask) | (z3::shl(from[0], place) & mask);
}

expr dot_of_bytes(const Operands& from, bool first_signed, bool second_signed) {
  expr sum = from[2];
  for (unsigned i = 0; i < 4; ++i)
    sum = sum + extended(byte(from[0], i), first_signed) * extended(byte(from[1], i), second_signed);
  return sum;
}

expr logic(const Operands& from) {
  const expr &a = from[0], &b = from[1], &c = from[2];
  expr result = number(a, 0);
  for (unsigned row = 0; row < 8; ++row) {
    const expr here = (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
    const expr bit = z3::sext(from[3].extract(row, row), word - 1);
    result = result | (here & bit);
  }
  return result;
}

expr funnel(const Operands& from, bool to_left, bool wraps) {
  const expr limit = number(from[2], word);
  const expr amount = wraps ? from[2] & number(from[2], word - 1) : smaller(from[2], limit);
  const expr both = z3::concat(from[1], from[0]), distance = z3::zext(amount, word);
  return to_left ? z3::shl(both, distance).extract(63, 32) : z3::lshr(both, distance).extract(31, 0);
}

// vabsdiff4 of unsigned bytes; `adds`: their sum plus the third operand, otherwise each in its byte.
expr differences_of_bytes(const Operands& from, bool adds) {
  expr sum = from[2];
  std::optional<expr> bytes;
  for (unsigned i = 0; i < 4; ++i) {
    const expr one = difference(byte(from[0], i), byte(from[1], i), false);
    sum = sum + z3::zext(one, 24);
    bytes = bytes ? z3::concat(one, *bytes) : one;
  }
  return adds ? sum : *bytes;
}

// cvt.pack.sat.u8.s32.b32: the second operand's byte is the lowest, followed by the first operand's; the third one's
// low half is above both.
expr saturated_pair(const Operands& from) {
  const auto saturated = [](const expr& x) {
    const expr most = number(x, 255), least = number(x, 0);
    return z3::ite(x > most, most, z3::ite(x < least, least, x)).extract(7, 0);
  };
  return z3::concat(from[2].extract(15, 0), z3::concat(saturated(from[0]), saturated(from[1])));
}

// Two 16-bit integers in a word.
expr halves_of(const Operands& from, const std::function<expr(const expr&, const expr&)>& of) {
  const auto half = [](const expr& x, unsigned index) { return x.extract(16 * index + 15, 16 * index); };
  return z3::concat(of(half(from[0], 1), half(from[1], 1)), of(half(from[0], 0), half(from[1], 0)));
}

// szext.clamp: the given number of low bits, extended.
expr low_bits(const Operands& from, bool is_signed) {
  const expr unused = number(from[1], word) - smaller(from[1], number(from[1], word));
  const expr cut = z3::shl(from[0], unused);
  const expr all = is_signed ? z3::ashr(cut, unused) : z3::lshr(cut, unused);
  return z3::ite(from[1] == number(from[1], 0), number(from[1], 0), all);
}

struct Meaning {
  size_t operands;
  std::function<expr(const Operands&)> of;
};

const std::map<std::string, Meaning, std::less<>>& meanings() {
  static const std::map<std::string, Meaning, std::less<>> table = [] {
    std::map<std::string, Meaning, std::less<>> rows;
    rows["prmt.b32"] = {3, permuted};
    rows["popc.b32"] = {1, count_of_ones};
    rows["bfe.u32"] = {3, [](const Operands& from) { return field(from, false); }};
    rows["bfe.s32"] = {3, [](const Operands& from) { return field(from, true); }};
    rows["bfi.b32"] = {4, inserted};
    rows["abs.s32"] = {1,
                       [](const Operands& from) { return z3::ite(from[0] < number(from[0], 0), -from[0], from[0]); }};
    rows["sad.s32"] = {3, [](const Operands& from) { return difference(from[0], from[1], true) + from[2]; }};
    rows["sad.u32"] = {3, [](const Operands& from) { return difference(from[0], from[1], false) + from[2]; }};
    for (bool first : {false, true})
      for (bool second : {false, true})
        rows[std::string("dp4a.") + (first ? "s32" : "u32") + (second ? ".s32" : ".u32")] = {
            3, [=](const Operands& from) { return dot_of_bytes(from, first, second); }};
    rows["lop3.b32"] = {4, logic};
    for (bool left : {false, true})
      for (bool wraps : {false, true})
        rows[std::string("shf.") + (left ? "l" : "r") + (wraps ? ".wrap.b32" : ".clamp.b32")] = {
            3, [=](const Operands& from) { return funnel(from, left, wraps); }};
    rows["vabsdiff4.u32.u32.u32"] = {3, [](const Operands& from) { return differences_of_bytes(from, false); }};
    rows["vabsdiff4.u32.u32.u32.add"] = {3, [](const Operands& from) { return differences_of_bytes(from, true); }};
    rows["cvt.pack.sat.u8.s32.b32"] = {3, saturated_pair};
    for (const bool is_signed : {false, true}) {
      const std::string type = is_signed ? ".s16x2" : ".u16x2";
      const auto below = [=](const expr& x, const expr& y) { return is_signed ? x < y : z3::ult(x, y); };
      rows["add" + type] = {
          2, [](const Operands& from) { return halves_of(from, [](const expr& x, const expr& y) { return x + y; }); }};
      rows["min" + type] = {2, [=](const Operands& from) {
                              return halves_of(
                                  from, [&](const expr& x, const expr& y) { return z3::ite(below(x, y), x, y); });
                            }};
      rows["max" + type] = {2, [=](const Operands& from) {
                              return halves_of(
                                  from, [&](const expr& x, const expr& y) { return z3::ite(below(x, y), y, x); });
                            }};
    }
    rows["szext.clamp.u32"] = {2, [](const Operands& from) { return low_bits(from, false); }};
    rows["szext.clamp.s32"] = {2, [](const Operands& from) { return low_bits(from, true); }};
    return rows;
  }();
  return table;
}

const Meaning* find_meaning(std::string_view name) {
  constexpr std::string_view first_result = ".0";
  if (!name.ends_with(first_result)) return nullptr;
  name.remove_suffix(first_result.size());
  const auto row = meanings().find(name);
  return row == meanings().end() ? nullptr : &row->second;
}

} // namespace

bool has_meaning(std::string_view name) {
  return find_meaning(name) != nullptr;
}

std::optional<expr> meaning_of(std::string_view name, const Operands& operands) {
  const Meaning* meaning = find_meaning(name);
  if (!meaning || meaning->operands != operands.size()) return std::nullopt;
  Operands words;
  for (const expr& operand : operands) {
    const unsigned width = operand.get_sort().bv_size();
    words.push_back(width < word ? z3::zext(operand, word - width) : operand.extract(word - 1, 0));
  }
  return meaning->of(words);
}

} // namespace ptxrewrite::prove
#endif
