// Definition and readers of each register, in either state of a function. Conservative outside of SSA form.
#pragma once

#include "ir/core/function.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

// Definitions and single readers, found in one pass over the operands.
class ValueDefinitions {
public:
  explicit ValueDefinitions(const Function& function);

  // The only instruction that writes the value; invalid for block parameters and for registers that are written more
  // than once.
  InstructionId definition(ValueId value) const { return rows_[value.index()].definition; }
  // True if one register may hold it and other values: an edge's argument, an old value or, as read, a register that is
  // written more than once or copied to one.
  bool merges(ValueId value) const { return rows_[value.index()].merges; }
  // Reads by instructions, other than as old values.
  uint32_t reader_count(ValueId value) const { return rows_[value.index()].readers; }
  // The only instruction that reads it, if there is a single use and the value does not merge.
  InstructionId only_reader(ValueId value) const {
    const Row& row = rows_[value.index()];
    return !row.merges && row.readers == 1 ? row.reader : InstructionId();
  }

protected:
  struct Row {
    InstructionId definition;
    InstructionId reader;    // the last one in the text
    uint32_t readers = 0;    // one per use
    uint8_t definitions = 0; // 0, 1 or 2 for more
    bool merges = false;
  };
  std::vector<Row> rows_; // by ValueId

private:
  void count(const Function& function);
  void drop_partial_definitions(const Function& function);
  void merge_as_read(const Function& function);
};

// The definitions of a function between steps that change it, of which most change nothing.
class DefinitionsBetweenSteps {
public:
  // `function` is as it was at the last call, unless forget() has been called since.
  const ValueDefinitions& of(const Function& function) {
    if (!known_) known_.emplace(function);
    return *known_;
  }
  void forget() { known_.reset(); }
  ValueDefinitions take(const Function& function) && {
    return known_ ? *std::move(known_) : ValueDefinitions(function);
  }

private:
  std::optional<ValueDefinitions> known_;
};

class ValueFlow : public ValueDefinitions {
public:
  explicit ValueFlow(const Function& function) : ValueFlow(function, ValueDefinitions(function)) {}
  // `definitions`: of the function.
  ValueFlow(const Function& function, ValueDefinitions definitions);

  // Instructions that read it as an operand or guard, one entry per use.
  std::span<const InstructionId> readers(ValueId value) const {
    uint32_t begin = reader_start_[value.index()];
    return std::span(readers_).subspan(begin, reader_start_[value.index() + 1] - begin);
  }

private:
  std::vector<uint32_t> reader_start_;
  std::vector<InstructionId> readers_;
};

} // namespace ptxrewrite::ir
