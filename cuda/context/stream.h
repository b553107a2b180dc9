// Streams and events. Stream operations are executed immediately, in program order, which is one of the orders that
// streams allow.
#pragma once

#include "cuda/context/graph.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace ptxrewrite::cuda {

struct Stream {
  uint64_t id = 0;
  unsigned flags = 0;
  int priority = 0;
  std::shared_ptr<Graph> capture;      // if set, operations of the stream become nodes of this graph
  std::vector<GraphNode*> capture_end; // the dependencies of its next node
  bool captures_first = false;         // the stream on which the capture began
};

struct Event {
  unsigned flags = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  std::optional<double> modelled_seconds; // of the launches before it, if a hook models them
  std::shared_ptr<Graph> capture;         // recorded in a capturing stream
  std::vector<GraphNode*> capture_end;
};

} // namespace ptxrewrite::cuda
