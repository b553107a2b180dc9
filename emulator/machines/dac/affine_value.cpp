#include "emulator/machines/dac/affine_value.h"

#include <algorithm>

namespace ptxrewrite::emulator {

AffineValue::AffineValue(uint32_t warps, unsigned bits) : bits_(bits), lost_(warps) {}

void AffineValue::write(const ThreadSet& threads, const AffineTuple& tuple) {
  for (Part& part : parts_)
    part.threads.remove(threads);
  std::erase_if(parts_, [](const Part& part) { return part.threads.empty(); });
  lost_.remove(threads);
  const auto same = std::ranges::find_if(parts_, [&](const Part& part) { return part.tuple == tuple; });
  if (same != parts_.end()) {
    same->threads |= threads;
    return;
  }
  if (parts_.size() == most_divergent_tuples) {
    lost_ |= parts_.front().threads;
    parts_.erase(parts_.begin());
  }
  parts_.push_back({threads, tuple});
}

std::optional<std::vector<AffineValue::Part>> AffineValue::read(const ThreadSet& wanted) const {
  if (!(lost_ & wanted).empty()) return std::nullopt;
  std::vector<Part> found;
  ThreadSet rest = wanted;
  for (const Part& part : parts_) {
    ThreadSet threads = part.threads & wanted;
    if (threads.empty()) continue;
    rest.remove(threads);
    found.push_back({std::move(threads), part.tuple});
  }
  if (!rest.empty()) found.push_back({std::move(rest), AffineTuple::scalar(0, bits_)});
  return found;
}

} // namespace ptxrewrite::emulator
