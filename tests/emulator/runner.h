// Runs statements on the emulator: each once in each thread of a grid, with source registers that the test chose, and
// hands back what the destination registers hold afterwards. The whole way is used: text, reader, decoder, warps.
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
// Registers with a part of their own: no statement may use them.
inline constexpr unsigned guard_predicate = 8;
inline constexpr unsigned carry_predicate = 9;

// What the registers of one thread hold in front of every statement: bits, of which the register's width counts.
struct ThreadRegisters {
  std::array<std::array<Raw, registers_per_letter>, register_letters.size()> values{};
  Raw& of(char letter, unsigned number) { return values[register_letters.find(letter)][number]; }
  Raw of(char letter, unsigned number) const { return values[register_letters.find(letter)][number]; }
};

enum class Guard : uint8_t { none, plain, negated }; // @%p8, @!%p8

struct GuardedStatement {
  Statement statement;
  Guard guard = Guard::none;
  // The same statement as it is spelled where operands are no plain registers (empty: as it is), and what moves them
  // there and back, for all threads.
  std::string before{}, spelled{}, after{};
  bool executes(const ThreadRegisters& thread) const {
    const bool predicate = thread.of('p', guard_predicate) != 0;
    return guard == Guard::none || predicate == (guard == Guard::plain);
  }
};

struct Observation {
  std::vector<Raw> registers; // the destination's registers in order, behind the statement
  bool carry = false;         // CC.CF behind it; in front of it %p9 decides
};

// As the text has the kernel, or read, taken into SSA form and out of it, printed and read again.
enum class Way : uint8_t { as_written, through_ssa };

// Takes `--generated` off the words of a command line: all that is run after that is generated code. False: there is no
// generator here, which is said.
bool take_engine(std::vector<std::string_view>& words);

// Runs one thread of the kernel `k` of a module, whose parameters are a pointer to `result_bytes` bytes of zeros and,
// behind it, aligned to 64 bytes, `parameter`. What it leaves in these bytes.
Result<std::vector<std::byte>> run_text(const std::string& text, std::span<const std::byte> parameter,
                                        size_t result_bytes, Way way);

// result[statement][thread]. The number of threads is a multiple of 32; they make up blocks of 128 (or fewer).
Result<std::vector<std::vector<Observation>>> run_statements(std::span<const GuardedStatement> statements,
                                                             std::span<const ThreadRegisters> threads,
                                                             Way way = Way::as_written);

} // namespace ptxrewrite::test
