// Streams, events, callbacks, asynchronous and pitched copies, memory pools.
#include "check.h"

#include <vector>

__global__ void scale(int* data, int n, int factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= factor;
}

__global__ void mark_rows(char* base, size_t pitch, int width, int height) {
  const int x = threadIdx.x, y = blockIdx.x;
  if (x < width && y < height) base[y * pitch + x] = static_cast<char>(x + y);
}

static int callbacks = 0;
static void on_host(void* data) {
  ++*static_cast<int*>(data);
}

int main() {
  const int n = 4096, parts = 4;
  int *host, *device;
  CALL(cudaMallocHost(&host, n * sizeof(int)));
  CALL(cudaMalloc(&device, n * sizeof(int)));
  for (int i = 0; i < n; ++i)
    host[i] = i;
  cudaStream_t streams[parts];
  cudaEvent_t first, last;
  CALL(cudaEventCreate(&first));
  CALL(cudaEventCreate(&last));
  for (cudaStream_t& stream : streams)
    CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CALL(cudaEventRecord(first, streams[0]));
  for (int p = 0; p < parts; ++p) {
    const int offset = p * n / parts;
    CALL(cudaMemcpyAsync(device + offset, host + offset, n / parts * sizeof(int), cudaMemcpyHostToDevice, streams[p]));
    scale<<<n / parts / 128, 128, 0, streams[p]>>>(device + offset, n / parts, p + 2);
    CALL(cudaMemcpyAsync(host + offset, device + offset, n / parts * sizeof(int), cudaMemcpyDeviceToHost, streams[p]));
    CALL(cudaLaunchHostFunc(streams[p], on_host, &callbacks));
  }
  for (int p = 1; p < parts; ++p) {
    cudaEvent_t done;
    CALL(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CALL(cudaEventRecord(done, streams[p]));
    CALL(cudaStreamWaitEvent(streams[0], done, 0));
    CALL(cudaEventDestroy(done));
  }
  CALL(cudaEventRecord(last, streams[0]));
  CALL(cudaEventSynchronize(last));
  float milliseconds = -1;
  CALL(cudaEventElapsedTime(&milliseconds, first, last));
  EXPECT(milliseconds >= 0);
  EXPECT(callbacks == parts);
  for (int i = 0; i < n; ++i)
    EXPECT(host[i] == i * (i / (n / parts) + 2));
  for (cudaStream_t stream : streams)
    CALL(cudaStreamDestroy(stream));

  char* rows;
  size_t pitch;
  const int width = 100, height = 20;
  CALL(cudaMallocPitch(&rows, &pitch, width, height));
  EXPECT(pitch >= width);
  CALL(cudaMemset2D(rows, pitch, 0x55, width, height));
  mark_rows<<<height, 128>>>(rows, pitch, width - 1, height);
  std::vector<char> back(width * height);
  CALL(cudaMemcpy2D(back.data(), width, rows, pitch, width, height, cudaMemcpyDeviceToHost));
  for (int y = 0; y < height; ++y) {
    EXPECT(back[y * width + width - 1] == 0x55);
    for (int x = 0; x < width - 1; ++x)
      EXPECT(back[y * width + x] == static_cast<char>(x + y));
  }

  int* pooled;
  cudaStream_t stream;
  CALL(cudaStreamCreate(&stream));
  CALL(cudaMallocAsync(&pooled, 1024, stream));
  CALL(cudaMemsetAsync(pooled, 0xff, 1024, stream));
  int value = 0;
  CALL(cudaMemcpyAsync(&value, pooled + 255, sizeof value, cudaMemcpyDefault, stream));
  CALL(cudaFreeAsync(pooled, stream));
  CALL(cudaStreamSynchronize(stream));
  EXPECT(value == -1);
  EXPECT(cudaMemcpy(pooled, &value, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  std::puts("right");
}
