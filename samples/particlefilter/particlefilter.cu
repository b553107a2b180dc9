// One step of a particle filter that follows an object in a noisy film: particles move by a noisy model, are weighted
// by the likelihood of the pixels under them, and are drawn anew by their weights. Double precision.
// Stands for the particle filter of Rodinia (RegLess).
// Written for this project from the algorithm. One thread owns one particle, blocks of 512 threads; logarithm, cosine
// and exponential are inlined by nvcc with their rare paths, the drawing is a search loop of data-dependent length.

constexpr int THREADS = 512;

// A linear congruential generator, one for each particle: uniform in [0, 1).
__device__ __forceinline__ double uniform(int *seeds, int particle) {
    constexpr int MULTIPLIER = 1103515245;
    constexpr int INCREMENT = 12345;
    constexpr int MODULUS = 2147483647;
    // Wraps around by intent: unsigned arithmetic, read as signed.
    const int next = static_cast<int>(static_cast<unsigned>(MULTIPLIER) * static_cast<unsigned>(seeds[particle]) +
                                      static_cast<unsigned>(INCREMENT)) %
                     MODULUS;
    seeds[particle] = next;
    return fabs(next / static_cast<double>(MODULUS));
}

// Box and Muller's way to a normal distribution.
__device__ __forceinline__ double normal(int *seeds, int particle) {
    constexpr double PI = 3.14159265358979323846;
    const double u = uniform(seeds, particle);
    const double v = uniform(seeds, particle);
    return sqrt(-2.0 * log(u)) * cos(2.0 * PI * v);
}

// Moves particles, weights them, and sums the weights of each block by a tree in shared memory. The disk's offsets
// are pairs (x, y); a film is an array of frames, each x-major.
extern "C" __global__ void particle_likelihood(double *x, double *y, const double *old_x, const double *old_y,
                                               const int *disk, int disk_size, const unsigned char *film, int width,
                                               int height, int frames, int frame, int *seeds, double *weights,
                                               double *block_sums, int particles) {
    __shared__ double sums[THREADS];
    const int particle = blockIdx.x * blockDim.x + threadIdx.x;

    sums[threadIdx.x] = 0.0;
    if (particle < particles) {
        const double new_x = old_x[particle] + 1.0 + 5.0 * normal(seeds, particle);
        const double new_y = old_y[particle] - 2.0 + 2.0 * normal(seeds, particle);
        x[particle] = new_x;
        y[particle] = new_y;

        const int pixels = width * height * frames;
        double likelihood = 0.0;
        for (int k = 0; k < disk_size; ++k) {
            const int pixel_x = static_cast<int>(rint(new_x)) + disk[2 * k];
            const int pixel_y = static_cast<int>(rint(new_y)) + disk[2 * k + 1];
            int pixel = abs(pixel_x * height * frames + pixel_y * frames + frame);
            if (pixel >= pixels) {
                pixel = 0;
            }
            const double to_background = film[pixel] - 100.0;
            const double to_object = film[pixel] - 228.0;
            likelihood += (to_background * to_background - to_object * to_object) / 50.0;
        }
        likelihood /= disk_size;
        weights[particle] = 1.0 / particles * exp(likelihood);
        sums[threadIdx.x] = weights[particle];
    }
    __syncthreads();

    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) {
            sums[threadIdx.x] += sums[threadIdx.x + stride];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        block_sums[blockIdx.x] = sums[0];
    }
}

// The blocks' sums to one, by one thread.
extern "C" __global__ void particle_sum(double *block_sums, int blocks) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        double sum = 0.0;
        for (int block = 0; block < blocks; ++block) {
            sum += block_sums[block];
        }
        block_sums[0] = sum;
    }
}

extern "C" __global__ void particle_normalise(double *weights, const double *block_sums, int particles) {
    __shared__ double sum;
    if (threadIdx.x == 0) {
        sum = block_sums[0];
    }
    __syncthreads();
    const int particle = blockIdx.x * blockDim.x + threadIdx.x;
    if (particle < particles) {
        weights[particle] /= sum;
    }
}

// Running sums of the weights by one thread, while the others lay out the evenly spaced marks to be drawn.
extern "C" __global__ void particle_cumulate(const double *weights, double *cumulated, double *marks, int *seeds,
                                             int particles) {
    __shared__ double first_mark;
    const int particle = blockIdx.x * blockDim.x + threadIdx.x;
    if (particle == 0) {
        double sum = 0.0;
        for (int k = 0; k < particles; ++k) {
            sum += weights[k];
            cumulated[k] = sum;
        }
    }
    // Every block draws the same number; only the first block's seed moves on.
    if (threadIdx.x == 0) {
        int seed = seeds[particles];
        first_mark = uniform(&seed, 0) / particles;
        if (blockIdx.x == 0) {
            seeds[particles + 1] = seed;
        }
    }
    __syncthreads();
    if (particle < particles) {
        marks[particle] = first_mark + particle / static_cast<double>(particles);
    }
}

// Replaces each particle by the first one whose running sum reaches its mark.
extern "C" __global__ void particle_draw(const double *x, const double *y, const double *cumulated, const double *marks,
                                         double *drawn_x, double *drawn_y, int particles) {
    const int particle = blockIdx.x * blockDim.x + threadIdx.x;
    if (particle < particles) {
        int drawn = particles - 1;
        for (int k = 0; k < particles; ++k) {
            if (cumulated[k] >= marks[particle]) {
                drawn = k;
                break;
            }
        }
        drawn_x[particle] = x[drawn];
        drawn_y[particle] = y[drawn];
    }
}
