#include "emulator/generated/plan_key.h"

#include "support/mix.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <type_traits>
#if defined(__linux__)
#include <link.h>
#endif

namespace ptxrewrite::emulator::generated {
namespace {

template <class T> void append(std::string& text, const T& value) {
  static_assert(std::has_unique_object_representations_v<T>, "equal values have equal bytes");
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

#if defined(__linux__)
// The linker's note of the program or library that contains this function.
int find_build_id(dl_phdr_info* object, size_t, void* result) {
  const auto here = reinterpret_cast<uintptr_t>(&find_build_id);
  bool is_here = false;
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    is_here |= part.p_type == PT_LOAD && here - (object->dlpi_addr + part.p_vaddr) < part.p_memsz;
  }
  for (unsigned i = 0; is_here && i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const auto* bytes = reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr);
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= part.p_memsz;) {
      ElfW(Nhdr) note;
      std::memcpy(&note, bytes + at, sizeof note);
      const size_t name = at + sizeof note, content = name + (note.n_namesz + 3) / 4 * 4;
      const bool is_gnu = note.n_namesz == 4 && std::memcmp(bytes + name, "GNU", 4) == 0;
      if (note.n_type == NT_GNU_BUILD_ID && is_gnu)
        static_cast<std::string*>(result)->assign(bytes + content, note.n_descsz);
      at = content + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return is_here;
}
#endif

// Rows and passes change from build to build, and full code with them.
const std::string& build_id() {
  static const std::string found = [] {
    std::string id;
#if defined(__linux__)
    dl_iterate_phdr(&find_build_id, &id);
#endif
    return id;
  }();
  return found;
}

// The values of constants, which are in the image.
void append_constant(std::string& text, const KernelImage& image, LaneRef lanes) {
  append(text, lanes);
  if (!lanes || lanes.base() != LaneBase::constants) return;
  uint64_t value = 0;
  std::memcpy(&value, const_cast<KernelImage&>(image).constants.data() + lanes.offset(), sizeof value);
  append(text, value);
}

} // namespace

std::string hash_of(std::string_view bytes) {
  uint64_t halves[2] = {bytes.size(), ~bytes.size()};
  for (size_t at = 0; at < bytes.size(); at += 8) {
    uint64_t part = 0;
    std::memcpy(&part, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    halves[0] = mixed_bits(halves[0] ^ part);
    halves[1] = mixed_bits(halves[1] + part * 0x9e3779b97f4a7c15);
  }
  return fmt::format("{:016x}{:016x}", halves[0], halves[1]);
}

// All that code of the function depends on: micro-operations without addresses of this process, constants, and what
// instructions read and write, from which the live registers follow.
const std::string& FunctionCode::identity() {
  if (!identity_.empty()) return identity_;
  std::string text = fmt::format("{} {} {} ", image.parameter_bytes, image.constant_bank.size(), function.code.size());
  for (uint32_t index = 0; index < function.code.size(); ++index) {
    MicroOp op = this->op(index);
    const OpKind kind = info(index).kind;
    if (kind == OpKind::branch)
      op.immediate = index_of(std::bit_cast<const MicroOp*>(op.immediate));
    else if (kind == OpKind::stop || is_region(index))
      op.immediate = 0;
    op.handler = nullptr;
    append(text, op);
    append(text, kind);
    append(text, bool(is_region_entry_[index]));
    append(text, bool(is_meeting_[index]));
    for (LaneRef lanes : {op.guard, op.source[0], op.source[1], op.source[2], op.source[3]})
      append_constant(text, image, lanes);
    if (op.is_instruction) text += instruction_text(index);
  }
  for (LaneRef lanes : function.lists)
    append_constant(text, image, lanes);
  const ir::Function& source = *function.source;
  for (ir::ValueId value : source.values.ids()) {
    append(text, function.registers[value.index()]);
    text += std::to_string(static_cast<int>(source.values[value].type)) + ' ';
    append(text, source.values[value].vector_width);
  }
  for (ir::BlockId block : source.layout)
    for (ir::InstructionId instruction : source.instructions_in(block)) {
      append(text, instruction);
      ir::for_each_use(source, instruction, [&](ir::ValueId value) { append(text, value); });
      ir::for_each_definition(source, instruction, [&](ir::ValueId value) { append(text, value); });
    }
  for (const auto& table : function.branch_tables)
    for (uint32_t target : table)
      append(text, target);
  for (const CallValue& result : function.results)
    append(text, result.lanes);
  identity_ = hash_of(text);
  return identity_;
}

std::string key_of(const Plan& plan, bool full_warp) {
  if (build_id().empty()) return {};
  std::string text = build_id() + plan.code.identity() + (full_warp ? " full " : " some ") + plan.places();
  append(text, plan.entry);
  for (const auto& [first, piece] : plan.pieces)
    append(text, first);
  for (uint32_t offset : plan.uniform())
    append(text, offset);
  return hash_of(text);
}

} // namespace ptxrewrite::emulator::generated
