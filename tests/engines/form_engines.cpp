// Every form of the ISA table that is emulated, interpreted and as generated code: the same registers and memory
// afterwards, the same counters, the same failures.
//
//   form_engines [--every N] [--first I] [--verbose] [OPCODE...]
//
// A statement is executed three times in each of 128 threads, on registers of any bits, every third time under a guard;
// addresses are aligned ones of memory that the thread owns. Statements share a kernel until one of them fails; then
// each half of them gets its own. --every N: of each opcode the forms I, I + N ... Exit code 77: there is no LLVM.
#include "grammar/reader.h"
#include "support/log.h"
#include "tests/emulator/forms.h"
#include "tests/engines/engine_run.h"
#include "tests/fuzz/random.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::test {
namespace {

constexpr unsigned threads = 128, row_bytes = 16384, slot_bytes = 16, results_at = 8192, scratch_at = 15360;
constexpr size_t batch = 24;

struct Case {
  std::string statement;
  bool shared_address = false;
};

// "%r12" and the like in a statement, without the address registers, which have a part of their own.
std::set<std::string> registers_of(const std::string& statement) {
  std::set<std::string> names;
  for (size_t at = 0; at + 2 < statement.size(); ++at) {
    if (statement[at] != '%' || std::strchr("pchrlqfd", statement[at + 1]) == nullptr) continue;
    size_t end = at + 2;
    while (end < statement.size() && std::isdigit(static_cast<unsigned char>(statement[end])) != 0)
      ++end;
    const bool is_name =
        end > at + 2 && (end == statement.size() || std::isalpha(static_cast<unsigned char>(statement[end])) == 0);
    if (is_name) names.insert(statement.substr(at, end - at));
  }
  return names;
}

std::string type_of(char letter) {
  static const std::map<char, const char*> types = {{'c', "b8"},   {'h', "b16"}, {'r', "b32"}, {'l', "b64"},
                                                    {'q', "b128"}, {'f', "f32"}, {'d', "f64"}};
  return types.at(letter);
}

std::string kernel_text(std::span<const Case> cases) {
  std::set<std::string> names;
  for (const Case& one : cases)
    names.merge(registers_of(one.statement));
  names.erase("%l9");
  names.erase("%r9");
  std::string text(module_preamble());
  text += ".visible .entry k(.param .u64 data)\n{\n";
  text += kernel_preamble();
  text += ".shared .align 1024 .b8 own[16384];\n"
          "mov.u32 %r150, %ctaid.x;\nmov.u32 %r151, %tid.x;\nshl.b32 %r152, %r150, 6;\nadd.u32 %r152, %r152, %r151;\n"
          "ld.param.u64 %l150, [data];\nmul.wide.u32 %l151, %r152, " +
          std::to_string(row_bytes) + ";\nadd.u64 %l150, %l150, %l151;\n";
  unsigned slot = 0;
  std::string stores;
  for (const std::string& name : names) {
    const std::string from = "[%l150+" + std::to_string(slot * slot_bytes) + "]";
    const std::string to = "[%l150+" + std::to_string(results_at + slot * slot_bytes) + "]";
    slot = (slot + 1) % (results_at / slot_bytes);
    if (name[1] == 'p') {
      text += "ld.global.b32 %r153, " + from + ";\nand.b32 %r153, %r153, 1;\nsetp.ne.u32 " + name + ", %r153, 0;\n";
      stores += "selp.b32 %r153, 1, 0, " + name + ";\nst.global.b32 " + to + ", %r153;\n";
    } else {
      text += "ld.global." + type_of(name[1]) + " " + name + ", " + from + ";\n";
      stores += "st.global." + type_of(name[1]) + " " + to + ", " + name + ";\n";
    }
  }
  text += "and.b32 %r154, %r151, 5;\nsetp.ne.u32 %p155, %r154, 1;\nmov.u32 %r155, 0;\nAGAIN:\n";
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].shared_address)
      text += "shl.b32 %r9, %r151, 8;\ncvt.u64.u32 %l9, %r9;\n";
    else
      text += "add.u64 %l9, %l150, " + std::to_string(scratch_at) + ";\ncvt.u32.u64 %r9, %l9;\n";
    text += (i % 3 == 1 ? "@%p155 " : "") + cases[i].statement + "\n";
  }
  text += "add.u32 %r155, %r155, 1;\nsetp.lt.u32 %p156, %r155, 3;\n@%p156 bra AGAIN;\n" + stores;
  return text.append(kernel_end());
}

EngineRun launch(const ir::Module& module, const emulator::EngineSetting& engine) {
  EngineRun run;
  emulator::DeviceMemory memory(uint64_t(1) << 30);
  auto program = emulator::Program::load(module, memory);
  auto data = memory.allocate(threads * row_bytes, "data");
  if (!program || !data) {
    run.refused = "no program";
    return run;
  }
  fuzz::Random random(7);
  std::vector<uint64_t> contents(threads * row_bytes / 8);
  for (uint64_t& word : contents)
    word = random.one_in(3) ? random.next() >> random.below(64) : random.next();
  (void)memory.write(*data, std::as_bytes(std::span(contents)));
  emulator::LaunchRequest request;
  request.kernel = "k";
  request.grid = {threads / 64};
  request.block = {64};
  request.host_threads = 1;
  request.fuel = 20'000;
  request.parameters.resize(8);
  std::memcpy(request.parameters.data(), &*data, 8);
  request.machines.set(engine);
  const UsesEngine counted(emulator::default_engine());
  take_result((*program)->launch(request), run);
  run.generated = counted.generated();
  (void)memory.read(*data, run.memory.emplace_back(contents.size() * 8));
  return run;
}

class FormEngines {
public:
  void test(std::span<const Case> cases) {
    if (cases.empty()) return;
    Diagnostics diagnostics;
    const auto module = grammar::read_module(SourceFile("forms.ptx", kernel_text(cases)), diagnostics);
    if (!module) {
      if (cases.size() > 1) return halves(cases);
      ++unread_;
      return;
    }
    const EngineRun interpreted = launch(*module, {emulator::Engine::interpreter});
    if (cases.size() > 1 && (!interpreted.refused.empty() || !interpreted.failure.empty())) return halves(cases);
    const EngineRun quick = launch(*module, {emulator::Engine::generated, {}, emulator::CodeTier::quick});
    const EngineRun portable = launch(*module, {emulator::Engine::generated, {}, emulator::CodeTier::quick, true});
    const EngineRun full = launch(*module, {emulator::Engine::generated, {}, emulator::CodeTier::full});
    bool differs = false;
    for (const EngineRun* run : {&quick, &portable, &full})
      differs |= !difference(interpreted, *run).empty();
    if (differs && cases.size() > 1) return halves(cases);
    ++tally_.kernels;
    statements_ += cases.size();
    tally_.add("quick code: " + cases.front().statement, interpreted, quick);
    tally_.add("quick code by LLVM: " + cases.front().statement, interpreted, portable);
    tally_.add("full code: " + cases.front().statement, interpreted, full);
  }

  int finish() const {
    std::printf("%zu statements, %zu of them not read by themselves\n", statements_, unread_);
    return tally_.finish("forms");
  }

private:
  void halves(std::span<const Case> cases) {
    test(cases.first(cases.size() / 2));
    test(cases.subspan(cases.size() / 2));
  }

  EngineTally tally_;
  size_t statements_ = 0, unread_ = 0;
};

std::vector<Case> cases_of(std::string_view opcode, size_t first, size_t every) {
  std::vector<Case> cases;
  size_t number = 0;
  for (const std::string& mnemonic : mnemonics_of(opcode)) {
    if (number++ % every != first % every) continue;
    const bool shared = mnemonic.find(".shared") != std::string::npos;
    for (const std::string& statement : plain_statements(mnemonic))
      if (!statement.empty()) cases.push_back({statement, shared});
    const std::vector<std::string> varied = varied_statements(mnemonic);
    if (!varied.empty()) cases.push_back({varied[number % varied.size()], shared});
  }
  return cases;
}

int run(std::vector<std::string> words) {
  size_t every = 1, first = 0;
  for (size_t i = 0; i < words.size();) {
    const bool has_number = i + 1 < words.size() && (words[i] == "--every" || words[i] == "--first");
    if (words[i] == "--verbose") {
      start_logging("debug");
      words.erase(words.begin() + static_cast<ptrdiff_t>(i));
    } else if (has_number) {
      (words[i] == "--every" ? every : first) =
          std::max<size_t>(std::strtoull(words[i + 1].c_str(), nullptr, 10), words[i] == "--every");
      words.erase(words.begin() + static_cast<ptrdiff_t>(i), words.begin() + static_cast<ptrdiff_t>(i) + 2);
    } else {
      ++i;
    }
  }
  if (!has_generator()) return 77;
  std::vector<std::string> opcodes = words;
  if (opcodes.empty())
    for (std::string_view opcode : ir::list_opcodes())
      if (opcode.find('.') == std::string_view::npos) opcodes.emplace_back(opcode);
  FormEngines engines;
  for (const std::string& opcode : opcodes) {
    const std::vector<Case> cases = cases_of(opcode, first, every);
    for (size_t at = 0; at < cases.size(); at += batch)
      engines.test(std::span(cases).subspan(at, std::min(batch, cases.size() - at)));
  }
  return engines.finish();
}

} // namespace
} // namespace ptxrewrite::test

int main(int count, char** arguments) {
  return ptxrewrite::test::run({arguments + 1, arguments + count});
}
