// Memory pools, allocation in the order of a stream, and memory that belongs to a graph.
#include "check.h"

#include <cstdint>
#include <vector>

__global__ void fill(int* data, int value) {
  data[threadIdx.x] = value + threadIdx.x;
}

__global__ void add(int* sums, const int* data) {
  sums[threadIdx.x] += data[threadIdx.x];
}

static uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
  uint64_t value = ~uint64_t(0);
  CALL(cudaMemPoolGetAttribute(pool, which, &value));
  return value;
}

static uint64_t graph_bytes(cudaGraphMemAttributeType which) {
  uint64_t value = ~uint64_t(0);
  CALL(cudaDeviceGetGraphMemAttribute(0, which, &value));
  return value;
}

static void expect_sums(const int* sums, int first) {
  std::vector<int> host(64);
  CALL(cudaMemcpy(host.data(), sums, 256, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i)
    EXPECT(host[i] == first + (first / 7) * i);
}

static void use_pools(cudaStream_t stream, int* sums) {
  cudaMemPool_t pool, same, own;
  CALL(cudaDeviceGetDefaultMemPool(&pool, 0));
  CALL(cudaDeviceGetMemPool(&same, 0));
  EXPECT(pool == same && attribute(pool, cudaMemPoolAttrReleaseThreshold) == 0);
  uint64_t threshold = 1 << 20;
  CALL(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  EXPECT(attribute(pool, cudaMemPoolAttrReleaseThreshold) == threshold);
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  CALL(cudaMemPoolCreate(&own, &properties));
  int *first, *second;
  CALL(cudaMallocAsync(&first, 256, stream));
  CALL(cudaMallocFromPoolAsync(&second, 512, own, stream));
  EXPECT(attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 256 && attribute(own, cudaMemPoolAttrUsedMemCurrent) == 512);
  fill<<<1, 64, 0, stream>>>(first, 7);
  fill<<<1, 64, 0, stream>>>(second, 0);
  add<<<1, 64, 0, stream>>>(sums, first);
  CALL(cudaFreeAsync(first, stream));
  CALL(cudaFreeAsync(second, stream));
  EXPECT(cudaFreeAsync(second + 1, stream) == cudaErrorInvalidValue);
  EXPECT(attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 0 && attribute(own, cudaMemPoolAttrUsedMemHigh) == 512);
  CALL(cudaMemPoolTrimTo(own, 0));
  CALL(cudaMemPoolDestroy(own));
  CALL(cudaStreamSynchronize(stream));
  expect_sums(sums, 7);
  (void)cudaGetLastError();
}

// Allocated and freed within the graph, which runs three times.
static void capture_allocation(cudaStream_t stream, int* sums) {
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  int* data;
  CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CALL(cudaMallocAsync(&data, 256, stream));
  fill<<<1, 64, 0, stream>>>(data, 7);
  add<<<1, 64, 0, stream>>>(sums, data);
  CALL(cudaFreeAsync(data, stream));
  CALL(cudaStreamEndCapture(stream, &graph));
  size_t count = 0;
  CALL(cudaGraphGetNodes(graph, nullptr, &count));
  EXPECT(count == 4);
  std::vector<cudaGraphNode_t> nodes(count);
  CALL(cudaGraphGetNodes(graph, nodes.data(), &count));
  cudaGraphNodeType first, last;
  CALL(cudaGraphNodeGetType(nodes[0], &first));
  CALL(cudaGraphNodeGetType(nodes[3], &last));
  EXPECT(first == cudaGraphNodeTypeMemAlloc && last == cudaGraphNodeTypeMemFree);
  CALL(cudaGraphInstantiate(&instance, graph, 0));
  CALL(cudaGraphDestroy(graph));
  for (int i = 0; i < 3; ++i)
    CALL(cudaGraphLaunch(instance, stream));
  CALL(cudaStreamSynchronize(stream));
  EXPECT(graph_bytes(cudaGraphMemAttrUsedMemCurrent) == 0 && graph_bytes(cudaGraphMemAttrUsedMemHigh) >= 256);
  CALL(cudaGraphExecDestroy(instance));
  CALL(cudaDeviceGraphMemTrim(0));
  EXPECT(graph_bytes(cudaGraphMemAttrReservedMemCurrent) == 0);
}

// Allocated in the graph, used after it, and freed by the program, between two launches.
static void free_after_graph(cudaStream_t stream, int* sums) {
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  cudaGraphNode_t node, kernel;
  CALL(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams memory = {};
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location = {cudaMemLocationTypeDevice, 0};
  memory.bytesize = 256;
  CALL(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &memory));
  EXPECT(memory.dptr != nullptr);
  int* data = static_cast<int*>(memory.dptr);
  int value = 7;
  void* arguments[] = {&data, &value};
  cudaKernelNodeParams launch = {};
  launch.func = reinterpret_cast<void*>(fill);
  launch.gridDim = dim3(1);
  launch.blockDim = dim3(64);
  launch.kernelParams = arguments;
  CALL(cudaGraphAddKernelNode(&kernel, graph, &node, 1, &launch));
  CALL(cudaGraphInstantiate(&instance, graph, 0));
  for (int i = 0; i < 2; ++i) {
    CALL(cudaGraphLaunch(instance, stream));
    add<<<1, 64, 0, stream>>>(sums, data);
    EXPECT(graph_bytes(cudaGraphMemAttrUsedMemCurrent) == 256);
    CALL(cudaFreeAsync(data, stream));
    EXPECT(graph_bytes(cudaGraphMemAttrUsedMemCurrent) == 0);
  }
  EXPECT(cudaGraphAddMemFreeNode(&node, graph, nullptr, 0, sums) == cudaErrorInvalidValue);
  CALL(cudaGraphExecDestroy(instance));
  CALL(cudaGraphDestroy(graph));
  (void)cudaGetLastError();
}

int main() {
  cudaStream_t stream;
  int* sums;
  CALL(cudaStreamCreate(&stream));
  CALL(cudaMalloc(&sums, 256));
  CALL(cudaMemset(sums, 0, 256));
  use_pools(stream, sums);
  capture_allocation(stream, sums);
  expect_sums(sums, 28);
  free_after_graph(stream, sums);
  expect_sums(sums, 42);
  std::puts("right");
}
