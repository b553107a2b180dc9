// Operands, names and literals as text; shared by the source files of the printer.
#pragma once

#include "ir/core/module.h"

#include <string>

namespace ptxrewrite::ir {

// Appends decimal digits.
void append_number(std::string& out, uint64_t number);
void append_signed(std::string& out, int64_t number);
// `%r12`; `%r12.7` when `numbered`, where 7 is the value's index: in SSA form several values may share a hint.
void append_value(std::string& out, const Function& function, ValueId value, bool numbered);
void append_block(std::string& out, const Function& function, BlockId block);
void append_selector(std::string& out, Selector selector);

// Prints operands of one owner: a function's body, or a module's initialisers (then `function` is null).
class OperandPrinter {
public:
  OperandPrinter(std::string& out, const Module& module, const Function* function, bool numbered = false)
      : out_(out), module_(module), function_(function), numbered_(numbered) {}

  // Prints the operand at `index` including the operands inside it; returns the index of the next operand.
  size_t print(std::span<const Operand> operands, size_t index);
  // Prints all operands in [begin, end), separated by `separator`.
  void print_list(std::span<const Operand> operands, size_t begin, size_t end, std::string_view separator);

private:
  void print_scalar(const Operand& operand);
  void print_address(std::span<const Operand> operands, size_t index);
  void print_pair(std::span<const Operand> operands, size_t index);
  void print_symbol(const Operand& operand);
  void print_integer(const Operand& operand);
  void append_offset(int64_t offset, bool spelled = false);

  std::string& out_;
  const Module& module_;
  const Function* function_;
  bool numbered_;
};

} // namespace ptxrewrite::ir
