// Inviscid compressible flow on an unstructured grid of tetrahedra: finite volumes, three Runge-Kutta stages a step.
// Stands for cfd (euler3d) of Rodinia (R2D2, DAC).
// Written for this project from the algorithm. One thread owns one element, blocks of 192 threads; the five conserved
// variables lie one after the other with a stride of `elements`, neighbours are found by index, so a thread's own
// values are loaded in one piece and those of its four neighbours are gathered. No launch needs a bounds check.

constexpr int FACES = 4;
constexpr float GAMMA = 1.4f;
constexpr float SMOOTHING = 0.2f;
constexpr int STAGES = 3;

// A face without a neighbour is a wall or lies in the free stream.
constexpr int WALL = -1;
constexpr int FREE_STREAM = -2;

struct Vector {
    float x, y, z;
};

struct State {
    float density;
    Vector momentum;
    float energy;
};

// What one conserved variable's flow through a face needs: momentum in three directions and energy.
struct Flux {
    Vector momentum_x, momentum_y, momentum_z, energy;
};

// Mach 1.2 along x at density 1.4 and pressure 1: what comes from outside.
__constant__ State free_stream = {1.4f, {1.68f, 0.0f, 0.0f}, 3.508f};

__device__ __forceinline__ State load_state(const float *variables, int element, int elements) {
    State state;
    state.density = variables[element + 0 * elements];
    state.momentum.x = variables[element + 1 * elements];
    state.momentum.y = variables[element + 2 * elements];
    state.momentum.z = variables[element + 3 * elements];
    state.energy = variables[element + 4 * elements];
    return state;
}

__device__ __forceinline__ void store_state(float *variables, int element, int elements, const State &state) {
    variables[element + 0 * elements] = state.density;
    variables[element + 1 * elements] = state.momentum.x;
    variables[element + 2 * elements] = state.momentum.y;
    variables[element + 3 * elements] = state.momentum.z;
    variables[element + 4 * elements] = state.energy;
}

__device__ __forceinline__ Vector velocity_of(const State &state) {
    return {state.momentum.x / state.density, state.momentum.y / state.density, state.momentum.z / state.density};
}

__device__ __forceinline__ float squared(const Vector &v) {
    return v.x * v.x + v.y * v.y + v.z * v.z;
}

__device__ __forceinline__ float pressure_of(const State &state, float speed_squared) {
    return (GAMMA - 1.0f) * (state.energy - 0.5f * state.density * speed_squared);
}

__device__ __forceinline__ float speed_of_sound(float density, float pressure) {
    return sqrtf(GAMMA * pressure / density);
}

__device__ __forceinline__ Flux flux_of(const State &state, const Vector &velocity, float pressure) {
    const Vector &m = state.momentum;
    Flux flux;
    flux.momentum_x = {velocity.x * m.x + pressure, velocity.x * m.y, velocity.x * m.z};
    flux.momentum_y = {flux.momentum_x.y, velocity.y * m.y + pressure, velocity.y * m.z};
    flux.momentum_z = {flux.momentum_x.z, flux.momentum_y.z, velocity.z * m.z + pressure};
    const float enthalpy = state.energy + pressure;
    flux.energy = {velocity.x * enthalpy, velocity.y * enthalpy, velocity.z * enthalpy};
    return flux;
}

// Adds what flows along one axis, weighted by half the face's area across that axis.
__device__ __forceinline__ void add_flow(State &total, float weight, float density, float momentum_x, float momentum_y,
                                         float momentum_z, float energy) {
    total.density += weight * density;
    total.momentum.x += weight * momentum_x;
    total.momentum.y += weight * momentum_y;
    total.momentum.z += weight * momentum_z;
    total.energy += weight * energy;
}

// The mean of two elements' flows through the face between them.
__device__ __forceinline__ void add_mean_flow(State &total, const Vector &normal, const Vector &momentum_a,
                                              const Flux &a, const Vector &momentum_b, const Flux &b) {
    add_flow(total, 0.5f * normal.x, momentum_a.x + momentum_b.x, a.momentum_x.x + b.momentum_x.x,
             a.momentum_y.x + b.momentum_y.x, a.momentum_z.x + b.momentum_z.x, a.energy.x + b.energy.x);
    add_flow(total, 0.5f * normal.y, momentum_a.y + momentum_b.y, a.momentum_x.y + b.momentum_x.y,
             a.momentum_y.y + b.momentum_y.y, a.momentum_z.y + b.momentum_z.y, a.energy.y + b.energy.y);
    add_flow(total, 0.5f * normal.z, momentum_a.z + momentum_b.z, a.momentum_x.z + b.momentum_x.z,
             a.momentum_y.z + b.momentum_y.z, a.momentum_z.z + b.momentum_z.z, a.energy.z + b.energy.z);
}

// Everywhere the free stream.
extern "C" __global__ void cfd_initialize(float *variables, int elements) {
    const int element = blockIdx.x * blockDim.x + threadIdx.x;
    store_state(variables, element, elements, free_stream);
}

// How far time may go in one step: the element's size over the fastest signal in it.
extern "C" __global__ void cfd_step_factor(const float *variables, const float *areas, float *step_factors,
                                           int elements) {
    const int element = blockIdx.x * blockDim.x + threadIdx.x;
    const State state = load_state(variables, element, elements);
    const float speed_squared = squared(velocity_of(state));
    const float pressure = pressure_of(state, speed_squared);
    const float fastest = sqrtf(speed_squared) + speed_of_sound(state.density, pressure);
    step_factors[element] = 0.5f / (sqrtf(areas[element]) * fastest);
}

// What flows into every element through its four faces, with some smoothing between neighbours.
extern "C" __global__ void cfd_flux(const int *neighbours, const float *normals, const float *variables, float *fluxes,
                                    int elements) {
    const int element = blockIdx.x * blockDim.x + threadIdx.x;

    const State state = load_state(variables, element, elements);
    const Vector velocity = velocity_of(state);
    const float speed_squared = squared(velocity);
    const float speed = sqrtf(speed_squared);
    const float pressure = pressure_of(state, speed_squared);
    const float sound = speed_of_sound(state.density, pressure);
    const Flux flux = flux_of(state, velocity, pressure);

    State total = {0.0f, {0.0f, 0.0f, 0.0f}, 0.0f};
#pragma unroll
    for (int face = 0; face < FACES; ++face) {
        const int neighbour = neighbours[element + face * elements];
        Vector normal;
        normal.x = normals[element + (face + 0 * FACES) * elements];
        normal.y = normals[element + (face + 1 * FACES) * elements];
        normal.z = normals[element + (face + 2 * FACES) * elements];

        if (neighbour >= 0) {
            const State other = load_state(variables, neighbour, elements);
            const Vector other_velocity = velocity_of(other);
            const float other_squared = squared(other_velocity);
            const float other_pressure = pressure_of(other, other_squared);
            const float other_sound = speed_of_sound(other.density, other_pressure);
            const Flux other_flux = flux_of(other, other_velocity, other_pressure);

            const float weight =
                -sqrtf(squared(normal)) * SMOOTHING * 0.5f * (speed + sqrtf(other_squared) + sound + other_sound);
            add_flow(total, weight, state.density - other.density, state.momentum.x - other.momentum.x,
                     state.momentum.y - other.momentum.y, state.momentum.z - other.momentum.z,
                     state.energy - other.energy);
            add_mean_flow(total, normal, other.momentum, other_flux, state.momentum, flux);
        } else if (neighbour == WALL) {
            total.momentum.x += normal.x * pressure;
            total.momentum.y += normal.y * pressure;
            total.momentum.z += normal.z * pressure;
        } else if (neighbour == FREE_STREAM) {
            const Vector outer_velocity = velocity_of(free_stream);
            const Flux outer_flux =
                flux_of(free_stream, outer_velocity, pressure_of(free_stream, squared(outer_velocity)));
            add_mean_flow(total, normal, free_stream.momentum, outer_flux, state.momentum, flux);
        }
    }
    store_state(fluxes, element, elements, total);
}

// One Runge-Kutta stage from the variables at the start of the step.
extern "C" __global__ void cfd_time_step(int stage, const float *old_variables, float *variables,
                                         const float *step_factors, const float *fluxes, int elements) {
    const int element = blockIdx.x * blockDim.x + threadIdx.x;
    const float factor = step_factors[element] / static_cast<float>(STAGES + 1 - stage);
    State state = load_state(old_variables, element, elements);
    const State change = load_state(fluxes, element, elements);
    state.density += factor * change.density;
    state.momentum.x += factor * change.momentum.x;
    state.momentum.y += factor * change.momentum.y;
    state.momentum.z += factor * change.momentum.z;
    state.energy += factor * change.energy;
    store_state(variables, element, elements, state);
}
