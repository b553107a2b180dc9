// The video instructions, following the manual's pseudo-code, in exact numbers.
#include "tests/emulator/reference.h"

#include <algorithm>
#include <map>

namespace ptxrewrite::test {

namespace {

using ir::ScalarType;

struct Part {
  unsigned first = 0; // bit
  unsigned bits = 32;
};

// ".b2" or ".h1" of a scalar video instruction.
Part part_of(const StatementOperand& operand) {
  if (operand.selector.empty()) return {};
  const unsigned bits = operand.selector[0] == 'b' ? 8 : 16;
  return {static_cast<unsigned>(operand.selector[1] - '0') * bits, bits};
}

// The manual computes in 34 bits and passes on 33.
Big narrowed(Big value, unsigned bits) {
  return number_of(static_cast<Raw>(value), bits, true);
}

bool holds(const Statement& statement, Big a, Big b) {
  const std::map<std::string, bool> answers = {{"eq", a == b}, {"ne", a != b}, {"lt", a < b},
                                               {"le", a <= b}, {"gt", a > b},  {"ge", a >= b}};
  for (const std::string& word : statement.words)
    if (auto found = answers.find(word); found != answers.end()) return found->second;
  return false;
}

// Computes the instruction's operation on two numbers; the digit after the name is not part of it.
Big primary(const Statement& statement, std::string_view name, Big a, Big b) {
  if (name == "vadd") return a + b;
  if (name == "vsub") return a - b;
  if (name == "vabsdiff") return a > b ? a - b : b - a;
  if (name == "vmin") return a > b ? b : a;
  if (name == "vmax") return a > b ? a : b;
  if (name == "vset") return holds(statement, a, b) ? 1 : 0;
  if (name == "vavrg") {
    const Big twice = a + b;
    return twice >= 0 ? (twice + 1) / 2 : -((-twice + 1) / 2);
  }
  // The shifts: b is an amount.
  const Big amount = statement.has("wrap") ? b % 32 : std::min(b, Big{32});
  const Big power = Big{1} << static_cast<unsigned>(amount);
  if (name == "vshl") return a * power;
  return a >= 0 ? a / power : -((-a + power - 1) / power);
}

struct Signs {
  bool result = false, a = false, b = false;
  explicit Signs(const Statement& statement) {
    const size_t first = statement.types.size() > 2 ? 1 : 0;
    result = first == 1 && ir::is_signed(statement.type(0));
    a = ir::is_signed(statement.type(first));
    b = ir::is_signed(statement.type(first + 1));
  }
};

Reference scalar(const Statement& statement) {
  const Signs signs(statement);
  const Part d = part_of(statement.operands[0]);
  const Part a = part_of(statement.operands[1]);
  const Part b = part_of(statement.operands[2]);
  const bool saturate = statement.has("sat");
  const std::string name = statement.opcode;
  const bool add = statement.has("add"), min = statement.has("min"), max = statement.has("max");
  return [=](const ReferenceInput& in) -> ReferenceResult {
    const Big x = number_of(in.sources[0] >> a.first, a.bits, signs.a);
    const Big y = number_of(in.sources[1] >> b.first, b.bits, signs.b);
    Big value = narrowed(primary(statement, name, x, y), 34);
    if (saturate) value = clamped_to(value, d.bits, signs.result);
    value = narrowed(value, 33);
    const Raw c = in.sources.size() > 2 ? in.sources[2] : Raw{0};
    const Big third = number_of(c, 32, signs.result);
    if (add) value += third;
    if (min) value = std::min(value, third);
    if (max) value = std::max(value, third);
    return {{from_bits(32,
                       [&](unsigned i) {
                         const bool inside = i >= d.first && i < d.first + d.bits;
                         return inside ? bit_of(static_cast<Raw>(value), i - d.first) : bit_of(c, i);
                       })},
            false};
  };
}

Reference multiply_add(const Statement& statement) {
  const Signs signs(statement);
  const Part a = part_of(statement.operands[1]);
  const Part b = part_of(statement.operands[2]);
  const bool negate_product = statement.operands[1].minus != statement.operands[2].minus;
  const bool negate_c = statement.operands[3].minus;
  const bool is_signed = signs.a || signs.b || negate_product || negate_c;
  const unsigned shift = statement.has("shr7") ? 7 : statement.has("shr15") ? 15 : 0;
  const bool plus_one = statement.has("po");
  const bool saturate = statement.has("sat");
  return [=](const ReferenceInput& in) -> ReferenceResult {
    Big sum =
        number_of(in.sources[0] >> a.first, a.bits, signs.a) * number_of(in.sources[1] >> b.first, b.bits, signs.b);
    if (negate_product) sum = -sum;
    // A negated c is complemented as a word, read with the sign of the result, then incremented.
    sum += number_of(negate_c ? ~in.sources[2] : in.sources[2], 32, is_signed) + (negate_c ? 1 : 0);
    if (plus_one) sum += 1;
    const Big power = Big{1} << shift;
    const Big scaled = sum >= 0 ? sum / power : -((-sum + power - 1) / power);
    const Big result = number_of(static_cast<Raw>(scaled), 64, is_signed);
    return {{static_cast<Raw>(saturate ? clamped_to(result, 32, is_signed) : result)}, false};
  };
}

// The halves or bytes of b:a that an operand selects, element 0 first.
std::vector<unsigned> elements_of(const StatementOperand& operand, unsigned count, unsigned first_default) {
  std::vector<unsigned> result;
  for (unsigned i = 0; i < count; ++i)
    result.push_back(operand.selector.empty() ? first_default + i
                                              : static_cast<unsigned>(operand.selector[count - i] - '0'));
  return result;
}

Reference simd(const Statement& statement, unsigned count) {
  const Signs signs(statement);
  const unsigned bits = 32 / count;
  const std::vector<unsigned> a = elements_of(statement.operands[1], count, 0);
  const std::vector<unsigned> b = elements_of(statement.operands[2], count, count);
  const std::string mask = statement.operands[0].selector;
  const std::string name = statement.opcode.substr(0, statement.opcode.size() - 1);
  const bool saturate = statement.has("sat");
  const bool accumulate = statement.has("add");
  return [=](const ReferenceInput& in) -> ReferenceResult {
    const Raw both = low_bits(in.sources[0], 32) | (low_bits(in.sources[1], 32) << 32);
    Big sum = number_of(in.sources[2], 32, false);
    Raw merged = 0;
    for (unsigned i = 0; i < count; ++i) {
      const Big x = number_of(both >> (bits * a[i]), bits, signs.a);
      const Big y = number_of(both >> (bits * b[i]), bits, signs.b);
      Big value = primary(statement, name, x, y);
      if (saturate) value = clamped_to(value, bits, signs.result);
      const bool chosen = mask.empty() || mask.find(static_cast<char>('0' + i), 1) != std::string::npos;
      if (chosen) sum += value;
      merged |= low_bits(chosen ? static_cast<Raw>(value) : in.sources[2] >> (bits * i), bits) << (bits * i);
    }
    return {{accumulate ? static_cast<Raw>(sum) : merged}, false};
  };
}

} // namespace

Reference video_reference(const Statement& statement) {
  const std::string& opcode = statement.opcode;
  if (opcode.size() < 4 || opcode[0] != 'v' || opcode == "vote") return {};
  if (opcode == "vmad") return multiply_add(statement);
  if (opcode.back() == '2') return simd(statement, 2);
  if (opcode.back() == '4') return simd(statement, 4);
  return scalar(statement);
}

} // namespace ptxrewrite::test
