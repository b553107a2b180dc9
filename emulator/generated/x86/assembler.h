// Encodes the x86-64 instructions that quick code consists of: moves, counters and branches in general registers, and
// AVX2 in vector registers. Intel's Software Developer's Manual, volume 2, has the encodings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptxrewrite::emulator::generated::x86 {

enum Register : uint8_t { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15 };

// `offset` bytes behind the address in `base`.
struct Place {
  Register base = rax;
  int32_t offset = 0;
  Place operator+(size_t bytes) const { return {base, offset + static_cast<int32_t>(bytes)}; }
};

// The number of a vector register.
enum Vector : uint8_t { y0, y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15 };

// Bytes of a vector register that an instruction uses.
enum class Width : uint8_t { half, whole }; // 16, 32

// A vector instruction: its implied prefix (0 none, 1: 66, 2: F3, 3: F2), opcode map (1: 0F, 2: 0F38, 3: 0F3A), opcode
// and VEX.W.
struct VectorOp {
  uint8_t prefix = 0, map = 1, opcode = 0;
  bool wide = false;
};

// Instructions of general registers with two operands; the value is their digit in opcode 81.
enum class Arithmetic : uint8_t { add = 0, or_ = 1, and_ = 4, sub = 5, xor_ = 6, cmp = 7 };

// Of a jump; the value is the low half of its opcode.
enum class Condition : uint8_t { below = 2, equal = 4, not_equal = 5, above = 7, less = 0xc };

class Assembler {
public:
  using Label = uint32_t;

  Label new_label();
  void place(Label label);
  // Writes the distances of all jumps; every label that is used has been placed.
  void resolve_jumps();
  const std::vector<uint8_t>& bytes() const { return bytes_; }

  // --- general registers; `wide`: 64 bits, else 32 ---
  void load(Register target, Place from, bool wide = true) { general(0x8b, target, from, wide); }
  void store(Place to, Register value, bool wide = true) { general(0x89, value, to, wide); }
  void address(Register target, Place of) { general(0x8d, target, of, true); }
  void move(Register target, Register from, bool wide = true) { general(0x8b, target, from, wide); }
  void move(Register target, uint64_t number);
  void arithmetic(Arithmetic which, Register target, Register other, bool wide);
  void arithmetic(Arithmetic which, Register target, Place other, bool wide);
  void arithmetic(Arithmetic which, Register target, int32_t number, bool wide);
  // In memory, 64 bits.
  void add_to(Place place, int32_t number);
  void add_to(Place place, Register number) { general(0x01, number, place, true); }
  // Adds the carry.
  void add_carry_to(Place place);
  void invert(Register target);
  void test(Register a, Register b) { general(0x85, b, a, false); }
  void test(Register a, int32_t bits);
  void shift_left(Register target, uint8_t bits);
  void count_ones(Register target, Register of);
  void push(Register value);
  void pop(Register value);
  void call(Place function);
  void jump(Label target);
  void jump_if(Condition condition, Label target);
  void ret() { byte(0xc3); }

  // --- vector registers ---
  // target = op b
  void unary(VectorOp op, Vector target, Vector b, Width width = Width::whole) { vector(op, target, y0, b, width); }
  void unary(VectorOp op, Vector target, Place b, Width width = Width::whole) { vector(op, target, y0, b, width); }
  void unary(VectorOp op, Vector target, Vector b, uint8_t immediate) { vector(op, target, y0, b, immediate); }
  // target = a op b. Instructions of one source must have y0 as a, which is encoded as none.
  void vector(VectorOp op, Vector target, Vector a, Vector b, Width width = Width::whole);
  void vector(VectorOp op, Vector target, Vector a, Place b, Width width = Width::whole);
  void vector(VectorOp op, Vector target, Vector a, Vector b, uint8_t immediate, Width width = Width::whole);
  // By a constant number of bits: `which` is the digit of the instruction.
  void vector_shift(VectorOp op, uint8_t which, Vector target, Vector from, uint8_t bits);
  // target = mask ? if_set : if_clear, by the top bit of each part.
  void blend(VectorOp op, Vector target, Vector if_clear, Vector if_set, Vector mask);
  // One bit per part into a general register.
  void signs(VectorOp op, Register target, Vector of, Width width = Width::whole);
  void load(Vector target, Place from, Width width = Width::whole);
  void store(Place to, Vector value, Width width = Width::whole);
  // 8 bytes; loading clears the rest.
  void load_quarter(Vector target, Place from);
  void store_quarter(Place to, Vector value);
  // The low 64 bits of a vector from a general register.
  void from_general(Vector target, Register from);
  void clear_upper_halves();
  // Into all caches.
  void prefetch(Place place);

private:
  void byte(unsigned value) { bytes_.push_back(static_cast<uint8_t>(value)); }
  void number(uint64_t value, unsigned size);
  void operand(unsigned reg, Place place);
  void operand(unsigned reg, unsigned rm) { byte(0xc0 | (reg & 7) << 3 | (rm & 7)); }
  void general(uint8_t opcode, unsigned reg, Place place, bool wide);
  void general(uint8_t opcode, unsigned reg, Register rm, bool wide);
  void vex(VectorOp op, unsigned reg, unsigned second, unsigned rm, Width width);
  void jump_distance(Label target);

  struct Jump {
    size_t at; // of its distance, 4 bytes
    Label target;
  };
  std::vector<uint8_t> bytes_;
  std::vector<size_t> places_; // of labels
  std::vector<Jump> jumps_;
};

// --- the vector instructions that are used ---
// b, w, d, q: parts of 8, 16, 32, 64 bits; ps, pd: floats of 32, 64.
inline constexpr VectorOp vmovdqu_load{2, 1, 0x6f}, vmovdqu_store{2, 1, 0x7f}, vmovq_load{2, 1, 0x7e},
    vmovq_store{1, 1, 0xd6}, vmovq_general{1, 1, 0x6e, true},
    // sums and products
    vpaddw{1, 1, 0xfd}, vpaddd{1, 1, 0xfe}, vpaddq{1, 1, 0xd4}, vpsubw{1, 1, 0xf9}, vpsubd{1, 1, 0xfa},
    vpsubq{1, 1, 0xfb}, vpmullw{1, 1, 0xd5}, vpmulld{1, 2, 0x40}, vpmuludq{1, 1, 0xf4}, vpmuldq{1, 2, 0x28},
    vpmulhw{1, 1, 0xe5}, vpmulhuw{1, 1, 0xe4},
    // bits
    vpand{1, 1, 0xdb}, vpandn{1, 1, 0xdf}, vpor{1, 1, 0xeb}, vpxor{1, 1, 0xef}, vptest{1, 2, 0x17},
    // comparisons
    vpcmpeqw{1, 1, 0x75}, vpcmpeqd{1, 1, 0x76}, vpcmpeqq{1, 2, 0x29}, vpcmpgtw{1, 1, 0x65}, vpcmpgtd{1, 1, 0x66},
    vpcmpgtq{1, 2, 0x37}, vcmpps{0, 1, 0xc2}, vcmppd{1, 1, 0xc2}, vpminsw{1, 1, 0xea}, vpmaxsw{1, 1, 0xee},
    vpminuw{1, 2, 0x3a}, vpmaxuw{1, 2, 0x3e}, vpminsd{1, 2, 0x39}, vpminud{1, 2, 0x3b}, vpmaxsd{1, 2, 0x3d},
    vpmaxud{1, 2, 0x3f}, vpabsd{1, 2, 0x1e}, vpabsw{1, 2, 0x1d},
    // shifts: by the parts of another vector; by a constant
    vpsllvd{1, 2, 0x47}, vpsllvq{1, 2, 0x47, true}, vpsrlvd{1, 2, 0x45}, vpsrlvq{1, 2, 0x45, true}, vpsravd{1, 2, 0x46},
    shift_d{1, 1, 0x72}, shift_q{1, 1, 0x73},
    // parts: moved, extended, chosen
    vpblendd{1, 3, 0x02}, vpblendvb{1, 3, 0x4c}, vblendvps{1, 3, 0x4a}, vblendvpd{1, 3, 0x4b}, vpshufd{1, 1, 0x70},
    vpermq{1, 3, 0x00, true}, vshufps{0, 1, 0xc6}, vperm2i128{1, 3, 0x46}, vpacksswb{1, 1, 0x63}, vpackssdw{1, 1, 0x6b},
    vpackusdw{1, 2, 0x2b}, vpbroadcastb{1, 2, 0x78}, vpbroadcastw{1, 2, 0x79}, vpbroadcastd{1, 2, 0x58},
    vpbroadcastq{1, 2, 0x59}, vpmovsxwd{1, 2, 0x23}, vpmovzxwd{1, 2, 0x33}, vpmovsxwq{1, 2, 0x24},
    vpmovzxwq{1, 2, 0x34}, vpmovsxdq{1, 2, 0x25}, vpmovzxdq{1, 2, 0x35},
    // signs
    vmovmskps{0, 1, 0x50}, vmovmskpd{1, 1, 0x50}, vpmovmskb{1, 1, 0xd7},
    // floats
    vaddps{0, 1, 0x58}, vaddpd{1, 1, 0x58}, vmulps{0, 1, 0x59}, vmulpd{1, 1, 0x59}, vsubps{0, 1, 0x5c},
    vsubpd{1, 1, 0x5c}, vdivps{0, 1, 0x5e}, vdivpd{1, 1, 0x5e}, vsqrtps{0, 1, 0x51}, vfmadd213ps{1, 2, 0xa8},
    vfmadd213pd{1, 2, 0xa8, true}, vcvtdq2ps{0, 1, 0x5b}, vcvtdq2pd{2, 1, 0xe6};

// Digits of shifts by a constant.
inline constexpr uint8_t shift_right = 2, shift_right_signed = 4, shift_left = 6;

} // namespace ptxrewrite::emulator::generated::x86
