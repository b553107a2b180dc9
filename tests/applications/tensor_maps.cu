// Tensor maps that a program requests from the driver, as CUTLASS does: entry points by cudaGetDriverEntryPoint, maps
// passed to a kernel by value and through memory; a transposition and a convolution's columns against the host, and
// maps that the driver rejects.
#include "check.h"

#include <cstdint>
#include <cuda.h>
#include <vector>

constexpr int side = 32; // of a tile

__device__ uint32_t shared_address(const void* place) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(place));
}

__device__ void expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

__device__ void wait(uint64_t* barrier, uint32_t parity) {
  asm volatile("{ .reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(
                   shared_address(barrier)),
               "r"(parity)
               : "memory");
}

__device__ void begin(uint64_t* barrier) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(shared_address(barrier))
      : "memory");
}

__global__ void transpose(const __grid_constant__ CUtensorMap from, const CUtensorMap* to) {
  __shared__ alignas(1024) float tile[side][side], turned[side][side];
  __shared__ uint64_t barrier;
  const int x = threadIdx.x % side, y = threadIdx.x / side;
  if (threadIdx.x == 0) {
    begin(&barrier);
    expect(&barrier, sizeof tile);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
                 "%3}], [%4];" ::"r"(shared_address(tile)),
                 "l"(&from), "r"(blockIdx.x * side), "r"(blockIdx.y * side), "r"(shared_address(&barrier))
                 : "memory");
  }
  __syncthreads();
  wait(&barrier, 0);
  // Rows of 128 bytes, swizzled over the whole row: a 16-byte chunk is at its number ^ the row's number.
  const auto at = [](int row, int column) { return row * side + ((column / 4 ^ row % 8) * 4 + column % 4); };
  (&turned[0][0])[at(x, y)] = (&tile[0][0])[at(y, x)];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0)
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];\n"
                 "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(to),
                 "r"(blockIdx.y * side), "r"(blockIdx.x * side), "r"(shared_address(turned))
                 : "memory");
}

// One column of a convolution with 3 x 3 positions: 64 pixels of 8 channels, at filter position (s, r).
__global__ void columns(const __grid_constant__ CUtensorMap map, float* out, int w, int h, int s, int r) {
  __shared__ alignas(128) float pixels[64 * 8];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    begin(&barrier);
    expect(&barrier, sizeof pixels);
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
                 "%3, %4, %5}], [%6], {%7, %8};" ::"r"(shared_address(pixels)),
                 "l"(&map), "r"(0), "r"(w), "r"(h), "r"(0), "r"(shared_address(&barrier)),
                 "h"(static_cast<uint16_t>(s)), "h"(static_cast<uint16_t>(r))
                 : "memory");
  }
  __syncthreads();
  wait(&barrier, 0);
  for (int i = threadIdx.x; i < 64 * 8; i += blockDim.x)
    out[i] = pixels[i];
}

template <class Function> Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status;
  CALL(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &status));
  EXPECT(status == cudaDriverEntryPointSuccess && found);
  return reinterpret_cast<Function>(found);
}

struct Plain {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  cuuint32_t rank = 2;
  void* address = nullptr;
  cuuint64_t dims[5] = {100, 70, 1, 1, 1};
  cuuint64_t strides[4] = {112 * 4, 112 * 4 * 70, 112 * 4 * 70, 112 * 4 * 70};
  cuuint32_t box[5] = {side, side, 1, 1, 1};
  cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
};

decltype(&cuTensorMapEncodeTiled) encode = nullptr;
decltype(&cuTensorMapEncodeIm2col) encode_im2col = nullptr;
decltype(&cuTensorMapReplaceAddress) replace = nullptr;

CUresult make(CUtensorMap* map, const Plain& plain) {
  return encode(map, plain.type, plain.rank, plain.address, plain.dims, plain.strides, plain.box, plain.steps,
                plain.interleave, plain.swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, plain.fill);
}

void check_transposition(const std::vector<float>& a, float* from, float* to) {
  // 70 rows of 100 in rows of 112, transposed to 100 rows of 70 in rows of 72.
  std::vector<float> b(72 * 100, -1);
  CALL(cudaMemcpy(to, b.data(), b.size() * 4, cudaMemcpyHostToDevice));
  CUtensorMap map, turned;
  Plain plain;
  plain.address = from;
  EXPECT(make(&map, plain) == CUDA_SUCCESS);
  plain.address = from; // then the correct one
  plain.dims[0] = 70;
  plain.dims[1] = 100;
  plain.strides[0] = 72 * 4;
  EXPECT(make(&turned, plain) == CUDA_SUCCESS);
  EXPECT(replace(&turned, to) == CUDA_SUCCESS);
  CUtensorMap* in_memory = nullptr;
  CALL(cudaMalloc(&in_memory, sizeof turned));
  CALL(cudaMemcpy(in_memory, &turned, sizeof turned, cudaMemcpyHostToDevice));
  transpose<<<dim3(4, 3), side * side>>>(map, in_memory);
  CALL(cudaDeviceSynchronize());
  CALL(cudaMemcpy(b.data(), to, b.size() * 4, cudaMemcpyDeviceToHost));
  // Columns 70 and 71 are out of bounds: an H200 writes zeros there (up to 16 bytes), the emulator nothing.
  for (int row = 0; row < 100; ++row)
    for (int column = 0; column < 72; ++column) {
      const float found = b[row * 72 + column];
      EXPECT(column < 70 ? found == a[column * 112 + row] : found == -1 || found == 0);
    }
}

void check_columns(const std::vector<float>& a, float* from, float* to) {
  // Two images of 9 x 7 pixels and 8 channels, a border of 1 around them, a filter of 3 x 3.
  const cuuint64_t dims[] = {8, 9, 7, 2}, strides[] = {32, 32 * 9, 32 * 9 * 7};
  const int lower[] = {-1, -1}, upper[] = {-1, -1};
  const cuuint32_t steps[] = {1, 1, 1, 1};
  CUtensorMap map;
  EXPECT(encode_im2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, from, dims, strides, lower, upper, 8, 64, steps,
                       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  std::vector<float> found(64 * 8);
  for (int r = 0; r < 3; ++r)
    for (int s = 0; s < 3; ++s) {
      columns<<<1, 64>>>(map, to, 5, 2, s, r);
      CALL(cudaDeviceSynchronize());
      CALL(cudaMemcpy(found.data(), to, found.size() * 4, cudaMemcpyDeviceToHost));
      int w = 5, h = 2, n = 0;
      for (int pixel = 0; pixel < 64; ++pixel) {
        const int x = w + s, y = h + r;
        const bool inside = x >= 0 && x < 9 && y >= 0 && y < 7 && n < 2;
        for (int c = 0; c < 8; ++c)
          EXPECT(found[pixel * 8 + c] == (inside ? a[((n * 7 + y) * 9 + x) * 8 + c] : 0));
        if (++w > 7) { // the filter's corner goes from -1 to 9 - 1 - 1
          w = -1;
          if (++h > 5) h = -1, ++n;
        }
      }
    }
}

void check_refusals(float* from) {
  // Maps that the driver rejects.
  CUtensorMap map;
  Plain plain;
  plain.address = from;
  const auto refused = [&](auto&& change) {
    Plain bad = plain;
    change(bad);
    return make(&map, bad) == CUDA_ERROR_INVALID_VALUE;
  };
  EXPECT(refused([](Plain& p) { p.rank = 0; }) && refused([](Plain& p) { p.rank = 6; }));
  EXPECT(refused([](Plain& p) { p.address = static_cast<char*>(p.address) + 8; }));
  EXPECT(refused([](Plain& p) { p.dims[1] = 0; }) && refused([](Plain& p) { p.dims[0] = (1ull << 32) + 1; }));
  EXPECT(refused([](Plain& p) { p.strides[0] = 440; }) && refused([](Plain& p) { p.strides[0] = 1ull << 40; }));
  EXPECT(refused([](Plain& p) { p.box[1] = 257; }) && refused([](Plain& p) { p.box[0] = 33; }));
  EXPECT(refused([](Plain& p) { p.steps[1] = 9; }) && refused([](Plain& p) { p.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; }));
  EXPECT(refused([](Plain& p) { p.type = static_cast<CUtensorMapDataType>(16); }));
  EXPECT(refused([](Plain& p) {
    p.type = CU_TENSOR_MAP_DATA_TYPE_INT32;
    p.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  }));
  alignas(64) char bytes[256];
  EXPECT(make(reinterpret_cast<CUtensorMap*>(bytes + 32), plain) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(make(nullptr, plain) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(encode(&map, plain.type, 2, from, nullptr, plain.strides, plain.box, plain.steps, plain.interleave,
                plain.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, plain.fill) == CUDA_ERROR_INVALID_VALUE);
}

int main() {
  CALL(cudaFree(nullptr));
  encode = driver_function<decltype(encode)>("cuTensorMapEncodeTiled");
  encode_im2col = driver_function<decltype(encode_im2col)>("cuTensorMapEncodeIm2col");
  replace = driver_function<decltype(replace)>("cuTensorMapReplaceAddress");
  std::vector<float> a(112 * 70);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<float>(i);
  float *from = nullptr, *to = nullptr;
  CALL(cudaMalloc(&from, a.size() * 4));
  CALL(cudaMalloc(&to, a.size() * 4));
  CALL(cudaMemcpy(from, a.data(), a.size() * 4, cudaMemcpyHostToDevice));
  check_transposition(a, from, to);
  check_columns(a, from, to);
  check_refusals(from);
  std::puts("right");
  return 0;
}
