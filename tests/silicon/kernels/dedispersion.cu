// Dedispersion of 25000 samples in 1536 channels for 2048 trial dispersions, with the choices that set D was measured
// with as macros: BLOCK_X, BLOCK_Y threads of a block (samples, dispersions); TILE_X, TILE_Y results per thread, next
// to each other, or a block's width or height apart if STRIDE_X, STRIDE_Y are 1. Written for this project.

constexpr int DISPERSIONS = 2048;
constexpr int SAMPLES = 25000;
constexpr int CHANNELS = 1536;
constexpr int SAMPLES_OF_CHANNEL = SAMPLES + 650;
constexpr float FIRST = 0.0f, STEP = 0.02f;

extern "C" __global__ void dedispersion(const unsigned char *input, float *output, const float *shifts) {
    const int first_sample = blockIdx.x * BLOCK_X * TILE_X + threadIdx.x * (STRIDE_X ? 1 : TILE_X);
    const int first_dispersion = blockIdx.y * BLOCK_Y * TILE_Y + threadIdx.y * (STRIDE_Y ? 1 : TILE_Y);
    for (int x = 0; x < TILE_X; ++x) {
        const int sample = first_sample + x * (STRIDE_X ? BLOCK_X : 1);
        if (sample >= SAMPLES) continue;
        for (int y = 0; y < TILE_Y; ++y) {
            const int dispersion = first_dispersion + y * (STRIDE_Y ? BLOCK_Y : 1);
            if (dispersion >= DISPERSIONS) continue;
            float sum = 0.0f;
            for (int channel = 0; channel < CHANNELS; ++channel) {
                const unsigned shift = (FIRST + dispersion * STEP) * shifts[channel];
                sum += input[channel * SAMPLES_OF_CHANNEL + sample + shift];
            }
            output[dispersion * SAMPLES + sample] = sum;
        }
    }
}
