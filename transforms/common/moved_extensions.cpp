#include "transforms/common/moved_extensions.h"

namespace ptxrewrite::transforms {

using ir::ExpressionId;

ExpressionId move_extensions(ir::LinearForms& forms, ExpressionId sum, ir::InstructionId instruction,
                             std::vector<ir::ObligationId>& obligations) {
  ir::ExpressionPool& pool = forms.expressions();
  if (pool.literal_value(sum) || pool[sum].kind != ir::ExpressionKind::sum) return sum;
  unsigned width = pool.width(sum);
  ExpressionId result = pool.literal(width, static_cast<uint64_t>(pool[sum].offset));
  std::vector<ir::ExpressionTerm> terms(pool.terms(sum).begin(), pool.terms(sum).end());
  bool changed = false;
  for (const ir::ExpressionTerm& term : terms) {
    ExpressionId product = pool.literal(width, term.coefficient);
    std::vector<ExpressionId> factors(pool.factors(term.monomial).begin(), pool.factors(term.monomial).end());
    for (ExpressionId factor : factors) {
      ir::ExpressionKind kind = pool[factor].kind;
      bool extension = kind == ir::ExpressionKind::sign_extend || kind == ir::ExpressionKind::zero_extend;
      if (extension && pool[pool.operands(factor)[0]].kind == ir::ExpressionKind::sum) {
        auto moved = forms.move_extension(factor, instruction);
        if (moved.expression.valid() && moved.obligation.valid()) {
          obligations.push_back(moved.obligation);
          factor = moved.expression;
          changed = true;
        }
      }
      product = pool.multiply(product, factor);
    }
    result = pool.add(result, product);
  }
  return changed ? result : sum;
}

} // namespace ptxrewrite::transforms
