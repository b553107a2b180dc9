// Calls of the runtime API that the other programs here do not make, against the documentation of each: memory of three
// dimensions, the peer that is the device itself, occupancy of an H100, an updated graph, edges of graphs, callbacks,
// sharing between processes, which is refused, and a reset.
#include "../check.h"

#include <cstring>
#include <vector>

__global__ void add(int* out, int value) {
  atomicAdd(out, value);
}

static void volumes() {
  const cudaExtent extent = make_cudaExtent(20, 6, 4);
  cudaPitchedPtr volume;
  CALL(cudaMalloc3D(&volume, extent));
  EXPECT(volume.pitch >= 20 && volume.xsize == 20 && volume.ysize == 6);
  CALL(cudaMemset3D(volume, 1, extent));
  CALL(cudaMemset3D(volume, 2, make_cudaExtent(5, 2, 3))); // a corner
  std::vector<char> back(20 * 6 * 4);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = volume;
  copy.dstPtr = make_cudaPitchedPtr(back.data(), 20, 20, 6);
  copy.extent = extent;
  copy.kind = cudaMemcpyDeviceToHost;
  CALL(cudaMemcpy3D(&copy));
  for (int z = 0; z < 4; ++z)
    for (int y = 0; y < 6; ++y)
      for (int x = 0; x < 20; ++x)
        EXPECT(back[(z * 6 + y) * 20 + x] == (x < 5 && y < 2 && z < 3 ? 2 : 1));
  CALL(cudaFree(volume.ptr));
}

static void devices_and_peers() {
  int count = 0, device = -1, least = -1, greatest = 1;
  CALL(cudaGetDeviceCount(&count));
  EXPECT(count == 1 && cudaSetDevice(1) == cudaErrorInvalidDevice);
  (void)cudaGetLastError();
  CALL(cudaSetDevice(0));
  CALL(cudaGetDevice(&device));
  CALL(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT(device == 0 && least == 0 && greatest < 0);
  int *from, *to;
  CALL(cudaMalloc(&from, 4));
  CALL(cudaMalloc(&to, 4));
  CALL(cudaMemset(from, 3, 4));
  CALL(cudaMemcpyPeer(to, 0, from, 0, 4));
  CALL(cudaMemcpyPeerAsync(from, 0, to, 0, 4, nullptr));
  int value = 0;
  CALL(cudaMemcpy(&value, from, 4, cudaMemcpyDefault));
  EXPECT(value == 0x03030303);
  // No device has access to itself as to a peer.
  int can = 1;
  CALL(cudaDeviceCanAccessPeer(&can, 0, 0));
  EXPECT(can == 0 && cudaDeviceEnablePeerAccess(0, 0) == cudaErrorInvalidDevice);
  EXPECT(cudaDeviceDisablePeerAccess(0) == cudaErrorPeerAccessNotEnabled);
  (void)cudaGetLastError();
}

static void memory_information() {
  constexpr size_t bytes = 64 << 20;
  size_t before, after, total;
  CALL(cudaMemGetInfo(&before, &total));
  char* data;
  CALL(cudaMalloc(&data, bytes));
  CALL(cudaMemGetInfo(&after, &total));
  EXPECT(before <= total && before - after >= bytes && before - after < 2 * bytes);
  CALL(cudaFree(data));
  int* managed;
  CALL(cudaMallocManaged(&managed, 4096));
  *managed = 5;
  cudaStream_t stream;
  CALL(cudaStreamCreate(&stream));
  CALL(cudaStreamAttachMemAsync(stream, managed));
  const cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
  CALL(cudaMemAdvise(managed, 4096, cudaMemAdviseSetPreferredLocation, here));
  CALL(cudaMemPrefetchAsync(managed, 4096, here, 0, stream));
  add<<<1, 1, 0, stream>>>(managed, 2);
  CALL(cudaStreamSynchronize(stream));
  EXPECT(*managed == 7);
}

// An H100 has 132 multiprocessors of 2,048 threads and 228 KB of shared memory, of which each block takes 1 KB for
// itself (CUDA programming guide, technical specifications per compute capability).
static void occupancy() {
  int grid = 0, block = 0, blocks = 0;
  CALL(cudaOccupancyMaxPotentialBlockSize(&grid, &block, add, 0, 0));
  EXPECT(grid * block == 132 * 2048);
  CALL(cudaOccupancyMaxPotentialBlockSize(&grid, &block, add, 0, 96));
  EXPECT(block == 64 && grid == 132 * 32); // 96 would be 21 blocks, 2,016 threads
  CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 1024, 0));
  EXPECT(blocks == 2);
  size_t bytes = 0;
  CALL(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, add, 4, 256));
  CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 256, bytes));
  EXPECT(bytes <= 56 << 10 && bytes > 55 << 10 && blocks >= 4);
  CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 256, bytes + 1024));
  EXPECT(blocks < 4);
}

static cudaGraph_t graph_of(cudaStream_t stream, int* out, int value) {
  cudaGraph_t graph;
  CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cudaStreamCaptureStatus status;
  CALL(cudaStreamIsCapturing(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  add<<<1, 1, 0, stream>>>(out, value);
  CALL(cudaStreamEndCapture(stream, &graph));
  return graph;
}

static void updated_graph() {
  int* out;
  CALL(cudaMalloc(&out, 4));
  CALL(cudaMemset(out, 0, 4));
  cudaStream_t stream;
  CALL(cudaStreamCreate(&stream));
  cudaGraphExec_t instance;
  CALL(cudaGraphInstantiateWithFlags(&instance, graph_of(stream, out, 1), 0));
  CALL(cudaGraphLaunch(instance, stream));
  cudaGraphExecUpdateResultInfo result;
  CALL(cudaGraphExecUpdate(instance, graph_of(stream, out, 100), &result));
  EXPECT(result.result == cudaGraphExecUpdateSuccess);
  CALL(cudaGraphLaunch(instance, stream));
  int value = 0;
  CALL(cudaMemcpyAsync(&value, out, 4, cudaMemcpyDeviceToHost, stream));
  CALL(cudaStreamSynchronize(stream));
  EXPECT(value == 101);
}

// A diamond: 0 -> 1, 0 -> 2, 1 -> 3, 2 -> 3.
static void edges_of_graphs() {
  cudaGraph_t graph;
  CALL(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t nodes[4], from[8], to[8];
  CALL(cudaGraphAddEmptyNode(&nodes[0], graph, nullptr, 0));
  CALL(cudaGraphAddEmptyNode(&nodes[1], graph, &nodes[0], 1));
  CALL(cudaGraphAddEmptyNode(&nodes[2], graph, &nodes[0], 1));
  CALL(cudaGraphAddEmptyNode(&nodes[3], graph, &nodes[1], 2));
  size_t count = 0;
  CALL(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  EXPECT(count == 4);
  const auto has = [&](int begin, int end) {
    size_t found = 8;
    CALL(cudaGraphGetEdges(graph, from, to, nullptr, &found));
    for (size_t i = 0; i < found; ++i)
      if (from[i] == nodes[begin] && to[i] == nodes[end]) return true;
    return false;
  };
  EXPECT(has(0, 1) && has(0, 2) && has(1, 3) && has(2, 3) && !has(0, 3) && !has(1, 2));
  count = 8;
  CALL(cudaGraphNodeGetDependentNodes(nodes[0], to, nullptr, &count));
  EXPECT(count == 2 && to[0] == nodes[1] && to[1] == nodes[2] && !to[2]);
  count = 8;
  CALL(cudaGraphNodeGetDependencies(nodes[3], from, nullptr, &count));
  EXPECT(count == 2 && from[0] == nodes[1] && from[1] == nodes[2]);
  CALL(cudaGraphRemoveDependencies(graph, &nodes[1], &nodes[3], nullptr, 1));
  EXPECT(!has(1, 3) && has(2, 3));
  EXPECT(cudaGraphRemoveDependencies(graph, &nodes[1], &nodes[3], nullptr, 1) == cudaErrorInvalidValue);
  CALL(cudaGraphDestroyNode(nodes[2]));
  EXPECT(!has(2, 3) && has(0, 1));
  CALL(cudaGraphGetRootNodes(graph, nullptr, &count));
  EXPECT(count == 2); // 0 and 3
  CALL(cudaGraphDestroy(graph));
  (void)cudaGetLastError();
}

struct Called {
  cudaStream_t stream = nullptr;
  cudaError_t status = cudaErrorUnknown;
  int value = 0;
};
static int* shared_value;

static void CUDART_CB note(cudaStream_t stream, cudaError_t status, void* data) {
  *static_cast<Called*>(data) = {stream, status, *shared_value};
}

static void callbacks() {
  CALL(cudaMallocHost(&shared_value, 4));
  *shared_value = 0;
  cudaStream_t stream;
  CALL(cudaStreamCreate(&stream));
  Called first, second;
  add<<<1, 32, 0, stream>>>(shared_value, 1);
  CALL(cudaStreamAddCallback(stream, note, &first, 0));
  add<<<1, 32, 0, stream>>>(shared_value, 1);
  CALL(cudaStreamAddCallback(stream, note, &second, 0));
  CALL(cudaStreamSynchronize(stream));
  EXPECT(first.stream == stream && first.status == cudaSuccess && first.value == 32);
  EXPECT(second.value == 64);
}

static void sharing_is_refused() {
  int* data;
  CALL(cudaMalloc(&data, 4));
  cudaIpcMemHandle_t memory{};
  cudaIpcEventHandle_t event_handle{};
  cudaEvent_t event;
  CALL(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
  void* opened = nullptr;
  EXPECT(cudaIpcGetMemHandle(&memory, data) == cudaErrorNotSupported);
  EXPECT(cudaIpcOpenMemHandle(&opened, memory, cudaIpcMemLazyEnablePeerAccess) == cudaErrorNotSupported);
  EXPECT(cudaIpcGetEventHandle(&event_handle, event) == cudaErrorNotSupported);
  EXPECT(cudaIpcOpenEventHandle(&event, event_handle) == cudaErrorNotSupported);
  EXPECT(cudaPeekAtLastError() == cudaErrorNotSupported);
  EXPECT(cudaGetLastError() == cudaErrorNotSupported && cudaGetLastError() == cudaSuccess);
  EXPECT(std::strcmp(cudaGetErrorName(cudaErrorNotSupported), "cudaErrorNotSupported") == 0);
}

static void reset() {
  int *data, value = 0;
  CALL(cudaMalloc(&data, 4));
  CALL(cudaDeviceReset());
  EXPECT(cudaMemcpy(&value, data, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  (void)cudaGetLastError();
  CALL(cudaMallocManaged(&data, 4));
  *data = 1;
  add<<<1, 1>>>(data, 1);
  CALL(cudaDeviceSynchronize());
  EXPECT(*data == 2);
}

extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();

int main() {
  CALL(cudaProfilerStart());
  volumes();
  devices_and_peers();
  memory_information();
  occupancy();
  updated_graph();
  edges_of_graphs();
  callbacks();
  sharing_is_refused();
  CALL(cudaProfilerStop());
  reset();
  std::puts("right");
}
