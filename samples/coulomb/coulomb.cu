// Electric potential of point charges on one plane of a lattice, summed directly over the atoms.
// Stands for CP of the ISPASS suite (DAC and DARSIE: CP), written for this project from the algorithm.
// Blocks of 16x8 threads; a thread owns two lattice points 16 columns apart, so that they share what depends on the
// atom and the row. Atoms lie in constant memory as {x, y, (z - plane)^2, charge}.

constexpr int MAX_ATOMS = 4000;
constexpr int BLOCK_X = 16;
constexpr int POINTS = 2;

__constant__ float4 atoms[MAX_ATOMS];

extern "C" __global__ void coulomb(int count, float spacing, float *potential) {
    const int column = blockIdx.x * BLOCK_X * POINTS + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int index = gridDim.x * BLOCK_X * POINTS * row + column;

    const float x = spacing * column;
    const float y = spacing * row;
    const float step = spacing * BLOCK_X;

    float sum0 = 0.0f;
    float sum1 = 0.0f;
    for (int atom = 0; atom < count; ++atom) {
        const float dy = y - atoms[atom].y;
        const float dyz2 = dy * dy + atoms[atom].z;
        const float dx0 = x - atoms[atom].x;
        const float dx1 = dx0 + step;
        sum0 += atoms[atom].w * rsqrtf(dx0 * dx0 + dyz2);
        sum1 += atoms[atom].w * rsqrtf(dx1 * dx1 + dyz2);
    }
    potential[index] += sum0;
    potential[index + BLOCK_X] += sum1;
}
