// Heat spreading over a chip: several time steps of a five-point stencil in one launch.
// Written for this project from the algorithm of Rodinia's hotspot. A block of 16x16 threads loads a tile with a
// halo of `steps` cells on each side and advances it in shared memory; every step spoils one more ring of the
// halo, so 16 - 2 * steps cells on a side are right at the end and are written. Neighbours outside the chip are
// the edge cell itself.

constexpr int BLOCK = 16;
constexpr float AMBIENT = 80.0f;

extern "C" __global__ void hotspot(int steps, const float *power, const float *source, float *destination,
                                   int columns, int rows, float step_over_capacity, float rx, float ry,
                                   float rz) {
    __shared__ float now[BLOCK][BLOCK];
    __shared__ float heat[BLOCK][BLOCK];
    __shared__ float next[BLOCK][BLOCK];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;

    const int inner = BLOCK - 2 * steps;
    const int first_row = inner * blockIdx.y - steps;
    const int first_column = inner * blockIdx.x - steps;
    const int row = first_row + ty;
    const int column = first_column + tx;
    const int index = columns * row + column;

    const bool on_chip = row >= 0 && row < rows && column >= 0 && column < columns;
    if (on_chip) {
        now[ty][tx] = source[index];
        heat[ty][tx] = power[index];
    }
    __syncthreads();

    // The part of the tile that lies on the chip.
    const int top = max(0, -first_row);
    const int left = max(0, -first_column);
    const int bottom = min(BLOCK - 1, rows - 1 - first_row);
    const int right = min(BLOCK - 1, columns - 1 - first_column);

    const int north = max(ty - 1, top);
    const int south = min(ty + 1, bottom);
    const int west = max(tx - 1, left);
    const int east = min(tx + 1, right);

    const float inverse_rx = 1.0f / rx;
    const float inverse_ry = 1.0f / ry;
    const float inverse_rz = 1.0f / rz;

    bool computed = false;
    for (int step = 0; step < steps; ++step) {
        computed = tx > step && tx < BLOCK - 1 - step && ty > step && ty < BLOCK - 1 - step && on_chip;
        if (computed) {
            const float here = now[ty][tx];
            next[ty][tx] = here + step_over_capacity * (heat[ty][tx] +
                                                        (now[south][tx] + now[north][tx] - 2.0f * here) * inverse_ry +
                                                        (now[ty][east] + now[ty][west] - 2.0f * here) * inverse_rx +
                                                        (AMBIENT - here) * inverse_rz);
        }
        __syncthreads();
        if (step == steps - 1) {
            break;
        }
        if (computed) {
            now[ty][tx] = next[ty][tx];
        }
        __syncthreads();
    }

    if (computed) {
        destination[index] = next[ty][tx];
    }
}
