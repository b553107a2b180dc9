// Each rule's pattern, as a kernel, is found by the pass and replaced; and the cover of bitwise instructions is as
// small as the minimum found by brute force.
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "tests/fuzz/random.h"
#include "tests/rules/rule_kernels.h"
#include "transforms/composite/composite_logic.h"
#include "transforms/manager/pipeline.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <set>
#include <vector>

namespace ptxrewrite::tests {
namespace {

using namespace transforms::legal::composite;
using fuzz::Random;

std::unique_ptr<ir::Module> module_of(const std::string& text) {
  Diagnostics diagnostics;
  return grammar::read_module(SourceFile("rule.ptx", text), diagnostics);
}

// The spelling of a rule's mnemonic in PTX.
std::string spelled(const std::string& mnemonic) {
  return mnemonic == "pack.b64" ? "mov.b64 \t" : mnemonic;
}

int match_all() {
  int failures = 0;
  size_t count = 0;
  for (const Rule& rule : rules()) {
    const std::string header = module_header(rule.target > 90 ? "sm_100" : "sm_90");
    const std::optional<std::string> kernel = kernel_of(rule, "k", false);
    const std::unique_ptr<ir::Module> module = kernel ? module_of(header + *kernel) : nullptr;
    if (!module) {
      std::printf("%s: no kernel\n", rule.name.c_str());
      ++failures;
      continue;
    }
    transforms::RunOptions options;
    options.verify_each = true;
    const std::string family{family_names[static_cast<size_t>(rule.family)]};
    auto pipeline = transforms::parse_pipeline("composite(force,families=" + family + ")");
    auto report = transforms::run_pipeline(*module, *pipeline, options);
    const std::string after = report ? ir::print(*module) : report.error().message;
    // The rule itself, or one that is more specific about a part of its pattern.
    if (!report || report->statistics.empty() ||
        after.find(spelled(rule.replacement.text).substr(0, rule.replacement.text.find('.'))) == std::string::npos) {
      std::printf("%s was not found in\n%s\n", rule.name.c_str(), after.c_str());
      ++failures;
    }
    ++count;
  }
  std::printf("%zu rules matched\n", count);
  return failures;
}

// Bitwise instructions over four inputs, in two-input steps, with stored results.
struct Graph {
  static constexpr unsigned inputs = 4;
  struct Node {
    unsigned a = 0, b = 0; // inputs first
    const char* mnemonic = "";
  };
  std::vector<Node> nodes;
  std::set<unsigned> outputs; // of nodes

  std::string text() const {
    std::string body = module_header("sm_90") + ".visible .entry k(.param .u64 buffer)\n{\n.reg .b32 %r<40>;\n"
                                                ".reg .b64 %rd<3>;\nld.param.u64 %rd1, [buffer];\n";
    for (unsigned i = 0; i < inputs; ++i)
      body += "ld.global.b32 %r" + std::to_string(i) + ", [%rd1+" + std::to_string(4 * i) + "];\n";
    for (unsigned i = 0; i < nodes.size(); ++i)
      body += std::string(nodes[i].mnemonic) + ".b32 %r" + std::to_string(inputs + i) + ", %r" +
              std::to_string(nodes[i].a) + ", %r" + std::to_string(nodes[i].b) + ";\n";
    for (unsigned output : outputs)
      body +=
          "st.global.b32 [%rd1+" + std::to_string(64 + 4 * output) + "], %r" + std::to_string(inputs + output) + ";\n";
    return body + "ret;\n}\n";
  }
};

Graph random_graph(Random& random) {
  Graph graph;
  const unsigned size = 3 + static_cast<unsigned>(random.below(5));
  std::set<unsigned> unread;
  for (unsigned i = 0; i < size; ++i) {
    static constexpr const char* mnemonics[] = {"and", "or", "xor"};
    Graph::Node node;
    node.a = static_cast<unsigned>(random.below(Graph::inputs + i));
    do
      node.b = static_cast<unsigned>(random.below(Graph::inputs + i));
    while (node.b == node.a);
    node.mnemonic = mnemonics[random.below(3)];
    for (unsigned read : {node.a, node.b})
      if (read >= Graph::inputs) unread.erase(read - Graph::inputs);
    graph.nodes.push_back(node);
    unread.insert(i);
  }
  graph.outputs = unread;
  return graph;
}

// Whether `node` is a function of three values in `set` and the inputs. Tries all possible leaves.
bool is_function_of_three(const Graph& graph, uint32_t set, std::set<unsigned> leaves, std::set<unsigned> open) {
  if (leaves.size() > 3) return false;
  if (open.empty()) return true;
  const unsigned next = *open.begin();
  open.erase(open.begin());
  const bool may_stop = next < Graph::inputs || (set >> (next - Graph::inputs) & 1);
  if (may_stop) {
    std::set<unsigned> with = leaves;
    with.insert(next);
    if (is_function_of_three(graph, set, with, open)) return true;
  }
  if (next < Graph::inputs) return false;
  open.insert(graph.nodes[next - Graph::inputs].a);
  open.insert(graph.nodes[next - Graph::inputs].b);
  return is_function_of_three(graph, set, leaves, open);
}

size_t smallest_cover(const Graph& graph) {
  size_t least = graph.nodes.size();
  for (uint32_t set = 0; set < 1u << graph.nodes.size(); ++set) {
    if (static_cast<size_t>(std::popcount(set)) >= least) continue;
    bool covers = std::ranges::all_of(graph.outputs, [&](unsigned output) { return set >> output & 1; });
    for (unsigned i = 0; i < graph.nodes.size() && covers; ++i)
      if (set >> i & 1) covers = is_function_of_three(graph, set, {}, {graph.nodes[i].a, graph.nodes[i].b});
    if (covers) least = static_cast<size_t>(std::popcount(set));
  }
  return least;
}

int cover_random_graphs() {
  constexpr unsigned graphs = 300;
  int failures = 0;
  size_t operations = 0, instructions = 0;
  for (unsigned seed = 1; seed <= graphs; ++seed) {
    Random random(seed);
    const Graph graph = random_graph(random);
    const std::unique_ptr<ir::Module> module = module_of(graph.text());
    ir::Function& function = *module->functions.front();
    if (!ir::construct_ssa(function)) return 1;
    Editor editor(function);
    const size_t covered = size_of_cover(editor, function.entry()), least = smallest_cover(graph);
    operations += covered;
    instructions += graph.nodes.size();
    if (covered == least) continue;
    std::printf("graph %u: %zu operations, %zu would do\n%s", seed, covered, least, graph.text().c_str());
    ++failures;
  }
  std::printf("%u random graphs: %zu instructions covered by %zu lop3, the fewest there are\n", graphs, instructions,
              operations);
  return failures;
}

} // namespace
} // namespace ptxrewrite::tests

int main() {
  const int failures = ptxrewrite::tests::match_all() + ptxrewrite::tests::cover_random_graphs();
  return failures == 0 ? 0 : 1;
}
