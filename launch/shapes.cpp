#include "launch/shapes.h"

#include <algorithm>

namespace ptxrewrite::launch {

namespace {

using Change = Geometry (*)(Geometry);

// Grids of launches with clusters consist of whole clusters.
Geometry in_whole_clusters(Geometry shape, const Dim3& cluster) {
  const auto rounded = [](uint32_t blocks, uint32_t size, uint32_t most) {
    return size ? std::min((blocks + size - 1) / size, most / size) * size : blocks;
  };
  shape.grid = {rounded(shape.grid.x, cluster.x, max_grid.x), rounded(shape.grid.y, cluster.y, max_grid.y),
                rounded(shape.grid.z, cluster.z, max_grid.z)};
  return shape;
}

Geometry one_block(Geometry shape) {
  shape.grid = {};
  return shape;
}

Geometry fewer_blocks(Geometry shape) {
  shape.grid.x = (shape.grid.x + 1) / 2;
  shape.grid.y = (shape.grid.y + 1) / 2;
  return shape;
}

// Only kernels that check their bounds support it.
Geometry more_blocks(Geometry shape) {
  shape.grid.x = std::min(shape.grid.x + 1, max_grid.x);
  return shape;
}

// The same number of threads in one row.
Geometry flat_block(Geometry shape) {
  shape.block = {static_cast<uint32_t>(shape.block.count()), 1, 1};
  return shape;
}

Geometry two_rows(Geometry shape) {
  if (shape.block.y == 1 && shape.block.x % 2 == 0) shape.block = {shape.block.x / 2, 2, shape.block.z};
  return shape;
}

Geometry two_layers(Geometry shape) {
  if (shape.block.z == 1 && shape.block.x % 2 == 0) shape.block = {shape.block.x / 2, shape.block.y, 2};
  return shape;
}

// The last warp is incomplete.
Geometry partial_warp(Geometry shape) {
  uint32_t& extent = shape.block.x > 1 ? shape.block.x : shape.block.y;
  if (extent > 1) --extent;
  return shape;
}

struct Derivation {
  const char* name;
  bool grid_only;
  Change change;
};
constexpr Derivation derivations[] = {{"one block", true, one_block},
                                      {"fewer blocks", true, fewer_blocks},
                                      {"one more block", true, more_blocks},
                                      {"partial warp", false, partial_warp},
                                      {"block in one row", false, flat_block},
                                      {"block in two rows", false, two_rows},
                                      {"block in two layers", false, two_layers}};

} // namespace

std::vector<LaunchShape> shapes(const LaunchPlan& plan) {
  std::vector<LaunchShape> list;
  auto add = [&list](LaunchShape shape) {
    if (std::ranges::none_of(list, [&](const LaunchShape& old) { return old.launches == shape.launches; }))
      list.push_back(std::move(shape));
  };
  LaunchShape given{"as given"};
  for (const Launch& launch : plan.launches)
    given.launches.push_back({launch.grid, launch.block, launch.dynamic_shared});
  add(given);
  for (size_t k = 0; k < plan.shapes.size(); ++k) {
    LaunchShape listed = given;
    listed.name = "shapes[" + std::to_string(k) + "]";
    for (size_t i = 0; i < plan.launches.size(); ++i)
      for (const ShapeOverride& shape : plan.shapes[k])
        if (shape.place == plan.launches[i].place) listed.launches[i] = {shape.grid, shape.block, shape.dynamic_shared};
    add(std::move(listed));
  }
  for (const Derivation& derivation : derivations) {
    LaunchShape derived = given;
    derived.name = derivation.name;
    derived.derived = true;
    derived.grid_only = derivation.grid_only;
    for (size_t i = 0; i < derived.launches.size(); ++i) {
      derived.launches[i] = derivation.change(derived.launches[i]);
      if (const std::optional<Dim3>& cluster = plan.launches[i].cluster)
        derived.launches[i] = in_whole_clusters(derived.launches[i], *cluster);
    }
    add(std::move(derived));
  }
  return list;
}

LaunchPlan with_shape(const LaunchPlan& plan, const LaunchShape& shape) {
  LaunchPlan changed = plan;
  for (size_t i = 0; i < changed.launches.size() && i < shape.launches.size(); ++i) {
    changed.launches[i].grid = shape.launches[i].grid;
    changed.launches[i].block = shape.launches[i].block;
    changed.launches[i].dynamic_shared = shape.launches[i].dynamic_shared;
  }
  return changed;
}

} // namespace ptxrewrite::launch
