#include "tests/fuzz/launchtime/builder.h"

#include "tests/fuzz/kernels/kernel_operations.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace ptxrewrite::fuzz::launchtime {

namespace {

// Rows by text and number of sources, without those on pointers.
uint32_t row_named(std::string_view text, size_t sources) {
  static const auto rows = [] {
    std::map<std::pair<std::string, size_t>, uint32_t> found;
    for (uint32_t i = 0; i < operations().size(); ++i) {
      const Operation& row = operations()[i];
      if ((row.results + row.sources).find_first_of("as") == std::string::npos)
        found.emplace(std::pair(row.text, row.sources.size()), i);
    }
    return found;
  }();
  const auto row = rows.find({std::string(text), sources});
  if (row != rows.end()) return row->second;
  std::fprintf(stderr, "fuzz_launchtime: no operation %s of %zu sources\n", std::string(text).c_str(), sources);
  std::abort();
}

char result_kind(const Operation& row) {
  const Kind kind = kind_of_letter(row.results[0]);
  if (kind == Kind::f32) return 'f';
  switch (width_of(kind)) {
  case 1:
    return 'p';
  case 16:
    return 'h';
  case 64:
    return 'd';
  default:
    return 'r';
  }
}

} // namespace

char register_kind_of(const std::string& type) {
  if (type == "f32") return 'f';
  if (type == "b16") return 'h';
  return bytes_of(type) == 8 ? 'd' : 'r';
}

Builder::Builder(Kernel& made, Random& choices) : random(choices), kernel(made), open_{&made.body} {}

Register Builder::fresh(char kind) {
  return {kind, kernel.registers[kind_index(kind)]++};
}

Node& Builder::node(Node::Kind kind) {
  Node& node = open_.back()->emplace_back();
  node.kind = kind;
  node.id = kernel.node_count++;
  return node;
}

Register Builder::special(std::string_view name) {
  const Register result = fresh('r');
  Node& made = node(Node::Kind::special);
  made.text = name;
  made.results = {result};
  return result;
}

Register Builder::op(std::string_view text, std::vector<Operand> sources) {
  const Register result = fresh(result_kind(operations()[row_named(text, sources.size())]));
  assign(result, text, std::move(sources));
  return result;
}

void Builder::assign(Register result, std::string_view text, std::vector<Operand> sources) {
  Node& made = node(Node::Kind::operation);
  made.operation = row_named(text, sources.size());
  made.results = {result};
  made.sources = std::move(sources);
}

uint32_t Builder::pointer(unsigned grain) {
  kernel.parameters.push_back({'d', true, random.one_in(8), grain, fresh('d')});
  return static_cast<uint32_t>(kernel.parameters.size() - 1);
}

uint32_t Builder::number(char kind) {
  kernel.parameters.push_back({kind, false, false, 1, fresh(kind)});
  return static_cast<uint32_t>(kernel.parameters.size() - 1);
}

Register Builder::address(uint32_t pointer, Register index, uint32_t stride) {
  Register offset;
  switch (random.below(5)) {
  case 0:
    offset = op("mul.wide.s32", {index, uint64_t(stride)});
    break;
  case 1:
    offset = op("mul.wide.u32", {index, uint64_t(stride)});
    break;
  case 2:
    offset = op("mul.lo.s64", {op("cvt.u64.u32", {index}), uint64_t(stride)});
    break;
  case 3:
    offset = op("cvt.s64.s32", {op("mul.lo.s32", {index, uint64_t(stride)})});
    break;
  default:
    offset = op("mul.lo.s64", {op("cvt.s64.s32", {index}), uint64_t(stride)});
    break;
  }
  return op("add.s64", {parameter(pointer), offset});
}

Register Builder::load(uint32_t pointer, Register address, int64_t offset, const std::string& type) {
  const Register result = fresh(register_kind_of(type));
  Node& made = node(Node::Kind::load);
  made.type = type;
  made.results = {result};
  made.sources = {address};
  made.offset = offset;
  made.pointer = static_cast<int>(pointer);
  return result;
}

uint32_t Builder::store(uint32_t pointer, Register address, int64_t offset, const std::string& type, Register value) {
  Node& made = node(Node::Kind::store);
  made.type = type;
  made.sources = {address, value};
  made.offset = offset;
  made.pointer = static_cast<int>(pointer);
  return made.id;
}

uint32_t Builder::add_in_memory(uint32_t pointer, Register address, Register value) {
  Node& made = node(Node::Kind::add);
  made.type = "u32";
  made.sources = {address, value};
  made.pointer = static_cast<int>(pointer);
  return made.id;
}

uint32_t Builder::store_to_either(Register address, Register value) {
  Node& made = node(Node::Kind::store);
  made.type = "u32";
  made.sources = {address, value};
  return made.id;
}

void Builder::branch(Register condition, bool is_negated, const std::function<void()>& body) {
  std::vector<Node> nodes;
  open_.push_back(&nodes);
  body();
  open_.pop_back();
  Node& made = node(Node::Kind::branch);
  made.sources = {condition};
  made.is_negated = is_negated;
  made.body = std::move(nodes);
}

void Builder::loop(const std::function<Register()>& body) {
  std::vector<Node> nodes;
  open_.push_back(&nodes);
  const Register again = body();
  open_.pop_back();
  Node& made = node(Node::Kind::loop);
  made.sources = {again};
  made.body = std::move(nodes);
}

Register Builder::shuffle(const std::string& mode, Register value, Operand lane, Operand bound, Operand members) {
  const Register result = fresh('r');
  Node& made = node(Node::Kind::shuffle);
  made.text = mode;
  made.results = {result};
  made.sources = {value, lane, bound, members};
  return result;
}

Register Builder::vote(const std::string& mode, Register predicate, Operand members) {
  const Register result = fresh(mode == "ballot" ? 'r' : 'p');
  Node& made = node(Node::Kind::vote);
  made.text = mode;
  made.results = {result};
  made.sources = {predicate, members};
  return result;
}

Register Builder::thread() {
  return special("%tid.x");
}

Register Builder::global_thread() {
  const Register block = special("%ctaid.x"), size = special("%ntid.x"), thread = special("%tid.x");
  return op("mad.lo.s32", {block, size, thread});
}

} // namespace ptxrewrite::fuzz::launchtime
