// What rewritings rest on, counted: how each obligation in their ledgers was discharged, and what the checks said that
// were left to the launch.
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
  uint64_t rewritten_ran = 0, original_ran = 0; // launches of changed kernels, the latter where a variant was there
  uint64_t guard_passed = 0, guard_failed = 0;  // launches of kernels with a guard of their own
  void add(const ChainRow& other);
};

class LedgerCounts {
public:
  ChainRow& chain(const std::string& name) { return chains_[name]; }
  // The obligations of one rewriting of `text`; `launches` are those that it went through.
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
