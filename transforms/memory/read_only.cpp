// ld.global -> ld.global.nc.
//
// Data read this way must be constant from the start of the kernel to its end. The ranges of addresses show that the
// kernel itself does not write it; for other writers see KernelMemory::waits_for_others. So no barrier or fence of the
// kernel orders the load with a write, and it may be moved anywhere.
#include "transforms/memory/disjoint.h"
#include "transforms/memory/workspace.h"

#include <algorithm>
#include <map>
#include <optional>
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

// By block: may control reach its start after a write?
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

// By instruction: may control reach it after a write? Other loads have no write to move across.
std::vector<bool> behind_writes(const Workspace& workspace) {
  const ir::Function& function = workspace.function;
  const std::vector<bool> blocks = blocks_behind_writes(workspace);
  std::vector<bool> behind(function.instructions.size());
  for (BlockId block : function.layout) {
    bool now = blocks[block.index()];
    for (InstructionId id : function.instructions_in(block)) {
      behind[id.index()] = now;
      now = now || (function.instructions[id].kind == ir::InstructionKind::real &&
                    function.form_of(id).effects.writes_memory && !ir::is_shared(function.form_of(id).space));
    }
  }
  return behind;
}

// A load that may become ld.global.nc, with that form.
struct Candidate {
  const Access* access;
  ir::FormId form;
  bool is_useful; // behind a write
};

std::vector<Candidate> candidates_of(const Workspace& workspace) {
  std::vector<Candidate> list;
  std::map<ir::FormId, std::optional<ir::FormId>> read_only_forms;
  const std::vector<bool> behind = behind_writes(workspace);
  for (const Access& access : workspace.memory.accesses) {
    if (!access.plain || access.writes) continue;
    const ir::FormId form = workspace.function.instructions[access.instruction].form;
    auto [entry, fresh] = read_only_forms.try_emplace(form);
    if (fresh) entry->second = workspace.form_of(read_only_mnemonic(ir::form(form)));
    if (entry->second) list.push_back({&access, *entry->second, behind[access.instruction.index()]});
  }
  return list;
}

} // namespace

size_t make_read_only(Workspace& workspace) {
  ir::Function& function = workspace.function;
  const KernelMemory& memory = workspace.memory;
  if (memory.unknown_writes.empty() && std::ranges::none_of(memory.accesses, &Access::writes)) return 0;
  const std::vector<Candidate> candidates = candidates_of(workspace);
  if (std::ranges::none_of(candidates, &Candidate::is_useful)) return 0;
  const auto refuse = [&](const std::string& why) {
    workspace.refusal = "loads stay as they are: " + why;
    return 0;
  };
  if (!memory.waits_for_others.empty()) return refuse(memory.waits_for_others);
  Disjointness disjoint(workspace.extents(), memory, function);
  if (!disjoint.refusal().empty()) return refuse(disjoint.refusal());
  std::map<unsigned, std::vector<std::pair<InstructionId, ir::FormId>>> by_pointer;
  std::map<unsigned, bool> useful;
  for (const Candidate& candidate : candidates) {
    const auto pointer = disjoint.pointer_of(*candidate.access);
    if (!pointer || disjoint.is_written(*pointer)) continue;
    by_pointer[*pointer].emplace_back(candidate.access->instruction, candidate.form);
    useful[*pointer] = useful[*pointer] || candidate.is_useful;
  }
  size_t count = 0;
  for (const auto& [pointer, loads] : by_pointer) {
    if (!useful[pointer]) continue;
    const auto needs = disjoint.read_only(pointer);
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
