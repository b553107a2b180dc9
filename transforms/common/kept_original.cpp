#include "transforms/common/kept_original.h"

namespace ptxrewrite::transforms::legal {

void rewrite_kept_original(PassContext& context, size_t index,
                           const std::function<Change(ir::Function&, PassContext&)>& again) {
  if (index >= context.additions.size()) return;
  PassContext own = context.beside();
  if (again(*context.additions[index], own) == Change::unchanged) return;
  for (const auto& [name, count] : own.statistics)
    context.statistics[name] += count;
  context.ledger.insert(context.ledger.end(), own.ledger.begin(), own.ledger.end());
  for (Remark& remark : own.remarks)
    context.remarks.emplace_back("when no variant runs: " + remark.text, remark.range);
}

} // namespace ptxrewrite::transforms::legal
