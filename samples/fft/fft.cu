// Fourier transforms of 512 complex numbers each, one transform a block.
// Stands for FFT (R2D2: FFT by cuFFT, DAC: FFT), written for this project from the algorithm: three passes of radix 8
// (512 = 8 * 8 * 8) in the self-sorting order of Stockham. 64 threads of eight numbers each; between two passes the
// numbers change threads through shared memory, real parts first, then imaginary ones.

constexpr int LENGTH = 512;
constexpr int RADIX = 8;
constexpr int THREADS = LENGTH / RADIX;

__device__ __forceinline__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ __forceinline__ float2 operator-(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
__device__ __forceinline__ float2 operator*(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// A quarter of a turn: times -i for the forward transform (direction -1), times i for the way back.
__device__ __forceinline__ float2 quarter_turn(float2 a, float direction) {
    return make_float2(-direction * a.y, direction * a.x);
}

__device__ __forceinline__ void exchange(float2 &a, float2 &b) {
    const float2 old = a;
    a = old + b;
    b = old - b;
}

// The transform of eight numbers in place.
__device__ __forceinline__ void fft8(float2 *v, float direction) {
    const float half_root = 0.70710678118654752f;

    exchange(v[0], v[4]);
    exchange(v[1], v[5]);
    exchange(v[2], v[6]);
    exchange(v[3], v[7]);
    v[5] = v[5] * make_float2(half_root, direction * half_root);
    v[6] = quarter_turn(v[6], direction);
    v[7] = v[7] * make_float2(-half_root, direction * half_root);

    exchange(v[0], v[2]);
    exchange(v[1], v[3]);
    exchange(v[4], v[6]);
    exchange(v[5], v[7]);
    v[3] = quarter_turn(v[3], direction);
    v[7] = quarter_turn(v[7], direction);

    exchange(v[0], v[1]);
    exchange(v[2], v[3]);
    exchange(v[4], v[5]);
    exchange(v[6], v[7]);

    // Results stand in bit-reversed places.
    const float2 v1 = v[1], v3 = v[3];
    v[1] = v[4];
    v[4] = v1;
    v[3] = v[6];
    v[6] = v3;
}

// Turns number r by r * place / (8 * done) of a full turn.
__device__ __forceinline__ void twiddle(float2 *v, int place, int done, float direction) {
    for (int r = 1; r < RADIX; ++r) {
        float sine;
        float cosine;
        sincospif(direction * 2.0f * r * place / (RADIX * done), &sine, &cosine);
        v[r] = v[r] * make_float2(cosine, sine);
    }
}

// Number r goes to place `to + r * to_stride` and comes back from `from + r * THREADS`.
__device__ __forceinline__ void change_threads(float2 *v, float *shared, int to, int to_stride, int from) {
    for (int r = 0; r < RADIX; ++r) {
        shared[to + r * to_stride] = v[r].x;
    }
    __syncthreads();
    for (int r = 0; r < RADIX; ++r) {
        v[r].x = shared[from + r * THREADS];
    }
    __syncthreads();
    for (int r = 0; r < RADIX; ++r) {
        shared[to + r * to_stride] = v[r].y;
    }
    __syncthreads();
    for (int r = 0; r < RADIX; ++r) {
        v[r].y = shared[from + r * THREADS];
    }
    __syncthreads();
}

extern "C" __global__ void fft512(const float2 *source, float2 *result, float direction) {
    __shared__ float shared[LENGTH];

    const int thread = threadIdx.x;
    source += blockIdx.x * LENGTH + thread;
    result += blockIdx.x * LENGTH + thread;

    float2 v[RADIX];
    for (int r = 0; r < RADIX; ++r) {
        v[r] = source[r * THREADS];
    }
    fft8(v, direction);

    change_threads(v, shared, thread * RADIX, 1, thread);
    twiddle(v, thread % 8, 8, direction);
    fft8(v, direction);

    change_threads(v, shared, thread / 8 * 64 + thread % 8, 8, thread);
    twiddle(v, thread, 64, direction);
    fft8(v, direction);

    for (int r = 0; r < RADIX; ++r) {
        result[r * THREADS] = v[r];
    }
}
