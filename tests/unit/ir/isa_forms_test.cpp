// Forms: the meaning of mnemonics. Expectations are from the PTX ISA manual.
#include "ir/isa/isa.h"
#include "ir/isa/isa_table.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <thread>

namespace ptxrewrite::tests::isa_forms_test {

using namespace ptxrewrite::ir;

namespace {

const Form& get(std::string_view mnemonic) {
  auto id = resolve_form(mnemonic);
  REQUIRE_MESSAGE(id.ok(), std::string(mnemonic));
  return form(*id);
}

std::string error_of(std::string_view mnemonic) {
  auto id = resolve_form(mnemonic);
  return id ? std::string("accepted") : id.error().message;
}

} // namespace

TEST_CASE("every row of the table can be read") {
  for (const auto& row : table::row_texts()) {
    INFO(row.mnemonic, " ", row.modifiers, " | ", row.operands);
    CHECK(table::row_error(row) == "");
  }
  CHECK(table::row_texts().size() > 1300);
}

TEST_CASE("all operand lists of a row write the same number of operands") {
  for (std::string_view name : list_opcodes()) {
    if (name == "call") continue; // with and without results
    for (const auto& row : table::rows_of(*table::find_opcode(name)).rows) {
      const auto shapes = table::shapes_of(row);
      for (const auto& shape : shapes) {
        if (row.text->modifiers.find(".phase_type::primary") != std::string_view::npos) continue; // a report or none
        INFO(name, " ", row.text->modifiers, " | ", row.text->operands);
        CHECK(shape.definitions == shapes.front().definitions);
      }
    }
  }
}

TEST_CASE("absurd mnemonics are answered at once") {
  std::string many = "mma.sync.aligned";
  for (int i = 0; i < 40; ++i)
    many += ".f16";
  CHECK(error_of(many) != "accepted");
  std::string spaces = "ld";
  for (int i = 0; i < 14; ++i)
    spaces += i % 2 == 0 ? ".global" : ".shared";
  CHECK(error_of(spaces) != "accepted");
  for (auto name : {"", ".", "add.", "add..u32", "add.u32.", ".u32", "r2d2", "r2d2.", "r2d2.unknown.b64"})
    CHECK_MESSAGE((!resolve_form(name) || form(*resolve_form(name)).opaque), name);
}

TEST_CASE("a load with a vector") {
  const Form& f = get("ld.global.v4.f32");
  CHECK(f.opcode == Opcode::ld);
  CHECK(f.space == StateSpace::global);
  CHECK(f.vector_width == 4);
  CHECK(f.type() == ScalarType::f32);
  CHECK(f.definitions == 1);
  CHECK(f.effects.reads_memory);
  CHECK_FALSE(f.effects.writes_memory);
  CHECK_FALSE(f.effects.side_effect);
  CHECK_FALSE(f.effects.pure());
  CHECK(&get("ld.global.v4.f32") == &f);
}

TEST_CASE("types in order, carry and classes") {
  const Form& cvt = get("cvt.rn.f32.s32");
  CHECK(cvt.type(0) == ScalarType::f32);
  CHECK(cvt.type(1) == ScalarType::s32);
  CHECK(cvt.type(2) == ScalarType::none);
  CHECK(cvt.effects.pure());
  const Form& add = get("add.cc.u32");
  CHECK(add.carry_out);
  CHECK(add.effects.writes_carry);
  CHECK_FALSE(add.effects.reads_carry);
  CHECK(get("addc.u32").effects.reads_carry);
  CHECK_FALSE(get("addc.u32").effects.writes_carry);
  CHECK(get("mul.wide.s32").has(Modifier::wide));
  CHECK(get("mul.wide.s32").kind == InstructionClass::integer);
  CHECK(get("cp.async.ca.shared.global").space == StateSpace::shared);
  CHECK(get("cp.async.ca.shared.global").source_space == StateSpace::global);
}

TEST_CASE("effects") {
  for (auto name : {"add.u32", "fma.rn.f32", "setp.lt.and.s32", "selp.b32", "mov.u32", "cvta.to.global.u64", "lop3.b32",
                    "ex2.approx.f32", "div.rn.f64", "isspacep.shared", "dp4a.u32.u32", "cvt.rn.f16.f32"})
    CHECK_MESSAGE(get(name).effects.pure(), name);
  CHECK(get("bar.sync").effects.barrier);
  CHECK(get("bar.sync").effects.convergent);
  CHECK(get("membar.gl").effects.barrier);
  CHECK(get("fence.acq_rel.gpu").effects.barrier);
  CHECK(get("atom.global.add.u32").effects.atomic);
  CHECK(get("atom.global.add.u32").definitions == 1);
  CHECK(get("red.global.add.u32").definitions == 0);
  CHECK(get("st.shared.u32").effects.writes_memory);
  CHECK_FALSE(get("st.shared.u32").effects.reads_memory);
  CHECK(get("st.shared.u32").definitions == 0);
  CHECK(get("ld.volatile.shared.u32").effects.volatile_result);
  CHECK(get("ld.acquire.gpu.global.u32").effects.barrier);
  for (auto name : {"shfl.sync.down.b32", "vote.sync.any.pred", "match.any.sync.b32", "redux.sync.add.s32",
                    "elect.sync", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                    "ldmatrix.sync.aligned.m8n8.x4.shared.b16", "activemask.b32"})
    CHECK_MESSAGE(get(name).effects.convergent, name);
  CHECK(get("bra.uni").effects.branch);
  CHECK(get("brx.idx").effects.branch);
  CHECK(get("call.uni").effects.call);
  for (auto name : {"ret", "exit", "trap"})
    CHECK_MESSAGE(get(name).effects.terminates, name);
  CHECK_FALSE(get("ret").effects.may_trap);
  CHECK(get("trap").effects.may_trap);
  CHECK(get("tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32").definitions == 2);
}

TEST_CASE("modifiers are a set, with exceptions") {
  for (auto name : {"add.f32.rn.ftz", "add.ftz.rn.f32", "ld.u32.global", "ld.v2.global.u32", "setp.u32.lt",
                    "cvt.f32.rn.s32", "atom.add.global.u32", "mad.lo.cc.u32", "mul.lo.u32"})
    CHECK_MESSAGE(error_of(name) == "accepted", name);
  for (auto name :
       {"mul.u32.lo", "add.u32.u32", "add.rn.rn.f32", "ld.global.global.u32", "exit.uni", "membar.gpu", "add.v4.u32"})
    CHECK_MESSAGE(error_of(name) != "accepted", name);
}

TEST_CASE("what is wrong is named") {
  CHECK(error_of("add.sat.u64") == "illegal modifier '.sat' for 'add.u64'");
  CHECK(error_of("add.wide.u32") == "illegal modifier '.wide' for 'add'");
  CHECK(error_of("add.b128") == "illegal type '.b128' for 'add'");
  CHECK(error_of("exit.uni") == "illegal modifier '.uni' for 'exit'");
  CHECK(error_of("mul.u32").find("lacks a modifier") != std::string::npos);
  CHECK(error_of("ld.local.v8.f32").find("illegal") == 0);
}

TEST_CASE("what no row knows is opaque, not wrong") {
  for (auto name : {"frobnicate.u32", "add.u8x8", "ld.global.future::hint.u32", "MOV.u32"}) {
    const Form& f = get(name);
    CHECK(f.opaque);
    CHECK(f.opcode == Opcode::opaque);
    CHECK(f.effects.side_effect);
    CHECK(f.effects.branch);
    CHECK_FALSE(check_operands(f, {}));
  }
}

TEST_CASE("extension instructions are flagged") {
  const Form& f = get("r2d2.mov.b64");
  CHECK(f.opcode == Opcode::r2d2_mov);
  CHECK(f.extension);
  CHECK(f.definitions == 1);
  CHECK(f.effects.pure());
  CHECK_FALSE(get("mov.b64").extension);
}

TEST_CASE("a form has one address, whoever asks first") {
  std::vector<std::thread> threads;
  std::vector<std::vector<const Form*>> seen(4);
  for (size_t t = 0; t < seen.size(); ++t)
    threads.emplace_back([&seen, t] {
      for (int i = 0; i < 300; ++i) {
        std::string name = "st.global.v2.f32.unknown" + std::to_string(i);
        seen[t].push_back(&form(*resolve_form(name)));
      }
    });
  for (auto& thread : threads)
    thread.join();
  for (size_t t = 1; t < seen.size(); ++t)
    CHECK(seen[t] == seen[0]);
  CHECK(std::set<const Form*>(seen[0].begin(), seen[0].end()).size() == 300);
}

TEST_CASE("reference pages") {
  CHECK(isa_page("mul").find("mul") == 0);
  CHECK(isa_page("mul").find(".wide") != std::string::npos);
  CHECK(isa_page("%ctaid").find("one value per block") != std::string::npos);
  CHECK(isa_page(".reg") != "");
  CHECK(isa_page("frobnicate") == "");
  auto opcodes = list_opcodes();
  CHECK(std::set<std::string_view>(opcodes.begin(), opcodes.end()).size() ==
        155); // 135 of PTX 9.0, 5 until 9.5; the hardware forms'
}

TEST_CASE("special registers") {
  auto tid = parse_special_register("%tid");
  REQUIRE(tid);
  CHECK(*tid == SpecialRegister::tid);
  CHECK(info(*tid).vector_width == 4);
  CHECK(info(*tid).uniformity == Uniformity::thread);
  CHECK_FALSE(info(*tid).is_volatile);
  CHECK(info(SpecialRegister::ntid).uniformity == Uniformity::launch);
  CHECK(info(SpecialRegister::ctaid).uniformity == Uniformity::block);
  CHECK(info(SpecialRegister::clock64).is_volatile);
  CHECK(info(SpecialRegister::clock64).type == ScalarType::u64);
  CHECK(parse_special_register("%envreg31"));
  CHECK_FALSE(parse_special_register("%envreg32"));
  CHECK_FALSE(parse_special_register("tid"));
}

TEST_CASE("types") {
  CHECK(parse_type(".u32") == ScalarType::u32);
  CHECK(parse_type("bf16x2") == ScalarType::bf16x2);
  CHECK_FALSE(parse_type("u33"));
  CHECK(bit_width(ScalarType::f16x2) == 32);
  CHECK(byte_width(ScalarType::pred) == 1);
  CHECK(spelling(ScalarType::s64) == "s64");
  CHECK(is_signed(ScalarType::s16));
  CHECK_FALSE(is_signed(ScalarType::b16));
  CHECK(is_float(ScalarType::tf32));
  CHECK_FALSE(is_float(ScalarType::f16x2));
  CHECK(is_bit_type(ScalarType::b128));
  CHECK_FALSE(is_bit_type(ScalarType::pred));
  CHECK(parse_state_space(".shared::cta") == StateSpace::shared_cta);
  CHECK(parse_state_space("const") == StateSpace::constant);
  CHECK_FALSE(parse_state_space(""));
  for (unsigned i = 1; i < scalar_type_count; ++i)
    CHECK(spelling(ScalarType(i)) == spelling(Modifier(i)));
}

TEST_CASE("forms of whole numbers name what they compute, forms of floating-point and packed numbers do not") {
  const auto operation = [](std::string_view mnemonic) { return form(known_form(mnemonic)).operation; };
  CHECK(operation("add.s32") == Operation::add);
  CHECK(operation("add.cc.u32") == Operation::add);
  CHECK(operation("add.f32") == Operation::none);
  CHECK(operation("add.u16x2") == Operation::none);
  CHECK(operation("min.f16x2") == Operation::none);
  CHECK(operation("min.s64") == Operation::minimum);
  CHECK(operation("mad.wide.u32") == Operation::multiply_add);
  CHECK(operation("mul.lo.u64") == Operation::multiply);
  CHECK(operation("cvt.u64.u32") == Operation::convert);
  CHECK(operation("cvt.rn.f32.s32") == Operation::none);
  CHECK(operation("cvt.pack.sat.u8.s32.b32") == Operation::none);
  CHECK(operation("and.pred") == Operation::bit_and);
  CHECK(operation("mov.f32") == Operation::copy);
  CHECK(operation("setp.lt.f32") == Operation::compare);
  CHECK(operation("selp.b64") == Operation::select);
  CHECK(operation("lop3.b32") == Operation::logic_of_three);
  CHECK(operation("ld.global.u32") == Operation::none);
  CHECK(operation("addc.u32") == Operation::none); // reads the carry flag, too
}

TEST_CASE("an instruction with any effect is not pure") {
  CHECK(Effects{}.pure());
  CHECK_FALSE(Effects{.reads_memory = true}.pure());
  CHECK_FALSE(Effects{.writes_memory = true}.pure());
  CHECK_FALSE(Effects{.atomic = true}.pure());
  CHECK_FALSE(Effects{.barrier = true}.pure());
  CHECK_FALSE(Effects{.convergent = true}.pure());
  CHECK_FALSE(Effects{.branch = true}.pure());
  CHECK_FALSE(Effects{.call = true}.pure());
  CHECK_FALSE(Effects{.terminates = true}.pure());
  CHECK_FALSE(Effects{.volatile_result = true}.pure());
  CHECK_FALSE(Effects{.reads_carry = true}.pure());
  CHECK_FALSE(Effects{.writes_carry = true}.pure());
  CHECK_FALSE(Effects{.may_trap = true}.pure());
  CHECK_FALSE(Effects{.side_effect = true}.pure());
}

} // namespace ptxrewrite::tests::isa_forms_test
