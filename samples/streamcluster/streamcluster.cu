// What opening a new centre would gain for every point of a clustering: the inner step of online k-median.
// Stands for streamcluster of Rodinia (DAC, RegLess).
// Written for this project from the algorithm. Blocks of 512 threads, one a point, over coordinates that lie one
// dimension after the other; the candidate's coordinates are in dynamic shared memory. Points that would not move
// add to the row of gains that their present centre has in their own part of the work table.

struct Point {
    float weight;
    float cost;       // of being served by its present centre
    long long centre; // a point
};

extern "C" __global__ void streamcluster_gain(int points, int dimensions, long long candidate, const Point *point,
                                              int open_centres, int stride, const float *coordinates, float *work,
                                              const int *table_of_centres, char *moves) {
    extern __shared__ float candidate_coordinates[];
    const int block = gridDim.x * blockIdx.y + blockIdx.x;
    const int index = blockDim.x * block + threadIdx.x;

    if (threadIdx.x == 0) {
        for (int dimension = 0; dimension < dimensions; ++dimension) {
            candidate_coordinates[dimension] = coordinates[dimension * points + candidate];
        }
    }
    __syncthreads();

    if (index < points) {
        float *const row = &work[index * stride];
        float squared = 0.0f;
        for (int dimension = 0; dimension < dimensions; ++dimension) {
            const float difference = coordinates[dimension * points + index] - candidate_coordinates[dimension];
            squared += difference * difference;
        }
        const float new_cost = squared * point[index].weight;
        const float old_cost = point[index].cost;
        if (new_cost < old_cost) {
            moves[index] = 1;
            row[open_centres] = new_cost - old_cost;
        } else {
            row[table_of_centres[point[index].centre]] += old_cost - new_cost;
        }
    }
}
