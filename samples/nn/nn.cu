// Distance of every record to a point on the map, the data-parallel step of a nearest-neighbour search.
// Stands for nn of Rodinia (R2D2, RegLess).
// Written for this project from the algorithm. Blocks of 256 threads in a two-dimensional grid, one record a thread:
// little more than an index, a bounds check and two loads from an array of pairs.

struct Place {
    float latitude;
    float longitude;
};

extern "C" __global__ void nn_distance(const Place *places, float *distances, int records, float latitude,
                                       float longitude) {
    const int block = gridDim.x * blockIdx.y + blockIdx.x;
    const int record = blockDim.x * block + threadIdx.x;
    if (record < records) {
        const Place place = places[record];
        const float north = latitude - place.latitude;
        const float east = longitude - place.longitude;
        distances[record] = sqrtf(north * north + east * east);
    }
}
