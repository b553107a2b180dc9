// Sets A and B: the forward pass of Rodinia's backprop. The benchmark computes at run time what the sample computes at
// compile time: the number of levels of the tree is the logarithm of its height, the distance of a level a power of
// two, and a remainder selects the threads that add. The rest is the sample's. Written for this project.

#define bp_layerforward bp_layerforward_of_sample
#include "samples/backprop/backprop.cu"
#undef bp_layerforward

extern "C" __global__ void bp_layerforward(const float *input, float *weights, float *partial_sums, int in, int hid) {
    __shared__ float input_node[HEIGHT];
    __shared__ float products[HEIGHT][WIDTH];

    const int by = blockIdx.y;
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int index = (hid + 1) * HEIGHT * by + (hid + 1) * ty + tx + 1 + (hid + 1);

    if (tx == 0) {
        input_node[ty] = input[HEIGHT * by + ty + 1];
    }
    __syncthreads();
    products[ty][tx] = weights[index];
    __syncthreads();
    products[ty][tx] *= input_node[ty];
    __syncthreads();

    for (int level = 1; level <= __log2f(HEIGHT); ++level) {
        const int distance = __powf(2, level);
        if (ty % distance == 0) {
            products[ty][tx] += products[ty + distance / 2][tx];
        }
        __syncthreads();
    }

    weights[index] = products[ty][tx];
    __syncthreads();
    if (tx == 0) {
        partial_sums[by * hid + ty] = products[tx][ty];
    }
}
