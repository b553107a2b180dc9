#include "tests/emulator/operand_memory.h"

#include "ir/isa/isa.h"
#include "tests/emulator/forms.h"
#include "tests/emulator/operand_kinds.h"
#include "tests/emulator/reference.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

namespace ptxrewrite::test {
namespace {

constexpr size_t variable_bytes = 64;
constexpr size_t slot_bytes = 16;
using Bytes = std::array<uint8_t, variable_bytes>;

// Contents of every variable before every case.
constexpr uint8_t pattern_byte(size_t i) {
  return static_cast<uint8_t>(i * 37 + 139);
}
Bytes pattern() {
  Bytes bytes;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = pattern_byte(i);
  return bytes;
}
Raw read_bytes(const Bytes& bytes, size_t place, size_t count) {
  Raw value = 0;
  std::memcpy(&value, bytes.data() + place, count);
  return value;
}
uint32_t pattern_word(size_t place) {
  return static_cast<uint32_t>(read_bytes(pattern(), place, 4));
}

std::string number(Raw value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

struct Type {
  const char* name;
  unsigned bytes;
  bool is_signed = false;
  bool is_float = false;
  char letter = 'r'; // of registers of this width, or the narrowest available
  unsigned register_bits() const {
    return letter == 'h' ? 16 : letter == 'q' ? 128 : letter == 'l' || letter == 'd' ? 64 : 32;
  }
};
constexpr Type types[] = {
    {"b8", 1, false, false, 'h'},
    {"u8", 1, false, false, 'h'},
    {"s8", 1, true, false, 'h'},
    {"b16", 2, false, false, 'h'},
    {"u16", 2, false, false, 'h'},
    {"s16", 2, true, false, 'h'},
    {"b32", 4},
    {"u32", 4},
    {"s32", 4, true},
    {"f32", 4, false, true, 'f'},
    {"b64", 8, false, false, 'l'},
    {"u64", 8, false, false, 'l'},
    {"s64", 8, true, false, 'l'},
    {"f64", 8, false, true, 'd'},
    {"b128", 16, false, false, 'q'},
};

// Cases of one kernel: text, and the expected values of the output's slots.
class MemoryBatch {
public:
  struct Expected {
    Raw value;
    std::string what;
  };
  void text(const std::string& more) { text_ += more; }
  // Stores a register into the next slot, where `value` is expected.
  void expect(char letter, const std::string& name, Raw value, const std::string& what) {
    const std::string place = "[%l19+" + std::to_string(expected_.size() * slot_bytes) + "]";
    if (letter == 'p')
      text_ += "selp.b32 %r15, 1, 0, " + name + ";\nst.global.b32 " + place + ", %r15;\n";
    else
      text_ += std::string("st.global.") +
               (letter == 'h'   ? "b16 "
                : letter == 'q' ? "b128 "
                : letter == 'l' ? "b64 "
                : letter == 'd' ? "f64 "
                : letter == 'f' ? "f32 "
                                : "b32 ") +
               place + ", " + name + ";\n";
    expected_.push_back({value, what});
  }
  size_t size() const { return expected_.size(); }
  const std::string& body() const { return text_; }
  const std::vector<Expected>& expected() const { return expected_; }

private:
  std::string text_;
  std::vector<Expected> expected_;
};

struct Counts {
  std::set<std::string> instructions;
  std::map<std::string, size_t> kinds;
  size_t cases = 0;
  size_t failures = 0;
  void add(const std::string& mnemonic, const std::string& kind) {
    instructions.insert(mnemonic);
    ++kinds[kind];
    ++cases;
  }
};

std::string pattern_list() {
  std::string list = "{";
  for (size_t i = 0; i < variable_bytes; ++i)
    list += (i ? "," : "") + std::to_string(pattern_byte(i));
  return list + "}";
}

// Scalar stores of the pattern to [base + 0 ...].
std::string fill(const std::string& space, const std::string& base) {
  std::string text;
  for (size_t i = 0; i < variable_bytes; i += 4)
    text += "st." + space + ".b32 [" + base + "+" + std::to_string(i) + "], " + std::to_string(pattern_word(i)) + ";\n";
  return text;
}

std::string module_around(const std::string& functions, const std::string& body) {
  return ".version 9.0\n.target sm_100a\n.address_size 64\n.global .align 64 .b8 gvar[64] = " + pattern_list() +
         ";\n.const .align 64 .b8 cvar[64] = " + pattern_list() + ";\n" + functions +
         ".visible .entry k(.param .u64 outputs, .param .align 64 .b8 pvar[64])\n{\n" +
         std::string(kernel_registers()) + std::string(kind_preamble()) +
         ".shared .align 64 .b8 svar[64];\n.local .align 64 .b8 lvar[64];\n"
         "ld.param.u64 %l19, [outputs];\n"
         "mov.u64 %l20, gvar;\nmov.u64 %l21, svar;\nmov.u64 %l22, lvar;\nmov.u64 %l23, cvar;\nmov.u64 %l24, pvar;\n"
         "cvta.global.u64 %l30, %l20;\ncvta.shared.u64 %l31, %l21;\ncvta.local.u64 %l32, %l22;\n"
         "cvta.const.u64 %l33, %l23;\ncvta.param.u64 %l34, %l24;\n" +
         fill("shared", "%l21") + fill("local", "%l22") + body + "ret;\n}\n";
}

void check(const MemoryBatch& batch, const std::string& text, Way way, Counts& counts) {
  std::vector<std::byte> pattern_parameter(variable_bytes);
  std::memcpy(pattern_parameter.data(), pattern().data(), variable_bytes);
  auto results = run_text(text, pattern_parameter, batch.size() * slot_bytes, way);
  if (!results) {
    std::printf("wrong: %s\n%s", results.error().message.c_str(), counts.failures == 0 ? text.c_str() : "");
    ++counts.failures;
    return;
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    Raw value = 0;
    std::memcpy(&value, results->data() + i * slot_bytes, slot_bytes);
    if (value == batch.expected()[i].value) continue;
    if (++counts.failures <= 20)
      std::printf("wrong: %s gives 0x%llx, not 0x%llx\n", batch.expected()[i].what.c_str(),
                  static_cast<unsigned long long>(value), static_cast<unsigned long long>(batch.expected()[i].value));
  }
}

// --- addresses ---

struct Place {
  std::string kind;
  std::string before;  // sets the registers of the address
  std::string address; // including brackets
};

struct Space {
  const char* name;     // after the opcode: ".shared" or nothing
  const char* variable; // nullptr: only registers
  const char* base;     // register with the variable's address for this instruction
  bool narrow = false;  // also 32-bit addresses
};
// Generic instructions access a variable of each space.
constexpr Space readable[] = {
    {".global", "gvar", "%l20"},
    {".shared", "svar", "%l21", true},
    {".shared::cta", "svar", "%l21", true},
    {".shared::cluster", "svar", "%l21", true},
    {".local", "lvar", "%l22"},
    {".const", "cvar", "%l23"},
    {".param", "pvar", "%l24"},
    {".param::entry", "pvar", "%l24"},
    {"", "gvar", "%l30"},
    {"", "svar", "%l31"},
    {"", "lvar", "%l32"},
    {"", nullptr, "%l33"},
    {"", nullptr, "%l34"},
};
constexpr Space writable[] = {
    {".global", "gvar", "%l20"},
    {".shared", "svar", "%l21", true},
    {".shared::cta", "svar", "%l21", true},
    {".shared::cluster", "svar", "%l21", true},
    {".local", "lvar", "%l22"},
    {"", "gvar", "%l30"},
    {"", "svar", "%l31"},
    {"", "lvar", "%l32"},
};

std::vector<Place> places_of(const Space& space, size_t offset) {
  const std::string base = space.base, at = std::to_string(offset);
  const std::string where = *space.name ? "" : " (generic)";
  std::vector<Place> places{
      {"[register]" + where, "add.u64 %l9, " + base + ", " + at + ";\n", "[%l9]"},
      {"[register+offset]" + where, "", "[" + base + "+" + at + "]"},
      {"[register-offset]" + where, "add.u64 %l9, " + base + ", " + std::to_string(2 * offset) + ";\n",
       "[%l9+-" + at + "]"},
  };
  if (space.narrow)
    places.push_back({"[32-bit register+offset]", "cvt.u32.u64 %r9, " + base + ";\n", "[%r9+" + at + "]"});
  if (!space.variable) return places;
  const std::string variable = space.variable;
  places.push_back({"[variable+offset]" + where, "", "[" + variable + "+" + at + "]"});
  places.push_back({"variable[index]" + where, "", variable + "[" + at + "]"});
  if (offset == 0) places.push_back({"[variable]" + where, "", "[" + variable + "]"});
  return places;
}

// --- values ---

std::string register_name(const Type& type, unsigned index, char letter = 0) {
  return std::string("%") + (letter ? letter : type.letter) + std::to_string(index + 1);
}

bool has_vector_registers(const Type& type, unsigned width) {
  return type.letter != 'q' && type.bytes > 1 && (width == 2 || (width == 4 && type.bytes < 8));
}

std::string braces(const std::vector<std::string>& elements) {
  if (elements.size() == 1) return elements[0];
  std::string text = "{";
  for (size_t i = 0; i < elements.size(); ++i)
    text += (i ? ", " : "") + elements[i];
  return text + "}";
}

// Destination of a load: the spelled operand, and the register that holds each element afterwards (empty: none does).
struct Target {
  std::string kind;
  std::string operand;
  std::vector<std::string> registers;
  char letter;
};

std::vector<Target> targets_of(const Type& type, unsigned width) {
  std::vector<std::string> names;
  for (unsigned k = 0; k < width; ++k)
    names.push_back(register_name(type, k));
  std::vector<Target> targets{{width == 1 ? "register" : "braces", braces(names), names, type.letter}};
  if (type.bytes <= 2) // a wider register is extended
    for (char letter : {'r', 'l'}) {
      std::vector<std::string> wide;
      for (unsigned k = 0; k < width; ++k)
        wide.push_back(register_name(type, k, letter));
      targets.push_back({"wider registers", braces(wide), wide, letter});
    }
  const std::string vector = std::string("%t") + (width == 2 ? "2" : "4") + type.letter;
  auto element = [&](const std::string& name, unsigned k) { return name + "." + "xyzw"[k]; };
  if (width == 1) {
    if (has_vector_registers(type, 2)) {
      const std::string one = element(std::string("%t2") + type.letter, 1);
      targets.push_back({"element of a vector", one, {one}, type.letter});
    }
    return targets;
  }
  std::vector<std::string> some = names, kept = names;
  for (unsigned k = 0; k < width; k += 2) {
    some[k] = "_";
    kept[k].clear();
  }
  targets.push_back({"braces with sinks", braces(some), kept, type.letter});
  std::vector<std::string> repeated(width, names[0]), last(width);
  last.back() = names[0];
  targets.push_back({"one register twice", braces(repeated), last, type.letter});
  if (!has_vector_registers(type, width)) return targets;
  std::vector<std::string> elements, turned;
  for (unsigned k = 0; k < width; ++k) {
    elements.push_back(element(vector, k));
    turned.push_back(element(vector, (k + 1) % width));
  }
  targets.push_back({"whole vector", vector, elements, type.letter});
  targets.push_back({"elements in braces", braces(turned), turned, type.letter});
  return targets;
}

// Source of a store: preceding moves, the operand, and the elements' bits.
struct Source {
  std::string kind;
  std::string before;
  std::string operand;
  std::vector<Raw> values;
};

Raw value_of(const Type& type, unsigned index) {
  const Raw bits = Raw{0x8123456789abcdefu + index * 0x0102030405060708u};
  return low_bits(bits | (bits * 3 + 1) << 64, type.register_bits());
}

// Scalar moves of a value into a register; 128-bit values in two halves.
std::string set(char letter, const std::string& name, Raw value) {
  switch (letter) {
  case 'h':
    return "mov.b16 " + name + ", " + number(value) + ";\n";
  case 'l':
  case 'd':
    return "mov.b64 " + name + ", " + number(value) + ";\n";
  case 'q':
    return "mov.b64 %l14, " + number(low_bits(value, 64)) + ";\nmov.b64 %l15, " + number(value >> 64) + ";\nmov.b128 " +
           name + ", {%l14, %l15};\n";
  default:
    return "mov.b32 " + name + ", " + number(value) + ";\n";
  }
}

struct Literal {
  const char* text;
  Raw value;
};
std::vector<Literal> literals_of(const Type& type) {
  if (type.is_float && type.bytes == 4) return {{"0f3FC00000", 0x3fc00000}, {"1.5", 0x3fc00000}, {"-0.1", 0xbdcccccd}};
  if (type.is_float) return {{"0d3FF8000000000000", 0x3ff8000000000000}, {"-2.25", 0xc002000000000000}};
  if (type.letter == 'q') return {};
  return {{"77", 77}, {"-3", ~Raw{2}}, {"0x7f", 0x7f}, {"(5+6)*3", 33}, {"~4", ~Raw{4}}, {"0b101", 5}, {"9U", 9}};
}

std::vector<Source> sources_of(const Type& type, unsigned width) {
  std::vector<Source> sources;
  std::vector<std::string> names;
  std::vector<Raw> values;
  std::string before;
  for (unsigned k = 0; k < width; ++k) {
    names.push_back(register_name(type, k));
    values.push_back(value_of(type, k));
    before += set(type.letter, names[k], values[k]);
  }
  sources.push_back({width == 1 ? "register" : "braces", before, braces(names), values});
  for (const Literal& literal : literals_of(type)) {
    std::vector<std::string> some = names;
    std::vector<Raw> changed = values;
    some.back() = literal.text;
    changed.back() = literal.value;
    sources.push_back({"constant", before, braces(some), changed});
  }
  if (width == 1) {
    if (has_vector_registers(type, 2)) {
      const std::string one = std::string("%e2") + type.letter + ".y";
      sources.push_back({"element of a vector", set(type.letter, one, values[0]), one, values});
    }
    return sources;
  }
  sources.push_back({"one register twice", before, braces(std::vector<std::string>(width, names[1])),
                     std::vector<Raw>(width, values[1])});
  if (!has_vector_registers(type, width)) return sources;
  const std::string vector = std::string("%e") + (width == 2 ? "2" : "4") + type.letter;
  Source whole{"whole vector", "", vector, values}, turned{"elements in braces", "", "", values};
  std::vector<std::string> elements;
  for (unsigned k = 0; k < width; ++k) {
    const std::string one = vector + "." + "xyzw"[k];
    const std::string other = vector + "." + "xyzw"[(k + 1) % width];
    whole.before += set(type.letter, one, values[k]);
    turned.before += set(type.letter, other, values[k]);
    elements.push_back(other);
  }
  turned.operand = braces(elements);
  sources.push_back(whole);
  sources.push_back(turned);
  return sources;
}

Raw loaded_value(const Type& type, size_t place, char letter) {
  const Raw bits = read_bytes(pattern(), place, type.bytes);
  const unsigned width = letter == type.letter ? type.register_bits() : letter == 'l' ? 64 : 32;
  return low_bits(type.is_signed ? static_cast<Raw>(number_of(bits, type.bytes * 8, true)) : bits, width);
}

void expect_loaded(MemoryBatch& batch, const Type& type, const Target& target, size_t offset, const std::string& what) {
  for (size_t k = 0; k < target.registers.size(); ++k)
    if (!target.registers[k].empty())
      batch.expect(target.letter, target.registers[k], loaded_value(type, offset + k * type.bytes, target.letter),
                   what);
}

std::string mnemonic_of(const char* opcode, const std::string& space, unsigned width, const Type& type) {
  return opcode + space + (width > 1 ? ".v" + std::to_string(width) : "") + "." + type.name;
}
bool is_known(const std::string& mnemonic) {
  const auto id = ir::resolve_form(mnemonic);
  return id && !ir::form(*id).opaque && !ir::form(*id).lax;
}

struct Access {
  const Space* space;
  const Type* type;
  unsigned width;
  std::string mnemonic;
  size_t offset() const { return size_t{type->bytes} * width == 32 ? 32 : 16; }
};
template <size_t count> std::vector<Access> accesses(const char* opcode, const Space (&spaces)[count]) {
  std::vector<Access> result;
  for (const Space& space : spaces)
    for (const Type& type : types)
      for (unsigned width : {1u, 2u, 4u, 8u}) {
        const std::string mnemonic = mnemonic_of(opcode, space.name, width, type);
        if (width * type.bytes <= 32 && is_known(mnemonic)) result.push_back({&space, &type, width, mnemonic});
      }
  return result;
}

void test_loads(Way way, Counts& counts) {
  MemoryBatch batch;
  auto flush = [&] {
    check(batch, module_around("", batch.body()), way, counts);
    batch = {};
  };
  for (const Access& access : accesses("ld", readable))
    for (size_t offset : {size_t{0}, access.offset()})
      for (const Place& place : places_of(*access.space, offset))
        for (const Target& target : targets_of(*access.type, access.width)) {
          const std::string statement = access.mnemonic + " " + target.operand + ", " + place.address + ";";
          batch.text(place.before + statement + "\n");
          expect_loaded(batch, *access.type, target, offset, statement);
          counts.add(access.mnemonic, "ld: " + place.kind);
          ++counts.kinds["ld: " + target.kind];
          if (batch.size() > 300) flush();
        }
  flush();
}

void test_stores(Way way, Counts& counts) {
  MemoryBatch batch;
  auto flush = [&] {
    check(batch, module_around("", batch.body()), way, counts);
    batch = {};
  };
  for (const Access& access : accesses("st", writable)) {
    const std::string space = *access.space->name ? access.space->name + 1 : "volatile";
    for (const Place& place : places_of(*access.space, access.offset()))
      for (const Source& source : sources_of(*access.type, access.width)) {
        const std::string statement = access.mnemonic + " " + place.address + ", " + source.operand + ";";
        batch.text(place.before + source.before + statement + "\n");
        Bytes bytes = pattern();
        for (size_t k = 0; k < source.values.size(); ++k)
          std::memcpy(bytes.data() + access.offset() + k * access.type->bytes, &source.values[k], access.type->bytes);
        // The written bytes and their neighbours, by scalar loads; then the pattern is restored.
        for (size_t at = access.offset() - 8; at < std::min(access.offset() + 40, variable_bytes); at += 8) {
          batch.text("ld." + space + ".b64 %l14, [" + access.space->base + "+" + std::to_string(at) + "];\n");
          batch.expect('l', "%l14", read_bytes(bytes, at, 8), statement);
          batch.text("st." + space + ".b64 [" + access.space->base + "+" + std::to_string(at) + "], " +
                     number(read_bytes(pattern(), at, 8)) + ";\n");
        }
        counts.add(access.mnemonic, "st: " + place.kind);
        ++counts.kinds["st: " + source.kind];
        if (batch.size() > 300) flush();
      }
  }
  flush();
}

// --- atomic operations: what is read, and what they leave where that is easily said ---

Raw atomic_result(std::string_view operation, Raw old, Raw value) {
  return operation == "add"    ? old + value
         : operation == "exch" ? value
         : operation == "and"  ? old & value
         : operation == "or"   ? old | value
         : operation == "xor"  ? old ^ value
         : operation == "cas"  ? value
                               : old;
}

void test_atomics(Way way, Counts& counts) {
  constexpr Space spaces[] = {writable[0], writable[1], writable[2], writable[5], writable[6]};
  MemoryBatch batch;
  for (const Space& space : spaces)
    for (const char* operation : {"add", "exch", "and", "or", "xor", "cas"})
      for (const Type& type : types) {
        if (type.bytes < 4 || type.is_float) continue;
        const std::string memory = *space.name ? space.name + 1 : "volatile";
        for (const char* opcode : {"atom", "red"}) {
          const std::string mnemonic = std::string(opcode) + space.name + "." + operation + "." + type.name;
          if (!is_known(mnemonic) || type.letter == 'q') continue;
          const bool returns = opcode[0] == 'a';
          for (const Place& place : places_of(space, 16))
            for (const Source& source : sources_of(type, 1))
              for (const Target& target : targets_of(type, 1)) {
                if (!returns && target.kind != "register") continue;
                const Raw old = read_bytes(pattern(), 16, type.bytes);
                const bool swaps = std::string_view(operation) == "cas";
                const std::string statement = mnemonic + " " + (returns ? target.operand + ", " : "") + place.address +
                                              ", " + (swaps ? number(old) + ", " : "") + source.operand + ";";
                batch.text(place.before + source.before + statement + "\n");
                if (returns) batch.expect(type.letter, target.registers[0], old, statement);
                batch.text("ld." + memory + "." + (type.bytes == 8 ? "b64 %l14" : "b32 %r14") + ", [" + space.base +
                           "+16];\n");
                batch.expect(type.letter, type.bytes == 8 ? "%l14" : "%r14",
                             low_bits(atomic_result(operation, old, source.values[0]), type.bytes * 8), statement);
                batch.text("st." + memory + ".b64 [" + space.base + "+16], " + number(read_bytes(pattern(), 16, 8)) +
                           ";\n");
                counts.add(mnemonic, std::string(opcode) + ": " + place.kind);
                ++counts.kinds[std::string(opcode) + ": " + source.kind];
                if (batch.size() > 300) {
                  check(batch, module_around("", batch.body()), way, counts);
                  batch = {};
                }
              }
        }
      }
  check(batch, module_around("", batch.body()), way, counts);
}

// --- calls ---

constexpr const char* copy_function = R"(
.func (.param .align 64 .b8 to[64]) copy(.param .align 64 .b8 from[64])
{
.reg .b64 %x<2>;
)";

std::string slot_functions() {
  std::string text = copy_function;
  for (size_t i = 0; i < variable_bytes; i += 8)
    text += "ld.param.b64 %x1, [from+" + std::to_string(i) + "];\nst.param.b64 [to+" + std::to_string(i) + "], %x1;\n";
  return text + "ret;\n}\n";
}

// Slots of a call: a store of every type and kind into one slot, a load of every type and kind from the other.
void test_slots(Way way, Counts& counts) {
  constexpr Space slot[] = {{".param", "from", nullptr}, {".param::func", "from", nullptr}};
  MemoryBatch batch;
  auto with_call = [&](const std::string& stores, const std::string& loads) {
    batch.text("{\n.param .align 64 .b8 from[64];\n.param .align 64 .b8 to[64];\n" + fill("param", "from") + stores +
               "call (to), copy, (from);\n" + loads);
  };
  auto flush = [&] {
    check(batch, module_around(slot_functions(), batch.body()), way, counts);
    batch = {};
  };
  for (const Access& access : accesses("st", slot))
    for (const Source& source : sources_of(*access.type, access.width))
      for (const std::string& at : {std::to_string(access.offset()), std::string("0")}) {
        const std::string statement =
            access.mnemonic + " [from" + (at == "0" ? "" : "+" + at) + "], " + source.operand + ";";
        with_call(source.before + statement + "\n", "");
        Bytes bytes = pattern();
        for (size_t k = 0; k < source.values.size(); ++k)
          std::memcpy(bytes.data() + std::stoul(at) + k * access.type->bytes, &source.values[k], access.type->bytes);
        for (size_t place = 0; place < variable_bytes; place += 8) {
          batch.text("ld.param.b64 %l14, [to+" + std::to_string(place) + "];\n");
          batch.expect('l', "%l14", read_bytes(bytes, place, 8), statement);
        }
        batch.text("}\n");
        counts.add(access.mnemonic, "st: slot of a call");
        ++counts.kinds["st: " + source.kind];
        if (batch.size() > 300) flush();
      }
  for (const Access& access : accesses("ld", slot))
    for (const Target& target : targets_of(*access.type, access.width)) {
      const std::string statement =
          access.mnemonic + " " + target.operand + ", [to+" + std::to_string(access.offset()) + "];";
      with_call("", statement + "\n");
      expect_loaded(batch, *access.type, target, access.offset(), statement);
      batch.text("}\n");
      counts.add(access.mnemonic, "ld: slot of a call");
      ++counts.kinds["ld: " + target.kind];
      if (batch.size() > 300) flush();
    }
  flush();
}

// Parameters of a function by name and by address, accessed inside the function.
void test_function_parameters(Way way, Counts& counts) {
  constexpr Space by_name[] = {{".param", "from", "%l20"}, {".param::func", "from", "%l20"}};
  constexpr Space by_address[] = {{".local", nullptr, "%l20"}, {"", nullptr, "%l21"}};
  for (const bool takes_address : {false, true}) {
    MemoryBatch batch;
    auto flush = [&] {
      const std::string function =
          ".func inside(.param .align 64 .b8 from[64], .param .b64 outputs)\n{\n" + std::string(kernel_registers()) +
          std::string(kind_preamble()) + "ld.param.b64 %l19, [outputs];\n" +
          (takes_address ? "mov.b64 %l20, from;\ncvta.local.u64 %l21, %l20;\n" : "") + batch.body() + "ret;\n}\n";
      const std::string call = "{\n.param .align 64 .b8 from[64];\n.param .b64 outputs;\n" + fill("param", "from") +
                               "st.param.b64 [outputs], %l19;\ncall inside, (from, outputs);\n}\n";
      check(batch, module_around(function, call), way, counts);
      batch = {};
    };
    auto loads = [&](const std::vector<Access>& list) {
      for (const Access& access : list)
        for (const Place& place : places_of(*access.space, access.offset())) {
          if (!takes_address && place.address.find('%') != std::string::npos) continue;
          for (const Target& target : targets_of(*access.type, access.width)) {
            const std::string statement = access.mnemonic + " " + target.operand + ", " + place.address + ";";
            batch.text(place.before + statement + "\n");
            expect_loaded(batch, *access.type, target, access.offset(), statement);
            counts.add(access.mnemonic, "ld: parameter of a function, " + place.kind);
            ++counts.kinds["ld: " + target.kind];
            if (batch.size() > 300) flush();
          }
        }
    };
    loads(accesses("ld", by_name));
    if (takes_address) loads(accesses("ld", by_address));
    flush();
  }
}

// Register parameters of every type: registers, vectors, predicates, constants, and unused results.
void test_register_parameters(Way way, Counts& counts) {
  MemoryBatch batch;
  std::string functions = ".func (.reg .pred r, .reg .b32 s) pass_pred(.reg .b32 t, .reg .pred x)\n{\n"
                          "selp.b32 s, t, 0, x;\nsetp.eq.b32 r, s, 0;\nret;\n}\n";
  for (unsigned value : {0u, 1u}) {
    const std::string what = "call (%p1, %r1), pass_pred, (7, %p2);";
    batch.text("setp.ne.u32 %p2, " + std::to_string(value) + ", 0;\n" + what + "\n");
    batch.expect('p', "%p1", value == 0, what);
    batch.expect('r', "%r1", value ? 7 : 0, what);
    batch.text("call (_, %r1), pass_pred, (8, %p2);\n");
    batch.expect('r', "%r1", value ? 8 : 0, "a predicate result that nobody takes");
    counts.cases += 2;
    counts.kinds["call: predicate"] += 2;
  }
  for (const Type& type : types) {
    if (type.bytes < 2 || type.letter == 'q') continue;
    for (unsigned width : {1u, 2u, 4u}) {
      if (width > 1 && !has_vector_registers(type, width)) continue;
      const std::string vector = width > 1 ? ".v" + std::to_string(width) + " " : "";
      const std::string name = "pass_" + std::string(type.name) + "_" + std::to_string(width);
      const std::string declared = ".reg " + vector + "." + type.name + " ";
      const std::string move = std::string("mov.") + (width > 1 ? "v" + std::to_string(width) + "." : "") + "b" +
                               std::to_string(type.bytes * 8);
      functions += ".func (.reg .b32 r, " + declared + "s) " + name + "(" + declared + "x, .reg .b32 y)\n{\n" + move +
                   " s, x;\nadd.u32 r, y, 1;\nret;\n}\n";
      const std::vector<Target> targets = targets_of(type, width);
      for (const Source& source : sources_of(type, width)) {
        // An argument must be a name or a constant: no braces, no elements, no expressions.
        if (source.operand.find_first_of("{.(~") != std::string::npos && !source.operand.starts_with("1.") &&
            !source.operand.starts_with("-"))
          continue;
        if (source.operand.starts_with("0b") || source.operand.ends_with("U")) continue;
        for (const Target& target : targets) {
          if (target.operand.find_first_of("{.") != std::string::npos || target.letter != type.letter) continue;
          const std::string call = "call (%r20, " + target.operand + "), " + name + ", (" + source.operand + ", 41);";
          batch.text(source.before + call + "\n");
          batch.expect('r', "%r20", 42, call);
          for (size_t k = 0; k < target.registers.size(); ++k)
            batch.expect(type.letter, target.registers[k], low_bits(source.values[k], type.register_bits()), call);
          batch.text("call (%r20, _), " + name + ", (" + source.operand + ", 42);\n");
          batch.expect('r', "%r20", 43, "a result that nobody takes");
          counts.cases += 2;
          ++counts.kinds["call: " + source.kind];
          ++counts.kinds["call: result that nobody takes"];
        }
      }
    }
  }
  check(batch, module_around(functions, batch.body()), way, counts);
}

} // namespace

size_t test_memory_kinds(Way way) {
  Counts counts;
  test_loads(way, counts);
  test_stores(way, counts);
  test_atomics(way, counts);
  test_slots(way, counts);
  test_function_parameters(way, counts);
  test_register_parameters(way, counts);
  for (const auto& [kind, count] : counts.kinds)
    std::printf("%-46s %7zu\n", kind.c_str(), count);
  std::printf("%zu instructions on memory and calls, %zu cases, %zu wrong\n", counts.instructions.size(), counts.cases,
              counts.failures);
  return counts.failures;
}

} // namespace ptxrewrite::test
