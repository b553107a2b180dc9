// Looks up temporaries.def, and the slow paths' figures in heuristics.def.
#include "ir/machine/registers/temporaries.h"

#include "ir/core/module.h"
#include "ir/machine/figures/expansion.h"
#include "ir/machine/figures/heuristics.h"

#include <bit>
#include <optional>

namespace ptxrewrite::ir {

namespace {

struct SlowPath {
  Heuristic least, spare; // registers beside those that are live there: at least, and if there are some to spare
};

std::optional<SlowPath> slow_path_of(Subroutine subroutine) {
#define OF_EACH_GENERATION(name)                                                                                       \
  case Subroutine::name:                                                                                               \
  case Subroutine::kepler_##name:                                                                                      \
  case Subroutine::maxwell_##name
  switch (subroutine) {
    OF_EACH_GENERATION(div_f32) : return SlowPath{Heuristic::registers_div_f32, Heuristic::spare_div_f32};
    OF_EACH_GENERATION(div_f64) : return SlowPath{Heuristic::registers_div_f64, Heuristic::spare_div_f64};
    OF_EACH_GENERATION(div_u64) : return SlowPath{Heuristic::registers_div_64, Heuristic::spare_div_u64};
    OF_EACH_GENERATION(rem_u64) : return SlowPath{Heuristic::registers_div_64, Heuristic::spare_div_u64};
    OF_EACH_GENERATION(div_s64) : return SlowPath{Heuristic::registers_div_64, Heuristic::spare_div_s64};
    OF_EACH_GENERATION(rem_s64) : return SlowPath{Heuristic::registers_div_64, Heuristic::spare_rem_s64};
    OF_EACH_GENERATION(rcp_f32) : return SlowPath{Heuristic::registers_rcp, Heuristic::spare_rcp_f32};
    OF_EACH_GENERATION(rcp_f64) : return SlowPath{Heuristic::registers_rcp, Heuristic::registers_rcp};
    OF_EACH_GENERATION(sqrt_f32) : return SlowPath{Heuristic::registers_sqrt_f32, Heuristic::spare_sqrt_f32};
    OF_EACH_GENERATION(sqrt_f64) : return SlowPath{Heuristic::registers_sqrt_f64, Heuristic::spare_sqrt_f64};
  default:
    return std::nullopt;
  }
#undef OF_EACH_GENERATION
}

enum class Divisor : uint8_t { variable, literal, any };

struct Temporaries {
  Opcode opcode;
  ScalarType type;
  Divisor divisor;
  uint32_t sm, words;
};

constexpr Temporaries rows[] = {
#define TEMPORARIES(opcode, type, divisor, sm, words) {Opcode::opcode, ScalarType::type, Divisor::divisor, sm, words},
#include "ir/machine/registers/temporaries.def"
#undef TEMPORARIES
};

bool is_shift(const Form& form, const Operand& divisor) {
  return divisor.is(OperandKind::integer) && !is_signed(form.type()) &&
         std::has_single_bit(static_cast<uint64_t>(divisor.immediate));
}

} // namespace

uint32_t temporary_words(const Function& function, InstructionId id, uint32_t compute_capability, bool spare) {
  const Form& form = function.form_of(id);
  const Subroutine subroutine = expansion_of(form, compute_capability, false).subroutine;
  if (const std::optional<SlowPath> path = slow_path_of(subroutine))
    return heuristic(compute_capability, spare ? path->spare : path->least);
  if (!spare || form.has(Modifier::ftz)) return 0;
  uint32_t words = 0;
  for (const Temporaries& row : rows) {
    if (row.opcode != form.opcode || row.type != form.type() || compute_capability < row.sm) continue;
    const Operand& last = function.operands_of(id).back();
    if (row.divisor == Divisor::variable && last.is_constant()) continue;
    if (row.divisor == Divisor::literal && (!last.is_constant() || is_shift(form, last))) continue;
    words = row.words;
  }
  return words;
}

} // namespace ptxrewrite::ir
