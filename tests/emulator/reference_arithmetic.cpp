// Integer arithmetic, the carry chain, dot products and packed halves, in exact numbers.
#include "tests/emulator/reference.h"

#include <algorithm>

namespace ptxrewrite::test {

namespace {

using ir::ScalarType;

ReferenceResult single(Big value) {
  return {{static_cast<Raw>(value)}, false};
}

// The upper or lower part of a product, or the whole product, depending on the mnemonic.
struct Product {
  unsigned bits;
  bool is_signed;
  unsigned shift;       // number of low bits of the product that are dropped
  unsigned source_bits; // used bits of each source

  explicit Product(const Statement& statement) {
    bits = ir::bit_width(statement.type());
    is_signed = ir::is_signed(statement.type());
    const bool is_24 = statement.opcode.ends_with("24");
    source_bits = is_24 ? 24 : bits;
    shift = statement.has("hi") ? (is_24 ? 16 : bits) : 0;
    if (statement.has("wide")) bits *= 2;
  }
  // The product of two 64-bit numbers has 128 bits: unsigned arithmetic gives it for both signednesses.
  Big of(Raw a, Raw b) const {
    const auto x = static_cast<Raw>(number_of(a, source_bits, is_signed));
    const auto y = static_cast<Raw>(number_of(b, source_bits, is_signed));
    const Raw product = x * y;
    Raw result = product >> shift;
    if (shift != 0 && is_signed && bit_of(product, 127)) result |= ~(~Raw{0} >> shift);
    return number_of(result, bits, is_signed);
  }
};

// a + b * c modulo 2^bits; `carry`: the unsigned sum has an additional bit.
ReferenceResult sum_with_carry(Raw a, Raw b, bool carry_in, unsigned bits) {
  const Raw sum = low_bits(a, bits) + low_bits(b, bits) + carry_in;
  return {{low_bits(sum, bits)}, (sum >> bits) != 0};
}

// A subtraction clears the flag if it borrows (as in ptxas).
ReferenceResult difference_with_carry(Raw a, Raw b, bool carry_in, unsigned bits) {
  const Big difference = number_of(a, bits, false) - number_of(b, bits, false) - (carry_in ? 0 : 1);
  return {{static_cast<Raw>(difference)}, difference >= 0};
}

Reference sums(const Statement& statement) {
  const ScalarType type = statement.type();
  const unsigned bits = ir::bit_width(type);
  const bool saturate = statement.has("sat");
  const bool extended = statement.has("cc") || statement.opcode.ends_with('c');
  const bool uses_carry = statement.opcode.ends_with('c');
  const bool minus = statement.opcode.starts_with("sub");
  return [=](const ReferenceInput& in) -> ReferenceResult {
    const bool carry_in = uses_carry ? in.carry : minus;
    const Big a = number_of(in.sources[0], type);
    const Big b = number_of(in.sources[1], type);
    if (saturate) return single(clamped_to(minus ? a - b - !carry_in : a + b + carry_in, bits, true));
    if (!extended) return single(minus ? a - b : a + b);
    return minus ? difference_with_carry(in.sources[0], in.sources[1], carry_in, bits)
                 : sum_with_carry(in.sources[0], in.sources[1], carry_in, bits);
  };
}

Reference products(const Statement& statement) {
  const Product product(statement);
  const bool adds = statement.opcode.starts_with("mad");
  const bool saturate = statement.has("sat");
  const bool uses_carry = statement.opcode == "madc";
  return [=](const ReferenceInput& in) -> ReferenceResult {
    const Big value = product.of(in.sources[0], in.sources[1]);
    if (!adds) return single(value);
    const bool carry_in = uses_carry && in.carry;
    if (saturate)
      return single(clamped_to(value + number_of(in.sources[2], product.bits, true) + carry_in, product.bits, true));
    return sum_with_carry(static_cast<Raw>(value), in.sources[2], carry_in, product.bits);
  };
}

Reference quotients(const Statement& statement) {
  const ScalarType type = statement.type();
  const bool remainder = statement.opcode == "rem";
  return [=](const ReferenceInput& in) {
    const Big a = number_of(in.sources[0], type);
    const Big b = number_of(in.sources[1], type);
    if (b == 0) return single(-1); // undefined: all ones, as in ptxas's constant folding
    return single(remainder ? a - a / b * b : a / b);
  };
}

Reference distances(const Statement& statement) {
  const ScalarType type = statement.type();
  return [=](const ReferenceInput& in) {
    const Big a = number_of(in.sources[0], type);
    const Big b = number_of(in.sources[1], type);
    return single(number_of(in.sources[2], type) + (a > b ? a - b : b - a));
  };
}

Reference signs(const Statement& statement) {
  const ScalarType type = statement.type();
  const bool magnitude = statement.opcode == "abs";
  return [=](const ReferenceInput& in) {
    const Big a = number_of(in.sources[0], type);
    return single(magnitude && a > 0 ? a : -a);
  };
}

// add, min, max of plain and packed integers.
Big extreme(const Statement& statement, Big a, Big b) {
  const bool smaller = statement.opcode == "min";
  const Big chosen = (a < b) == smaller ? a : b;
  return statement.has("relu") && chosen < 0 ? Big{0} : chosen;
}

Reference extremes(const Statement& statement) {
  const ScalarType type = statement.type();
  return [=](const ReferenceInput& in) {
    return single(extreme(statement, number_of(in.sources[0], type), number_of(in.sources[1], type)));
  };
}

Reference halves(const Statement& statement) {
  const bool is_signed = statement.type() == ScalarType::s16x2;
  return [=](const ReferenceInput& in) {
    Raw packed = 0;
    for (unsigned shift : {0u, 16u}) {
      const Big a = number_of(in.sources[0] >> shift, 16, is_signed);
      const Big b = number_of(in.sources[1] >> shift, 16, is_signed);
      const Big value = statement.opcode == "add" ? a + b : extreme(statement, a, b);
      packed |= low_bits(static_cast<Raw>(value), 16) << shift;
    }
    return ReferenceResult{{packed}, false};
  };
}

Reference dot_products(const Statement& statement) {
  const bool a_signed = statement.type(0) == ScalarType::s32;
  const bool b_signed = statement.type(1) == ScalarType::s32;
  const unsigned terms = statement.opcode == "dp4a" ? 4 : 2;
  const unsigned first_byte = statement.has("hi") ? 2 : 0;
  return [=](const ReferenceInput& in) {
    Big sum = number_of(in.sources[2], 32, false);
    for (unsigned i = 0; i < terms; ++i)
      sum += number_of(in.sources[0] >> (i * 32 / terms), 32 / terms, a_signed) *
             number_of(in.sources[1] >> (8 * (first_byte + i)), 8, b_signed);
    return single(sum);
  };
}

} // namespace

Reference arithmetic_reference(const Statement& statement) {
  const std::string& opcode = statement.opcode;
  auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), opcode) != names.end();
  };
  if (opcode == "dp4a" || opcode == "dp2a") return dot_products(statement);
  const ScalarType type = statement.type();
  if (type == ScalarType::u16x2 || type == ScalarType::s16x2) return halves(statement);
  if (!ir::is_integer(type) || statement.types.size() != 1) return {};
  if (is_one_of({"add", "sub", "addc", "subc"})) return sums(statement);
  if (is_one_of({"mul", "mad", "madc", "mul24", "mad24"})) return products(statement);
  if (is_one_of({"div", "rem"})) return quotients(statement);
  if (is_one_of({"abs", "neg"})) return signs(statement);
  if (is_one_of({"min", "max"})) return extremes(statement);
  if (opcode == "sad") return distances(statement);
  return {};
}

} // namespace ptxrewrite::test
