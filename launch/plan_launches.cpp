// The launches of a plan: dimensions, loops, further shapes.
#include "launch/plan_builder.h"
#include "support/text/near_names.h"

#include <algorithm>
#include <set>

namespace ptxrewrite::launch {

namespace {
constexpr uint64_t max_trips = 4 * max_launches; // of all loops, even without launches
}

struct PlanBuilder::Repeat {
  const Node* count;
  std::string name;
};

void PlanBuilder::read_launches() {
  launches_ = root_.find("launch");
  if (!launches_ || launches_->items.empty())
    return scope_.error({}, "there is no launch: write [[launch]] with kernel, grid, block and args");
  std::set<std::string> closed_groups;
  for (size_t first = 0; first < launches_->items.size() && !stopped_;) {
    const size_t end = end_of_group(first);
    if (const Node* group = launches_->items[first].find("group"))
      if (!closed_groups.insert(group->text).second)
        scope_.error(group->range, "the launches of group '" + group->text + "' do not follow one another");
    std::vector<Repeat> repeats;
    if (read_repeats(launches_->items[first], repeats)) unroll(repeats, 0, first, end);
    first = end;
  }
}

// Returns the end of the launches from `first` on that repeat together.
size_t PlanBuilder::end_of_group(size_t first) {
  const Node* group = launches_->items[first].find("group");
  if (!group || !text_of(*group, "group")) return first + 1;
  if (!launches_->items[first].find("repeat")) scope_.error(group->range, "the first launch of a group states repeat");
  size_t end = first + 1;
  for (; end < launches_->items.size(); ++end) {
    const Node* other = launches_->items[end].find("group");
    if (!other || other->text != group->text) break;
    if (const Node* repeat = launches_->items[end].find("repeat"))
      scope_.error(repeat->range, "only the first launch of a group states repeat");
  }
  return end;
}

bool PlanBuilder::read_repeats(const Node& launch, std::vector<Repeat>& repeats) {
  const Node* repeat = launch.find("repeat");
  if (!repeat) return true;
  if (!repeat->is(NodeKind::array)) return read_repeat(*repeat, repeats);
  return std::ranges::all_of(repeat->items, [&](const Node& item) { return read_repeat(item, repeats); });
}

bool PlanBuilder::read_repeat(const Node& table, std::vector<Repeat>& repeats) {
  static const std::vector<std::string> keys = {"count", "as"};
  if (!table.is(NodeKind::table) || !table.find("count")) {
    scope_.error(table.range, "repeat: expected a table like { count = \"n-1\", as = \"t\" }");
    return false;
  }
  for (const Member& member : table.members)
    if (std::ranges::find(keys, member.key) == keys.end())
      scope_.error(member.key_range, "'" + member.key + "' is no key of repeat" + near_names(member.key, keys));
  Repeat repeat{table.find("count"), {}};
  if (const Node* name = table.find("as")) {
    std::optional<std::string> text = text_of(*name, "repeat.as");
    if (!text) return false;
    if (auto reason = why_no_name(*text)) {
      scope_.error(name->range, "repeat.as: " + *reason);
      return false;
    }
    repeat.name = *text;
  }
  repeats.push_back(std::move(repeat));
  constexpr size_t max_depth = 16;
  if (repeats.size() <= max_depth) return true;
  scope_.error(table.range, "repeat: at most " + std::to_string(max_depth) + " loops nest");
  return false;
}

void PlanBuilder::unroll(const std::vector<Repeat>& repeats, size_t depth, size_t first, size_t end) {
  if (depth == repeats.size()) {
    for (size_t place = first; place < end && !stopped_; ++place)
      stopped_ = !emit(place);
    return;
  }
  const Repeat& repeat = repeats[depth];
  auto count = scope_.integer(*repeat.count, "repeat.count", 0, max_launches);
  if (!count) {
    stopped_ = true;
    return;
  }
  for (Int128 trip = 0; trip < *count && !stopped_; ++trip) {
    if (++trips_ > max_trips) {
      scope_.error(repeat.count->range, "the loops make more than " + std::to_string(max_trips) + " trips");
      stopped_ = true;
      return;
    }
    if (!repeat.name.empty()) scope_.push(repeat.name, trip);
    unroll(repeats, depth + 1, first, end);
    if (!repeat.name.empty()) scope_.pop();
  }
}

// Adds one launch with the current names; returns false if it has errors or there are too many.
bool PlanBuilder::emit(size_t place) {
  const Node& table = launches_->items[place];
  if (const Node* when = table.find("when")) {
    std::optional<Number> condition = scope_.number(*when, "when");
    if (!condition) return false;
    if (!condition->truth()) return true;
  }
  if (plan_.launches.size() >= max_launches) {
    scope_.error(table.range, "more than " + std::to_string(max_launches) + " launches");
    return false;
  }
  const size_t before = plan_.launches.size();
  read_launch(table, place);
  return plan_.launches.size() != before;
}

bool PlanBuilder::read_dimensions(const Node& node, const std::string& what, const Dim3& limit, Dim3& out) {
  std::span<const Node> items(&node, 1);
  if (node.is(NodeKind::array)) items = node.items;
  if (items.empty() || items.size() > 3) {
    scope_.error(node.range, what + ": expected 1 to 3 dimensions, not " + std::to_string(items.size()));
    return false;
  }
  uint32_t* const parts[] = {&out.x, &out.y, &out.z};
  const uint32_t limits[] = {limit.x, limit.y, limit.z};
  bool ok = true;
  for (size_t i = 0; i < items.size(); ++i) {
    auto value = scope_.integer(items[i], what + "." + "xyz"[i], 1, limits[i]);
    if (value) *parts[i] = static_cast<uint32_t>(*value);
    ok &= value.has_value();
  }
  return ok;
}

// Reads the keys grid, block and shared if present; the others keep their values.
bool PlanBuilder::read_shape(const Node& table, Dim3& grid, Dim3& block, uint32_t& shared) {
  bool ok = true;
  if (const Node* node = table.find("grid")) ok &= read_dimensions(*node, "grid", max_grid, grid = {});
  if (const Node* node = table.find("block")) {
    block = {};
    if (read_dimensions(*node, "block", max_block, block)) {
      if (block.count() > max_block_threads) {
        scope_.error(node->range, "block has " + std::to_string(block.count()) + " threads; at most " +
                                      std::to_string(max_block_threads) + " are possible");
        ok = false;
      }
    } else {
      ok = false;
    }
  }
  if (const Node* node = table.find("shared")) {
    auto bytes = scope_.integer(*node, "shared", 0, max_dynamic_shared);
    if (bytes) shared = static_cast<uint32_t>(*bytes);
    ok &= bytes.has_value();
  }
  return ok;
}

void PlanBuilder::read_launch(const Node& table, size_t place) {
  Launch launch;
  launch.place = static_cast<uint32_t>(place);
  launch.trip = scope_.trip();
  bool ok = true;
  for (const char* key : {"kernel", "grid", "block"})
    if (!table.find(key)) {
      scope_.error(table.range, std::string("launch: ") + key + " is missing");
      ok = false;
    }
  if (!ok) return;
  std::optional<std::string> kernel = text_of(*table.find("kernel"), "kernel");
  if (!kernel) return;
  launch.kernel = *kernel;
  launch.kernel_range = table.find("kernel")->range;
  launch.grid_range = table.find("grid")->range;
  launch.block_range = table.find("block")->range;
  launch.arguments_range = launch.kernel_range;
  ok = read_shape(table, launch.grid, launch.block, launch.dynamic_shared);
  if (const Node* cooperative = table.find("cooperative"))
    launch.cooperative = flag_of(*cooperative, "cooperative").value_or(false);
  if (const Node* cluster = table.find("cluster"))
    ok &= read_dimensions(*cluster, "cluster", max_cluster, launch.cluster.emplace());
  if (const Node* arguments = table.find("args")) {
    launch.arguments_range = arguments->range;
    if (!arguments->is(NodeKind::array)) {
      scope_.error(arguments->range, "args: expected an array, one entry per parameter");
      return;
    }
    for (size_t i = 0; i < arguments->items.size(); ++i) {
      std::optional<Argument> argument = read_argument(arguments->items[i], "args[" + std::to_string(i) + "]");
      ok &= argument.has_value();
      if (argument) launch.arguments.push_back(*std::move(argument));
    }
  }
  if (!ok) return;
  plan_.launches.push_back(std::move(launch));
  if (shaped_.insert(place).second) read_shapes(table, plan_.launches.back());
}

// Shapes are evaluated in the first trip; missing keys are as in the launch.
void PlanBuilder::read_shapes(const Node& table, const Launch& launch) {
  const Node* shapes = table.find("shapes");
  if (!shapes) return;
  if (!shapes->is(NodeKind::array))
    return scope_.error(shapes->range, "shapes: expected an array of tables like { grid = 2, block = 64 }");
  static const std::vector<std::string> keys = {"grid", "block", "shared"};
  for (size_t k = 0; k < shapes->items.size(); ++k) {
    const Node& item = shapes->items[k];
    if (!item.is(NodeKind::table))
      return scope_.error(item.range, "shapes: expected a table like { grid = 2, block = 64 }");
    for (const Member& member : item.members)
      if (std::ranges::find(keys, member.key) == keys.end())
        scope_.error(member.key_range, "'" + member.key + "' is no key of a shape" + near_names(member.key, keys));
    ShapeOverride shape{launch.place, launch.grid, launch.block, launch.dynamic_shared};
    if (!read_shape(item, shape.grid, shape.block, shape.dynamic_shared)) continue;
    if (plan_.shapes.size() <= k) plan_.shapes.resize(k + 1);
    plan_.shapes[k].push_back(shape);
  }
}

} // namespace ptxrewrite::launch
