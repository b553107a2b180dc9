// Statistics of the obligations of rewritings: the kind of discharge of each obligation in their ledgers, and the
// results of the launch checks.
#pragma once

#include "launch/predicate.h"
#include "transforms/manager/pass.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::fuzz {

struct LedgerRow {
  std::array<uint64_t, 4> discharged{}; // by transforms::Discharge
  uint64_t held = 0, failed = 0;        // launch checks, each in each launch
  void add(const LedgerRow& other);
};

// One way of rewriting.
struct ChainRow : LedgerRow {
  uint64_t kernels = 0, changed = 0;
  uint64_t rewritten_ran = 0, original_ran = 0; // launches of changed kernels; the latter if there was a variant
  uint64_t guard_passed = 0, guard_failed = 0;  // launches of kernels with a guard
  void add(const ChainRow& other);
};

class LedgerCounts {
public:
  ChainRow& chain(const std::string& name) { return chains_[name]; }
  // Adds the obligations of one rewriting of `text`; `launches` are the launches it was tested with.
  void add(const std::string& chain, const std::string& text, const std::vector<transforms::Obligation>& ledger,
           const std::vector<launch::LaunchFacts>& launches);
  void add(const LedgerCounts& other);
  LedgerRow sum() const;
  // Tables: obligations by chain and by the instruction that raised them, launches by chain.
  std::string table() const;

private:
  std::map<std::string, ChainRow> chains_;
  std::map<std::string, LedgerRow> instructions_; // by mnemonic
};

} // namespace ptxrewrite::fuzz
