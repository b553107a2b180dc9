// Prices of European call and put options by the Black-Scholes formula.
// Stands for BlackScholes of the CUDA SDK (DAC: BS, the composite paper: BLK), written for this project from the
// formula. Two neighbouring options a thread, read and written as pairs, blocks of 128 threads; the normal
// distribution by the polynomial 26.2.17 of Abramowitz and Stegun.

__device__ __forceinline__ float normal_distribution(float d) {
    const float k = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(d));
    const float polynomial =
        k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    const float tail = 0.39894228040143267794f * __expf(-0.5f * d * d) * polynomial;
    return d > 0.0f ? 1.0f - tail : tail;
}

__device__ __forceinline__ void price(float &call, float &put, float spot, float strike, float years, float rate,
                                      float volatility) {
    const float root = __fdividef(1.0f, rsqrtf(years));
    const float drift = (rate + 0.5f * volatility * volatility) * years;
    const float d1 = __fdividef(__logf(__fdividef(spot, strike)) + drift, volatility * root);
    const float d2 = d1 - volatility * root;
    const float n1 = normal_distribution(d1);
    const float n2 = normal_distribution(d2);
    const float discounted = strike * __expf(-rate * years);
    call = spot * n1 - discounted * n2;
    put = discounted * (1.0f - n2) - spot * (1.0f - n1);
}

extern "C" __global__ void black_scholes(float2 *__restrict__ calls, float2 *__restrict__ puts,
                                         const float2 *__restrict__ spots, const float2 *__restrict__ strikes,
                                         const float2 *__restrict__ years, float rate, float volatility, int options) {
    const int pair = blockIdx.x * blockDim.x + threadIdx.x;
    if (pair < options / 2) {
        float2 call;
        float2 put;
        price(call.x, put.x, spots[pair].x, strikes[pair].x, years[pair].x, rate, volatility);
        price(call.y, put.y, spots[pair].y, strikes[pair].y, years[pair].y, rate, volatility);
        calls[pair] = call;
        puts[pair] = put;
    }
}
