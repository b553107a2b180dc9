// One step of a seven-point stencil on a grid in three dimensions. Stands for stencil of Parboil (R2D2, DAC).
// Written for this project from the algorithm. Blocks of 32 x 4 threads, each thread with two columns of the grid that
// lie 32 apart in x, going up in z: the plane it stands on is in dynamic shared memory for its neighbours, the cells
// above and below stay in registers. Neighbours outside the block's tile come from global memory.
// nvcc: --use_fast_math

__device__ __forceinline__ float weighted(float ends, float middle, float end_weight, float middle_weight) {
    return ends * end_weight - middle * middle_weight;
}

extern "C" __global__ void stencil_coarse(float middle_weight, float end_weight, const float *now, float *next, int nx,
                                          int ny, int nz) {
    extern __shared__ float plane[];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int width = 2 * blockDim.x;
    const int i = blockIdx.x * width + tx;
    const int second = i + blockDim.x;
    const int j = blockIdx.y * blockDim.y + ty;
    const int place = tx + ty * width;
    const int second_place = place + blockDim.x;

    const bool inside = i > 0 && i < nx - 1 && j > 0 && j < ny - 1;
    const bool second_inside = second < nx - 1 && j > 0 && j < ny - 1;
    const bool loads = i < nx && j < ny;
    const bool second_loads = second < nx && j < ny;

    const int layer = nx * ny;
    const int column = j * nx + i;
    const int second_column = j * nx + second;
    float below = loads ? now[column] : 0.0f;
    float here = loads ? now[column + layer] : 0.0f;
    float second_below = second_loads ? now[second_column] : 0.0f;
    float second_here = second_loads ? now[second_column + layer] : 0.0f;

    for (int k = 1; k < nz - 1; ++k) {
        plane[place] = here;
        plane[second_place] = second_here;
        __syncthreads();

        const int index = k * layer + column;
        const int second_index = k * layer + second_column;
        const float above = loads ? now[index + layer] : 0.0f;
        const float second_above = second_loads ? now[second_index + layer] : 0.0f;

        if (inside) {
            const float west = tx > 0 ? plane[place - 1] : now[index - 1];
            const float east = plane[place + 1];
            const float south = ty > 0 ? plane[place - width] : now[index - nx];
            const float north = ty < blockDim.y - 1 ? plane[place + width] : now[index + nx];
            next[index] = weighted(above + below + north + south + east + west, here, end_weight, middle_weight);
        }
        if (second_inside) {
            const float west = plane[second_place - 1];
            const float east = tx < blockDim.x - 1 ? plane[second_place + 1] : now[second_index + 1];
            const float south = ty > 0 ? plane[second_place - width] : now[second_index - nx];
            const float north = ty < blockDim.y - 1 ? plane[second_place + width] : now[second_index + nx];
            next[second_index] = weighted(second_above + second_below + north + south + east + west, second_here,
                                          end_weight, middle_weight);
        }
        __syncthreads();

        below = here;
        here = above;
        second_below = second_here;
        second_here = second_above;
    }
}
