// Error codes, shared by the runtime and the driver API if both have the error.
#pragma once

#include <span>

namespace ptxrewrite::cuda {

enum class Code : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialised = 3,
  deinitialised = 4,               // the program is ending
  invalid_configuration = 9,       // runtime only; the driver returns invalid_value
  invalid_pitch = 12,              // runtime only
  invalid_symbol = 13,             // runtime only; the driver returns not_found
  invalid_device_pointer = 17,     // runtime only
  invalid_texture = 18,            // runtime only
  invalid_channel_descriptor = 20, // runtime only
  invalid_copy_direction = 21,     // runtime only
  invalid_surface = 37,            // runtime only
  missing_configuration = 52,      // runtime only
  invalid_device_function = 98,    // runtime only
  no_device = 100,
  invalid_device = 101,
  invalid_image = 200,
  invalid_context = 201,
  no_binary_for_gpu = 209,
  invalid_ptx = 218,
  unsupported_limit = 215,
  peer_access_unsupported = 217,
  invalid_source = 300,
  file_not_found = 301,
  symbol_not_found_in_library = 302,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  launch_out_of_resources = 701,
  launch_timeout = 702,
  peer_access_not_enabled = 705,
  context_is_destroyed = 709,
  assertion = 710,
  memory_already_registered = 712,
  memory_not_registered = 713,
  misaligned_address = 716,
  launch_failure = 719,
  cooperative_launch_too_large = 720,
  not_permitted = 800,
  not_supported = 801,
  stream_capture_unsupported = 900,
  stream_capture_invalidated = 901,
  invalid_cluster_size = 912,
  unknown = 999,
};

// An error code of one of the APIs; each has its own rows (errors.def).
struct ErrorRow {
  int number;
  const char* name;
  const char* text;
};

// Returns nullptr if the API has no such code.
inline const ErrorRow* find_error(std::span<const ErrorRow> rows, int number) {
  for (const ErrorRow& row : rows)
    if (row.number == number) return &row;
  return nullptr;
}

} // namespace ptxrewrite::cuda
