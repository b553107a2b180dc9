// The Q matrix of an image reconstruction from samples along a path in k-space: for each voxel a sum over all samples.
// Stands for mri-q of Parboil (R2D2, DAC).
// Written for this project from the algorithm. Blocks of 512 threads for the samples' magnitudes, of 256 for the
// voxels; samples are in constant memory and the same for all threads. Nearly all work is sine and cosine,
// which are single instructions by the flags that Parboil compiles with.
// nvcc: --use_fast_math

constexpr int SAMPLES = 1024; // fit into one launch

struct Sample {
    float x, y, z;
    float magnitude;
};
__constant__ Sample samples[SAMPLES];

extern "C" __global__ void mri_magnitudes(const float *real, const float *imaginary, float *magnitudes, int count) {
    const int sample = blockIdx.x * blockDim.x + threadIdx.x;
    if (sample < count) {
        magnitudes[sample] = real[sample] * real[sample] + imaginary[sample] * imaginary[sample];
    }
}

// Adds `count` samples to the sums of every voxel.
extern "C" __global__ void mri_q(int count, const float *x, const float *y, const float *z, float *real,
                                 float *imaginary) {
    constexpr float TWICE_PI = 6.2831853071795864769f;
    const int voxel = blockIdx.x * blockDim.x + threadIdx.x;

    const float own_x = x[voxel];
    const float own_y = y[voxel];
    const float own_z = z[voxel];
    float real_sum = real[voxel];
    float imaginary_sum = imaginary[voxel];
#pragma unroll 1
    for (int k = 0; k < count; ++k) {
        const float angle = TWICE_PI * (samples[k].x * own_x + samples[k].y * own_y + samples[k].z * own_z);
        real_sum += samples[k].magnitude * cosf(angle);
        imaginary_sum += samples[k].magnitude * sinf(angle);
    }
    real[voxel] = real_sum;
    imaginary[voxel] = imaginary_sum;
}
