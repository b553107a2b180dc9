// Back-propagation of one layer of a neural network: the forward weighted sums and the weight update.
// Written for this project from the algorithm of Rodinia's backprop; blocks of 16x16 threads,
// grid {1, inputs / 16}. Weight matrices are row-major with hid + 1 columns; row 0 and column 0 hold biases.

constexpr int HEIGHT = 16;
constexpr int WIDTH = 16;
constexpr double ETA = 0.3;
constexpr double MOMENTUM = 0.3;

// Scales a 16x16 tile of the weight matrix by the input vector, writes the products back and adds the
// tile's columns up by a tree in shared memory: one partial sum for each block and hidden unit.
extern "C" __global__ void bp_layerforward(const float *input, float *weights, float *partial_sums, int in,
                                           int hid) {
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

    products[ty][tx] = weights[index] * input_node[ty];
    __syncthreads();

    for (int stride = 1; stride < HEIGHT; stride *= 2) {
        if (ty % (2 * stride) == 0) {
            products[ty][tx] += products[ty + stride][tx];
        }
        __syncthreads();
    }

    weights[index] = products[ty][tx];
    if (ty == 0) {
        partial_sums[by * hid + tx] = products[0][tx];
    }
}

// Moves every weight along its gradient with momentum; thread (tx, ty) of block by owns one weight.
// Row 0, the bias weights, belongs to the first row of threads of the first block.
extern "C" __global__ void bp_adjust_weights(const float *delta, int hid, const float *ly, int in, float *w,
                                             float *oldw) {
    const int by = blockIdx.y;
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int index = (hid + 1) * HEIGHT * by + (hid + 1) * ty + tx + 1 + (hid + 1);
    const int index_y = HEIGHT * by + ty + 1;
    const int index_x = tx + 1;

    w[index] += (ETA * delta[index_x] * ly[index_y]) + (MOMENTUM * oldw[index]);
    oldw[index] = (ETA * delta[index_x] * ly[index_y]) + (MOMENTUM * oldw[index]);

    __syncthreads();

    if (ty == 0 && by == 0) {
        w[index_x] += (ETA * delta[index_x]) + (MOMENTUM * oldw[index_x]);
        oldw[index_x] = (ETA * delta[index_x]) + (MOMENTUM * oldw[index_x]);
    }
}
