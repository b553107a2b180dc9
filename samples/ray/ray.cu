// Ray tracing of mirroring spheres above a shaded floor under one point light, with shadows.
// Stands for RAY of the ISPASS suite (R2D2 and the composite paper: RAY), written for this project from the
// algorithm. One pixel a thread, blocks of 16x8 threads. A ray goes on from sphere to sphere as long as it is
// mirrored: neighbouring pixels take different turns. Spheres lie in constant memory.

constexpr int MAX_SPHERES = 64;
constexpr int MAX_BOUNCES = 3;
constexpr float NOWHERE = 1e30f;
constexpr float GRAZING = 0.05f; // a ray that only grazes a sphere misses it: its mirror image would hang on rounding

struct Sphere {
    float x, y, z, radius;
    float red, green, blue, mirror; // mirror: the part of light that goes on
};

__constant__ Sphere spheres[MAX_SPHERES];

struct Ray {
    float3 from;
    float3 along; // of length 1
};

__device__ __forceinline__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
__device__ __forceinline__ float3 operator-(float3 a, float3 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
__device__ __forceinline__ float3 operator*(float3 a, float f) { return make_float3(a.x * f, a.y * f, a.z * f); }
__device__ __forceinline__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ __forceinline__ float3 unit(float3 a) { return a * (1.0f / sqrtf(dot(a, a))); }

// Distance along the ray to the sphere, or NOWHERE.
__device__ __forceinline__ float distance_to(const Sphere &sphere, const Ray &ray) {
    const float3 offset = ray.from - make_float3(sphere.x, sphere.y, sphere.z);
    const float b = dot(offset, ray.along);
    const float discriminant = b * b - dot(offset, offset) + sphere.radius * sphere.radius;
    if (discriminant <= GRAZING * sphere.radius * sphere.radius) {
        return NOWHERE;
    }
    const float distance = -b - sqrtf(discriminant);
    return distance > 0.001f ? distance : NOWHERE;
}

// The nearest sphere that the ray meets within `distance`, which becomes the distance to it; -1: none.
__device__ __forceinline__ int nearest_sphere(const Ray &ray, int count, float &distance) {
    int nearest = -1;
    for (int i = 0; i < count; ++i) {
        const float here = distance_to(spheres[i], ray);
        if (here < distance) {
            distance = here;
            nearest = i;
        }
    }
    return nearest;
}

// The colour that comes back along a ray; the floor is the plane y = 0.
__device__ __forceinline__ float3 traced(Ray ray, int count, float3 light) {
    float3 colour = make_float3(0.0f, 0.0f, 0.0f);
    float weight = 1.0f;
    for (int bounce = 0; bounce < MAX_BOUNCES; ++bounce) {
        float distance = ray.along.y < 0.0f ? -ray.from.y / ray.along.y : NOWHERE;
        const int sphere = nearest_sphere(ray, count, distance);
        if (distance >= NOWHERE) {
            // The sky grows lighter towards the horizon.
            const float haze = 1.0f - fabsf(ray.along.y);
            return colour + make_float3(0.3f + 0.4f * haze, 0.5f + 0.3f * haze, 0.9f) * weight;
        }

        const float3 place = ray.from + ray.along * distance;
        float3 normal = make_float3(0.0f, 1.0f, 0.0f);
        float3 surface;
        float mirror = 0.0f;
        if (sphere >= 0) {
            const Sphere &hit = spheres[sphere];
            normal = (place - make_float3(hit.x, hit.y, hit.z)) * (1.0f / hit.radius);
            surface = make_float3(hit.red, hit.green, hit.blue);
            mirror = hit.mirror;
        } else {
            // Soft stripes in both directions, which fade with the distance.
            const float stripes = fabsf(place.x - rintf(place.x)) + fabsf(place.z - rintf(place.z));
            const float grey = 0.5f + (0.7f * stripes - 0.35f) / (1.0f + 0.1f * distance * distance);
            surface = make_float3(grey, grey, grey);
        }

        const float3 to_light = light - place;
        float light_distance = sqrtf(dot(to_light, to_light));
        const Ray shadow = {place, to_light * (1.0f / light_distance)};
        const bool lit = nearest_sphere(shadow, count, light_distance) < 0;
        const float brightness = 0.15f + (lit ? 0.85f * fmaxf(dot(normal, shadow.along), 0.0f) : 0.0f);
        colour = colour + surface * (brightness * weight * (1.0f - mirror));

        weight *= mirror;
        if (weight < 0.01f) {
            break;
        }
        ray = {place, ray.along - normal * (2.0f * dot(ray.along, normal))};
    }
    return colour;
}

extern "C" __global__ void ray(float4 *image, int width, int height, int count, float3 eye, float3 light) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) {
        return;
    }
    const float across = (2.0f * x + 1.0f - width) / height;
    const float up = (height - 2.0f * y - 1.0f) / height;
    const Ray sight = {eye, unit(make_float3(across, up, 1.5f))};
    const float3 colour = traced(sight, count, light);
    image[y * width + x] = make_float4(colour.x, colour.y, colour.z, 0.0f);
}
