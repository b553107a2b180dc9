// Layer normalisation: every row of a matrix is moved to mean 0 and variance 1, then scaled and shifted by learnt
// vectors. Stands for today's transformer layers (no paper's benchmark).
// One row a warp, four rows a block of 32x4 threads; a row is read in fours and kept in registers. Mean and variance
// are merged between lanes as running moments (Welford, Chan), which lanes with fewer elements take part in rightly.

constexpr int WARP = 32;
constexpr int MAX_VECTORS = 8; // of four elements a lane: rows up to 1024 long
constexpr unsigned ALL_LANES = 0xffffffffu;

struct Moments {
    float count;
    float mean;
    float squares; // sum of squared differences from the mean
};

__device__ __forceinline__ void add(Moments &moments, float value) {
    moments.count += 1.0f;
    const float difference = value - moments.mean;
    moments.mean += difference / moments.count;
    moments.squares += difference * (value - moments.mean);
}

__device__ __forceinline__ Moments merged(Moments a, Moments b) {
    const float count = a.count + b.count;
    if (count == 0.0f) {
        return a;
    }
    const float difference = b.mean - a.mean;
    const float share = b.count / count;
    return {count, a.mean + difference * share, a.squares + b.squares + difference * difference * a.count * share};
}

extern "C" __global__ void layer_norm(const float4 *__restrict__ source, const float4 *__restrict__ scale,
                                      const float4 *__restrict__ shift, float4 *__restrict__ result, int rows,
                                      int vectors, float epsilon) {
    const int lane = threadIdx.x;
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) {
        return;
    }

    float4 kept[MAX_VECTORS];
    Moments moments = {0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < MAX_VECTORS; ++i) {
        const int place = i * WARP + lane;
        if (place < vectors) {
            kept[i] = source[row * vectors + place];
            add(moments, kept[i].x);
            add(moments, kept[i].y);
            add(moments, kept[i].z);
            add(moments, kept[i].w);
        }
    }
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        Moments other;
        other.count = __shfl_xor_sync(ALL_LANES, moments.count, distance);
        other.mean = __shfl_xor_sync(ALL_LANES, moments.mean, distance);
        other.squares = __shfl_xor_sync(ALL_LANES, moments.squares, distance);
        moments = merged(moments, other);
    }

    const float mean = __shfl_sync(ALL_LANES, moments.mean, 0);
    const float inverse = rsqrtf(__shfl_sync(ALL_LANES, moments.squares, 0) / (4 * vectors) + epsilon);
#pragma unroll
    for (int i = 0; i < MAX_VECTORS; ++i) {
        const int place = i * WARP + lane;
        if (place < vectors) {
            const float4 s = scale[place];
            const float4 t = shift[place];
            result[row * vectors + place] = make_float4((kept[i].x - mean) * inverse * s.x + t.x,
                                                        (kept[i].y - mean) * inverse * s.y + t.y,
                                                        (kept[i].z - mean) * inverse * s.z + t.z,
                                                        (kept[i].w - mean) * inverse * s.w + t.w);
        }
    }
}
