// Builds a plan from the tree of a launch file with a size merged in. Internal to this folder.
#pragma once

#include "launch/launch_plan.h"
#include "launch/scope.h"
#include "support/text/document.h"

#include <set>

namespace ptxrewrite::launch {

class PlanBuilder {
public:
  PlanBuilder(const Node& root, std::string folder, Scope& scope, LaunchPlan& plan)
      : root_(root), folder_(std::move(folder)), scope_(scope), plan_(plan) {}

  // Errors go to the scope's diagnostics.
  void build(const std::string& target);

private:
  // --- plan_builder.cpp: data ---
  void choose_ptx(const std::string& target);
  void read_buffers();
  void read_variables(ir::StateSpace space, const char* section);
  void read_textures();
  bool read_data(const Node& table, const std::string& what, Buffer& buffer);
  bool read_type(const Node& table, const std::string& what, ir::ScalarType& type);
  bool read_contents(const Node& table, const std::string& what, Buffer& buffer);
  bool read_values(const Node& node, const std::string& what, Buffer& buffer);
  bool read_file(const Node& node, const std::string& what, const Buffer& buffer, std::string& path);
  void read_comparison(const Node& table, const std::string& what, Buffer& buffer);
  void check_first_and_last(const Node& table, const std::string& what, const Buffer& buffer);
  void read_texture(const Node& table, const std::string& what, Texture& texture);
  void read_levels(const Node& table, const std::string& what, Texture& texture);
  void check_texture(const Node& table, const std::string& what, const Texture& texture);
  std::optional<std::string> text_of(const Node& node, const std::string& what);
  std::optional<bool> flag_of(const Node& node, const std::string& what);
  std::string path_of(const std::string& name) const;
  size_t choice_of(const Node& table, const char* key, const std::string& what,
                   std::span<const std::string_view> choices);
  size_t choice_of(const Node& table, const char* key, const std::string& what,
                   std::initializer_list<std::string_view> choices) {
    return choice_of(table, key, what, std::span(choices.begin(), choices.size()));
  }
  void limit_memory(const Buffer& buffer);

  // --- plan_arguments.cpp ---
  std::optional<Argument> read_argument(const Node& node, const std::string& what);
  std::optional<Argument> read_scalar(ir::ScalarType type, const Node& node, const std::string& what);
  std::optional<Argument> read_raw_bytes(const Node& node, const std::string& what);
  std::optional<Argument> read_structure(const Node& node, const std::string& what);
  std::optional<Argument> read_buffer_argument(const Node& table, const std::string& what);
  std::optional<Argument> read_texture_argument(const Node& node, const std::string& what);
  std::optional<uint32_t> buffer_index(const Node& node, const std::string& what);

  // --- plan_tensor_maps.cpp ---
  std::optional<Argument> read_tensor_map_argument(const Node& node, const std::string& what);
  bool check_tensor_map_keys(const Node& table, const std::string& what);
  bool read_tensor(const Node& table, const std::string& what, PlannedTensorMap& planned);
  bool read_strides(const Node& table, const std::string& what, ir::TensorMap& map);
  bool read_tile(const Node& table, const std::string& what, ir::TensorMap& map);
  bool read_layout(const Node& table, const std::string& what, ir::TensorMap& map);
  // Reads integers in [low, high]; at most out.size(), or exactly `count`. Returns nullopt after a diagnostic.
  template <class T>
  std::optional<size_t> read_integers(const Node& node, const std::string& what, std::span<T> out,
                                      std::optional<size_t> count, Int128 low, Int128 high);

  // --- plan_launches.cpp ---
  void read_launches();
  struct Repeat;
  bool read_repeats(const Node& launch, std::vector<Repeat>& repeats);
  bool read_repeat(const Node& table, std::vector<Repeat>& repeats);
  size_t end_of_group(size_t first);
  void unroll(const std::vector<Repeat>& repeats, size_t depth, size_t first, size_t end);
  bool emit(size_t place);
  void read_launch(const Node& table, size_t place);
  bool read_dimensions(const Node& node, const std::string& what, const Dim3& limit, Dim3& out);
  bool read_shape(const Node& table, Dim3& grid, Dim3& block, uint32_t& shared);
  void read_shapes(const Node& table, const Launch& launch);

  const Node& root_;
  std::string folder_;
  Scope& scope_;
  LaunchPlan& plan_;
  const Node* launches_ = nullptr;
  uint64_t memory_ = 0;
  uint64_t trips_ = 0;
  std::set<size_t> shaped_; // launches of the file whose shapes have been read
  bool stopped_ = false;    // after an error in a launch, which other trips would only repeat
};

} // namespace ptxrewrite::launch
