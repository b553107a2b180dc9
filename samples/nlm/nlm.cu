// Image denoising: every pixel becomes a mean of its neighbours, weighted by how alike their surroundings are
// (non-local means) or how alike the pixels themselves are (nearest neighbours).
// Stands for imageDenoising of the CUDA SDK (DARSIE: INLM, the composite paper: NL, NL2, KNN), written for this
// project from the algorithm. One pixel a thread, blocks of 8x8 threads (16x16 in DARSIE's Table 1); pixels are four packed bytes, neighbours
// beyond the image are the edge. Results are left as three floats and a padding one.

constexpr int BLOCK = 8;
constexpr int MAX_SIDE = 7;

__device__ __forceinline__ float3 unpacked(unsigned pixel) {
    return make_float3((pixel & 0xff) / 255.0f, (pixel >> 8 & 0xff) / 255.0f, (pixel >> 16 & 0xff) / 255.0f);
}

__device__ __forceinline__ float3 pixel_at(const unsigned *image, int width, int height, int x, int y) {
    x = min(max(x, 0), width - 1);
    y = min(max(y, 0), height - 1);
    return unpacked(image[y * width + x]);
}

__device__ __forceinline__ float squared_distance(float3 a, float3 b) {
    return (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) + (a.z - b.z) * (a.z - b.z);
}

__device__ __forceinline__ void add_weighted(float3 &sum, float weight, float3 colour) {
    sum.x += weight * colour.x;
    sum.y += weight * colour.y;
    sum.z += weight * colour.z;
}

// Goes over to the noisy colour by `noisy_part`.
__device__ __forceinline__ float4 blended(float3 clean, float3 noisy, float noisy_part) {
    return make_float4(clean.x + (noisy.x - clean.x) * noisy_part, clean.y + (noisy.y - clean.y) * noisy_part,
                       clean.z + (noisy.z - clean.z) * noisy_part, 0.0f);
}

// Weights by the pixel alone.
extern "C" __global__ void nearest_neighbours(const unsigned *image, float4 *result, int width, int height, int radius,
                                              float noise, float lerp) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }

    const float3 centre = pixel_at(image, width, height, x, y);
    const float area = (2 * radius + 1) * (2 * radius + 1);
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    float weights = 0.0f;
    float alike = 0.0f;
    for (int dy = -radius; dy <= radius; ++dy) {
        for (int dx = -radius; dx <= radius; ++dx) {
            const float3 colour = pixel_at(image, width, height, x + dx, y + dy);
            const float weight = __expf(-(squared_distance(centre, colour) * noise + (dx * dx + dy * dy) / area));
            alike += weight > 0.02f ? 1.0f / area : 0.0f;
            weights += weight;
            add_weighted(sum, weight, colour);
        }
    }
    const float scale = 1.0f / weights;
    const float3 clean = make_float3(sum.x * scale, sum.y * scale, sum.z * scale);
    result[y * width + x] = blended(clean, centre, alike > 0.66f ? lerp : 1.0f - lerp);
}

// Weights by the surroundings: the distance between the squares around the pixel and around its neighbour.
extern "C" __global__ void non_local_means(const unsigned *image, float4 *result, int width, int height, int radius,
                                           int patch_radius, float noise, float lerp) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }

    const float area = (2 * radius + 1) * (2 * radius + 1);
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    float weights = 0.0f;
    float alike = 0.0f;
    for (int dy = -radius; dy <= radius; ++dy) {
        for (int dx = -radius; dx <= radius; ++dx) {
            float distance = 0.0f;
            for (int py = -patch_radius; py <= patch_radius; ++py) {
                for (int px = -patch_radius; px <= patch_radius; ++px) {
                    distance += squared_distance(pixel_at(image, width, height, x + dx + px, y + dy + py),
                                                 pixel_at(image, width, height, x + px, y + py));
                }
            }
            const float weight = __expf(-(distance * noise + (dx * dx + dy * dy) / area));
            alike += weight > 0.1f ? 1.0f / area : 0.0f;
            weights += weight;
            add_weighted(sum, weight, pixel_at(image, width, height, x + dx, y + dy));
        }
    }
    const float scale = 1.0f / weights;
    const float3 clean = make_float3(sum.x * scale, sum.y * scale, sum.z * scale);
    result[y * width + x] =
        blended(clean, pixel_at(image, width, height, x, y), alike > 0.66f ? lerp : 1.0f - lerp);
}

// The cheaper kind: a whole block takes the weights of the square around its middle, one weight a thread, through
// shared memory; the first (2 * radius + 1)^2 threads compute them.
extern "C" __global__ void non_local_means_blockwise(const unsigned *image, float4 *result, int width, int height,
                                                     int radius, int patch_radius, float noise, float lerp) {
    __shared__ float shared_weights[MAX_SIDE * MAX_SIDE];

    const int x = blockIdx.x * BLOCK + threadIdx.x;
    const int y = blockIdx.y * BLOCK + threadIdx.y;
    const int side = 2 * radius + 1;
    const float area = side * side;

    if (threadIdx.x < side && threadIdx.y < side) {
        const int middle_x = blockIdx.x * BLOCK + BLOCK / 2;
        const int middle_y = blockIdx.y * BLOCK + BLOCK / 2;
        const int dx = (int)threadIdx.x - radius;
        const int dy = (int)threadIdx.y - radius;
        float distance = 0.0f;
        for (int py = -patch_radius; py <= patch_radius; ++py) {
            for (int px = -patch_radius; px <= patch_radius; ++px) {
                distance += squared_distance(pixel_at(image, width, height, middle_x + dx + px, middle_y + dy + py),
                                             pixel_at(image, width, height, middle_x + px, middle_y + py));
            }
        }
        shared_weights[threadIdx.y * side + threadIdx.x] =
            __expf(-(distance * noise + (dx * dx + dy * dy) / area));
    }
    __syncthreads();

    if (x < width && y < height) {
        float3 sum = make_float3(0.0f, 0.0f, 0.0f);
        float weights = 0.0f;
        float alike = 0.0f;
        for (int i = 0; i < side * side; ++i) {
            const float weight = shared_weights[i];
            alike += weight > 0.1f ? 1.0f / area : 0.0f;
            weights += weight;
            add_weighted(sum, weight, pixel_at(image, width, height, x + i % side - radius, y + i / side - radius));
        }
        const float scale = 1.0f / weights;
        const float3 clean = make_float3(sum.x * scale, sum.y * scale, sum.z * scale);
        result[y * width + x] =
            blended(clean, pixel_at(image, width, height, x, y), alike > 0.66f ? lerp : 1.0f - lerp);
    }
}
