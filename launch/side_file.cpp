#include "launch/side_file.h"

#include "support/text/json_document.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>

namespace ptxrewrite::launch {

// docs/side_file.schema.json, converted to a source file by the build.
extern const char* const side_file_schema;

namespace {

const Node& schema() {
  static const Node tree = [] {
    Diagnostics ignored; // errors cannot occur: a test reads the schema
    return read_json(SourceFile("side_file.schema.json", side_file_schema), ignored).value_or(Node());
  }();
  return tree;
}

class SideReader {
public:
  explicit SideReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void read(const Node& root, SideFile& file) {
    std::set<std::string> names;
    for (const Node& item : root.find("kernels")->items) {
      SideKernel kernel{item.find("name")->text, item.find("original")->text, {}};
      if (!names.insert(kernel.name).second)
        diagnostics_.error(item.find("name")->range, "kernel '" + kernel.name + "' is described twice");
      for (const Node& variant : item.find("variants")->items)
        kernel.variants.push_back(read_variant(variant));
      file.kernels.push_back(std::move(kernel));
    }
  }

private:
  SideVariant read_variant(const Node& node) {
    SideVariant variant;
    variant.entry = node.find("entry")->text;
    if (const Node* when = node.find("when")) variant.when = read_expression(*when, "when");
    if (const Node* grid = node.find("grid"); grid && grid->text == "persistent") variant.grid = GridMode::persistent;
    if (const Node* block = node.find("block"); block && block->text == "producer") variant.block = BlockMode::producer;
    if (const Node* list = node.find("params"))
      for (const Node& item : list->items)
        variant.parameters.push_back(
            {*ir::parse_type(item.find("type")->text), read_expression(*item.find("value"), "value")});
    return variant;
  }

  LaunchExpression read_expression(const Node& node, const std::string& what) {
    Result<LaunchExpression> expression = LaunchExpression::parse(node.text, node.text_offset);
    if (expression) return *std::move(expression);
    SourceRange range = node.text_offset ? expression.error().range : node.range;
    diagnostics_.error(range, what + ": " + expression.error().message);
    return {};
  }

  Diagnostics& diagnostics_;
};

} // namespace

std::optional<SideFile> read_side_file(const SourceFile& source, Diagnostics& diagnostics) {
  const size_t errors_before = diagnostics.error_count();
  std::optional<Node> root = read_json(source, diagnostics);
  if (!root) return std::nullopt;
  check_schema(*root, schema(), diagnostics);
  if (diagnostics.error_count() != errors_before) return std::nullopt;
  SideFile file{source, {}};
  SideReader(diagnostics).read(*root, file);
  if (diagnostics.error_count() != errors_before) return std::nullopt;
  return file;
}

std::string write_side_file(const SideFile& file) {
  using json = nlohmann::ordered_json;
  json kernels = json::array();
  for (const SideKernel& kernel : file.kernels) {
    json variants = json::array();
    for (const SideVariant& variant : kernel.variants) {
      json one = {{"entry", variant.entry}};
      if (variant.when) one["when"] = variant.when->text();
      for (const ComputedParameter& parameter : variant.parameters)
        one["params"].push_back({{"type", std::string(spelling(parameter.type))}, {"value", parameter.value.text()}});
      one["grid"] = variant.grid == GridMode::same ? "same" : "persistent";
      if (variant.block == BlockMode::producer) one["block"] = "producer";
      variants.push_back(std::move(one));
    }
    kernels.push_back({{"name", kernel.name}, {"original", kernel.original}, {"variants", std::move(variants)}});
  }
  const json document = {{"format", 1}, {"kernels", std::move(kernels)}};
  return document.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
}

std::string side_file_path(const std::string& ptx_path) {
  return std::filesystem::path(ptx_path).replace_extension(".launch.json").string();
}

} // namespace ptxrewrite::launch
