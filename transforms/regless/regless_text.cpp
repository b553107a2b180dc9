// Text of RegLess's annotations, see regless_text.h.
#include "transforms/regless/regless_text.h"

#include "ir/core/module.h"
#include "transforms/manager/text_insertion.h"

#include <map>

namespace ptxrewrite::transforms {

using ir::InstructionId;
using ir::InstructionKind;
using ir::RegisterSet;
using ir::ValueId;

namespace {

std::string list(std::string_view word, const RegisterSet& set, const RegisterSet& exclaimed = {}) {
  std::string text;
  for (size_t r = 0; r < set.size(); ++r)
    if (set.test(r)) text += " R" + std::to_string(r) + (exclaimed.test(r) ? "!" : "");
  return text.empty() ? text : " " + std::string(word) + text;
}

std::string region_text(const ir::Region& region, size_t number) {
  std::string text = "regless region " + std::to_string(number) + " live " + std::to_string(region.live) + " banks ";
  for (size_t bank = 0; bank < ir::staging_banks; ++bank)
    text += (bank ? "," : "") + std::to_string(region.banks[bank]);
  return text + list("preload", region.inputs, region.last_reads) + list("invalidate", region.invalidated);
}

std::string release_text(const RegisterSet& erased, const RegisterSet& evicted) {
  return "regless" + list("erase", erased) + list("evict", evicted);
}

std::string register_text(const RegLessPlan::Registers& registers) {
  std::string text;
  for (unsigned i = 0; i < registers.count; ++i)
    text += (i ? ":R" : "=R") + std::to_string(registers.first + i);
  return text;
}

// Announces the machine registers of names, and again when a scope gives a name another meaning.
class Names {
public:
  Names(const ir::Function& function, const RegLessPlan& plan) : function_(function) {
    for (const auto& [value, registers] : plan.registers)
      texts_[value] = function.value_name(value) + register_text(registers);
  }

  std::string at_head() {
    std::string text = "regless alloc";
    for (const auto& [value, words] : texts_) {
      if (!meaning_.try_emplace(function_.value_name(value), value).second) continue;
      text += " " + words;
    }
    return text;
  }
  // The text before an instruction; empty for most.
  std::string before(InstructionId id) {
    std::string text;
    auto check = [&](ValueId value) {
      auto words = texts_.find(value);
      const std::string name = function_.value_name(value);
      auto meaning = meaning_.find(name);
      if (words == texts_.end()) {
        // The register has no machine register, while an earlier one of the same name had one.
        if (meaning == meaning_.end()) return;
        text += " " + name + "=none";
        meaning_.erase(meaning);
        return;
      }
      if (meaning != meaning_.end() && meaning->second == value) return;
      meaning_[name] = value;
      text += " " + words->second;
    };
    for_each_use(function_, id, check);
    for_each_definition(function_, id, check);
    return text.empty() ? text : "regless alloc" + text;
  }

private:
  const ir::Function& function_;
  std::map<ValueId, std::string> texts_;
  std::map<std::string, ValueId> meaning_;
};

} // namespace

std::vector<TextInsertion> regless_insertions(const ir::Function& function, const RegLessPlan& plan) {
  const std::string_view source = function.module().source.text();
  std::vector<TextInsertion> insertions;
  std::map<uint32_t, std::string> regions, releases; // by the start and the end offset of an instruction
  for (size_t number = 0; number < plan.regions.size(); ++number) {
    const ir::Region& region = plan.regions[number];
    bool started = false;
    for (uint32_t i = region.begin; i < region.end; ++i) {
      SourceRange range = plan.ranges[plan.program.blocks[region.block].instructions[i].id.index()];
      if (range.empty()) continue;
      if (!started) regions[range.begin] = region_text(region, number);
      started = true;
      const RegisterSet &erased = region.erased[i - region.begin], &evicted = region.evicted[i - region.begin];
      if ((erased | evicted).any()) releases[range.end] = release_text(erased, evicted);
    }
  }
  Names names(function, plan);
  bool head = true;
  for (ir::BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block)) {
      const ir::Instruction& instruction = function.instructions[id];
      if (instruction.kind != InstructionKind::real || instruction.range.empty()) continue;
      if (head) {
        const std::string machine = "regless machine " + std::to_string(plan.compute_capability);
        insertions.push_back(comment_before(source, instruction.range.begin, machine));
        insertions.push_back(comment_before(source, instruction.range.begin, names.at_head()));
      }
      head = false;
      if (std::string again = names.before(id); !again.empty())
        insertions.push_back(comment_before(source, instruction.range.begin, again));
      if (auto text = regions.find(instruction.range.begin); text != regions.end())
        insertions.push_back(comment_before(source, instruction.range.begin, text->second));
      if (auto text = releases.find(instruction.range.end); text != releases.end())
        insertions.push_back(comment_behind(source, instruction.range.end, text->second));
    }
  return insertions;
}

} // namespace ptxrewrite::transforms
