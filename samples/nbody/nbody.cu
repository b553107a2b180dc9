// Gravitation among all pairs of bodies: one time step of a star cluster.
// Stands for n-body simulations of the CUDA SDK (composite paper: NB), written for this project from the algorithm.
// One body a thread, blocks of 256 threads; a block goes through all bodies in tiles of as many as it has threads,
// which it brings into shared memory together. Bodies are {x, y, z, mass}; their number is a multiple of the block.

extern "C" __global__ void nbody(const float4 *positions, float4 *new_positions, float4 *velocities, int tiles,
                                 float softening_squared, float step) {
    extern __shared__ float4 tile[];

    const int body = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 own = positions[body];
    float ax = 0.0f;
    float ay = 0.0f;
    float az = 0.0f;
    for (int first = 0; first < tiles; ++first) {
        tile[threadIdx.x] = positions[first * blockDim.x + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int i = 0; i < blockDim.x; ++i) {
            const float4 other = tile[i];
            const float dx = other.x - own.x;
            const float dy = other.y - own.y;
            const float dz = other.z - own.z;
            const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening_squared);
            const float pull = other.w * inverse * inverse * inverse;
            ax += dx * pull;
            ay += dy * pull;
            az += dz * pull;
        }
        __syncthreads();
    }

    float4 velocity = velocities[body];
    velocity.x += ax * step;
    velocity.y += ay * step;
    velocity.z += az * step;
    velocities[body] = velocity;
    new_positions[body] =
        make_float4(own.x + velocity.x * step, own.y + velocity.y * step, own.z + velocity.z * step, own.w);
}
