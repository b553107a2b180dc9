// targets: >=75
// Launch bounds, register limits, grid constants, cluster dimensions, empty kernels, kernels without parameters.

extern "C" __global__ void __launch_bounds__(256) bounds_one(int *p) { p[threadIdx.x] = 1; }
extern "C" __global__ void __launch_bounds__(128, 4) bounds_two(int *p) { p[threadIdx.x] = 2; }
extern "C" __global__ void __launch_bounds__(1024, 1) bounds_large(double *p) { p[threadIdx.x] *= p[threadIdx.x + 1]; }
extern "C" __global__ void __maxnreg__(64) register_limit(float *p) { p[threadIdx.x] = p[threadIdx.x + 64] * 2.0f; }
extern "C" __global__ void empty_kernel() {}
extern "C" __global__ void no_parameters() { __syncthreads(); }
extern "C" __global__ void barriers(int *p) {
    __syncthreads();
    asm volatile("barrier.sync 1, 64;");
    asm volatile("bar.arrive 2, 128;");
    asm volatile("bar.sync 2, 128;");
    asm volatile("barrier.red.popc.u32 %0, 3, 64, 1;" : "=r"(p[0]));
    asm volatile("bar.warp.sync 0xffffffff;");
}
struct Configuration {
    int n;
    float scale[30];
};
#if __CUDA_ARCH__ >= 700
extern "C" __global__ void grid_constant(const __grid_constant__ Configuration c, float *out) {
    const float *p = c.scale;
    out[threadIdx.x] = p[threadIdx.x] * c.n + p[out[64] > 0.0f];
}
#endif
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_fixed(int *p) { p[blockIdx.x] = threadIdx.x; }
extern "C" __global__ void __launch_bounds__(128, 2, 4) cluster_bounds(int *p) { p[blockIdx.x] = threadIdx.x; }
#endif
template <int N, typename T, bool Flag>
__global__ void template_kernel(T *p) {
    if (Flag) p[threadIdx.x] = N;
}
template __global__ void template_kernel<3, int, true>(int *);
template __global__ void template_kernel<-7, double, true>(double *);
template __global__ void template_kernel<0, unsigned long long, false>(unsigned long long *);
