// Sets A and B: the sample hotspot with the differences of Rodinia's: twice the temperature is computed in double
// precision, and so is most of a step, and the step's length is divided by the capacity in every thread.
// Written for this project.

constexpr int BLOCK = 16;
constexpr float AMBIENT = 80.0f;

extern "C" __global__ void hotspot(int steps, const float *power, const float *source, float *destination, int columns,
                                   int rows, float capacity, float rx, float ry, float rz, float step_length) {
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

    const float step_over_capacity = step_length / capacity;
    const float inverse_rx = 1.0f / rx;
    const float inverse_ry = 1.0f / ry;
    const float inverse_rz = 1.0f / rz;

    if (row >= 0 && row <= rows - 1 && column >= 0 && column <= columns - 1) {
        now[ty][tx] = source[index];
        heat[ty][tx] = power[index];
    }
    __syncthreads();

    // The part of the tile that is on the chip.
    const int top = max(0, -first_row);
    const int left = max(0, -first_column);
    const int bottom = min(BLOCK - 1, rows - 1 - first_row);
    const int right = min(BLOCK - 1, columns - 1 - first_column);

    const int north = max(ty - 1, top);
    const int south = min(ty + 1, bottom);
    const int west = max(tx - 1, left);
    const int east = min(tx + 1, right);

    bool computed = false;
    for (int step = 0; step < steps; ++step) {
        computed = false;
        if (tx >= step + 1 && tx <= BLOCK - step - 2 && ty >= step + 1 && ty <= BLOCK - step - 2 && tx >= left &&
            tx <= right && ty >= top && ty <= bottom) {
            computed = true;
            const float here = now[ty][tx];
            next[ty][tx] = here + step_over_capacity * (heat[ty][tx] +
                                                        (now[south][tx] + now[north][tx] - 2.0 * here) * inverse_ry +
                                                        (now[ty][east] + now[ty][west] - 2.0 * here) * inverse_rx +
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
