// AES-128 (FIPS 197) of many blocks, encryption and decryption by lookup tables, and the expansion of the key.
// Stands for AES of the ISPASS suite (DAC and the composite paper: AES), written for this project from the standard.
// One column of the state, a 32-bit word, a thread; 256 threads work on 64 AES blocks. The columns of a state meet
// in shared memory after every round, in two halves that take turns; the tables are copied to shared memory first.
// Byte r of a word, from the low end, is row r of its column.

constexpr int BLOCK = 256;
constexpr int ROUNDS = 10;
constexpr int KEY_WORDS = 4 * (ROUNDS + 1);

// Doubles in the field of 256 elements modulo x^8 + x^4 + x^3 + x + 1.
__host__ __device__ constexpr unsigned doubled(unsigned x) { return (x << 1 ^ (x & 0x80 ? 0x1b : 0)) & 0xff; }

struct Tables {
    unsigned encrypt[256]; // the column that MixColumns makes of a substituted byte in row 0
    unsigned decrypt[256]; // the same for the inverse cipher
    unsigned char substitute[256];
    unsigned char inverse[256];
};

constexpr Tables make_tables() {
    Tables tables{};
    // p runs through the powers of 3, q through those of its inverse: q is the reciprocal of p.
    unsigned p = 1;
    unsigned q = 1;
    for (int i = 0; i < 256; ++i) {
        // After 255 powers every element but 0 had its turn; 0 is its own image in the inversion.
        const unsigned element = i < 255 ? p : 0;
        const unsigned reciprocal = i < 255 ? q : 0;
        unsigned s = reciprocal;
        for (int turn = 1; turn <= 4; ++turn) {
            s ^= (reciprocal << turn | reciprocal >> (8 - turn)) & 0xff;
        }
        s ^= 0x63;
        tables.substitute[element] = s;
        tables.inverse[s] = element;

        p = p ^ doubled(p);
        q ^= q << 1;
        q ^= q << 2;
        q ^= q << 4;
        q = (q ^ (q & 0x80 ? 0x09 : 0)) & 0xff;
    }
    for (int i = 0; i < 256; ++i) {
        const unsigned s = tables.substitute[i];
        tables.encrypt[i] = doubled(s) | s << 8 | s << 16 | (doubled(s) ^ s) << 24;
        const unsigned t = tables.inverse[i];
        const unsigned t2 = doubled(t);
        const unsigned t4 = doubled(t2);
        const unsigned t8 = doubled(t4);
        tables.decrypt[i] = (t8 ^ t4 ^ t2) | (t8 ^ t) << 8 | (t8 ^ t4 ^ t) << 16 | (t8 ^ t2 ^ t) << 24;
    }
    return tables;
}

__constant__ Tables tables = make_tables();

__device__ __forceinline__ unsigned byte_of(unsigned word, int row) { return word >> 8 * row & 0xff; }
__device__ __forceinline__ unsigned rotated(unsigned word, int rows) {
    return __funnelshift_l(word, word, 8 * rows);
}

__device__ __forceinline__ unsigned substituted(unsigned word) {
    return tables.substitute[byte_of(word, 0)] | tables.substitute[byte_of(word, 1)] << 8 |
           tables.substitute[byte_of(word, 2)] << 16 | tables.substitute[byte_of(word, 3)] << 24;
}

// The round keys of the cipher, and those of the equivalent inverse cipher. One block of 64 threads: the words
// depend on one another, so one thread makes them; the inner keys of the inverse are then mixed in parallel.
extern "C" __global__ void aes_expand_key(const unsigned *key, unsigned *round_keys, unsigned *inverse_keys) {
    __shared__ unsigned words[KEY_WORDS];

    const int thread = threadIdx.x;
    if (thread == 0) {
        unsigned constant = 1;
        for (int i = 0; i < KEY_WORDS; ++i) {
            if (i < 4) {
                words[i] = key[i];
                continue;
            }
            unsigned word = words[i - 1];
            if (i % 4 == 0) {
                word = substituted(rotated(word, 3)) ^ constant;
                constant = doubled(constant);
            }
            words[i] = words[i - 4] ^ word;
        }
    }
    __syncthreads();

    if (thread < KEY_WORDS) {
        unsigned word = words[thread];
        round_keys[thread] = word;
        if (thread >= 4 && thread < KEY_WORDS - 4) {
            unsigned mixed = 0;
            for (int row = 0; row < 4; ++row) {
                mixed ^= rotated(tables.decrypt[tables.substitute[byte_of(word, row)]], row);
            }
            word = mixed;
        }
        inverse_keys[4 * (ROUNDS - thread / 4) + thread % 4] = word;
    }
}

extern "C" __global__ void aes_encrypt(const unsigned *plain, unsigned *cipher, const unsigned *round_keys) {
    __shared__ unsigned table0[256], table1[256], table2[256], table3[256];
    __shared__ unsigned stage[2][BLOCK];

    const int thread = threadIdx.x;
    const int index = blockIdx.x * BLOCK + thread;
    const int column = thread % 4;
    const int first = thread - column;

    table0[thread] = tables.encrypt[thread];
    table1[thread] = rotated(tables.encrypt[thread], 1);
    table2[thread] = rotated(tables.encrypt[thread], 2);
    table3[thread] = rotated(tables.encrypt[thread], 3);
    stage[0][thread] = plain[index] ^ round_keys[column];
    __syncthreads();

    for (int round = 1; round < ROUNDS; ++round) {
        const unsigned *now = stage[(round - 1) % 2];
        stage[round % 2][thread] = table0[byte_of(now[first + column], 0)] ^
                                   table1[byte_of(now[first + (column + 1) % 4], 1)] ^
                                   table2[byte_of(now[first + (column + 2) % 4], 2)] ^
                                   table3[byte_of(now[first + (column + 3) % 4], 3)] ^
                                   round_keys[4 * round + column];
        __syncthreads();
    }

    const unsigned *now = stage[(ROUNDS - 1) % 2];
    unsigned word = 0;
    for (int row = 0; row < 4; ++row) {
        word |= tables.substitute[byte_of(now[first + (column + row) % 4], row)] << 8 * row;
    }
    cipher[index] = word ^ round_keys[4 * ROUNDS + column];
}

extern "C" __global__ void aes_decrypt(const unsigned *cipher, unsigned *plain, const unsigned *inverse_keys) {
    __shared__ unsigned table0[256], table1[256], table2[256], table3[256];
    __shared__ unsigned stage[2][BLOCK];

    const int thread = threadIdx.x;
    const int index = blockIdx.x * BLOCK + thread;
    const int column = thread % 4;
    const int first = thread - column;

    table0[thread] = tables.decrypt[thread];
    table1[thread] = rotated(tables.decrypt[thread], 1);
    table2[thread] = rotated(tables.decrypt[thread], 2);
    table3[thread] = rotated(tables.decrypt[thread], 3);
    stage[0][thread] = cipher[index] ^ inverse_keys[column];
    __syncthreads();

    for (int round = 1; round < ROUNDS; ++round) {
        const unsigned *now = stage[(round - 1) % 2];
        stage[round % 2][thread] = table0[byte_of(now[first + column], 0)] ^
                                   table1[byte_of(now[first + (column + 3) % 4], 1)] ^
                                   table2[byte_of(now[first + (column + 2) % 4], 2)] ^
                                   table3[byte_of(now[first + (column + 1) % 4], 3)] ^
                                   inverse_keys[4 * round + column];
        __syncthreads();
    }

    const unsigned *now = stage[(ROUNDS - 1) % 2];
    unsigned word = 0;
    for (int row = 0; row < 4; ++row) {
        word |= tables.inverse[byte_of(now[first + (column + 4 - row) % 4], row)] << 8 * row;
    }
    plain[index] = word ^ inverse_keys[4 * ROUNDS + column];
}
