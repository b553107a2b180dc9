// Many small Mersenne Twisters (period 2^607 - 1, nineteen words of state), each with parameters of its own, and
// their numbers made normal by the Box-Muller transform.
// Stands for MersenneTwister of the CUDA SDK (DAC: MT), written for this project from the algorithm (Matsumoto and
// Nishimura). One twister a thread, blocks of 128 threads; states are arrays that the thread walks around, so they
// lie in local memory. Number k of twister t is element k * twisters + t.

constexpr int WORDS = 19;
constexpr int MIDDLE = 9;
constexpr unsigned LOWER_MASK = 0x1; // of 31 bits that a word gives away
constexpr unsigned UPPER_MASK = 0xfffffffe;

struct Parameters {
    unsigned matrix;
    unsigned mask_b;
    unsigned mask_c;
    unsigned seed;
};

extern "C" __global__ void mersenne_twister(const Parameters *parameters, float *numbers, int per_twister) {
    const int twister = blockIdx.x * blockDim.x + threadIdx.x;
    const int twisters = blockDim.x * gridDim.x;
    const Parameters own = parameters[twister];

    unsigned state[WORDS];
    state[0] = own.seed;
    for (int i = 1; i < WORDS; ++i) {
        state[i] = 1812433253u * (state[i - 1] ^ state[i - 1] >> 30) + i;
    }

    int word = 0;
    unsigned current = state[0];
    for (int number = 0; number < per_twister; ++number) {
        const int next = word + 1 < WORDS ? word + 1 : 0;
        const int middle = word + MIDDLE < WORDS ? word + MIDDLE : word + MIDDLE - WORDS;
        const unsigned following = state[next];
        const unsigned mixed = (current & UPPER_MASK) | (following & LOWER_MASK);
        unsigned x = state[middle] ^ mixed >> 1 ^ (mixed & 1 ? own.matrix : 0);
        state[word] = x;
        current = following;
        word = next;

        x ^= x >> 12;
        x ^= x << 7 & own.mask_b;
        x ^= x << 15 & own.mask_c;
        x ^= x >> 18;
        numbers[number * twisters + twister] = (x + 1.0f) * 0x1p-32f;
    }
}

// Pairs of uniform numbers of one twister to pairs of normal ones, in place.
extern "C" __global__ void box_muller(float *numbers, int per_twister) {
    const int twister = blockIdx.x * blockDim.x + threadIdx.x;
    const int twisters = blockDim.x * gridDim.x;
    for (int pair = 0; pair < per_twister; pair += 2) {
        const float radius = sqrtf(-2.0f * logf(numbers[pair * twisters + twister]));
        const float angle = 6.283185307179586f * numbers[(pair + 1) * twisters + twister];
        numbers[pair * twisters + twister] = radius * cosf(angle);
        numbers[(pair + 1) * twisters + twister] = radius * sinf(angle);
    }
}
