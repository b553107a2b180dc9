// Simulates a heart muscle cell: 91 ordinary differential equations, by Fehlberg's method of orders 7 and 8 in adaptive
// steps. Stands for myocyte of Rodinia (RegLess).
// Written for this project from the model (membrane currents, calcium and its buffers: 46 equations; calmodulin and its
// enzymes in three compartments: 15 each). Slopes are one long block of code with exponentials, logarithms and powers,
// whose values outnumber the registers. By default the benchmark solves on the host and evaluates one cell at a time,
// by two threads of two blocks; for many cells a thread of a block of 32 solves each, with arrays of its own in global
// memory, so lanes are far apart. Numbers are float: so were the benchmark's constants for the GPUs of its time.

constexpr int EQUATIONS = 91;
constexpr int PARAMETERS = 18;
constexpr int STAGES = 13;
constexpr int ATTEMPTS = 12;

// Places of the states in a cell's array.
constexpr int M = 0, H = 1, J = 2;                // sodium gates
constexpr int D = 3, F = 4, BOUND = 5;            // calcium gates; BOUND has two, for junction and membrane
constexpr int SLOW_X = 7, SLOW_Y = 8, FAST_X = 9, FAST_Y = 10, SLOW_R = 39, XR = 11, XS = 12; // potassium gates
constexpr int RESTING = 13, OPEN = 14, INACTIVE = 15;                                          // release channel
constexpr int NA_BUFFER = 16;                     // two
constexpr int TROPONIN_LOW = 18, TROPONIN_CA = 19, TROPONIN_MG = 20, MYOSIN_CA = 22, MYOSIN_MG = 23, STORE_BUFFER = 24;
constexpr int LOW_BUFFER = 25, HIGH_BUFFER = 27;  // two each
constexpr int CALSEQUESTRIN = 29, STORE = 30;
constexpr int SODIUM = 31, SODIUM_CELL = 33, POTASSIUM = 34, CALCIUM = 35, CALCIUM_CELL = 37; // SODIUM, CALCIUM: two
constexpr int VOLTAGE = 38;
constexpr int SUM_CHANNEL = 42, SUM_PUMP = 43, SUM_EXCHANGER = 44, SUM_LEAK = 45;
constexpr int CALMODULIN = 46, CALMODULIN_STATES = 15; // three times

constexpr float F_OVER_RT = 96485.0f / (8314.0f * 310.0f);
constexpr float CELL = 3.1416f * 10.25f * 10.25f * 100.0f * 1e-15f; // volumes in litres
constexpr float PLASMA = 0.65f * CELL;
// Below the membrane: in the junction (side 0) and elsewhere.
__device__ constexpr float space(int side) { return (side == 0 ? 0.000539f : 0.02f) * CELL; }
constexpr float RETICULUM = 0.035f * CELL;
// Of the membrane, and of its calcium channels.
__device__ constexpr float share(int side) { return side == 0 ? 0.11f : 0.89f; }
__device__ constexpr float channel_share(int side) { return side == 0 ? 0.9f : 0.1f; }
constexpr float CHARGE = 1.381e-10f / 96485.0f;   // membrane capacitance over Faraday's constant
constexpr float CALCIUM_FLOW = 8.2413e-13f, CALCIUM_FLOW_CELL = 3.7243e-12f;
constexpr float SODIUM_FLOW = 1.8313e-14f, SODIUM_FLOW_CELL = 1.6386e-12f;
constexpr float K_OUT = 5.4f, NA_OUT = 140.0f, CA_OUT = 1.8f, MG = 1.0f;

__device__ __forceinline__ float square(float x) { return x * x; }
__device__ __forceinline__ float cube(float x) { return x * x * x; }
__device__ __forceinline__ float fall(float x) { return 1.0f / (1.0f + expf(x)); }
__device__ __forceinline__ float binding(float on, float free, float sites, float off, float bound) {
    return on * free * sites - off * bound;
}
// Flow of an ion with `z` charges through open channels, for an inner and an outer concentration.
__device__ __forceinline__ float driven(float z, float v, float inner, float outer) {
    const float e = expf(z * v * F_OVER_RT);
    return z * z * v * 96485.0f * F_OVER_RT * (inner * e - outer) / (e - 1.0f);
}

// Sodium, potassium and calcium gates.
__device__ __forceinline__ void gates(const float *y, float *slope) {
    const float v = y[VOLTAGE];
    const float open_m = 0.32f * (v + 47.13f) / (1.0f - expf(-0.1f * (v + 47.13f)));
    const float close_m = 0.08f * expf(-v / 11.0f);
    float open_h = 0.0f, close_h, open_j = 0.0f, close_j;
    if (v >= -40.0f) {
        close_h = 1.0f / (0.13f * (1.0f + expf(-(v + 10.66f) / 11.1f)));
        close_j = 0.3f * expf(-2.535e-7f * v) * fall(-0.1f * (v + 32.0f));
    } else {
        open_h = 0.135f * expf((80.0f + v) / -6.8f);
        close_h = 3.56f * expf(0.079f * v) + 3.1e5f * expf(0.35f * v);
        open_j = (-127140.0f * expf(0.2444f * v) - 3.474e-5f * expf(-0.04391f * v)) * (v + 37.78f) *
                 fall(0.311f * (v + 79.23f));
        close_j = 0.1212f * expf(-0.01052f * v) * fall(-0.1378f * (v + 40.14f));
    }
    slope[M] = open_m * (1.0f - y[M]) - close_m * y[M];
    slope[H] = open_h * (1.0f - y[H]) - close_h * y[H];
    slope[J] = open_j * (1.0f - y[J]) - close_j * y[J];

    const float rate_xr = 0.00138f * (v + 7.0f) / (1.0f - expf(-0.123f * (v + 7.0f))) +
                          6.1e-4f * (v + 10.0f) / (expf(0.145f * (v + 10.0f)) - 1.0f);
    slope[XR] = (fall(-(v + 50.0f) / 7.5f) - y[XR]) * rate_xr;
    const float rate_xs = 7.19e-5f * (v + 30.0f) / (1.0f - expf(-0.148f * (v + 30.0f))) +
                          1.31e-4f * (v + 30.0f) / (expf(0.0687f * (v + 30.0f)) - 1.0f);
    slope[XS] = (fall(-(v - 1.5f) / 16.7f) - y[XS]) * rate_xs;
    const float x = fall(-(v + 3.0f) / 15.0f);
    const float r = fall((v + 33.5f) / 10.0f);
    const float late = fall((v + 60.0f) / 10.0f);
    slope[SLOW_X] = (x - y[SLOW_X]) / (9.0f * fall((v + 3.0f) / 15.0f) + 0.5f);
    slope[SLOW_Y] = (r - y[SLOW_Y]) / (3000.0f * late + 30.0f);
    slope[SLOW_R] = (r - y[SLOW_R]) / (2800.0f * late + 220.0f);
    slope[FAST_X] = (x - y[FAST_X]) / (3.5f * expf(-v * v / 900.0f) + 1.5f);
    slope[FAST_Y] = (r - y[FAST_Y]) / (20.0f * r + 20.0f);

    const float d = fall(-(v + 14.5f) / 6.0f);
    slope[D] = (d - y[D]) * 0.035f * (v + 14.5f) / (d * (1.0f - expf(-(v + 14.5f) / 6.0f)));
    slope[F] = (fall((v + 35.06f) / 3.6f) + 0.6f * fall((50.0f - v) / 20.0f) - y[F]) *
               (0.0197f * expf(-square(0.0337f * (v + 14.5f))) + 0.02f);
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        slope[BOUND + side] = 1.7f * y[CALCIUM + side] * (1.0f - y[BOUND + side]) - 0.0119f * y[BOUND + side];
    }
}

// Currents through the membrane, summed by ion.
struct Currents {
    float sodium[2];
    float calcium[2];
    float others; // potassium and chloride
};

__device__ __forceinline__ float potassium_currents(const float *y) {
    const float v = y[VOLTAGE];
    const float against = v - logf(K_OUT / y[POTASSIUM]) / F_OVER_RT;
    const float mixed = v - logf((K_OUT + 0.01833f * NA_OUT) / (y[POTASSIUM] + 0.01833f * y[SODIUM_CELL])) / F_OVER_RT;
    float sum = 0.03f * sqrtf(K_OUT / 5.4f) * y[XR] * fall((v + 33.0f) / 22.4f) * against;
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        const float strength = 0.07f * (0.057f + 0.19f * fall((-4.2f - log10f(y[CALCIUM + side])) / 0.6f));
        sum += share(side) * strength * square(side == 0 ? y[XR] : y[XS]) * mixed;
    }
    sum += 0.001f * fall(7.488f - v / 5.98f) * against;
    sum += 0.06f * y[SLOW_X] * (y[SLOW_Y] + 0.5f * y[SLOW_R]) * against;
    sum += 0.02f * y[FAST_X] * y[FAST_Y] * against;
    const float opens = 1.02f * fall(0.2385f * (against - 59.215f));
    const float closes = (0.49124f * expf(0.08032f * (against + 5.476f)) + expf(0.06175f * (against - 594.31f))) *
                         fall(-0.5143f * (against + 4.753f));
    return sum + 0.9f * sqrtf(K_OUT / 5.4f) * opens / (opens + closes) * against;
}

__device__ __forceinline__ Currents membrane(const float *y, float *slope) {
    const float v = y[VOLTAGE];
    Currents currents;
    currents.others = potassium_currents(y);
    const float sigma = (expf(NA_OUT / 67.3f) - 1.0f) / 7.0f;
    const float pump = 1.0f / (1.0f + 0.1245f * expf(-0.1f * v * F_OVER_RT) + 0.0365f * sigma * expf(-v * F_OVER_RT));
    const float open = y[D] * y[F] * 0.45f;
    float channels = 0.0f, pumps = 0.0f, exchangers = 0.0f, leaks = 0.0f;
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        const float na = y[SODIUM + side];
        const float ca = y[CALCIUM + side];
        const float na_against = v - logf(NA_OUT / na) / F_OVER_RT;
        const float ca_against = v - logf(CA_OUT / ca) / (2.0f * F_OVER_RT);
        const float fast = share(side) * (16.0f * cube(y[M]) * y[H] * y[J] + 2.97e-4f) * na_against;
        const float square_ratio = square(11.0f / na);
        const float na_pump = share(side) * 1.90719f * pump * K_OUT / (1.0f + square(square_ratio)) / (K_OUT + 1.5f);
        const float through = channel_share(side) * open * (1.0f - y[BOUND + side]);
        const float channel = through * 5.4e-4f * driven(2.0f, v, 0.341f * ca, 0.341f * CA_OUT);
        const float na_channel = through * 1.5e-8f * driven(1.0f, v, 0.75f * na, 0.75f * NA_OUT);
        currents.others += through * 2.7e-7f * driven(1.0f, v, 0.75f * y[POTASSIUM], 0.75f * K_OUT);

        const float forward = expf(0.35f * v * F_OVER_RT) * cube(na) * CA_OUT;
        const float back = expf(-0.65f * v * F_OVER_RT);
        const float load = 3.59e-3f * cube(NA_OUT) * (1.0f + cube(na / 12.29f)) + cube(87.5f) * ca +
                           cube(12.29f) * CA_OUT * (1.0f + ca / 3.59e-3f) + (1.3f + CA_OUT) * cube(na) +
                           cube(NA_OUT) * ca;
        const float exchanger = share(side) * 9.0f / (1.0f + cube(2.56e-4f / ca)) *
                                (forward - back * cube(NA_OUT) * ca) / (load * (1.0f + 0.27f * back));
        const float power = powf(ca, 1.6f);
        const float ca_pump = share(side) * 0.0673f * power / (powf(5e-4f, 1.6f) + power);
        const float leak = share(side) * 2.513e-4f * ca_against;

        currents.sodium[side] = fast + 3.0f * exchanger + 3.0f * na_pump + na_channel;
        currents.calcium[side] = channel + leak + ca_pump - 2.0f * exchanger;
        const float chloride = share(side) * 0.109625f / (1.0f + 0.1f / ca) * (v + logf(10.0f) / F_OVER_RT);
        currents.others += chloride - 2.0f * na_pump;
        channels += channel;
        pumps += ca_pump;
        exchangers += exchanger;
        leaks += leak;
    }
    currents.others += 9e-3f * (v + logf(10.0f) / F_OVER_RT);
    constexpr float scale = 1e3f * CHARGE / (2.0f * PLASMA);
    slope[SUM_CHANNEL] = -channels * scale;
    slope[SUM_PUMP] = -pumps * scale;
    slope[SUM_EXCHANGER] = 2.0f * exchangers * scale;
    slope[SUM_LEAK] = -leaks * scale;
    return currents;
}

// What binds calcium and sodium, the store that releases calcium, and concentrations.
__device__ __forceinline__ void concentrations(const float *y, const Currents &currents, float *slope) {
    const float gate = 15.0f - 14.0f / (1.0f + powf(0.45f / y[STORE], 2.5f));
    const float opening = 10.0f / gate * square(y[CALCIUM]);
    const float closing = 0.5f * gate * y[CALCIUM];
    const float rest = 1.0f - y[RESTING] - y[OPEN] - y[INACTIVE];
    const float to_open = opening * y[RESTING] - 0.06f * y[OPEN];
    const float to_inactive = closing * y[OPEN] - 0.005f * y[INACTIVE];
    slope[RESTING] = 0.005f * rest - closing * y[RESTING] - to_open;
    slope[OPEN] = to_open - to_inactive;
    slope[INACTIVE] = to_inactive - 0.06f * y[INACTIVE] + opening * rest;
    const float release = 25.0f * y[OPEN] * (y[STORE] - y[CALCIUM]);
    const float leak = 5.348e-6f * (y[STORE] - y[CALCIUM]);
    const float in = powf(y[CALCIUM_CELL] / 2.46e-4f, 1.787f);
    const float out = powf(y[STORE] / 1.7f, 1.787f);
    const float pumped = 2.86e-4f * (in - out) / (1.0f + in + out);

    const float cell = y[CALCIUM_CELL];
    const float troponin = 0.14f - y[TROPONIN_CA] - y[TROPONIN_MG];
    const float myosin = 0.14f - y[MYOSIN_CA] - y[MYOSIN_MG];
    slope[TROPONIN_LOW] = binding(32.7f, cell, 0.07f - y[TROPONIN_LOW], 0.0196f, y[TROPONIN_LOW]);
    slope[TROPONIN_CA] = binding(2.37f, cell, troponin, 3.2e-5f, y[TROPONIN_CA]);
    slope[TROPONIN_MG] = binding(0.003f, MG, troponin, 0.00333f, y[TROPONIN_MG]);
    slope[MYOSIN_CA] = binding(13.8f, cell, myosin, 4.6e-4f, y[MYOSIN_CA]);
    slope[MYOSIN_MG] = binding(0.0157f, MG, myosin, 5.7e-5f, y[MYOSIN_MG]);
    slope[STORE_BUFFER] = binding(100.0f, cell, 0.0171f - y[STORE_BUFFER], 0.06f, y[STORE_BUFFER]);
    const float bound = slope[TROPONIN_LOW] + slope[TROPONIN_CA] + slope[TROPONIN_MG] + slope[MYOSIN_CA] +
                        slope[MYOSIN_MG] + slope[STORE_BUFFER];
    slope[CALSEQUESTRIN] = binding(100.0f, y[STORE], 2.7f - y[CALSEQUESTRIN], 65.0f, y[CALSEQUESTRIN]);
    slope[STORE] = (pumped - leak) * (PLASMA / RETICULUM) - release - slope[CALSEQUESTRIN];

    constexpr float na_sites[2] = {7.561f, 1.65f};
    constexpr float low_sites[2] = {4.6e-4f * PLASMA / space(0), 0.0374f * PLASMA / space(1)};
    constexpr float high_sites[2] = {1.65e-4f * PLASMA / space(0), 0.01335f * PLASMA / space(1)};
#pragma unroll
    for (int side = 0; side < 2; ++side) {
        const float na = y[SODIUM + side];
        const float ca = y[CALCIUM + side];
        slope[NA_BUFFER + side] = binding(1e-4f, na, na_sites[side] - y[NA_BUFFER + side], 1e-3f, y[NA_BUFFER + side]);
        slope[LOW_BUFFER + side] =
            binding(100.0f, ca, low_sites[side] - y[LOW_BUFFER + side], 1.3f, y[LOW_BUFFER + side]);
        slope[HIGH_BUFFER + side] =
            binding(100.0f, ca, high_sites[side] - y[HIGH_BUFFER + side], 0.03f, y[HIGH_BUFFER + side]);
        slope[SODIUM + side] = -currents.sodium[side] * CHARGE / space(side) +
                               SODIUM_FLOW / space(side) * (y[SODIUM + 1 - side] - na) - slope[NA_BUFFER + side];
        slope[CALCIUM + side] = -currents.calcium[side] * CHARGE / (2.0f * space(side)) +
                                CALCIUM_FLOW / space(side) * (y[CALCIUM + 1 - side] - ca) - slope[LOW_BUFFER + side] -
                                slope[HIGH_BUFFER + side];
    }
    slope[SODIUM + 1] += SODIUM_FLOW_CELL / space(1) * (y[SODIUM_CELL] - y[SODIUM + 1]);
    slope[CALCIUM] += release * (RETICULUM / space(0)) + leak * (PLASMA / space(0));
    slope[CALCIUM + 1] += CALCIUM_FLOW_CELL / space(1) * (cell - y[CALCIUM + 1]);
    slope[SODIUM_CELL] = SODIUM_FLOW_CELL / PLASMA * (y[SODIUM + 1] - y[SODIUM_CELL]);
    slope[POTASSIUM] = 0.0f;
    slope[CALCIUM_CELL] = -pumped - bound + CALCIUM_FLOW_CELL / PLASMA * (y[CALCIUM + 1] - cell);
}

// Calmodulin with none, two or four calcium ions, free (0 to 2), buffered (3 to 5), on a kinase (6 to 10) and on
// calcineurin (11 to 14). Returns the calcium that the cell gains, in micromoles a millisecond.
__device__ __forceinline__ float calmodulin(const float *y, float calcium, const float *totals, float k, float mg,
                                            float *slope) {
    const float kd2 = mg <= 1.0f ? 0.0025f * (1.0f + k / 0.94f - mg / 0.012f) * (1.0f + k / 8.1f + mg / 0.022f)
                                 : 0.0025f * (1.0f + k / 0.94f - 1.0f / 0.012f + (mg - 1.0f) / 0.06f) *
                                       (1.0f + k / 8.1f + 1.0f / 0.022f + (mg - 1.0f) / 0.068f);
    const float kd4 = mg <= 1.0f ? 0.128f * (1.0f + k / 0.64f + mg / 0.0014f) * (1.0f + k / 13.0f - mg / 0.153f)
                                 : 0.128f * (1.0f + k / 0.64f + 1.0f / 0.0014f + (mg - 1.0f) / 0.005f) *
                                       (1.0f + k / 13.0f - 1.0f / 0.153f + (mg - 1.0f) / 0.15f);
    const float squared = square(calcium);
    const float on2 = 10.0f / kd2 * squared;
    const float on4 = 500.0f / kd4 * squared;
    const float to2 = on2 * y[0] - 10.0f * y[1];
    const float to4 = on4 * y[1] - 500.0f * y[2];

    const float buffer = totals[1] - y[3] - y[4] - y[5];
    const float buffered2 = on2 * y[3] - 0.1f * y[4];
    const float buffered4 = on4 * y[4] - 500.0f * y[5];
    const float bind0 = 0.007f * y[0] * buffer - 0.0014f * y[3];
    const float bind2 = 0.007f * y[1] * buffer - 1.4e-5f * y[4];
    const float bind4 = 0.007f * y[2] * buffer - 1.4e-5f * y[5];

    const float calcineurin = totals[3] - y[11] - y[12] - y[13] - y[14];
    const float activate = 2.0f * squared * calcineurin - y[11];
    const float on_enzyme2 = on2 * y[12] - 10.0f / 165.0f * y[13];
    const float on_enzyme4 = on4 * y[13] - 10.0f / 2508.0f * y[14];
    const float join0 = 46.0f * y[0] * y[11] - 0.0013f * 2508.0f * 165.0f * y[12];
    const float join2 = 46.0f * y[1] * y[11] - 0.0013f * 2508.0f * y[13];
    const float join4 = 46.0f * y[2] * y[11] - 0.0013f * y[14];

    const float idle = 1.0f - y[6] - y[7] - y[8] - y[9] - y[10];
    const float kinase = totals[2];
    const float rate = 2.2f / 0.0335f;
    const float wake2 = rate * y[1] * idle - 5.0f * rate * y[6];
    const float wake4 = rate * y[2] * idle - 2.2f * y[7];
    const float fill = on4 * y[6] - 3.35f * y[7];
    const float active = y[7] + y[8] + y[9] + y[10];
    const float phosphatase = 1.72f * totals[4];
    const float phosphorylate = active * (0.055f + active * (0.0074f + active * 0.015f)) * y[7] -
                                phosphatase * y[8] / (11.5f + kinase * y[8]);
    const float empty = 0.00335f * y[8] - on4 * y[9];
    const float release4 = 0.0022f * y[8] - rate * y[2] * y[10];
    const float release2 = 5.0f * rate * y[9] - rate * y[1] * y[10];
    const float revert2 = phosphatase * y[9] / (11.5f + kinase * y[9]);
    const float revert = phosphatase * y[10] / (11.5f + kinase * y[10]);

    slope[0] = 1e-3f * (-to2 - bind0 - join0);
    slope[1] = 1e-3f * (to2 - to4 - bind2 - join2 + kinase * (release2 - wake2));
    slope[2] = 1e-3f * (to4 - bind4 - join4 + kinase * (release4 - wake4));
    slope[3] = 1e-3f * (bind0 - buffered2);
    slope[4] = 1e-3f * (buffered2 + bind2 - buffered4);
    slope[5] = 1e-3f * (buffered4 + bind4);
    slope[6] = 1e-3f * (wake2 - fill + revert2);
    slope[7] = 1e-3f * (wake4 + fill - phosphorylate);
    slope[8] = 1e-3f * (phosphorylate - release4 - empty);
    slope[9] = 1e-3f * (empty - release2 - revert2);
    slope[10] = 1e-3f * (release4 + release2 - revert);
    slope[11] = 1e-3f * (activate - join0 - join2 - join4);
    slope[12] = 1e-3f * (join0 - on_enzyme2);
    slope[13] = 1e-3f * (join2 + on_enzyme2 - on_enzyme4);
    slope[14] = 1e-3f * (join4 + on_enzyme4);
    return 2e-3f * (kinase * (empty - fill) - (to2 + to4 + buffered2 + buffered4 + activate + on_enzyme2 + on_enzyme4));
}

// Calmodulin that moves between its compartments.
__device__ __forceinline__ void exchange_calmodulin(const float *y, const float *parameters, float *slope) {
    const float *near = y + CALMODULIN;
    const float *below = near + CALMODULIN_STATES;
    const float *cell = below + CALMODULIN_STATES;
    float *change = slope + CALMODULIN;
    const float total = near[0] + near[1] + near[2] + near[3] + near[4] + near[5] +
                        parameters[3] * (near[6] + near[7] + near[8] + near[9]) + near[12] + near[13] + near[14];
    const float sites = parameters[2] - total;
    for (int ions = 0; ions < 3; ++ions) {
        const float moved = 1e-3f * ((ions == 0 ? 0.0014f : 1.4e-5f) * near[ions] - 0.007f * sites * below[ions]);
        const float onward = 8.587e-15f * (below[ions] - cell[ions]);
        change[ions] -= moved;
        change[CALMODULIN_STATES + ions] += moved * (1.779e-14f / 6.6013e-13f) - onward / 6.6013e-13f;
        change[2 * CALMODULIN_STATES + ions] += onward / 2.1454e-11f;
    }
}

// The cell's own 46 equations.
__device__ __forceinline__ void cell_slopes(float time, const float *y, const float *parameters, float *slope) {
    gates(y, slope);
    const Currents currents = membrane(y, slope);
    concentrations(y, currents, slope);
    slope[21] = 0.0f;
    slope[40] = 0.0f;
    slope[41] = 0.0f;
    const float paced = fmodf(time, parameters[0]) <= 5.0f ? 9.5f : 0.0f;
    slope[VOLTAGE] = paced - currents.others - currents.sodium[0] - currents.sodium[1] - currents.calcium[0] -
                     currents.calcium[1];
}

__device__ __forceinline__ float calmodulin_slopes(int place, const float *y, const float *parameters, float *slope) {
    const int first = CALMODULIN + CALMODULIN_STATES * place;
    return calmodulin(y + first, 1e3f * y[CALCIUM + place], parameters + 1 + 5 * place, parameters[16], parameters[17],
                      slope + first);
}

__device__ __forceinline__ void slopes(float time, const float *y, const float *parameters, float *slope) {
    cell_slopes(time, y, parameters, slope);
#pragma unroll
    for (int place = 0; place < 3; ++place) {
        slope[CALCIUM + place] += 1e-3f * calmodulin_slopes(place, y, parameters, slope);
    }
    exchange_calmodulin(y, parameters, slope);
    for (int i = 0; i < EQUATIONS; ++i) {
        if (!isfinite(slope[i])) {
            slope[i] = 1e-4f;
        }
    }
}

// One evaluation, for a solver on the host: a block for the cell, one for calmodulin, one thread of each.
extern "C" __global__ void myocyte_slopes(float time, const float *y, float *slope, const float *parameters,
                                          float *gained) {
    if (threadIdx.x != 0) {
        return;
    }
    if (blockIdx.x == 0) {
        cell_slopes(time, y, parameters, slope);
    } else {
#pragma unroll
        for (int place = 0; place < 3; ++place) {
            gained[place] = calmodulin_slopes(place, y, parameters, slope);
        }
    }
}

// The state at a stage, by Fehlberg's coefficients of earlier slopes and of time. All of them are immediates.
template <int STAGE>
__device__ __forceinline__ float begin_stage(float step, const float *y, const float *slopes, float *state) {
    constexpr float of_slopes[STAGES][STAGES - 1] = {
        {},
        {2.0f / 27},
        {1.0f / 36, 1.0f / 12},
        {1.0f / 24, 0, 1.0f / 8},
        {5.0f / 12, 0, -25.0f / 16, 25.0f / 16},
        {1.0f / 20, 0, 0, 1.0f / 4, 1.0f / 5},
        {-25.0f / 108, 0, 0, 125.0f / 108, -65.0f / 27, 125.0f / 54},
        {31.0f / 300, 0, 0, 0, 61.0f / 225, -2.0f / 9, 13.0f / 900},
        {2, 0, 0, -53.0f / 6, 704.0f / 45, -107.0f / 9, 67.0f / 90, 3},
        {-91.0f / 108, 0, 0, 23.0f / 108, -976.0f / 135, 311.0f / 54, -19.0f / 60, 17.0f / 6, -1.0f / 12},
        {2383.0f / 4100, 0, 0, -341.0f / 164, 4496.0f / 1025, -301.0f / 82, 2133.0f / 4100, 45.0f / 82, 45.0f / 164,
         18.0f / 41},
        {3.0f / 205, 0, 0, 0, 0, -6.0f / 41, -3.0f / 205, -3.0f / 41, 3.0f / 41, 6.0f / 41},
        {-1777.0f / 4100, 0, 0, -341.0f / 164, 4496.0f / 1025, -289.0f / 82, 2193.0f / 4100, 51.0f / 82, 33.0f / 164,
         12.0f / 41, 0, 1},
    };
    constexpr float of_time[STAGES] = {0, 2.0f / 27, 1.0f / 9, 1.0f / 6, 5.0f / 12, 1.0f / 2, 5.0f / 6,
                                       1.0f / 6, 2.0f / 3, 1.0f / 3, 1, 0, 1};
    for (int i = 0; i < EQUATIONS; ++i) {
        float sum = 0.0f;
#pragma unroll
        for (int earlier = 0; earlier < STAGE; ++earlier) {
            if (of_slopes[STAGE][earlier] != 0.0f) {
                sum += of_slopes[STAGE][earlier] * slopes[earlier * EQUATIONS + i];
            }
        }
        state[i] = y[i] + step * sum;
    }
    return of_time[STAGE] * step;
}

// One step from `y` to `next`, with the estimated error of each equation.
__device__ __forceinline__ void fehlberg(float time, float step, const float *y, float *next, const float *parameters,
                                         float *errors, float *state, float *slopes_of_stages) {
    for (int stage = 0; stage < STAGES; ++stage) {
        float later = 0.0f;
        switch (stage) {
        case 0: later = begin_stage<0>(step, y, slopes_of_stages, state); break;
        case 1: later = begin_stage<1>(step, y, slopes_of_stages, state); break;
        case 2: later = begin_stage<2>(step, y, slopes_of_stages, state); break;
        case 3: later = begin_stage<3>(step, y, slopes_of_stages, state); break;
        case 4: later = begin_stage<4>(step, y, slopes_of_stages, state); break;
        case 5: later = begin_stage<5>(step, y, slopes_of_stages, state); break;
        case 6: later = begin_stage<6>(step, y, slopes_of_stages, state); break;
        case 7: later = begin_stage<7>(step, y, slopes_of_stages, state); break;
        case 8: later = begin_stage<8>(step, y, slopes_of_stages, state); break;
        case 9: later = begin_stage<9>(step, y, slopes_of_stages, state); break;
        case 10: later = begin_stage<10>(step, y, slopes_of_stages, state); break;
        case 11: later = begin_stage<11>(step, y, slopes_of_stages, state); break;
        default: later = begin_stage<12>(step, y, slopes_of_stages, state); break;
        }
        slopes(time + later, state, parameters, slopes_of_stages + stage * EQUATIONS);
    }
    for (int i = 0; i < EQUATIONS; ++i) {
        const float *k = slopes_of_stages + i;
        const float ends = k[0] + k[10 * EQUATIONS];
        next[i] = y[i] + step * (41.0f / 840 * ends + 34.0f / 105 * k[5 * EQUATIONS] +
                                 9.0f / 35 * (k[6 * EQUATIONS] + k[7 * EQUATIONS]) +
                                 9.0f / 280 * (k[8 * EQUATIONS] + k[9 * EQUATIONS]));
        errors[i] = fabsf(41.0f / 840 * (ends - k[11 * EQUATIONS] - k[12 * EQUATIONS]));
    }
}

// `steps` adaptive steps of each cell; values has the states after each, steps + 1 times 91 of a cell.
extern "C" __global__ void myocyte_solve(int cells, int steps, float *times, float *values, const float *parameters,
                                         float *errors, float *states, float *stages) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= cells) {
        return;
    }
    const float tolerance = 10.0f / steps;
    float *own_errors = errors + cell * EQUATIONS;
    for (int k = 1; k <= steps; ++k) {
        const float *y = values + (cell * (steps + 1) + k - 1) * EQUATIONS;
        float *next = values + (cell * (steps + 1) + k) * EQUATIONS;
        float step = 1.0f;
        for (int attempt = 0; attempt < ATTEMPTS; ++attempt) {
            fehlberg(k, step, y, next, parameters + cell * PARAMETERS, own_errors, states + cell * EQUATIONS,
                     stages + cell * STAGES * EQUATIONS);
            float scale = 4.0f;
            bool outside = false;
            for (int i = 0; i < EQUATIONS; ++i) {
                const float error = own_errors[i];
                const float allowed = tolerance * (y[i] == 0.0f ? tolerance : fabsf(y[i]));
                if (error > 0.0f) {
                    scale = fminf(scale, 0.8f * powf(allowed / error, 1.0f / 7));
                }
                outside |= error > allowed;
            }
            if (!outside) {
                break;
            }
            step = fminf(step * fmaxf(scale, 0.125f), 0.9f);
        }
        times[cell * (steps + 1) + k] = k + step;
    }
}
