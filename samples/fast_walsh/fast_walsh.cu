// Dyadic convolution of two signals by fast Walsh transforms: transform both, multiply, transform back.
// Stands for fastWalshTransform of the CUDA SDK (DARSIE: FW), written for this project from the algorithm.
// Long strides are done in global memory, four elements and two radix-2 stages a thread and launch; once a part of
// the signal fits, a block finishes it in dynamic shared memory, a quarter as many threads as elements.

// Two stages of the transform: elements `stride` apart become sums and differences of the four. Blocks of 256
// threads; grid {length / 1024, parts}, a row of the grid for each part of the signal.
extern "C" __global__ void walsh_global(const float *source, float *result, int stride) {
    const int position = blockIdx.x * blockDim.x + threadIdx.x;
    const int length = blockDim.x * gridDim.x * 4;
    const float *from = source + blockIdx.y * length;
    float *to = result + blockIdx.y * length;

    const int low = position & (stride - 1);
    const int i0 = ((position - low) << 2) + low;
    const int i1 = i0 + stride;
    const int i2 = i1 + stride;
    const int i3 = i2 + stride;

    const float sum02 = from[i0] + from[i2];
    const float difference02 = from[i0] - from[i2];
    const float sum13 = from[i1] + from[i3];
    const float difference13 = from[i1] - from[i3];
    to[i0] = sum02 + sum13;
    to[i1] = sum02 - sum13;
    to[i2] = difference02 + difference13;
    to[i3] = difference02 - difference13;
}

// The rest of the transform, 2^log_length elements a block, in place.
extern "C" __global__ void walsh_shared(float *signal, int log_length) {
    extern __shared__ float part[];

    const int length = 1 << log_length;
    float *own = signal + (blockIdx.x << log_length);
    for (int i = threadIdx.x; i < length; i += blockDim.x) {
        part[i] = own[i];
    }

    const int position = threadIdx.x;
    for (int stride = length >> 2; stride > 0; stride >>= 2) {
        const int low = position & (stride - 1);
        const int i0 = ((position - low) << 2) + low;
        const int i1 = i0 + stride;
        const int i2 = i1 + stride;
        const int i3 = i2 + stride;

        __syncthreads();
        const float sum02 = part[i0] + part[i2];
        const float difference02 = part[i0] - part[i2];
        const float sum13 = part[i1] + part[i3];
        const float difference13 = part[i1] - part[i3];
        part[i0] = sum02 + sum13;
        part[i1] = sum02 - sum13;
        part[i2] = difference02 + difference13;
        part[i3] = difference02 - difference13;
    }

    // An odd number of stages leaves one for pairs.
    if (log_length & 1) {
        __syncthreads();
        for (int pair = threadIdx.x; pair < length / 2; pair += blockDim.x) {
            const float first = part[2 * pair];
            const float second = part[2 * pair + 1];
            part[2 * pair] = first + second;
            part[2 * pair + 1] = first - second;
        }
    }

    __syncthreads();
    for (int i = threadIdx.x; i < length; i += blockDim.x) {
        own[i] = part[i];
    }
}

extern "C" __global__ void walsh_modulate(float *a, const float *b, int length) {
    const int threads = blockDim.x * gridDim.x;
    const float scale = 1.0f / length;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < length; i += threads) {
        a[i] *= b[i] * scale;
    }
}
