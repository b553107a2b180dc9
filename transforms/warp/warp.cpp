// Pass `warp`: replaces common idioms across the lanes of a warp by dedicated instructions.
//
//   * reductions by five shuffles -> redux.sync; of predicates -> votes (shuffle_trees.h);
//   * masks of lanes by shifts -> %lanemask_lt and the like (lane_masks.h);
//   * barriers of blocks that are one warp -> bar.warp.sync.
//
// A shuffle with a full mask waits for all lanes of the warp that have not exited. A value read from an exited lane is
// undefined, whereas redux.sync leaves that lane out. So a tree is replaced only if each warp has 32 lanes, by the
// block's shape, and none of them can have taken another path (warp_lanes.h).
#include "ir/core/builder.h"
#include "ir/core/module.h"
#include "ir/edit/dead_code.h"
#include "transforms/common/family.h"
#include "transforms/warp/lane_masks.h"
#include "transforms/warp/shuffle_trees.h"

#include <array>
#include <optional>

namespace ptxrewrite::transforms {

namespace warp {

namespace {

using ir::BlockId;
using ir::InstructionId;
using ir::Modifier;
using ir::Operand;
using ir::OperandKind;
using legal::Attempt;
using legal::SiteFilter;

constexpr uint32_t warp_size = 32;

// The three numbers of a directive such as .reqntid, 1 for those omitted; nothing without the directive.
std::optional<std::array<uint64_t, 3>> numbers_of(const ir::Function& function, std::string_view name) {
  for (const ir::FunctionDirective& directive : function.directives) {
    if (function.module().text(directive.name) != name || directive.count == 0) continue;
    std::array<uint64_t, 3> numbers{1, 1, 1};
    for (size_t i = 0; i < directive.count && i < numbers.size(); ++i)
      numbers[i] = directive.numbers[i];
    return numbers;
  }
  return std::nullopt;
}

// The condition on which a site depends.
struct Ground {
  std::string statement;
  std::string predicate;  // over the launch
  bool is_proved = false; // by .reqntid
};

class Rewriter {
public:
  Rewriter(Attempt& attempt, SiteFilter& sites)
      : attempt_(attempt), sites_(sites), function_(attempt.function()), block_(numbers_of(function_, ".reqntid")) {}

  bool run() {
    const std::vector<ShuffleTree> trees =
        has_shuffles() ? find_shuffle_trees(function_, def_use()) : std::vector<ShuffleTree>();
    std::vector<std::pair<LaneMask, std::optional<Ground>>> masks = lane_masks();
    const std::vector<InstructionId> barriers = barriers_of_one_warp();
    std::vector<ShuffleTree> taken;
    for (const ShuffleTree& tree : trees)
      if (is_taken(tree)) taken.push_back(tree);
    for (const auto& [mask, ground] : masks)
      if (take(mask.root, description(mask), ground)) replace(function_, mask);
    for (InstructionId barrier : barriers)
      rewrite_barrier(barrier);
    replace(function_, taken); // the loops no longer exist after this
    if (changed_) ir::remove_dead_code(function_);
    return changed_;
  }

private:
  // Of the kernel before the rewrite. Few kernels have a site.
  const ir::DefUse& def_use() {
    if (!def_use_) def_use_.emplace(function_);
    return *def_use_;
  }
  bool has_shuffles() const {
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block))
        if (function_.is_opcode(id, ir::Opcode::shfl)) return true;
    return false;
  }
  const WarpLanes& lanes(BlockShape shape) {
    std::optional<WarpLanes>& known = lanes_[static_cast<size_t>(shape)];
    if (!known) known.emplace(function_, def_use(), shape);
    return *known;
  }
  Ground full_warps() const {
    return {"blocks are whole warps", "ntid.x * ntid.y * ntid.z % 32 == 0",
            block_ && (*block_)[0] * (*block_)[1] * (*block_)[2] % warp_size == 0};
  }
  Ground full_rows() const {
    return {"rows of a block are whole warps", "ntid.x % 32 == 0", block_ && (*block_)[0] % warp_size == 0};
  }
  Ground warps_in_rows() const {
    return {"no warp has threads of two rows of the block", "ntid.x % 32 == 0 || ntid.y * ntid.z == 1",
            block_ && ((*block_)[0] % warp_size == 0 || (*block_)[1] * (*block_)[2] == 1)};
  }

  std::optional<Ground> ground_of(const ShuffleTree& tree);
  std::vector<std::pair<LaneMask, std::optional<Ground>>> lane_masks();
  std::vector<InstructionId> barriers_of_one_warp() const;
  bool take(InstructionId site, const std::string& text, const std::optional<Ground>& ground);
  bool is_taken(const ShuffleTree& tree);
  void rewrite_barrier(InstructionId barrier);

  Attempt& attempt_;
  SiteFilter& sites_;
  ir::Function& function_;
  std::optional<ir::DefUse> def_use_;
  std::optional<std::array<uint64_t, 3>> block_; // .reqntid
  std::array<std::optional<WarpLanes>, 3> lanes_;
  bool changed_ = false;
};

// Enters the site's condition into the ledger if the site is taken.
bool Rewriter::take(InstructionId site, const std::string& text, const std::optional<Ground>& ground) {
  if (ground && !ground->is_proved && !attempt_.policy().launch) return false;
  if (!sites_.take(site, text)) return false;
  if (ground)
    attempt_.rest_on(ground->statement, "warp: " + text, ground->is_proved ? std::string() : ground->predicate,
                     ".reqntid", function_.instructions[site].range);
  ++attempt_.statistics["warp." + text.substr(text.find("-> ") + 3)];
  changed_ = true;
  return true;
}

std::optional<Ground> Rewriter::ground_of(const ShuffleTree& tree) {
  const BlockId block = function_.instructions[tree.steps.front()].block;
  for (const BlockShape shape : {BlockShape::any, BlockShape::full_rows}) {
    const WarpLanes& known = lanes(shape);
    if (!known.meets_whole_warp(block)) continue;
    if (tree.is_down && !is_read_by_lane_zero_only(function_, def_use(), known, tree)) continue;
    return shape == BlockShape::any ? full_warps() : full_rows();
  }
  return std::nullopt;
}

bool Rewriter::is_taken(const ShuffleTree& tree) {
  if (!is_replaceable(function_.module(), tree)) return false;
  const std::optional<Ground> ground = ground_of(tree);
  return ground && take(tree.steps.front(), description(tree), ground);
}

std::vector<std::pair<LaneMask, std::optional<Ground>>> Rewriter::lane_masks() {
  std::vector<std::pair<LaneMask, std::optional<Ground>>> list;
  if (!may_have_lane_masks(function_)) return list;
  std::vector<bool> found(function_.instructions.size());
  for (const BlockShape shape : {BlockShape::any, BlockShape::rows})
    for (const LaneMask& mask : find_lane_masks(function_, def_use(), lanes(shape))) {
      if (found[mask.root.index()]) continue;
      found[mask.root.index()] = true;
      list.emplace_back(mask, shape == BlockShape::any ? std::nullopt : std::optional(warps_in_rows()));
    }
  return list;
}

// Finds bar.sync with all threads of the block, if there are at most 32: all of one warp.
std::vector<InstructionId> Rewriter::barriers_of_one_warp() const {
  std::vector<InstructionId> list;
  std::optional<std::array<uint64_t, 3>> most = block_ ? block_ : numbers_of(function_, ".maxntid");
  if (!function_.is_entry || !most || (*most)[0] * (*most)[1] * (*most)[2] > warp_size) return list;
  for (BlockId block : function_.layout)
    for (InstructionId id : function_.instructions_in(block)) {
      if (function_.instructions[id].kind != ir::InstructionKind::real) continue;
      const ir::Form& form = function_.form_of(id);
      // Threads that arrive elsewhere, or a thread count, may involve other threads than this warp's at this point.
      if (form.effects.call || form.opaque || form.has(Modifier::arrive)) return {};
      const bool is_aligned_barrier = form.opcode == ir::Opcode::bar
                                          ? form.has(Modifier::sync)
                                          : form.opcode == ir::Opcode::barrier && form.has(Modifier::aligned);
      if (!is_aligned_barrier || !form.has(Modifier::sync) || form.has(Modifier::warp) || form.has(Modifier::cluster))
        continue;
      const std::span<const Operand> operands = function_.operands_of(id);
      if (operands.size() == 1 && operands[0].is(OperandKind::integer) && !function_.instructions[id].guard)
        list.push_back(id);
    }
  return list;
}

void Rewriter::rewrite_barrier(InstructionId barrier) {
  constexpr std::string_view mnemonic = "bar.warp.sync";
  const std::string text = std::string(function_.form_of(barrier).mnemonic) + " -> " + std::string(mnemonic);
  const Ground ground{"a block is one warp", {}, true};
  if (!sites_.take(barrier, text)) return;
  attempt_.rest_on(ground.statement, "warp: " + text, {}, ".maxntid or .reqntid",
                   function_.instructions[barrier].range);
  ++attempt_.statistics["warp.bar.warp.sync"];
  Operand mask = Operand::integer(UINT32_MAX);
  mask.flags = ir::OperandFlag::hexadecimal;
  ir::Builder(function_).before(barrier).standing_for(barrier).emit(mnemonic, {mask});
  function_.remove(barrier);
  changed_ = true;
}

} // namespace

} // namespace warp

namespace {

bool apply(legal::Attempt& attempt, legal::SiteFilter& sites, PassContext&) {
  return warp::Rewriter(attempt, sites).run();
}

Change run(ir::Function& function, PassContext& context) {
  return legal::run_family(function, context, {"warp", apply});
}

const RegisterPass registration(legal::family_pass("warp", "reductions, masks and barriers of a warp", run));

} // namespace

} // namespace ptxrewrite::transforms
