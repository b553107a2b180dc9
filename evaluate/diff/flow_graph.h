// Exports a function's control-flow graph.
#pragma once

#include "ir/core/function.h"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>

namespace ptxrewrite::evaluate {

// One DOT digraph with a cluster per function, because `dot` draws one graph per file: a box per block with its
// instructions; fall-through edges are dashed.
std::string flow_graph_dot(std::span<const ir::Function* const> functions);
// {"function", "blocks": [{"name", "instructions": [...], "successors": [...], "falls_through"}]}
nlohmann::ordered_json flow_graph_json(const ir::Function& function);

} // namespace ptxrewrite::evaluate
