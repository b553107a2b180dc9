// Integer arithmetic, comparison and selection (PTX ISA 9.7.1, 9.7.2, 9.7.6).
#include "tests/fuzz/kernels/operations/operation_rows.h"

namespace ptxrewrite::fuzz {

namespace {

std::string repeat(char letter, size_t times) {
  return std::string(times, letter);
}

void add_arithmetic(Rows& rows, const IntegerType& type) {
  const std::string suffix = std::string(".") + type.name;
  const char letter = type.letter();
  const unsigned bits = type.bits;
  const bool is_signed = type.is_signed;
  const auto value = [bits, is_signed](uint64_t v) { return number(v, bits, is_signed); };

  rows.group("integer arithmetic");
  rows.add_value("add" + suffix, letter, repeat(letter, 2), [](auto in) { return in[0] + in[1]; }).wraps =
      wraps_when(type, [](auto in, auto read) { return read(in[0]) + read(in[1]); });
  rows.add_value("sub" + suffix, letter, repeat(letter, 2), [](auto in) { return in[0] - in[1]; }).wraps =
      wraps_when(type, [](auto in, auto read) { return read(in[0]) - read(in[1]); });
  rows.add_value("min" + suffix, letter, repeat(letter, 2),
                 [=](auto in) { return value(in[0]) < value(in[1]) ? in[0] : in[1]; });
  rows.add_value("max" + suffix, letter, repeat(letter, 2),
                 [=](auto in) { return value(in[0]) > value(in[1]) ? in[0] : in[1]; });
  rows.add_value("sad" + suffix, letter, repeat(letter, 3),
                 [=](auto in) { return in[2] + (value(in[0]) < value(in[1]) ? in[1] - in[0] : in[0] - in[1]); });
  if (is_signed) {
    rows.add_value("neg" + suffix, letter, repeat(letter, 1), [](auto in) { return 0 - in[0]; }).wraps =
        wraps_when(type, [](auto in, auto read) { return -read(in[0]); });
    rows.add_value("abs" + suffix, letter, repeat(letter, 1),
                   [=](auto in) { return value(in[0]) < 0 ? 0 - in[0] : in[0]; });
  }

  rows.group("integer multiplication");
  const auto product_high = [=](uint64_t a, uint64_t b) {
    return is_signed ? static_cast<uint64_t>((value(a) * value(b)) >> bits)
                     : static_cast<uint64_t>((Unsigned128(a) * b) >> bits);
  };
  rows.add_value("mul.lo" + suffix, letter, repeat(letter, 2), [](auto in) { return in[0] * in[1]; }).wraps =
      wraps_when(type, [](auto in, auto read) { return read(in[0]) * read(in[1]); });
  rows.add_value("mul.hi" + suffix, letter, repeat(letter, 2), [=](auto in) { return product_high(in[0], in[1]); });
  rows.add_value("mad.lo" + suffix, letter, repeat(letter, 3), [](auto in) { return in[0] * in[1] + in[2]; }).wraps =
      wraps_when(type, [](auto in, auto read) { return read(in[0]) * read(in[1]) + read(in[2]); });
  rows.add_value("mad.hi" + suffix, letter, repeat(letter, 3),
                 [=](auto in) { return product_high(in[0], in[1]) + in[2]; });
  if (bits < 64) {
    const char wide = bits == 16 ? 'r' : 'd';
    rows.add_value("mul.wide" + suffix, wide, repeat(letter, 2), [=](auto in) { return value(in[0]) * value(in[1]); });
    rows.add_value("mad.wide" + suffix, wide, repeat(letter, 2) + wide,
                   [=](auto in) { return static_cast<uint64_t>(value(in[0]) * value(in[1])) + in[2]; });
  }

  rows.group("integer division");
  const char divisor = bits == 16 ? 'u' : bits == 32 ? 'v' : 'x';
  rows.add_value("div" + suffix, letter, std::string(1, letter) + divisor,
                 [=](auto in) { return value(in[0]) / value(in[1]); });
  rows.add_value("rem" + suffix, letter, std::string(1, letter) + divisor,
                 [=](auto in) { return value(in[0]) % value(in[1]); });
}

struct Comparison {
  const char* name;
  bool on_less, on_equal, on_greater;
  bool holds(Int128 a, Int128 b) const { return a < b ? on_less : a == b ? on_equal : on_greater; }
};
constexpr Comparison comparisons[] = {{"eq", false, true, false}, {"ne", true, false, true},
                                      {"lt", true, false, false}, {"le", true, true, false},
                                      {"gt", false, false, true}, {"ge", false, true, true}};
constexpr Comparison unsigned_comparisons[] = {
    {"lo", true, false, false}, {"ls", true, true, false}, {"hi", false, false, true}, {"hs", false, true, true}};

bool combine(size_t which, bool a, bool b) { // and, or, xor
  return which == 0 ? a && b : which == 1 ? a || b : a != b;
}

void add_comparison(Rows& rows, const IntegerType& type, const Comparison& comparison, size_t turn) {
  const std::string suffix = std::string(".") + type.name;
  const std::string name = comparison.name;
  const char letter = type.letter();
  const auto test = [type, comparison](const uint64_t* in) {
    return comparison.holds(number(in[0], type.bits, type.is_signed), number(in[1], type.bits, type.is_signed));
  };
  rows.group("integer comparison");
  rows.add_value("setp." + name + suffix, 'p', repeat(letter, 2), [=](auto in) { return uint64_t(test(in)); });
  // The combining operations in turn: all combinations would dominate the table.
  static constexpr const char* booleans[] = {".and", ".or", ".xor"};
  const size_t boolean = turn % 3;
  rows.add_value("setp." + name + booleans[boolean] + suffix, 'p', repeat(letter, 2) + "!",
                 [=](auto in) { return uint64_t(combine(boolean, test(in), in[2] != 0)); });
  if (turn % 2 == 0)
    rows.add("setp." + name + suffix + " $0|$1, $2, $3", "pp", repeat(letter, 2), [=](auto in, auto out) {
      out[0] = test(in);
      out[1] = !test(in);
    });
  else
    rows.add("setp." + name + booleans[boolean] + suffix + " $0|$1, $2, $3, $4", "pp", repeat(letter, 2) + "!",
             [=](auto in, auto out) {
               out[0] = combine(boolean, test(in), in[2] != 0);
               out[1] = combine(boolean, !test(in), in[2] != 0);
             });
  if (turn % 4 == 0)
    rows.add_value("set." + name + ".u32" + suffix, 'r', repeat(letter, 2),
                   [=](auto in) { return test(in) ? 0xffffffffu : 0u; });
}

void add_comparisons(Rows& rows) {
  size_t turn = 0;
  for (const IntegerType& type : register_types) {
    for (const Comparison& comparison : comparisons)
      add_comparison(rows, type, comparison, turn++);
    if (!type.is_signed)
      for (const Comparison& comparison : unsigned_comparisons)
        add_comparison(rows, type, comparison, turn++);
  }
  for (const IntegerType& type : {IntegerType{"b16", 16, false}, {"b32", 32, false}, {"b64", 64, false}})
    for (size_t i = 0; i < 2; ++i)
      add_comparison(rows, type, comparisons[i], turn++);
}

void add_selections(Rows& rows) {
  rows.group("selection");
  for (const IntegerType& type : register_types) {
    const std::string letters = repeat(type.letter(), 2);
    rows.add_value(std::string("slct.") + type.name + ".s32", type.letter(), letters + "r",
                   [](auto in) { return sign_extend(in[2], 32) >= 0 ? in[0] : in[1]; });
  }
  for (const auto& [name, letter] : {std::pair{"b16", 'h'}, {"b32", 'r'}, {"b64", 'd'}, {"s32", 'r'}, {"u64", 'd'}})
    rows.add_value(std::string("selp.") + name, letter, repeat(letter, 2) + "!",
                   [](auto in) { return in[2] != 0 ? in[0] : in[1]; });
}

void add_predicate_logic(Rows& rows) {
  rows.group("predicate logic");
  rows.add_value("and.pred", 'p', "!!", [](auto in) { return in[0] & in[1]; });
  rows.add_value("or.pred", 'p', "!!", [](auto in) { return in[0] | in[1]; });
  rows.add_value("xor.pred", 'p', "!!", [](auto in) { return in[0] ^ in[1]; });
  rows.add_value("not.pred", 'p', "p", [](auto in) { return in[0] ^ 1; });
  rows.add_value("mov.pred", 'p', "p", [](auto in) { return in[0]; });
}

uint64_t clamp(Int128 value, const IntegerType& type) {
  return static_cast<uint64_t>(std::min(std::max(value, type.least()), type.greatest()));
}

void add_24_bit_and_saturating(Rows& rows) {
  rows.group("24-bit and saturating");
  constexpr IntegerType s32{"s32", 32, true};
  for (const bool is_signed : {false, true}) {
    const std::string suffix = is_signed ? ".s32" : ".u32";
    const auto product = [is_signed](auto in) { return number(in[0], 24, is_signed) * number(in[1], 24, is_signed); };
    rows.add_value("mul24.lo" + suffix, 'r', "rr", [=](auto in) { return product(in); });
    rows.add_value("mul24.hi" + suffix, 'r', "rr", [=](auto in) { return product(in) >> 16; });
    rows.add_value("mad24.lo" + suffix, 'r', "rrr", [=](auto in) { return product(in) + in[2]; });
    rows.add_value("mad24.hi" + suffix, 'r', "rrr", [=](auto in) { return (product(in) >> 16) + in[2]; });
  }
  const auto signed_value = [](uint64_t v) { return number(v, 32, true); };
  rows.add_value("add.sat.s32", 'r', "rr",
                 [=](auto in) { return clamp(signed_value(in[0]) + signed_value(in[1]), s32); });
  rows.add_value("sub.sat.s32", 'r', "rr",
                 [=](auto in) { return clamp(signed_value(in[0]) - signed_value(in[1]), s32); });
  rows.add_value("mad.hi.sat.s32", 'r', "rrr", [=](auto in) {
    return clamp(((signed_value(in[0]) * signed_value(in[1])) >> 32) + signed_value(in[2]), s32);
  });
}

// Chains combine add with add and sub with sub, where manual and ptxas agree on the carry.
void add_carry_chains(Rows& rows) {
  rows.group("carry chain");
  const auto sum = [](auto in, auto out) { // {out1,out0} = {in1,in0} + {in3,in2}
    const uint64_t total = (in[1] << 32 | in[0]) + (in[3] << 32 | in[2]);
    out[0] = total & 0xffffffff;
    out[1] = total >> 32;
  };
  rows.add("add.cc.u32 $0, $2, $4;\n\taddc.u32 $1, $3, $5", "rr", "rrrr", sum).is_sequence = true;
  rows.add("add.cc.s32 $0, $2, $4;\n\taddc.s32 $1, $3, $5", "rr", "rrrr", sum).is_sequence = true;
  rows.add("sub.cc.u32 $0, $2, $4;\n\tsubc.u32 $1, $3, $5", "rr", "rrrr",
           [](auto in, auto out) {
             const uint64_t total = (in[1] << 32 | in[0]) - (in[3] << 32 | in[2]);
             out[0] = total & 0xffffffff;
             out[1] = total >> 32;
           })
      .is_sequence = true;
  rows.add("add.cc.u64 $0, $2, $4;\n\taddc.cc.u64 $1, $3, $5", "dd", "dddd",
           [](auto in, auto out) {
             out[0] = in[0] + in[2];
             out[1] = in[1] + in[3] + (out[0] < in[0] ? 1 : 0);
           })
      .is_sequence = true;
  rows.add("mad.lo.cc.u32 $0, $2, $3, $4;\n\tmadc.hi.u32 $1, $2, $3, $5", "rr", "rrrr",
           [](auto in, auto out) {
             const uint64_t total = in[0] * in[1] + (in[3] << 32 | in[2]);
             out[0] = total & 0xffffffff;
             out[1] = total >> 32;
           })
      .is_sequence = true;
}

} // namespace

std::vector<Operation> integer_operations() {
  Rows rows("");
  for (const IntegerType& type : register_types)
    add_arithmetic(rows, type);
  add_comparisons(rows);
  add_selections(rows);
  add_predicate_logic(rows);
  add_24_bit_and_saturating(rows);
  add_carry_chains(rows);
  return rows.take();
}

} // namespace ptxrewrite::fuzz
