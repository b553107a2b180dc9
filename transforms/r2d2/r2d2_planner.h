// The planner of the hardware form, private to r2d2_{sites,increments,joins,plan}.cpp.
#pragma once

#include "ir/edit/dead_code.h"
#include "transforms/r2d2/r2d2_plan.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::transforms::r2d2 {

class Planner {
public:
  Planner(ir::LinearForms& forms, const PlanOptions& options, PassContext& context);

  Plan run();

private:
  // --- finding sites (r2d2_sites.cpp) ---
  void find_address_sites();
  void find_result_sites();
  void consider_result(ir::InstructionId id, ir::ReaderCounts& counts, const ir::Liveliness::Result& live,
                       const std::vector<bool>& used);
  bool is_uniform(const LinearSite& site) const;
  std::optional<std::vector<ir::InstructionId>> direct_readers(const LinearSite& site, ir::ValueId result,
                                                               const ir::ReaderCounts& counts,
                                                               const ir::Liveliness::Result& live) const;
  bool is_dead(ir::InstructionId id, const ir::ReaderCounts& counts) const;
  // Can the form be used here? Fills coefficients, offsets and obligations of the site.
  bool usable(const ir::LinearForm& form, ir::ValueId value, LinearSite& site);
  // The same for the value that a guarded definition writes if its guard holds.
  bool usable_alternative(ir::InstructionId id, LinearSite& site);
  bool set_coefficients(const ir::LinearForm& form, LinearSite& site);
  bool set_offsets(const ir::LinearForm& form, LinearSite& site);
  bool add_obligations(ir::ValueId value, LinearSite& site);
  bool expressible(ir::ExpressionId id, const LinearSite& site);
  void pull_extensions_out(LinearSite& site);

  // --- loops (r2d2_increments.cpp) ---
  // Chains of offsets, as keys.
  using ChainKey = std::vector<uint32_t>;
  static ChainKey key_of(unsigned width, std::span<const ir::LoopOffset> chain);
  void find_counters();
  bool choose_counter(LinearSite& site);
  bool choose_offset_of_result(LinearSite& site, const std::vector<bool>& used);
  bool is_counter_at(ir::ValueId counter, ir::InstructionId place) const;
  // Can control flow from one instruction to the other without passing the start of `without`?
  bool runs_before(ir::InstructionId first, ir::InstructionId second, ir::BlockId without) const;
  uint32_t increment_for(unsigned width, std::span<const ir::LoopOffset> chain);
  void choose_offsets_of_addresses();
  void drop_useless_increments();
  // By increment: is it read by a site that takes part, or is it the parent of one that is read?
  std::vector<bool> used_increments() const;
  double added_weight(ir::LoopId inside = {}) const;
  double increment_weight(const Increment& increment, ir::LoopId inside) const;

  // --- several paths (r2d2_joins.cpp) ---
  struct PathChoice {
    ir::BlockId block;
    ir::ValueId predicate;
    std::vector<unsigned> alternatives; // the form that each move provides
  };
  std::optional<PathChoice> choice_of(const ir::LinearForm& form, ir::ValueId value, ir::InstructionId place) const;
  std::optional<PathChoice> paths_of(ir::ValueId value, const ir::FormCondition& condition) const;
  bool set_join(const ir::LinearForm& form, ir::ValueId value, LinearSite& site);
  uint32_t join_for(const PathChoice& choice, std::vector<LinearSite>& alternatives);
  bool join_takes_part(uint32_t index) const;
  std::vector<bool> used_joins() const;
  double added_by_joins(ir::LoopId inside) const;
  void drop_useless_joins();

  // --- choice (r2d2_plan.cpp) ---
  void form_groups();
  void put_into_group(LinearSite& site, uint32_t number, std::map<std::vector<uint32_t>, std::vector<uint32_t>>& index);
  uint32_t group_for(const LinearSite& site, std::map<std::vector<uint32_t>, std::vector<uint32_t>>& index);
  void estimate_savings();
  std::vector<std::set<uint32_t>> groups_behind(const ir::Liveliness::Result& live) const;
  std::set<uint32_t> groups_of(ir::InstructionId id, const ir::Liveliness::Result& live,
                               const std::vector<std::set<uint32_t>>& behind) const;
  void apply_limit();
  void drop_useless_groups();
  Plan result();
  // Liveness as if the sites that take part no longer read the operands they replace.
  ir::Liveliness::Result simulate() const;
  // Is the operand one that a participating site no longer reads?
  bool replaced(ir::InstructionId id, size_t operand) const;
  double removed_weight(const ir::Liveliness::Result& live, size_t* count = nullptr, ir::LoopId inside = {}) const;
  double gain(ir::LoopId inside = {}) const {
    return removed_weight(simulate(), nullptr, inside) - added_weight(inside);
  }
  bool takes_part(const LinearSite& site) const {
    return (site.increment == none || enabled_[site.increment]) && (site.group == none || kept_[site.group]) &&
           (site.join == none || join_takes_part(site.join));
  }
  // By the numbers in groups: sites, then moves.
  const LinearSite& site_at(uint32_t number) const {
    return number < sites_.size() ? sites_[number] : moves_[number - sites_.size()];
  }
  // Execution frequency of a block; dynamic machine instructions that an instruction of the kernel, or one that the
  // plan adds, accounts for.
  double frequency(ir::BlockId block) const { return frequency_[block.index()]; }
  double weight(ir::InstructionId id) const { return cost_[id.index()] * frequency(function_.instructions[id].block); }
  double weight_of(std::string_view mnemonic, ir::BlockId block) const;
  // Weight of the move that replaces an instruction, minus that of the instruction itself.
  double replacement_weight(const LinearSite& site) const;
  void explain_unused(ir::InstructionId id, const std::string& why);
  bool dischargeable(ir::ObligationId id);

  ir::LinearForms& forms_;
  const ir::Function& function_;
  const PlanOptions& options_;
  PassContext& context_;
  ir::Liveliness liveliness_;
  uint32_t compute_capability_;
  std::vector<double> cost_;      // by InstructionId: machine instructions
  std::vector<double> frequency_; // by BlockId
  std::vector<LinearSite> sites_;
  std::vector<Group> groups_;
  std::vector<bool> kept_;        // by group
  std::vector<uint32_t> site_of_; // by InstructionId; none
  std::vector<Increment> increments_;
  std::vector<bool> enabled_; // by increment
  std::map<ChainKey, uint32_t> increment_of_;
  std::vector<Join> joins_; // their moves are in moves_
  std::vector<LinearSite> moves_;
  std::vector<bool> join_enabled_; // by join
  std::map<std::vector<uint32_t>, uint32_t> join_of_;
  std::map<ChainKey, std::vector<ir::ValueId>> counters_;
  bool counters_known_ = false;
  std::vector<uint32_t> order_; // by InstructionId: place in the text
  std::vector<bool> reads_sum_; // by InstructionId: one of its operands already is a sum of linear registers
  std::map<std::string, std::pair<size_t, SourceRange>> unused_;
  size_t dropped_by_limit_ = 0;
};

} // namespace ptxrewrite::transforms::r2d2
