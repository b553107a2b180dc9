// Cubins: headers as ptxas 12.9 and 13.0 write them (readelf -h), the text of -lineinfo with zero bytes as line ends,
// our own images, and the image that a GPU selects from a fat binary; damaged bytes end in an error or in no text.
#include "cuda/context/image.h"
#include "cuda/fatbin/elf_image.h"
#include "cuda/fatbin/fatbinary.h"
#include "cuda/fatbin/link_ptx.h"

#include <doctest/doctest.h>

#include <cstring>
#include <elf.h>

namespace ptxrewrite::tests::elf_image_test {

using namespace ptxrewrite;
using namespace ptxrewrite::cuda;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string text_for(const char* kernel, const char* target = "sm_80", const char* version = "8.0") {
  return std::string(".version ") + version + "\n.target " + target + "\n.address_size 64\n.visible .entry " + kernel +
         "() { ret; }\n";
}

template <class T> void put(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::string with_head(std::string image, uint8_t os_abi, uint8_t abi_version, uint32_t flags) {
  image[EI_OSABI] = static_cast<char>(os_abi);
  image[EI_ABIVERSION] = static_cast<char>(abi_version);
  put(image, offsetof(Elf64_Ehdr, e_flags), flags);
  return image;
}

// The same image with an additional code section.
std::string with_code(std::string image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image.data(), sizeof header);
  Elf64_Shdr code{};
  code.sh_type = SHT_PROGBITS;
  code.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  image.append(reinterpret_cast<const char*>(&code), sizeof code);
  put<uint16_t>(image, offsetof(Elf64_Ehdr, e_shnum), static_cast<uint16_t>(header.e_shnum + 1));
  return image;
}

std::string fat_binary(std::initializer_list<std::pair<uint16_t, std::string>> entries, uint32_t architecture) {
  std::string bytes(16, '\0');
  for (const auto& [kind, payload] : entries) {
    std::string entry(64, '\0');
    put<uint16_t>(entry, 0, kind);
    put<uint32_t>(entry, 4, 64);
    put<uint64_t>(entry, 8, payload.size());
    put<uint32_t>(entry, 28, architecture);
    bytes += entry + payload;
  }
  put<uint32_t>(bytes, 0, fat_header_magic);
  put<uint16_t>(bytes, 6, 16);
  put<uint64_t>(bytes, 8, bytes.size() - 16);
  return bytes;
}

} // namespace

TEST_CASE("an image of ours carries its text, byte by byte, and knows its end") {
  const std::string text = text_for("k");
  std::string image = write_elf_image(text, 90);
  Result<ElfImage> read = read_elf_image(bytes_of(image));
  REQUIRE(read);
  CHECK(read->architecture == 90);
  CHECK_FALSE(read->has_code);
  REQUIRE(read->ptx.size() == 1);
  CHECK(read->ptx[0] == text);
  const size_t bytes = image.size();
  image += "what lies behind it in memory";
  Result<std::span<const std::byte>> found = elf_image_at(bytes_of(image).data());
  REQUIRE(found);
  CHECK(found->size() == bytes);
}

TEST_CASE("the architecture of cubins of ptxas 12.9 and 13.0") {
  const std::string image = write_elf_image(text_for("k"), 80);
  CHECK(read_elf_image(bytes_of(with_head(image, 51, 7, 0x500d5a)))->architecture == 90);
  CHECK(read_elf_image(bytes_of(with_head(image, 0x41, 8, 0x6005a04)))->architecture == 90);
  CHECK(read_elf_image(bytes_of(with_head(image, 0x41, 8, 0x6006402)))->architecture == 100);
}

TEST_CASE("lines of -lineinfo end with zero bytes") {
  const Result<ElfImage> read =
      read_elf_image(bytes_of(write_elf_image(std::string(".version 8.0\0\0.target sm_80", 27), 80)));
  REQUIRE(read);
  CHECK(read->ptx.at(0) == ".version 8.0\n\n.target sm_80");
}

TEST_CASE("damaged images end in an error, or have no text") {
  const std::string image = write_elf_image(text_for("k"), 90);
  for (size_t length = 0; length < image.size(); ++length)
    if (Result<ElfImage> read = read_elf_image(bytes_of(image.substr(0, length)))) CHECK(read->ptx.empty());
  for (size_t at = 0; at < image.size(); ++at)
    for (char value : {'\0', '\1', '\x7f', '\xff'}) {
      std::string damaged = image;
      damaged[at] = value;
      (void)read_elf_image(bytes_of(damaged)); // reads nothing outside of it
    }
  std::string other = image;
  put<uint16_t>(other, offsetof(Elf64_Ehdr, e_machine), EM_X86_64);
  CHECK_FALSE(read_elf_image(bytes_of(other)));
}

TEST_CASE("headers that describe more than an image can be are refused, sums that wrap among them") {
  const std::string image = write_elf_image(text_for("k"), 90);
  Elf64_Ehdr header;
  std::memcpy(&header, image.data(), sizeof header);
  for (const uint64_t wild : {uint64_t(1) << 62, UINT64_MAX - 8, uint64_t(1) << 33}) {
    std::string damaged = image;
    put(damaged, header.e_shoff + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size), wild);
    CHECK_FALSE(elf_image_at(bytes_of(damaged).data()).ok());
    damaged = image;
    put(damaged, offsetof(Elf64_Ehdr, e_shoff), wild);
    CHECK_FALSE(elf_image_at(bytes_of(damaged).data()).ok());
  }
}

TEST_CASE("a cubin runs on GPUs of its generation that are not older") {
  const std::string image = write_elf_image(text_for("k"), 86);
  CHECK(ptx_of_cubin(bytes_of(image), 86).code == Code::success);
  CHECK(ptx_of_cubin(bytes_of(image), 89).code == Code::success);
  CHECK(ptx_of_cubin(bytes_of(image), 80).code == Code::no_binary_for_gpu);
  CHECK(ptx_of_cubin(bytes_of(image), 90).code == Code::no_binary_for_gpu);
}

TEST_CASE("of a fat binary: cubins that are PTX alone, then PTX, then the text of -lineinfo") {
  const std::string ptx = text_for("from_ptx"), carrier = write_elf_image(text_for("from_cubin"), 80);
  const std::string machine_code = with_code(write_elf_image(text_for("from_lines"), 80));
  const auto chosen = [&](std::initializer_list<std::pair<uint16_t, std::string>> entries, uint32_t capability) {
    const std::string bytes = fat_binary(entries, 80);
    return ptx_of_fat_binary(bytes_of(bytes), capability);
  };
  CHECK(chosen({{1, ptx}, {2, carrier}}, 80).ptx == text_for("from_cubin"));
  CHECK(chosen({{1, ptx}, {2, carrier}}, 90).ptx == text_for("from_ptx"));
  CHECK(chosen({{1, ptx}, {2, machine_code}}, 80).ptx == text_for("from_ptx"));
  CHECK(chosen({{2, machine_code}}, 80).ptx == text_for("from_lines"));
  const ImageText none = chosen({{2, write_elf_image("", 80)}}, 80);
  CHECK(none.code == Code::no_binary_for_gpu);
  CHECK(none.problem.find("-gencode arch=compute_80,code=compute_80") != std::string::npos);
}

TEST_CASE("linked texts have one head, the newest, and all bodies") {
  const std::string texts[] = {text_for("a", "sm_80", "8.2"), text_for("b", "sm_90", "8.10"), text_for("c")};
  const std::string linked = link_ptx(texts);
  CHECK(linked.starts_with(".version 8.10\n.target sm_90\n.address_size 64\n"));
  CHECK(linked.find(".version", 1) == std::string::npos);
  for (const char* kernel : {".entry a", ".entry b", ".entry c"})
    CHECK(linked.find(kernel) != std::string::npos);
  const std::string real[] = {text_for("a"), text_for("b", "sm_90")}; // 8.10 is only there to be compared
  CHECK(what_is_wrong_with(link_ptx(real), "linked").empty());
  const std::string twice[] = {text_for("a"), text_for("a")};
  CHECK(what_is_wrong_with(link_ptx(twice), "linked").find("duplicate") != std::string::npos);
}

} // namespace ptxrewrite::tests::elf_image_test
