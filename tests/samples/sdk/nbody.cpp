// Newton's law over all pairs of bodies, softened, and one step of Euler's method, in double precision.
#include "tests/samples/reference.h"

#include <cmath>
#include <vector>

REFERENCE(nbody) {
  struct Body {
    float x, y, z, mass;
  };
  const auto bodies = data.as<Body>("positions");
  const auto velocities = data.as<Body>("velocities");
  const auto new_positions = data.as<Body>("new_positions");
  const double softening_squared = data.number("softening_squared");
  const double step = data.number("step");

  for (std::size_t i = 0; i < bodies.size(); ++i) {
    double pull[3] = {};
    for (const Body& other : bodies) {
      const double away[3] = {double{other.x} - bodies[i].x, double{other.y} - bodies[i].y,
                              double{other.z} - bodies[i].z};
      const double squared = away[0] * away[0] + away[1] * away[1] + away[2] * away[2] + softening_squared;
      for (int axis = 0; axis < 3; ++axis) {
        pull[axis] += other.mass * away[axis] / (squared * std::sqrt(squared));
      }
    }
    const double velocity[3] = {velocities[i].x + step * pull[0], velocities[i].y + step * pull[1],
                                velocities[i].z + step * pull[2]};
    velocities[i] = {float(velocity[0]), float(velocity[1]), float(velocity[2]), velocities[i].mass};
    new_positions[i] = {float(bodies[i].x + step * velocity[0]), float(bodies[i].y + step * velocity[1]),
                        float(bodies[i].z + step * velocity[2]), bodies[i].mass};
  }

  // An approximate reciprocal root and a rounding for every pair; both results stay near 1.
  data.tolerate("velocities", {.absolute = 1e-6});
  data.tolerate("new_positions", {.absolute = 1e-6});
}
