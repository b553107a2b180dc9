// Properties of the emulated GPU that CUDA programs can query.
#pragma once

#include "ir/machine/figures/machine.h"

#include <string>

namespace ptxrewrite::cuda {

enum class DeviceAttribute : int {
#define DEVICE_ATTRIBUTE(NUMBER, NAME, VALUE) NAME = NUMBER,
#include "cuda/context/device_attributes.def"
#undef DEVICE_ATTRIBUTE
};

// Returns false if the attribute does not exist.
bool device_attribute(const ir::Machine& machine, int number, int& value);
int device_attribute(const ir::Machine& machine, DeviceAttribute attribute);
// "NVIDIA H100 (emulated)"
std::string device_name(const ir::Machine& machine);
inline constexpr const char* pci_bus_id = "0000:01:00.0";
// 16 bytes, including the terminating zero.
inline constexpr const char* device_uuid = "ptxrewrite-emul";
// CUDA 13.0.
inline constexpr int cuda_version = 13000;

} // namespace ptxrewrite::cuda
