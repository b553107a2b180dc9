#include "cuda/context/device_attributes.h"

namespace ptxrewrite::cuda {

bool device_attribute(const ir::Machine& m, int number, int& value) {
  switch (number) {
#define DEVICE_ATTRIBUTE(NUMBER, NAME, VALUE)                                                                          \
  case NUMBER:                                                                                                         \
    value = static_cast<int>(VALUE);                                                                                   \
    return true;
#include "cuda/context/device_attributes.def"
#undef DEVICE_ATTRIBUTE
  default:
    return false;
  }
}

int device_attribute(const ir::Machine& machine, DeviceAttribute attribute) {
  int value = 0;
  device_attribute(machine, static_cast<int>(attribute), value);
  return value;
}

std::string device_name(const ir::Machine& machine) {
  return "NVIDIA " + std::string(machine.name) + " (emulated)";
}

} // namespace ptxrewrite::cuda
