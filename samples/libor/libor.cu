// Monte Carlo pricing of a portfolio of swaptions under the LIBOR market model, with and without the sensitivity to
// the last forward rate by the adjoint method (Giles and Glasserman, "Smoking adjoints").
// Stands for LIB of the ISPASS suite (R2D2, DARSIE and DAC: LIB), written for this project from the algorithm.
// One path a thread with a stride of the whole grid, blocks of 64 threads. The rates of a path, and for the adjoint
// those of all its time steps, are arrays in local memory; the market data lie in constant memory. Unlike the
// benchmark, which gives every path the same numbers, each path has its own normal deviates.

constexpr int MAX_RATES = 80;
constexpr int MAX_STEPS = 40;
constexpr int MAX_OPTIONS = 15;

__constant__ int rates;       // forward rates, at most MAX_RATES
__constant__ int time_steps;  // until the options mature, at most MAX_STEPS
__constant__ int options;
__constant__ float accrual;   // years between two rates
__constant__ int maturities[MAX_OPTIONS];
__constant__ float swap_rates[MAX_OPTIONS];
__constant__ float volatility[MAX_RATES];

// Moves the rates of one path to the next time step, in place.
__device__ __forceinline__ void advance(float *rate, int step, float deviate) {
    const float shock = sqrtf(accrual) * deviate;
    float drift = 0.0f;
    for (int i = step + 1; i < rates; ++i) {
        const float lambda = volatility[i - step - 1];
        const float scaled = accrual * lambda;
        drift += scaled * rate[i] / (1.0f + accrual * rate[i]);
        rate[i] *= expf(scaled * drift + lambda * (shock - 0.5f * scaled));
    }
}

// The discounted value of the portfolio at the rates of one path.
__device__ __forceinline__ float portfolio_value(const float *rate) {
    float bond[MAX_RATES];
    float annuity[MAX_RATES];
    float b = 1.0f;
    float s = 0.0f;
    for (int n = time_steps; n < rates; ++n) {
        b = b / (1.0f + accrual * rate[n]);
        s = s + accrual * b;
        bond[n] = b;
        annuity[n] = s;
    }
    float value = 0.0f;
    for (int option = 0; option < options; ++option) {
        const int last = maturities[option] + time_steps - 1;
        const float swap_value = bond[last] + swap_rates[option] * annuity[last] - 1.0f;
        if (swap_value < 0.0f) {
            value += -100.0f * swap_value;
        }
    }
    for (int n = 0; n < time_steps; ++n) {
        value = value / (1.0f + accrual * rate[n]);
    }
    return value;
}

// The same value, and the derivatives of it with respect to every rate.
__device__ __forceinline__ float portfolio_value_adjoint(const float *rate, float *rate_bar) {
    float bond[MAX_RATES];
    float annuity[MAX_RATES];
    float bond_bar[MAX_RATES];
    float annuity_bar[MAX_RATES];
    float b = 1.0f;
    float s = 0.0f;
    for (int n = time_steps; n < rates; ++n) {
        b = b / (1.0f + accrual * rate[n]);
        s = s + accrual * b;
        bond[n] = b;
        annuity[n] = s;
        bond_bar[n] = 0.0f;
        annuity_bar[n] = 0.0f;
    }
    float value = 0.0f;
    for (int option = 0; option < options; ++option) {
        const int last = maturities[option] + time_steps - 1;
        const float swap_value = bond[last] + swap_rates[option] * annuity[last] - 1.0f;
        if (swap_value < 0.0f) {
            value += -100.0f * swap_value;
            bond_bar[last] += -100.0f;
            annuity_bar[last] += -100.0f * swap_rates[option];
        }
    }
    float discount = 1.0f;
    for (int n = 0; n < time_steps; ++n) {
        discount = discount / (1.0f + accrual * rate[n]);
    }
    value = value * discount;

    float b_bar = 0.0f;
    float s_bar = 0.0f;
    for (int n = rates - 1; n >= time_steps; --n) {
        s_bar += annuity_bar[n];
        b_bar += bond_bar[n] + accrual * s_bar;
        const float factor = 1.0f / (1.0f + accrual * rate[n]);
        rate_bar[n] = -b_bar * bond[n] * accrual * factor * discount;
        b_bar = b_bar * factor;
    }
    for (int n = 0; n < time_steps; ++n) {
        rate_bar[n] = -value * accrual / (1.0f + accrual * rate[n]);
    }
    return value;
}

extern "C" __global__ void libor_portfolio(int paths, float first_rate, const float *deviates, float *values) {
    const int threads = blockDim.x * gridDim.x;
    for (int path = blockIdx.x * blockDim.x + threadIdx.x; path < paths; path += threads) {
        float rate[MAX_RATES];
        for (int i = 0; i < rates; ++i) {
            rate[i] = first_rate;
        }
        for (int step = 0; step < time_steps; ++step) {
            advance(rate, step, deviates[step * paths + path]);
        }
        values[path] = portfolio_value(rate);
    }
}

extern "C" __global__ void libor_adjoint(int paths, float first_rate, const float *deviates, float *values,
                                         float *last_rate_bars) {
    const int threads = blockDim.x * gridDim.x;
    for (int path = blockIdx.x * blockDim.x + threadIdx.x; path < paths; path += threads) {
        // Row `step` holds the rates before that time step.
        float history[(MAX_STEPS + 1) * MAX_RATES];
        float rate_bar[MAX_RATES];
        for (int i = 0; i < rates; ++i) {
            history[i] = first_rate;
        }
        for (int step = 0; step < time_steps; ++step) {
            float *next = history + (step + 1) * MAX_RATES;
            for (int i = 0; i < rates; ++i) {
                next[i] = history[step * MAX_RATES + i];
            }
            advance(next, step, deviates[step * paths + path]);
        }
        values[path] = portfolio_value_adjoint(history + time_steps * MAX_RATES, rate_bar);

        for (int step = time_steps - 1; step >= 0; --step) {
            const float *before = history + step * MAX_RATES;
            const float *after = before + MAX_RATES;
            float drift_bar = 0.0f;
            for (int i = rates - 1; i > step; --i) {
                const float lambda = volatility[i - step - 1];
                drift_bar += lambda * after[i] * rate_bar[i];
                const float factor = accrual / (1.0f + accrual * before[i]);
                rate_bar[i] = rate_bar[i] * (after[i] / before[i]) + drift_bar * lambda * factor * factor;
            }
        }
        last_rate_bars[path] = rate_bar[rates - 1];
    }
}
