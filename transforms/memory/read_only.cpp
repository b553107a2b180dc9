// ld.global -> ld.global.nc.
//
// Data read this way must be constant from the start of the kernel to its end. The ranges of addresses show that the
// kernel itself does not write it; for other writers see KernelMemory::waits_for_others. So no barrier or fence of the
// kernel orders the load with a write, and it may be moved anywhere.
#include "transforms/memory/workspace.h"

#include <map>
#include <vector>

namespace ptxrewrite::transforms::memory {

namespace {

using ir::BlockId;
using ir::InstructionId;

constexpr std::string_view raised_by = "memory: a load of what is not written";

// "ld.global.f32" -> "ld.global.nc.f32": inserted after the space and a cache operator.
std::string read_only_mnemonic(const ir::Form& form) {
  std::string out = "ld.global";
  std::string rest(form.mnemonic.substr(out.size()));
  if (!form.mnemonic.starts_with(out)) return {};
  for (const char* word : {".ca", ".cg", ".cs"})
    if (rest.starts_with(word) && rest[3] == '.') {
      out += word;
      rest.erase(0, 3);
    }
  return out + ".nc" + rest;
}

// Blocks that control may reach after a write: in other blocks, a load has no write to move across.
std::vector<bool> blocks_behind_writes(const Workspace& workspace) {
  const ir::Function& function = workspace.function;
  std::vector<bool> behind(function.blocks.size());
  std::vector<BlockId> work;
  for (const Access& access : workspace.memory.accesses)
    if (access.writes) work.push_back(function.instructions[access.instruction].block);
  for (size_t i = 0; i < work.size(); ++i)
    for (ir::EdgeId edge : function.successors(work[i])) {
      const BlockId next = function.edges[edge].to;
      if (behind[next.index()]) continue;
      behind[next.index()] = true;
      work.push_back(next);
    }
  return behind;
}

bool follows_a_write(const Workspace& workspace, const std::vector<bool>& behind, InstructionId load) {
  const ir::Function& function = workspace.function;
  if (behind[function.instructions[load].block.index()]) return true;
  for (InstructionId id = function.instructions[load].previous; id; id = function.instructions[id].previous)
    if (function.instructions[id].kind == ir::InstructionKind::real && function.form_of(id).effects.writes_memory &&
        !ir::is_shared(function.form_of(id).space))
      return true;
  return false;
}

} // namespace

size_t make_read_only(Workspace& workspace) {
  ir::Function& function = workspace.function;
  if (workspace.disjoint.writes_nothing()) return 0;
  if (!workspace.memory.waits_for_others.empty() || !workspace.disjoint.refusal().empty()) {
    const std::string& waits = workspace.memory.waits_for_others;
    workspace.refusal = "loads stay as they are: " + (waits.empty() ? workspace.disjoint.refusal() : waits);
    return 0;
  }
  std::map<unsigned, std::vector<std::pair<InstructionId, ir::FormId>>> by_pointer;
  std::map<unsigned, bool> useful;
  const std::vector<bool> behind = blocks_behind_writes(workspace);
  for (const Access& access : workspace.memory.accesses) {
    if (!access.plain || access.writes) continue;
    const auto pointer = workspace.disjoint.pointer_of(access);
    if (!pointer || workspace.disjoint.is_written(*pointer)) continue;
    const auto form = workspace.form_of(read_only_mnemonic(function.form_of(access.instruction)));
    if (!form) continue;
    by_pointer[*pointer].emplace_back(access.instruction, *form);
    useful[*pointer] = useful[*pointer] || follows_a_write(workspace, behind, access.instruction);
  }
  size_t count = 0;
  for (const auto& [pointer, loads] : by_pointer) {
    if (!useful[pointer]) continue;
    const auto needs = workspace.disjoint.read_only(pointer);
    if (!needs || !workspace.can_rest_on(*needs)) continue;
    const std::string text = std::to_string(loads.size()) + " load(s) through P" + std::to_string(pointer) + " -> .nc";
    if (!workspace.sites.take(loads.front().first, text)) continue;
    workspace.rest_on(*needs, raised_by);
    for (const auto& [load, form] : loads) {
      function.instructions[load].form = form;
      workspace.read_only.insert(load);
    }
    count += loads.size();
  }
  return count;
}

} // namespace ptxrewrite::transforms::memory
