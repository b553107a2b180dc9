// Speckle reducing anisotropic diffusion of an ultrasound image, one-dimensional version: each pixel spreads to its
// neighbours the more, the less an edge is likely there. Stands for srad_v1 of Rodinia (R2D2, DAC, DARSIE, Composite,
// RegLess).
// Written for this project from the algorithm. Blocks of 512 threads, one a pixel; row and column come from a division
// by the image's height, neighbours from index tables. The sums over the image take several launches that each leave
// one value a block, ever farther apart. Images are column-major.

constexpr int THREADS = 512;

// From pixels in 0..255 to intensities and back.
extern "C" __global__ void srad_extract(int pixels, float *image) {
    const int pixel = blockIdx.x * THREADS + threadIdx.x;
    if (pixel < pixels) {
        image[pixel] = expf(image[pixel] / 255.0f);
    }
}

extern "C" __global__ void srad_compress(int pixels, float *image) {
    const int pixel = blockIdx.x * THREADS + threadIdx.x;
    if (pixel < pixels) {
        image[pixel] = logf(image[pixel]) * 255.0f;
    }
}

// What is to be summed.
extern "C" __global__ void srad_prepare(int pixels, const float *image, float *sums, float *square_sums) {
    const int pixel = blockIdx.x * THREADS + threadIdx.x;
    if (pixel < pixels) {
        sums[pixel] = image[pixel];
        square_sums[pixel] = image[pixel] * image[pixel];
    }
}

// Adds up `count` values that lie `distance` apart, 512 to one: a block's result takes the place of its first value.
extern "C" __global__ void srad_reduce(int count, int distance, float *sums, float *square_sums) {
    __shared__ float sum[THREADS];
    __shared__ float square_sum[THREADS];

    const int tx = threadIdx.x;
    const int index = blockIdx.x * THREADS + tx;
    sum[tx] = index < count ? sums[index * distance] : 0.0f;
    square_sum[tx] = index < count ? square_sums[index * distance] : 0.0f;
    __syncthreads();

    for (int width = 2; width <= THREADS; width *= 2) {
        if ((tx + 1) % width == 0) {
            sum[tx] += sum[tx - width / 2];
            square_sum[tx] += square_sum[tx - width / 2];
        }
        __syncthreads();
    }
    if (tx == THREADS - 1) {
        sums[blockIdx.x * THREADS * distance] = sum[tx];
        square_sums[blockIdx.x * THREADS * distance] = square_sum[tx];
    }
}

// The image's variance over its squared mean: how much of a pixel's variation is mere speckle. One thread; the
// benchmark does this on the host.
extern "C" __global__ void srad_speckle(int pixels, const float *sums, const float *square_sums, float *speckle) {
    const float mean = sums[0] / pixels;
    const float variance = square_sums[0] / pixels - mean * mean;
    *speckle = variance / (mean * mean);
}

// Differences to the four neighbours and the coefficient of diffusion.
extern "C" __global__ void srad_coefficients(int rows, int columns, const int *north_of, const int *south_of,
                                             const int *east_of, const int *west_of, float *north, float *south,
                                             float *east, float *west, const float *speckle, float *coefficients,
                                             const float *image) {
    const int pixel = blockIdx.x * THREADS + threadIdx.x;
    if (pixel >= rows * columns) {
        return;
    }
    const int row = pixel % rows;
    const int column = pixel / rows;

    const float here = image[pixel];
    const float to_north = image[north_of[row] + rows * column] - here;
    const float to_south = image[south_of[row] + rows * column] - here;
    const float to_west = image[row + rows * west_of[column]] - here;
    const float to_east = image[row + rows * east_of[column]] - here;

    const float gradient_squared =
        (to_north * to_north + to_south * to_south + to_west * to_west + to_east * to_east) / (here * here);
    const float laplacian = (to_north + to_south + to_west + to_east) / here;
    const float numerator = 0.5f * gradient_squared - 1.0f / 16.0f * (laplacian * laplacian);
    const float denominator = 1.0f + 0.25f * laplacian;
    const float variation = numerator / (denominator * denominator);
    const float excess = (variation - *speckle) / (*speckle * (1.0f + *speckle));
    float coefficient = 1.0f / (1.0f + excess);
    if (coefficient < 0.0f) {
        coefficient = 0.0f;
    } else if (coefficient > 1.0f) {
        coefficient = 1.0f;
    }

    north[pixel] = to_north;
    south[pixel] = to_south;
    west[pixel] = to_west;
    east[pixel] = to_east;
    coefficients[pixel] = coefficient;
}

// Moves every pixel by the divergence of what flows.
extern "C" __global__ void srad_update(float rate, int rows, int columns, const int *south_of, const int *east_of,
                                       const float *north, const float *south, const float *east, const float *west,
                                       const float *coefficients, float *image) {
    const int pixel = blockIdx.x * THREADS + threadIdx.x;
    if (pixel >= rows * columns) {
        return;
    }
    const int row = pixel % rows;
    const int column = pixel / rows;

    const float here = coefficients[pixel];
    const float at_south = coefficients[south_of[row] + rows * column];
    const float at_east = coefficients[row + rows * east_of[column]];
    const float divergence = here * north[pixel] + at_south * south[pixel] + here * west[pixel] + at_east * east[pixel];
    image[pixel] += 0.25f * rate * divergence;
}
