// The longest match of each place of each read, from the sets of all strings that occur, without a tree.
#include "tests/samples/reference.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>

REFERENCE(mummergpu) {
  const int64_t k = data.value("k"), line = data.value("line"), places = data.value("length");
  const int64_t least = data.value("least"), read_length = data.value("read_length"), stride = data.value("stride");
  auto letters = data.as<char>("letters"), reference = data.as<char>("reference");
  auto matches = data.s32("matches");
  auto rest_of_line = [&](int64_t place) {
    return std::string_view{&reference[place], static_cast<size_t>(line - place % line)};
  };
  // Nodes are numbered by depth, then alphabetically.
  auto node = [](std::string_view path) {
    int64_t code = 0, first = 1;
    for (size_t depth = 0; depth < path.size(); ++depth) {
      first += int64_t{1} << (2 * depth);
      code = code * 4 + static_cast<int64_t>(std::string_view{"ACGT"}.find(path[depth]));
    }
    return static_cast<int32_t>(first + code);
  };

  std::unordered_map<std::string_view, int64_t> long_strings; // of k letters: each occurs once
  std::unordered_set<std::string_view> short_strings;
  for (int64_t start : {int64_t{0}, line})
    for (int64_t place = start; place < start + line; ++place) {
      const std::string_view text = rest_of_line(place);
      for (size_t length = 1; length < static_cast<size_t>(k) && length <= text.size(); ++length)
        short_strings.insert(text.substr(0, length));
      if (place >= start + places) continue;
      if (!long_strings.emplace(text.substr(0, static_cast<size_t>(k)), place).second)
        throw std::runtime_error("a string of k letters occurs twice");
    }

  const int64_t starts = read_length - least + 1;
  for (int64_t read = 0; read < data.value("reads"); ++read)
    for (int64_t start = 0; start < starts; ++start) {
      const std::string_view wanted{&letters[read * stride + 1 + start], static_cast<size_t>(read_length - start)};
      int32_t* match = &matches[2 * (read * starts + start)];
      if (auto found = long_strings.find(wanted.substr(0, static_cast<size_t>(k))); found != long_strings.end()) {
        const std::string_view text = rest_of_line(found->second);
        size_t length = static_cast<size_t>(k);
        while (length < wanted.size() && length < text.size() && wanted[length] == text[length])
          ++length;
        if (static_cast<int64_t>(length) < least) continue;
        match[0] = node(found->first);
        match[1] = static_cast<int32_t>(length) - static_cast<int32_t>(k) + 1; // its edge starts above its last letter
        continue;
      }
      size_t length = 0;
      while (length < wanted.size() && short_strings.contains(wanted.substr(0, length + 1)))
        ++length;
      if (static_cast<int64_t>(length) < least) continue;
      match[0] = node(wanted.substr(0, length));
      match[1] = length == wanted.size() ? 1 : 0; // at the end of the read the walk stops on the edge to the node
    }
}
