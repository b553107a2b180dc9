// Memory pools, allocation in streams, and memory nodes of graphs, as both APIs use them.
#pragma once

#include "cuda/context/stream_calls.h"

namespace ptxrewrite::cuda {

// cudaMemLocation, CUmemLocation.
struct Location {
  int type, id;
};
inline constexpr int location_device = 1; // CU_MEM_LOCATION_TYPE_DEVICE; larger types are the host's

// cudaMemPoolProps and CUmemPoolProps; CUmemAllocationProp has the same first members. All that follows `location` are
// hints.
struct PoolProperties {
  int type, handle_types;
  Location location;
  void* unused;
  unsigned char rest[8];
};
inline constexpr size_t pool_properties_bytes = 88; // of the programs' structure

// cudaMemAccessDesc, CUmemAccessDesc.
struct AccessDescription {
  Location location;
  int flags;
};

// cudaMemAllocNodeParams, CUDA_MEM_ALLOC_NODE_PARAMS.
struct AllocationNode {
  unsigned char properties[pool_properties_bytes];
  const AccessDescription* access;
  size_t access_count;
  size_t bytes;
  uint64_t address; // result
};

struct MemoryPool;

Code default_pool(MemoryPool** pool, int device);
Code default_pool_at(MemoryPool** pool, const Location* location);
Code pool_of_device(MemoryPool** pool, int device);
Code set_pool_of_device(int device, MemoryPool* pool);
Code create_pool(MemoryPool** pool, const PoolProperties* properties);
// Allocations of the pool stay until they are freed.
Code destroy_pool(MemoryPool* pool);
Code pool_attribute(Context& context, MemoryPool* pool, int attribute, void* value);
Code set_pool_attribute(Context& context, MemoryPool* pool, int attribute, const void* value);
// Freed memory is returned to the device immediately.
Code trim_pool(MemoryPool* pool);
Code set_pool_access(MemoryPool* pool, const AccessDescription* given, size_t count);
Code pool_access(int* flags, MemoryPool* pool, const Location* location);

// Allocates in the order of a stream, from the device's pool if `pool` is null. While the stream is captured, the
// memory belongs to the graph.
Code allocate_in_stream(Context& context, void* stream, MemoryPool* pool, uint64_t bytes, uint64_t& address);
// Frees in the order of a stream: while it is captured, when the graph runs.
Code release_in_stream(Context& context, void* stream, uint64_t address);

// Memory of a graph has its address from the creation of the node on, and is kept as long as a graph or an instance
// has the node: a node or a call that frees it only ends its use.
Code add_allocation(Context& context, GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies,
                    size_t count, AllocationNode* node);
Code add_release(Context& context, GraphNode** made, GraphHandle* graph, GraphNode* const* dependencies, size_t count,
                 uint64_t address);
bool is_graph_memory(uint64_t address);
// Ends the use of a graph's memory by a call outside of the graph.
Code release_graph_memory(uint64_t address);
// cudaGraphMemAttributeType: used and reserved bytes, and their maxima.
Code graph_memory(int device, int attribute, uint64_t* value);
Code reset_graph_memory_maximum(int device, int attribute);

} // namespace ptxrewrite::cuda
