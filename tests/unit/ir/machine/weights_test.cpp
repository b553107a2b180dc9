// Every kind of row of expand.def against ptxas: kernels with two and with four copies of an instruction, with
// operands from memory and results to memory, differ by two copies. Long: the list of instructions is data.
#include "ir/isa/isa_availability.h"
#include "ir/machine/figures/expansion.h"
#include "ir/machine/figures/figures.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string_view>

namespace ptxrewrite::tests::weights_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

struct Case {
  const char* mnemonic;
  const char* result;   // type
  const char* operands; // types and literals
};

constexpr Case cases[] = {
    {"add.u16", "u16", "u16 u16"},
    {"sub.u16", "u16", "u16 u16"},
    {"mul.lo.u16", "u16", "u16 u16"},
    {"mul.hi.u16", "u16", "u16 u16"},
    {"mad.lo.u16", "u16", "u16 u16 u16"},
    {"div.u16", "u16", "u16 u16"},
    {"rem.u16", "u16", "u16 u16"},
    {"min.u16", "u16", "u16 u16"},
    {"max.u16", "u16", "u16 u16"},
    {"setp.lt.u16", "pred", "u16 u16"},
    {"shr.u16", "u16", "u16 u32"},
    {"shr.u16", "u16", "u16 5"},
    {"shl.b16", "u16", "u16 u32"},
    {"shl.b16", "u16", "u16 5"},
    {"and.b16", "u16", "u16 u16"},
    {"not.b16", "u16", "u16"},
    {"mul.wide.u16", "u32", "u16 u16"},
    {"mad.wide.u16", "u32", "u16 u16 u32"},
    {"div.u16", "u16", "u16 7"},
    {"rem.u16", "u16", "u16 7"},
    {"div.u16", "u16", "u16 8"},
    {"rem.u16", "u16", "u16 8"},
    {"add.s16", "s16", "s16 s16"},
    {"sub.s16", "s16", "s16 s16"},
    {"mul.lo.s16", "s16", "s16 s16"},
    {"mul.hi.s16", "s16", "s16 s16"},
    {"mad.lo.s16", "s16", "s16 s16 s16"},
    {"div.s16", "s16", "s16 s16"},
    {"rem.s16", "s16", "s16 s16"},
    {"min.s16", "s16", "s16 s16"},
    {"max.s16", "s16", "s16 s16"},
    {"setp.lt.s16", "pred", "s16 s16"},
    {"shr.s16", "s16", "s16 u32"},
    {"shr.s16", "s16", "s16 5"},
    {"abs.s16", "s16", "s16"},
    {"neg.s16", "s16", "s16"},
    {"mul.wide.s16", "s32", "s16 s16"},
    {"mad.wide.s16", "s32", "s16 s16 s32"},
    {"div.s16", "s16", "s16 7"},
    {"rem.s16", "s16", "s16 7"},
    {"div.s16", "s16", "s16 8"},
    {"rem.s16", "s16", "s16 8"},
    {"add.u32", "u32", "u32 u32"},
    {"sub.u32", "u32", "u32 u32"},
    {"mul.lo.u32", "u32", "u32 u32"},
    {"mul.hi.u32", "u32", "u32 u32"},
    {"mad.lo.u32", "u32", "u32 u32 u32"},
    {"div.u32", "u32", "u32 u32"},
    {"rem.u32", "u32", "u32 u32"},
    {"min.u32", "u32", "u32 u32"},
    {"max.u32", "u32", "u32 u32"},
    {"setp.lt.u32", "pred", "u32 u32"},
    {"shr.u32", "u32", "u32 u32"},
    {"shr.u32", "u32", "u32 5"},
    {"shl.b32", "u32", "u32 u32"},
    {"shl.b32", "u32", "u32 5"},
    {"and.b32", "u32", "u32 u32"},
    {"not.b32", "u32", "u32"},
    {"mad.hi.u32", "u32", "u32 u32 u32"},
    {"mul.wide.u32", "u64", "u32 u32"},
    {"mad.wide.u32", "u64", "u32 u32 u64"},
    {"div.u32", "u32", "u32 7"},
    {"rem.u32", "u32", "u32 7"},
    {"div.u32", "u32", "u32 8"},
    {"rem.u32", "u32", "u32 8"},
    {"add.s32", "s32", "s32 s32"},
    {"sub.s32", "s32", "s32 s32"},
    {"mul.lo.s32", "s32", "s32 s32"},
    {"mul.hi.s32", "s32", "s32 s32"},
    {"mad.lo.s32", "s32", "s32 s32 s32"},
    {"div.s32", "s32", "s32 s32"},
    {"rem.s32", "s32", "s32 s32"},
    {"min.s32", "s32", "s32 s32"},
    {"max.s32", "s32", "s32 s32"},
    {"setp.lt.s32", "pred", "s32 s32"},
    {"shr.s32", "s32", "s32 u32"},
    {"shr.s32", "s32", "s32 5"},
    {"abs.s32", "s32", "s32"},
    {"neg.s32", "s32", "s32"},
    {"mad.hi.s32", "s32", "s32 s32 s32"},
    {"mul.wide.s32", "s64", "s32 s32"},
    {"mad.wide.s32", "s64", "s32 s32 s64"},
    {"div.s32", "s32", "s32 7"},
    {"rem.s32", "s32", "s32 7"},
    {"div.s32", "s32", "s32 8"},
    {"rem.s32", "s32", "s32 8"},
    {"add.u64", "u64", "u64 u64"},
    {"sub.u64", "u64", "u64 u64"},
    {"mul.lo.u64", "u64", "u64 u64"},
    {"mul.hi.u64", "u64", "u64 u64"},
    {"mad.lo.u64", "u64", "u64 u64 u64"},
    {"div.u64", "u64", "u64 u64"},
    {"rem.u64", "u64", "u64 u64"},
    {"min.u64", "u64", "u64 u64"},
    {"max.u64", "u64", "u64 u64"},
    {"setp.lt.u64", "pred", "u64 u64"},
    {"shr.u64", "u64", "u64 u32"},
    {"shr.u64", "u64", "u64 5"},
    {"shl.b64", "u64", "u64 u32"},
    {"shl.b64", "u64", "u64 5"},
    {"and.b64", "u64", "u64 u64"},
    {"not.b64", "u64", "u64"},
    {"mad.hi.u64", "u64", "u64 u64 u64"},
    {"add.s64", "s64", "s64 s64"},
    {"sub.s64", "s64", "s64 s64"},
    {"mul.lo.s64", "s64", "s64 s64"},
    {"mul.hi.s64", "s64", "s64 s64"},
    {"mad.lo.s64", "s64", "s64 s64 s64"},
    {"div.s64", "s64", "s64 s64"},
    {"rem.s64", "s64", "s64 s64"},
    {"min.s64", "s64", "s64 s64"},
    {"max.s64", "s64", "s64 s64"},
    {"setp.lt.s64", "pred", "s64 s64"},
    {"shr.s64", "s64", "s64 u32"},
    {"shr.s64", "s64", "s64 5"},
    {"abs.s64", "s64", "s64"},
    {"neg.s64", "s64", "s64"},
    {"mad.hi.s64", "s64", "s64 s64 s64"},
    {"bfe.u32", "u32", "u32 u32 u32"},
    {"bfe.u32", "u32", "u32 4 8"},
    {"bfind.u32", "u32", "u32"},
    {"sad.u32", "u32", "u32 u32 u32"},
    {"bfe.s32", "s32", "s32 u32 u32"},
    {"bfe.s32", "s32", "s32 4 8"},
    {"bfind.s32", "u32", "s32"},
    {"sad.s32", "s32", "s32 s32 s32"},
    {"bfe.u64", "u64", "u64 u32 u32"},
    {"bfe.u64", "u64", "u64 4 8"},
    {"bfind.u64", "u32", "u64"},
    {"bfe.s64", "s64", "s64 u32 u32"},
    {"bfe.s64", "s64", "s64 4 8"},
    {"bfind.s64", "u32", "s64"},
    {"add.sat.s32", "s32", "s32 s32"},
    {"mul24.lo.u32", "u32", "u32 u32"},
    {"mad24.lo.u32", "u32", "u32 u32 u32"},
    {"bfi.b32", "b32", "b32 b32 u32 u32"},
    {"bfi.b32", "b32", "b32 b32 4 8"},
    {"popc.b32", "u32", "b32"},
    {"clz.b32", "u32", "b32"},
    {"brev.b32", "b32", "b32"},
    {"and.b32", "b32", "b32 b32"},
    {"bfi.b64", "b64", "b64 b64 u32 u32"},
    {"bfi.b64", "b64", "b64 b64 4 8"},
    {"popc.b64", "u32", "b64"},
    {"clz.b64", "u32", "b64"},
    {"brev.b64", "b64", "b64"},
    {"and.b64", "b64", "b64 b64"},
    {"lop3.b32", "b32", "b32 b32 b32 0x96"},
    {"prmt.b32", "b32", "b32 b32 b32"},
    {"prmt.b32", "b32", "b32 b32 0x3210"},
    {"shf.l.wrap.b32", "b32", "b32 b32 b32"},
    {"dp4a.u32.u32", "u32", "u32 u32 u32"},
    {"dp2a.lo.u32.u32", "u32", "u32 u32 u32"},
    {"szext.wrap.u32", "u32", "u32 u32"},
    {"add.f32", "f32", "f32 f32"},
    {"add.rn.f32", "f32", "f32 f32"},
    {"sub.f32", "f32", "f32 f32"},
    {"sub.rn.f32", "f32", "f32 f32"},
    {"mul.f32", "f32", "f32 f32"},
    {"mul.rn.f32", "f32", "f32 f32"},
    {"fma.rn.f32", "f32", "f32 f32 f32"},
    {"div.rn.f32", "f32", "f32 f32"},
    {"rcp.rn.f32", "f32", "f32"},
    {"sqrt.rn.f32", "f32", "f32"},
    {"min.f32", "f32", "f32 f32"},
    {"abs.f32", "f32", "f32"},
    {"neg.f32", "f32", "f32"},
    {"setp.lt.f32", "pred", "f32 f32"},
    {"copysign.f32", "f32", "f32 f32"},
    {"testp.finite.f32", "pred", "f32"},
    {"add.f64", "f64", "f64 f64"},
    {"add.rn.f64", "f64", "f64 f64"},
    {"sub.f64", "f64", "f64 f64"},
    {"sub.rn.f64", "f64", "f64 f64"},
    {"mul.f64", "f64", "f64 f64"},
    {"mul.rn.f64", "f64", "f64 f64"},
    {"fma.rn.f64", "f64", "f64 f64 f64"},
    {"div.rn.f64", "f64", "f64 f64"},
    {"rcp.rn.f64", "f64", "f64"},
    {"sqrt.rn.f64", "f64", "f64"},
    {"min.f64", "f64", "f64 f64"},
    {"abs.f64", "f64", "f64"},
    {"neg.f64", "f64", "f64"},
    {"setp.lt.f64", "pred", "f64 f64"},
    {"copysign.f64", "f64", "f64 f64"},
    {"testp.finite.f64", "pred", "f64"},
    {"div.rn.ftz.f32", "f32", "f32 f32"},
    {"div.rn.f32", "f32", "f32 0f40400000"},
    {"rcp.rn.ftz.f32", "f32", "f32"},
    {"sqrt.rn.ftz.f32", "f32", "f32"},
    {"rcp.approx.f32", "f32", "f32"},
    {"rcp.approx.ftz.f32", "f32", "f32"},
    {"sqrt.approx.f32", "f32", "f32"},
    {"sqrt.approx.ftz.f32", "f32", "f32"},
    {"rsqrt.approx.f32", "f32", "f32"},
    {"rsqrt.approx.ftz.f32", "f32", "f32"},
    {"sin.approx.f32", "f32", "f32"},
    {"sin.approx.ftz.f32", "f32", "f32"},
    {"cos.approx.f32", "f32", "f32"},
    {"cos.approx.ftz.f32", "f32", "f32"},
    {"lg2.approx.f32", "f32", "f32"},
    {"lg2.approx.ftz.f32", "f32", "f32"},
    {"ex2.approx.f32", "f32", "f32"},
    {"ex2.approx.ftz.f32", "f32", "f32"},
    {"tanh.approx.f32", "f32", "f32"},
    {"div.approx.f32", "f32", "f32 f32"},
    {"div.full.f32", "f32", "f32 f32"},
    {"div.approx.ftz.f32", "f32", "f32 f32"},
    {"div.full.ftz.f32", "f32", "f32 f32"},
    {"rcp.approx.ftz.f64", "f64", "f64"},
    {"rsqrt.approx.f64", "f64", "f64"},
    {"fma.rn.sat.f32", "f32", "f32 f32 f32"},
    {"add.sat.f32", "f32", "f32 f32"},
    {"cvt.sat.f32.f32", "f32", "f32"},
    {"slct.f32.s32", "f32", "f32 f32 s32"},
    {"slct.u32.s32", "u32", "u32 u32 s32"},
    {"slct.f64.s32", "f64", "f64 f64 s32"},
    {"set.lt.u32.f32", "u32", "f32 f32"},
    {"set.lt.f32.f32", "f32", "f32 f32"},
    {"set.lt.u32.u32", "u32", "u32 u32"},
    {"add.f16", "f16", "f16 f16"},
    {"add.f16x2", "f16x2", "f16x2 f16x2"},
    {"mul.f16", "f16", "f16 f16"},
    {"mul.f16x2", "f16x2", "f16x2 f16x2"},
    {"min.f16", "f16", "f16 f16"},
    {"min.f16x2", "f16x2", "f16x2 f16x2"},
    {"fma.rn.f16x2", "f16x2", "f16x2 f16x2 f16x2"},
    {"fma.rn.f16", "f16", "f16 f16 f16"},
    {"neg.f16", "f16", "f16"},
    {"abs.f16x2", "f16x2", "f16x2"},
    {"ex2.approx.f16", "f16", "f16"},
    {"setp.lt.f16", "pred", "f16 f16"},
    {"cvt.u8.s8", "u8", "s8"},
    {"cvt.u8.u16", "u8", "u16"},
    {"cvt.u8.s16", "u8", "s16"},
    {"cvt.u8.u32", "u8", "u32"},
    {"cvt.u8.s32", "u8", "s32"},
    {"cvt.u8.u64", "u8", "u64"},
    {"cvt.u8.s64", "u8", "s64"},
    {"cvt.s8.u8", "s8", "u8"},
    {"cvt.s8.u16", "s8", "u16"},
    {"cvt.s8.s16", "s8", "s16"},
    {"cvt.s8.u32", "s8", "u32"},
    {"cvt.s8.s32", "s8", "s32"},
    {"cvt.s8.u64", "s8", "u64"},
    {"cvt.s8.s64", "s8", "s64"},
    {"cvt.u16.u8", "u16", "u8"},
    {"cvt.u16.s8", "u16", "s8"},
    {"cvt.u16.s16", "u16", "s16"},
    {"cvt.u16.u32", "u16", "u32"},
    {"cvt.u16.s32", "u16", "s32"},
    {"cvt.u16.u64", "u16", "u64"},
    {"cvt.u16.s64", "u16", "s64"},
    {"cvt.s16.u8", "s16", "u8"},
    {"cvt.s16.s8", "s16", "s8"},
    {"cvt.s16.u16", "s16", "u16"},
    {"cvt.s16.u32", "s16", "u32"},
    {"cvt.s16.s32", "s16", "s32"},
    {"cvt.s16.u64", "s16", "u64"},
    {"cvt.s16.s64", "s16", "s64"},
    {"cvt.u32.u8", "u32", "u8"},
    {"cvt.u32.s8", "u32", "s8"},
    {"cvt.u32.u16", "u32", "u16"},
    {"cvt.u32.s16", "u32", "s16"},
    {"cvt.u32.s32", "u32", "s32"},
    {"cvt.u32.u64", "u32", "u64"},
    {"cvt.u32.s64", "u32", "s64"},
    {"cvt.s32.u8", "s32", "u8"},
    {"cvt.s32.s8", "s32", "s8"},
    {"cvt.s32.u16", "s32", "u16"},
    {"cvt.s32.s16", "s32", "s16"},
    {"cvt.s32.u32", "s32", "u32"},
    {"cvt.s32.u64", "s32", "u64"},
    {"cvt.s32.s64", "s32", "s64"},
    {"cvt.u64.u8", "u64", "u8"},
    {"cvt.u64.s8", "u64", "s8"},
    {"cvt.u64.u16", "u64", "u16"},
    {"cvt.u64.s16", "u64", "s16"},
    {"cvt.u64.u32", "u64", "u32"},
    {"cvt.u64.s32", "u64", "s32"},
    {"cvt.u64.s64", "u64", "s64"},
    {"cvt.s64.u8", "s64", "u8"},
    {"cvt.s64.s8", "s64", "s8"},
    {"cvt.s64.u16", "s64", "u16"},
    {"cvt.s64.s16", "s64", "s16"},
    {"cvt.s64.u32", "s64", "u32"},
    {"cvt.s64.s32", "s64", "s32"},
    {"cvt.s64.u64", "s64", "u64"},
    {"cvt.rn.f16.u8", "f16", "u8"},
    {"cvt.rzi.u8.f16", "u8", "f16"},
    {"cvt.rn.f16.s8", "f16", "s8"},
    {"cvt.rzi.s8.f16", "s8", "f16"},
    {"cvt.rn.f16.u16", "f16", "u16"},
    {"cvt.rzi.u16.f16", "u16", "f16"},
    {"cvt.rn.f16.s16", "f16", "s16"},
    {"cvt.rzi.s16.f16", "s16", "f16"},
    {"cvt.rn.f16.u32", "f16", "u32"},
    {"cvt.rzi.u32.f16", "u32", "f16"},
    {"cvt.rn.f16.s32", "f16", "s32"},
    {"cvt.rzi.s32.f16", "s32", "f16"},
    {"cvt.rn.f16.u64", "f16", "u64"},
    {"cvt.rzi.u64.f16", "u64", "f16"},
    {"cvt.rn.f16.s64", "f16", "s64"},
    {"cvt.rzi.s64.f16", "s64", "f16"},
    {"cvt.rn.f16.f32", "f16", "f32"},
    {"cvt.rn.f16.f64", "f16", "f64"},
    {"cvt.rn.f32.u8", "f32", "u8"},
    {"cvt.rzi.u8.f32", "u8", "f32"},
    {"cvt.rn.f32.s8", "f32", "s8"},
    {"cvt.rzi.s8.f32", "s8", "f32"},
    {"cvt.rn.f32.u16", "f32", "u16"},
    {"cvt.rzi.u16.f32", "u16", "f32"},
    {"cvt.rn.f32.s16", "f32", "s16"},
    {"cvt.rzi.s16.f32", "s16", "f32"},
    {"cvt.rn.f32.u32", "f32", "u32"},
    {"cvt.rzi.u32.f32", "u32", "f32"},
    {"cvt.rn.f32.s32", "f32", "s32"},
    {"cvt.rzi.s32.f32", "s32", "f32"},
    {"cvt.rn.f32.u64", "f32", "u64"},
    {"cvt.rzi.u64.f32", "u64", "f32"},
    {"cvt.rn.f32.s64", "f32", "s64"},
    {"cvt.rzi.s64.f32", "s64", "f32"},
    {"cvt.f32.f16", "f32", "f16"},
    {"cvt.rn.f32.f64", "f32", "f64"},
    {"cvt.rmi.f32.f32", "f32", "f32"},
    {"cvt.rzi.f32.f32", "f32", "f32"},
    {"cvt.rn.f64.u8", "f64", "u8"},
    {"cvt.rzi.u8.f64", "u8", "f64"},
    {"cvt.rn.f64.s8", "f64", "s8"},
    {"cvt.rzi.s8.f64", "s8", "f64"},
    {"cvt.rn.f64.u16", "f64", "u16"},
    {"cvt.rzi.u16.f64", "u16", "f64"},
    {"cvt.rn.f64.s16", "f64", "s16"},
    {"cvt.rzi.s16.f64", "s16", "f64"},
    {"cvt.rn.f64.u32", "f64", "u32"},
    {"cvt.rzi.u32.f64", "u32", "f64"},
    {"cvt.rn.f64.s32", "f64", "s32"},
    {"cvt.rzi.s32.f64", "s32", "f64"},
    {"cvt.rn.f64.u64", "f64", "u64"},
    {"cvt.rzi.u64.f64", "u64", "f64"},
    {"cvt.rn.f64.s64", "f64", "s64"},
    {"cvt.rzi.s64.f64", "s64", "f64"},
    {"cvt.f64.f16", "f64", "f16"},
    {"cvt.f64.f32", "f64", "f32"},
    {"cvt.rmi.f64.f64", "f64", "f64"},
    {"cvt.rzi.f64.f64", "f64", "f64"},
    {"cvt.rn.bf16.f32", "bf16", "f32"},
    {"cvt.rn.f16x2.f32", "f16x2", "f32 f32"},
    {"testp.normal.f32", "pred", "f32"},
    {"testp.normal.f64", "pred", "f64"},
    {"testp.subnormal.f32", "pred", "f32"},
    {"testp.subnormal.f64", "pred", "f64"},
    {"cnot.b32", "b32", "b32"},
    {"cnot.b64", "b64", "b64"},
    {"mul24.hi.u32", "u32", "u32 u32"},
    {"mad24.hi.s32", "s32", "s32 s32 s32"},
    {"sad.u64", "u64", "u64 u64 u64"},
    {"vadd.s32.s32.s32", "s32", "s32 s32"},
    {"vadd.s32.s32.s32.sat", "s32", "s32 s32"},
    {"vabsdiff.u32.u32.u32", "u32", "u32 u32"},
    {"vmad.s32.s32.s32.shr7", "s32", "s32 s32 s32"},
    {"vmad.u32.u32.u32.sat", "u32", "u32 u32 u32"},
    {"vmin.s32.s32.s32", "s32", "s32 s32"},
    {"vmax.u32.u32.u32", "u32", "u32 u32"},
    {"vset.s32.s32.lt", "s32", "s32 s32"},
    {"vset.u32.u32.eq", "u32", "u32 u32"},
    {"vshl.u32.u32.u32.clamp", "u32", "u32 u32"},
    {"vshl.u32.u32.u32.wrap", "u32", "u32 u32"},
    {"vshr.s32.s32.u32.clamp", "s32", "s32 u32"},
    {"vshr.u32.u32.u32.wrap", "u32", "u32 u32"},
    {"vadd2.u32.u32.u32", "u32", "u32 u32 u32"},
    {"vadd2.s32.s32.s32.sat", "s32", "s32 s32 s32"},
    {"vadd4.u32.u32.u32", "u32", "u32 u32 u32"},
    {"vadd4.u32.u32.u32.add", "u32", "u32 u32 u32"},
    {"vsub4.s32.s32.s32", "s32", "s32 s32 s32"},
    {"vavrg2.u32.u32.u32", "u32", "u32 u32 u32"},
    {"vavrg4.u32.u32.u32", "u32", "u32 u32 u32"},
    {"vmin2.u32.u32.u32", "u32", "u32 u32 u32"},
    {"vmax4.s32.s32.s32", "s32", "s32 s32 s32"},
    {"vset2.s32.s32.lt", "s32", "s32 s32 s32"},
    {"vset4.u32.u32.ge", "u32", "u32 u32 u32"},
    {"cvt.sat.f64.f64", "f64", "f64"},
    {"isspacep.global", "pred", "u64"},
    {"isspacep.const", "pred", "u64"},
    {"isspacep.shared", "pred", "u64"},
    {"vabsdiff.s32.s32.s32", "s32", "s32 s32"},
};

// The storage of a value by type: the type of its load and store, and the prefix of its registers.
std::pair<std::string, std::string> storage(const std::string& type) {
  if (type == "f32" || type == "f64") return {type, type == "f32" ? "%f" : "%d"};
  if (type.ends_with("64")) return {"b64", "%rd"};
  if (type.ends_with("32") || type.ends_with("x2")) return {"b32", "%r"};
  if (type == "f16" || type == "bf16") return {"b16", "%h"};
  return {type, "%h"}; // loads extend by the type's sign
}

std::string copies_of(const Case& one, int copies, const std::string& name) {
  std::string body;
  int offset = 0, next = 0;
  for (int copy = 0; copy < copies; ++copy) {
    std::istringstream operands(one.operands);
    std::string list;
    for (std::string operand; operands >> operand;) {
      if (std::isdigit(static_cast<unsigned char>(operand[0]))) {
        list += ", " + operand;
        continue;
      }
      auto [type, prefix] = storage(operand);
      std::string value = prefix + std::to_string(next++);
      body += "ld.global." + type + " " + value + ", [%in+" + std::to_string(8 * offset++) + "];\n";
      list += ", " + value;
    }
    std::string result = one.result, at = "[%out+" + std::to_string(16 * copy) + "]";
    if (result == "pred") {
      std::string number = std::to_string(copy);
      body += std::string(one.mnemonic) + " %p" + number + list + ";\nselp.u32 %s" + number + ", 7, 5, %p" + number +
              ";\nst.global.u32 " + at + ", %s" + number + ";\n";
      continue;
    }
    auto [type, prefix] = storage(result);
    std::string value = prefix + std::to_string(next++);
    body += std::string(one.mnemonic) + " " + value + list + ";\nst.global." + type + " " + at + ", " + value + ";\n";
  }
  return ".visible .entry " + name +
         "(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %in, %out, %rd<40>; .reg .b32 %r<40>, "
         "%s<40>; .reg .b16 %h<40>; .reg .f32 %f<40>; .reg .f64 %d<40>; .reg .pred %p<40>;\n"
         "ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\n" +
         body + "ret;\n}\n";
}

uint32_t number_in(std::string_view text) {
  uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// True for a target among "sm_20..sm_37 sm_70+".
bool is_among(uint32_t capability, std::string_view targets) {
  if (targets.empty()) return true;
  std::istringstream ranges{std::string(targets)};
  for (std::string range; ranges >> range;) {
    const uint32_t first = number_in(std::string_view(range).substr(3)); // after "sm_"
    const size_t dots = range.find("..sm_");
    const uint32_t last = dots == std::string::npos ? UINT32_MAX : number_in(std::string_view(range).substr(dots + 5));
    if (first <= capability && capability <= last) return true;
  }
  return false;
}

} // namespace

// Kepler and later: Fermi has Kepler's rows, although it has no SHF.
TEST_CASE("a target has the machine instructions of its expansions") {
  size_t checked = 0;
  for (const Case& one : cases)
    for (const uint32_t capability : {35u, 50u, 60u, 70u, 72u, 75u, 80u, 86u, 90u, 100u, 103u, 120u}) {
      const std::string_view operands = one.operands;
      const bool literal = std::isdigit(static_cast<unsigned char>(operands[operands.rfind(' ') + 1])) != 0;
      const Form& form = ir::form(known_form(one.mnemonic));
      if (!why_not_available(form, {9, 0}, "sm_" + std::to_string(capability)).empty()) continue;
      for (const std::string& name : machine_names(form, capability, literal, {})) {
        const std::string mnemonic = one.mnemonic;
        CAPTURE(mnemonic);
        CAPTURE(capability);
        CAPTURE(name);
        CHECK(is_among(capability, row_of(machine_opcode(name)).targets));
        ++checked;
      }
    }
  CHECK(checked > 5000);
}

TEST_CASE("an expansion's unit is that of the instruction in brackets, or of the last one") {
  const auto pipe = [](const char* mnemonic, uint32_t capability) {
    return expansion_of(form(known_form(mnemonic)), capability, false).pipe();
  };
  CHECK(pipe("div.full.f32", 90) == Pipe::special);   // MUFU.RCP in brackets
  CHECK(pipe("sin.approx.f32", 90) == Pipe::special); // MUFU.SIN is the last
  CHECK(pipe("clz.b32", 90) == Pipe::special);        // not that of the sum after FLO
  CHECK(pipe("div.u64", 60) == Pipe::integer);        // not that of the call: the subroutine's work
  CHECK(expansion_of(form(known_form("mul.wide.u32")), 50, false).instructions == 8);
}

// On sm_120 not for double precision and conversions of 64 bits, which wait in no-operations that depend on the code
// around them, and for a few forms without a row for it.
static bool is_compared(std::string_view mnemonic, uint32_t capability) {
  if (capability < 120) return true;
  const auto has = [&](std::string_view word) { return mnemonic.find(word) != std::string_view::npos; };
  const bool is_wide = has("64");
  return !has("f64") && !(is_wide && (has("cvt") || has("div") || has("rem") || has("bfe"))) && !has("vabsdiff");
}

TEST_CASE("the weight of an instruction is what one more of it adds") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  std::string module = ".version 8.7\n.target sm_80\n.address_size 64\n";
  for (size_t i = 0; i < std::size(cases); ++i)
    module +=
        copies_of(cases[i], 2, "k" + std::to_string(i) + "_2") + copies_of(cases[i], 4, "k" + std::to_string(i) + "_4");
  ReadText text(module);
  REQUIRE_MESSAGE(text.ok(), text.messages());
  for (const auto& function : text.module->functions)
    REQUIRE(construct_ssa(*function).ok());
  for (uint32_t capability : {80u, 90u, 120u}) {
    Result<FiguresByFunction> figures = machine_figures(module, "sm_" + std::to_string(capability));
    REQUIRE_MESSAGE(figures.ok(), figures.error().message);
    size_t exact = 0, compared = 0;
    for (size_t i = 0; i < std::size(cases); ++i) {
      if (!is_compared(cases[i].mnemonic, capability)) continue;
      ++compared;
      std::string name = "k" + std::to_string(i);
      double real = (int{static_cast<int>(figures->at(name + "_4").instructions)} -
                     static_cast<int>(figures->at(name + "_2").instructions)) /
                    2.0;
      double found =
          (int{static_cast<int>(
               lower(text.function(static_cast<unsigned>(2 * i + 1)), capability).static_instructions())} -
           static_cast<int>(lower(text.function(static_cast<unsigned>(2 * i)), capability).static_instructions())) /
          2.0;
      exact += real == found;
      if (std::fabs(real - found) > std::max(1.0, 0.1 * real)) {
        std::printf("sm_%u %s: %g, not %g\n", capability, cases[i].mnemonic, real, found);
        CHECK_MESSAGE(std::fabs(real - found) <= std::max(1.0, 0.1 * real), cases[i].mnemonic);
      }
    }
    std::printf("sm_%u: %zu of %zu exact\n", capability, exact, compared);
    CHECK(exact >= 0.8 * compared);
  }
}

} // namespace ptxrewrite::tests::weights_test
