// One mma.sync whose result depends on the order of summation: the accumulator is 1, fifteen products are 2^-24 each,
// half an ulp of 1. Added one at a time to nearest even they vanish. Prints the bits of the first element of D.
#include "check.h"

#include <cstdint>
#include <cstdio>
#include <cstring>

__global__ void multiply(float* d) {
  // f16: 1.0 is 0x3c00, the smallest subnormal 2^-24 is 0x0001. All elements of A are 1, those of B 2^-24 but for row
  // 0, which is zero. Lanes 0, 4 ... hold rows 0 and 1 of B in their first register.
  const uint32_t a = 0x3c003c00u, first_of_b = threadIdx.x % 4 == 0 ? 0x00010000u : 0x00010001u, b = 0x00010001u;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %6}, "
               "{%7, %7, %7, %7};"
               : "=f"(d[4 * threadIdx.x]), "=f"(d[4 * threadIdx.x + 1]), "=f"(d[4 * threadIdx.x + 2]),
                 "=f"(d[4 * threadIdx.x + 3])
               : "r"(a), "r"(first_of_b), "r"(b), "f"(1.0f));
}

int main() {
  float* d = nullptr;
  CALL(cudaMallocManaged(&d, 128 * sizeof(float)));
  multiply<<<1, 32>>>(d);
  CALL(cudaDeviceSynchronize());
  for (int i = 1; i < 128; ++i)
    if (d[i] != d[0]) return std::printf("element %d differs\n", i), 1;
  uint32_t bits;
  std::memcpy(&bits, &d[0], sizeof bits);
  std::printf("bits %08x\nright\n", bits);
}
