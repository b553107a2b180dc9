// Streams and events. The operations of all streams are executed in the order of their submission (operation_queue.h).
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
  uint64_t last_operation = 0;         // its number in the queue
  std::shared_ptr<Graph> capture;      // if set, operations of the stream become nodes of this graph
  std::vector<GraphNode*> capture_end; // the dependencies of its next node
  bool captures_first = false;         // the stream on which the capture began
};

struct Moment {
  std::chrono::steady_clock::time_point time;
  std::optional<double> modelled_seconds; // of the launches before it, if a hook models them
};

struct Event {
  unsigned flags = 0;
  uint64_t operation = 0;         // of its last recording; 0: done at once
  std::shared_ptr<Moment> moment; // written by that operation; nullptr if the event was never recorded
  std::shared_ptr<Graph> capture; // recorded in a capturing stream
  std::vector<GraphNode*> capture_end;
};

} // namespace ptxrewrite::cuda
