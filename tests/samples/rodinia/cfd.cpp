// Euler's equations on an unstructured grid by finite volumes: one step of three Runge-Kutta stages, in double.
#include "tests/samples/reference.h"

#include <array>

namespace {

constexpr double gamma = 1.4, smoothing = 0.2;
constexpr int faces = 4, stages = 3;
using Vector = std::array<double, 3>;
using State = std::array<double, 5>; // density, momentum in three directions, energy

// Mach 1.2 along x: density 1.4 and pressure 1 give a speed of sound of 1.
constexpr State free_stream{1.4, 1.4 * 1.2, 0, 0, 1.0 / (gamma - 1) + 0.5 * 1.4 * 1.2 * 1.2};

double dot(const Vector& a, const Vector& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

Vector velocity(const State& s) {
  return {s[1] / s[0], s[2] / s[0], s[3] / s[0]};
}
double speed(const State& s) {
  return std::sqrt(dot(velocity(s), velocity(s)));
}
double pressure(const State& s) {
  return (gamma - 1) * (s[4] - 0.5 * s[0] * speed(s) * speed(s));
}
double sound(const State& s) {
  return std::sqrt(gamma * pressure(s) / s[0]);
}

// Flow through a face with this normal: mass, momentum with pressure, energy with the work of pressure.
State flow(const State& s, const Vector& normal) {
  const double rate = dot(velocity(s), normal), p = pressure(s);
  return {s[0] * rate, s[1] * rate + p * normal[0], s[2] * rate + p * normal[1], s[3] * rate + p * normal[2],
          (s[4] + p) * rate};
}

struct Grid {
  int64_t elements;
  std::span<const int32_t> neighbours;
  std::span<const float> normals;
};

State flux(const Grid& grid, const std::vector<State>& states, int64_t element) {
  const State& own = states[element];
  State total{};
  for (int face = 0; face < faces; ++face) {
    const int32_t neighbour = grid.neighbours[element + face * grid.elements];
    Vector normal;
    for (int axis = 0; axis < 3; ++axis)
      normal[axis] = grid.normals[element + (face + axis * faces) * grid.elements];
    if (neighbour == -1) { // a wall: only pressure
      for (int axis = 0; axis < 3; ++axis)
        total[1 + axis] += pressure(own) * normal[axis];
      continue;
    }
    const State& other = neighbour == -2 ? free_stream : states[neighbour];
    const State out = flow(own, normal), in = flow(other, normal);
    const double area = std::sqrt(dot(normal, normal));
    const double damping =
        neighbour == -2 ? 0 : 0.5 * smoothing * area * (speed(own) + speed(other) + sound(own) + sound(other));
    for (int k = 0; k < 5; ++k)
      total[k] += 0.5 * (out[k] + in[k]) - damping * (own[k] - other[k]);
  }
  return total;
}

} // namespace

REFERENCE(cfd) {
  const Grid grid{data.value("elements"), data.s32("neighbours"), data.f32("normals")};
  auto areas = data.f32("areas"), variables = data.f32("variables"), fluxes = data.f32("fluxes");
  auto step_factors = data.f32("step_factors");
  std::vector<State> states(grid.elements, free_stream), changes(grid.elements);
  std::vector<double> steps(grid.elements);
  for (int64_t element = 0; element < grid.elements; ++element)
    steps[element] = 0.5 / (std::sqrt(areas[element]) * (speed(free_stream) + sound(free_stream)));

  for (int stage = 1; stage <= stages; ++stage) {
    for (int64_t element = 0; element < grid.elements; ++element)
      changes[element] = flux(grid, states, element);
    for (int64_t element = 0; element < grid.elements; ++element)
      for (int k = 0; k < 5; ++k)
        states[element][k] = free_stream[k] + steps[element] / (stages + 1 - stage) * changes[element][k];
  }

  for (int64_t element = 0; element < grid.elements; ++element) {
    step_factors[element] = static_cast<float>(steps[element]);
    for (int k = 0; k < 5; ++k) {
      variables[element + k * grid.elements] = static_cast<float>(states[element][k]);
      fluxes[element + k * grid.elements] = static_cast<float>(changes[element][k]);
    }
  }
  // The kernel's float sums of a dozen flows of either sign, each up to about 3.
  data.tolerate("step_factors", {.relative = 1e-6});
  data.tolerate("variables", {.absolute = 2e-6});
  data.tolerate("fluxes", {.absolute = 4e-6});
}
