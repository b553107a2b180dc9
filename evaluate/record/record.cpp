#include "evaluate/record/record.h"

#include "cuda/buffer_text.h"
#include "cuda/compare.h"
#include "cuda/session.h"
#include "launch/scalar_bytes.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace ptxrewrite::evaluate {
namespace {

using json = nlohmann::ordered_json;

constexpr size_t most_complaints = 4; // per buffer

std::string hexadecimal(uint64_t bits) {
  return fmt::format("{:#x}", bits);
}

BufferRecord record_buffer(const launch::Buffer& buffer, const std::vector<std::byte>& as_left, uint64_t sample_size) {
  const std::vector<std::byte> bytes = cuda::in_comparable_order(buffer, as_left);
  BufferRecord record;
  record.name = buffer.name;
  record.type = ir::spelling(buffer.type);
  record.elements = bytes.size() / buffer.element_bytes();
  record.checksum = cuda::checksum_text(bytes);
  const uint64_t count = std::min(record.elements, sample_size);
  for (uint64_t i = 0; i < count; ++i) {
    // Samples are spread evenly from the first element to the last.
    const uint64_t index = count == 1 ? 0 : i * (record.elements - 1) / (count - 1);
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + index * buffer.element_bytes(), std::min<size_t>(buffer.element_bytes(), 8));
    record.sample.emplace_back(index, bits);
  }
  return record;
}

std::string line_text(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

json buffer_json(const BufferRecord& record) {
  json sample = json::object();
  for (const auto& [index, bits] : record.sample)
    sample[std::to_string(index)] = hexadecimal(bits);
  return {{"buffer", record.name},
          {"type", record.type},
          {"elements", record.elements},
          {"checksum", record.checksum},
          {"sample", std::move(sample)}};
}

// nlohmann's accessors throw if a key is missing or has the wrong type; read_record converts that to an Error.
BufferRecord buffer_of(const json& document) {
  BufferRecord record;
  record.name = document.at("buffer").get<std::string>();
  record.type = document.at("type").get<std::string>();
  record.elements = document.at("elements").get<uint64_t>();
  record.checksum = document.at("checksum").get<std::string>();
  for (const auto& [index, bits] : document.at("sample").items()) {
    const auto text = bits.get<std::string>();
    auto& [place, value] = record.sample.emplace_back(0, 0);
    std::from_chars(index.data(), index.data() + index.size(), place);
    if (text.size() > 2) std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  }
  return record;
}

FileRecord file_of(const json& document) {
  FileRecord record;
  record.file = document.at("file").get<std::string>();
  record.size = document.at("size").get<std::string>();
  record.ptx_checksum = document.at("ptx_checksum").get<std::string>();
  if (document.contains("refused")) record.refused = document.at("refused").get<std::string>();
  for (const json& buffer : document.at("outputs"))
    record.outputs.push_back(buffer_of(buffer));
  return record;
}

DeviceRecord device_of(const json& document) {
  DeviceRecord record;
  if (document.at("format").get<int>() != 1) throw std::out_of_range("its format is none that this program knows");
  const json& device = document.at("device");
  record.device.name = device.at("name").get<std::string>();
  record.device.compute_capability = device.at("compute_capability").get<int>();
  record.device.driver_version = device.at("driver").get<int>();
  for (const json& file : document.at("files"))
    record.files.push_back(file_of(file));
  return record;
}

std::string element_of(ir::ScalarType type, uint64_t bits) {
  std::array<std::byte, 8> bytes{};
  std::memcpy(bytes.data(), &bits, sizeof bits);
  return fmt::format("{} ({:#x})", cuda::element_text(type, bytes.data()), bits);
}

std::vector<std::string> compare_buffer(const BufferRecord& recorded, const BufferRecord& now,
                                        const launch::Buffer& buffer) {
  if (recorded.type != now.type || recorded.elements != now.elements)
    return {fmt::format("buffer '{}' has {} elements of {}; the record has {} of {}", now.name, now.elements, now.type,
                        recorded.elements, recorded.type)};
  if (recorded.checksum == now.checksum && recorded.sample == now.sample) return {};
  std::vector<std::string> complaints;
  for (size_t i = 0; i < std::min(recorded.sample.size(), now.sample.size()); ++i) {
    const auto& [index, bits] = recorded.sample[i];
    if (index == now.sample[i].first && bits == now.sample[i].second) continue;
    std::array<std::byte, 8> original{}, other{};
    std::memcpy(original.data(), &bits, 8);
    std::memcpy(other.data(), &now.sample[i].second, 8);
    const size_t size = std::min<size_t>(buffer.element_bytes(), 8);
    launch::Buffer one = buffer;
    one.count = 1;
    if (index == now.sample[i].first &&
        cuda::compare(one, std::span(original).first(size), std::span(other).first(size), 1).same())
      continue; // within the launch file's tolerance
    if (complaints.size() < most_complaints)
      complaints.push_back(fmt::format("buffer '{}'[{}] is {}; recorded {}", now.name, index,
                                       element_of(buffer.type, now.sample[i].second), element_of(buffer.type, bits)));
  }
  if (complaints.empty() && buffer.tolerance.exact())
    complaints.push_back(
        fmt::format("buffer '{}' has checksum {}; recorded {}", now.name, now.checksum, recorded.checksum));
  return complaints;
}

} // namespace

FileRecord record_file(const std::string& file, const LaunchInput& input, cuda::Device& device, uint64_t sample_size) {
  FileRecord record;
  record.file = file;
  record.size = input.plan.size;
  const std::string_view text = input.module->source.text();
  record.ptx_checksum = cuda::checksum_text(std::as_bytes(std::span(text.data(), text.size())));
  if (Status status = cuda::check_memory(input.plan, 2); !status) {
    record.refused = status.error().message;
    return record;
  }
  Result<cuda::SessionResult> result = cuda::run_plan(input.plan, *input.module, device);
  if (!result || result->failed_launch) {
    record.refused = result ? result->runs.back().failure->message : result.error().message;
    return record;
  }
  for (size_t i = 0; i < input.plan.buffers.size(); ++i)
    if (input.plan.buffers[i].output)
      record.outputs.push_back(record_buffer(input.plan.buffers[i], result->buffers[i], sample_size));
  for (size_t i = 0; i < input.plan.variables.size(); ++i)
    if (input.plan.variables[i].data.output)
      record.outputs.push_back(record_buffer(input.plan.variables[i].data, result->variables[i], sample_size));
  return record;
}

// One line per file: compact for thousands of files, and a diff shows which ones changed.
std::string to_json(const DeviceRecord& record) {
  const json device = {{"name", record.device.name},
                       {"compute_capability", record.device.compute_capability},
                       {"driver", record.device.driver_version}};
  std::string text = "{\n\"format\": 1,\n\"device\": " + line_text(device) + ",\n\"files\": [";
  for (size_t i = 0; i < record.files.size(); ++i) {
    const FileRecord& file = record.files[i];
    json outputs = json::array();
    for (const BufferRecord& buffer : file.outputs)
      outputs.push_back(buffer_json(buffer));
    json one = {{"file", file.file}, {"size", file.size}, {"ptx_checksum", file.ptx_checksum}};
    if (!file.refused.empty()) one["refused"] = file.refused;
    one["outputs"] = std::move(outputs);
    text += (i ? ",\n" : "\n") + line_text(one);
  }
  return text + "\n]\n}\n";
}

Result<DeviceRecord> read_record(const std::string& text) {
  try {
    return device_of(json::parse(text));
  } catch (const std::exception& error) {
    return Error{fmt::format("no record: {}", error.what()), {}};
  }
}

std::vector<std::string> compare_with_record(const FileRecord& recorded, const FileRecord& now,
                                             const launch::LaunchPlan& plan) {
  if (!recorded.refused.empty()) return {}; // nothing was recorded
  if (!now.refused.empty()) return {"does not run: " + now.refused};
  std::vector<std::string> complaints;
  for (const BufferRecord& buffer : recorded.outputs) {
    auto same_name = [&](const auto& other) { return other.name == buffer.name; };
    const auto found = std::ranges::find_if(now.outputs, same_name);
    const launch::Buffer* planned = plan.find_buffer(buffer.name);
    for (const launch::ModuleVariable& variable : plan.variables)
      if (!planned && variable.data.name == buffer.name) planned = &variable.data;
    if (found == now.outputs.end() || !planned) {
      complaints.push_back("there is no output '" + buffer.name + "' any more");
      continue;
    }
    for (std::string& complaint : compare_buffer(buffer, *found, *planned))
      complaints.push_back(std::move(complaint));
  }
  if (!complaints.empty() && recorded.ptx_checksum != now.ptx_checksum)
    complaints.push_back("the PTX is another than when this was recorded");
  return complaints;
}

} // namespace ptxrewrite::evaluate
