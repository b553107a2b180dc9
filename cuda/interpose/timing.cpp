#include "cuda/interpose/timing.h"

#include "cuda/interpose/real_driver.h"

namespace ptxrewrite::cuda::interpose {
namespace {

// Adds the finished launches to their tunings. The kernel must be locked.
void collect(InterposedKernel& kernel) {
  const RealDriver& driver = RealDriver::get();
  std::erase_if(kernel.timed, [&](TimedLaunch& launch) {
    if (driver.event_query(launch.end) != success) return false;
    float milliseconds = 0;
    if (driver.event_elapsed(&milliseconds, launch.begin, launch.end) == success)
      launch.tuning->add(launch.code, static_cast<double>(milliseconds));
    driver.event_destroy(launch.begin);
    driver.event_destroy(launch.end);
    return true;
  });
}

std::string key_of(const VariantLaunch& variant, const LaunchShape& shape) {
  std::string key = variant.entry;
  for (const uint32_t number :
       {shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x, shape.block.y, shape.block.z, shape.dynamic_shared})
    key += " " + std::to_string(number);
  return key;
}

} // namespace

LaunchTimer::LaunchTimer(Programs& programs, InterposedKernel& kernel, const VariantLaunch& variant,
                         const LaunchShape& shape)
    : kernel_(kernel), stream_(shape.stream) {
  if (!programs.settings().autotune) return;
  std::lock_guard lock(kernel.mutex);
  collect(kernel);
  tuning_ = &kernel.tunings[key_of(variant, shape)];
  code_ = tuning_->next();
  if (tuning_->is_decided()) return;
  const RealDriver& driver = RealDriver::get();
  if (driver.event_create(&begin_, 0) != success) return;
  if (driver.event_create(&end_, 0) != success || driver.event_record(begin_, stream_) != success)
    give_up();
  else
    is_timed_ = true;
}

std::string LaunchTimer::reason() const {
  return tuning_->is_decided() ? "the original is faster" : "the original is being timed";
}

void LaunchTimer::give_up() {
  const RealDriver& driver = RealDriver::get();
  for (void* const event : {begin_, end_})
    if (event) driver.event_destroy(event);
  is_timed_ = false;
}

void LaunchTimer::finish(int status) {
  if (!is_timed_) return;
  if (status != success || RealDriver::get().event_record(end_, stream_) != success) return give_up();
  std::lock_guard lock(kernel_.mutex);
  kernel_.timed.push_back({tuning_, code_, begin_, end_});
}

} // namespace ptxrewrite::cuda::interpose
