// Records of devices: writing, reading back, and the definition of a difference from a record.
#include "evaluate/record/record.h"

#include <doctest/doctest.h>

#include <cstring>

using namespace ptxrewrite;
using namespace ptxrewrite::evaluate;

namespace {

launch::LaunchPlan plan_of(launch::Buffer buffer) {
  launch::LaunchPlan plan;
  plan.buffers.push_back(std::move(buffer));
  return plan;
}

launch::Buffer float_buffer(uint64_t count) {
  launch::Buffer buffer;
  buffer.name = "x";
  buffer.type = ir::ScalarType::f32;
  buffer.count = count;
  buffer.output = true;
  return buffer;
}

uint64_t bits(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  return bits;
}

FileRecord with_elements(const std::string& checksum, std::vector<float> values) {
  FileRecord record{"a.toml", "small", "1", "", {{"x", "f32", values.size(), checksum, {}}}};
  for (size_t i = 0; i < values.size(); ++i)
    record.outputs[0].sample.emplace_back(i, bits(values[i]));
  return record;
}

} // namespace

TEST_CASE("a record reads back as it was written") {
  DeviceRecord record;
  record.device.name = "some GPU";
  record.device.compute_capability = 90;
  record.device.driver_version = 13000;
  record.files = {with_elements("0123456789abcdef", {1, -2}), {"b.toml", "", "2", "it faults", {}}};
  record.files[0].outputs[0].sample.emplace_back(UINT64_MAX, UINT64_MAX);
  Result<DeviceRecord> again = read_record(to_json(record));
  REQUIRE_MESSAGE(again.ok(), again.error().message);
  CHECK(again->device.name == "some GPU");
  CHECK(again->device.compute_capability == 90);
  CHECK(again->device.driver_version == 13000);
  REQUIRE(again->files.size() == 2);
  CHECK(again->files[0].outputs[0].sample == record.files[0].outputs[0].sample);
  CHECK(again->files[0].outputs[0].checksum == "0123456789abcdef");
  CHECK(again->files[1].refused == "it faults");
  CHECK(to_json(*again) == to_json(record));
}

TEST_CASE("broken records are errors") {
  for (const char* text :
       {"", "[]", "{\"format\": 2}", "{\"format\": 1}", "{\"format\": 1, \"device\": {\"name\": 5}}"}) {
    CAPTURE(text);
    CHECK(!read_record(text).ok());
  }
}

TEST_CASE("an element within the launch file's tolerance is no difference, beyond it it is one") {
  launch::Buffer exact = float_buffer(2), tolerant = exact;
  tolerant.tolerance.relative = 1e-3;
  const FileRecord recorded = with_elements("a", {1, 100});
  CHECK(compare_with_record(recorded, with_elements("a", {1, 100}), plan_of(exact)).empty());
  CHECK(compare_with_record(recorded, with_elements("b", {1, 100.05f}), plan_of(tolerant)).empty());
  CHECK(compare_with_record(recorded, with_elements("b", {1, 100.05f}), plan_of(exact)).size() == 1);
  CHECK(compare_with_record(recorded, with_elements("b", {1, 101}), plan_of(tolerant)).size() == 1);
  // A different checksum reveals a change of an element outside the sample.
  CHECK(compare_with_record(recorded, with_elements("b", {1, 100}), plan_of(exact)).size() == 1);
  CHECK(compare_with_record(recorded, with_elements("b", {1, 100}), plan_of(tolerant)).empty());
}

TEST_CASE("outputs that vanish, change their type, or do not run any more are differences; other PTX is mentioned") {
  const launch::LaunchPlan plan = plan_of(float_buffer(2));
  const FileRecord recorded = with_elements("a", {1, 2});
  FileRecord now = recorded;
  now.outputs[0].elements = 3;
  CHECK(compare_with_record(recorded, now, plan).size() == 1);
  now.ptx_checksum = "2";
  CHECK(compare_with_record(recorded, now, plan).size() == 2);
  now.outputs.clear();
  CHECK(compare_with_record(recorded, now, plan)[0] == "there is no output 'x' any more");
  now.refused = "no such instruction";
  CHECK(compare_with_record(recorded, now, plan)[0] == "does not run: no such instruction");
  FileRecord unknown = recorded;
  unknown.refused = "it faults";
  CHECK(compare_with_record(unknown, now, plan).empty());
}
