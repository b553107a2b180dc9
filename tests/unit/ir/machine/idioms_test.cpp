// Machine instructions of common pieces of PTX on each generation (tests/generations/idioms.tsv): the lowering against
// the table, and the table against assemblers. Figures of the table are measured or from NVIDIA's manuals, none from
// the lowering.
#include "ir/machine/figures/cubin.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>

namespace ptxrewrite::tests::idioms_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

constexpr size_t text_columns = 4; // name, inputs, body, result

struct Idiom {
  std::string name, body, result;
  std::vector<std::string> inputs;
  std::vector<std::string> figures; // by generation; "-": none
};

struct Generations {
  std::vector<std::string> names;
  std::vector<Idiom> idioms;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

Generations read_table() {
  Generations table;
  const std::string text = read_file(tests::source_path("tests/generations/idioms.tsv")).value();
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> cells = split(line, '\t');
    const std::vector<std::string> figures(cells.begin() + text_columns, cells.end());
    if (table.names.empty())
      table.names = figures;
    else
      table.idioms.push_back({cells[0], cells[2], cells[3], split(cells[1], ' '), figures});
  }
  return table;
}

// The compute capability that represents a generation, a column of the table.
uint32_t capability_of(const std::string& generation) {
  static const std::map<std::string, uint32_t> capabilities = {
      {"tesla", 13},  {"fermi", 20},  {"kepler", 35}, {"maxwell", 50},    {"pascal", 60},       {"volta", 70},
      {"turing", 75}, {"ampere", 80}, {"hopper", 90}, {"blackwell", 100}, {"blackwell_12", 120}};
  return capabilities.at(generation);
}

std::string memory_type(const std::string& type) {
  return type.starts_with("f") ? type : "b" + type.substr(1);
}

// Registers of one copy: a, b, c ... and r by their types; t words, w pairs, p predicates, f floats of the body.
std::string register_of(const std::string& word, const Idiom& idiom, int copy) {
  const std::string number = std::to_string(copy);
  auto typed = [&](const std::string& type, const std::string& name) {
    const std::string memory = memory_type(type);
    return "%" + memory + "_" + name + number;
  };
  if (word == "r") return typed(idiom.result, "r");
  const size_t input = word[0] - 'a';
  if (word.size() == 1) return input < idiom.inputs.size() ? typed(idiom.inputs[input], word) : word;
  return "%" + word + "_" + number;
}

std::string body_of(const Idiom& idiom, int copy) {
  std::string out;
  for (const std::string& statement : split(idiom.body, ';')) {
    const size_t begin = statement.find_first_not_of(' ');
    const size_t operands = statement.find(' ', begin);
    out += statement.substr(begin, operands - begin) + " ";
    std::string word;
    for (char c : statement.substr(operands + 1) + ",") {
      if (std::isalnum(static_cast<unsigned char>(c))) {
        word += c;
        continue;
      }
      const bool is_name = !word.empty() && std::isalpha(static_cast<unsigned char>(word[0]));
      out += (is_name ? register_of(word, idiom, copy) : word) + c;
      word.clear();
    }
    out.back() = ';';
    out += '\n';
  }
  return out;
}

std::string kernel_with(const Idiom& idiom, int copies, const std::string& name) {
  std::string declarations, code;
  int place = 0;
  for (int copy = 0; copy < copies; ++copy) {
    for (size_t i = 0; i < idiom.inputs.size(); ++i) {
      const std::string type = memory_type(idiom.inputs[i]);
      const std::string value = register_of(std::string(1, static_cast<char>('a' + i)), idiom, copy);
      declarations += ".reg ." + type + " " + value + ";\n";
      code += "ld.global." + type + " " + value + ", [%in+" + std::to_string(8 * place++) + "];\n";
    }
    const std::string type = memory_type(idiom.result), result = register_of("r", idiom, copy);
    declarations += ".reg ." + type + " " + result + ";\n";
    for (const auto& [prefix, kind] : {std::pair("t", ".b32"), {"w", ".b64"}, {"p", ".pred"}, {"f", ".f32"}})
      for (int i = 1; i <= 3; ++i)
        declarations +=
            std::string(".reg ") + kind + " %" + prefix + std::to_string(i) + "_" + std::to_string(copy) + ";\n";
    code += body_of(idiom, copy) + "st.global." + type + " [%out+" + std::to_string(16 * copy) + "], " + result + ";\n";
  }
  return ".visible .entry " + name + "(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %in, %out;\n" + declarations +
         "ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\n" + code + "ret;\n}\n";
}

// The difference between kernels with two and with four copies, per copy.
double marginal(const Idiom& idiom, uint32_t two, uint32_t four) {
  return (static_cast<double>(four) - two) / 2 - static_cast<double>(idiom.inputs.size()) - 1;
}

double model_of(const Idiom& idiom, uint32_t capability) {
  ReadText text(".version 8.7\n.target sm_80\n.address_size 64\n" + kernel_with(idiom, 2, "two") +
                kernel_with(idiom, 4, "four"));
  REQUIRE_MESSAGE(text.ok(), text.messages());
  for (unsigned i : {0U, 1U})
    REQUIRE(construct_ssa(text.function(i)).ok());
  return marginal(idiom, lower(text.function(0), capability).static_instructions(),
                  lower(text.function(1), capability).static_instructions());
}

// The first assembler that supports the target, in the table's release.
std::string assembler_for(uint32_t capability) {
  const std::string release = capability < 75 ? "11." : "13.0";
  std::vector<std::string> programs = all_ptxas();
  if (Result<std::string> chosen = find_ptxas()) programs.insert(programs.begin(), *chosen);
  for (const std::string& program : programs)
    if (ptxas_release(program).starts_with(release)) return program;
  return {};
}

} // namespace

TEST_CASE("idioms on each generation are lowered to as many instructions as the table says") {
  const Generations table = read_table();
  REQUIRE(table.idioms.size() >= 30);
  for (size_t column = 0; column < table.names.size(); ++column) {
    size_t exact = 0, known = 0;
    for (const Idiom& idiom : table.idioms) {
      if (idiom.figures[column] == "-") continue;
      const double figure = std::stod(idiom.figures[column]);
      const double model = model_of(idiom, capability_of(table.names[column]));
      ++known;
      exact += std::fabs(model - figure) <= 0.5;
      const bool near = std::fabs(model - figure) <= std::max(1.0, 0.2 * figure);
      if (std::fabs(model - figure) > 0.5)
        std::printf("%s, %s: %g, by the model %g\n", table.names[column].c_str(), idiom.name.c_str(), figure, model);
      CHECK_MESSAGE(near, table.names[column] << ", " << idiom.name << ": " << figure << ", not " << model);
    }
    std::printf("%s: %zu of %zu idioms exact\n", table.names[column].c_str(), exact, known);
    CHECK_MESSAGE(static_cast<double>(exact) >= 0.85 * static_cast<double>(known), table.names[column]);
  }
}

TEST_CASE("the table of idioms is what assemblers make") {
  const Generations table = read_table();
  for (size_t column = 0; column < table.names.size(); ++column) {
    const uint32_t capability = capability_of(table.names[column]);
    const std::string program = assembler_for(capability);
    if (capability < 35 || program.empty()) {
      MESSAGE("skipped: no assembler of the table's release for " << table.names[column]);
      continue;
    }
    const std::string target = "sm_" + std::to_string(capability);
    std::string text =
        (capability < 75 ? ".version 7.8\n.target " : ".version 8.8\n.target ") + target + "\n.address_size 64\n";
    for (size_t i = 0; i < table.idioms.size(); ++i)
      if (table.idioms[i].figures[column] != "-")
        text += kernel_with(table.idioms[i], 2, "k" + std::to_string(i) + "_2") +
                kernel_with(table.idioms[i], 4, "k" + std::to_string(i) + "_4");
    const Result<PtxasRun> run = assemble(text, {.arch = target, .program = program});
    REQUIRE(run.ok());
    REQUIRE_MESSAGE(run->ok, run->messages);
    const Result<Cubin> cubin = read_cubin(run->cubin);
    REQUIRE(cubin.ok());
    for (size_t i = 0; i < table.idioms.size(); ++i) {
      const Idiom& idiom = table.idioms[i];
      if (idiom.figures[column] == "-") continue;
      const CubinFunction* two = cubin->find("k" + std::to_string(i) + "_2");
      const CubinFunction* four = cubin->find("k" + std::to_string(i) + "_4");
      REQUIRE((two && four));
      CHECK_MESSAGE(marginal(idiom, two->instructions, four->instructions) == std::stod(idiom.figures[column]),
                    table.names[column] << ", " << idiom.name);
    }
  }
}

} // namespace ptxrewrite::tests::idioms_test
