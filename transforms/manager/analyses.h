// The analyses of a function that passes use, cached until the function changes: control flow, linear forms, weights.
// An analysis that was already computed, for another pass or for a candidate of this one, is shared.
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
#include <utility>
#include <vector>

namespace ptxrewrite::transforms {

class AnalysisCache {
public:
  AnalysisCache() : lowerings_(std::make_shared<ir::LoweringStore>()) {}
  // For a candidate, which is a copy of a function: shares the lowerings, because they are found by content.
  static AnalysisCache beside(const AnalysisCache& other) { return AnalysisCache(other.lowerings_); }

  // Shared by all functions of the module and all their versions.
  ir::LoweringStore& lowerings() { return *lowerings_; }

  // The analysis of the function in its present version; the reference is valid until the function changes or is
  // destroyed. An Analysis is constructed from the function and this cache, if it builds on other analyses, or from the
  // function alone.
  template <class Analysis> Analysis& of(const ir::Function& function) {
    if (void* known = find(function, &kind_of<Analysis>)) return *static_cast<Analysis*>(known);
    std::shared_ptr<Analysis> made;
    if constexpr (std::is_constructible_v<Analysis, const ir::Function&, AnalysisCache&>)
      made = std::make_shared<Analysis>(function, *this);
    else
      made = std::make_shared<Analysis>(function);
    entries_.push_back({&function, function.version(), &kind_of<Analysis>, made});
    return *made;
  }
  // The same if it is there already, otherwise nullptr.
  template <class Analysis> Analysis* known(const ir::Function& function) {
    return static_cast<Analysis*>(find(function, &kind_of<Analysis>));
  }
  void clear() { entries_.clear(); }

private:
  explicit AnalysisCache(std::shared_ptr<ir::LoweringStore> lowerings) : lowerings_(std::move(lowerings)) {}

  // Stands for the type by its address, which is compared faster than a type's name.
  template <class Analysis> static constexpr char kind_of = 0;

  struct Entry {
    const ir::Function* function;
    uint64_t version;
    const char* kind;
    std::shared_ptr<void> analysis;
  };

  // Returns nullptr if there is none. Drops the entries for earlier versions of the function.
  void* find(const ir::Function& function, const char* kind) {
    const uint64_t version = function.version();
    bool has_earlier = false;
    for (const Entry& entry : entries_) {
      if (entry.function != &function) continue;
      if (entry.version == version && entry.kind == kind) return entry.analysis.get();
      has_earlier |= entry.version != version;
    }
    if (has_earlier)
      std::erase_if(entries_,
                    [&](const Entry& entry) { return entry.function == &function && entry.version != version; });
    return nullptr;
  }

  std::shared_ptr<ir::LoweringStore> lowerings_;
  std::vector<Entry> entries_; // a few kinds for one or two functions
};

} // namespace ptxrewrite::transforms
