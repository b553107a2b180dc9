// Launches return before kernels end: kernels and host functions that wait for an action of the program after the launch,
// the order of streams and events meanwhile, and the states that queries report (CUDA programming guide, Asynchronous
// Concurrent Execution; runtime API, API synchronization behavior).
#include "../check.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

__global__ void wait_and_write(volatile int* flag, int* out, int value) {
  while (*flag == 0) {
  }
  *out = value;
}

__global__ void add(int* out, int value) {
  atomicAdd(out, value);
}

__global__ void add_often(volatile int* started, int* sum, int count) {
  *started = 1;
  for (int i = 0; i < count; ++i)
    atomicAdd_system(sum, 1);
}

// Answers each request with its square, until a request is negative.
__global__ void serve(volatile int* request, volatile int* answer) {
  for (int last = 0;;) {
    const int now = *request;
    if (now == last) continue;
    if (now < 0) return;
    answer[1] = now * now;
    __threadfence_system();
    answer[0] = last = now;
  }
}

static int* mapped(int count) {
  int* data;
  CALL(cudaHostAlloc(&data, count * sizeof(int), cudaHostAllocMapped));
  std::memset(data, 0, count * sizeof(int));
  return data;
}

static void set(int* flag) {
  *const_cast<volatile int*>(flag) = 1;
}

static int value_at(const int* device) {
  int value = -1;
  CALL(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

static int* device_value() {
  int* data;
  CALL(cudaMalloc(&data, sizeof *data));
  CALL(cudaMemset(data, 0, sizeof *data));
  return data;
}

static cudaStream_t new_stream(unsigned flags) {
  cudaStream_t stream;
  CALL(cudaStreamCreateWithFlags(&stream, flags));
  return stream;
}

static cudaEvent_t new_event() {
  cudaEvent_t event;
  CALL(cudaEventCreate(&event));
  return event;
}

// The kernel cannot have ended before the host sets the flag.
static void query_running_kernel() {
  int *flag = mapped(1), *out = device_value();
  const cudaStream_t stream = new_stream(0), beside = new_stream(cudaStreamNonBlocking);
  const cudaEvent_t before = new_event(), after = new_event();
  EXPECT(cudaEventQuery(after) == cudaSuccess); // never recorded
  CALL(cudaEventRecord(before, stream));
  wait_and_write<<<1, 1, 0, stream>>>(flag, out, 7);
  CALL(cudaGetLastError());
  CALL(cudaEventRecord(after, stream));
  EXPECT(cudaStreamQuery(stream) == cudaErrorNotReady);
  EXPECT(cudaEventQuery(after) == cudaErrorNotReady);
  float milliseconds;
  EXPECT(cudaEventElapsedTime(&milliseconds, before, after) == cudaErrorNotReady);
  EXPECT(cudaStreamQuery(beside) == cudaSuccess);
  CALL(cudaGetLastError()); // "not ready" is no error
  set(flag);
  CALL(cudaEventSynchronize(after));
  EXPECT(cudaStreamQuery(stream) == cudaSuccess && cudaEventQuery(after) == cudaSuccess);
  CALL(cudaEventElapsedTime(&milliseconds, before, after));
  EXPECT(milliseconds >= 0);
  EXPECT(value_at(out) == 7);
}

// Work behind a kernel that waits: in its stream, behind an event, in the default stream, and copies of pinned memory.
static void order_behind_kernel() {
  int *flag = mapped(1), *pinned = mapped(2), *out = device_value();
  const cudaStream_t first = new_stream(0), second = new_stream(cudaStreamNonBlocking);
  const cudaEvent_t done = new_event();
  wait_and_write<<<1, 1, 0, first>>>(flag, out, 100);
  add<<<1, 32, 0, first>>>(out, 1);
  CALL(cudaEventRecord(done, first));
  CALL(cudaStreamWaitEvent(second, done, 0));
  add<<<1, 1, 0, second>>>(out, 1000);
  CALL(cudaMemcpyAsync(pinned, out, sizeof(int), cudaMemcpyDeviceToHost, second));
  CALL(cudaMemsetAsync(out, 0, sizeof(int), second));
  pinned[1] = 5;
  CALL(cudaMemcpyAsync(out, pinned + 1, sizeof(int), cudaMemcpyHostToDevice, second));
  EXPECT(cudaStreamQuery(second) == cudaErrorNotReady);
  EXPECT(cudaStreamQuery(nullptr) == cudaErrorNotReady); // the default stream waits for the first one
  EXPECT(pinned[0] == 0);
  CALL(cudaEventDestroy(done)); // both return at once, while work is pending
  CALL(cudaStreamDestroy(first));
  set(flag);
  CALL(cudaStreamSynchronize(second));
  EXPECT(pinned[0] == 1132 && value_at(out) == 5);
}

// The default stream does not wait for a stream that was made to run beside it.
static void stream_beside_default() {
  int *flag = mapped(1), *out = device_value();
  const cudaStream_t stream = new_stream(cudaStreamNonBlocking);
  wait_and_write<<<1, 1, 0, stream>>>(flag, out, 3);
  EXPECT(cudaStreamQuery(nullptr) == cudaSuccess);
  EXPECT(cudaStreamQuery(stream) == cudaErrorNotReady);
  set(flag);
  CALL(cudaDeviceSynchronize());
  EXPECT(value_at(out) == 3);
}

struct HostWork {
  std::atomic<bool> may_go = false;
  std::atomic<int> seen = -1;
  int* value = nullptr; // mapped
  cudaError_t code = cudaSuccess;
};

static void on_host(void* given) {
  auto& work = *static_cast<HostWork*>(given);
  while (!work.may_go)
    std::this_thread::yield();
  work.seen = *work.value;
  int* data = nullptr;
  work.code = cudaMalloc(&data, 4);
}

static void host_function_waits() {
  int *flag = mapped(1), *value = mapped(1);
  set(flag);
  HostWork work;
  work.value = value;
  const cudaStream_t stream = new_stream(0);
  wait_and_write<<<1, 1, 0, stream>>>(flag, value, 1);
  CALL(cudaLaunchHostFunc(stream, on_host, &work));
  wait_and_write<<<1, 1, 0, stream>>>(flag, value, 2);
  EXPECT(cudaStreamQuery(stream) == cudaErrorNotReady);
  work.may_go = true;
  CALL(cudaStreamSynchronize(stream));
  EXPECT(work.seen == 1 && *value == 2);
  EXPECT(work.code == cudaErrorNotPermitted); // host functions must not call CUDA
}

// Messages in both directions while the kernel runs, without a call of CUDA.
static void converse() {
  int *request = mapped(1), *answer = mapped(2);
  serve<<<1, 1>>>(request, answer);
  for (int i = 1; i <= 50; ++i) {
    *const_cast<volatile int*>(request) = i;
    while (*const_cast<volatile int*>(answer) != i)
      std::this_thread::yield();
    EXPECT(const_cast<volatile int*>(answer)[1] == i * i);
  }
  *const_cast<volatile int*>(request) = -1;
  CALL(cudaDeviceSynchronize());
}

// Atomic operations of scope system are atomic for the program, too (PTX ISA, scopes).
static void add_with_host() {
  constexpr int lanes = 32, count = 20000, host_count = 2000000;
  int *started = mapped(1), *sum = mapped(1);
  add_often<<<1, lanes>>>(started, sum, count);
  while (*const_cast<volatile int*>(started) == 0)
    std::this_thread::yield();
  for (int i = 0; i < host_count; ++i)
    __sync_fetch_and_add(sum, 1);
  CALL(cudaDeviceSynchronize());
  EXPECT(*sum == lanes * count + host_count);
}

// A thread that waits for the device does not stop others.
static void other_thread_releases() {
  int *flag = mapped(1), *out = device_value();
  wait_and_write<<<1, 1>>>(flag, out, 9);
  std::thread other([flag] {
    EXPECT(cudaStreamQuery(nullptr) == cudaErrorNotReady);
    set(flag);
  });
  CALL(cudaDeviceSynchronize());
  other.join();
  EXPECT(value_at(out) == 9);
}

// Memory that CUDA does not know may be changed as soon as the call returns.
static void pageable_copies() {
  int* out = device_value();
  std::vector<int> source = {41};
  add<<<1, 32>>>(out, 1);
  CALL(cudaMemcpyAsync(out, source.data(), sizeof(int), cudaMemcpyHostToDevice, nullptr));
  source[0] = 0;
  add<<<1, 1>>>(out, 1);
  int back = 0;
  CALL(cudaMemcpyAsync(&back, out, sizeof back, cudaMemcpyDeviceToHost, nullptr));
  EXPECT(back == 42); // "the function will return only once the copy has completed"
}

static void graph_behind_kernel() {
  int *flag = mapped(1), *out = device_value();
  const cudaStream_t stream = new_stream(0);
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add<<<1, 1, 0, stream>>>(out, 10);
  CALL(cudaStreamEndCapture(stream, &graph));
  CALL(cudaGraphInstantiateWithFlags(&instance, graph, 0));
  wait_and_write<<<1, 1, 0, stream>>>(flag, out, 1);
  CALL(cudaGraphLaunch(instance, stream));
  CALL(cudaGraphLaunch(instance, stream));
  EXPECT(cudaStreamQuery(stream) == cudaErrorNotReady);
  set(flag);
  CALL(cudaStreamSynchronize(stream));
  EXPECT(value_at(out) == 21);
}

int main() {
  query_running_kernel();
  order_behind_kernel();
  stream_beside_default();
  host_function_waits();
  converse();
  add_with_host();
  other_thread_releases();
  pageable_copies();
  graph_behind_kernel();
  std::puts("right");
}
