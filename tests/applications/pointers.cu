// Addresses in memory: lists that kernels traverse, a variable of the module that points into them, a struct by value.
#include "check.h"

#include <vector>

struct Node {
  const Node* next;
  int value;
};
struct Lists {
  const Node* const* heads;
  int count;
};

__device__ const Node* spare;

__global__ void sum(Lists lists, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= lists.count) return;
  int total = spare->value;
  for (const Node* node = lists.heads[i]; node; node = node->next)
    total += node->value;
  out[i] = total;
}

int main() {
  const int lists = 100, length = 5;
  Node* nodes;
  const Node** heads;
  int *out, *unused;
  CALL(cudaMalloc(&unused, 1 << 20));
  CALL(cudaMalloc(&nodes, (lists * length + 1) * sizeof(Node)));
  CALL(cudaMallocManaged(&heads, lists * sizeof(Node*)));
  CALL(cudaMalloc(&out, lists * sizeof(int)));
  std::vector<Node> host(lists * length + 1);
  for (int i = 0; i < lists * length; ++i)
    host[i] = {(i + lists < lists * length) ? nodes + i + lists : nullptr, i};
  host.back() = {nullptr, 1000};
  for (int i = 0; i < lists; ++i)
    heads[i] = nodes + i;
  const Node* last = nodes + lists * length;
  CALL(cudaMemcpy(nodes, host.data(), host.size() * sizeof(Node), cudaMemcpyDefault));
  CALL(cudaMemcpyToSymbol(spare, &last, sizeof last));
  sum<<<4, 32>>>({heads, lists}, out);
  int sums[lists];
  CALL(cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDefault));
  for (int i = 0; i < lists; ++i)
    EXPECT(sums[i] == 1000 + length * i + lists * (length * (length - 1) / 2));
  std::puts("right");
}
