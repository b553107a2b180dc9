// Forces between the particles of a box and of the boxes around it, within a cut-off that the boxes realise.
// Stands for lavaMD of Rodinia (R2D2, RegLess).
// Written for this project from the algorithm. A block of 128 threads computes the 100 particles of its home box;
// neighbour boxes are found by a list, their particles are loaded to shared memory, each thread then goes through all
// of them. The last 28 threads have no particle: one warp is partly, none wholly, idle.

constexpr int PARTICLES = 100; // in a box
constexpr int THREADS = 128;
constexpr int MOST_NEIGHBOURS = 26;

struct Box {
    int first_particle;
    int neighbour_count;
    int neighbours[MOST_NEIGHBOURS];
};

// Position, and |position|^2 / 2 ahead of it so that a squared distance is a dot product.
struct Place {
    float v, x, y, z;
};

__device__ __forceinline__ float dot(const Place &a, const Place &b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

extern "C" __global__ void lavamd_forces(float alpha, const Box *boxes, const Place *places, const float *charges,
                                         Place *forces) {
    __shared__ Place home_place[PARTICLES];
    __shared__ Place other_place[PARTICLES];
    __shared__ float other_charge[PARTICLES];

    const Box &home = boxes[blockIdx.x];
    const int home_first = home.first_particle;
    const float twice_alpha_squared = 2.0f * alpha * alpha;

    for (int particle = threadIdx.x; particle < PARTICLES; particle += THREADS) {
        home_place[particle] = places[home_first + particle];
    }
    __syncthreads();

    // The home box itself, then its neighbours.
    for (int turn = 0; turn < 1 + home.neighbour_count; ++turn) {
        const int box = turn == 0 ? static_cast<int>(blockIdx.x) : home.neighbours[turn - 1];
        const int other_first = boxes[box].first_particle;
        for (int particle = threadIdx.x; particle < PARTICLES; particle += THREADS) {
            other_place[particle] = places[other_first + particle];
            other_charge[particle] = charges[other_first + particle];
        }
        __syncthreads();

        for (int particle = threadIdx.x; particle < PARTICLES; particle += THREADS) {
            const Place here = home_place[particle];
            Place force = forces[home_first + particle];
            for (int other = 0; other < PARTICLES; ++other) {
                const Place there = other_place[other];
                const float distance = here.v + there.v - dot(here, there);
                const float potential = expf(-twice_alpha_squared * distance);
                const float strength = 2.0f * potential;
                force.v += other_charge[other] * potential;
                force.x += other_charge[other] * (strength * (here.x - there.x));
                force.y += other_charge[other] * (strength * (here.y - there.y));
                force.z += other_charge[other] * (strength * (here.z - there.z));
            }
            forces[home_first + particle] = force;
        }
        __syncthreads();
    }
}
