// A product of matrices as in Hopper's libraries: one warp loads tiles by tensor copies into three stages, a warp
// group multiplies them by wgmma, full and empty mbarriers pass stages on, and tiles of sums are written by a reduction
// of a tensor, two of them (halves of k) to each place. Integers: every order of summation gives the same result.
#include "check.h"

#include <cstdint>
#include <cuda.h>
#include <cuda_fp16.h>
#include <vector>

constexpr int tile = 64, stages = 3, consumers = 128;
constexpr uint32_t tile_bytes = tile * tile * 2;

struct Shared {
  half a[stages][tile * tile], b[stages][tile * tile];
  float c[2][tile * 32]; // halves of a tile of sums, in rows of 128 bytes
  uint64_t full[stages], empty[stages];
};

__device__ uint32_t place(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ void begin(uint64_t* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(place(barrier)), "r"(count) : "memory");
}
__device__ void wait(uint64_t* barrier, uint32_t parity) {
  asm volatile("{ .reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(
                   place(barrier)),
               "r"(parity)
               : "memory");
}
__device__ void fetch(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
               "[%4];" ::"r"(place(to)),
               "l"(map), "r"(x), "r"(y), "r"(place(barrier))
               : "memory");
}
// Rows of 128 bytes, swizzled over the whole row; groups of eight rows are 1024 bytes apart.
__device__ uint64_t descriptor(const void* pointer) {
  return (place(pointer) & 0x3ffff) >> 4 | uint64_t(1) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}

__device__ void multiply(float (&d)[32], uint64_t a, uint64_t b) {
#define PARTS(F) F(0), F(1), F(2), F(3), F(4), F(5), F(6), F(7), F(8), F(9), F(10), F(11), F(12), F(13), F(14), F(15), \
                 F(16), F(17), F(18), F(19), F(20), F(21), F(22), F(23), F(24), F(25), F(26), F(27), F(28), F(29),   \
                 F(30), F(31)
#define PART(i) "+f"(d[i])
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
               "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
               "%32, %33, 1, 1, 1, 0, 0;"
               : PARTS(PART)
               : "l"(a), "l"(b));
}

__device__ void produce(Shared& shared, const CUtensorMap* a, const CUtensorMap* b, int first, int steps) {
  for (int step = 0; step < steps; ++step) {
    const int stage = step % stages;
    if (step >= stages) wait(&shared.empty[stage], (step / stages - 1) % 2);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place(&shared.full[stage])),
                 "r"(2 * tile_bytes)
                 : "memory");
    fetch(shared.a[stage], a, (first + step) * tile, blockIdx.y * tile, &shared.full[stage]);
    fetch(shared.b[stage], b, (first + step) * tile, blockIdx.x * tile, &shared.full[stage]);
  }
}

__device__ void consume(Shared& shared, const CUtensorMap* c, int steps) {
  float d[32] = {};
  for (int step = 0; step < steps; ++step) {
    const int stage = step % stages;
    wait(&shared.full[stage], step / stages % 2);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int k = 0; k < tile; k += 16)
      multiply(d, descriptor(shared.a[stage] + k), descriptor(shared.b[stage] + k));
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(place(&shared.empty[stage])) : "memory");
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < 32; ++i) {
    const int row = warp * 16 + lane / 4 + (i % 4 / 2) * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    shared.c[column / 32][row * 32 + ((column % 32 / 4 ^ row % 8) * 4 + column % 4)] = d[i];
  }
  asm volatile("fence.proxy.async.shared::cta;\nbar.sync 1, 128;" ::: "memory");
  if (threadIdx.x != 0) return;
  for (int part = 0; part < 2; ++part)
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(c),
                 "r"(blockIdx.x * tile + part * 32), "r"(blockIdx.y * tile), "r"(place(shared.c[part]))
                 : "memory");
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

__global__ void __launch_bounds__(consumers + 32) product(const __grid_constant__ CUtensorMap a,
                                                          const __grid_constant__ CUtensorMap b,
                                                          const __grid_constant__ CUtensorMap c, int steps) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      begin(&shared.full[stage], 1);
      begin(&shared.empty[stage], consumers);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x < consumers)
    consume(shared, &c, steps);
  else if (threadIdx.x == consumers)
    produce(shared, &a, &b, blockIdx.z * steps, steps);
}

decltype(&cuTensorMapEncodeTiled) encode = nullptr;

// Rows of `columns` elements; boxes of `width` x 64.
CUtensorMap map_of(void* address, CUtensorMapDataType type, int bytes, int rows, int columns, cuuint32_t width) {
  const cuuint64_t dims[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(columns) * bytes};
  const cuuint32_t box[] = {width, tile}, steps[] = {1, 1};
  CUtensorMap map;
  EXPECT(encode(&map, type, 2, address, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  return map;
}

template <class T> T* to_device(const std::vector<T>& values) {
  T* there = nullptr;
  CALL(cudaMalloc(&there, values.size() * sizeof(T)));
  CALL(cudaMemcpy(there, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return there;
}

int main() {
  constexpr int m = 100, n = 152, k = 10 * tile - 24; // not multiples of the tile size
  CALL(cudaFree(nullptr));
  cudaDriverEntryPointQueryResult status;
  CALL(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", reinterpret_cast<void**>(&encode), 12000,
                                        cudaEnableDefault, &status));
  std::vector<half> a(m * k), b(n * k);
  std::vector<float> c(m * n, 1);
  for (int i = 0; i < m * k; ++i)
    a[i] = __float2half(static_cast<float>(i * 7 % 11 - 5));
  for (int i = 0; i < n * k; ++i)
    b[i] = __float2half(static_cast<float>(i * 5 % 13 - 6));
  half *da = to_device(a), *db = to_device(b);
  float* dc = to_device(c);
  CALL(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared)));
  product<<<dim3((n + tile - 1) / tile, (m + tile - 1) / tile, 2), consumers + 32, sizeof(Shared)>>>(
      map_of(da, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, m, k, tile),
      map_of(db, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, n, k, tile),
      map_of(dc, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, m, n, 32), 5);
  CALL(cudaDeviceSynchronize());
  CALL(cudaMemcpy(c.data(), dc, c.size() * 4, cudaMemcpyDeviceToHost));
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      float sum = 1;
      for (int i = 0; i < k; ++i)
        sum += __half2float(a[row * k + i]) * __half2float(b[column * k + i]);
      EXPECT(c[row * n + column] == sum);
    }
  std::puts("right");
  return 0;
}
