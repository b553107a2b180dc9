// Set A: the diffusion coefficients of Rodinia's srad_v1 with the benchmark's constants, which are of double precision
// where the sample's are of single: half of the computation is in double, also divisions. The rest is the sample's.
// Written for this project.

#define srad_coefficients srad_coefficients_of_sample
#include "samples/srad_v1/srad_v1.cu"
#undef srad_coefficients

extern "C" __global__ void srad_coefficients(int rows, int columns, const int *north_of, const int *south_of,
                                             const int *east_of, const int *west_of, float *north, float *south,
                                             float *east, float *west, const float *speckle, float *coefficients,
                                             const float *image) {
    const int pixel = blockIdx.x * THREADS + threadIdx.x;
    int row = (pixel + 1) % rows - 1;
    int column = (pixel + 1) / rows;
    if ((pixel + 1) % rows == 0) {
        row = rows - 1;
        --column;
    }
    if (pixel >= rows * columns) {
        return;
    }
    const float here = image[pixel];
    const float to_north = image[north_of[row] + rows * column] - here;
    const float to_south = image[south_of[row] + rows * column] - here;
    const float to_west = image[row + rows * west_of[column]] - here;
    const float to_east = image[row + rows * east_of[column]] - here;

    const float gradient_squared =
        (to_north * to_north + to_south * to_south + to_west * to_west + to_east * to_east) / (here * here);
    const float laplacian = (to_north + to_south + to_west + to_east) / here;
    const float numerator = 0.5 * gradient_squared - 1.0 / 16.0 * (laplacian * laplacian);
    const float denominator = 1 + 0.25 * laplacian;
    const float variation = numerator / (denominator * denominator);
    const float excess = (variation - *speckle) / (*speckle * (1 + *speckle));
    float coefficient = 1.0 / (1.0 + excess);
    if (coefficient < 0) {
        coefficient = 0;
    } else if (coefficient > 1) {
        coefficient = 1;
    }

    north[pixel] = to_north;
    south[pixel] = to_south;
    west[pixel] = to_west;
    east[pixel] = to_east;
    coefficients[pixel] = coefficient;
}
