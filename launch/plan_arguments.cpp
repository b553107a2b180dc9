// Kernel parameters of a plan.
#include "launch/plan_builder.h"
#include "launch/scalar_bytes.h"
#include "launch/signature.h"
#include "support/text/near_names.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::launch {

namespace {

constexpr unsigned max_nesting = 32;

std::vector<std::string> argument_kinds() {
  std::vector<std::string> kinds = {"buffer", "texture", "tensor_map", "bytes", "struct", "pred"};
  for (ir::ScalarType type : plain_types())
    kinds.emplace_back(spelling(type));
  return kinds;
}

} // namespace

std::optional<Argument> PlanBuilder::read_argument(const Node& node, const std::string& what) {
  if (!node.is(NodeKind::table)) {
    scope_.error(node.range, what + ": expected a table like { s32 = 5 } or { buffer = \"a\" }, not " +
                                 std::string(describe(node.kind)));
    return std::nullopt;
  }
  static const std::vector<std::string> kinds = argument_kinds();
  const Member* kind = nullptr;
  for (const Member& member : node.members) {
    if (member.key == "offset" || member.key == "index") continue;
    if (std::ranges::find(kinds, member.key) == kinds.end()) {
      scope_.error(member.key_range,
                   what + ": '" + member.key + "' is no kind of argument" + near_names(member.key, kinds));
      return std::nullopt;
    }
    if (kind) {
      scope_.error(member.key_range,
                   what + ": one argument has one kind, not both " + kind->key + " and " + member.key);
      return std::nullopt;
    }
    kind = &member;
  }
  if (!kind) {
    scope_.error(node.range, what + ": expected a kind of argument, like { s32 = 5 } or { buffer = \"a\" }");
    return std::nullopt;
  }
  for (const char* modifier : {"offset", "index"})
    if (const Node* found = node.find(modifier); found && kind->key != "buffer") {
      scope_.error(found->range, what + ": " + modifier + " is for buffers");
      return std::nullopt;
    }
  std::optional<Argument> argument;
  if (kind->key == "buffer") {
    argument = read_buffer_argument(node, what);
  } else if (kind->key == "texture") {
    argument = read_texture_argument(kind->value, what);
  } else if (kind->key == "tensor_map") {
    argument = read_tensor_map_argument(kind->value, what);
  } else if (kind->key == "bytes") {
    argument = read_raw_bytes(kind->value, what);
  } else if (kind->key == "struct") {
    argument = read_structure(kind->value, what);
  } else if (kind->key == "pred") {
    if (std::optional<bool> flag = flag_of(kind->value, what + ".pred"))
      argument = Argument{Argument::Kind::bytes, ir::ScalarType::b8, {std::byte{*flag}}};
  } else {
    argument = read_scalar(*ir::parse_type(kind->key), kind->value, what);
  }
  if (argument) argument->range = node.range;
  return argument;
}

std::optional<Argument> PlanBuilder::read_scalar(ir::ScalarType type, const Node& node, const std::string& what) {
  Argument argument;
  argument.type = type;
  const size_t size = byte_width(type);
  std::span<const Node> items(&node, 1);
  if (node.is(NodeKind::array)) items = node.items;
  if (items.empty() || items.size() * size > max_parameter_bytes) {
    scope_.error(node.range, what + ": expected 1 to " + std::to_string(max_parameter_bytes / size) + " numbers");
    return std::nullopt;
  }
  argument.bytes.resize(items.size() * size);
  for (size_t i = 0; i < items.size(); ++i) {
    std::optional<Number> value = scope_.number(items[i], what);
    if (!value) return std::nullopt;
    if (std::string wrong = encode(type, *value, argument.bytes.data() + i * size); !wrong.empty()) {
      scope_.error(items[i].range, what + ": " + wrong);
      return std::nullopt;
    }
  }
  return argument;
}

std::optional<Argument> PlanBuilder::read_raw_bytes(const Node& node, const std::string& what) {
  if (!node.is(NodeKind::array)) {
    scope_.error(node.range, what + ".bytes: expected an array of numbers from 0 to 255");
    return std::nullopt;
  }
  std::optional<Argument> argument = read_scalar(ir::ScalarType::u8, node, what + ".bytes");
  if (argument) argument->type = ir::ScalarType::none;
  return argument;
}

std::optional<Argument> PlanBuilder::read_structure(const Node& node, const std::string& what) {
  if (!node.is(NodeKind::array) || node.items.empty()) {
    scope_.error(node.range, what + ": expected an array of arguments: the members in their order");
    return std::nullopt;
  }
  if (std::ranges::count(what, '[') > static_cast<long>(max_nesting)) {
    scope_.error(node.range, what + ": structs are nested too deeply");
    return std::nullopt;
  }
  Argument argument;
  argument.kind = Argument::Kind::structure;
  argument.range = node.range;
  for (size_t i = 0; i < node.items.size(); ++i) {
    std::optional<Argument> member = read_argument(node.items[i], what + "[" + std::to_string(i) + "]");
    if (!member) return std::nullopt;
    argument.members.push_back(*std::move(member));
  }
  return argument;
}

std::optional<uint32_t> PlanBuilder::buffer_index(const Node& node, const std::string& what) {
  std::optional<std::string> name = text_of(node, what);
  if (!name) return std::nullopt;
  std::vector<std::string> known;
  for (size_t i = 0; i < plan_.buffers.size(); ++i) {
    if (plan_.buffers[i].name == *name) return static_cast<uint32_t>(i);
    known.push_back(plan_.buffers[i].name);
  }
  scope_.error(node.range, what + ": there is no buffer '" + *name + "'" + near_names(*name, known));
  return std::nullopt;
}

std::optional<Argument> PlanBuilder::read_buffer_argument(const Node& table, const std::string& what) {
  const Node* name = table.find("buffer");
  const Node* index = table.find("index");
  if (name->is(NodeKind::array)) {
    if (name->items.empty() || !index) {
      scope_.error(name->range, what + ": of several buffers, index says which: { buffer = [\"a\", \"b\"], index = "
                                       "\"t % 2\" }");
      return std::nullopt;
    }
    // Names that this trip does not select are checked, too.
    for (const Node& item : name->items)
      if (!buffer_index(item, what + ".buffer")) return std::nullopt;
    auto chosen = scope_.integer(*index, what + ".index", 0, Int128(name->items.size()) - 1);
    if (!chosen) return std::nullopt;
    name = &name->items[static_cast<size_t>(*chosen)];
  } else if (index) {
    scope_.error(index->range, what + ".index chooses among several buffers; here is one");
    return std::nullopt;
  }
  std::optional<uint32_t> found = buffer_index(*name, what + ".buffer");
  if (!found) return std::nullopt;
  Argument argument;
  argument.kind = Argument::Kind::buffer;
  argument.index = *found;
  const Buffer& buffer = plan_.buffers[*found];
  if (const Node* offset = table.find("offset"); offset && buffer.count > 0) {
    // C allows the address one past the end.
    auto elements = scope_.integer(*offset, what + ".offset", 0, Int128(buffer.count));
    if (!elements) return std::nullopt;
    argument.offset = static_cast<uint64_t>(*elements) * buffer.element_bytes();
  }
  return argument;
}

std::optional<Argument> PlanBuilder::read_texture_argument(const Node& node, const std::string& what) {
  std::optional<std::string> name = text_of(node, what + ".texture");
  if (!name) return std::nullopt;
  std::vector<std::string> known;
  for (size_t i = 0; i < plan_.textures.size(); ++i) {
    if (plan_.textures[i].name == *name) {
      Argument argument;
      argument.kind = Argument::Kind::texture;
      argument.index = static_cast<uint32_t>(i);
      return argument;
    }
    known.push_back(plan_.textures[i].name);
  }
  scope_.error(node.range, what + ": there is no texture '" + *name + "'" + near_names(*name, known));
  return std::nullopt;
}

} // namespace ptxrewrite::launch
