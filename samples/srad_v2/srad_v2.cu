// Speckle reducing anisotropic diffusion of an ultrasound image, two-dimensional version.
// Stands for srad_v2 of Rodinia (R2D2, DAC, Composite, RegLess).
// Written for this project from the algorithm. Blocks of 16 x 16 threads load their tile and the cells next to it into
// shared memory; which cells those are differs for blocks on the image's border, and from where a thread takes its
// neighbours differs for threads on the tile's border. The image is row-major, its sides multiples of 16.

constexpr int TILE = 16;

// Differences to the four neighbours and the coefficient of diffusion.
extern "C" __global__ void srad_coefficients(float *east, float *west, float *north, float *south, const float *image,
                                             float *coefficients, int columns, int rows, float speckle) {
    __shared__ float here[TILE][TILE];
    __shared__ float above[TILE][TILE];
    __shared__ float below[TILE][TILE];
    __shared__ float right[TILE][TILE];
    __shared__ float left[TILE][TILE];

    const int bx = blockIdx.x;
    const int by = blockIdx.y;
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int corner = columns * TILE * by + TILE * bx;
    const int index = corner + columns * ty + tx;

    // Along the image's border a cell is its own neighbour.
    above[ty][tx] = by == 0 ? image[TILE * bx + tx] : image[corner + tx - columns];
    below[ty][tx] =
        by == gridDim.y - 1 ? image[corner + columns * (TILE - 1) + tx] : image[corner + columns * TILE + tx];
    left[ty][tx] = bx == 0 ? image[corner + columns * ty] : image[corner + columns * ty - 1];
    right[ty][tx] = bx == gridDim.x - 1 ? image[corner + columns * ty + TILE - 1] : image[corner + columns * ty + TILE];
    here[ty][tx] = image[index];
    __syncthreads();

    const float value = here[ty][tx];
    const float to_north = (ty == 0 ? above[ty][tx] : here[ty - 1][tx]) - value;
    const float to_south = (ty == TILE - 1 ? below[ty][tx] : here[ty + 1][tx]) - value;
    const float to_west = (tx == 0 ? left[ty][tx] : here[ty][tx - 1]) - value;
    const float to_east = (tx == TILE - 1 ? right[ty][tx] : here[ty][tx + 1]) - value;

    const float gradient_squared =
        (to_north * to_north + to_south * to_south + to_west * to_west + to_east * to_east) / (value * value);
    const float laplacian = (to_north + to_south + to_west + to_east) / value;
    const float numerator = 0.5f * gradient_squared - 1.0f / 16.0f * (laplacian * laplacian);
    const float denominator = 1.0f + 0.25f * laplacian;
    const float variation = numerator / (denominator * denominator);
    const float excess = (variation - speckle) / (speckle * (1.0f + speckle));
    const float coefficient = 1.0f / (1.0f + excess);

    if (coefficient < 0.0f) {
        coefficients[index] = 0.0f;
    } else if (coefficient > 1.0f) {
        coefficients[index] = 1.0f;
    } else {
        coefficients[index] = coefficient;
    }
    east[index] = to_east;
    west[index] = to_west;
    north[index] = to_north;
    south[index] = to_south;
}

// Moves every pixel by the divergence of what flows.
extern "C" __global__ void srad_update(const float *east, const float *west, const float *north, const float *south,
                                       float *image, const float *coefficients, int columns, int rows, float rate) {
    __shared__ float here[TILE][TILE];
    __shared__ float below[TILE][TILE];
    __shared__ float right[TILE][TILE];

    const int bx = blockIdx.x;
    const int by = blockIdx.y;
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int corner = columns * TILE * by + TILE * bx;
    const int index = corner + columns * ty + tx;

    below[ty][tx] = by == gridDim.y - 1 ? coefficients[corner + columns * (TILE - 1) + tx]
                                        : coefficients[corner + columns * TILE + tx];
    right[ty][tx] = bx == gridDim.x - 1 ? coefficients[corner + columns * ty + TILE - 1]
                                        : coefficients[corner + columns * ty + TILE];
    here[ty][tx] = coefficients[index];
    __syncthreads();

    const float own = here[ty][tx];
    const float at_south = ty == TILE - 1 ? below[ty][tx] : here[ty + 1][tx];
    const float at_east = tx == TILE - 1 ? right[ty][tx] : here[ty][tx + 1];
    const float divergence = own * north[index] + at_south * south[index] + own * west[index] + at_east * east[index];
    image[index] += 0.25f * rate * divergence;
}
