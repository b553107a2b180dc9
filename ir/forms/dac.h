// DAC's hardware form (dac-isca17 4; text: `.dac.affine { ... }` and the words dac.*): a kernel whose body is the
// non-affine stream, and which owns a second function, its affine stream (Function::affine_stream).
//
// What crosses over has a number, and each number has one instruction in each stream:
//
//   affine stream                              body
//   dac.enq.data.SPACE.TYPE N, [address]       ld.SPACE.TYPE d, [dac.deq.data(N)]
//   dac.enq.addr.SPACE N, [address]            ld, st, atom, red ... [dac.deq.addr(N)]
//   dac.enq.pred N, p                          @dac.deq.pred(N), or dac.deq.pred p, N where several read it
//   @dac.take.pred(N), or dac.take.pred p, N   dac.give.pred N, p
//
// In the IR `dac.deq.data(3)` is a value of a register class of its own (is_queue): reading it takes from the queue.
#pragma once

#include "ir/forms/finding.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

// "dac.deq.data" and so on; empty for classes that are no queues.
std::string_view queue_spelling(RegisterClass register_class);
// The class that is spelled so.
std::optional<RegisterClass> parse_queue(std::string_view word);

// The value that stands for taking from a queue. Each reading instruction has a number, and thus a value, of its own.
ValueId add_queue_value(Function& function, RegisterClass register_class, uint32_t number);

// Does the instruction take from a queue through an operand or its guard? Such an instruction may not be removed,
// repeated or moved.
bool takes_from_queue(const Function& function, InstructionId instruction);

// An instruction's part in what crosses over.
enum class CrossingKind : uint8_t { data, address, predicate, given_predicate };
struct Crossing {
  CrossingKind kind = CrossingKind::data;
  uint32_t number = 0;
  bool sends = false; // enq, give; else deq, take
  InstructionId instruction;
  BlockId block;
};
// All crossings of one stream, in the order of its text. An instruction that is guarded by one and takes another is
// there twice.
std::vector<Crossing> crossings(const Function& stream);

// A function for the affine stream of `kernel`: it knows the kernel's parameters and local variables under the same
// handles, and has an empty entry block.
std::unique_ptr<Function> make_affine_stream(const Function& kernel);

// What is wrong with the two streams of a kernel, or with DAC's words outside of such a kernel.
std::vector<FormFinding> check_streams(const Function& kernel);

} // namespace ptxrewrite::ir
