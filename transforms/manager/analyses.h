// What passes look up of a function, kept for as long as the function stays as it is: control flow, linear forms,
// weights. A pass that asks for what another pass, or one of its own candidates, has asked for before gets the same.
//
//   const ir::LinearForms& forms = context.analyses.of<ir::LinearForms>(function);
//
// An entry is for one function at one version (ir::Function::version); an edit makes it invalid. Edits that do not go
// through the members of Function (an operand written in place) are announced by Function::changed().
#pragma once

#include "ir/core/function.h"
#include "ir/machine/select/lowering_store.h"

#include <memory>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

namespace ptxrewrite::transforms {

class AnalysisCache {
public:
  AnalysisCache() : lowerings_(std::make_shared<ir::LoweringStore>()) {}
  // For candidates that are made of a function: lowerings, which are found by content, are in common.
  static AnalysisCache beside(const AnalysisCache& other) { return AnalysisCache(other.lowerings_); }

  // Of any version of any function of the module.
  ir::LoweringStore& lowerings() { return *lowerings_; }

  // Of the function as it is now; the reference is good until the function changes, or goes. An Analysis is made from
  // the function and this cache, where it builds on others, or from the function alone.
  template <class Analysis> Analysis& of(const ir::Function& function) {
    if (void* known = find(function, typeid(Analysis))) return *static_cast<Analysis*>(known);
    std::shared_ptr<Analysis> made;
    if constexpr (std::is_constructible_v<Analysis, const ir::Function&, AnalysisCache&>)
      made = std::make_shared<Analysis>(function, *this);
    else
      made = std::make_shared<Analysis>(function);
    entries_.push_back({&function, function.version(), typeid(Analysis), made});
    return *made;
  }
  void clear() { entries_.clear(); }

private:
  explicit AnalysisCache(std::shared_ptr<ir::LoweringStore> lowerings) : lowerings_(std::move(lowerings)) {}

  struct Entry {
    const ir::Function* function;
    uint64_t version;
    std::type_index kind;
    std::shared_ptr<void> analysis;
  };

  // nullptr if there is none. Drops what was about an earlier version of the function.
  void* find(const ir::Function& function, std::type_index kind) {
    const uint64_t version = function.version();
    std::erase_if(entries_,
                  [&](const Entry& entry) { return entry.function == &function && entry.version != version; });
    for (const Entry& entry : entries_)
      if (entry.function == &function && entry.kind == kind) return entry.analysis.get();
    return nullptr;
  }

  std::shared_ptr<ir::LoweringStore> lowerings_;
  std::vector<Entry> entries_; // a few kinds for one or two functions
};

} // namespace ptxrewrite::transforms
