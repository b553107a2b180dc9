// Bit operations, computed one bit at a time: counts, fields, shifts, permutations and logic.
#include "tests/emulator/reference.h"

#include <algorithm>
#include <array>
#include <map>

namespace ptxrewrite::test {

namespace {

using ir::ScalarType;

ReferenceResult single(Raw value) {
  return {{value}, false};
}
constexpr Raw none_found = 0xffffffff;

// An amount or a position, without any limit on its size.
uint64_t amount_of(Raw value) {
  return static_cast<uint64_t>(low_bits(value, 32));
}

Reference counts(const Statement& statement) {
  const unsigned bits = ir::bit_width(statement.type());
  const bool is_signed = ir::is_signed(statement.type());
  const bool shift_amount = statement.has("shiftamt");
  const std::string opcode = statement.opcode;
  return [=](const ReferenceInput& in) {
    const Raw a = low_bits(in.sources[0], bits);
    if (opcode == "popc") {
      Raw ones = 0;
      for (unsigned i = 0; i < bits; ++i)
        ones += bit_of(a, i);
      return single(ones);
    }
    const bool wanted = !(opcode == "bfind" && is_signed && bit_of(a, bits - 1));
    unsigned above = 0; // number of bits above the topmost wanted bit
    while (above < bits && bit_of(a, bits - 1 - above) != wanted)
      ++above;
    if (opcode == "clz") return single(above);
    if (above == bits) return single(none_found);
    return single(shift_amount ? above : bits - 1 - above);
  };
}

Reference nth_set_bit(const Statement&) {
  return [](const ReferenceInput& in) {
    const Raw mask = low_bits(in.sources[0], 32);
    const uint64_t base = amount_of(in.sources[1]);
    const Big offset = number_of(in.sources[2], 32, true);
    if (base > 31) return single(none_found);
    std::vector<uint64_t> walk;
    if (offset >= 0)
      for (uint64_t i = base; i < (offset == 0 ? base + 1 : 32); ++i)
        walk.push_back(i);
    else
      for (uint64_t i = base + 1; i-- > 0;)
        walk.push_back(i);
    std::erase_if(walk, [&](uint64_t i) { return !bit_of(mask, static_cast<unsigned>(i)); });
    const Big index = offset == 0 ? Big{0} : (offset < 0 ? -offset : offset) - 1;
    return single(index < static_cast<Big>(walk.size()) ? Raw{walk[static_cast<size_t>(index)]} : none_found);
  };
}

Reference reversal(const Statement& statement) {
  const unsigned bits = ir::bit_width(statement.type());
  return [=](const ReferenceInput& in) {
    return single(from_bits(bits, [&](unsigned i) { return bit_of(in.sources[0], bits - 1 - i); }));
  };
}

// A position or length of a field: 8 bits, but all 32 for 64-bit types (which have no machine instruction: ptxas
// expands them).
uint64_t field_amount(Raw value, unsigned bits) {
  return static_cast<uint64_t>(low_bits(value, bits == 64 ? 32 : 8));
}

Reference extraction(const Statement& statement) {
  const unsigned bits = ir::bit_width(statement.type());
  const bool is_signed = ir::is_signed(statement.type());
  return [=](const ReferenceInput& in) {
    const uint64_t first = field_amount(in.sources[1], bits);
    const uint64_t length = field_amount(in.sources[2], bits);
    const Raw a = low_bits(in.sources[0], bits);
    const bool fill =
        is_signed && length != 0 && bit_of(a, static_cast<unsigned>(std::min<uint64_t>(first + length - 1, bits - 1)));
    return single(from_bits(bits, [&](unsigned i) {
      return i < length && first + i < bits ? bit_of(a, static_cast<unsigned>(first + i)) : fill;
    }));
  };
}

Reference insertion(const Statement& statement) {
  const unsigned bits = ir::bit_width(statement.type());
  return [=](const ReferenceInput& in) {
    const uint64_t first = field_amount(in.sources[2], bits);
    const uint64_t length = field_amount(in.sources[3], bits);
    return single(from_bits(bits, [&](unsigned i) {
      return i >= first && i < first + length ? bit_of(in.sources[0], static_cast<unsigned>(i - first))
                                              : bit_of(in.sources[1], i);
    }));
  };
}

Reference extension(const Statement& statement) {
  const bool is_signed = ir::is_signed(statement.type());
  const bool wrap = statement.has("wrap");
  return [=](const ReferenceInput& in) {
    const uint64_t amount = amount_of(in.sources[1]);
    const uint64_t length = wrap ? amount % 32 : std::min<uint64_t>(amount, 32);
    const bool fill = is_signed && length != 0 && bit_of(in.sources[0], static_cast<unsigned>(length) - 1);
    return single(from_bits(32, [&](unsigned i) { return i < length ? bit_of(in.sources[0], i) : fill; }));
  };
}

Reference mask(const Statement& statement) {
  const bool wrap = statement.has("wrap");
  return [=](const ReferenceInput& in) {
    const uint64_t first = wrap ? amount_of(in.sources[0]) % 32 : amount_of(in.sources[0]);
    const uint64_t length = wrap ? amount_of(in.sources[1]) % 32 : amount_of(in.sources[1]);
    return single(from_bits(32, [&](unsigned i) { return i >= first && i < first + length; }));
  };
}

Reference shift(const Statement& statement) {
  const unsigned bits = ir::bit_width(statement.type());
  const bool left = statement.opcode == "shl";
  const bool is_signed = ir::is_signed(statement.type());
  return [=](const ReferenceInput& in) {
    const Raw a = low_bits(in.sources[0], bits);
    const uint64_t amount = amount_of(in.sources[1]);
    const bool fill = is_signed && bit_of(a, bits - 1);
    return single(from_bits(bits, [&](uint64_t i) {
      if (left) return i >= amount && bit_of(a, static_cast<unsigned>(i - amount));
      return i + amount < bits ? bit_of(a, static_cast<unsigned>(i + amount)) : fill;
    }));
  };
}

Reference funnel_shift(const Statement& statement) {
  const bool left = statement.has("l");
  const bool wrap = statement.has("wrap");
  return [=](const ReferenceInput& in) {
    const uint64_t given = amount_of(in.sources[2]);
    const uint64_t amount = wrap ? given % 32 : std::min<uint64_t>(given, 32);
    const uint64_t lowest = left ? 32 - amount : amount; // index within the 64 bits of the bit that moves to bit 0
    return single(from_bits(32, [&](uint64_t i) {
      const uint64_t place = i + lowest;
      return place < 32 ? bit_of(in.sources[0], static_cast<unsigned>(place))
                        : bit_of(low_bits(in.sources[1], 32), static_cast<unsigned>(place - 32));
    }));
  };
}

// The manual's tables of the special modes: source bytes of d.b3 d.b2 d.b1 d.b0 for selectors 0 to 3.
const std::map<std::string, std::array<const char*, 4>> permutations = {
    {"f4e", {"3210", "4321", "5432", "6543"}}, {"b4e", {"5670", "6701", "7012", "0123"}},
    {"rc8", {"0000", "1111", "2222", "3333"}}, {"ecl", {"3210", "3211", "3222", "3333"}},
    {"ecr", {"0000", "1110", "2210", "3210"}}, {"rc16", {"1010", "3232", "1010", "3232"}}};

Reference permutation(const Statement& statement) {
  const auto mode = permutations.find(statement.words.back());
  const bool plain = mode == permutations.end();
  return [=](const ReferenceInput& in) {
    const uint64_t selector = amount_of(in.sources[2]);
    Raw result = 0;
    for (unsigned i = 4; i-- > 0;) {
      const unsigned nibble =
          plain ? (selector >> (4 * i)) % 16 : static_cast<unsigned>(mode->second[selector % 4][3 - i] - '0');
      const Raw word = nibble % 8 < 4 ? in.sources[0] : in.sources[1];
      const Raw byte = low_bits(word >> (8 * (nibble % 4)), 8);
      const Raw sign = byte >= 0x80 ? 0xff : 0;
      result = result * 256 + (nibble >= 8 ? sign : byte);
    }
    return single(result);
  };
}

Reference lookup(const Statement& statement) {
  const bool with_predicate = statement.operands[0].kind == StatementOperand::Kind::group;
  const bool both = statement.has("and");
  return [=](const ReferenceInput& in) -> ReferenceResult {
    const Raw value = from_bits(32, [&](unsigned i) {
      const unsigned row = 4u * bit_of(in.sources[0], i) + 2u * bit_of(in.sources[1], i) + bit_of(in.sources[2], i);
      return bit_of(in.sources[3], row);
    });
    if (!with_predicate) return single(value);
    const bool q = in.sources[4] != 0;
    const bool any = value != 0;
    return {{value, Raw{both ? any && q : any || q}}, false};
  };
}

Reference logic(const Statement& statement) {
  const unsigned bits = ir::bit_width(statement.type());
  const std::string opcode = statement.opcode;
  return [=](const ReferenceInput& in) {
    if (opcode == "cnot") return single(low_bits(in.sources[0], bits) == 0 ? 1 : 0);
    auto source = [&](size_t index, unsigned i) { // a predicate constant is true if it is not 0
      return bits == 1 ? in.sources[index] != 0 : bit_of(in.sources[index], i);
    };
    return single(from_bits(bits, [&](unsigned i) {
      const bool a = source(0, i);
      if (opcode == "not") return !a;
      const bool b = source(1, i);
      return opcode == "and" ? a && b : opcode == "or" ? a || b : a != b;
    }));
  };
}

} // namespace

Reference bit_reference(const Statement& statement) {
  using Maker = Reference (*)(const Statement&);
  static const std::map<std::string, Maker> makers = {
      {"popc", counts},    {"clz", counts},       {"bfind", counts},     {"fns", nth_set_bit}, {"brev", reversal},
      {"bfe", extraction}, {"bfi", insertion},    {"szext", extension},  {"bmsk", mask},       {"shl", shift},
      {"shr", shift},      {"shf", funnel_shift}, {"prmt", permutation}, {"lop3", lookup},     {"and", logic},
      {"or", logic},       {"xor", logic},        {"not", logic},        {"cnot", logic}};
  auto found = makers.find(statement.opcode);
  return found == makers.end() ? Reference() : found->second(statement);
}

} // namespace ptxrewrite::test
