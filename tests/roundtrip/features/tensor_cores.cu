// targets: >=75
// Matrix instructions: the wmma interface for each type the target has, and mma and ldmatrix as inline assembly.
#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void wmma_half(const half *a, const half *b, float *c, half *d) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    for (int k = 0; k < 64; k += 16) {
        wmma::load_matrix_sync(fa, a + k, 64);
        wmma::load_matrix_sync(fb, b + k, 64);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    for (int i = 0; i < fc.num_elements; ++i) {
        fc.x[i] *= 0.5f;
    }
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);

    wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::col_major> ga;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major> gb;
    wmma::fragment<wmma::accumulator, 32, 8, 16, half> gc;
    wmma::load_matrix_sync(ga, a, 32);
    wmma::load_matrix_sync(gb, b, 8);
    wmma::load_matrix_sync(gc, d, 8, wmma::mem_row_major);
    wmma::mma_sync(gc, ga, gb, gc);
    wmma::store_matrix_sync(d + 256, gc, 32, wmma::mem_col_major);
}

extern "C" __global__ void wmma_bytes(const signed char *a, const signed char *b, int *c) {
    __shared__ int tile[256];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::fill_fragment(fc, 1);
    wmma::mma_sync(fc, fa, fb, fc, true);
    wmma::store_matrix_sync(tile, fc, 16, wmma::mem_row_major);
    c[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void wmma_bits(const unsigned *a, const unsigned *b, int *c) {
    wmma::fragment<wmma::matrix_a, 8, 8, 128, wmma::experimental::precision::b1, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, 128, wmma::experimental::precision::b1, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 8, 8, 128, int> fc;
    wmma::load_matrix_sync(fa, a, 128);
    wmma::load_matrix_sync(fb, b, 128);
    wmma::fill_fragment(fc, 0);
    wmma::bmma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 8, wmma::mem_row_major);
}

extern "C" __global__ void matrix_loads(unsigned *out) {
    __shared__ __align__(16) unsigned tile[256];
    const unsigned address = __cvta_generic_to_shared(tile + 4 * threadIdx.x);
    unsigned r[4], s[2], t;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(s[0]), "=r"(s[1]) : "r"(address));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(t) : "r"(address));
    out[threadIdx.x] = r[0] ^ r[1] ^ r[2] ^ r[3] ^ s[0] ^ s[1] ^ t;
    float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
                 : "r"(r[0]), "r"(r[1]), "r"(r[2]));
    out[threadIdx.x + 64] = __float_as_uint(c0 + c1 + c2 + c3);
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void wmma_newer(const __nv_bfloat16 *a, const float *t, const double *d, float *c, double *e) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, a, 16);
    wmma::fill_fragment(fc, 0.0f);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> ta;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> tb;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> tc;
    wmma::load_matrix_sync(ta, t, 8);
    wmma::load_matrix_sync(tb, t, 8);
    for (int i = 0; i < ta.num_elements; ++i) {
        ta.x[i] = wmma::__float_to_tf32(ta.x[i]);
    }
    wmma::fill_fragment(tc, 0.0f);
    wmma::mma_sync(tc, ta, tb, tc);
    wmma::store_matrix_sync(c + 256, tc, 16, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> da;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> db;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> dc;
    wmma::load_matrix_sync(da, d, 4);
    wmma::load_matrix_sync(db, d, 4);
    wmma::fill_fragment(dc, 0.0);
    wmma::mma_sync(dc, da, db, dc);
    wmma::store_matrix_sync(e, dc, 8, wmma::mem_row_major);
}

extern "C" __global__ void mma_newer(unsigned *x, float *out, int *sums) {
    float c0 = 0, c1 = 0, c2 = 0, c3 = 0;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]));
    asm volatile("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x0;"
                 : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]));
    out[threadIdx.x] = c0 + c1 + c2 + c3;
    int s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(s0), "+r"(s1), "+r"(s2), "+r"(s3)
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]));
    asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(s0), "+r"(s1), "+r"(s2), "+r"(s3)
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]));
    sums[threadIdx.x] = s0 + s1 + s2 + s3;
}
#endif
