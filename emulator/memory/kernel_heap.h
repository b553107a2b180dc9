// The heap of a kernel's malloc: a range of device addresses of fixed size, with a list of its free parts (CUDA
// programming guide, Dynamic Global Memory Allocation).
#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace ptxrewrite::emulator {

// CUDA's default size (cudaLimitMallocHeapSize).
inline constexpr uint64_t default_heap_bytes = uint64_t(8) << 20;

class KernelHeap {
public:
  KernelHeap() = default;
  KernelHeap(uint64_t begin, uint64_t bytes) { put(begin, bytes); }

  // Takes the start of the smallest free part that is large enough, aligned to 16 bytes. Returns 0 if there is none.
  uint64_t take(uint64_t bytes);
  // Returns an allocation of this many bytes by take().
  void give_back(uint64_t address, uint64_t bytes);

private:
  void put(uint64_t address, uint64_t bytes);
  void remove(std::map<uint64_t, uint64_t>::iterator part);

  std::map<uint64_t, uint64_t> parts_;               // free parts: address -> bytes
  std::set<std::pair<uint64_t, uint64_t>> by_bytes_; // free parts: bytes, address
};

} // namespace ptxrewrite::emulator
