// Runs statements on the emulator: each once in each thread of a grid, with source registers that the test chooses, and
// returns the destination registers. Uses all stages: text, reader, decoder, warps.
#pragma once

#include "support/result.h"
#include "tests/emulator/statement.h"

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::test {

inline constexpr std::string_view register_letters = "pchrlqfd";
inline constexpr unsigned registers_per_letter = 10;
// Reserved registers: no statement may use them.
inline constexpr unsigned guard_predicate = 8;
inline constexpr unsigned carry_predicate = 9;

// Registers of one thread before every statement: bits, of which the register's width is used.
struct ThreadRegisters {
  std::array<std::array<Raw, registers_per_letter>, register_letters.size()> values{};
  Raw& of(char letter, unsigned number) { return values[register_letters.find(letter)][number]; }
  Raw of(char letter, unsigned number) const { return values[register_letters.find(letter)][number]; }
};

enum class Guard : uint8_t { none, plain, negated }; // @%p8, @!%p8

struct GuardedStatement {
  Statement statement;
  Guard guard = Guard::none;
  // The statement's spelling if operands are not plain registers (empty: the statement itself), with the moves of these
  // operands before and after it, for all threads.
  std::string before{}, spelled{}, after{};
  bool executes(const ThreadRegisters& thread) const {
    const bool predicate = thread.of('p', guard_predicate) != 0;
    return guard == Guard::none || predicate == (guard == Guard::plain);
  }
};

struct Observation {
  std::vector<Raw> registers; // the destination's registers in order, after the statement
  bool carry = false;         // CC.CF after it; before it, CC.CF is a copy of %p9
};

// The kernel as written, or read, converted to SSA form and back, printed and read again.
enum class Way : uint8_t { as_written, through_ssa };

// Removes `--generated` from the words of a command line: everything that runs later is generated code. Prints a
// message and returns false if there is no generator.
bool take_engine(std::vector<std::string_view>& words);

// Runs one thread of the kernel `k` of a module, whose parameters are a pointer to `result_bytes` bytes of zeros and,
// after it, aligned to 64 bytes, `parameter`. Returns the contents of these bytes.
Result<std::vector<std::byte>> run_text(const std::string& text, std::span<const std::byte> parameter,
                                        size_t result_bytes, Way way);

// result[statement][thread]. The number of threads is a multiple of 32; they form blocks of 128 (or fewer).
Result<std::vector<std::vector<Observation>>> run_statements(std::span<const GuardedStatement> statements,
                                                             std::span<const ThreadRegisters> threads,
                                                             Way way = Way::as_written);

} // namespace ptxrewrite::test
