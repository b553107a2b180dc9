// Discrete cosine transform of the 8x8 blocks of an image, quantisation with JPEG's table, and the way back.
// Stands for DCT8x8 of the CUDA SDK (DARSIE and the composite paper: DCT), written for this project from the
// algorithm. Image sides are multiples of 8 (32 and 16 for the second transform).

constexpr int SIDE = 8;

__constant__ float basis[SIDE * SIDE];        // row u, column x: cosine u at place x, normalised
__constant__ float quantisation[SIDE * SIDE];

// The transform as two products of 8x8 matrices in shared memory. Blocks of 8x8 threads, one coefficient a thread.
extern "C" __global__ void dct_by_matrices(const float *image, float *coefficients, int width) {
    __shared__ float block[SIDE][SIDE];
    __shared__ float half_done[SIDE][SIDE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int index = (blockIdx.y * SIDE + ty) * width + blockIdx.x * SIDE + tx;

    block[ty][tx] = image[index] - 128.0f;
    __syncthreads();

    float sum = 0.0f;
    for (int i = 0; i < SIDE; ++i) {
        sum += basis[ty * SIDE + i] * block[i][tx];
    }
    half_done[ty][tx] = sum;
    __syncthreads();

    sum = 0.0f;
    for (int i = 0; i < SIDE; ++i) {
        sum += half_done[ty][i] * basis[tx * SIDE + i];
    }
    coefficients[index] = sum;
}

// Rounds every coefficient to a multiple of its step. Blocks of 8x8 threads.
extern "C" __global__ void dct_quantise(const float *coefficients, float *quantised, int width) {
    const int index = (blockIdx.y * SIDE + threadIdx.y) * width + blockIdx.x * SIDE + threadIdx.x;
    const float step = quantisation[threadIdx.y * SIDE + threadIdx.x];
    quantised[index] = rintf(coefficients[index] / step) * step;
}

// The inverse transform as two products. Blocks of 8x8 threads, one pixel a thread.
extern "C" __global__ void dct_inverse_by_matrices(const float *coefficients, float *image, int width) {
    __shared__ float block[SIDE][SIDE];
    __shared__ float half_done[SIDE][SIDE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int index = (blockIdx.y * SIDE + ty) * width + blockIdx.x * SIDE + tx;

    block[ty][tx] = coefficients[index];
    __syncthreads();

    float sum = 0.0f;
    for (int i = 0; i < SIDE; ++i) {
        sum += basis[i * SIDE + ty] * block[i][tx];
    }
    half_done[ty][tx] = sum;
    __syncthreads();

    sum = 0.0f;
    for (int i = 0; i < SIDE; ++i) {
        sum += half_done[ty][i] * basis[i * SIDE + tx];
    }
    image[index] = sum + 128.0f;
}

// An eight-point transform in place by its symmetries: sums of mirrored elements give the even coefficients,
// differences the odd ones. Elements are `stride` apart.
__device__ __forceinline__ void dct_vector(float *first, int stride) {
    const float c1 = 0.49039264020161522f, c2 = 0.46193976625564337f, c3 = 0.41573480615127262f;
    const float c4 = 0.35355339059327379f, c5 = 0.27778511650980114f, c6 = 0.19134171618254492f;
    const float c7 = 0.09754516100806417f;

    float s[4];
    float d[4];
    for (int i = 0; i < 4; ++i) {
        const float near = first[i * stride];
        const float far = first[(7 - i) * stride];
        s[i] = near + far;
        d[i] = near - far;
    }
    const float s03 = s[0] + s[3], d03 = s[0] - s[3];
    const float s12 = s[1] + s[2], d12 = s[1] - s[2];

    first[0 * stride] = c4 * (s03 + s12);
    first[2 * stride] = c2 * d03 + c6 * d12;
    first[4 * stride] = c4 * (s03 - s12);
    first[6 * stride] = c6 * d03 - c2 * d12;
    first[1 * stride] = c1 * d[0] + c3 * d[1] + c5 * d[2] + c7 * d[3];
    first[3 * stride] = c3 * d[0] - c7 * d[1] - c1 * d[2] - c5 * d[3];
    first[5 * stride] = c5 * d[0] - c1 * d[1] + c7 * d[2] + c3 * d[3];
    first[7 * stride] = c7 * d[0] - c5 * d[1] + c3 * d[2] - c1 * d[3];
}

// The transform by rows, then columns, one vector of eight a thread. Blocks of 8x4x2 threads own 32x16 pixels: x is
// the place in an 8x8 block, y and z choose the block. A padded row of shared memory keeps the banks apart.
extern "C" __global__ void dct_by_vectors(const float *image, float *coefficients, int width) {
    constexpr int STRIDE = 33;
    __shared__ float tile[16 * STRIDE];

    const int left = threadIdx.y * SIDE;
    const int top = threadIdx.z * SIDE;
    const int index = (blockIdx.y * 16 + top) * width + blockIdx.x * 32 + left + threadIdx.x;
    float *own_block = tile + top * STRIDE + left;

    for (int i = 0; i < SIDE; ++i) {
        own_block[i * STRIDE + threadIdx.x] = image[index + i * width] - 128.0f;
    }
    __syncthreads();
    dct_vector(own_block + threadIdx.x * STRIDE, 1);
    __syncthreads();
    dct_vector(own_block + threadIdx.x, STRIDE);
    __syncthreads();
    for (int i = 0; i < SIDE; ++i) {
        coefficients[index + i * width] = own_block[i * STRIDE + threadIdx.x];
    }
}
