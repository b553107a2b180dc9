// emulator_integer_forms [OPCODE ...]: every emulated integer form, executed in hundreds of threads on
// operands at the boundaries of results, with and without a guard, against the statements of reference.h.
#include "tests/emulator/form_test.h"

#include <algorithm>
#include <cstdio>
#include <random>

namespace ptxrewrite::test {
namespace {

constexpr size_t thread_count = 256;

Raw edge_value(std::mt19937_64& random, unsigned bits) {
  static const uint64_t amounts[] = {0,  1,  2,  3,  5,  7,  8,  15,  16,  17,  24, 30,
                                     31, 32, 33, 47, 63, 64, 65, 128, 255, 256, 288};
  auto one_of = [&](auto& list) { return list[random() % std::size(list)]; };
  const Raw top = Raw{1} << (bits - 1);
  const Raw limits[] = {0, 1, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, 2};
  const uint64_t bytes[] = {0x00, 0x01, 0x7f, 0x80, 0x81, 0xff, 0xfe, 0x55};
  switch (random() % 5) {
  case 0:
    return limits[random() % std::size(limits)];
  case 1:
    return one_of(amounts);
  case 2: // a power of two and its neighbours
    return (Raw{1} << (random() % bits)) + random() % 3 - 1;
  case 3: { // bytes at their limits
    Raw value = 0;
    for (unsigned i = 0; i < bits; i += 8)
      value = value << 8 | one_of(bytes);
    return value;
  }
  default:
    return Raw{random()} << 64 | random();
  }
}

uint32_t edge_float(std::mt19937_64& random) {
  const uint32_t values[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
                             0x80800000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000};
  return values[random() % std::size(values)];
}

std::vector<ThreadRegisters> make_threads() {
  std::mt19937_64 random(20240607);
  std::vector<ThreadRegisters> threads(thread_count);
  for (ThreadRegisters& thread : threads)
    for (char letter : register_letters)
      for (unsigned number = 0; number < registers_per_letter; ++number) {
        StatementOperand named;
        named.letter = letter;
        const unsigned bits = named.bits();
        Raw value = letter == 'p' ? random() % 2 : letter == 'f' ? edge_float(random) : edge_value(random, bits);
        thread.of(letter, number) = low_bits(value, bits);
      }
  return threads;
}

// Scalar instructions select a part of d only to merge it with c, and then without a secondary operation.
bool may_merge(const Statement& statement) {
  return statement.operands.size() == 4 && statement.opcode != "vmad" && !statement.has("add") &&
         !statement.has("min") && !statement.has("max");
}
// Adds selectors after the first three registers of the statement; constants have none.
std::string with_selectors(const std::string& text, const std::string& d, const std::string& a, const std::string& b) {
  std::string result;
  size_t operand = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] == ',' || text[i] == ';') && operand < 3) {
      const size_t start = result.find_last_of(" -") + 1;
      if (result[start] == '%') result += operand == 0 ? d : operand == 1 ? a : b;
      ++operand;
    }
    result += text[i];
  }
  return result;
}

// Copies of video statements whose operands select bytes and halves; all combinations occur over an opcode's forms.
void add_selectors(std::vector<std::string>& statements, size_t copies) {
  static size_t turn = 0;
  static const char* const scalar[] = {"", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"};
  static const char* const two[] = {"", ".h10", ".h32", ".h03", ".h21", ".h11"};
  static const char* const two_masks[] = {"", ".h0", ".h1", ".h10"};
  static const char* const four[] = {"", ".b3210", ".b7654", ".b0246", ".b7071", ".b5555"};
  static const char* const four_masks[] = {"",    ".b0",  ".b1",  ".b10",  ".b2",  ".b20",  ".b21",  ".b210",
                                           ".b3", ".b30", ".b31", ".b310", ".b32", ".b320", ".b321", ".b3210"};
  std::vector<std::string> added;
  for (const std::string& text : statements) {
    const Statement statement(text);
    if (statement.opcode[0] != 'v') return;
    const char digit = statement.opcode.back();
    for (size_t i = 0; i < copies; ++i, ++turn) {
      auto pick = [&](auto& list, size_t step) { return list[(turn / step) % std::size(list)]; };
      const std::string a = digit == '2' ? pick(two, 1) : digit == '4' ? pick(four, 1) : pick(scalar, 1);
      const std::string b = digit == '2' ? pick(two, 6) : digit == '4' ? pick(four, 6) : pick(scalar, 7);
      std::string d = digit == '2' ? pick(two_masks, 5) : digit == '4' ? pick(four_masks, 1) : pick(scalar, 5);
      if (digit != '2' && digit != '4' && !may_merge(statement)) d.clear();
      added.push_back(with_selectors(text, d, a, b));
    }
  }
  statements.insert(statements.end(), added.begin(), added.end());
}

// The opcodes whose integer forms are all emulated.
constexpr std::string_view integer_opcodes[] = {
    "add",   "sub",      "mul",       "mad",   "mul24", "mad24", "sad",    "div",   "rem",   "abs",   "neg",
    "min",   "max",      "addc",      "subc",  "madc",  "dp2a",  "dp4a",   "popc",  "clz",   "bfind", "brev",
    "fns",   "bfe",      "bfi",       "szext", "bmsk",  "and",   "or",     "xor",   "not",   "cnot",  "lop3",
    "shl",   "shr",      "shf",       "prmt",  "setp",  "set",   "selp",   "slct",  "cvt",   "mov",   "vadd",
    "vsub",  "vabsdiff", "vmin",      "vmax",  "vshl",  "vshr",  "vset",   "vmad",  "vadd2", "vsub2", "vavrg2",
    "vmin2", "vmax2",    "vabsdiff2", "vset2", "vadd4", "vsub4", "vavrg4", "vmin4", "vmax4", "vset4", "vabsdiff4"};

int run(std::vector<std::string_view> opcodes) {
  if (!take_engine(opcodes)) return 77;
  if (opcodes.empty()) opcodes.assign(std::begin(integer_opcodes), std::end(integer_opcodes));
  FormTest test(make_threads(), &reference_for);
  size_t empty = 0;
  for (std::string_view opcode : opcodes)
    if (!test.test_opcode(opcode, [](auto& statements, bool plain) { add_selectors(statements, plain ? 24 : 2); })) {
      std::printf("nothing is stated about %s\n", std::string(opcode).c_str());
      ++empty;
    }
  std::printf("%zu statements in %zu threads each, %zu wrong\n", test.statements(), thread_count, test.failures());
  return test.failures() == 0 && empty == 0 ? 0 : 1;
}

} // namespace
} // namespace ptxrewrite::test

int main(int argument_count, char** arguments) {
  return ptxrewrite::test::run({arguments + 1, arguments + argument_count});
}
