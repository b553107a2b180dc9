// multimem (PTX ISA 9.7.9.14): operations on an address that represents a location in the memory of several GPUs each.
// The emulator has one GPU, whose memory is the only replica: a load that reduces over all replicas returns its value,
// and a store or reduction changes it. So each instruction behaves as the one on global memory with the same name.
//
// fabric.* works on memory of other GPUs and is refused; trace.mark has no effect that a program can see.
#include "emulator/core/decode.h"

namespace ptxrewrite::emulator {
namespace {

// PTX ISA 9.4, 9.7.11.
void refuse_fabric(Decoder& decoder, ir::InstructionId) {
  decoder.unsupported(
      "fabric operations are not emulated: they reach endpoints of other GPUs, of which there are none");
}

// PTX ISA 9.5, known from ptxas: it has no result and no visible effect.
const MicroOp* mark_trace(Warp&, const MicroOp& op) {
  return &op + 1;
}
void decode_mark(Decoder& decoder, ir::InstructionId) {
  decoder.emit(&mark_trace);
}

} // namespace

// Called after the families of memory and atomic operations, whose decoders it reuses.
void add_multimem_operations(OperationTable& table) {
  const auto like = [&](const char* pattern, const char* mnemonic) {
    const Operation* operation = table.find(ir::form(ir::known_form(mnemonic)), {});
    table.special(pattern, operation->special);
  };
  like("multimem.ld_reduce*", "ld.global.u32");
  like("multimem.st*", "st.global.u32"); // also st.async
  like("multimem.red*", "red.global.add.u32");
  like("multimem.cp.reduce*", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32");
  like("multimem.cp*", "cp.async.bulk.global.shared::cta.bulk_group");
  table.special("fabric*", &refuse_fabric);
  table.special("trace*", &decode_mark);
}

} // namespace ptxrewrite::emulator
