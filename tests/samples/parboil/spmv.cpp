// The matrix's rows, gathered from their jagged diagonals, times the vector.
#include "tests/samples/reference.h"

REFERENCE(spmv) {
  auto starts = data.s32("diagonal_starts"), lengths = data.s32("group_lengths");
  auto columns = data.s32("columns"), row_numbers = data.s32("row_numbers");
  auto values = data.f32("values"), vector = data.f32("vector"), result = data.f32("result");
  for (int64_t row = 0; row < data.value("rows"); ++row) {
    float sum = 0;
    for (int k = 0; k < lengths[row / 32]; ++k)
      sum = std::fma(values[starts[k] + row], vector[columns[starts[k] + row]], sum);
    result[row_numbers[row]] = sum;
  }
}
