// A TOML file as a plain tree with the position of every key and value, in file order. All code that reads launch files
// works on this tree; only document.cpp uses toml++.
#pragma once

#include "support/diagnostic.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite {

enum class NodeKind : uint8_t { table, array, text, integer, decimal, boolean, other };

struct Member;

struct Node {
  NodeKind kind = NodeKind::other;
  SourceRange range;
  std::string text;         // of a string
  uint32_t text_offset = 0; // offset of its first character in the file; 0: unknown because of escapes
  int64_t integer = 0;
  double decimal = 0;
  bool boolean = false;
  std::vector<Node> items;     // of an array
  std::vector<Member> members; // of a table

  bool is(NodeKind wanted) const { return kind == wanted; }
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
};

struct Member {
  std::string key;
  SourceRange key_range;
  Node value;
};

// "a table", "a string" ... for messages.
std::string_view describe(NodeKind kind);

// Reads TOML. Returns nullopt on errors, which are in the diagnostics.
std::optional<Node> read_document(const SourceFile& source, Diagnostics& diagnostics);

} // namespace ptxrewrite
