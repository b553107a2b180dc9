// Matrix pipelines as PTX: the parts are in several files.
#pragma once

#include "tests/fuzz/pipelines/matrix/matrix_pipeline.h"

#include <fmt/format.h>

#include <string>

namespace ptxrewrite::fuzz::pipelines {

class MatrixPrinter {
public:
  explicit MatrixPrinter(const MatrixPipeline& pipeline) : p_(pipeline) {}
  std::string text();

private:
  template <class... Values> void add(fmt::format_string<Values...> format, Values&&... values) {
    text_ += fmt::format(format, std::forward<Values>(values)...);
  }
  void put(std::string_view text) { text_ += text; }
  bool has(MatrixFault fault) const { return p_.fault == fault; }
  bool has_cluster() const { return p_.cluster_blocks == 2; }

  // print.cpp: statements of all roles
  void declare();
  void start();
  void initialise_barriers();
  void synchronise_blocks();
  void finish();
  void begin_counts();
  void find_stage();
  void next_stage();
  void wait(const char* barrier, const char* label, bool relaxed = false);
  void begin_results(const char* label);
  void next_result(const char* label);
  void release(const char* barrier);

  // print_producer.cpp
  void producer();
  void expect(uint32_t bytes);
  uint32_t copied_bytes() const;
  void copy_a();
  void copy_b();
  void copy(const char* map, const char* place, const char* line, const char* wide, bool shared);
  void store_a();

  // print_consumer.cpp
  void warp_group_consumer();
  void warp_consumer();
  void products_of_stage();
  void products_of_warp(uint32_t step);
  void load_fragments_of_a(uint32_t step);
  void load_fragment(const TileLayout& tile, const char* base, const std::string& to, uint32_t k_byte);
  void clear_sums();
  void store_sums();
  void copy_result(const char* threads, uint32_t rows);
  uint32_t sum_registers() const; // of a thread
  std::string sums() const;

  // print_tensor_memory.cpp
  void multiplying_warp();
  void result_warps();
  void store_row();

  // Offset of step `step` of 32 bytes along k in a tile, and the fields of its matrix descriptor besides the address.
  static uint32_t step_offset(const TileLayout& tile, uint32_t step);
  uint64_t descriptor_fields(const TileLayout& tile) const;
  void find_descriptor(const TileLayout& tile, const char* place, const char* descriptor, uint32_t step);

  const MatrixPipeline& p_;
  std::string text_;
};

} // namespace ptxrewrite::fuzz::pipelines
