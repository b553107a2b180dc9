// Merges blocks, see machine_blocks.h.
#include "ir/machine/registers/machine_blocks.h"

#include "ir/machine/figures/expansion.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

constexpr uint32_t none = RegisterBlock::none;

class BlockMerger {
public:
  BlockMerger(const Function& function, const RegisterProgram& program, uint32_t compute_capability)
      : function_(function), compute_capability_(compute_capability), program_(program), liveness_(program),
        gone_(program.blocks.size()) {}

  RegisterProgram run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t b = 0; b < program_.blocks.size(); ++b)
        changed |= !gone_[b] && (thread_jump(b) || predicate(b) || join_successor(b));
    }
    for (uint32_t b = 0; b < program_.blocks.size(); ++b)
      if (!gone_[b]) part_at_slow_path(b);
    return compacted();
  }

private:
  RegisterBlock& block(uint32_t b) { return program_.blocks[b]; }
  const RegisterInstruction* last_of(uint32_t b) const {
    const std::vector<RegisterInstruction>& instructions = program_.blocks[b].instructions;
    return instructions.empty() ? nullptr : &instructions.back();
  }
  bool is_branch(const RegisterInstruction* instruction) const {
    return instruction && function_.is_opcode(instruction->id, Opcode::bra);
  }
  std::vector<uint32_t> predecessors(uint32_t of) const {
    std::vector<uint32_t> result;
    for (uint32_t b = 0; b < program_.blocks.size(); ++b)
      if (!gone_[b] && std::ranges::count(program_.blocks[b].successors, of)) result.push_back(b);
    return result;
  }

  // Removes a block that contains only a jump, unless it is the entry.
  bool thread_jump(uint32_t b) {
    if (b == 0 || block(b).successors.size() != 1 || block(b).successors[0] == b) return false;
    if (block(b).instructions.size() != 1 || !is_branch(last_of(b))) return false;
    const uint32_t target = block(b).successors[0];
    const std::vector<uint32_t> before = predecessors(b);
    for (uint32_t one : before) {
      std::vector<uint32_t>& next = block(one).successors;
      std::ranges::replace(next, b, target);
      if (std::ranges::count(next, target) > 1) next.erase(std::ranges::find(next, target));
      if (next.size() == 1) block(one).diverges = false;
    }
    forget(b, block(b).dominator, block(b).post_dominator);
    return true;
  }

  // A branch of weight 0 predicates the successor that leads to the other successor.
  bool predicate(uint32_t b) {
    if (block(b).successors.size() != 2 || !is_branch(last_of(b)) || last_of(b)->weight != 0) return false;
    for (unsigned which : {0u, 1u}) {
      const uint32_t skipped = block(b).successors[which], target = block(b).successors[1 - which];
      if (skipped == b || target == b || block(skipped).successors != std::vector{target}) continue;
      if (predecessors(skipped).size() != 1) continue;
      const RegisterSet needed = liveness_.lane_live_in(target);
      for (RegisterInstruction instruction : block(skipped).instructions) {
        instruction.guarded = instruction.guarded || (instruction.writes & needed).any();
        block(b).instructions.push_back(instruction);
      }
      block(b).successors = {target};
      block(b).diverges = false;
      forget(skipped, b, target);
      return true;
    }
    return false;
  }

  bool join_successor(uint32_t b) {
    if (block(b).successors.size() != 1) return false;
    const uint32_t next = block(b).successors[0];
    if (next == b || next == 0 || predecessors(next).size() != 1) return false;
    block(b).instructions.insert(block(b).instructions.end(), block(next).instructions.begin(),
                                 block(next).instructions.end());
    block(b).successors = block(next).successors;
    block(b).diverges = block(next).diverges;
    block(b).post_dominator = block(next).post_dominator;
    forget(next, b, b);
    return true;
  }

  // Machine instructions that call the slow path; 0 for instructions without one.
  uint32_t slow_path(const RegisterInstruction& instruction) const {
    if (instruction.weight == 0 || !instruction.id) return 0;
    const Expansion& alone = expansion_of(function_.form_of(instruction.id), compute_capability_, false);
    return alone.subroutine == Subroutine::none ? 0 : size_of(alone.subroutine).at_place;
  }

  // Splits the block at its first slow path; the rest becomes the last block and is processed later.
  void part_at_slow_path(uint32_t b) {
    const auto slow = std::ranges::find_if(
        block(b).instructions, [&](const RegisterInstruction& instruction) { return slow_path(instruction) > 0; });
    if (slow == block(b).instructions.end() || slow + 1 == block(b).instructions.end()) return;
    const auto call = static_cast<uint32_t>(program_.blocks.size()), rest = call + 1;
    RegisterBlock of_call, of_rest = block(b);
    RegisterInstruction calling = *slow;
    calling.weight = slow_path(*slow);
    of_call.id = of_rest.id;
    of_call.instructions = {calling};
    of_call.successors = {rest};
    of_call.dominator = b;
    of_call.post_dominator = rest;
    of_rest.instructions.assign(slow + 1, block(b).instructions.end());
    of_rest.dominator = b;
    for (RegisterBlock& other : program_.blocks)
      if (other.dominator == b) other.dominator = rest;
    block(b).instructions.erase(slow + 1, block(b).instructions.end());
    block(b).successors = {call, rest};
    block(b).diverges = true;
    block(b).post_dominator = rest;
    program_.blocks.push_back(of_call);
    program_.blocks.push_back(of_rest);
    gone_.resize(program_.blocks.size());
  }

  // Removes a block; where it was a dominator or post-dominator, the given ones replace it.
  void forget(uint32_t b, uint32_t dominator, uint32_t post_dominator) {
    gone_[b] = true;
    for (uint32_t other = 0; other < program_.blocks.size(); ++other) {
      if (gone_[other]) continue;
      if (block(other).dominator == b) block(other).dominator = dominator;
      if (block(other).post_dominator == b) block(other).post_dominator = post_dominator;
    }
  }

  RegisterProgram compacted() {
    std::vector<uint32_t> place(program_.blocks.size(), none);
    RegisterProgram result;
    result.registers = program_.registers;
    for (uint32_t b = 0; b < program_.blocks.size(); ++b)
      if (!gone_[b]) {
        place[b] = static_cast<uint32_t>(result.blocks.size());
        result.blocks.push_back(block(b));
      }
    for (RegisterBlock& one : result.blocks) {
      for (uint32_t& successor : one.successors)
        successor = place[successor];
      if (one.dominator != none) one.dominator = place[one.dominator];
      if (one.post_dominator != none) one.post_dominator = place[one.post_dominator];
    }
    return result;
  }

  const Function& function_;
  uint32_t compute_capability_;
  RegisterProgram program_;
  WarpLiveness liveness_; // of the original blocks; merging does not change what is live into remaining blocks
  std::vector<bool> gone_;
};

} // namespace

RegisterProgram machine_blocks(const Function& function, const RegisterProgram& program, uint32_t compute_capability) {
  return BlockMerger(function, program, compute_capability).run();
}

} // namespace ptxrewrite::ir
