// emulator_float_forms [OPCODE ...]: every emulated form with a float, executed in hundreds of
// threads on operands at the boundaries of results, with and without a guard, against MPFR. Exit code 77: built
// without MPFR.
#include "tests/emulator/form_test.h"
#include "tests/emulator/forms.h"
#include "tests/unit/emulator/semantics/float_reference.h"

#include <algorithm>
#include <cstdio>

namespace ptxrewrite::test {
namespace {

constexpr size_t thread_count = 512;

// Edges of a format, numbers that are close to each other, and random bits.
uint64_t float_code(RandomBits& random, const Format& format) {
  static const std::vector<uint64_t> edges[] = {edge_codes(f16_numbers), edge_codes(bf16_numbers),
                                                edge_codes(f32_numbers), edge_codes(f64_numbers)};
  const auto& list = edges[format.precision == 11 ? 0 : format.precision == 8 ? 1 : format.precision == 24 ? 2 : 3];
  const int fraction_bits = format.precision - 1;
  const uint64_t one = static_cast<uint64_t>(1 - format.min_exponent - 1) << fraction_bits;
  const uint64_t mask = (uint64_t{2} << (format.bits() - 1)) - 1;
  switch (random() % 4) {
  case 0:
  case 1:
    return list[random() % list.size()];
  case 2: { // 2^-4 to 2^4, often with few bits
    const uint64_t few = random() & 1 ? ~uint64_t{0} : ~((uint64_t{1} << (fraction_bits - 3)) - 1);
    const uint64_t code = (one - (uint64_t{4} << fraction_bits) + random() % (uint64_t{8} << fraction_bits)) & few;
    return (code | (random() << (format.bits() - 1))) & mask;
  }
  default:
    return random() & mask;
  }
}

uint64_t integer(RandomBits& random, unsigned bits) {
  const uint64_t power = uint64_t{1} << (random() % bits);
  switch (random() % 3) {
  case 0:
    return power + random() % 5 - 2;
  case 1:
    return 0 - (power + random() % 5 - 2);
  default:
    return random() >> (random() % 64);
  }
}

Raw register_value(RandomBits& random, char letter) {
  const bool float_bits = random() % 3 != 0;
  auto half = [&] { return float_code(random, random() & 1 ? f16_numbers : bf16_numbers); };
  switch (letter) {
  case 'p':
    return random() & 1;
  case 'h':
    return float_bits ? half() : integer(random, 16);
  case 'r':
    return float_bits ? half() << 16 | half() : integer(random, 32);
  case 'l':
    return float_bits ? float_code(random, f32_numbers) << 32 | float_code(random, f32_numbers) : integer(random, 64);
  case 'f':
    return float_code(random, f32_numbers);
  case 'd':
    return float_code(random, f64_numbers);
  default:
    return random();
  }
}

std::vector<ThreadRegisters> make_threads() {
  RandomBits random(9);
  std::vector<ThreadRegisters> threads(thread_count);
  for (ThreadRegisters& thread : threads)
    for (char letter : register_letters)
      for (unsigned number = 0; number < registers_per_letter; ++number) {
        StatementOperand named;
        named.letter = letter;
        thread.of(letter, number) = low_bits(register_value(random, letter), named.bits());
      }
  return threads;
}

constexpr std::string_view float_opcodes[] = {"abs",  "add", "copysign", "cos",   "cvt", "div",  "ex2",  "fma",
                                              "lg2",  "mad", "max",      "min",   "mul", "neg",  "rcp",  "set",
                                              "setp", "sin", "sqrt",     "rsqrt", "sub", "tanh", "testp"};

// Number of forms with a float that float_reference_for does not cover.
size_t count_unstated(std::string_view opcode) {
  size_t unstated = 0;
  for (const std::string& mnemonic : mnemonics_of(opcode)) {
    const std::vector<std::string> statements = plain_statements(mnemonic);
    const Statement statement(statements.front());
    const bool has_float = std::any_of(statement.types.begin(), statement.types.end(), [](ir::ScalarType type) {
      const bool packed = ir::type_kind(type) == ir::TypeKind::packed;
      return ir::is_float(type) || (packed && type != ir::ScalarType::u16x2 && type != ir::ScalarType::s16x2);
    });
    if (!has_float || is_stated_in_unit_tests(statement) || float_reference_for(statement)) continue;
    if (++unstated <= 5) std::printf("nothing is stated about %s\n", mnemonic.c_str());
  }
  return unstated;
}

int run(std::vector<std::string_view> opcodes) {
  if (!take_engine(opcodes)) return 77;
#ifndef PTXREWRITE_HAVE_MPFR
  std::printf("skipped: built without MPFR\n");
  return 77;
#endif
  if (opcodes.empty()) opcodes.assign(std::begin(float_opcodes), std::end(float_opcodes));
  FormTest test(make_threads(), &float_reference_for);
  size_t unstated = 0;
  for (std::string_view opcode : opcodes) {
    unstated += count_unstated(opcode) + (test.test_opcode(opcode) ? 0 : 1);
  }
  std::printf("%zu statements in %zu threads each, %zu wrong; nothing is stated about %zu forms\n", test.statements(),
              thread_count, test.failures(), unstated);
  return test.failures() == 0 && unstated == 0 ? 0 : 1;
}

} // namespace
} // namespace ptxrewrite::test

int main(int argument_count, char** arguments) {
  return ptxrewrite::test::run({arguments + 1, arguments + argument_count});
}
