// Values that machines add to data of the core: settings of a launch, its results, data prepared for a kernel. At most
// one value per type; the types are those of the machines' own headers.
//
//   request.machines.set(SkipSettings{.check = true});
//   const SkipCounters& counters = result.machines.get<SkipCounters>();
#pragma once

#include <any>
#include <type_traits>
#include <utility>
#include <vector>

namespace ptxrewrite::emulator {

class MachineData {
public:
  MachineData() = default;
  // One value of each type: `.machines = {SkipSettings{}, AffineSettings{}}`.
  template <class First, class... Rest>
  requires(!std::is_same_v<std::remove_cvref_t<First>, MachineData>) MachineData(First first, Rest... rest) {
    set(std::move(first));
    (set(std::move(rest)), ...);
  }

  // Returns nullptr if there is none.
  template <class T> const T* find() const {
    for (const std::any& value : values_)
      if (const T* found = std::any_cast<T>(&value)) return found;
    return nullptr;
  }
  template <class T> T* find() { return const_cast<T*>(std::as_const(*this).find<T>()); }
  // Returns a default value if there is none.
  template <class T> const T& get() const {
    static const T none{};
    const T* found = find<T>();
    return found ? *found : none;
  }
  // Replaces an earlier value of the type.
  template <class T> T& set(T value) {
    if (T* found = find<T>()) return *found = std::move(value);
    return *std::any_cast<T>(&values_.emplace_back(std::move(value)));
  }
  template <class T> void erase() {
    std::erase_if(values_, [](const std::any& value) { return value.type() == typeid(T); });
  }

private:
  std::vector<std::any> values_;
};

} // namespace ptxrewrite::emulator
