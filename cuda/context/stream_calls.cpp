#include "cuda/context/stream_calls.h"

#include <algorithm>

namespace ptxrewrite::cuda {
namespace {

// Stream handles that are not pointers: null, legacy, per thread.
constexpr uintptr_t last_number = 2;
constexpr unsigned event_without_time = 2;

template <class Body> Code with_stream(Context& context, void* handle, Body&& body) {
  Stream* stream = nullptr;
  const Code code = stream_of(context, handle, stream);
  return code == Code::success ? body(stream) : code;
}

template <class T> Code store(T* to, T value) {
  if (!to) return Code::invalid_value;
  *to = value;
  return Code::success;
}

} // namespace

Code stream_of(Context& context, void* handle, Stream*& stream) {
  stream = nullptr;
  if (reinterpret_cast<uintptr_t>(handle) <= last_number) return Code::success;
  stream = static_cast<Stream*>(handle);
  return context.is_stream(stream) ? Code::success : Code::invalid_handle;
}

Code create_stream(Context& context, void** stream, unsigned flags, int priority) {
  if (!stream) return Code::invalid_value;
  *stream = &context.add_stream(flags, priority);
  return Code::success;
}

Code destroy_stream(Context& context, void* handle) {
  return context.remove_stream(static_cast<Stream*>(handle));
}

Code operation_of(Context& context, void* handle, uint64_t& operation) {
  return with_stream(context, handle, [&](const Stream* stream) {
    if (stream && stream->capture) return Code::stream_capture_unsupported;
    operation = context.last_operation(stream);
    return Code::success;
  });
}

Code synchronise(Context& context) {
  context.flush_printed();
  return Code::success;
}

// Code::not_ready, or the output and the errors of an operation that is done.
static Code see_done(Context& context, uint64_t operation) {
  if (!context.operations().is_done(operation)) return Code::not_ready;
  context.flush_printed();
  return context.see_errors();
}

Code query_stream(Context& context, void* handle) {
  uint64_t operation = 0;
  const Code code = operation_of(context, handle, operation);
  return code == Code::success ? see_done(context, operation) : code;
}

Code stream_priority(Context& context, void* handle, int* priority) {
  return with_stream(context, handle,
                     [&](const Stream* stream) { return store(priority, stream ? stream->priority : 0); });
}

Code stream_flags(Context& context, void* handle, unsigned* flags) {
  return with_stream(context, handle, [&](const Stream* stream) { return store(flags, stream ? stream->flags : 0); });
}

Code stream_id(Context& context, void* handle, unsigned long long* id) {
  return with_stream(context, handle, [&](const Stream* stream) {
    const uint64_t number = stream ? stream->id : reinterpret_cast<uintptr_t>(handle);
    return store<unsigned long long>(id, number);
  });
}

Code stream_device(Context& context, void* handle, int* device) {
  return with_stream(context, handle, [&](const Stream*) { return store(device, 0); });
}

Code is_stream_known(Context& context, void* handle) {
  return with_stream(context, handle, [](const Stream*) { return Code::success; });
}

Code wait_for_event(Context& context, void* handle, const Event* event) {
  return with_stream(context, handle,
                     [&](Stream* stream) { return event ? context.wait(stream, *event) : Code::invalid_handle; });
}

Code launch_on_host(Context& context, void* handle, void (*function)(void*), void* data) {
  return with_stream(context, handle, [&](Stream* stream) {
    const HostNode node{function, data};
    Action action = host_action(&node);
    return action ? context.submit(stream, NodeType::host, std::move(action)) : Code::invalid_value;
  });
}

Code add_callback(Context& context, void* handle, void (*function)(void*, int, void*), void* data) {
  return with_stream(context, handle, [&](Stream* stream) {
    return context.submit(stream, NodeType::host, [handle, function, data] {
      function(handle, 0, data);
      return Code::success;
    });
  });
}

Code create_event(Event** event, unsigned flags) {
  return store(event, new Event{.flags = flags});
}

Code destroy_event(Event* event) {
  delete event; // its recording may still be in the queue, which owns the moment
  return event ? Code::success : Code::invalid_handle;
}

Code record_event(Context& context, Event* event, void* handle) {
  return with_stream(context, handle,
                     [&](Stream* stream) { return event ? context.record(*event, stream) : Code::invalid_handle; });
}

Code query_event(Context& context, const Event* event) {
  uint64_t operation = 0;
  const Code code = operation_of(event, operation);
  return code == Code::success ? see_done(context, operation) : code;
}

Code operation_of(const Event* event, uint64_t& operation) {
  if (!event) return Code::invalid_handle;
  operation = event->operation;
  return Code::success;
}

Code elapsed_time(Context& context, float* milliseconds, const Event* start, const Event* end) {
  if (!milliseconds || !start || !end) return Code::invalid_value;
  if ((start->flags | end->flags) & event_without_time) return Code::invalid_handle;
  if (!context.operations().is_done(std::max(start->operation, end->operation))) return Code::not_ready;
  const std::optional<Moment> first = context.moment_of(*start), last = context.moment_of(*end);
  if (!first || !last) return Code::invalid_handle;
  if (first->modelled_seconds && last->modelled_seconds)
    *milliseconds = static_cast<float>((*last->modelled_seconds - *first->modelled_seconds) * 1e3);
  else
    *milliseconds = std::chrono::duration<float, std::milli>(last->time - first->time).count();
  return Code::success;
}

Code begin_capture(Context& context, void* handle) {
  return with_stream(context, handle, [](Stream* stream) {
    if (!stream) return Code::stream_capture_unsupported; // the default stream cannot capture
    if (stream->capture) return Code::invalid_value;
    stream->capture = std::make_shared<Graph>();
    stream->capture_end.clear();
    stream->captures_first = true;
    return Code::success;
  });
}

Code end_capture(Context& context, void* handle, GraphHandle** graph) {
  return with_stream(context, handle, [&](Stream* stream) {
    if (!graph || !stream || !stream->capture || !stream->captures_first) return Code::invalid_value;
    GraphHandle captured;
    const Code code = context.end_capture(*stream, captured);
    *graph = new GraphHandle(std::move(captured));
    return code;
  });
}

Code is_capturing(Context& context, void* handle, int* status) {
  return with_stream(context, handle,
                     [&](const Stream* stream) { return store(status, stream && stream->capture ? 1 : 0); });
}

Code capture_info(Context& context, void* handle, int* status, unsigned long long* id, GraphHandle** graph,
                  GraphNode* const** dependencies, size_t* count) {
  return with_stream(context, handle, [&](Stream* stream) {
    if (!status) return Code::invalid_value;
    *status = stream && stream->capture ? 1 : 0;
    if (*status == 0) return Code::success;
    // The address of the graph identifies the capture: it is unique as long as the capture lasts.
    if (id) *id = reinterpret_cast<uintptr_t>(stream->capture.get());
    if (graph) *graph = &stream->capture;
    if (dependencies) *dependencies = stream->capture_end.data();
    if (count) *count = stream->capture_end.size();
    return Code::success;
  });
}

} // namespace ptxrewrite::cuda
