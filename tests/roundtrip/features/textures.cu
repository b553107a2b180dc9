// targets: >=75
// Texture and surface objects of every shape, with fetches, gathers, levels of detail, gradients, reads and writes.
#include <cuda_runtime.h>

extern "C" __global__ void texture_reads(float4 *out, cudaTextureObject_t t, float x, float y, float z, int i) {
    out[0] = tex1Dfetch<float4>(t, i);
    out[1] = tex1D<float4>(t, x);
    out[2] = tex2D<float4>(t, x, y);
    out[3] = tex3D<float4>(t, x, y, z);
    out[4] = tex1DLod<float4>(t, x, z);
    out[5] = tex2DLod<float4>(t, x, y, z);
    out[6] = tex2DGrad<float4>(t, x, y, make_float2(x, y), make_float2(y, z));
    out[7] = tex1DLayered<float4>(t, x, i);
    out[8] = tex2DLayered<float4>(t, x, y, i);
    out[9] = texCubemap<float4>(t, x, y, z);
    out[10] = texCubemapLayered<float4>(t, x, y, z, i);
    out[11] = tex2Dgather<float4>(t, x, y, 2);
    out[12] = tex3DLod<float4>(t, x, y, z, x);
    bool resident;
    out[13] = tex2D<float4>(t, x, y, &resident);
    out[14].x = resident;
    out[15].x = tex2D<float>(t, y, x);
}

extern "C" __global__ void texture_types(int4 *i4, uint2 *u2, unsigned char *c, short *s, cudaTextureObject_t t, float x) {
    i4[0] = tex1D<int4>(t, x);
    u2[0] = tex2D<uint2>(t, x, x);
    c[0] = tex2D<unsigned char>(t, x, 2 * x);
    s[0] = tex3D<short>(t, x, x, x);
}

extern "C" __global__ void surfaces(int *out, cudaSurfaceObject_t s, int x, int y, int z) {
    out[0] = surf1Dread<int>(s, 4 * x);
    out[1] = surf2Dread<int>(s, 4 * x, y, cudaBoundaryModeClamp);
    out[2] = surf3Dread<int>(s, 4 * x, y, z, cudaBoundaryModeZero);
    out[3] = surf2DLayeredread<int>(s, 4 * x, y, z);
    const int4 v = surf2Dread<int4>(s, 16 * x, y);
    out[4] = v.x + v.w;
    surf1Dwrite(out[5], s, 4 * x);
    surf2Dwrite(make_short2(x, y), s, 4 * x, y, cudaBoundaryModeTrap);
    surf3Dwrite((unsigned char)x, s, x, y, z);
    surf2Dwrite(make_float4(x, y, z, 1), s, 16 * x, y);
    surfCubemapwrite(x, s, 4 * x, y, z);
}
