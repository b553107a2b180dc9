// Streams and events. What is put into a stream takes place at once, in the order in which the program asks for it:
// one of the orders that streams allow.
#pragma once

#include "cuda/context/graph.h"

#include <chrono>
#include <cstdint>
#include <memory>

namespace ptxrewrite::cuda {

struct Stream {
  uint64_t id = 0;
  unsigned flags = 0;
  int priority = 0;
  std::shared_ptr<Graph> capture;      // what is put into the stream becomes a node of it
  std::vector<GraphNode*> capture_end; // what its next node depends on
  bool captures_first = false;         // the stream with which the capture began
};

struct Event {
  unsigned flags = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<Graph> capture; // recorded in a stream that captures
  std::vector<GraphNode*> capture_end;
};

} // namespace ptxrewrite::cuda
