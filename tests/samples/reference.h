// The results of a sample's kernels, computed on the host: tests/samples/SUITE/NAME.cpp for samples/NAME.
//
//   REFERENCE(vecadd) {
//     auto a = data.f32("a"), b = data.f32("b"), c = data.f32("c");
//     for (int64_t i = 0; i < data.value("n"); ++i) c[i] = a[i] + b[i];
//   }
//
// `data` has the launch file's buffers with their contents before the first launch; at return the output buffers must
// have their contents after the last one. A reference is written from the algorithm, not from the kernel's text.
//
// Integers must be exact. So must floating-point numbers if the algorithm determines the order of operations;
// nvcc fuses `sum += a * b`, which is std::fma(a, b, sum) here (this folder is compiled without
// contraction); `sum -= a * b` remains two operations, which ptxas may still fuse. Otherwise the reference computes
// in double and gives with `tolerate` the error that the kernel's rounding may have. This is not a key of the launch
// file because a rewrite must match every bit of the original.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

class SampleData {
public:
  struct Tolerance {
    double relative = 0; // of the expected element
    double absolute = 0; // meeting either one is enough
  };

  // Elements of a buffer, or of a module variable that the launch file fills. T may be a struct, as in the kernels.
  template <class T> std::span<T> as(const std::string& name) {
    std::vector<std::byte>& bytes = bytes_of(name);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  std::span<float> f32(const std::string& name) { return as<float>(name); }
  std::span<double> f64(const std::string& name) { return as<double>(name); }
  std::span<int8_t> s8(const std::string& name) { return as<int8_t>(name); }
  std::span<int16_t> s16(const std::string& name) { return as<int16_t>(name); }
  std::span<int32_t> s32(const std::string& name) { return as<int32_t>(name); }
  std::span<int64_t> s64(const std::string& name) { return as<int64_t>(name); }
  std::span<uint8_t> u8(const std::string& name) { return as<uint8_t>(name); }
  std::span<uint16_t> u16(const std::string& name) { return as<uint16_t>(name); }
  std::span<uint32_t> u32(const std::string& name) { return as<uint32_t>(name); }
  std::span<uint64_t> u64(const std::string& name) { return as<uint64_t>(name); }

  // An integer of [let], with its value for the size.
  int64_t value(const std::string& name) const;
  // The same for any number.
  double number(const std::string& name) const;

  // Elements of an output buffer may differ by this much. State the reason next to the call.
  void tolerate(const std::string& name, Tolerance tolerance) { tolerances[name] = tolerance; }

  // Filled by the harness.
  std::map<std::string, std::vector<std::byte>> buffers;
  std::map<std::string, int64_t> integers;
  std::map<std::string, double> numbers;
  std::map<std::string, Tolerance> tolerances;

private:
  std::vector<std::byte>& bytes_of(const std::string& name);
};

using Reference = void (*)(SampleData& data);

// By the sample's name.
std::map<std::string, Reference>& references();

struct RegisterReference {
  RegisterReference(const char* name, Reference reference) { references()[name] = reference; }
};

} // namespace ptxrewrite::tests

#define REFERENCE(name)                                                                                                \
  static void reference_of_##name([[maybe_unused]] ptxrewrite::tests::SampleData& data);                               \
  static const ptxrewrite::tests::RegisterReference registration_of_##name(#name, reference_of_##name);                \
  static void reference_of_##name([[maybe_unused]] ptxrewrite::tests::SampleData& data)
