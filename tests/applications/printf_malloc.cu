// printf and malloc of kernels, and the limit of the heap.
#include "check.h"

struct Node {
  int value;
  Node* next;
};

__global__ void build(Node** lists, int length) {
  Node* head = nullptr;
  for (int i = 0; i < length; ++i) {
    Node* node = static_cast<Node*>(malloc(sizeof(Node)));
    if (!node) {
      printf("thread %d: no memory\n", threadIdx.x);
      break;
    }
    *node = {i, head};
    head = node;
  }
  lists[threadIdx.x] = head;
}

__global__ void total(Node** lists, int* sums) {
  int sum = 0;
  for (Node* node = lists[threadIdx.x]; node;) {
    sum += node->value;
    Node* next = node->next;
    free(node);
    node = next;
  }
  sums[threadIdx.x] = sum;
  if (threadIdx.x == 3) printf("thread %d has %d, %s %.2f\n", threadIdx.x, sum, "and", 0.5);
}

int main() {
  size_t heap = 0;
  CALL(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
  EXPECT(heap == 8 << 20);
  CALL(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
  Node** lists;
  int *sums, host[32];
  CALL(cudaMalloc(&lists, 32 * sizeof(Node*)));
  CALL(cudaMalloc(&sums, 32 * sizeof(int)));
  std::puts("before");
  build<<<1, 32>>>(lists, 20);
  total<<<1, 32>>>(lists, sums);
  CALL(cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost));
  for (int sum : host)
    EXPECT(sum == 190);
  std::puts("right");
}
