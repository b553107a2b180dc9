// emulator_operand_matrix [--ssa] [OPCODE ... | memory]: every kind of operand in every position that allows it,
// according to the ISA table, executed on the emulator. Results are compared with the reference for the
// same computation on plain registers. --ssa: the kernels are converted to SSA form and back first.
#include "tests/emulator/form_test.h"
#include "tests/emulator/forms.h"
#include "tests/emulator/operand_kinds.h"
#include "tests/emulator/operand_memory.h"

#include <cstdio>
#include <map>
#include <random>
#include <set>

namespace ptxrewrite::test {
namespace {

constexpr size_t thread_count = 32;

// Limits of types, halves and floats that are numbers, and random bits.
Raw register_value(std::mt19937_64& random, char letter, unsigned bits) {
  const uint64_t singles[] = {0x3f800000, 0xc0100000, 0x7f800000, 0x80000000, 0x00000001, 0x42f6e979, 0xbf7fffff};
  const uint64_t doubles[] = {0x3ff0000000000000, 0xc002000000000000, 0x8000000000000000, 0x7fefffffffffffff};
  const uint64_t halves[] = {0x3c00, 0xc080, 0x7bff, 0x0001, 0x3f80, 0xbf90};
  const Raw top = Raw{1} << (bits - 1);
  const Raw limits[] = {0, 1, top - 1, top, 2 * top - 1, 31, 32, 5};
  auto one_of = [&](auto& list) { return list[random() % std::size(list)]; };
  if (letter == 'p') return random() & 1;
  const auto choice = random() % 3;
  if (letter == 'f' && choice) return one_of(singles);
  if (letter == 'd' && choice) return one_of(doubles);
  if (choice == 0) return Raw{random()} << 64 | random();
  if (choice == 1 && bits >= 16) return one_of(halves) | one_of(halves) << 16;
  return limits[random() % std::size(limits)];
}

std::vector<ThreadRegisters> make_threads() {
  std::mt19937_64 random(4);
  std::vector<ThreadRegisters> threads(thread_count);
  for (ThreadRegisters& thread : threads)
    for (char letter : register_letters)
      for (unsigned number = 0; number < registers_per_letter; ++number) {
        StatementOperand named;
        named.letter = letter;
        thread.of(letter, number) = low_bits(register_value(random, letter, named.bits()), named.bits());
      }
  return threads;
}

Reference any_reference(const Statement& statement) {
#ifdef PTXREWRITE_HAVE_MPFR
  if (Reference reference = float_reference_for(statement)) return reference;
#endif
  return reference_for(statement);
}

struct Sizes {
  std::set<std::string> instructions;
  std::map<std::string, size_t, std::less<>> cases; // by kind
};

void test_values(const std::vector<std::string_view>& opcodes, FormTest& test, Sizes& sizes) {
  size_t turn = 0;
  for (std::string_view opcode : opcodes)
    for (const std::string& mnemonic : mnemonics_of(opcode)) {
      for (KindStatement& kind : kind_statements(mnemonic)) {
        if (kind.reading.find_first_of("[(") != std::string::npos) continue; // operand_memory.h
        const auto guard = static_cast<Guard>(turn++ % 3);
        GuardedStatement guarded{Statement(kind.reading), guard, kind.before, kind.spelled, kind.after};
        if (!test.add(std::move(guarded))) continue;
        sizes.instructions.insert(mnemonic);
        ++sizes.cases[std::string(kind.kind)];
        if (guard != Guard::none) ++sizes.cases["guard"];
      }
    }
  test.flush();
}

int run(std::vector<std::string_view> arguments) {
  if (!take_engine(arguments)) return 77;
  const Way way = !arguments.empty() && arguments.front() == "--ssa" ? Way::through_ssa : Way::as_written;
  if (way == Way::through_ssa) arguments.erase(arguments.begin());
  const bool everything = arguments.empty();
  if (!everything && arguments.front() == "memory") return test_memory_kinds(way) == 0 ? 0 : 1;
  if (everything) arguments = ir::list_opcodes();
#ifndef PTXREWRITE_HAVE_MPFR
  std::printf("built without MPFR: instructions with floats in them are left out\n");
#endif
  FormTest test(make_threads(), &any_reference);
  test.go(way);
  Sizes sizes;
  test_values(arguments, test, sizes);
  size_t cases = test.statements();
  for (const auto& [kind, count] : sizes.cases)
    std::printf("%-34s %7zu\n", kind.c_str(), count);
  std::printf("%zu instructions on values, %zu cases in %zu threads each, %zu wrong\n", sizes.instructions.size(),
              cases, thread_count, test.failures());
  size_t failures = test.failures();
  if (everything) failures += test_memory_kinds(way);
  return failures == 0 && cases > 0 ? 0 : 1;
}

} // namespace
} // namespace ptxrewrite::test

int main(int argument_count, char** arguments) {
  return ptxrewrite::test::run({arguments + 1, arguments + argument_count});
}
