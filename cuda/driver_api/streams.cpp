// Streams and events.
#include "cuda/driver_api/entry.h"

namespace ptxrewrite::cuda::driver {
namespace {

// Handles of streams that are no pointers: null, legacy, per thread.
constexpr uintptr_t last_number = 2;
constexpr unsigned event_without_time = 2;

template <class Body> int with_stream(const char* name, void* handle, Body&& body) {
  return entry(name, [&](Context& context) {
    Stream* stream = nullptr;
    const Code code = stream_of(context, handle, stream);
    return code == Code::success ? body(context, stream) : code;
  });
}

int synchronise(const char* name, void* handle) {
  return with_stream(name, handle, [](Context& context, const Stream* stream) {
    if (stream && stream->capture) return Code::stream_capture_unsupported;
    context.flush_printed();
    return Code::success;
  });
}

} // namespace

Code stream_of(Context& context, void* handle, Stream*& stream) {
  stream = nullptr;
  if (reinterpret_cast<uintptr_t>(handle) <= last_number) return Code::success;
  stream = static_cast<Stream*>(handle);
  return context.is_stream(stream) ? Code::success : Code::invalid_handle;
}

DRIVER_API int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return entry("cuStreamCreate", [&](Context& context) {
    if (!stream) return Code::invalid_value;
    *stream = &context.add_stream(flags, priority);
    return Code::success;
  });
}

DRIVER_API int cuStreamCreate(void** stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

DRIVER_API int cuStreamDestroy_v2(void* stream) {
  return entry("cuStreamDestroy",
               [&](Context& context) { return context.remove_stream(static_cast<Stream*>(stream)); });
}

DRIVER_API int cuStreamSynchronize(void* stream) {
  return synchronise("cuStreamSynchronize", stream);
}

DRIVER_API int cuStreamQuery(void* stream) {
  return synchronise("cuStreamQuery", stream);
}

DRIVER_API int cuStreamGetPriority(void* handle, int* priority) {
  return with_stream("cuStreamGetPriority", handle, [&](Context&, const Stream* stream) {
    *priority = stream ? stream->priority : 0;
    return Code::success;
  });
}

DRIVER_API int cuStreamGetFlags(void* handle, unsigned* flags) {
  return with_stream("cuStreamGetFlags", handle, [&](Context&, const Stream* stream) {
    *flags = stream ? stream->flags : 0;
    return Code::success;
  });
}

DRIVER_API int cuStreamGetCtx(void* handle, void** context_handle) {
  return with_stream("cuStreamGetCtx", handle, [&](Context& context, const Stream*) {
    *context_handle = &context;
    return Code::success;
  });
}

DRIVER_API int cuStreamIsCapturing(void* handle, int* status) {
  return with_stream("cuStreamIsCapturing", handle, [&](Context&, const Stream* stream) {
    *status = stream && stream->capture ? 1 : 0;
    return Code::success;
  });
}

DRIVER_API int cuStreamWaitEvent(void* handle, void* event, unsigned) {
  return with_stream("cuStreamWaitEvent", handle, [&](Context& context, Stream* stream) {
    return event ? context.wait(stream, *static_cast<Event*>(event)) : Code::invalid_handle;
  });
}

DRIVER_API int cuLaunchHostFunc(void* handle, void (*function)(void*), void* data) {
  return with_stream("cuLaunchHostFunc", handle, [&](Context& context, Stream* stream) {
    return context.submit(stream, NodeType::host, [function, data] {
      function(data);
      return Code::success;
    });
  });
}

DRIVER_API int cuStreamAddCallback(void* handle, void (*function)(void*, int, void*), void* data, unsigned) {
  return with_stream("cuStreamAddCallback", handle, [&](Context& context, Stream* stream) {
    return context.submit(stream, NodeType::host, [handle, function, data] {
      function(handle, 0, data);
      return Code::success;
    });
  });
}

DRIVER_API int cuStreamAttachMemAsync(void* handle, DevicePointer, size_t, unsigned) {
  return with_stream("cuStreamAttachMemAsync", handle, [](Context&, Stream*) { return Code::success; });
}

DRIVER_API int cuEventCreate(void** event, unsigned flags) {
  return entry("cuEventCreate", [&](Context&) {
    if (!event) return Code::invalid_value;
    *event = new Event{.flags = flags};
    return Code::success;
  });
}

DRIVER_API int cuEventDestroy_v2(void* event) {
  return entry("cuEventDestroy", [&](Context&) {
    if (!event) return Code::invalid_handle;
    delete static_cast<Event*>(event);
    return Code::success;
  });
}

DRIVER_API int cuEventRecord(void* event, void* handle) {
  return with_stream("cuEventRecord", handle, [&](Context& context, Stream* stream) {
    return event ? context.record(*static_cast<Event*>(event), stream) : Code::invalid_handle;
  });
}

DRIVER_API int cuEventRecordWithFlags(void* event, void* handle, unsigned) {
  return cuEventRecord(event, handle);
}

DRIVER_API int cuEventQuery(void* event) {
  return entry("cuEventQuery", [&](Context&) { return event ? Code::success : Code::invalid_handle; });
}

DRIVER_API int cuEventSynchronize(void* event) {
  return entry("cuEventSynchronize", [&](Context& context) {
    context.flush_printed();
    return event ? Code::success : Code::invalid_handle;
  });
}

DRIVER_API int cuEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
  return entry("cuEventElapsedTime", [&](Context&) {
    const auto* first = static_cast<const Event*>(start);
    const auto* second = static_cast<const Event*>(end);
    if (!milliseconds || !first || !second) return Code::invalid_value;
    if (!first->recorded || !second->recorded || ((first->flags | second->flags) & event_without_time))
      return Code::invalid_handle;
    *milliseconds = std::chrono::duration<float, std::milli>(second->time - first->time).count();
    return Code::success;
  });
}

DRIVER_ALIAS(cuEventElapsedTime, cuEventElapsedTime_v2)
DRIVER_ALIAS(cuStreamSynchronize_ptsz, cuStreamSynchronize)
DRIVER_ALIAS(cuStreamQuery_ptsz, cuStreamQuery)
DRIVER_ALIAS(cuStreamGetPriority_ptsz, cuStreamGetPriority)
DRIVER_ALIAS(cuStreamGetFlags_ptsz, cuStreamGetFlags)
DRIVER_ALIAS(cuStreamGetCtx_ptsz, cuStreamGetCtx)
DRIVER_ALIAS(cuStreamIsCapturing_ptsz, cuStreamIsCapturing)
DRIVER_ALIAS(cuStreamWaitEvent_ptsz, cuStreamWaitEvent)
DRIVER_ALIAS(cuStreamAddCallback_ptsz, cuStreamAddCallback)
DRIVER_ALIAS(cuLaunchHostFunc_ptsz, cuLaunchHostFunc)
DRIVER_ALIAS(cuEventRecord_ptsz, cuEventRecord)
DRIVER_ALIAS(cuEventRecordWithFlags_ptsz, cuEventRecordWithFlags)

} // namespace ptxrewrite::cuda::driver
