// Definition and readers of each register, in either state of a function. Conservative outside of SSA form.
#pragma once

#include "ir/core/function.h"

#include <span>
#include <vector>

namespace ptxrewrite::ir {

class ValueFlow {
public:
  explicit ValueFlow(const Function& function);

  // The only instruction that writes the value; invalid for block parameters and for registers that are written more
  // than once.
  InstructionId definition(ValueId value) const { return definitions_[value.index()]; }
  // Instructions that read it as an operand or guard, one entry per use.
  std::span<const InstructionId> readers(ValueId value) const {
    uint32_t begin = reader_start_[value.index()];
    return std::span(readers_).subspan(begin, reader_start_[value.index() + 1] - begin);
  }
  // True if one register may hold it and other values: an edge's argument, an old value or, as read, a register that is
  // written more than once or copied to one.
  bool merges(ValueId value) const { return merges_[value.index()]; }
  // The only instruction that reads it, if there is a single use and the value does not merge.
  InstructionId only_reader(ValueId value) const {
    return !merges(value) && readers(value).size() == 1 ? readers(value)[0] : InstructionId();
  }

private:
  void count();
  void collect_readers();
  void merge_as_read();

  const Function& function_;
  std::vector<InstructionId> definitions_;
  std::vector<uint8_t> definition_count_; // 0, 1 or 2 for more
  std::vector<uint32_t> reader_start_;
  std::vector<InstructionId> readers_;
  std::vector<bool> merges_;
};

} // namespace ptxrewrite::ir
