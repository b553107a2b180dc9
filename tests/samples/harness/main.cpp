// Runs samples on the emulator and compares every output buffer with the sample's reference.
//
// usage: sample_tests NAME [SIZE]     one sample in all its launch shapes; without SIZE its launch file's default
//        sample_tests --complete      every folder of samples/ has its four parts, all sizes can be planned, and --size
//                                    paper matches samples/benchmarks.tsv
//        sample_tests --self-test     wrong references are detected
#include "launch/scalar_bytes.h"
#include "launch/shapes.h"
#include "tests/samples/harness/benchmarks.h"
#include "tests/samples/harness/run_sample.h"
#include "tests/samples/reference.h"
#include "tests/unit/paths.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

using namespace ptxrewrite;
using namespace ptxrewrite::tests;

namespace {

constexpr size_t differences_shown = 5;

SampleData sample_data(const launch::LaunchPlan& plan, const std::vector<Bytes>& initial) {
  SampleData data;
  for (const auto& [name, number] : plan.names) {
    data.numbers[name] = number.as_double();
    if (!number.is_decimal) data.integers[name] = static_cast<int64_t>(number.integer);
  }
  for (size_t k = 0; k < initial.size(); ++k)
    data.buffers[plan.buffers[k].name] = initial[k];
  data.buffers.merge(initial_variables(plan));
  return data;
}

// Returns the distance of two numbers as a fraction of the tolerance; above 1, or NaN: too far.
double share_of(const SampleData::Tolerance& tolerance, const launch::Number& expected, const launch::Number& found) {
  const double distance = std::fabs(expected.as_double() - found.as_double());
  return distance / std::max(tolerance.absolute, tolerance.relative * std::fabs(expected.as_double()));
}

// Compares an output buffer after the emulator and after the reference. Returns the number of different elements, and
// prints the first ones, or how close the others came to the tolerance.
size_t compare(const launch::Buffer& buffer, const Bytes& found, const Bytes& expected,
               const SampleData::Tolerance& tolerance) {
  const size_t width = buffer.element_bytes();
  const bool exact = tolerance.relative == 0 && tolerance.absolute == 0;
  size_t different = 0;
  double largest_share = 0;
  for (size_t k = 0; k < buffer.count; ++k) {
    if (std::memcmp(&found[k * width], &expected[k * width], width) == 0) continue;
    const launch::Number wanted = launch::decode(buffer.type, &expected[k * width]);
    const launch::Number got = launch::decode(buffer.type, &found[k * width]);
    if (const double share = share_of(tolerance, wanted, got); !exact && share <= 1) {
      largest_share = std::max(largest_share, share);
      continue;
    }
    if (different++ < differences_shown)
      std::printf("  %s[%zu]: the emulator has %s, the reference %s\n", buffer.name.c_str(), k,
                  launch::to_string(got).c_str(), launch::to_string(wanted).c_str());
  }
  if (different)
    std::printf("  %s: %zu of %zu elements differ\n", buffer.name.c_str(), different, size_t(buffer.count));
  else if (!exact)
    std::printf("  %s: within %.2g of the tolerance\n", buffer.name.c_str(), largest_share);
  return different;
}

// Prints what makes a comparison meaningless: a reference that does not change the buffer, zeros throughout, NaN.
bool means_something(const launch::Buffer& buffer, const Bytes& initial, const Bytes& expected) {
  const size_t width = buffer.element_bytes();
  const bool changed = initial != expected;
  const bool not_zero = std::ranges::any_of(expected, [](std::byte byte) { return byte != std::byte{}; });
  bool numbers = true;
  for (size_t k = 0; k < buffer.count; ++k)
    numbers = numbers && !std::isnan(launch::decode(buffer.type, &expected[k * width]).as_double());
  if (!changed) std::printf("  %s: the reference leaves it as it was\n", buffer.name.c_str());
  if (!not_zero) std::printf("  %s: the reference holds zeros only\n", buffer.name.c_str());
  if (!numbers) std::printf("  %s: the reference holds NaN\n", buffer.name.c_str());
  return changed && not_zero && numbers;
}

bool test_shape(const std::string& name, const launch::LaunchPlan& plan, const std::string& shape,
                const ir::Module& module, SampleData& data) {
  const EmulatedRun run = emulate(plan, module);
  bool good = true;
  for (size_t k = 0; k < plan.buffers.size(); ++k) {
    const launch::Buffer& buffer = plan.buffers[k];
    if (buffer.output)
      good = compare(buffer, run.buffers[k], data.buffers.at(buffer.name), data.tolerances[buffer.name]) == 0 && good;
  }
  std::printf("%s, size %s, shape %s: %zu launches, %llu thread instructions%s\n", name.c_str(), plan.size.c_str(),
              shape.c_str(), plan.launches.size(), static_cast<unsigned long long>(run.thread_instructions),
              good ? "" : ": WRONG");
  return good;
}

bool test_sample(const std::string& name, const std::string& size) {
  const auto reference = references().find(name);
  if (reference == references().end()) throw std::runtime_error("no tests/samples/SUITE/" + name + ".cpp");
  const launch::LaunchPlan plan = sample_plan(name, size);
  const auto module = sample_module(plan);
  const auto initial = initial_buffers(plan);
  SampleData data = sample_data(plan, initial);
  reference->second(data);

  bool good = true;
  size_t outputs = 0;
  for (size_t k = 0; k < initial.size(); ++k) {
    const launch::Buffer& buffer = plan.buffers[k];
    if (!buffer.output) continue;
    ++outputs;
    good = means_something(buffer, initial[k], data.buffers.at(buffer.name)) && good;
  }
  if (outputs == 0) std::printf("  no buffer of the launch file is an output\n");
  // The results must not depend on the shapes, which is why a launch file lists several.
  for (const launch::LaunchShape& shape : launch::shapes(plan))
    if (!shape.derived) good = test_shape(name, launch::with_shape(plan, shape), shape.name, *module, data) && good;
  return good && outputs != 0;
}

// All sizes of a launch file can be planned and fit the PTX; `small` is the default and `medium` exists.
bool check_sample(const std::string& name) {
  bool good = true;
  for (const char* ending : {".cu", ".ptx", ".toml"})
    if (!std::filesystem::exists(source_path("samples/" + name + "/" + name + ending))) {
      std::printf("samples/%s: there is no %s%s\n", name.c_str(), name.c_str(), ending);
      good = false;
    }
  if (!references().contains(name)) {
    std::printf("samples/%s: tests/samples/%s.cpp has no REFERENCE(%s)\n", name.c_str(), name.c_str(), name.c_str());
    good = false;
  }
  if (!good) return false;
  if (sample_plan(name, "").size != "small") {
    std::printf("samples/%s: default_size is not \"small\"\n", name.c_str());
    good = false;
  }
  for (const char* size : {"small", "medium"}) {
    const launch::LaunchPlan plan = sample_plan(name, size);
    check_launches(plan, *sample_module(plan));
  }
  return good;
}

bool check_all() {
  size_t samples = 0;
  bool good = true;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("samples")))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  for (const std::string& name : names) {
    ++samples;
    try {
      good = check_sample(name) && good;
    } catch (const std::exception& error) {
      std::printf("samples/%s: %s\n", name.c_str(), error.what());
      good = false;
    }
  }
  std::printf("%zu samples\n", samples);
  return good && samples != 0;
}

Reference right_reference = nullptr;

// References of vecadd that must not pass.
struct WrongReference {
  const char* what;
  Reference reference;
};
constexpr WrongReference wrong_references[] = {
    {"nothing is computed", [](SampleData&) {}},
    {"one element is off by its last bit",
     [](SampleData& data) {
       right_reference(data);
       float& element = data.f32("c")[123];
       element = std::nextafter(element, 2.0f);
     }},
    {"one element is off by more than the tolerance",
     [](SampleData& data) {
       right_reference(data);
       data.f32("c")[123] += 2e-3f;
       data.tolerate("c", {.absolute = 1e-3});
     }},
    {"one element is no number",
     [](SampleData& data) {
       right_reference(data);
       data.f32("c")[123] = std::nanf("");
       data.tolerate("c", {.absolute = 1e9});
     }},
};

bool self_test() {
  Reference& reference = references().at("vecadd");
  right_reference = reference;
  bool good = test_sample("vecadd", "");
  for (const WrongReference& wrong : wrong_references) {
    reference = wrong.reference;
    const bool passed = test_sample("vecadd", "");
    std::printf("%s: %s\n", wrong.what, passed ? "NOT TOLD" : "told, as it must be");
    good = good && !passed;
  }
  return good;
}

} // namespace

int main(int count, char** arguments) {
  const std::string name = count > 1 ? arguments[1] : "";
  try {
    if (name == "--complete" && count == 2) return int(!check_all() || !check_benchmarks());
    if (name == "--self-test" && count == 2) return self_test() ? 0 : 1;
    if (!name.empty() && name[0] != '-' && count <= 3) return test_sample(name, count > 2 ? arguments[2] : "") ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("%s: %s\n", name.c_str(), error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: sample_tests NAME [SIZE] | --complete | --self-test\n");
  return 2;
}
