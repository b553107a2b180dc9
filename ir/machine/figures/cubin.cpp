#include "ir/machine/figures/cubin.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

namespace ptxrewrite::ir {

namespace {

static_assert(std::endian::native == std::endian::little, "cubins are little-endian and are read by plain copies");

constexpr uint16_t machine_cuda = 190;
constexpr uint32_t section_without_content = 8; // SHT_NOBITS
constexpr uint32_t section_symbols = 2;         // SHT_SYMTAB
constexpr uint8_t symbol_is_function = 2;       // STT_FUNC
constexpr uint8_t symbol_is_entry = 0x10;       // NVIDIA's bit in st_other
constexpr uint8_t abi_of_cuda_13 = 8;
constexpr uint32_t first_architecture = 35;
constexpr uint32_t first_architecture_of_volta = 70;
constexpr uint32_t reserved_shared_bytes = 1024;
constexpr uint32_t first_architecture_with_reserved_shared = 90;

struct FileHeader {
  unsigned char ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, program_headers, section_headers;
  uint32_t flags;
  uint16_t header_size, program_header_size, program_header_count;
  uint16_t section_header_size, section_header_count, name_section;
};
struct SectionHeader {
  uint32_t name, type;
  uint64_t flags, address, offset, size;
  uint32_t link, info;
  uint64_t alignment, entry_size;
};
struct SymbolEntry {
  uint32_t name;
  uint8_t info, other;
  uint16_t section;
  uint64_t value, size;
};
static_assert(sizeof(FileHeader) == 64 && sizeof(SectionHeader) == 64 && sizeof(SymbolEntry) == 24);

// Attributes of .nv.info: a format byte, an attribute byte, then a 16-bit value or size; format 4 is followed by `size`
// bytes, the others contain their value.
constexpr uint8_t format_sized = 4;
enum class Attribute : uint8_t {
  frame_size = 0x11, // {symbol, bytes}
  registers = 0x2f,  // {symbol, count}
  barriers = 0x4c,   // byte value
  annotations = 0x55 // {kind, code offset}...; kind 1 marks a spill store or refill
};
constexpr uint32_t annotation_spill = 1;

// Opcodes in the low 12 bits of an instruction, sm_70 to sm_120.
enum class SassOpcode : uint32_t { store_local = 0x387, no_operation = 0x918, branch = 0x947, load_local = 0x983 };

template <class T> bool read_at(std::string_view bytes, uint64_t offset, T& value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return true;
}

struct SassWord {
  uint64_t low = 0, high = 0;
  bool is(SassOpcode opcode) const { return (low & 0xfff) == static_cast<uint32_t>(opcode); }
  bool is_unguarded() const { return ((low >> 12) & 0xf) == 7; }
  // Branch to its own address: the distance from the next instruction is -16 bytes. Up to sm_89 it is stored in bytes
  // from bit 32 on, from sm_90 on in units of four bytes, with the low eight bits at bit 16.
  bool branches_to_itself() const {
    if (!is(SassOpcode::branch) || !is_unguarded()) return false;
    uint64_t far_part = low >> 32, near_part = (low >> 16) & 0xff;
    return far_part == 0xfffffff0 || (far_part == 0xfffffffc && near_part == 0xfc);
  }
  // Bytes that a local load or store moves per thread.
  uint32_t access_bytes() const {
    static constexpr uint32_t widths[8] = {1, 1, 2, 2, 4, 8, 16, 16};
    return widths[(high >> 9) & 7];
  }
};

SassWord word_at(std::string_view code, uint64_t offset) {
  SassWord word;
  if (!read_at(code, offset, word.low) || !read_at(code, offset + 8, word.high)) return {};
  return word;
}

// Layout of the code: bytes per instruction; before sm_70, the first word of every group schedules the instructions of
// the group.
struct CodeFormat {
  uint32_t instruction_bytes = 16;
  uint32_t words_by_group = 0; // 0: no groups
};

CodeFormat format_of(uint32_t architecture) {
  if (architecture >= first_architecture_of_volta) return {};
  return {8, architecture < 50 ? 8u : 4u};
}

// Instruction words of Kepler (sm_35, sm_37) and of Maxwell and Pascal.
bool is_old_no_operation(uint64_t word, uint32_t architecture) {
  return architecture < 50 ? (word >> 52) == 0x858 && (word & 3) == 2 : (word >> 48 & 0xfff8) == 0x50b0;
}

// An unguarded branch to its own address or to the control word before it.
bool is_old_branch_to_itself(uint64_t word, uint32_t architecture) {
  if (architecture < 50) return word == 0x12007ffffc1c003c || word == 0x12007ffff81c003c;
  return word == 0xe2400fffff87000f || word == 0xe2400fffff07000f;
}

// Calls visit(attribute, value, bytes) for each attribute; stops at the end or at malformed bytes.
template <class Visitor> void for_each_attribute(std::string_view info, Visitor visit) {
  struct Head {
    uint8_t format, attribute;
    uint16_t value;
  } head;
  uint64_t at = 0;
  while (read_at(info, at, head)) {
    at += sizeof head;
    std::string_view bytes;
    if (head.format == format_sized) {
      if (info.size() - at < head.value) return;
      bytes = info.substr(at, head.value);
      at += head.value;
    }
    visit(static_cast<Attribute>(head.attribute), head.value, bytes);
  }
}

Error malformed(const char* what) {
  return {std::string("not a readable cubin: ") + what, {}};
}

class Reader {
public:
  explicit Reader(std::string image) : image_(std::make_shared<const std::string>(std::move(image))), bytes_(*image_) {}

  Result<Cubin> read() {
    if (Status status = read_header(); !status) return status.error();
    if (Status status = read_sections(); !status) return status.error();
    find_subroutines();
    if (Status status = read_functions(); !status) return status.error();
    read_symbols();
    read_module_attributes();
    cubin_.image = image_;
    return std::move(cubin_);
  }

private:
  Status read_header() {
    if (!read_at(bytes_, 0, header_)) return malformed("shorter than an ELF header");
    if (std::memcmp(header_.ident, "\177ELF\2\1", 6) != 0) return malformed("no little-endian 64-bit ELF file");
    if (header_.machine != machine_cuda) return malformed("ELF file of another machine than CUDA");
    if (header_.section_header_size != sizeof(SectionHeader)) return malformed("unexpected section header size");
    cubin_.architecture = (abi() >= abi_of_cuda_13 ? header_.flags >> 8 : header_.flags) & 0xff;
    if (cubin_.architecture < first_architecture) return malformed("instruction format older than sm_35");
    return {};
  }

  Status read_sections() {
    SectionHeader first;
    uint64_t count = header_.section_header_count, names = header_.name_section;
    if (!read_at(bytes_, header_.section_headers, first)) return malformed("section headers lie outside the file");
    if (count == 0) count = first.size; // more sections than fit the header's field
    if (names == 0xffff) names = first.link;
    if (count > (bytes_.size() - header_.section_headers) / sizeof(SectionHeader))
      return malformed("section headers lie outside the file");
    if (names >= count) return malformed("no section names");
    headers_.resize(count);
    std::memcpy(headers_.data(), bytes_.data() + header_.section_headers, count * sizeof(SectionHeader));
    if (!in_file(headers_[names])) return malformed("no section names");
    std::string_view name_table = content(headers_[names]);
    cubin_.sections.reserve(count);
    for (const SectionHeader& header : headers_) {
      if (!in_file(header)) return malformed("a section lies outside the file");
      CubinSection section{
          text_at(name_table, header.name), content(header), header.type, header.info, header.flags, header.size};
      by_name_.emplace(section.name, static_cast<uint32_t>(cubin_.sections.size()));
      cubin_.sections.push_back(section);
    }
    return {};
  }

  // Slow paths of roots and divisions and called functions follow the kernel's own code.
  void find_subroutines() {
    first_subroutine_.assign(headers_.size(), UINT64_MAX);
    for (const SectionHeader& header : headers_) {
      if (header.type != section_symbols) continue;
      std::string_view symbols = content(header);
      SymbolEntry symbol;
      for (uint64_t at = 0; read_at(symbols, at, symbol); at += sizeof symbol) {
        if ((symbol.info & 0xf) != symbol_is_function || symbol.section >= headers_.size() || symbol.value == 0)
          continue;
        uint64_t& first = first_subroutine_[symbol.section];
        first = std::min(first, symbol.value);
      }
      return; // ELF has one symbol table
    }
  }

  Status read_functions() {
    constexpr std::string_view prefix = ".text.";
    for (size_t number = 0; number < cubin_.sections.size(); ++number) {
      const CubinSection& section = cubin_.sections[number];
      if (!section.name.starts_with(prefix) || section.type == section_without_content) continue;
      if (section.bytes.size() % format_of(cubin_.architecture).instruction_bytes != 0)
        return malformed("code of a broken size");
      CubinFunction function;
      function.name = section.name.substr(prefix.size());
      function.code = section.bytes;
      // Without these attributes: CUDA 12 stores barriers in the flags, and registers next to the symbol number.
      function.barriers = static_cast<uint32_t>(section.flags >> 20) & 0x7f;
      function.registers = section.info >> 24;
      if (cubin_.architecture < first_architecture_of_volta)
        count_grouped_instructions(function, cubin_.architecture);
      else
        count_instructions(function);
      read_function_attributes(function, first_subroutine_[number]);
      read_shared(function);
      function_by_name_.emplace(function.name, static_cast<uint32_t>(cubin_.functions.size()));
      cubin_.functions.push_back(function);
    }
    return {};
  }

  // Before sm_70 no-operations only pad groups.
  static void count_grouped_instructions(CubinFunction& function, uint32_t architecture) {
    const CodeFormat format = format_of(architecture);
    const auto words = static_cast<uint32_t>(function.code.size() / format.instruction_bytes);
    uint32_t own = 0, padding = 0;
    bool ends = false; // reached the branch to itself
    for (uint32_t number = 0; number < words; ++number) {
      uint64_t word = 0;
      if (number % format.words_by_group == 0 || !read_at(function.code, uint64_t{number} * sizeof word, word))
        continue;
      if (is_old_no_operation(word, architecture)) {
        ++padding;
        continue;
      }
      ++own;
      ends = is_old_branch_to_itself(word, architecture);
    }
    function.instructions = own - (ends ? 1 : 0);
    function.padding_instructions = padding + (ends ? 1 : 0);
  }

  static void count_instructions(CubinFunction& function) {
    constexpr uint32_t instruction_bytes = 16;
    auto total = static_cast<uint32_t>(function.code.size() / instruction_bytes);
    uint32_t used = total;
    auto last = [&] { return word_at(function.code, uint64_t{used - 1} * instruction_bytes); };
    while (used > 0 && last().is(SassOpcode::no_operation))
      --used;
    if (used > 0 && last().branches_to_itself()) --used;
    function.instructions = used;
    function.padding_instructions = total - used;
  }

  void read_function_attributes(CubinFunction& function, uint64_t own_code) {
    const CubinSection* section = find_section(".nv.info." + std::string(function.name));
    if (section != nullptr) function.info = section->bytes;
    if (abi() >= abi_of_cuda_13) function.spill_stores = function.spill_loads = 0;
    for_each_attribute(function.info, [&](Attribute attribute, uint16_t value, std::string_view bytes) {
      if (attribute == Attribute::barriers) function.barriers = value & 0xff;
      if (attribute == Attribute::annotations) count_spills(function, bytes, own_code);
    });
  }

  // ptxas does not count spills of subroutines.
  static void count_spills(CubinFunction& function, std::string_view annotations, uint64_t own_code) {
    struct Annotation {
      uint32_t kind, offset;
    } entry;
    for (uint64_t at = 0; read_at(annotations, at, entry); at += sizeof entry) {
      if (entry.kind != annotation_spill || entry.offset >= own_code) continue;
      SassWord word = word_at(function.code, entry.offset);
      if (word.is(SassOpcode::store_local))
        function.spill_stores = function.spill_stores.value_or(0) + word.access_bytes();
      if (word.is(SassOpcode::load_local))
        function.spill_loads = function.spill_loads.value_or(0) + word.access_bytes();
    }
  }

  void read_shared(CubinFunction& function) {
    const CubinSection* section = find_section(".nv.shared." + std::string(function.name));
    if (section == nullptr) return;
    uint64_t reserved = cubin_.architecture >= first_architecture_with_reserved_shared ? reserved_shared_bytes : 0;
    uint64_t size = section->size > reserved ? section->size - reserved : 0;
    function.shared = static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX));
  }

  void read_symbols() {
    for (const SectionHeader& header : headers_) {
      if (header.type != section_symbols || header.link >= headers_.size()) continue;
      std::string_view symbols = content(header), names = content(headers_[header.link]);
      SymbolEntry symbol;
      for (uint64_t at = 0; read_at(symbols, at, symbol); at += sizeof symbol) {
        CubinFunction* function = nullptr;
        if ((symbol.info & 0xf) == symbol_is_function) function = find_function(text_at(names, symbol.name));
        if (function != nullptr && (symbol.other & symbol_is_entry) != 0) function->is_entry = true;
        symbol_functions_.push_back(function);
      }
      return; // ELF has one symbol table
    }
  }

  void read_module_attributes() {
    const CubinSection* section = find_section(".nv.info");
    if (section == nullptr) return;
    for_each_attribute(section->bytes, [&](Attribute attribute, uint16_t, std::string_view bytes) {
      uint32_t symbol = 0, value = 0;
      if (!read_at(bytes, 0, symbol) || !read_at(bytes, 4, value)) return;
      CubinFunction* function = symbol < symbol_functions_.size() ? symbol_functions_[symbol] : nullptr;
      if (function == nullptr) return;
      if (attribute == Attribute::registers) function->registers = value;
      if (attribute == Attribute::frame_size) function->stack_frame = value;
    });
  }

  uint8_t abi() const { return header_.ident[8]; }

  bool in_file(const SectionHeader& header) const {
    if (header.type == section_without_content || header.type == 0) return true;
    return header.offset <= bytes_.size() && header.size <= bytes_.size() - header.offset;
  }
  std::string_view content(const SectionHeader& header) const {
    if (header.type == section_without_content || header.type == 0) return {};
    return bytes_.substr(header.offset, header.size);
  }
  static std::string_view text_at(std::string_view table, uint64_t offset) {
    if (offset >= table.size()) return {};
    std::string_view rest = table.substr(offset);
    return rest.substr(0, rest.find('\0'));
  }
  const CubinSection* find_section(std::string_view name) const {
    auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &cubin_.sections[found->second];
  }
  CubinFunction* find_function(std::string_view name) {
    auto found = function_by_name_.find(name);
    return found == function_by_name_.end() ? nullptr : &cubin_.functions[found->second];
  }

  std::shared_ptr<const std::string> image_;
  std::string_view bytes_;
  FileHeader header_{};
  std::vector<SectionHeader> headers_;
  std::unordered_map<std::string_view, uint32_t> by_name_;
  std::unordered_map<std::string_view, uint32_t> function_by_name_;
  std::vector<CubinFunction*> symbol_functions_; // by symbol number
  std::vector<uint64_t> first_subroutine_;       // by section: the offset of the first subroutine in its code
  Cubin cubin_;
};

bool takes_part_in_comparison(const CubinSection& section) {
  return section.name.starts_with(".text.") || section.name.starts_with(".nv.info");
}

} // namespace

const CubinFunction* Cubin::find(std::string_view name) const {
  for (const CubinFunction& function : functions)
    if (function.name == name) return &function;
  return nullptr;
}

const CubinSection* Cubin::section(std::string_view name) const {
  for (const CubinSection& row : sections)
    if (row.name == name) return &row;
  return nullptr;
}

Result<Cubin> read_cubin(std::string image) {
  return Reader(std::move(image)).read();
}

std::string first_code_difference(const Cubin& a, const Cubin& b) {
  std::unordered_map<std::string_view, std::string_view> others;
  for (const CubinSection& section : b.sections)
    if (takes_part_in_comparison(section)) others.emplace(section.name, section.bytes);
  for (const CubinSection& section : a.sections) {
    if (!takes_part_in_comparison(section)) continue;
    auto other = others.find(section.name);
    if (other == others.end() || other->second != section.bytes) return std::string(section.name);
    others.erase(other);
  }
  return others.empty() ? std::string() : std::string(others.begin()->first);
}

} // namespace ptxrewrite::ir
