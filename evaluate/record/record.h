// Checksums and elements of a device's outputs, small enough to keep as a reference for the emulator.
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
  std::string checksum;                              // of all bytes; as a set where the launch file says so
  std::vector<std::pair<uint64_t, uint64_t>> sample; // some elements: index and bits
};

// One launch file in one size.
struct FileRecord {
  std::string file; // as it was named
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

// Runs a launch file's kernels, without variants, and keeps what they leave, with at most so many elements of each
// output. Faults and errors become `refused`.
FileRecord record_file(const std::string& file, const LaunchInput& input, cuda::Device& device,
                       uint64_t sample_size = default_sample_size);

// A file of records and back. Errors name what is missing or of the wrong type.
std::string to_json(const DeviceRecord& record);
Result<DeviceRecord> read_record(const std::string& text);

// How a run differs from the record; empty if it does not. With a tolerance in the launch file, the sample decides.
std::vector<std::string> compare_with_record(const FileRecord& recorded, const FileRecord& now,
                                             const launch::LaunchPlan& plan);

} // namespace ptxrewrite::evaluate
