// Are the answers of `prove` correct? Random kernels and mutants of them are proved, refuted, or neither; each
// is run on the emulator for every pair of bytes that a thread can read and several parameters. A proved mutant may not
// differ anywhere, a refuted one must differ somewhere, and there must be enough of both.
//
//   prove_mutants [--kernels N] [--first SEED] [--effort N]
#include "emulator/core/emulator.h"
#include "evaluate/prove/proof_report.h"
#include "evaluate/prove/prover.h"
#include "evaluate/prove/solver.h"
#include "grammar/reader.h"
#include "tests/proofs/kernels.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace ptxrewrite::proofs {

namespace {

constexpr uint32_t parameters[]{0, 5, 130, 0x7fffffff, 0xffffff80};
constexpr uint64_t out_bytes = uint64_t(threads) * blocks * slot_bytes;

std::unique_ptr<ir::Module> read(const Lines& lines) {
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("k.ptx", text_of(lines)), diagnostics);
  for (const Diagnostic& one : diagnostics.list())
    if (!module) std::printf("%s\n", one.message.c_str());
  return module;
}

// Returns the memory after the launch, or nullopt if it failed.
std::optional<std::vector<std::byte>> run(const ir::Module& module, uint32_t n) {
  emulator::DeviceMemory memory;
  std::vector<std::byte> bytes(threads + blocks), result(out_bytes);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i);
  Result<uint64_t> in = memory.allocate(bytes.size(), "in"), out = memory.allocate(out_bytes, "out");
  if (!in || !out || !memory.write(*in, bytes)) return std::nullopt;
  auto program = emulator::Program::load(module, memory);
  if (!program) return std::nullopt;
  emulator::LaunchRequest request{.kernel = "k", .grid = {blocks}, .block = {threads}, .host_threads = 1};
  request.parameters.resize(20);
  std::memcpy(request.parameters.data(), &*in, 8);
  std::memcpy(request.parameters.data() + 8, &*out, 8);
  std::memcpy(request.parameters.data() + 16, &n, 4);
  auto launched = (*program)->launch(request);
  if (!launched || launched->failure || !memory.read(*out, result)) return std::nullopt;
  return result;
}

struct Original {
  Lines lines;
  std::vector<std::vector<std::byte>> results; // by parameter
};

bool differs(const Original& original, const ir::Module& mutant) {
  for (size_t i = 0; i < std::size(parameters); ++i)
    if (run(mutant, parameters[i]) != original.results[i]) return true;
  return false;
}

// Tests with the n of the launch in the proof.
bool differs_as_said(const prove::KernelProof& proof, const Lines& original, const ir::Module& mutant) {
  constexpr std::string_view name = "P2 = ";
  for (const prove::Problem& one : proof.problems) {
    const size_t place = one.detail.find(name);
    if (one.outcome != prove::Outcome::refuted || place == std::string::npos) continue;
    const auto n = static_cast<uint32_t>(std::strtoull(one.detail.c_str() + place + name.size(), nullptr, 10));
    auto module = read(original);
    if (module && run(*module, n) != run(mutant, n)) return true;
  }
  return false;
}

// Is a branch's condition refuted? Both paths may then still have the same effect.
bool is_of_branch(const prove::KernelProof& proof, std::string_view text) {
  for (const prove::Problem& one : proof.problems)
    if (one.outcome == prove::Outcome::refuted)
      return text.substr(one.range.begin, one.range.end - one.range.begin).find("bra") != text.npos;
  return false;
}

// Two exchanged stores keep their original provenance.
void exchange_provenance(ir::Function& function, uint32_t number) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      ir::ProvenanceId& own = function.instructions[id].provenance;
      if (!own || (own.index() != number && own.index() != number + 1)) continue;
      own = ir::ProvenanceId(own.index() == number ? number + 1 : number);
    }
}

struct Counts {
  size_t proved = 0, not_equal = 0, unseen = 0, open = 0, open_equal = 0;
};

struct Campaign {
  unsigned effort = 1'000'000;
  std::map<std::string, Counts> by_kind;
  Counts all;
  size_t wrong = 0;

  void complain(const char* what, const char* kind, uint64_t seed, const Original& original, const Mutant& mutant,
                const prove::KernelProof& proof) {
    std::printf("WRONG: %s (%s, seed %llu)\n%s\n", what, kind, static_cast<unsigned long long>(seed),
                text_of(original.lines).c_str());
    for (size_t i = 0; i < mutant.lines.size(); ++i)
      if (mutant.lines[i] != original.lines[i])
        std::printf("%s   ->   %s\n", original.lines[i].c_str(), mutant.lines[i].c_str());
    for (const prove::Problem& one : proof.problems)
      std::printf("%s: %s (%s)\n", prove::word(one.outcome), one.text.c_str(), one.detail.c_str());
    ++wrong;
  }

  void judge(const Original& original, const Mutant& mutant, const char* kind, uint64_t seed) {
    auto before = read(original.lines), after = read(mutant.lines), executed = read(mutant.lines);
    if (!before || !after || !executed) std::exit(2);
    if (mutant.exchanged) {
      uint32_t number = 0;
      for (size_t i = 0; i < *mutant.exchanged; ++i)
        number += !original.lines[i].ends_with(':');
      exchange_provenance(*after->functions[0], number);
    }
    const prove::KernelProof proof = prove::prove_pair(*before->functions[0], *after->functions[0], {}, effort);
    const bool is_refuted = proof.outcome() == prove::Outcome::refuted;
    const bool is_different =
        differs(original, *executed) || (is_refuted && differs_as_said(proof, original.lines, *executed));
    const bool is_unseen = is_refuted && !is_different && is_of_branch(proof, before->source.text());
    Counts& row = by_kind[kind];
    for (Counts* counts : {&row, &all}) {
      counts->proved += proof.outcome() == prove::Outcome::proved;
      counts->not_equal += is_refuted;
      counts->unseen += is_unseen;
      counts->open += proof.outcome() == prove::Outcome::unknown;
      counts->open_equal += proof.outcome() == prove::Outcome::unknown && !is_different;
    }
    if (proof.outcome() == prove::Outcome::proved && is_different)
      complain("proved, and differs", kind, seed, original, mutant, proof);
    if (is_refuted && !is_different && !is_unseen)
      complain("called not equal, and does not differ", kind, seed, original, mutant, proof);
  }

  void add(uint64_t seed) {
    std::mt19937_64 random(seed);
    Original original{random_kernel(random), {}};
    auto module = read(original.lines);
    if (!module) std::exit(2);
    for (uint32_t n : parameters) {
      auto result = run(*module, n);
      if (!result) {
        std::printf("seed %llu does not run\n%s", static_cast<unsigned long long>(seed),
                    text_of(original.lines).c_str());
        std::exit(2);
      }
      original.results.push_back(*std::move(result));
    }
    for (const MutationKind& kind : mutation_kinds())
      if (auto mutant = mutate(original.lines, kind, random)) judge(original, *mutant, kind.name, seed);
  }

  void print() const {
    std::printf("| change | not equal | of these, a branch that does the same both ways | not proved | of these, same "
                "in all launches | proved |\n|---|---|---|---|---|---|\n");
    auto row = [](const char* name, const Counts& c) {
      std::printf("| %s | %zu | %zu | %zu | %zu | %zu |\n", name, c.not_equal, c.unseen, c.open, c.open_equal,
                  c.proved);
    };
    for (const MutationKind& kind : mutation_kinds())
      if (auto found = by_kind.find(kind.name); found != by_kind.end()) row(kind.name, found->second);
    row("all", all);
  }
};

} // namespace

} // namespace ptxrewrite::proofs

int main(int argc, char** argv) {
  using namespace ptxrewrite;
  uint64_t kernels = 100, first = 1;
  proofs::Campaign campaign;
  for (int i = 1; i + 1 < argc; i += 2) {
    const uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--kernels") == 0) kernels = value;
    if (std::strcmp(argv[i], "--first") == 0) first = value;
    if (std::strcmp(argv[i], "--effort") == 0) campaign.effort = static_cast<unsigned>(value);
  }
  if (!prove::Solver::available()) std::printf("without Z3 less is proved\n");
  for (uint64_t seed = first; seed < first + kernels; ++seed)
    campaign.add(seed);
  campaign.print();
  const bool is_enough = campaign.all.not_equal >= 3 * kernels && campaign.all.proved >= kernels;
  if (prove::Solver::available() && !is_enough) std::printf("too few are decided: the kernels test nothing\n");
  std::printf("%zu wrong\n", campaign.wrong);
  return campaign.wrong != 0 || (prove::Solver::available() && !is_enough) ? 1 : 0;
}
