#include "cuda/context/memory_pools.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace ptxrewrite::cuda {

// Attributes of a pool (cudaMemPoolAttr, CUmemPool_attribute): three four-byte switches, then sizes.
constexpr int last_switch = 3, release_threshold = 4, reserved_now = 5, reserved_most = 6, used_now = 7, used_most = 8;
constexpr int location_managed_type = 2; // CU_MEM_ALLOCATION_TYPE_MANAGED

struct MemoryPool {
  PoolProperties properties{1, 0, {location_device, 0}, nullptr, {}};
  std::map<int, uint64_t> settings = {{1, 1}, {2, 1}, {3, 1}, {release_threshold, 0}};
  std::map<uint64_t, uint64_t> allocated; // address -> bytes; some may have been freed
  uint64_t most = 0;
};

namespace {

MemoryPool& first_pool() {
  static auto* made = new MemoryPool;
  return *made;
}

MemoryPool*& current_pool() {
  static MemoryPool* pool = &first_pool();
  return pool;
}

uint64_t bytes_in(Context& context, MemoryPool& pool) {
  uint64_t bytes = 0;
  std::erase_if(pool.allocated, [&](const auto& allocation) {
    const MemoryInfo info = context.info_of(allocation.first);
    if (info.begin != allocation.first || info.bytes != allocation.second) return true;
    bytes += allocation.second;
    return false;
  });
  pool.most = std::max(pool.most, bytes);
  return bytes;
}

Code allocate_from(Context& context, MemoryPool& pool, uint64_t bytes, uint64_t& address) {
  const bool is_managed = pool.properties.type == location_managed_type;
  const bool is_host = pool.properties.location.type > location_device;
  const Code code = is_managed || is_host
                        ? context.allocate_host(bytes, is_managed ? MemoryKind::managed : MemoryKind::host, 0, address)
                        : context.allocate(bytes, address);
  if (code == Code::success) {
    pool.allocated[address] = bytes;
    (void)bytes_in(context, pool);
  }
  return code;
}

Code give(MemoryPool** pool, MemoryPool* which, int device) {
  if (!pool) return Code::invalid_value;
  if (device != 0) return Code::invalid_device;
  *pool = which;
  return Code::success;
}

// Memory of the allocation nodes of graphs, by address. `used`: between the nodes that allocate and free it.
struct GraphMemory {
  uint64_t bytes = 0;
  bool used = false;
};

struct AllGraphMemory {
  std::map<uint64_t, GraphMemory> allocations;
  uint64_t used_most = 0, reserved_most = 0;

  uint64_t bytes(bool only_used) const {
    uint64_t sum = 0;
    for (const auto& [address, memory] : allocations)
      if (memory.used || !only_used) sum += memory.bytes;
    return sum;
  }
  void update_maxima() {
    used_most = std::max(used_most, bytes(true));
    reserved_most = std::max(reserved_most, bytes(false));
  }
};

AllGraphMemory& all_graph_memory() {
  static auto* made = new AllGraphMemory;
  return *made;
}

void mark_used(uint64_t address, bool used) {
  AllGraphMemory& all = all_graph_memory();
  if (const auto found = all.allocations.find(address); found != all.allocations.end()) found->second.used = used;
  all.update_maxima();
}

// Shared by the copies of an allocation node.
class OwnedMemory {
public:
  OwnedMemory(Context& context, uint64_t address, uint64_t bytes) : context_(context), address_(address) {
    all_graph_memory().allocations[address] = {bytes, false};
  }
  OwnedMemory(const OwnedMemory&) = delete;
  OwnedMemory& operator=(const OwnedMemory&) = delete;
  ~OwnedMemory() {
    all_graph_memory().allocations.erase(address_);
    (void)context_.release(address_);
  }
  uint64_t address() const { return address_; }

private:
  Context& context_;
  uint64_t address_;
};

Code allocation_action(Context& context, uint64_t bytes, uint64_t& address, Action& action) {
  if (const Code code = context.allocate(bytes, address); code != Code::success) return code;
  action = [memory = std::make_shared<OwnedMemory>(context, address, bytes)] {
    mark_used(memory->address(), true);
    return Code::success;
  };
  return Code::success;
}

Action release_action(Context& context, uint64_t address) {
  return [&context, address] {
    return is_graph_memory(address) ? release_graph_memory(address) : context.release(address);
  };
}

} // namespace

Code default_pool(MemoryPool** pool, int device) {
  return give(pool, &first_pool(), device);
}

Code default_pool_at(MemoryPool** pool, const Location* location) {
  if (!location) return Code::invalid_value;
  return location->type == location_device ? give(pool, &first_pool(), location->id) : Code::not_supported;
}

Code pool_of_device(MemoryPool** pool, int device) {
  return give(pool, current_pool(), device);
}

Code set_pool_of_device(int device, MemoryPool* pool) {
  if (!pool) return Code::invalid_value;
  if (device != 0) return Code::invalid_device;
  current_pool() = pool;
  return Code::success;
}

Code create_pool(MemoryPool** pool, const PoolProperties* properties) {
  if (!pool || !properties) return Code::invalid_value;
  if (properties->handle_types) return Code::not_supported; // sharing between processes
  *pool = new MemoryPool{.properties = *properties};
  return Code::success;
}

Code destroy_pool(MemoryPool* pool) {
  if (!pool || pool == &first_pool()) return Code::invalid_value;
  if (current_pool() == pool) current_pool() = &first_pool();
  delete pool;
  return Code::success;
}

Code pool_attribute(Context& context, MemoryPool* pool, int attribute, void* value) {
  if (!pool || !value || attribute < 1 || attribute > used_most) return Code::invalid_value;
  uint64_t number = pool->settings[attribute];
  if (attribute == reserved_now || attribute == used_now) number = bytes_in(context, *pool);
  if (attribute == reserved_most || attribute == used_most) number = (bytes_in(context, *pool), pool->most);
  std::memcpy(value, &number, attribute <= last_switch ? sizeof(int) : sizeof number);
  return Code::success;
}

Code set_pool_attribute(Context& context, MemoryPool* pool, int attribute, const void* value) {
  if (!pool || !value || attribute < 1 || attribute > used_most) return Code::invalid_value;
  uint64_t number = 0;
  std::memcpy(&number, value, attribute <= last_switch ? sizeof(int) : sizeof number);
  if (attribute == reserved_most || attribute == used_most)
    pool->most = std::max(number, bytes_in(context, *pool)); // writing zero resets the maximum
  else
    pool->settings[attribute] = number;
  return Code::success;
}

Code trim_pool(MemoryPool* pool) {
  return pool ? Code::success : Code::invalid_value;
}

Code set_pool_access(MemoryPool* pool, const AccessDescription* given, size_t count) {
  for (size_t i = 0; given && i < count; ++i)
    if (given[i].location.type == location_device && given[i].location.id != 0) return Code::invalid_device;
  return pool && (given || !count) ? Code::success : Code::invalid_value;
}

Code pool_access(int* flags, MemoryPool* pool, const Location* location) {
  if (!flags || !pool || !location) return Code::invalid_value;
  *flags = location->type == location_device && location->id == 0 ? 3 : 0; // read and write
  return Code::success;
}

Code allocate_in_stream(Context& context, void* handle, MemoryPool* pool, uint64_t bytes, uint64_t& address) {
  Stream* stream = nullptr;
  if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
  if (bytes == 0) return Code::invalid_value;
  if (!stream || !stream->capture) return allocate_from(context, pool ? *pool : *current_pool(), bytes, address);
  Action action;
  if (const Code code = allocation_action(context, bytes, address, action); code != Code::success) return code;
  return context.submit(stream, NodeType::allocate, std::move(action));
}

Code release_in_stream(Context& context, void* handle, uint64_t address) {
  Stream* stream = nullptr;
  if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
  if (context.info_of(address).begin != address) return Code::invalid_value;
  return context.submit(stream, NodeType::release, release_action(context, address));
}

Code add_allocation(Context& context, GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies,
                    size_t count, AllocationNode* node) {
  if (!node || node->bytes == 0) return Code::invalid_value;
  Action action;
  if (const Code code = allocation_action(context, node->bytes, node->address, action); code != Code::success)
    return code;
  return add_node(made, graph, dependencies, count, NodeType::allocate, std::move(action));
}

Code add_release(Context& context, GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies, size_t count,
                 uint64_t address) {
  if (!is_graph_memory(address)) return Code::invalid_value;
  return add_node(made, graph, dependencies, count, NodeType::release, release_action(context, address));
}

bool is_graph_memory(uint64_t address) {
  return all_graph_memory().allocations.contains(address);
}

Code release_graph_memory(uint64_t address) {
  mark_used(address, false);
  return Code::success;
}

Code graph_memory(int device, int attribute, uint64_t* value) {
  if (!value) return Code::invalid_value;
  if (device != 0) return Code::invalid_device;
  AllGraphMemory& all = all_graph_memory();
  all.update_maxima();
  const uint64_t values[] = {all.bytes(true), all.used_most, all.bytes(false), all.reserved_most};
  if (attribute < 0 || attribute >= static_cast<int>(std::size(values))) return Code::invalid_value;
  *value = values[attribute];
  return Code::success;
}

Code reset_graph_memory_maximum(int device, int attribute) {
  if (device != 0) return Code::invalid_device;
  AllGraphMemory& all = all_graph_memory();
  if (attribute == 1)
    all.used_most = 0;
  else if (attribute == 3)
    all.reserved_most = 0;
  else
    return Code::invalid_value;
  all.update_maxima();
  return Code::success;
}

} // namespace ptxrewrite::cuda
