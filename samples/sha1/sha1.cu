// SHA-1 (FIPS 180-4) of many chunks of a file, one chunk a thread.
// Stands for STO of the ISPASS suite (DAC: STO) and SHA of the composite paper, written for this project from the
// standard. Blocks of 192 threads. A chunk is a whole number of 64-byte message blocks, one after another in memory;
// the standard's padding is one more block. The message schedule lives in sixteen registers that are renewed in turn.

__device__ __forceinline__ unsigned turned(unsigned word, int bits) { return word << bits | word >> (32 - bits); }
__device__ __forceinline__ unsigned big_endian(unsigned word) { return __byte_perm(word, 0, 0x0123); }

__device__ __forceinline__ void absorb(unsigned *state, unsigned *schedule) {
    unsigned a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
#pragma unroll
    for (int t = 0; t < 80; ++t) {
        if (t >= 16) {
            schedule[t % 16] = turned(schedule[(t - 3) % 16] ^ schedule[(t - 8) % 16] ^ schedule[(t - 14) % 16] ^
                                          schedule[(t - 16) % 16], 1);
        }
        unsigned mixed;
        if (t < 20) {
            mixed = ((b & c) | (~b & d)) + 0x5a827999u;
        } else if (t < 40) {
            mixed = (b ^ c ^ d) + 0x6ed9eba1u;
        } else if (t < 60) {
            mixed = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu;
        } else {
            mixed = (b ^ c ^ d) + 0xca62c1d6u;
        }
        const unsigned next = turned(a, 5) + mixed + e + schedule[t % 16];
        e = d;
        d = c;
        c = turned(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

extern "C" __global__ void sha1(const unsigned *file, int chunks, int blocks_per_chunk, unsigned *digests) {
    const int chunk = blockIdx.x * blockDim.x + threadIdx.x;
    if (chunk >= chunks) {
        return;
    }

    unsigned state[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
    unsigned schedule[16];
    const unsigned *message = file + chunk * blocks_per_chunk * 16;
    for (int block = 0; block <= blocks_per_chunk; ++block) {
        if (block < blocks_per_chunk) {
            for (int i = 0; i < 16; ++i) {
                schedule[i] = big_endian(message[block * 16 + i]);
            }
        } else {
            for (int i = 0; i < 16; ++i) {
                schedule[i] = i == 0 ? 0x80000000u : i == 15 ? blocks_per_chunk * 512u : 0u;
            }
        }
        absorb(state, schedule);
    }
    for (int i = 0; i < 5; ++i) {
        digests[chunk * 5 + i] = big_endian(state[i]);
    }
}
