// targets: >=75
// Variables and accesses in every state space: tables with initialisers, pointers between variables, local arrays with
// dynamic index, large by-value parameters, dynamic shared memory, cache operators, vectors, volatile, managed.

struct Node {
    int key;
    float weight;
    const Node *next;
    unsigned char tag[3];
};

__constant__ float coefficients[8] = {1.0f, -2.5f, 3.25e-10f, 0.0f, -0.0f, 1e30f, 0.1f, 7.0f};
__constant__ int table_2d[3][4] = {{1, 2, 3}, {4, 5}, {6}};
__constant__ char text[] = "constant text\twith \"quotes\" and \\ in it";
__constant__ double one_double = 2.718281828459045;
__constant__ unsigned short halfwords[5] = {1, 0xffff, 3};
__device__ int counter = 17;
__device__ long long wide = -1234567890123ll;
__device__ float zeros[1024];
__device__ Node last = {3, 0.5f, nullptr, {1, 2, 3}};
__device__ Node middle = {2, 1.5f, &last, {4, 5, 6}};
__device__ Node first = {1, 2.5f, &middle, {7}};
__device__ int *pointer_into_table = &counter;
__device__ float *element_pointer = &zeros[12];
__device__ const char *message = "a string reached by a pointer";
__device__ __align__(16) unsigned char aligned_bytes[20] = {1, 2, 3};
__managed__ int managed_counter = 5;
__managed__ float managed_array[64];
static __device__ int internal_counter;
__device__ volatile int volatile_flag;

extern "C" __global__ void tables(float *out, int i) {
    out[0] = coefficients[i & 7] + table_2d[i % 3][i & 3] + text[i % 20] + (float)one_double + halfwords[i % 5];
    out[1] = counter + wide + zeros[i];
    out[2] = first.weight + first.next->weight + first.next->next->key + first.tag[i % 3];
    out[3] = *pointer_into_table + *element_pointer + message[i];
    out[4] = aligned_bytes[i % 20];
    managed_counter += 1;
    managed_array[i & 63] = out[0];
    internal_counter += i;
    out[5] = internal_counter;
    while (volatile_flag == 0) {
    }
    volatile_flag = 0;
    counter = i;
}

extern "C" __global__ void local_arrays(int *out, const int *in, int n) {
    int stack[64];
    int depth = 0;
    for (int i = 0; i < n; ++i) {
        if (in[i] > 0 && depth < 64) {
            stack[depth++] = in[i];
        } else if (depth > 0) {
            out[i] = stack[--depth];
        }
    }
    double squares[16];
    for (int i = 0; i < 16; ++i) {
        squares[i] = in[i] * in[i];
    }
    out[n] = (int)squares[in[0] & 15];
}

struct Large {
    int values[200];
    double scale;
    char name[13];
};
extern "C" __global__ void large_parameter(Large large, int *out, Node node, char small, bool flag, short two) {
    out[0] = large.values[threadIdx.x] * (int)large.scale + large.name[small & 7] + node.key + node.tag[1];
    if (flag) {
        out[1] = two;
    }
}

extern "C" __global__ void parameter_written(Large large, int *out, int i) {
    large.values[i] = i;
    out[0] = large.values[i / 2];
}

extern __shared__ __align__(16) unsigned char dynamic_shared[];
extern "C" __global__ void dynamic_shared_memory(float *out, int n) {
    float *floats = reinterpret_cast<float *>(dynamic_shared);
    double *doubles = reinterpret_cast<double *>(dynamic_shared + 4 * n);
    floats[threadIdx.x] = threadIdx.x;
    doubles[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = floats[n - 1 - threadIdx.x] + (float)doubles[threadIdx.x ^ 1];
}

extern "C" __global__ void static_shared_memory(float *out) {
    __shared__ float tile[32][33];
    __shared__ struct {
        int a;
        double b;
        char c[7];
    } mixed;
    tile[threadIdx.y][threadIdx.x] = out[threadIdx.y * 32 + threadIdx.x];
    if (threadIdx.x == 0) {
        mixed.a = threadIdx.y;
        mixed.c[3] = 1;
    }
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y] + mixed.a + mixed.c[3];
}

extern "C" __global__ void cache_operators(float *out, const float *__restrict__ in, int2 *pairs, int4 *quads,
                                           double2 *doubles) {
    const int i = threadIdx.x;
    out[i] = __ldg(in + i) + __ldcg(in + i + 1) + __ldca(in + i + 2) + __ldcs(in + i + 3) + __ldlu(in + i + 4) +
             __ldcv(in + i + 5) + in[i + 6];
    __stwb(out + 100 + i, in[0]);
    __stcg(out + 200 + i, in[1]);
    __stcs(out + 300 + i, in[2]);
    __stwt(out + 400 + i, in[3]);
    const int2 pair = __ldg(pairs + i);
    const int4 quad = __ldcs(quads + i);
    pairs[i + 64] = make_int2(pair.y, pair.x);
    __stcg(quads + i + 64, make_int4(quad.w, quad.z, quad.y, quad.x));
    doubles[i + 64] = make_double2(doubles[i].y, doubles[i].x);
}

extern "C" __global__ void small_vectors(char2 *c2, uchar4 *c4, short2 *s2, ushort4 *s4, float3 *f3, longlong2 *l2) {
    const int i = threadIdx.x;
    c2[i + 1].x = c2[i].y;
    uchar4 c = c4[i];
    c.x += c.y;
    c4[i + 1] = c;
    short2 s = s2[i];
    s.x *= s.y;
    s2[i + 1] = s;
    ushort4 q = s4[i];
    q.w ^= q.x;
    s4[i + 1] = q;
    f3[i + 1] = make_float3(f3[i].z, f3[i].y, f3[i].x);
    longlong2 l = l2[i];
    l2[i + 1] = make_longlong2(l.y, l.x);
}

extern "C" __global__ void address_spaces(int *out, void *p) {
    __shared__ int s;
    out[0] = __isGlobal(p) + 2 * __isShared(p) + 4 * __isConstant(p) + 8 * __isLocal(p);
    out[1] = (int)__cvta_generic_to_shared(&s);
    out[2] = (int)__cvta_generic_to_global(p);
    int *choice = out[3] ? out : &s;
    *choice = 5;
    out[4] = *(volatile int *)choice;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(out));
    asm volatile("prefetchu.L1 [%0];" ::"l"(p));
    asm volatile("ld.global.nc.L1::no_allocate.b32 %0, [%1];" : "=r"(out[5]) : "l"(out + 9));
    asm volatile("st.volatile.global.b32 [%0], %1;" ::"l"(out + 10), "r"(out[6]));
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(out[7]) : "l"(out + 11));
    asm volatile("st.release.sys.global.b32 [%0], %1;" ::"l"(out + 12), "r"(out[8]));
}
