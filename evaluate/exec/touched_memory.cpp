#include "evaluate/exec/touched_memory.h"

#include "emulator/core/observer.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ptxrewrite::evaluate {
namespace {

// Records which address ranges are accessed.
class TouchObserver final : public emulator::Observer {
public:
  explicit TouchObserver(const launch::LaunchPlan& plan) {
    for (size_t i = 0; i < plan.buffers.size(); ++i)
      add(plan.buffers[i], i, false);
    for (size_t i = 0; i < plan.variables.size(); ++i)
      add(plan.variables[i].data, i, true);
    std::ranges::sort(ranges_, {}, &Range::begin);
  }

  bool wants_accesses() const override { return true; }
  bool wants_after() const override { return false; }
  void accessed(emulator::Block&, emulator::Warp& warp, const emulator::MicroOp&,
                const emulator::ObservedAccess& access) override {
    for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1)
      touch(access.addresses[std::countr_zero(lanes)]);
  }

  void touch(uint64_t address) {
    if (last_ < ranges_.size() && address - ranges_[last_].begin < ranges_[last_].bytes) {
      ranges_[last_].is_touched = true;
      return;
    }
    const auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::begin);
    if (after == ranges_.begin()) return;
    Range& range = *std::prev(after);
    if (address - range.begin >= range.bytes) return;
    range.is_touched = true;
    last_ = static_cast<size_t>(&range - ranges_.data());
  }

  void tell(TouchedMemory& touched) const {
    for (const Range& range : ranges_)
      if (range.is_touched) (range.is_variable ? touched.variables : touched.buffers)[range.number] = true;
  }

private:
  struct Range {
    uint64_t begin = 0, bytes = 0;
    size_t number = 0;
    bool is_variable = false;
    bool is_touched = false;
  };
  void add(const launch::Buffer& buffer, size_t number, bool is_variable) {
    if (buffer.address) ranges_.push_back({buffer.address, buffer.bytes(), number, is_variable});
  }

  std::vector<Range> ranges_; // by address
  size_t last_ = 0;
};

bool uses_textures(const ir::Module& module) {
  const std::string_view text = module.source.text();
  return std::ranges::any_of(std::initializer_list<std::string_view>{"tex.", "tld4.", "suld.", "sust.", "sured."},
                             [&](std::string_view word) { return text.find(word) != text.npos; });
}

} // namespace

Result<TouchedMemory> touched_memory(const LaunchInput& input) {
  TouchObserver observer(input.plan);
  for (const launch::Launch& launch : input.plan.launches)
    for (const launch::Argument& argument : launch.arguments)
      for (size_t at = 0; at + sizeof(uint64_t) <= argument.bytes.size(); at += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, argument.bytes.data() + at, sizeof word);
        observer.touch(word);
      }
  cuda::EmulatorOptions options;
  options.host_threads = 1;
  options.observer = [&](const emulator::LaunchRequest&) { return &observer; };
  std::unique_ptr<cuda::Device> device = cuda::make_emulator_device(options);
  Result<cuda::SessionResult> run = cuda::run_plan(input.plan, *input.module, *device, {});
  if (!run) return run.error();
  TouchedMemory touched{std::vector<bool>(input.plan.buffers.size()), std::vector<bool>(input.plan.variables.size())};
  observer.tell(touched);
  if (uses_textures(*input.module))
    for (const launch::Texture& texture : input.plan.textures)
      touched.buffers[texture.buffer] = true;
  // Constants have a separate address space that is not observed: they are small, so all of them count.
  for (size_t i = 0; i < input.plan.variables.size(); ++i)
    if (input.plan.variables[i].space == ir::StateSpace::constant) touched.variables[i] = true;
  return touched;
}

} // namespace ptxrewrite::evaluate
