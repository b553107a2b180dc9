// DAC's hardware form (dac-isca17 4; text: `.dac.affine { ... }` and the words dac.*): a kernel whose body is the
// non-affine stream and which owns a second function, the affine stream (Function::affine_stream).
//
// Each transfer between the streams has a number, which occurs in one instruction of either stream:
//
//   affine stream                              body
//   dac.enq.data.SPACE.TYPE N, [address]       ld.SPACE.TYPE d, [dac.deq.data(N)]
//   dac.enq.addr.SPACE N, [address]            ld, st, atom, red ... [dac.deq.addr(N)]
//   dac.enq.pred N, p                          @dac.deq.pred(N), or dac.deq.pred p, N where several read it
//   @dac.take.pred(N), or dac.take.pred p, N   dac.give.pred N, p
//
// In the IR `dac.deq.data(3)` is a value of its own register class (is_queue): each read dequeues an entry.
#pragma once

#include "ir/forms/finding.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

// "dac.deq.data" and so on; empty for classes that are not queues.
std::string_view queue_spelling(RegisterClass register_class);
// The class with this spelling; nullopt for other words.
std::optional<RegisterClass> parse_queue(std::string_view word);

// Adds a value whose reads dequeue. Each reading instruction has its own number and thus its own value.
ValueId add_queue_value(Function& function, RegisterClass register_class, uint32_t number);

// True if an operand or the guard of the instruction dequeues. Such an instruction must not be removed, repeated or
// moved.
bool takes_from_queue(const Function& function, InstructionId instruction);
inline bool takes_from_queue(const Function& function, ValueId read) {
  return is_queue(function.values[read].register_class);
}

// An instruction's part in a transfer between the streams.
enum class CrossingKind : uint8_t { data, address, predicate, given_predicate };
struct Crossing {
  CrossingKind kind = CrossingKind::data;
  uint32_t number = 0;
  bool sends = false; // enq, give; false: deq, take
  InstructionId instruction;
  BlockId block;
};
// All transfers of one stream, in text order. An instruction whose guard dequeues and which has a further transfer
// occurs twice.
std::vector<Crossing> crossings(const Function& stream);

// Creates a function for the affine stream of `kernel`. It has the kernel's parameters and local variables under the
// same handles, and an empty entry block.
std::unique_ptr<Function> make_affine_stream(const Function& kernel);

// Reports errors in the two streams of a kernel, and uses of dac.* words outside of such a kernel.
std::vector<FormFinding> check_streams(const Function& kernel);

} // namespace ptxrewrite::ir
