// targets: >=75
// Names that make readers stumble: kernels and variables called like opcodes, types and registers; very long names.

extern "C" __global__ void add(int *p) { p[0] += 1; }
extern "C" __global__ void ld(int *p) { p[0] += 2; }
extern "C" __global__ void vadd(int *p) { p[0] += 3; }
extern "C" __global__ void mov(int *p) { p[0] += 4; }
extern "C" __global__ void bra(int *p) { p[0] += 5; }
extern "C" __global__ void ret(int *p) { p[0] += 6; }
extern "C" __global__ void setp(int *p) { p[0] += 7; }
extern "C" __global__ void pred(int *p) { p[0] += 8; }
extern "C" __global__ void global(int *p) { p[0] += 9; }
extern "C" __global__ void entry(int *p) { p[0] += 10; }
extern "C" __global__ void visible(int *p) { p[0] += 11; }
extern "C" __global__ void version(int *p) { p[0] += 12; }
extern "C" __global__ void f32(int *p) { p[0] += 13; }
extern "C" __global__ void tid(int *p) { p[0] += 14; }
extern "C" __global__ void r1(int *p) { p[0] += 15; }
extern "C" __global__ void x(int *p) { p[0] += 16; }
extern "C" __global__ void __(int *p) { p[0] += 18; }
extern "C" __global__ void L0(int *p) { p[0] += 19; }
extern "C" __global__ void e1(int *p) { p[0] += 20; }
extern "C" __global__ void generic(int *p) { p[0] += 21; }
extern "C" __device__ int sub = 3;
extern "C" __device__ int param[4] = {1, 2};
extern "C" __constant__ int vote[2] = {3, 4};
extern "C" __global__ void use_variables(int *p) { p[0] = sub + param[p[1] & 3] + vote[p[2] & 1]; }

template <typename... T>
struct List {};
template <typename T, typename U>
struct Pair {};
template <typename T>
__global__ void with_a_type(int *p) {
    p[0] = sizeof(T);
}
using A = Pair<List<int, float, double, char, short, long long>, List<unsigned, unsigned char, unsigned short>>;
using B = Pair<Pair<A, List<A, A>>, Pair<List<Pair<A, int>, A>, List<A, Pair<int, A>, A>>>;
using C = Pair<List<B, int (*)(A, B), B>, Pair<List<float (*)(B), B>, B>>;
template __global__ void with_a_type<A>(int *);
template __global__ void with_a_type<B>(int *);
template __global__ void with_a_type<List<C, Pair<C, float>, List<List<List<C>>>>>(int *);

extern "C" __global__ void
a_kernel_with_a_name_that_goes_on_and_on_a_kernel_with_a_name_that_goes_on_and_on_a_kernel_with_a_name_that_goes_on_and_on_a_kernel_with_a_name_that_goes_on_and_on_a_kernel_with_a_name_that_goes_on_and_on_a_kernel_with_a_name_that_goes_on_and_on(
    int *p) {
    p[0] = 1;
}
