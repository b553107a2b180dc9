// Streams, events, callbacks and synchronisation.
#include "cuda/runtime/entry.h"
#include "cuda/runtime/types.h"

namespace ptxrewrite::cuda::runtime {
namespace {

constexpr unsigned event_without_time = 2;

int new_stream(const char* name, void** stream, unsigned flags, int priority) {
  return entry(name, [&](Context& context) {
    if (!stream) return Code::invalid_value;
    *stream = &context.add_stream(flags, priority);
    return Code::success;
  });
}

// A stream that is asked to finish has finished; while it captures it must not be asked.
int synchronise(const char* name, void* handle) {
  return entry(name, [&](Context& context) {
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    if (stream && stream->capture) return Code::stream_capture_unsupported;
    context.flush_printed();
    return Code::success;
  });
}

template <class Body> int with_stream(const char* name, void* handle, Body&& body) {
  return entry(name, [&](Context& context) {
    Stream* stream = nullptr;
    const Code code = stream_of(context, handle, stream);
    return code == Code::success ? body(context, stream) : code;
  });
}

} // namespace

Code stream_of(Context& context, void* handle, Stream*& stream) {
  stream = nullptr;
  if (reinterpret_cast<uintptr_t>(handle) <= per_thread_stream) return Code::success;
  stream = static_cast<Stream*>(handle);
  return context.is_stream(stream) ? Code::success : Code::invalid_handle;
}

RUNTIME_API int cudaStreamCreate(void** stream) {
  return new_stream("cudaStreamCreate", stream, 0, 0);
}

RUNTIME_API int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return new_stream("cudaStreamCreateWithFlags", stream, flags, 0);
}

RUNTIME_API int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return new_stream("cudaStreamCreateWithPriority", stream, flags, priority);
}

RUNTIME_API int cudaStreamDestroy(void* stream) {
  return entry("cudaStreamDestroy",
               [&](Context& context) { return context.remove_stream(static_cast<Stream*>(stream)); });
}

RUNTIME_API int cudaStreamSynchronize(void* stream) {
  return synchronise("cudaStreamSynchronize", stream);
}

RUNTIME_API int cudaStreamQuery(void* stream) {
  return synchronise("cudaStreamQuery", stream);
}

RUNTIME_API int cudaDeviceSynchronize() {
  return synchronise("cudaDeviceSynchronize", nullptr);
}

RUNTIME_API int cudaStreamGetPriority(void* handle, int* priority) {
  return with_stream("cudaStreamGetPriority", handle, [&](Context&, const Stream* stream) {
    *priority = stream ? stream->priority : 0;
    return Code::success;
  });
}

RUNTIME_API int cudaStreamGetFlags(void* handle, unsigned* flags) {
  return with_stream("cudaStreamGetFlags", handle, [&](Context&, const Stream* stream) {
    *flags = stream ? stream->flags : 0;
    return Code::success;
  });
}

RUNTIME_API int cudaStreamGetId(void* handle, unsigned long long* id) {
  return with_stream("cudaStreamGetId", handle, [&](Context&, const Stream* stream) {
    *id = stream ? stream->id : reinterpret_cast<uintptr_t>(handle);
    return Code::success;
  });
}

RUNTIME_API int cudaStreamGetDevice(void* handle, int* device) {
  return with_stream("cudaStreamGetDevice", handle, [&](Context&, const Stream*) {
    *device = 0;
    return Code::success;
  });
}

RUNTIME_API int cudaStreamSetAttribute(void*, int, const void*) {
  return 0; // advice to caches and schedulers
}

RUNTIME_API int cudaStreamCopyAttributes(void*, void*) {
  return 0;
}

RUNTIME_API int cudaStreamWaitEvent(void* handle, void* event, unsigned) {
  return with_stream("cudaStreamWaitEvent", handle, [&](Context& context, Stream* stream) {
    return event ? context.wait(stream, *static_cast<Event*>(event)) : Code::invalid_handle;
  });
}

RUNTIME_API int cudaLaunchHostFunc(void* handle, void (*function)(void*), void* data) {
  return with_stream("cudaLaunchHostFunc", handle, [&](Context& context, Stream* stream) {
    return context.submit(stream, NodeType::host, [function, data] {
      function(data);
      return Code::success;
    });
  });
}

RUNTIME_API int cudaStreamAddCallback(void* handle, void (*function)(void*, int, void*), void* data, unsigned) {
  return with_stream("cudaStreamAddCallback", handle, [&](Context& context, Stream* stream) {
    return context.submit(stream, NodeType::host, [handle, function, data] {
      function(handle, 0, data);
      return Code::success;
    });
  });
}

RUNTIME_API int cudaStreamAttachMemAsync(void* handle, void*, size_t, unsigned) {
  return with_stream("cudaStreamAttachMemAsync", handle, [](Context&, Stream*) { return Code::success; });
}

RUNTIME_API int cudaEventCreateWithFlags(void** event, unsigned flags) {
  return entry("cudaEventCreate", [&](Context&) {
    if (!event) return Code::invalid_value;
    *event = new Event{.flags = flags};
    return Code::success;
  });
}

RUNTIME_API int cudaEventCreate(void** event) {
  return cudaEventCreateWithFlags(event, 0);
}

RUNTIME_API int cudaEventDestroy(void* event) {
  return entry("cudaEventDestroy", [&](Context&) {
    if (!event) return Code::invalid_handle;
    delete static_cast<Event*>(event);
    return Code::success;
  });
}

RUNTIME_API int cudaEventRecordWithFlags(void* event, void* handle, unsigned) {
  return with_stream("cudaEventRecord", handle, [&](Context& context, Stream* stream) {
    return event ? context.record(*static_cast<Event*>(event), stream) : Code::invalid_handle;
  });
}

RUNTIME_API int cudaEventRecord(void* event, void* stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

RUNTIME_API int cudaEventQuery(void* event) {
  return entry("cudaEventQuery", [&](Context&) { return event ? Code::success : Code::invalid_handle; });
}

RUNTIME_API int cudaEventSynchronize(void* event) {
  return entry("cudaEventSynchronize", [&](Context& context) {
    if (!event) return Code::invalid_handle;
    context.flush_printed();
    return Code::success;
  });
}

RUNTIME_API int cudaEventElapsedTime(float* milliseconds, void* start, void* end) {
  return entry("cudaEventElapsedTime", [&](Context&) {
    const auto* first = static_cast<const Event*>(start);
    const auto* second = static_cast<const Event*>(end);
    if (!milliseconds || !first || !second) return Code::invalid_value;
    if (!first->recorded || !second->recorded || ((first->flags | second->flags) & event_without_time))
      return Code::invalid_handle;
    *milliseconds = std::chrono::duration<float, std::milli>(second->time - first->time).count();
    return Code::success;
  });
}

RUNTIME_ALIAS(cudaStreamSynchronize_ptsz, cudaStreamSynchronize)
RUNTIME_ALIAS(cudaStreamQuery_ptsz, cudaStreamQuery)
RUNTIME_ALIAS(cudaStreamGetPriority_ptsz, cudaStreamGetPriority)
RUNTIME_ALIAS(cudaStreamGetFlags_ptsz, cudaStreamGetFlags)
RUNTIME_ALIAS(cudaStreamGetId_ptsz, cudaStreamGetId)
RUNTIME_ALIAS(cudaStreamGetDevice_ptsz, cudaStreamGetDevice)
RUNTIME_ALIAS(cudaStreamSetAttribute_ptsz, cudaStreamSetAttribute)
RUNTIME_ALIAS(cudaStreamCopyAttributes_ptsz, cudaStreamCopyAttributes)
RUNTIME_ALIAS(cudaStreamWaitEvent_ptsz, cudaStreamWaitEvent)
RUNTIME_ALIAS(cudaLaunchHostFunc_ptsz, cudaLaunchHostFunc)
RUNTIME_ALIAS(cudaStreamAddCallback_ptsz, cudaStreamAddCallback)
RUNTIME_ALIAS(cudaStreamAttachMemAsync_ptsz, cudaStreamAttachMemAsync)
RUNTIME_ALIAS(cudaEventRecord_ptsz, cudaEventRecord)
RUNTIME_ALIAS(cudaEventRecordWithFlags_ptsz, cudaEventRecordWithFlags)

} // namespace ptxrewrite::cuda::runtime
