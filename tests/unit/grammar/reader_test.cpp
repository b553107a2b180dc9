// The contents of a read module: items, blocks, edges, names, operands, annotations, hardware forms.
#include "tests/unit/grammar/read.h"

#include "support/file_io.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>
#include <filesystem>

namespace ptxrewrite::tests::reader_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

// Real instructions in the order of the text.
std::vector<InstructionId> real_instructions(const Function& function) {
  std::vector<InstructionId> list;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == InstructionKind::real) list.push_back(id);
  return list;
}

std::vector<std::string> successors(const Function& function, BlockId block) {
  std::vector<std::string> names;
  for (EdgeId edge : function.successors(block))
    names.push_back(function.block_name(function.edges[edge].to));
  return names;
}

BlockId block_named(const Function& function, std::string_view name) {
  for (BlockId block : function.layout)
    if (function.module().text(function.blocks[block].label) == name) return block;
  return {};
}

using Names = std::vector<std::string>;

} // namespace

TEST_CASE("the samples are read without a word, and read the same again after printing") {
  unsigned count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tests::source_path("samples"))) {
    if (entry.path().extension() != ".ptx") continue;
    ++count;
    CAPTURE(entry.path().string());
    ReadText first(*read_file(entry.path().string()));
    CHECK(first.messages() == "");
    REQUIRE(first.ok());
    const std::string printed = print(*first.module);
    ReadText second(printed);
    CHECK(second.messages() == "");
    REQUIRE(second.ok());
    CHECK(print(*second.module) == printed);
  }
  CHECK(count >= 7);
}

TEST_CASE("header") {
  ReadText text(".version 7.8\n.target sm_80, debug\n.address_size 64\n");
  REQUIRE(text.ok());
  CHECK(text.module->version_major == 7);
  CHECK(text.module->version_minor == 8);
  CHECK(text.module->address_size == 64);
  REQUIRE(text.module->targets.size() == 2);
  CHECK(text.module->text(text.module->targets[1]) == "debug");
}

TEST_CASE("blocks begin at labels and end behind branches; call ends none") {
  ReadText text(kernel("@%p1 bra ONE;\n mov.u32 %r1, 1;\n bra.uni TWO;\nONE:\n call f;\n mov.u32 %r1, 2;\nTWO: THREE:\n"
                       "@%p2 exit;\n mov.u32 %r2, 3;",
                       ".func f(){ ret; }\n"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  const Function& function = text.function(1);
  // entry | after the branch | ONE | TWO | THREE | after the guarded exit
  REQUIRE(function.layout.size() == 6);
  CHECK(!function.blocks[function.layout[0]].label);
  const std::string second = function.block_name(function.layout[1]);
  const std::string last = function.block_name(function.layout[5]);
  CHECK(successors(function, function.layout[0]) == Names{"ONE", second});
  CHECK(function.blocks[function.layout[0]].falls_through);
  CHECK(successors(function, function.layout[1]) == Names{"TWO"});
  CHECK(!function.blocks[function.layout[1]].falls_through);
  CHECK(successors(function, function.layout[2]) == Names{"TWO"});
  CHECK(function.blocks[function.layout[2]].falls_through);
  CHECK(successors(function, function.layout[3]) == Names{"THREE"});
  CHECK(successors(function, function.layout[4]) == Names{last}); // exit only where the guard is true
  CHECK(function.blocks[function.layout[4]].falls_through);
  CHECK(successors(function, function.layout[5]).empty());
}

TEST_CASE("brx.idx has one edge per entry of its table, and then none") {
  ReadText text(kernel("T: .branchtargets A, B, A;\n brx.idx %r1, T;\nA: mov.u32 %r2, 1;\nB: mov.u32 %r2, 2;"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  const Function& function = text.function();
  const BlockId entry = function.layout[0];
  CHECK(successors(function, entry) == Names{"A", "B", "A"});
  CHECK(!function.blocks[entry].falls_through);
}

TEST_CASE("labels and registers mean the innermost one, labels also before they are defined") {
  // The outer L is defined before the branch, the inner one after it: the branch goes to the inner one.
  ReadText text(
      kernel("L: mov.u32 %r1, 1;\n{ .reg .b32 %r<3>;\n bra L;\n mov.b32 %r1, 5;\nL: mov.b32 %r2, %r1;\n}\n bra L;"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  const Function& function = text.function();
  auto instructions = real_instructions(function);
  REQUIRE(instructions.size() == 6);
  const BlockId outer = function.instructions[instructions[0]].block;
  const BlockId inner = function.instructions[instructions[3]].block;
  CHECK(outer != inner);
  CHECK(function.operands_of(instructions[1])[0].as_block() == inner);
  CHECK(function.operands_of(instructions[4])[0].as_block() == outer);
  // %r1 inside the braces is a different register from %r1 outside.
  const ValueId outside = function.operands_of(instructions[0])[0].as_value();
  const ValueId inside = function.operands_of(instructions[2])[0].as_value();
  CHECK(outside != inside);
  CHECK(function.values[outside].type == ScalarType::b32);
  CHECK(function.value_name(inside) == "%r1");
  CHECK(function.operands_of(instructions[3])[1].as_value() == inside);
}

TEST_CASE("a range of a thousand million registers costs nothing; numbers may have leading zeros") {
  ReadText text(kernel(".reg .b32 %big<1000000000>;\n mov.b32 %big999999999, 1;\n mov.b32 %big7, %big999999999;\n"
                       "mov.b32 %big007, %big0;"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  const Function& function = text.function();
  CHECK(function.values.size() == 3);
  auto instructions = real_instructions(function);
  CHECK(function.operands_of(instructions[0])[0] ==
        Operand::definition(function.operands_of(instructions[1])[1].as_value()));
  CHECK(function.operands_of(instructions[2])[0] == function.operands_of(instructions[1])[0]);
}

TEST_CASE("instructions carry source ranges and count up their provenance") {
  const std::string body = "mov.u32 %r1, 1;\n\t@!%p1  add.u32\n\t\t%r1, %r1,\n\t\t2 ;";
  ReadText text(kernel(body));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  const Function& function = text.function();
  auto instructions = real_instructions(function);
  REQUIRE(instructions.size() == 3);
  for (unsigned i = 0; i < 3; ++i)
    CHECK(function.instructions[instructions[i]].provenance.index() == i);
  CHECK(function.source_instruction_count == 3);
  CHECK(text.source.text(function.instructions[instructions[1]].range) == "@!%p1  add.u32\n\t\t%r1, %r1,\n\t\t2 ;");
  CHECK(function.instructions[instructions[1]].guard_negated);
  CHECK(function.value_name(function.instructions[instructions[1]].guard) == "%p1");
}

TEST_CASE("operands: groups in pre-order, definitions flagged, selectors, offsets") {
  ReadText text(
      kernel("ld.global.v4.u32 {%r1, _, %r2, %r3}, [%rd1+-16];\n setp.eq.u32 %p1|%p2, %r1, 0x10;\n"
             "mov.u32 %r1, %ctaid.y;\n vadd.u32.u32.u32 %r1, %r2.b3, %r3.h1;\n st.global.u32 g[%rd1+4], %r1;\n"
             "mov.u64 %rd1, g+12;",
             ".global .u32 g[8];\n"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  const Function& function = text.function();
  auto instructions = real_instructions(function);
  auto load = function.operands_of(instructions[0]);
  REQUIRE(load.size() == 7);
  CHECK(load[0].is(OperandKind::vector));
  CHECK(load[0].group_size() == 4);
  CHECK(load[1].is_definition());
  CHECK(load[2].is(OperandKind::sink));
  CHECK(load[5].is(OperandKind::address));
  CHECK(load[5].immediate == -16);
  CHECK(load[6].is(OperandKind::value));
  CHECK(!load[6].is_definition());
  auto compare = function.operands_of(instructions[1]);
  CHECK(compare[0].is(OperandKind::pair));
  CHECK(compare[1].is_definition());
  CHECK(compare[2].is_definition());
  CHECK(compare[4].immediate == 16);
  CHECK(compare[4].has(OperandFlag::hexadecimal));
  auto special = function.operands_of(instructions[2])[1];
  CHECK(special.is(OperandKind::special_register));
  CHECK(info(SpecialRegister(special.id)).name == "%ctaid");
  CHECK(special.selector == component_selector(1));
  CHECK(function.operands_of(instructions[3])[1].selector == (2 << 14 | 3));
  CHECK(function.operands_of(instructions[3])[2].selector == (3 << 14 | 1));
  auto store = function.operands_of(instructions[4]);
  CHECK(store[0].has(OperandFlag::bracketed_index));
  CHECK(store[0].immediate == 4);
  CHECK(store[1].as_symbol().kind() == SymbolRef::Kind::module_variable);
  CHECK(store[2].is(OperandKind::value));
  CHECK(function.operands_of(instructions[5])[1].immediate == 12);
}

TEST_CASE("calls: results defined, arguments read, an undeclared callee is kept") {
  ReadText text(kernel(
      "call (%r1), f, (%r2);\n call (%r1), _optix_get_thing, (%r2);\n { .param .b32 a0; st.param.b32 [a0], %r1;\n"
      "P: .callprototype _ (.param .b32 _);\n call %rd1, (a0), P; }",
      ".func (.reg .u32 r) f(.reg .u32 x) { mov.u32 r, x; ret; }\n"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  const Function& callee = text.function(0);
  auto inside = real_instructions(callee);
  CHECK(callee.operands_of(inside[0])[0].as_value() ==
        callee.variables[callee.variable_lists.view(callee.signature.results)[0]].register_parameter);
  const Function& function = text.function(1);
  auto instructions = real_instructions(function);
  auto call = function.operands_of(instructions[0]);
  REQUIRE(call.size() == 5);
  CHECK(call[0].is(OperandKind::list));
  CHECK(call[1].is_definition());
  CHECK(call[2].as_symbol() == SymbolRef::function(FunctionId(0)));
  CHECK(!call[4].is_definition());
  auto unknown = function.operands_of(instructions[1])[2].as_symbol();
  CHECK(unknown.kind() == SymbolRef::Kind::undeclared);
  CHECK(text.module->text(unknown.name()) == "_optix_get_thing");
  auto indirect = function.operands_of(instructions[3]);
  CHECK(indirect[0].is(OperandKind::value));
  CHECK(indirect.back().is(OperandKind::prototype));
}

TEST_CASE("variables keep dimensions, alignment and initial values") {
  ReadText text(".version 9.0\n.target sm_90\n.address_size 64\n"
                ".visible .global .align 16 .u64 t[2][2] = {{1, x}, {generic(x)+8, 0x10}};\n");
  CHECK(!text.ok()); // x is declared later
  ReadText fine(
      ".version 9.0\n.target sm_90\n.address_size 64\n.extern .shared .align 8 .b8 dynamic[];\n.global .u32 x;\n"
      ".visible .global .align 16 .u64 t[2][2] = {{1, x}, {generic(x)+8, 0x10}};\n.global .u8 m[2] = {0xff(x), "
      "0xff00(x)};\n"
      ".const .v2 .f32 c = {0f3F800000, 2.5};\n");
  REQUIRE_MESSAGE(fine.ok(), fine.messages());
  const Module& module = *fine.module;
  REQUIRE(module.variables.size() == 5);
  CHECK(module.variables[VariableId(0)].unsized);
  CHECK(module.variables[VariableId(0)].linkage == Linkage::external);
  const Variable& table = module.variables[VariableId(2)];
  CHECK(table.alignment == 16);
  CHECK(module.dimensions.view(table.dimensions)[1] == 2);
  auto values = module.initialisers.view(table.initialiser);
  REQUIRE(values.size() == 7);
  CHECK(values[0].group_size() == 6);
  CHECK(values[1].group_size() == 2);
  CHECK(values[2].immediate == 1);
  CHECK(values[3].as_symbol() == SymbolRef::module_variable(VariableId(1)));
  CHECK(values[5].has(OperandFlag::generic_address));
  CHECK(values[5].immediate == 8);
  CHECK(module.variables[VariableId(3)].byte_address_initialiser);
  CHECK(print(module).find("= {0xff(x), 0xff00(x)};") != std::string::npos);
  CHECK(print(module).find("{{1, x}, {generic(x)+8, 0x10}}") != std::string::npos);
}

TEST_CASE("constants fold as ptxas folds them") {
  // Each value was compared with ptxas 13.0: the same cubin for the expression and for the number.
  const std::pair<const char*, int64_t> cases[] = {
      {"-1 < 5U", 0},
      {"(.s64)-1 < 5", 1},
      {"5>3?1:2", 1},
      {"~1", -2},
      {"!5", 0},
      {"-17/5", -3},
      {"-1>>1", -1},
      {"(.u64)-1>>60", 15},
      {"WARP_SZ*2", 64},
      {"7&3|8^2", 11},
      {"1<<4|1", 17},
      {"0x1ffffffffffffffff", -1},
      {"017", 15},
      {"0b101", 5},
      {"1-2-3", -4},
      {"10/3*3", 9},
      {"0?2:3?4:5", 4},
      {"1<<63>>63", -1},
      {"~0>>60", 15},
      {"5&&0||1", 1},
      {"(-1|0)<0", 1},
      {"1<<65", 2},
      {"1>>64", 1},
      {"- 7 % 2", 1},
      {"5 % -3", 5},
      {"~0<0", 0},
      {"1|2&&0", 0},
      {"(.u64)-5/2", 9223372036854775805},
      {"6&4==4", 0},
      {"1+2<<1", 6},
      {"(1U<<1)-3<0", 0},
      {"0x10000000000000001", 1},
      {"18446744073709551616", 0},
  };
  for (auto [expression, value] : cases) {
    CAPTURE(expression);
    ReadText text(kernel(std::string("mov.u64 %rd1, ") + expression + ";"));
    REQUIRE_MESSAGE(text.ok(), text.messages());
    const Function& function = text.function();
    CHECK(function.operands_of(real_instructions(function)[0])[1].immediate == value);
  }
  for (const char* refused : {"1.0/3", "2.5<3", "1.5?2:3", "(.s64)2.7", "99999999999999999999", "1/0", "(1,2)"}) {
    CAPTURE(refused);
    CHECK(!ReadText(kernel(std::string("mov.u64 %rd1, ") + refused + ";")).ok());
  }
}

TEST_CASE("unknown instructions stay, with their operands where they can be read and as text where not") {
  ReadText text(kernel("future.op.u32 %r1, [%rd1+4], {%r2, 7};\n future.op.b32 %r1 => (%r2 <> %r3) {x};\n@%p1 "
                       "future.go LATER;\nLATER:"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  const Function& function = text.function();
  auto instructions = real_instructions(function);
  REQUIRE(instructions.size() == 4);
  CHECK(function.form_of(instructions[0]).opaque);
  CHECK(function.operands_of(instructions[0]).size() == 6);
  REQUIRE(function.operands_of(instructions[1]).size() == 1);
  CHECK(print_instruction(function, instructions[1]) == "future.op.b32 %r1 => (%r2 <> %r3) {x};");
  // It may be a branch: both paths are possible after it.
  CHECK(function.operands_of(instructions[2])[0].as_block() == block_named(function, "LATER"));
  const BlockId entry = function.layout[0];
  CHECK(function.instructions[instructions[2]].block == entry);
  CHECK(successors(function, entry) == Names{"LATER", "LATER"});
  CHECK(function.blocks[entry].falls_through);
}

TEST_CASE("an annotation inside an unknown instruction is part of its text, once") {
  const std::string statement = "ld.shared.u//@ darsie DR uniform\n ld.shared.u32 %r1, [%rd1];";
  ReadText text(kernel(statement));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  const std::string printed = print(text.function().module());
  const size_t mark = printed.find("//@ darsie");
  CHECK(mark != std::string::npos);
  CHECK(printed.find("//@ darsie", mark + 1) == std::string::npos);
  ReadText again(printed);
  REQUIRE_MESSAGE(again.ok(), again.messages());
  CHECK(print(again.function().module()) == printed);
}

TEST_CASE("an annotation behind the header stays there") {
  ReadText text(".version 8.0\n.target sm_80\n.address_size 64\n//@ head\n.visible .entry k() { ret; }\n");
  REQUIRE_MESSAGE(text.ok(), text.messages());
  const std::string printed = print(text.function().module());
  CHECK(printed.find("//@ head\n.visible") != std::string::npos);
}

TEST_CASE("annotations stand behind their statement, other comments are gone") {
  ReadText text(kernel("//@ head\n mov.u32 %r1, //@ inside\n 1; //@ darsie DR uniform\n // plain\n bra L; //@ behind "
                       "branch\nL: /* x */"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  const std::string printed = print(text.function().module());
  const size_t head = printed.find("//@ head"), move = printed.find("mov.u32"), inside = printed.find("//@ inside"),
               mark = printed.find("//@ darsie DR uniform"), branch = printed.find("bra"),
               behind = printed.find("//@ behind branch"), label = printed.find("L:");
  CHECK(head < move);
  CHECK(move < inside);
  CHECK(inside < mark);
  CHECK(mark < branch);
  CHECK(branch < behind);
  CHECK(behind < label);
  CHECK(label != std::string::npos);
  CHECK(printed.find("plain") == std::string::npos);
}

TEST_CASE("the hardware form reads back") {
  const std::string source = R"(//@ ptxrewrite hardware 1
.version 8.0
.target sm_80
.address_size 64

.visible .entry k(.param .u64 p)
{
	.reg .b64 %cr<9>, %tr<2>, %br<2>, %lr<2>;
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	.r2d2.coefficient {
	ld.param.u64 	%cr7, [p];
	}
	.r2d2.thread {
	mov.u64 	%tr0, 4;
	}
	.r2d2.block {
	mov.u64 	%br0, 8;
	}
	.r2d2.linear %lr0 = %tr0 + %br0;
	.r2d2.linear %lr1 = 0 + %br0;
	ld.global.u32 	%r1, [%lr0+%cr7+8];
	r2d2.mov.b64 	%rd1, %lr1, %cr7, 8;
	st.global.u32 	[%lr1+%rd1+-4], %r1;
	st.shared.u32 	[%lr0+%r1], %r1;
	r2d2.mov.b32 	%r1, %lr1, %r1, 8;
	add.s64 	%rd1, %rd1, %cr7;
	st.global.u32 	[%rd1], %r1;
	ret;
}

)";
  ReadText text(source);
  REQUIRE_MESSAGE(text.ok(), text.messages());
  CHECK(text.module->hardware_form);
  const Function& function = text.function();
  unsigned linear_rows = 0, sections = 0, linear_values = 0;
  for (const Instruction& instruction : function.instructions) {
    linear_rows += instruction.kind == InstructionKind::linear_row;
    sections += instruction.kind == InstructionKind::section_begin;
  }
  for (const Value& value : function.values)
    linear_values += value.register_class == RegisterClass::linear;
  CHECK(linear_rows == 2);
  CHECK(sections == 3);
  CHECK(linear_values == 2);
  CHECK(print(*text.module) == source);
  // Without the first line the text is not valid PTX.
  CHECK(!ReadText(source.substr(source.find('\n') + 1)).ok());
}

TEST_CASE("old dialect: module-scope registers, prototypes without semicolon, parameters in the body") {
  ReadText text(
      ".version 1.4\n.target sm_10, map_f64_to_f32\n.reg .u32 %old<4>;\n.func (.reg .u32 %out) f (.reg .u32 %in)\n"
      ".file 1 \"x\"\n.entry k { .param .u32 q; mov.u32 %old1, %old2; exit; }\n.entry j { mov.u32 %old1, 1; exit; }\n");
  REQUIRE_MESSAGE(text.ok(), text.messages());
  CHECK(text.module->functions.size() == 3);
  CHECK(text.function(1).values.size() == 2);
  CHECK(text.function(2).values.size() == 1);
  const std::string printed = print(*text.module);
  ReadText again(printed);
  REQUIRE_MESSAGE(again.ok(), again.messages());
}

} // namespace ptxrewrite::tests::reader_test
