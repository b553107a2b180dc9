// Ranges given by their ends: as an argument, and in memory where nothing else gives their position. Three kernels
// have names that begin with the same hundred characters.
#include "check.h"

#include <vector>

template <int factor>
__global__ void
sum_of_all_that_lies_between_the_first_pointer_and_the_last_one_which_is_the_end_and_not_an_element_times_a_factor(
    const int* begin, const int* end, int* out) {
  int sum = 0;
  for (const int* at = begin + threadIdx.x; at < end; at += blockDim.x)
    sum += *at * factor;
  out[threadIdx.x] = sum;
}

__global__ void last_ones(const int* const* ends, int* out) {
  out[threadIdx.x] = (*ends)[-1 - static_cast<int>(threadIdx.x)];
}

template <int factor> static void check_sum(const int* values, int n, int* out) {
  const int threads = 32;
  sum_of_all_that_lies_between_the_first_pointer_and_the_last_one_which_is_the_end_and_not_an_element_times_a_factor<
      factor><<<1, threads>>>(values, values + n, out);
  int sums[threads];
  CALL(cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDefault));
  for (int t = 0; t < threads; ++t) {
    int expected = 0;
    for (int i = t; i < n; i += threads)
      expected += i * factor;
    EXPECT(sums[t] == expected);
  }
}

int main() {
  const int n = 100;
  std::vector<int> host(n);
  for (int i = 0; i < n; ++i)
    host[i] = i;
  int *values, *out;
  const int** ends;
  CALL(cudaMalloc(&values, n * sizeof(int)));
  CALL(cudaMalloc(&out, 32 * sizeof(int)));
  CALL(cudaMalloc(&ends, sizeof *ends));
  CALL(cudaMemcpy(values, host.data(), n * sizeof(int), cudaMemcpyDefault));
  check_sum<1>(values, n, out);
  check_sum<2>(values, n, out);
  check_sum<3>(values, n, out);

  const int* end = values + n;
  CALL(cudaMemcpy(ends, &end, sizeof end, cudaMemcpyDefault));
  last_ones<<<1, 32>>>(ends, out);
  int last[32];
  CALL(cudaMemcpy(last, out, sizeof last, cudaMemcpyDefault));
  for (int t = 0; t < 32; ++t)
    EXPECT(last[t] == n - 1 - t);
  std::puts("right");
}
