// Pass `darsie`: marks instructions whose result is the same in all warps of a block
// (ir/analysis/redundancy/redundancy.h).
//
// Annotated form: hints, in comments or pragmas; the machine code stays the same. The hardware form is the same text:
// the proposed unit needs only the marks from the compiler (darsie §4.2). Legal form: existing GPUs skip no
// instructions, but known launch parameters make kernels faster: with `specialise`, a variant for one launch shape is
// added beside the original.
#include "ir/analysis/redundancy/redundancy.h"
#include "ir/core/builder.h"
#include "transforms/common/choice.h"
#include "transforms/darsie/darsie_specialise.h"
#include "transforms/darsie/darsie_text.h"
#include "transforms/manager/pass.h"

namespace ptxrewrite::transforms {

namespace {

using ir::InstructionId;
using ir::InstructionKind;

MarkCarrier carrier_of(const PassContext& context) {
  return parse_carrier(context.options.text("carrier", "comment")).value_or(MarkCarrier::comment);
}

bool refuses(const ir::Function& function, PassContext& context) {
  if (ir::has_written_marks(function)) {
    context.remarks.emplace_back("left as it is: it has marks already", function.header_range);
    return true;
  }
  if (!parse_carrier(context.options.text("carrier", "comment"))) {
    context.remarks.emplace_back("left as it is: the carrier is comment or pragma");
    return true;
  }
  return false;
}

void count(ir::DarsieMark mark, PassContext& context) {
  const std::string strength = mark.is_vector() ? "vector" : mark.is_definite() ? "definite" : "conditional";
  ++context.statistics["darsie." + strength];
}

void place(ir::Function& function, InstructionId at, ir::DarsieMark mark, MarkCarrier carrier) {
  ir::Builder builder(function);
  ir::Operand operand;
  operand.kind = ir::OperandKind::text;
  const std::string text = std::string(ir::mark_prefix) + to_string(mark);
  if (carrier == MarkCarrier::pragma) {
    operand.id = function.module().intern(text).index();
    builder.before(at).emit_marker(InstructionKind::pragma, {operand});
  } else {
    operand.id = function.module().intern("@ " + text).index();
    builder.after(at).emit_marker(InstructionKind::annotation, {operand});
  }
}

Change mark(ir::Function& function, PassContext& context) {
  if (refuses(function, context)) return Change::unchanged;
  const std::vector<ir::DarsieMark> marks = ir::marks_of(function);
  const MarkCarrier carrier = carrier_of(context);
  Change change = Change::unchanged;
  for (ir::BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == InstructionKind::real) {
        place(function, id, marks[id.index()], carrier);
        count(marks[id.index()], context);
        change = Change::changed;
      }
  return change;
}

std::vector<TextInsertion> annotate(const ir::Function& function, PassContext& context) {
  if (refuses(function, context)) return {};
  const std::vector<ir::DarsieMark> marks = ir::marks_of(function);
  for (ir::BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == InstructionKind::real) count(marks[id.index()], context);
  return mark_insertions(function, marks, carrier_of(context));
}

Change run(ir::Function& function, PassContext& context) {
  if (context.form != OutputForm::legal) return mark(function, context);
  return specialise(function, context.options.text("specialise", ""), context);
}

const RegisterPass registration(
    {"darsie",
     "mark instructions with one result for all warps of a block; legal form: a kernel for one launch shape",
     run,
     {{"carrier", "annotated form: comment (default) or pragma"},
      {"specialise", "legal form: \"block=16x16[,grid=64x64][,param.2=1024]\", the launch to make a variant for"},
      {"force", "legal form: keep the variant even if its machine code is worse", PassOptionKind::flag},
      legal::cost_option(),
      legal::architectures_option()},
     annotate});

} // namespace

} // namespace ptxrewrite::transforms
