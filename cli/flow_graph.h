// A function's control-flow graph for other programs.
#pragma once

#include "ir/function.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ptxrewrite::cli {

// A digraph in DOT: one box per block with its instructions; fall-through edges are dashed.
std::string flow_graph_dot(const ir::Function& function);
// {"function", "blocks": [{"name", "instructions": [...], "successors": [...], "falls_through"}]}
nlohmann::ordered_json flow_graph_json(const ir::Function& function);

} // namespace ptxrewrite::cli
