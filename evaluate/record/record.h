// Checksums and elements of a device's outputs, small enough to be stored as a reference for the emulator.
#pragma once

#include "cuda/device.h"
#include "evaluate/launches/launch_input.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::evaluate {

struct BufferRecord {
  std::string name;
  std::string type;
  uint64_t elements = 0;
  std::string checksum;                              // of all bytes; independent of the order of elements if the launch
                                                     // file says so
  std::vector<std::pair<uint64_t, uint64_t>> sample; // some elements: index and bits
};

// One launch file in one size.
struct FileRecord {
  std::string file; // as named by the user
  std::string size;
  std::string ptx_checksum;
  std::string refused; // why it did not run; "" if it did
  std::vector<BufferRecord> outputs;
};

struct DeviceRecord {
  cuda::DeviceInfo device;
  std::vector<FileRecord> files;
};

inline constexpr uint64_t default_sample_size = 16;

// Runs a launch file's kernels, without variants, and records the outputs, with at most `sample_size` elements of each.
// Faults and errors go to `refused`.
FileRecord record_file(const std::string& file, const LaunchInput& input, cuda::Device& device,
                       uint64_t sample_size = default_sample_size);

// Conversion to and from a file of records. Errors name the member that is missing or has the wrong type.
std::string to_json(const DeviceRecord& record);
Result<DeviceRecord> read_record(const std::string& text);

// Returns the differences between a run and the record; empty if there are none. With a tolerance in the launch file,
// only the sampled elements are compared.
std::vector<std::string> compare_with_record(const FileRecord& recorded, const FileRecord& now,
                                             const launch::LaunchPlan& plan);

} // namespace ptxrewrite::evaluate
