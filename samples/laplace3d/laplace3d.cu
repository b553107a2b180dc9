// One Jacobi step of the Laplace equation in three dimensions: every inner cell becomes the mean of its six
// neighbours, cells on the boundary keep their values.
// Stands for LPS of the ISPASS suite (R2D2: LPS), written for this project from the algorithm.
// A block of 32x4 threads owns a column of the volume and walks it plane by plane. Three planes of the tile with
// one ring of halo roll through shared memory; the first 76 threads also bring in one cell of the ring each.

constexpr int BLOCK_X = 32;
constexpr int BLOCK_Y = 4;
constexpr int TILE_X = BLOCK_X + 2;
constexpr int TILE_Y = BLOCK_Y + 2;
constexpr int TILE_PLANE = TILE_X * TILE_Y;
constexpr int RING = 2 * (BLOCK_X + BLOCK_Y + 2);

extern "C" __global__ void laplace3d(int nx, int ny, int nz, const float *source, float *result) {
    __shared__ float tile[3 * TILE_PLANE];

    const int i = blockIdx.x * BLOCK_X + threadIdx.x;
    const int j = blockIdx.y * BLOCK_Y + threadIdx.y;
    const bool active = i < nx && j < ny;
    const int plane = nx * ny;
    int index = i + j * nx;
    const int cell = TILE_PLANE + (threadIdx.y + 1) * TILE_X + threadIdx.x + 1;

    // The cell of the ring that this thread brings in: two rows with their corners first, then the two columns.
    const int thread = threadIdx.y * BLOCK_X + threadIdx.x;
    int ring_x;
    int ring_y;
    if (thread < 2 * TILE_X) {
        ring_x = thread % TILE_X - 1;
        ring_y = thread < TILE_X ? -1 : BLOCK_Y;
    } else {
        ring_x = thread % 2 == 0 ? -1 : BLOCK_X;
        ring_y = (thread - 2 * TILE_X) / 2;
    }
    const int ring_i = blockIdx.x * BLOCK_X + ring_x;
    const int ring_j = blockIdx.y * BLOCK_Y + ring_y;
    const bool brings_ring = thread < RING && ring_i >= 0 && ring_i < nx && ring_j >= 0 && ring_j < ny;
    int ring_index = ring_i + ring_j * nx;
    const int ring_cell = TILE_PLANE + (ring_y + 1) * TILE_X + ring_x + 1;

    // What lies below the first plane is never used, as that is boundary; the first plane itself stands in.
    if (active) {
        tile[cell] = tile[cell + TILE_PLANE] = source[index];
    }
    if (brings_ring) {
        tile[ring_cell] = tile[ring_cell + TILE_PLANE] = source[ring_index];
    }

    for (int k = 0; k < nz; ++k) {
        // The planes move down by one, and the next one comes in above.
        if (active) {
            index = i + j * nx + k * plane;
            tile[cell - TILE_PLANE] = tile[cell];
            tile[cell] = tile[cell + TILE_PLANE];
            if (k < nz - 1) {
                tile[cell + TILE_PLANE] = source[index + plane];
            }
        }
        if (brings_ring) {
            ring_index = ring_i + ring_j * nx + k * plane;
            tile[ring_cell - TILE_PLANE] = tile[ring_cell];
            tile[ring_cell] = tile[ring_cell + TILE_PLANE];
            if (k < nz - 1) {
                tile[ring_cell + TILE_PLANE] = source[ring_index + plane];
            }
        }
        __syncthreads();

        if (active) {
            const bool boundary = i == 0 || i == nx - 1 || j == 0 || j == ny - 1 || k == 0 || k == nz - 1;
            if (boundary) {
                result[index] = tile[cell];
            } else {
                result[index] = (tile[cell - 1] + tile[cell + 1] + tile[cell - TILE_X] + tile[cell + TILE_X] +
                                 tile[cell - TILE_PLANE] + tile[cell + TILE_PLANE]) *
                                (1.0f / 6.0f);
            }
        }
        __syncthreads();
    }
}
