#include "evaluate/diff/flow_graph.h"

#include "ir/core/module.h"
#include "ir/core/print.h"

#include <nlohmann/json.hpp>

namespace ptxrewrite::evaluate {

namespace {

bool is_shown(ir::InstructionKind kind) {
  switch (kind) {
  case ir::InstructionKind::location:
  case ir::InstructionKind::scope_begin:
  case ir::InstructionKind::scope_end:
  case ir::InstructionKind::declare_values:
  case ir::InstructionKind::declare_variable:
    return false;
  default:
    return true;
  }
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// Blocks without a label are named by their number.
std::string name_of(const ir::Function& function, ir::BlockId block) {
  return function.blocks[block].label ? function.block_name(block) : "block " + std::to_string(block.index());
}

std::string cluster(const ir::Function& function, size_t number) {
  const std::string prefix = "f" + std::to_string(number) + "b";
  std::string out = "  subgraph cluster_" + std::to_string(number) + " {\n    label=\"" +
                    escaped(function.module().text(function.name)) + "\";\n";
  for (ir::BlockId block : function.layout) {
    const std::string node = "    " + prefix + std::to_string(block.index());
    out += node + " [label=\"" + escaped(name_of(function, block)) + ":\\l";
    for (ir::InstructionId id : function.instructions_in(block))
      if (is_shown(function.instructions[id].kind))
        out += "    " + escaped(ir::print_instruction(function, id)) + "\\l";
    out += "\"];\n";
    std::span<const ir::EdgeId> successors = function.successors(block);
    for (size_t i = 0; i < successors.size(); ++i) {
      bool falls_through = function.blocks[block].falls_through && i + 1 == successors.size();
      out += node + " -> " + prefix + std::to_string(function.edges[successors[i]].to.index()) +
             (falls_through ? " [style=dashed];\n" : ";\n");
    }
  }
  return out + "  }\n";
}

} // namespace

std::string flow_graph_dot(std::span<const ir::Function* const> functions) {
  std::string out = "digraph {\n  node [shape=box, fontname=\"monospace\", fontsize=10];\n";
  for (size_t i = 0; i < functions.size(); ++i)
    out += cluster(*functions[i], i);
  return out + "}\n";
}

nlohmann::ordered_json flow_graph_json(const ir::Function& function) {
  using Json = nlohmann::ordered_json;
  Json blocks = Json::array();
  for (ir::BlockId block : function.layout) {
    Json instructions = Json::array(), successors = Json::array();
    for (ir::InstructionId id : function.instructions_in(block))
      if (is_shown(function.instructions[id].kind)) instructions.push_back(ir::print_instruction(function, id));
    for (ir::EdgeId edge : function.successors(block))
      successors.push_back(name_of(function, function.edges[edge].to));
    blocks.push_back({{"name", name_of(function, block)},
                      {"instructions", std::move(instructions)},
                      {"successors", std::move(successors)},
                      {"falls_through", function.blocks[block].falls_through}});
  }
  return {{"function", function.module().text(function.name)}, {"blocks", std::move(blocks)}};
}

} // namespace ptxrewrite::evaluate
