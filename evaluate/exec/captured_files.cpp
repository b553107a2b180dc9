#include "evaluate/exec/captured_files.h"

#include "cuda/context/module.h"
#include "emulator/tensor_copies/tensor_map_object.h"
#include "launch/parameter_use.h"
#include "launch/scalar_bytes.h"
#include "launch/tensor_map_text.h"
#include "support/packed_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

namespace ptxrewrite::evaluate {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

uint64_t word_at(std::span<const std::byte> bytes, size_t at) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
  return word;
}

// A buffer or variable to be written to the files.
struct Kept {
  const launch::Buffer* data = nullptr;
  const char* section = "buffer";
  std::string name;
  ir::ScalarType type = ir::ScalarType::u8;
  std::span<const std::byte> before, after;
  bool is_buffer() const { return section[0] == 'b'; }
};

struct Pointer {
  const Kept* target = nullptr;
  uint64_t offset = 0; // in bytes
};

class LaunchWriter {
public:
  LaunchWriter(const cuda::LaunchCall& call, const LaunchInput& input, const TouchedMemory& touched)
      : call_(call), input_(input), plan_(input.plan), launch_(input.plan.launches.front()) {
    keep(touched);
    choose_types();
    out_.has_addresses = has_addresses();
  }

  Result<CapturedFiles> write() {
    const ir::Module& module = *input_.module;
    add_file("kernel.ptx", std::string(module.source.text()));
    std::string text = fmt::format("about = {}\nptx = \"kernel.ptx\"\n",
                                   quoted(fmt::format("a launch of {}, captured by ptxrewrite exec", launch_.kernel)));
    if (uses_heap(module) && plan_.heap_bytes) text += fmt::format("heap = {}\n", *plan_.heap_bytes);
    text += launch_text();
    for (const Kept& kept : kept_)
      text += data_text(kept);
    for (const launch::Texture& texture : textures_)
      text += texture_text(texture);
    add_file("launch.toml", std::move(text));
    if (!status_) return status_.error();
    return std::move(out_);
  }

private:
  void add_file(std::string name, std::string bytes) { out_.files.push_back({std::move(name), std::move(bytes)}); }

  void keep(const TouchedMemory& touched) {
    for (size_t i = 0; i < plan_.buffers.size(); ++i)
      if (touched.buffers[i]) add(plan_.buffers[i], "buffer", program_bytes(call_, plan_.buffers[i]));
    for (size_t i = 0; i < plan_.variables.size(); ++i) {
      const launch::ModuleVariable& variable = plan_.variables[i];
      if (touched.variables[i])
        add(variable.data, variable.space == ir::StateSpace::constant ? "constant" : "global",
            program_bytes(call_, variable));
    }
    for (const launch::Texture& texture : plan_.textures)
      if (touched.buffers[texture.buffer]) textures_.push_back(texture);
  }

  void add(const launch::Buffer& data, const char* section, std::span<const std::byte> now) {
    Kept kept{&data, section, data.name, data.type, *data.contents.bytes, {}};
    kept.after = now.size() == kept.before.size() ? now : kept.before;
    ++out_.buffers;
    out_.bytes += kept.before.size();
    kept_.push_back(std::move(kept));
  }

  // --- addresses

  std::optional<Pointer> pointer(uint64_t word) const {
    for (const Kept& kept : kept_)
      if (kept.data->address && word - kept.data->address < kept.before.size())
        return Pointer{&kept, word - kept.data->address};
    // A pointer to the end of a range, if no other range begins there.
    for (const Kept& kept : kept_)
      if (kept.data->address && word - kept.data->address == kept.before.size())
        return Pointer{&kept, kept.before.size()};
    return std::nullopt;
  }
  // The texture object with this handle; references have none.
  const launch::Texture* texture_of(uint64_t word) const {
    if (word == 0) return nullptr;
    const auto found = std::ranges::find(textures_, word, &launch::Texture::handle);
    return found == textures_.end() ? nullptr : &*found;
  }

  // Calls visit(argument index, offset in the argument, pointer) for pointers among the arguments.
  template <class Visit> void for_each_pointer(const Visit& visit) const {
    for (size_t i = 0; i < launch_.arguments.size(); ++i) {
      const std::span<const std::byte> bytes = launch_.arguments[i].bytes;
      for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t))
        if (const std::optional<Pointer> found = pointer(word_at(bytes, at))) visit(i, at, *found);
    }
  }

  // Sets the types of buffers to those with which the kernel accesses them.
  void choose_types() {
    const ir::Function* kernel = launch::find_kernel(*input_.module, launch_.kernel);
    if (!kernel) return;
    const std::vector<std::vector<launch::ParameterPart>> parts = launch::parameter_parts(*input_.module, *kernel);
    for_each_pointer([&](size_t argument, size_t at, const Pointer& found) {
      Kept& target = kept_[static_cast<size_t>(found.target - kept_.data())];
      if (target.type != ir::ScalarType::u8 || !target.is_buffer() || argument >= parts.size()) return;
      if (found.offset == target.before.size()) return; // a pointer to its end accesses nothing
      for (const launch::ParameterPart& part : parts[argument])
        if (part.offset == at && part.is_address && launch::is_plain_type(part.element_type))
          target.type = part.element_type;
    });
    for_each_pointer([&](size_t, size_t, const Pointer& found) {
      Kept& target = kept_[static_cast<size_t>(found.target - kept_.data())];
      if (target.before.size() % byte_width(target.type) || found.offset % byte_width(target.type))
        target.type = target.data->type;
    });
    for (Kept& kept : kept_)
      if (kept.before.size() % byte_width(kept.type)) kept.type = ir::ScalarType::u8;
  }

  bool holds_addresses(std::span<const std::byte> bytes, uint64_t address) const {
    // Only words that are aligned on the device are examined.
    for (size_t at = (8 - address % 8) % 8; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
      const uint64_t word = word_at(bytes, at);
      if (word >= least_ && word <= most_ && (pointer(word) || texture_of(word))) return true;
    }
    return false;
  }

  bool has_addresses() {
    least_ = UINT64_MAX, most_ = 0;
    const auto widen = [&](uint64_t begin, uint64_t last) {
      if (begin) least_ = std::min(least_, begin), most_ = std::max(most_, begin + last);
    };
    for (const Kept& kept : kept_)
      widen(kept.data->address, kept.before.size());
    for (const launch::Texture& texture : textures_)
      widen(texture.handle, 0);
    bool any = std::ranges::any_of(kept_, [&](const Kept& kept) {
      return holds_addresses(kept.before, kept.data->address) || holds_addresses(kept.after, kept.data->address);
    });
    for_each_pointer([&](size_t argument, size_t, const Pointer& found) { any |= !is_expressible(argument, found); });
    return any;
  }

  // Can the argument refer to the buffer by name, so that the buffer needs no fixed address?
  bool is_expressible(size_t argument, const Pointer& found) const {
    const launch::Parameter& parameter = call_.kernel.signature.parameters[argument];
    return found.target->is_buffer() && found.offset % byte_width(found.target->type) == 0 &&
           (parameter.bytes == 8 || (parameter.bytes % 8 == 0 && parameter.alignment >= 8));
  }

  // --- text

  std::string pointer_text(const Pointer& found) const {
    const uint64_t offset = found.offset / byte_width(found.target->type);
    return fmt::format("{{ buffer = {}{} }}", quoted(found.target->name),
                       offset ? fmt::format(", offset = {}", offset) : "");
  }

  std::string word_text(size_t argument, uint64_t word) const {
    if (const auto found = pointer(word); found && is_expressible(argument, *found)) return pointer_text(*found);
    if (const launch::Texture* texture = texture_of(word))
      return fmt::format("{{ texture = {} }}", quoted(texture->name));
    return fmt::format("{{ u64 = \"{:#x}\" }}", word);
  }

  // The argument's bytes from `at` on, if they are a tensor map as the emulator encodes it. nullopt: they are none, or
  // launch files cannot describe it.
  std::optional<std::string> tensor_map_at(size_t argument, size_t at) const {
    const std::span<const std::byte> bytes = launch_.arguments[argument].bytes;
    if (at % ir::tensor_map_alignment != 0 || at + ir::tensor_map_bytes > bytes.size()) return std::nullopt;
    const auto object = bytes.subspan(at).first<ir::tensor_map_bytes>();
    ir::TensorMap map;
    if (!emulator::read_tensor_map(object, map).empty() || !ir::find_fault(map).empty()) return std::nullopt;
    if (!std::ranges::equal(emulator::encode_tensor_map(map), object)) return std::nullopt;
    const auto found = pointer(map.address);
    if (!found || !is_expressible(argument, *found)) return std::nullopt;
    return launch::tensor_map_text(map, quoted(found->target->name), found->offset / byte_width(found->target->type));
  }

  // The words of an argument, with tensor maps in one piece.
  std::string structure_text(size_t argument) const {
    const std::span<const std::byte> bytes = launch_.arguments[argument].bytes;
    std::string members;
    for (size_t at = 0; at < bytes.size();) {
      const std::optional<std::string> map = tensor_map_at(argument, at);
      members += (at ? ", " : "") + (map ? *map : word_text(argument, word_at(bytes, at)));
      at += map ? ir::tensor_map_bytes : sizeof(uint64_t);
    }
    return "{ struct = [ " + members + " ] }";
  }

  std::string argument_text(size_t number) const {
    const launch::Parameter& parameter = call_.kernel.signature.parameters[number];
    const std::span<const std::byte> bytes = launch_.arguments[number].bytes;
    if (!parameter.is_array && bytes.size() == 8 && !is_float(parameter.type))
      return word_text(number, word_at(bytes, 0));
    if (!parameter.is_array && launch::is_plain_type(parameter.type) && bytes.size() == byte_width(parameter.type)) {
      // Floating-point values are written as bits, which is exact.
      if (is_float(parameter.type)) return fmt::format("{{ b{} = \"{:#x}\" }}", 8 * bytes.size(), word_at(bytes, 0));
      return fmt::format("{{ {} = {} }}", spelling(parameter.type),
                         launch::to_string(launch::decode(parameter.type, bytes.data()).integer));
    }
    if (bytes.size() % 8 == 0 && parameter.alignment >= 8) return structure_text(number);
    std::string list;
    for (const std::byte byte : bytes)
      list += (list.empty() ? "" : ", ") + std::to_string(std::to_integer<int>(byte));
    return "{ bytes = [" + list + "] }";
  }

  std::string launch_text() const {
    std::string text =
        fmt::format("\n[[launch]]\nkernel = {}\ngrid = [{}, {}, {}]\nblock = [{}, {}, {}]\nshared = {}\n",
                    quoted(launch_.kernel), launch_.grid.x, launch_.grid.y, launch_.grid.z, launch_.block.x,
                    launch_.block.y, launch_.block.z, launch_.dynamic_shared);
    if (launch_.cluster)
      text += fmt::format("cluster = [{}, {}, {}]\n", launch_.cluster->x, launch_.cluster->y, launch_.cluster->z);
    if (launch_.cooperative) text += "cooperative = true\n";
    text += "args = [\n";
    for (size_t i = 0; i < launch_.arguments.size(); ++i)
      text += "    " + argument_text(i) + ",\n";
    return text + "]\n";
  }

  std::string data_text(const Kept& kept) {
    std::string text = fmt::format("\n[{}.{}]\ntype = {}\ncount = {}\n", kept.section, quoted(kept.name),
                                   quoted(spelling(kept.type)), kept.before.size() / byte_width(kept.type));
    const bool is_zero = std::ranges::all_of(kept.before, [](std::byte byte) { return byte == std::byte(0); });
    if (!is_zero) text += "file = " + quoted(data_file(kept, ".bin.zst", kept.before)) + "\n";
    if (!std::ranges::equal(kept.before, kept.after))
      text += "output = true\nexpected = " + quoted(data_file(kept, ".expected.bin.zst", kept.after)) + "\n";
    if (out_.has_addresses && kept.data->address) text += fmt::format("address = \"{:#x}\"\n", kept.data->address);
    return text;
  }

  std::string data_file(const Kept& kept, const char* suffix, std::span<const std::byte> bytes) {
    std::string name = kept.is_buffer() ? kept.name : std::string(kept.section) + "_" + kept.name;
    constexpr size_t longest = 100;
    name = name.substr(0, longest);
    while (!file_names_.insert(name + suffix).second)
      name += '_';
    Result<std::string> file = packed(bytes);
    if (file)
      add_file(name + suffix, *std::move(file));
    else
      status_ = file.error();
    return name + suffix;
  }

  std::string texture_text(const launch::Texture& texture) const {
    static constexpr const char* addressing[] = {"wrap", "clamp", "mirror", "border"};
    std::string text =
        fmt::format("\n[texture.{}]\nbuffer = {}\nwidth = {}\nheight = {}\ndepth = {}\nchannels = {}\nlayered = "
                    "{}\naddress = \"{}\"\n"
                    "filter = \"{}\"\nnormalised = {}\nread = \"{}\"\n",
                    texture.name, quoted(plan_.buffers[texture.buffer].name), texture.width, texture.height,
                    texture.depth, texture.channels, texture.layered, addressing[static_cast<size_t>(texture.address)],
                    texture.filter == launch::FilterMode::linear ? "linear" : "nearest", texture.normalised_coordinates,
                    texture.normalised_float ? "normalised_float" : "element");
    if (texture.is_linear) text += "layout = \"linear\"\n";
    if (const launch::TextureLevels& levels = texture.levels; levels.count > 1)
      text += fmt::format("levels = {}\nlevel_filter = \"{}\"\nlevel_bias = {}\nleast_level = {}\nmost_level = {}\n",
                          levels.count, levels.filter == launch::FilterMode::linear ? "linear" : "nearest", levels.bias,
                          levels.least, levels.most);
    if (texture.pitch)
      text += fmt::format("pitch = {}\n", texture.pitch / byte_width(plan_.buffers[texture.buffer].type));
    if (texture.offset)
      text += fmt::format("offset = {}\n", texture.offset / byte_width(plan_.buffers[texture.buffer].type));
    if (out_.has_addresses && texture.handle) text += fmt::format("handle = \"{:#x}\"\n", texture.handle);
    return text;
  }

  const cuda::LaunchCall& call_;
  const LaunchInput& input_;
  const launch::LaunchPlan& plan_;
  const launch::Launch& launch_;
  std::vector<Kept> kept_;
  std::vector<launch::Texture> textures_;
  uint64_t least_ = 0, most_ = 0; // range of addresses in the files
  std::set<std::string> file_names_;
  CapturedFiles out_;
  Status status_;
};

} // namespace

Result<CapturedFiles> captured_files(const cuda::LaunchCall& call, const LaunchInput& input,
                                     const TouchedMemory& touched) {
  return LaunchWriter(call, input, touched).write();
}

} // namespace ptxrewrite::evaluate
