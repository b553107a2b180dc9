// One backward walk per value from the blocks that read it, ending at the blocks that write it. Takes time proportional
// to the size of the result; values that are live inside one block only are free.
#include "ir/flow/liveness.h"

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

// Lists of blocks per value.
class BlockLists {
public:
  void add(ValueId value, BlockId block) { pairs_.push_back({value.index(), block.index()}); }
  void close(size_t values) {
    start_.assign(values + 1, 0);
    for (auto [value, block] : pairs_)
      ++start_[value + 1];
    for (size_t i = 0; i < values; ++i)
      start_[i + 1] += start_[i];
    blocks_.resize(pairs_.size());
    std::vector<uint32_t> next(start_.begin(), start_.end() - 1);
    for (auto [value, block] : pairs_)
      blocks_[next[value]++] = block;
    pairs_ = {};
  }
  std::span<const uint32_t> of(uint32_t value) const {
    return std::span(blocks_).subspan(start_[value], start_[value + 1] - start_[value]);
  }

private:
  std::vector<std::pair<uint32_t, uint32_t>> pairs_;
  std::vector<uint32_t> start_, blocks_;
};

// Reads and writes of each block, as visible to other blocks.
struct Summary {
  BlockLists exposed; // read before any write in the block
  BlockLists needed;  // read on an edge that leaves the block
  BlockLists written; // written unconditionally

  // `only`: by ValueId, or nullptr for all values.
  Summary(const Function& function, const std::vector<bool>* only) {
    constexpr uint32_t none = UINT32_MAX;
    std::vector<uint32_t> written_in(function.values.size(), none), exposed_in(written_in), needed_in(written_in);
    for (BlockId block : function.layout) {
      uint32_t here = block.index();
      auto read = [&](ValueId value) {
        uint32_t v = value.index();
        if (only && !(*only)[v]) return;
        if (written_in[v] == here || exposed_in[v] == here || function.values[value].is_undefined) return;
        exposed_in[v] = here;
        exposed.add(value, block);
      };
      auto write = [&](ValueId value) {
        if ((only && !(*only)[value.index()]) || written_in[value.index()] == here) return;
        written_in[value.index()] = here;
        written.add(value, block);
      };
      for (ValueId value : function.parameters(block))
        write(value);
      for (InstructionId id : function.instructions_in(block)) {
        for_each_use(function, id, read);
        if (function.is_ssa || !function.keeps_old_values(id))
          for_each_definition(function, id, write);
        else if (!function.instructions[id].guard)
          for_each_definition(function, id, read);
      }
      for (EdgeId edge : function.successors(block))
        for (ValueId value : function.arguments(edge)) {
          if (needed_in[value.index()] == here || function.values[value].is_undefined) continue;
          needed_in[value.index()] = here;
          needed.add(value, block);
        }
    }
    exposed.close(function.values.size());
    needed.close(function.values.size());
    written.close(function.values.size());
  }
};

} // namespace

Liveness::Liveness(const Function& function, const ControlFlow& flow, const std::vector<bool>* only)
    : live_in_(function.blocks.size()), live_out_(function.blocks.size()) {
  Summary summary(function, only);
  constexpr uint32_t none = UINT32_MAX;
  std::vector<uint32_t> in_mark(function.blocks.size(), none), out_mark(in_mark), written_mark(in_mark);
  std::vector<uint32_t> work; // blocks into which the value is live
  for (uint32_t v = 0; v < function.values.size(); ++v) {
    if (only && !(*only)[v]) continue;
    if (summary.exposed.of(v).empty() && summary.needed.of(v).empty()) continue;
    for (uint32_t block : summary.written.of(v))
      written_mark[block] = v;
    auto enter = [&](uint32_t block) {
      if (in_mark[block] == v) return;
      in_mark[block] = v;
      live_in_[block].push_back(ValueId(v));
      work.push_back(block);
    };
    auto leave = [&](uint32_t block) {
      if (out_mark[block] == v) return;
      out_mark[block] = v;
      live_out_[block].push_back(ValueId(v));
      if (written_mark[block] != v) enter(block);
    };
    for (uint32_t block : summary.exposed.of(v))
      enter(block);
    for (uint32_t block : summary.needed.of(v))
      leave(block);
    while (!work.empty()) {
      BlockId block(work.back());
      work.pop_back();
      for (EdgeId edge : flow.predecessors(block))
        leave(function.edges[edge].from.index());
    }
  }
}

bool Liveness::is_live_in(BlockId block, ValueId value) const {
  const std::vector<ValueId>& list = live_in(block);
  return std::binary_search(list.begin(), list.end(), value);
}

bool Liveness::is_live_out(BlockId block, ValueId value) const {
  const std::vector<ValueId>& list = live_out(block);
  return std::binary_search(list.begin(), list.end(), value);
}

} // namespace ptxrewrite::ir
