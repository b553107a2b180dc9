// Streams, events, and the operations that streams execute.
#include "cuda/context/context.h"

#include <algorithm>

namespace ptxrewrite::cuda {

// cudaStreamNonBlocking.
constexpr unsigned stream_beside_default = 1;

Stream& Context::add_stream(unsigned flags, int priority) {
  Stream& stream = *streams_.emplace_back(std::make_unique<Stream>());
  stream.id = next_stream_++;
  stream.flags = flags;
  stream.priority = priority;
  return stream;
}

Code Context::remove_stream(Stream* stream) {
  const size_t gone = std::erase_if(streams_, [&](const auto& known) { return known.get() == stream; });
  return gone ? Code::success : Code::invalid_handle;
}

bool Context::is_stream(const Stream* stream) const {
  for (const auto& known : streams_)
    if (known.get() == stream) return true;
  return false;
}

Code Context::submit(Stream* stream, NodeType type, Action action) {
  if (stream && stream->capture) {
    GraphNode& node = stream->capture->add(type, std::move(action), stream->capture_end);
    stream->capture_end = {&node};
    return Code::success;
  }
  const bool takes_time = type == NodeType::kernel || type == NodeType::host || type == NodeType::graph;
  if (!takes_time && operations_.is_idle()) return action();
  (stream ? stream->last_operation : last_of_default_stream_) = operations_.submit(std::move(action));
  return Code::success;
}

uint64_t Context::last_operation(const Stream* stream) const {
  if (stream) return stream->last_operation;
  uint64_t last = last_of_default_stream_;
  for (const auto& other : streams_)
    if (!(other->flags & stream_beside_default)) last = std::max(last, other->last_operation);
  return last;
}

Code Context::record(Event& event, Stream* stream) {
  if (stream && stream->capture) {
    event.capture = stream->capture;
    event.capture_end = stream->capture_end;
    return Code::success;
  }
  auto moment = std::make_shared<Moment>();
  {
    std::lock_guard lock(moment_mutex_);
    event.moment = moment;
  }
  event.capture = nullptr;
  const Code code = submit(stream, NodeType::record_event, [this, moment] {
    moment->time = std::chrono::steady_clock::now();
    moment->modelled_seconds = modelled_seconds();
    return Code::success;
  });
  event.operation = operations_.is_idle() ? 0 : operations_.last();
  return code;
}

void Context::record_now(Event& event) {
  const Moment now{std::chrono::steady_clock::now(), modelled_seconds()};
  std::lock_guard lock(moment_mutex_);
  event.moment = std::make_shared<Moment>(now);
}

std::optional<Moment> Context::moment_of(const Event& event) {
  std::lock_guard lock(moment_mutex_);
  return event.moment ? std::optional(*event.moment) : std::nullopt;
}

Code Context::wait(Stream* stream, const Event& event) {
  if (!event.capture || !stream) return Code::success;
  // The stream joins the capture.
  if (stream->capture && stream->capture != event.capture) return Code::stream_capture_invalidated;
  if (!stream->capture) stream->capture_end.clear();
  stream->capture = event.capture;
  stream->capture_end.insert(stream->capture_end.end(), event.capture_end.begin(), event.capture_end.end());
  return Code::success;
}

Code Context::end_capture(Stream& stream, std::shared_ptr<Graph>& graph) {
  graph = stream.capture;
  for (const auto& other : streams_)
    if (other->capture == graph) {
      other->capture = nullptr;
      other->capture_end.clear();
      other->captures_first = false;
    }
  return Code::success;
}

} // namespace ptxrewrite::cuda
