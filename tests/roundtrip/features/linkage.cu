// targets: >=75
// flags: -rdc=true
// Names across translation units: extern functions and variables, weak definitions, inline functions, statics.

extern __device__ int defined_elsewhere(int x, const float *p);
extern __device__ float variable_elsewhere[32];
extern __constant__ int constant_elsewhere;
extern __shared__ float dynamic_shared[];
__device__ int variable_here = 3;
__device__ __attribute__((weak)) int weak_function(int x) { return x + 1; }
__device__ __noinline__ int function_here(int x) { return x * 2; }
static __device__ __noinline__ int internal_function(int x) { return x * 3; }
inline __device__ int inline_function(int x) { return x * 5; }
template <typename T>
__device__ __noinline__ T template_function(T x) {
    return x * 7;
}
extern "C" __device__ void function_without_result(int *p) { *p = 1; }
__device__ int (*function_table[])(int) = {function_here, weak_function};

extern "C" __global__ void uses(int *out, int n) {
    out[0] = defined_elsewhere(n, variable_elsewhere + n) + constant_elsewhere + variable_here;
    out[1] = weak_function(n) + function_here(n) + internal_function(n) + inline_function(n) + template_function(n);
    function_without_result(out + 2);
    out[3] = function_table[n & 1](n);
    out[4] = (int)dynamic_shared[threadIdx.x];
}
__attribute__((weak)) __global__ void weak_kernel(int *out) { out[0] = 1; }
