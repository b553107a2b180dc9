// Sorts floats: distributes them to 1024 buckets of about equal size, then sorts the buckets by merging vectors of
// four. Stands for hybridsort of Rodinia (RegLess).
// Written for this project from the algorithm. The benchmark's host computes pivots and bucket addresses between the
// kernels; here the launch file knows them, because the keys are a permutation of evenly spaced numbers. The benchmark
// counts in shared memory by repeating a tagged store until its own tag remains, which a warp in lock-step allows; here
// it is a loop of compare-and-swap, with the same conflicts between lanes. Blocks of one warp count and scatter; a
// thread merges two runs of four-vectors with compare-exchange networks, so lanes of a warp diverge by their data.

constexpr int BUCKETS = 1024;
constexpr int BUCKET_BITS = 10;
constexpr int HISTOGRAM_WARPS = 3;

__constant__ int first_vector[BUCKETS + 1]; // of each bucket, in units of four keys
__constant__ int first_key[BUCKETS + 1];    // of each bucket in the sorted list
__constant__ int padding[BUCKETS];          // zeros at the head of each bucket when it is sorted

// The number of earlier keys with the same counter.
__device__ __forceinline__ unsigned take_number(unsigned *counter) {
    unsigned seen = *(volatile unsigned *)counter;
    while (true) {
        const unsigned found = atomicCAS(counter, seen, seen + 1);
        if (found == seen) {
            return seen;
        }
        seen = found;
    }
}

// How many keys are in each of 1024 equal intervals, from which the benchmark's host derives the pivots.
extern "C" __global__ void hs_histogram(unsigned *result, const float *keys, float least, float greatest, int count) {
    __shared__ unsigned counters[HISTOGRAM_WARPS * BUCKETS];
    unsigned *own = counters + (threadIdx.x >> 5) * BUCKETS;
    for (int i = threadIdx.x; i < HISTOGRAM_WARPS * BUCKETS; i += blockDim.x) {
        counters[i] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x) {
        const unsigned interval = (keys[i] - least) / (greatest - least) * BUCKETS;
        take_number(own + (interval & (BUCKETS - 1)));
    }
    __syncthreads();
    for (int i = threadIdx.x; i < BUCKETS; i += blockDim.x) {
        unsigned sum = 0;
        for (int warp = 0; warp < HISTOGRAM_WARPS; ++warp) {
            sum += counters[warp * BUCKETS + i];
        }
        atomicAdd(result + i, sum);
    }
}

// Finds each key's bucket by bisection of the pivots, and its number among the block's keys of this bucket.
extern "C" __global__ void hs_count(const float *keys, int *places, unsigned *block_counts,
                                    const float *__restrict__ pivots, int count) {
    __shared__ unsigned counters[BUCKETS];
    for (int i = threadIdx.x; i < BUCKETS; i += blockDim.x) {
        counters[i] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x) {
        const float key = keys[i];
        int bucket = BUCKETS / 2 - 1;
        float pivot = pivots[bucket];
        for (int step = BUCKETS / 4; step >= 1; step /= 2) {
            bucket = key < pivot ? bucket - step : bucket + step;
            pivot = pivots[bucket];
        }
        bucket = key < pivot ? bucket : bucket + 1;
        places[i] = (take_number(counters + bucket) << BUCKET_BITS) + bucket;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < BUCKETS; i += blockDim.x) {
        block_counts[blockIdx.x * BUCKETS + i] = counters[i];
    }
}

// One thread a bucket: counts of blocks become sums over the blocks before.
extern "C" __global__ void hs_prefix(unsigned *block_counts, unsigned *bucket_sizes, int blocks) {
    const int bucket = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0;
    for (int i = bucket; i < blocks * BUCKETS; i += BUCKETS) {
        const unsigned here = block_counts[i];
        block_counts[i] = sum;
        sum += here;
    }
    bucket_sizes[bucket] = sum;
}

// Moves the keys to their buckets.
extern "C" __global__ void hs_scatter(const float *keys, const int *places, float *distributed, int count,
                                      const unsigned *block_sums, const unsigned *bucket_starts) {
    __shared__ unsigned starts[BUCKETS];
    for (int i = threadIdx.x; i < BUCKETS; i += blockDim.x) {
        starts[i] = bucket_starts[i] + block_sums[blockIdx.x * BUCKETS + i];
    }
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x) {
        const int place = places[i];
        distributed[starts[place & (BUCKETS - 1)] + (place >> BUCKET_BITS)] = keys[i];
    }
}

__device__ __forceinline__ void exchange(float &low, float &high) {
    const float smaller = high < low ? high : low;
    const float larger = high < low ? low : high;
    low = smaller;
    high = larger;
}

__device__ __forceinline__ float4 sorted(float4 v) {
    exchange(v.x, v.y);
    exchange(v.z, v.w);
    exchange(v.x, v.z);
    exchange(v.y, v.w);
    exchange(v.y, v.z);
    return v;
}

// The four least of eight go to `low`, the others to `high`; both sorted before and after.
__device__ __forceinline__ void merge(float4 &low, float4 &high) {
    exchange(low.x, high.w);
    exchange(low.y, high.z);
    exchange(low.z, high.y);
    exchange(low.w, high.x);
    low = sorted(low);
    high = sorted(high);
}

extern "C" __global__ void hs_sort_four(const float4 *__restrict__ unsorted, float4 *result, int vectors) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < vectors) {
        result[i] = sorted(unsorted[i]);
    }
}

// Merges neighbouring runs of `length / 2` vectors in each bucket; `threads` of them work on a bucket.
extern "C" __global__ void hs_merge(const float4 *__restrict__ runs, float4 *result, int length, int threads) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int bucket = thread / threads;
    if (bucket >= BUCKETS) {
        return;
    }
    const int end = first_vector[bucket + 1];
    const int first = first_vector[bucket] + (thread - bucket * threads) * length;
    const int second = first + length / 2;
    if (first >= end) {
        return;
    }
    float4 *out = result + first;
    if (second >= end) {
        for (int i = 0; i < end - first; ++i) {
            out[i] = runs[first + i];
        }
        return;
    }

    int in_first = 0;
    int in_second = 0;
    int written = 0;
    float4 low = runs[first];
    float4 high = runs[second];
    while (true) {
        // Both candidates are loaded before the exchanges, which hide their latency.
        const float4 next_first = runs[first + in_first + 1];
        const float4 next_second = runs[second + in_second + 1];
        merge(low, high);
        out[written++] = low;

        const bool more_first = in_first + 1 < length / 2;
        const bool more_second = in_second + 1 < length / 2 && second + in_second + 1 < end;
        if (more_first && (!more_second || next_first.x < next_second.x)) {
            ++in_first;
            low = next_first;
        } else if (more_second) {
            ++in_second;
            low = next_second;
        } else {
            break;
        }
    }
    out[written] = high;
}

// Drops the zeros that fill up the buckets.
extern "C" __global__ void hs_pack(const float *padded, float *packed) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int bucket = blockIdx.y;
    if (first_key[bucket] + i < first_key[bucket + 1]) {
        packed[first_key[bucket] + i] = padded[first_vector[bucket] * 4 + padding[bucket] + i];
    }
}
