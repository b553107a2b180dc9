#include "launch/launch_file.h"

#include "launch/plan_builder.h"
#include "launch/scope.h"
#include "support/text/near_names.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

namespace ptxrewrite::launch {

namespace {

// Keys of the tables of a launch file. A section contains tables by name (or, for launches, by kernel or index).
struct TableShape {
  std::string_view what;
  std::vector<std::string> keys;
};

const TableShape& launch_shape() {
  static const TableShape shape{
      "a launch",
      {"kernel", "grid", "block", "shared", "args", "repeat", "group", "when", "shapes", "cooperative", "cluster"}};
  return shape;
}
const TableShape& buffer_shape() {
  static const TableShape shape{
      "a buffer", {"type", "count", "init", "values", "file", "output", "expected", "tolerance", "atomics", "address"}};
  return shape;
}
const TableShape& variable_shape() {
  static const TableShape shape{
      "a module variable",
      {"type", "count", "init", "values", "file", "output", "expected", "tolerance", "atomics", "address", "value"}};
  return shape;
}
const TableShape& texture_shape() {
  static const TableShape shape{"a texture",
                                {"buffer", "width", "height", "depth", "pitch", "channels", "layered", "address",
                                 "filter", "normalised", "read", "layout", "levels", "level_filter", "level_bias",
                                 "least_level", "most_level", "offset", "handle"}};
  return shape;
}

const TableShape* shape_of_section(std::string_view section) {
  if (section == "launch") return &launch_shape();
  if (section == "buffer") return &buffer_shape();
  if (section == "constant" || section == "global") return &variable_shape();
  if (section == "texture") return &texture_shape();
  return nullptr;
}

// At most one of these defines the contents of a buffer: overriding one replaces the others.
constexpr std::string_view content_keys[] = {"init", "values", "file", "value"};

class StructureReader {
public:
  StructureReader(LaunchFile& file, Diagnostics& diagnostics) : file_(file), diagnostics_(diagnostics) {}

  void read() {
    static const std::vector<std::string> keys = {"about",  "ptx",    "default_size", "heap",    "let", "launch",
                                                  "buffer", "global", "constant",     "texture", "size"};
    check_keys(file_.root, {"a launch file", keys});
    read_texts();
    for (std::string_view section : {"buffer", "constant", "global", "texture"})
      check_section(file_.root, section);
    check_launches();
    if (const Node* lets = file_.root.find("let")) expect(*lets, NodeKind::table, "let");
    read_sizes();
  }

private:
  bool expect(const Node& node, NodeKind kind, const std::string& what) {
    if (node.is(kind)) return true;
    diagnostics_.error(node.range, what + ": expected " + std::string(describe(kind)) + ", not " +
                                       std::string(describe(node.kind)));
    return false;
  }

  void check_keys(const Node& table, const TableShape& shape) {
    for (const Member& member : table.members)
      if (std::ranges::find(shape.keys, member.key) == shape.keys.end())
        diagnostics_.error(member.key_range, "'" + member.key + "' is no key of " + std::string(shape.what) +
                                                 near_names(member.key, shape.keys));
  }

  void read_texts() {
    const Node* ptx = file_.root.find("ptx");
    if (ptx && !ptx->is(NodeKind::table)) expect(*ptx, NodeKind::text, "ptx");
    if (ptx && ptx->is(NodeKind::table))
      for (const Member& member : ptx->members)
        expect(member.value, NodeKind::text, "ptx." + member.key);
    if (const Node* about = file_.root.find("about")) expect(*about, NodeKind::text, "about");
    if (const Node* size = file_.root.find("default_size"))
      if (expect(*size, NodeKind::text, "default_size")) file_.default_size = size->text;
  }

  // A table of tables, each with the section's keys.
  void check_section(const Node& parent, std::string_view section) {
    const Node* tables = parent.find(section);
    if (!tables || !expect(*tables, NodeKind::table, std::string(section))) return;
    for (const Member& member : tables->members)
      if (expect(member.value, NodeKind::table, std::string(section) + "." + member.key))
        check_keys(member.value, *shape_of_section(section));
  }

  void check_launches() {
    const Node* launches = file_.root.find("launch");
    if (!launches) return;
    if (launches->is(NodeKind::table)) {
      diagnostics_.error(launches->range, "launch is a list: write [[launch]]");
      return;
    }
    if (!expect(*launches, NodeKind::array, "launch")) return;
    for (const Node& launch : launches->items)
      if (expect(launch, NodeKind::table, "launch")) check_keys(launch, launch_shape());
  }

  void read_sizes() {
    const Node* sizes = file_.root.find("size");
    if (sizes && expect(*sizes, NodeKind::table, "size"))
      for (const Member& size : sizes->members) {
        if (!expect(size.value, NodeKind::table, "size." + size.key)) continue;
        file_.sizes.push_back(size.key);
        for (const Member& member : size.value.members)
          if (member.value.is(NodeKind::table)) check_override(size.value, member);
      }
    if (!file_.default_size.empty() && std::ranges::find(file_.sizes, file_.default_size) == file_.sizes.end())
      diagnostics_.error(file_.root.find("default_size")->range,
                         "there is no size '" + file_.default_size + "'" + near_names(file_.default_size, file_.sizes));
  }

  void check_override(const Node& size, const Member& section) {
    if (section.key == "ptx") return;
    if (shape_of_section(section.key)) return check_section(size, section.key);
    static const std::vector<std::string> sections = {"buffer", "launch", "constant", "global", "texture", "ptx"};
    diagnostics_.error(section.key_range,
                       "'" + section.key + "' is no table of a size" + near_names(section.key, sections));
  }

  LaunchFile& file_;
  Diagnostics& diagnostics_;
};

Node& member_or_new(Node& table, const Member& model, NodeKind kind) {
  if (Node* found = table.find(model.key)) return *found;
  Node node;
  node.kind = kind;
  node.range = model.value.range;
  table.members.push_back({model.key, model.key_range, node});
  return table.members.back().value;
}

// Replaces values by those of one size.
class SizeMerge {
public:
  SizeMerge(Node& root, Diagnostics& diagnostics) : root_(root), diagnostics_(diagnostics) {}

  void merge(const Node& size) {
    for (const Member& member : size.members) {
      if (member.key == "ptx" || member.key == "heap")
        replace(root_, member);
      else if (!member.value.is(NodeKind::table))
        replace(lets(size), member);
      else if (member.key == "launch")
        merge_launches(member.value);
      else
        merge_section(member);
    }
  }

private:
  Node& lets(const Node& size) {
    Member model{"let", size.range, {}};
    model.value.range = size.range;
    return member_or_new(root_, model, NodeKind::table);
  }

  static void replace(Node& table, const Member& member) {
    if (std::ranges::find(content_keys, member.key) != std::end(content_keys))
      std::erase_if(table.members, [](const Member& old) {
        return std::ranges::find(content_keys, old.key) != std::end(content_keys);
      });
    std::erase_if(table.members, [&](const Member& old) { return old.key == member.key; });
    table.members.push_back(member);
  }

  void merge_section(const Member& section) {
    Node* tables = root_.find(section.key);
    std::vector<std::string> known;
    if (tables)
      for (const Member& member : tables->members)
        known.push_back(member.key);
    for (const Member& override_of : section.value.members) {
      Node* table = tables ? tables->find(override_of.key) : nullptr;
      if (!table) {
        diagnostics_.error(override_of.key_range, "there is no " + section.key + " '" + override_of.key + "' above" +
                                                      near_names(override_of.key, known));
        continue;
      }
      for (const Member& member : override_of.value.members)
        replace(*table, member);
    }
  }

  void merge_launches(const Node& section) {
    Node* launches = root_.find("launch");
    for (const Member& override_of : section.members) {
      bool found = false;
      std::vector<std::string> known;
      for (size_t place = 0; launches && place < launches->items.size(); ++place) {
        Node& launch = launches->items[place];
        const Node* kernel = launch.find("kernel");
        if (kernel) known.push_back(kernel->text);
        if (std::to_string(place) != override_of.key && !(kernel && kernel->text == override_of.key)) continue;
        found = true;
        for (const Member& member : override_of.value.members)
          replace(launch, member);
      }
      if (!found)
        diagnostics_.error(override_of.key_range,
                           "no launch above has this kernel or place" + near_names(override_of.key, known));
    }
  }

  Node& root_;
  Diagnostics& diagnostics_;
};

// Names that only sizes define, with a list of these sizes.
std::map<std::string, std::string> names_of_sizes(const Node& root) {
  std::map<std::string, std::string> names;
  if (const Node* sizes = root.find("size"))
    for (const Member& size : sizes->members)
      for (const Member& member : size.value.members)
        if (!member.value.is(NodeKind::table)) {
          std::string& list = names[member.key];
          list += (list.empty() ? "" : ", ") + size.key;
        }
  return names;
}

} // namespace

std::optional<LaunchFile> read_launch_file(const SourceFile& source, Diagnostics& diagnostics) {
  const size_t errors_before = diagnostics.error_count();
  std::optional<Node> root = read_document(source, diagnostics);
  if (!root) return std::nullopt;
  LaunchFile file{source, *std::move(root), {}, {}, std::filesystem::path(source.name()).parent_path().string()};
  StructureReader(file, diagnostics).read();
  if (diagnostics.error_count() != errors_before) return std::nullopt;
  return file;
}

namespace {

// The first requested size that the file has; if it has none of them, the last one requested.
std::string chosen_size(const LaunchFile& file, const std::string& wishes) {
  if (wishes.empty()) return file.default_size;
  std::string size;
  std::istringstream names(wishes);
  while (std::getline(names, size, ','))
    if (std::ranges::find(file.sizes, size) != file.sizes.end()) break;
  return size;
}

} // namespace

std::optional<LaunchPlan> make_plan(const LaunchFile& file, const PlanOptions& options, Diagnostics& diagnostics) {
  const size_t errors_before = diagnostics.error_count();
  const std::string size = chosen_size(file, options.size);
  Node root = file.root;
  if (!size.empty()) {
    const Node* sizes = file.root.find("size");
    const Node* chosen = sizes ? sizes->find(size) : nullptr;
    if (!chosen) {
      diagnostics.error({}, "there is no size '" + size + "'" +
                                (file.sizes.empty() ? "; this launch file has none" : near_names(size, file.sizes)));
      return std::nullopt;
    }
    SizeMerge(root, diagnostics).merge(*chosen);
  }
  Scope scope(root.find("let"), names_of_sizes(file.root), diagnostics);
  scope.check_all();
  LaunchPlan plan;
  plan.source = file.source;
  plan.size = size;
  plan.names = scope.values();
  PlanBuilder(root, file.folder, scope, plan).build(options.target);
  if (diagnostics.error_count() != errors_before) return std::nullopt;
  return plan;
}

} // namespace ptxrewrite::launch
