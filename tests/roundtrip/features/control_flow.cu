// targets: >=75
// Loops, switches (jump tables), goto, nested breaks, early returns, short-circuit conditions, unrolling, predication.

extern "C" __global__ void dense_switch(int *out, const int *in) {
    const int i = threadIdx.x;
    int r = 0;
    switch (in[i]) {
        case 0: r = in[i + 1] * 3; break;
        case 1: r = in[i + 2] / 5; break;
        case 2: r = atomicAdd(out + 64, 1); break;
        case 3: r = in[i + 3] ^ 7; // falls through
        case 4: r += in[i + 4]; break;
        case 5: r = __popc(in[i]); break;
        case 6: out[65] = 4; break;
        case 7: return;
        case 8: r = in[i + 8] % 9; break;
        case 9: r = clock(); break;
        default: r = -1;
    }
    out[i] = r;
}

extern "C" __global__ void sparse_switch(long long *out, long long key) {
    switch (key) {
        case 5: out[0] = 1; break;
        case 500: out[0] = out[1]; break;
        case 50000: out[2] = 3; break;
        case -7: out[3] += 4; break;
        case 1ll << 40: out[4] ^= 5; break;
    }
}

// A jump table spelled as PTX, since nvcc does not always make one.
extern "C" __global__ void jump_table(int *out, int which) {
    int result;
    asm volatile("{\n\t"
                 ".reg .u32 index;\n\t"
                 "min.u32 index, %1, 3;\n\t"
                 "targets: .branchtargets L0, L1, L2, L3;\n\t"
                 "brx.idx index, targets;\n\t"
                 "L0: mov.s32 %0, 10; bra.uni L4;\n\t"
                 "L1: mov.s32 %0, 11; bra L4;\n\t"
                 "L2: mov.s32 %0, 12; bra L4;\n\t"
                 "L3: mov.s32 %0, 13;\n\t"
                 "L4:\n\t}"
                 : "=r"(result)
                 : "r"(which));
    out[0] = result;
}

extern "C" __global__ void interpreter(int *memory, const unsigned char *code, int fuel) {
    int accumulator = 0, pointer = 0, pc = threadIdx.x;
    while (fuel-- > 0) {
        const unsigned char op = code[pc++];
        switch (op & 15) {
            case 0: accumulator = memory[pointer]; break;
            case 1: memory[pointer] = accumulator; break;
            case 2: accumulator += op >> 4; break;
            case 3: accumulator *= pointer; break;
            case 4: pointer += op >> 4; break;
            case 5: pointer -= op >> 4; break;
            case 6: if (accumulator != 0) pc -= op >> 4; break;
            case 7: if (accumulator < 0) pc += op >> 4; break;
            case 8: accumulator = ~accumulator; break;
            case 9: accumulator >>= op >> 4; break;
            case 10: accumulator = min(accumulator, pointer); break;
            case 11: memory[pointer] += accumulator; break;
            case 12: return;
            case 13: __syncwarp(); break;
            case 14: accumulator = __brev(accumulator); break;
            case 15: pointer = accumulator & 255; break;
        }
    }
    memory[0] = accumulator;
}

extern "C" __global__ void nested_loops(int *out, const int *in, int n, int m) {
    int found = -1;
    for (int i = 0; i < n && found < 0; ++i) {
        for (int j = 0; j < m; ++j) {
            const int v = in[i * m + j];
            if (v == 0) continue;
            if (v < 0) break;
            if (v == n && (j > 3 || i % 2 == 0)) {
                found = i * m + j;
                break;
            }
            int k = v;
            do {
                k = k % 2 ? 3 * k + 1 : k / 2;
            } while (k > 1 && k < 100000);
            if (k > 1) goto done;
        }
    }
done:
    out[threadIdx.x] = found;
}

extern "C" __global__ void irregular(int *out, const int *in, int n) {
    int i = threadIdx.x;
    int state = in[i];
    if (state & 1) goto second;
first:
    state = state * 5 + 1;
    if (state % 7 == 0) goto out_of_here;
second:
    state ^= in[state & 31];
    if (--n > 0) {
        if (state & 4) goto first;
        goto second;
    }
out_of_here:
    out[i] = state;
}

extern "C" __global__ void unrolled(float *out, const float *in, int n) {
    float sum = 0.0f;
#pragma unroll 8
    for (int i = 0; i < n; ++i) {
        sum = fmaf(in[i], in[i + 1], sum);
    }
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        sum += in[i * 3];
    }
#pragma unroll 1
    for (int i = 0; i < n; ++i) {
        out[i] = sum * i;
    }
}

extern "C" __global__ void swaps(int *out, int n) {
    // Parallel copies around the loop: a cycle of three values and a lost copy.
    int a = out[0], b = out[1], c = out[2], last = 0;
    for (int i = 0; i < n; ++i) {
        last = a;
        const int t = a;
        a = b;
        b = c;
        c = t;
        if (out[i + 3] > a) {
            const int u = a;
            a = c;
            c = u;
        }
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = last;
}

extern "C" __global__ void select_chains(int *out, int a, int b, int c, bool p, bool q) {
    out[0] = p ? a : q ? b : c;
    out[1] = (p && q) || (a < b && b < c) ? a : c;
    out[2] = p != q;
    out[3] = (a > 0) ^ (b > 0) ^ p;
    if (p && a < b) out[4] = 1;
    if (!p || a >= c) out[5] = 2;
    if (p) return;
    out[6] = 3;
}
