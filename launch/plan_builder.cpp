// The data of a plan: PTX file, buffers, module variables, textures.
#include "launch/plan_builder.h"

#include "launch/scalar_bytes.h"
#include "support/packed_file.h"
#include "support/text/near_names.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>

namespace ptxrewrite::launch {

void PlanBuilder::build(const std::string& target) {
  if (const Node* about = root_.find("about")) plan_.about = about->text;
  choose_ptx(target);
  if (const Node* heap = root_.find("heap"))
    if (std::optional<Int128> bytes = scope_.integer(*heap, "heap", 0, max_heap_bytes))
      plan_.heap_bytes = static_cast<uint64_t>(*bytes);
  read_buffers();
  read_textures();
  read_variables(ir::StateSpace::constant, "constant");
  read_variables(ir::StateSpace::global, "global");
  read_launches();
}

std::string PlanBuilder::path_of(const std::string& name) const {
  std::filesystem::path path(name);
  return path.is_absolute() || folder_.empty() ? name : (std::filesystem::path(folder_) / path).string();
}

void PlanBuilder::choose_ptx(const std::string& target) {
  const Node* ptx = root_.find("ptx");
  if (!ptx) return scope_.error({}, "ptx is missing: the file with the kernels, like ptx = \"kernel.ptx\"");
  const Node* chosen = ptx;
  if (ptx->is(NodeKind::table)) {
    if (ptx->members.empty()) return scope_.error(ptx->range, "ptx: expected at least one target");
    chosen = target.empty() ? &ptx->members.front().value : ptx->find(target);
    std::vector<std::string> known;
    for (const Member& member : ptx->members)
      known.push_back(member.key);
    if (!chosen) return scope_.error(ptx->range, "ptx: there is none for '" + target + "'" + near_names(target, known));
  }
  if (std::optional<std::string> text = text_of(*chosen, "ptx")) plan_.ptx = path_of(*text);
  plan_.ptx_range = chosen->range;
}

std::optional<std::string> PlanBuilder::text_of(const Node& node, const std::string& what) {
  if (node.is(NodeKind::text) && !node.text.empty()) return node.text;
  scope_.error(node.range,
               what + ": expected a string" +
                   (node.is(NodeKind::text) ? " that is not empty" : ", not " + std::string(describe(node.kind))));
  return std::nullopt;
}

std::optional<bool> PlanBuilder::flag_of(const Node& node, const std::string& what) {
  if (node.is(NodeKind::boolean)) return node.boolean;
  scope_.error(node.range, what + ": expected true or false, not " + std::string(describe(node.kind)));
  return std::nullopt;
}

// The index of the key's word among the choices; 0 if the key is missing.
size_t PlanBuilder::choice_of(const Node& table, const char* key, const std::string& what,
                              std::span<const std::string_view> choices) {
  const Node* node = table.find(key);
  if (!node) return 0;
  std::string list;
  for (size_t i = 0; i < choices.size(); ++i) {
    const std::string_view choice = choices[i];
    if (node->is(NodeKind::text) && node->text == choice) return i;
    list += (i ? ", " : "") + ('"' + std::string(choice) + '"');
  }
  scope_.error(node->range, what + "." + key + ": expected one of " + list);
  return 0;
}

void PlanBuilder::limit_memory(const Buffer& buffer) {
  const bool fitted = memory_ <= max_buffer_bytes;
  memory_ += buffer.bytes();
  if (fitted && memory_ > max_buffer_bytes)
    scope_.error(buffer.range, "with this, the buffers take " + std::to_string(memory_) + " bytes; the limit is " +
                                   std::to_string(max_buffer_bytes));
}

bool PlanBuilder::read_type(const Node& table, const std::string& what, ir::ScalarType& type) {
  const Node* node = table.find("type");
  if (!node) {
    scope_.error(table.range, what + ": type is missing; expected one of " + plain_type_names());
    return false;
  }
  std::optional<ir::ScalarType> parsed =
      node->is(NodeKind::text) ? ir::parse_type(node->text) : std::optional<ir::ScalarType>();
  if (!parsed || !is_plain_type(*parsed)) {
    scope_.error(node->range, what + ".type: expected one of " + plain_type_names());
    return false;
  }
  type = *parsed;
  return true;
}

bool PlanBuilder::read_values(const Node& node, const std::string& what, Buffer& buffer) {
  if (!node.is(NodeKind::array) || node.items.empty()) {
    scope_.error(node.range, what + ".values: expected an array of numbers");
    return false;
  }
  std::array<std::byte, 8> scratch;
  for (size_t i = 0; i < node.items.size(); ++i) {
    const std::string element = what + ".values[" + std::to_string(i) + "]";
    std::optional<Number> value = scope_.number(node.items[i], element);
    if (!value) return false;
    if (std::string wrong = encode(buffer.type, *value, scratch.data()); !wrong.empty()) {
      scope_.error(node.items[i].range, element + ": " + wrong);
      return false;
    }
    buffer.contents.values.push_back(*value);
  }
  return true;
}

bool PlanBuilder::read_file(const Node& node, const std::string& what, const Buffer& buffer, std::string& path) {
  std::optional<std::string> name = text_of(node, what);
  if (!name) return false;
  path = path_of(*name);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    scope_.error(node.range, what + ": there is no file " + path);
    return false;
  }
  Result<uint64_t> size = unpacked_size(path);
  if (!size) {
    scope_.error(node.range, what + ": " + size.error().message);
    return false;
  }
  if (*size >= buffer.bytes()) return true;
  scope_.error(node.range, what + ": " + path + " has " + std::to_string(*size) + " bytes; " +
                               std::to_string(buffer.count) + " elements of " + std::string(spelling(buffer.type)) +
                               " take " + std::to_string(buffer.bytes()));
  return false;
}

// Errors in a formula usually occur at the first or last element.
void PlanBuilder::check_first_and_last(const Node& table, const std::string& what, const Buffer& buffer) {
  std::array<std::byte, 8> scratch;
  for (uint64_t index : {uint64_t{0}, buffer.count - 1}) {
    Result<Number> value = buffer.contents.formula->evaluate({index, buffer.count, buffer.type});
    std::string wrong = value ? encode(buffer.type, *value, scratch.data()) : value.error().message;
    if (wrong.empty()) continue;
    scope_.error(table.find("init")->range, what + ".init, element " + std::to_string(index) + ": " + wrong);
    return;
  }
}

bool PlanBuilder::read_contents(const Node& table, const std::string& what, Buffer& buffer) {
  const Node* init = table.find("init");
  const Node* values = table.find("values");
  const Node* file = table.find("file");
  if ((init != nullptr) + (values != nullptr) + (file != nullptr) > 1) {
    scope_.error((values ? values : file)->range, what + ": expected one of init, values and file, not several");
    return false;
  }
  if (values && !read_values(*values, what, buffer)) return false;
  if (const Node* count = table.find("count")) {
    auto limit = static_cast<Int128>(max_buffer_bytes / buffer.element_bytes());
    std::optional<Int128> number = scope_.integer(*count, what + ".count", 1, limit);
    if (!number) return false;
    buffer.count = static_cast<uint64_t>(*number);
    if (values && buffer.count != buffer.contents.values.size()) {
      scope_.error(count->range, what + ".count is " + std::to_string(buffer.count) + ", but values has " +
                                     std::to_string(buffer.contents.values.size()));
      return false;
    }
  } else if (values) {
    buffer.count = buffer.contents.values.size();
  } else {
    scope_.error(table.range, what + ": count is missing: how many elements");
    return false;
  }
  limit_memory(buffer);
  if (const Node* expected = table.find("expected"))
    if (!read_file(*expected, what + ".expected", buffer, buffer.expected)) return false;
  if (file) return read_file(*file, what + ".file", buffer, buffer.contents.file);
  if (init) {
    buffer.contents.formula = scope_.formula(*init, what + ".init");
    if (!buffer.contents.formula) return false;
    check_first_and_last(table, what, buffer);
  }
  return true;
}

void PlanBuilder::read_comparison(const Node& table, const std::string& what, Buffer& buffer) {
  if (const Node* output = table.find("output")) buffer.output = flag_of(*output, what + ".output").value_or(false);
  if (const Node* atomics = table.find("atomics"))
    buffer.any_order = flag_of(*atomics, what + ".atomics").value_or(false);
  const Node* tolerance = table.find("tolerance");
  if (!tolerance) return;
  auto read_bound = [&](const Node& node, const std::string& name, double& out) {
    std::optional<Number> bound = scope_.number(node, name);
    if (bound && !(bound->as_double() >= 0))
      scope_.error(node.range, name + ": expected a number that is not negative");
    else if (bound)
      out = bound->as_double();
  };
  if (!tolerance->is(NodeKind::table)) {
    read_bound(*tolerance, what + ".tolerance", buffer.tolerance.absolute);
    return;
  }
  static const std::vector<std::string> keys = {"absolute", "relative"};
  for (const Member& member : tolerance->members) {
    if (member.key == keys[0])
      read_bound(member.value, what + ".tolerance.absolute", buffer.tolerance.absolute);
    else if (member.key == keys[1])
      read_bound(member.value, what + ".tolerance.relative", buffer.tolerance.relative);
    else
      scope_.error(member.key_range, "'" + member.key + "' is no key of a tolerance" + near_names(member.key, keys));
  }
}

bool PlanBuilder::read_data(const Node& table, const std::string& what, Buffer& buffer) {
  buffer.range = table.range;
  read_comparison(table, what, buffer);
  if (const Node* address = table.find("address"))
    if (auto value = scope_.integer(*address, what + ".address", 1, Int128(1) << 56))
      buffer.address = static_cast<uint64_t>(*value);
  return read_type(table, what, buffer.type) && read_contents(table, what, buffer);
}

void PlanBuilder::read_buffers() {
  const Node* tables = root_.find("buffer");
  if (!tables) return;
  for (const Member& member : tables->members) {
    Buffer buffer;
    buffer.name = member.key;
    read_data(member.value, "buffer." + member.key, buffer);
    // Kept even if it is invalid, so that launches may name it.
    plan_.buffers.push_back(std::move(buffer));
  }
}

void PlanBuilder::read_variables(ir::StateSpace space, const char* section) {
  const Node* tables = root_.find(section);
  if (!tables) return;
  for (const Member& member : tables->members) {
    ModuleVariable variable;
    variable.space = space;
    variable.data.name = member.key;
    variable.data.range = member.value.range;
    const std::string what = section + ("." + member.key);
    if (const Node* value = member.value.find("value")) {
      for (const Member& other : member.value.members)
        if (other.key != "value") scope_.error(other.key_range, what + ": value stands alone");
      variable.value = read_structure(*value, what + ".value");
    } else {
      read_data(member.value, what, variable.data);
    }
    plan_.variables.push_back(std::move(variable));
  }
}

void PlanBuilder::read_textures() {
  const Node* tables = root_.find("texture");
  if (!tables) return;
  for (const Member& member : tables->members) {
    Texture texture;
    texture.name = member.key;
    texture.range = member.value.range;
    read_texture(member.value, "texture." + member.key, texture);
    plan_.textures.push_back(std::move(texture));
  }
}

void PlanBuilder::read_texture(const Node& table, const std::string& what, Texture& texture) {
  const Node* buffer = table.find("buffer");
  if (!buffer) return scope_.error(table.range, what + ": buffer is missing: what the texture shows");
  std::optional<uint32_t> index = buffer_index(*buffer, what + ".buffer");
  if (!index) return;
  texture.buffer = *index;
  // One-dimensional textures over memory have at most 2^28 texels on today's GPUs.
  auto read_extent = [&](const char* key, Int128 least, uint64_t& out) {
    if (const Node* node = table.find(key))
      if (auto value = scope_.integer(*node, what + "." + key, least, 1 << 28)) out = static_cast<uint64_t>(*value);
  };
  if (!table.find("width")) return scope_.error(table.range, what + ": width is missing");
  read_extent("width", 1, texture.width);
  read_extent("height", 0, texture.height);
  read_extent("depth", 0, texture.depth);
  if (const Node* channels = table.find("channels"))
    if (auto value = scope_.integer(*channels, what + ".channels", 1, 4)) {
      texture.channels = static_cast<uint32_t>(*value);
      if (texture.channels == 3) scope_.error(channels->range, what + ".channels: expected 1, 2 or 4");
    }
  if (const Node* pitch = table.find("pitch"))
    if (auto value = scope_.integer(*pitch, what + ".pitch", 1, max_buffer_bytes)) {
      texture.pitch = static_cast<uint64_t>(*value) * plan_.buffers[texture.buffer].element_bytes();
      if (static_cast<uint64_t>(*value) < texture.width * texture.channels)
        scope_.error(pitch->range,
                     what + ".pitch: a row has " + std::to_string(texture.width * texture.channels) + " elements");
    }
  if (const Node* layered = table.find("layered"))
    texture.layered = flag_of(*layered, what + ".layered").value_or(false);
  if (const Node* normalised = table.find("normalised"))
    texture.normalised_coordinates = flag_of(*normalised, what + ".normalised").value_or(false);
  constexpr AddressMode address_modes[] = {AddressMode::clamp, AddressMode::wrap, AddressMode::mirror,
                                           AddressMode::border};
  texture.address = address_modes[choice_of(table, "address", what, {"clamp", "wrap", "mirror", "border"})];
  texture.filter = choice_of(table, "filter", what, {"nearest", "linear"}) ? FilterMode::linear : FilterMode::nearest;
  if (const Node* offset = table.find("offset"))
    if (auto value = scope_.integer(*offset, what + ".offset", 0, max_buffer_bytes))
      texture.offset = static_cast<uint64_t>(*value) * plan_.buffers[texture.buffer].element_bytes();
  if (const Node* handle = table.find("handle"))
    if (auto value = scope_.integer(*handle, what + ".handle", 1, Int128(1) << 63))
      texture.handle = static_cast<uint64_t>(*value);
  read_levels(table, what, texture);
  texture.normalised_float = choice_of(table, "read", what, {"element", "normalised_float"}) != 0;
  texture.is_linear = choice_of(table, "layout", what, {"array", "linear"}) != 0;
  check_texture(table, what, texture);
}

void PlanBuilder::read_levels(const Node& table, const std::string& what, Texture& texture) {
  const uint64_t longest = std::max({texture.width, texture.height, texture.layered ? 0 : texture.depth});
  if (const Node* levels = table.find("levels"))
    if (auto value = scope_.integer(*levels, what + ".levels", 1, std::bit_width(longest)))
      texture.levels.count = static_cast<uint32_t>(*value);
  for (const char* key : {"level_filter", "level_bias", "least_level", "most_level"})
    if (const Node* node = table.find(key); node && texture.levels.count == 1)
      return scope_.error(node->range, what + "." + key + ": is for textures with levels");
  texture.levels.filter =
      choice_of(table, "level_filter", what, {"nearest", "linear"}) ? FilterMode::linear : FilterMode::nearest;
  texture.levels.most = static_cast<float>(texture.levels.count - 1);
  auto read_level = [&](const char* key, float& out) {
    if (const Node* node = table.find(key))
      if (auto value = scope_.number(*node, what + "." + key)) out = static_cast<float>(value->as_double());
  };
  read_level("level_bias", texture.levels.bias);
  read_level("least_level", texture.levels.least);
  read_level("most_level", texture.levels.most);
  if (texture.levels.count > 1 && texture.pitch)
    scope_.error(table.range, what + ": a texture with levels has no pitch");
}

// Elements of the buffer that the texture shows, from its first texel to its last.
static Int128 elements_of(const Texture& texture, size_t element_bytes) {
  Int128 sum = 0;
  for (uint32_t level = 0; level < texture.levels.count; ++level) {
    const LevelExtents extents = extents_of_level(texture, level);
    const Int128 row = Int128(extents.width) * texture.channels;
    const Int128 distance = texture.pitch ? Int128(texture.pitch / element_bytes) : row;
    sum += (Int128(extents.rows) * extents.planes - 1) * distance + row;
  }
  return sum;
}

void PlanBuilder::check_texture(const Node& table, const std::string& what, const Texture& texture) {
  const Buffer& buffer = plan_.buffers[texture.buffer];
  if (buffer.count == 0) return; // diagnosed
  const bool wraps = texture.address == AddressMode::wrap || texture.address == AddressMode::mirror;
  if (wraps && !texture.normalised_coordinates)
    scope_.error(table.range, what + ": wrap and mirror are for normalised coordinates");
  if (bit_width(buffer.type) == 64) scope_.error(table.range, what + ": elements of a texture have at most 32 bits");
  if (texture.normalised_float && (is_float(buffer.type) || bit_width(buffer.type) > 16))
    scope_.error(table.range, what + ".read: normalised_float is for integers of 8 and 16 bits");
  if (texture.filter == FilterMode::linear && !is_float(buffer.type) && !texture.normalised_float)
    scope_.error(table.range, what + ".filter: linear filtering gives fractions, so integers need read = "
                                     "\"normalised_float\"");
  // Extents are at most 2^28 each: the product does not overflow.
  const Int128 needed = Int128(texture.offset / buffer.element_bytes()) + elements_of(texture, buffer.element_bytes());
  if (needed > Int128(buffer.count))
    scope_.error(table.range, what + ": needs " + to_string(needed) + " elements; buffer '" + buffer.name + "' has " +
                                  std::to_string(buffer.count));
}

} // namespace ptxrewrite::launch
