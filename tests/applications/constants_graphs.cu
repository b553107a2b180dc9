// Constant and device symbols, stream capture, graphs that are constructed by hand and modified.
#include "check.h"

__constant__ int factors[4] = {1, 2, 3, 4};
__constant__ float offset;
__device__ int counter = 100;
__device__ double table[8];

__global__ void apply(int* data) {
  data[threadIdx.x] = data[threadIdx.x] * factors[threadIdx.x % 4] + static_cast<int>(offset);
  if (threadIdx.x == 0) ++counter;
}

__global__ void fill(double value) {
  table[threadIdx.x] = value * threadIdx.x;
}

__global__ void add(int* data, int value) {
  data[threadIdx.x] += value;
}

static void symbols() {
  int host[8];
  int* data;
  for (int i = 0; i < 8; ++i)
    host[i] = i;
  CALL(cudaMalloc(&data, sizeof host));
  CALL(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
  const float ten = 10;
  CALL(cudaMemcpyToSymbol(offset, &ten, sizeof ten));
  const int thousand = 1000;
  CALL(cudaMemcpyToSymbol(factors, &thousand, sizeof thousand, 3 * sizeof(int)));
  apply<<<1, 8>>>(data);
  CALL(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 8; ++i)
    EXPECT(host[i] == i * (i % 4 == 3 ? 1000 : i % 4 + 1) + 10);
  int count = 0;
  CALL(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  EXPECT(count == 101);
  fill<<<1, 8>>>(0.5);
  double* address;
  size_t bytes;
  CALL(cudaGetSymbolAddress(reinterpret_cast<void**>(&address), table));
  CALL(cudaGetSymbolSize(&bytes, table));
  EXPECT(bytes == sizeof table);
  double last = 0;
  CALL(cudaMemcpy(&last, address + 7, sizeof last, cudaMemcpyDeviceToHost));
  EXPECT(last == 3.5);
  int* constants;
  CALL(cudaGetSymbolAddress(reinterpret_cast<void**>(&constants), factors));
  CALL(cudaMemcpy(&count, constants + 2, sizeof count, cudaMemcpyDeviceToHost));
  EXPECT(count == 3);
  EXPECT(cudaMemcpyToSymbol(factors, host, 20) == cudaErrorInvalidValue);
  (void)cudaGetLastError();
  CALL(cudaFree(data));
}

// Replaces an argument of a kernel that capture recorded, as programs do that launch one graph with changing values.
static void replace_argument(cudaGraph_t graph, cudaGraphExec_t instance, int from, int to) {
  cudaGraphNode_t nodes[4];
  size_t count = 4;
  CALL(cudaGraphGetNodes(graph, nodes, &count));
  int kernels = 0;
  for (size_t i = 0; i < count; ++i) {
    cudaGraphNodeType type;
    cudaKernelNodeParams kernel{};
    CALL(cudaGraphNodeGetType(nodes[i], &type));
    if (type != cudaGraphNodeTypeKernel) {
      EXPECT(cudaGraphKernelNodeGetParams(nodes[i], &kernel) == cudaErrorInvalidValue);
      (void)cudaGetLastError();
      continue;
    }
    ++kernels;
    CALL(cudaGraphKernelNodeGetParams(nodes[i], &kernel));
    EXPECT(kernel.func == reinterpret_cast<void*>(add) && kernel.gridDim.x == 1 && kernel.blockDim.x == 32);
    if (*static_cast<int*>(kernel.kernelParams[1]) != from) continue;
    void* arguments[] = {kernel.kernelParams[0], &to};
    kernel.kernelParams = arguments;
    CALL(cudaGraphExecKernelNodeSetParams(instance, nodes[i], &kernel));
  }
  EXPECT(kernels == 2);
}

static void captured() {
  int *data, host[32];
  CALL(cudaMalloc(&data, sizeof host));
  cudaStream_t stream, side;
  CALL(cudaStreamCreate(&stream));
  CALL(cudaStreamCreate(&side));
  cudaEvent_t fork, join;
  CALL(cudaEventCreate(&fork));
  CALL(cudaEventCreate(&join));
  CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CALL(cudaMemsetAsync(data, 0, sizeof host, stream));
  CALL(cudaEventRecord(fork, stream));
  CALL(cudaStreamWaitEvent(side, fork, 0));
  add<<<1, 32, 0, side>>>(data, 5);
  CALL(cudaEventRecord(join, side));
  CALL(cudaStreamWaitEvent(stream, join, 0));
  add<<<1, 32, 0, stream>>>(data, 6);
  CALL(cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, stream));
  cudaGraph_t graph;
  CALL(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  CALL(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT(nodes == 4);
  cudaGraphExec_t instance;
  CALL(cudaGraphInstantiate(&instance, graph, 0));
  for (int round = 0; round < 3; ++round) {
    for (int& value : host)
      value = -1;
    CALL(cudaGraphLaunch(instance, stream));
    CALL(cudaStreamSynchronize(stream));
    for (int value : host)
      EXPECT(value == 11);
  }
  replace_argument(graph, instance, 6, 60);
  CALL(cudaGraphLaunch(instance, stream));
  CALL(cudaStreamSynchronize(stream));
  EXPECT(host[0] == 65 && host[31] == 65);
  CALL(cudaGraphExecDestroy(instance));
  CALL(cudaGraphDestroy(graph));
}

static void built() {
  int *data, host[32], value = 3;
  CALL(cudaMalloc(&data, sizeof host));
  cudaGraph_t graph;
  CALL(cudaGraphCreate(&graph, 0));
  cudaMemsetParams zero{};
  zero.dst = data;
  zero.elementSize = 4;
  zero.width = 32;
  zero.height = 1;
  zero.value = 1000;
  cudaGraphNode_t fill_node, add_node, copy_node;
  CALL(cudaGraphAddMemsetNode(&fill_node, graph, nullptr, 0, &zero));
  void* arguments[] = {&data, &value};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(add);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(32);
  kernel.kernelParams = arguments;
  CALL(cudaGraphAddKernelNode(&add_node, graph, &fill_node, 1, &kernel));
  CALL(cudaGraphAddMemcpyNode1D(&copy_node, graph, &add_node, 1, host, data, sizeof host, cudaMemcpyDeviceToHost));
  cudaGraphExec_t instance;
  CALL(cudaGraphInstantiate(&instance, graph, 0));
  CALL(cudaGraphLaunch(instance, nullptr));
  CALL(cudaDeviceSynchronize());
  EXPECT(host[0] == 1003 && host[31] == 1003);
  value = 4;
  CALL(cudaGraphExecKernelNodeSetParams(instance, add_node, &kernel));
  CALL(cudaGraphLaunch(instance, nullptr));
  CALL(cudaDeviceSynchronize());
  EXPECT(host[0] == 1004 && host[31] == 1004);
}

int main() {
  symbols();
  captured();
  built();
  std::puts("right");
}
