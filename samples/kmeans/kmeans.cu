// One round of k-means clustering: turns the table of points around, then finds each point's nearest centre.
// Stands for kmeans of Rodinia (R2D2, DAC, RegLess).
// Written for this project from the algorithm. Blocks of 256 threads in a two-dimensional grid, one thread a point;
// after the turn neighbouring threads read neighbouring words of a feature, and all threads read the same centre.

// From one row a point to one row a feature.
extern "C" __global__ void kmeans_transpose(const float *by_point, float *by_feature, int points, int features) {
    const int point = blockIdx.x * blockDim.x + threadIdx.x;
    if (point < points) {
        for (int feature = 0; feature < features; ++feature) {
            by_feature[feature * points + point] = by_point[point * features + feature];
        }
    }
}

// membership[point] = the centre at the least squared distance, the first of several.
extern "C" __global__ void kmeans_assign(const float *by_feature, const float *__restrict__ centres, int *membership,
                                         int points, int features, int clusters) {
    const int block = gridDim.x * blockIdx.y + blockIdx.x;
    const int point = block * blockDim.x + threadIdx.x;
    if (point >= points) {
        return;
    }
    int nearest = -1;
    float least = 3.402823466e+38f;
    for (int cluster = 0; cluster < clusters; ++cluster) {
        float squared = 0.0f;
        for (int feature = 0; feature < features; ++feature) {
            const float difference = by_feature[feature * points + point] - centres[cluster * features + feature];
            squared += difference * difference;
        }
        if (squared < least) {
            least = squared;
            nearest = cluster;
        }
    }
    membership[point] = nearest;
}
