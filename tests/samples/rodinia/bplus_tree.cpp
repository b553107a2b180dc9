// Look-ups in a sorted map of the entries of the tree's leaves.
#include "tests/samples/reference.h"

REFERENCE(bplus_tree) {
  constexpr int order = 256;
  struct Node {
    int32_t children[order + 1];
    int32_t keys[order + 1];
  };
  std::map<int32_t, int32_t> record_of_key;
  auto nodes = data.as<Node>("nodes");
  for (const Node& leaf : nodes.subspan(1 + data.value("root_children")))
    for (int k = 0; k < order; ++k)
      record_of_key[leaf.keys[k]] = leaf.children[k];

  auto records = data.s32("records"), wanted = data.s32("wanted"), answers = data.s32("answers");
  for (size_t query = 0; query < wanted.size(); ++query)
    if (auto found = record_of_key.find(wanted[query]); found != record_of_key.end())
      answers[query] = records[found->second];

  auto first_wanted = data.s32("first_wanted"), last_wanted = data.s32("last_wanted");
  auto range_start = data.s32("range_start"), range_length = data.s32("range_length");
  for (size_t query = 0; query < first_wanted.size(); ++query) {
    const auto first = record_of_key.lower_bound(first_wanted[query]);
    const auto past = record_of_key.upper_bound(last_wanted[query]);
    range_start[query] = first->second;
    range_length[query] = static_cast<int32_t>(std::distance(first, past));
  }
}
