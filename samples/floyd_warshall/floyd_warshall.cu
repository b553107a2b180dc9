// Shortest paths between all pairs of vertices: plain, one launch a vertex, and in tiles of 16x16 that are worked on
// in shared memory, three launches for every tile on the diagonal.
// Stands for FloydWarshall of Pannotia (DARSIE: FWS), written for this project from the algorithm.
// Distances are a row-major n x n matrix of integers, n a multiple of 16; FAR means no path. Blocks of 16x16 threads.

constexpr int TILE = 16;

extern "C" __global__ void floyd_warshall(int *distance, int n, int k) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int through = distance[row * n + k] + distance[k * n + column];
    if (through < distance[row * n + column]) {
        distance[row * n + column] = through;
    }
}

// The tile on the diagonal: its paths through its own vertices. One block.
extern "C" __global__ void floyd_warshall_diagonal(int *distance, int n, int diagonal) {
    __shared__ int tile[TILE][TILE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int index = (diagonal * TILE + ty) * n + diagonal * TILE + tx;
    tile[ty][tx] = distance[index];
    __syncthreads();
    for (int k = 0; k < TILE; ++k) {
        const int through = tile[ty][k] + tile[k][tx];
        __syncthreads();
        if (through < tile[ty][tx]) {
            tile[ty][tx] = through;
        }
        __syncthreads();
    }
    distance[index] = tile[ty][tx];
}

// The other tiles of its row (blocks with y = 0) and of its column (y = 1): paths through the diagonal tile's
// vertices. Grid {n / 16 - 1, 2}.
extern "C" __global__ void floyd_warshall_cross(int *distance, int n, int diagonal) {
    __shared__ int pivot[TILE][TILE];
    __shared__ int tile[TILE][TILE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int other = blockIdx.x + (blockIdx.x >= diagonal ? 1 : 0);
    const bool in_row = blockIdx.y == 0;
    const int tile_row = in_row ? diagonal : other;
    const int tile_column = in_row ? other : diagonal;
    const int index = (tile_row * TILE + ty) * n + tile_column * TILE + tx;
    pivot[ty][tx] = distance[(diagonal * TILE + ty) * n + diagonal * TILE + tx];
    tile[ty][tx] = distance[index];
    __syncthreads();
    for (int k = 0; k < TILE; ++k) {
        const int through = in_row ? pivot[ty][k] + tile[k][tx] : tile[ty][k] + pivot[k][tx];
        __syncthreads();
        if (through < tile[ty][tx]) {
            tile[ty][tx] = through;
        }
        __syncthreads();
    }
    distance[index] = tile[ty][tx];
}

// All the rest: paths through the same vertices by way of the tiles in the same row and the same column.
// Grid {n / 16 - 1, n / 16 - 1}.
extern "C" __global__ void floyd_warshall_rest(int *distance, int n, int diagonal) {
    __shared__ int to_pivot[TILE][TILE];
    __shared__ int from_pivot[TILE][TILE];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int tile_row = blockIdx.y + (blockIdx.y >= diagonal ? 1 : 0);
    const int tile_column = blockIdx.x + (blockIdx.x >= diagonal ? 1 : 0);
    const int index = (tile_row * TILE + ty) * n + tile_column * TILE + tx;
    to_pivot[ty][tx] = distance[(tile_row * TILE + ty) * n + diagonal * TILE + tx];
    from_pivot[ty][tx] = distance[(diagonal * TILE + ty) * n + tile_column * TILE + tx];
    __syncthreads();

    int shortest = distance[index];
    for (int k = 0; k < TILE; ++k) {
        shortest = min(shortest, to_pivot[ty][k] + from_pivot[k][tx]);
    }
    distance[index] = shortest;
}
