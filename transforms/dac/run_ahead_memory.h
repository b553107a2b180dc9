// May a load run ahead? Only if it passes no write that could change the data.
//
// A load issued `distance` trips early passes the writes that its thread makes in between, and those of other threads
// that the loop does not wait for. Therefore:
//   * loads of read-only data (.nc) pass everything;
//   * a loop with fences, acquiring or volatile accesses, calls: no load may run ahead;
//   * without barriers in the loop, only the thread's own writes count: those of other threads are not ordered with the
//     load in the original either. If the addresses of write and load differ by the same amount in all threads, that
//     amount and the number of trips decide; otherwise their ranges over the whole launch do;
//   * with barriers of the block in the loop, every write of the kernel counts, and only ranges decide;
//   * if another thread issues the loads (the producer warp), the same as with barriers.
// Unproved conditions are checked at launch, or assumed (`--assume noalias-params`: parameters that are pointers point
// to different buffers).
#pragma once

#include "ir/analysis/linear/linear.h"
#include "transforms/common/attempt.h"
#include "transforms/dac/run_ahead_plan.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxrewrite::transforms::legal {

constexpr std::string_view noalias_parameters = "noalias-params"; // --assume

// A condition that a load which runs ahead depends on.
struct MemoryClaim {
  std::string statement;
  std::string predicate; // over the launch; empty if proved or assumed
  std::string reason;    // of a proved condition
  bool assumed = false;
  ir::InstructionId load, write;
  std::vector<ir::ObligationId> obligations; // of the linear forms of the addresses
};

// The instructions that may write to memory of other threads, and calls, in the order of the text.
std::vector<ir::InstructionId> writers_of(const ir::Function& function);

class MemoryOrder {
public:
  // `writers`: writers_of the function, for `by_another_thread`.
  MemoryOrder(ir::LinearForms& forms, const Attempt& attempt, bool assume_noalias, ir::LoopId loop,
              std::span<const ir::InstructionId> writers, bool by_another_thread);

  // Why the load cannot be issued `distance` trips early. Empty if it can, under the claims that are added.
  std::string check(const RunAheadLoad& load, unsigned distance, std::vector<MemoryClaim>& claims) const;

private:
  struct Write {
    ir::InstructionId instruction;
    size_t address = 0;
    unsigned bytes = 0;
    bool atomic = false;
  };

  void scan(std::span<const ir::InstructionId> writers);
  void scan_instruction(ir::InstructionId id, bool in_loop);
  std::string check_against(const RunAheadLoad& load, const Write& write, unsigned distance,
                            std::vector<MemoryClaim>& claims) const;
  bool same_in_all_threads(const ir::LinearForm& a, const ir::LinearForm& b, ir::ExpressionId& step) const;
  enum class Apart : uint8_t { unknown, proved, at_launch, never };
  Apart apart_in_thread(const RunAheadLoad& load, const Write& write, unsigned distance, std::string& predicate) const;
  bool comes_before(const Write& write, const RunAheadLoad& load) const;
  // The predicate under which their ranges are apart in the whole launch; kept for the other distances.
  const std::optional<std::string>& ranges_apart(const RunAheadLoad& load, const Write& write) const;
  std::optional<std::string> compare_ranges(const RunAheadLoad& load, const Write& write) const;
  std::optional<uint32_t> pointer_of(const ir::LinearForm& form) const;
  std::optional<std::string> variable_of(const ir::LinearForm& form) const;

  ir::LinearForms& forms_;
  const ir::Function& function_;
  const Attempt& attempt_;
  bool assume_noalias_;
  ir::LoopId loop_;
  std::vector<Write> writes_;
  bool barriers_ = false; // or another thread issues the loads
  std::string refusal_;   // applies to all loads that are not read-only
  mutable std::map<std::pair<ir::InstructionId, ir::InstructionId>, std::optional<std::string>> ranges_apart_;
};

// Enters the claims into the attempt's ledger; equal ones once.
void rest_on_claims(Attempt& attempt, ir::LinearForms& forms, const std::vector<MemoryClaim>& claims);

} // namespace ptxrewrite::transforms::legal
