// Ray tracing in double precision: light that a surface reflects diffusely, and the light that its mirror component
// reflects, by recursion.
#include "tests/samples/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

namespace {

struct Vector {
  double x, y, z;
};

Vector operator+(Vector a, Vector b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
Vector operator-(Vector a, Vector b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
Vector operator*(double f, Vector a) {
  return {f * a.x, f * a.y, f * a.z};
}
double dot(Vector a, Vector b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
double length(Vector a) {
  return std::sqrt(dot(a, a));
}

struct Sphere {
  float x, y, z, radius, red, green, blue, mirror;
  Vector middle() const { return {x, y, z}; }
};

struct Scene {
  std::span<const Sphere> spheres;
  Vector light;
};

struct Hit {
  double distance = std::numeric_limits<double>::infinity();
  const Sphere* sphere = nullptr;
};

// The nearest sphere, by the smaller root of |from + t along - middle| = radius.
Hit nearest_sphere(const Scene& scene, Vector from, Vector along) {
  Hit nearest;
  for (const Sphere& sphere : scene.spheres) {
    const Vector offset = from - sphere.middle();
    const double half = dot(offset, along);
    const double squared_radius = double{sphere.radius} * sphere.radius;
    const double discriminant = half * half - dot(offset, offset) + squared_radius;
    if (discriminant <= 0.05 * squared_radius) continue; // grazing
    const double distance = -half - std::sqrt(discriminant);
    if (distance > 0.001 && distance < nearest.distance) nearest = {distance, &sphere};
  }
  return nearest;
}

Vector colour(const Scene& scene, Vector from, Vector along, double weight, int bounces) {
  if (bounces == 0 || weight < 0.01) return {0, 0, 0};
  Hit hit = nearest_sphere(scene, from, along);
  const double to_floor = along.y < 0 ? -from.y / along.y : std::numeric_limits<double>::infinity();
  if (to_floor <= hit.distance) hit = {to_floor, nullptr};
  if (std::isinf(hit.distance)) {
    const double haze = 1 - std::abs(along.y);
    return {0.3 + 0.4 * haze, 0.5 + 0.3 * haze, 0.9};
  }

  const Vector place = from + hit.distance * along;
  const auto off_whole = [](double x) { return std::abs(x - std::nearbyint(x)); };
  const double stripes = off_whole(place.x) + off_whole(place.z);
  const double grey = 0.5 + (0.7 * stripes - 0.35) / (1 + 0.1 * hit.distance * hit.distance);
  Vector normal = {0, 1, 0};
  Vector surface = {grey, grey, grey};
  double mirror = 0;
  if (hit.sphere != nullptr) {
    normal = (1 / double{hit.sphere->radius}) * (place - hit.sphere->middle());
    surface = {hit.sphere->red, hit.sphere->green, hit.sphere->blue};
    mirror = hit.sphere->mirror;
  }
  const Vector to_light = scene.light - place;
  const Vector towards = (1 / length(to_light)) * to_light;
  const bool lit = nearest_sphere(scene, place, towards).distance >= length(to_light);
  const double brightness = 0.15 + (lit ? 0.85 * std::max(0.0, dot(normal, towards)) : 0);
  const Vector reflected = along - 2 * dot(along, normal) * normal;
  return (1 - mirror) * brightness * surface + mirror * colour(scene, place, reflected, weight * mirror, bounces - 1);
}

} // namespace

REFERENCE(ray) {
  const int width = data.value("width");
  const int height = data.value("height");
  const Vector eye = {data.number("eye_x"), data.number("eye_y"), data.number("eye_z")};
  const Vector light = {data.number("light_x"), data.number("light_y"), data.number("light_z")};
  const Scene scene = {data.as<const Sphere>("spheres"), light};
  const auto image = data.as<std::array<float, 4>>("image");

  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      Vector along = {(2.0 * x + 1 - width) / height, (height - 2.0 * y - 1) / height, 1.5};
      along = (1 / length(along)) * along;
      const Vector seen = colour(scene, eye, along, 1, 3);
      image[y * width + x] = {float(seen.x), float(seen.y), float(seen.z), 0};
    }
  }

  // Far along a ray, and more after a mirror, positions in single precision are off by about 1e-5.
  data.tolerate("image", {.absolute = 2e-3});
}
