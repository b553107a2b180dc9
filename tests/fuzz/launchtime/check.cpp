#include "tests/fuzz/launchtime/check.h"

#include "emulator/core/emulator.h"
#include "emulator/core/observer.h"
#include "grammar/reader.h"
#include "launch/variants.h"
#include "tests/fuzz/launchtime/print.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

namespace ptxrewrite::fuzz::launchtime {

namespace {

constexpr uint64_t fuel = 200'000;

std::unique_ptr<ir::Module> read(const std::string& text, std::string& failed) {
  Diagnostics diagnostics;
  const SourceFile source("kernel.ptx", text);
  std::unique_ptr<ir::Module> module = grammar::read_module(source, diagnostics);
  if (!module) failed = diagnostics.list().empty() ? "not read" : render(diagnostics.list().front(), source);
  return module;
}

// Bytes of the arena accessed by a launch.
class Touches final : public emulator::Observer {
public:
  Touches(const ir::Module& module, uint64_t arena, uint64_t bytes, Emulation& emulation)
      : module_(module), arena_(arena), bytes_(bytes), emulation_(emulation) {
    for (ByteSet* set : {&emulation.loads, &emulation.stores, &emulation.constant_loads})
      set->resize(bytes);
  }
  bool wants_accesses() const override { return true; }
  bool wants_after() const override { return false; }
  void accessed(emulator::Block&, emulator::Warp& warp, const emulator::MicroOp& op,
                const emulator::ObservedAccess& access) override {
    for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
      const uint64_t first = access.addresses[std::countr_zero(lanes)] - arena_;
      if (first >= bytes_) continue;
      if (access.kind != emulator::AccessKind::store) {
        emulation_.loads.add(first, access.bytes);
        if (is_constant(warp, op)) emulation_.constant_loads.add(first, access.bytes);
      }
      if (access.kind != emulator::AccessKind::load) emulation_.stores.add(first, access.bytes);
    }
  }

private:
  // Decided by the instruction's text.
  bool is_constant(emulator::Warp& warp, const emulator::MicroOp& op) {
    const emulator::DecodedFunction& function = *warp.activation->function;
    const SourceRange range =
        function.source->instructions[ir::InstructionId(op.instruction - function.first_instruction)].range;
    const std::string_view text = module_.source.text().substr(range.begin, range.end - range.begin);
    const std::string_view mnemonic = text.substr(0, text.find_first_of(" \t", text.find("ld")));
    return mnemonic.find(".nc") != text.npos || mnemonic.find("ldu") != text.npos;
  }

  const ir::Module& module_;
  uint64_t arena_, bytes_;
  Emulation& emulation_;
};

// In the driver's layout: each at a multiple of its size.
std::vector<std::byte> parameter_block(const Kernel& kernel, const std::vector<uint64_t>& values) {
  std::vector<std::byte> block;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t size = kernel.parameters[i].kind == 'r' ? 4 : 8;
    block.resize((block.size() + size - 1) / size * size + size);
    std::memcpy(block.data() + block.size() - size, &values[i], size);
  }
  return block;
}

struct Run {
  Emulation emulation;
  std::string reason; // why no variant ran
  uint64_t arena_address = 0;
  size_t variants = 0; // of the kernel
};

// `left_out`: the number of variants that are not tried.
Run emulate(const ir::Module& module, const Kernel& kernel, const Launch& launch, size_t left_out = 0) {
  Run run;
  emulator::DeviceMemory memory(uint64_t(1) << 30);
  const auto failed = [&](const Error& error) {
    run.emulation.failed = error.message;
    return run;
  };
  Result<std::unique_ptr<emulator::Program>> program = emulator::Program::load(module, memory);
  if (!program) return failed(program.error());
  const std::vector<uint8_t> arena = kernel.arena();
  Result<uint64_t> address = memory.allocate(arena.size(), "arena");
  if (!address) return failed(address.error());
  if (Status status = memory.write(*address, std::as_bytes(std::span(arena))); !status) return failed(status.error());
  run.arena_address = *address;
  Result<launch::Variants> variants = launch::Variants::of(module, nullptr);
  if (!variants) return failed(variants.error());
  run.variants = variants->of_kernel(kernel.name).size();
  Result<launch::VariantChoice> choice = variants->without_first(left_out).choose(
      kernel.name, parameter_block(kernel, kernel.values(launch, *address)), {launch.grid, 1, 1}, {launch.block, 1, 1});
  if (!choice) return failed(choice.error());
  run.emulation.entry = module.text(choice->entry->name);
  run.emulation.is_original = choice->is_original;
  for (const std::string& reason : choice->reasons)
    run.reason += reason + "; ";
  Touches touches(module, *address, arena.size(), run.emulation);
  emulator::LaunchRequest request;
  request.kernel = run.emulation.entry;
  request.grid = {launch.grid, 1, 1};
  request.block = {choice->block.x, choice->block.y, choice->block.z};
  request.parameters = choice->parameter_block;
  request.host_threads = 1;
  request.fuel = fuel;
  request.observer = &touches;
  Result<emulator::LaunchResult> result = (*program)->launch(request);
  if (!result) return failed(result.error());
  if (result->failure) run.emulation.failed = result->failure->message;
  run.emulation.arena.resize(arena.size());
  if (Status status = memory.read(*address, std::as_writable_bytes(std::span(run.emulation.arena))); !status)
    return failed(status.error());
  return run;
}

std::string first_difference(const std::vector<uint8_t>& expected, const std::vector<uint8_t>& actual) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (expected[i] != actual[i])
      return "byte " + std::to_string(i) + " of the arena is " + std::to_string(actual[i]) + ", must be " +
             std::to_string(expected[i]);
  return "";
}

size_t count(const std::string& text, std::initializer_list<std::string_view> words) {
  size_t times = 0;
  for (const std::string_view word : words)
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + word.size()))
      ++times;
  return times;
}

// The text of an entry, found by the start of its name.
std::string entry_text(const std::string& text, const std::string& name) {
  const size_t start = text.find(".entry " + name);
  return start == text.npos ? "" : text.substr(start, text.find(".entry ", start + 1) - start);
}

} // namespace

const char* name_of(Wrong wrong) {
  static constexpr const char* names[] = {
      "not read back",          "fails", "other results", "touches other bytes", "reads stored bytes as constants",
      "predicate holds wrongly"};
  return names[static_cast<size_t>(wrong)];
}

bool shows(Evidence evidence, const std::string& original, const std::string& variant) {
  const auto both = [&](std::initializer_list<std::string_view> words) {
    return std::pair(count(original, words), count(variant, words));
  };
  switch (evidence) {
  case Evidence::non_coherent: {
    const auto [before, after] = both({".nc."});
    return after > before;
  }
  case Evidence::vectors: {
    // Not by the number of accesses, of which repeated loads that become moves leave fewer, too.
    const auto [before, after] =
        both({".global.v", ".global.nc.v", "ld.global.b32", "ld.global.nc.b32", "st.global.b32"});
    return after > before;
  }
  case Evidence::wide_division: {
    const auto [before, after] = both({"div.u64", "div.s64", "rem.u64", "rem.s64"});
    return before > 0 && after == 0;
  }
  case Evidence::division: {
    const auto [before, after] = both({"div.", "rem."});
    return before > 0 && after == 0;
  }
  }
  return false;
}

Subject::Subject(const Kernel& kernel) : Subject(kernel, print(kernel)) {}

Subject::Subject(const Kernel& kernel, std::string text) : kernel_(kernel), text_(std::move(text)) {
  std::string failed;
  const std::unique_ptr<ir::Module> module = read(text_, failed);
  if (!module) {
    defects_.push_back(failed);
    return;
  }
  for (size_t i = 0; i < kernel.launches.size(); ++i) {
    Run run = emulate(*module, kernel, kernel.launches[i]);
    outcomes_.push_back(carry_out(kernel, kernel.launches[i], run.arena_address));
    originals_.push_back(std::move(run.emulation));
    if (!is_comparable(i)) continue;
    const Emulation& original = originals_.back();
    const std::string what =
        original.failed.empty() ? first_difference(outcomes_.back().arena, original.arena) : original.failed;
    if (!what.empty()) defects_.push_back("launch " + std::to_string(i) + ": " + what);
  }
}

bool Subject::is_comparable(size_t launch) const {
  const Trace& trace = outcomes_[launch].trace;
  return !trace.races && !trace.is_undefined && !trace.leaves_arena && !trace.is_endless;
}

Verdict Subject::check(const std::string& rewritten, const std::vector<std::string>& families) const {
  Verdict verdict;
  std::string failed;
  const std::unique_ptr<ir::Module> module = read(rewritten, failed);
  if (!module) {
    verdict.findings.push_back({Wrong::not_read, 0, failed});
    return verdict;
  }
  for (size_t i = 0; i < kernel_.launches.size(); ++i) {
    Run run = emulate(*module, kernel_, kernel_.launches[i]);
    verdict.chosen.push_back(!run.emulation.is_original);
    verdict.reasons.push_back(run.reason);
    verdict.has_variant |= !run.emulation.is_original || !run.reason.empty();
    check_launch(rewritten, i, families, run.emulation, verdict);
    // The further variants and the kept original, in launches that an earlier variant took.
    for (size_t left_out = 1; !run.emulation.is_original && left_out <= run.variants; ++left_out)
      check_launch(rewritten, i, families, emulate(*module, kernel_, kernel_.launches[i], left_out).emulation, verdict);
  }
  return verdict;
}

void Subject::check_launch(const std::string& rewritten, size_t launch, const std::vector<std::string>& families,
                           const Emulation& emulation, Verdict& verdict) const {
  const Emulation& original = originals_[launch];
  const auto report = [&](Wrong wrong, std::string what) {
    verdict.findings.push_back({wrong, launch, std::move(what)});
  };
  if (!original.failed.empty()) return; // such as a misaligned access of its own, or an endless loop
  if (!emulation.failed.empty()) return report(Wrong::fails, emulation.failed);
  if (is_comparable(launch))
    if (std::string what = first_difference(original.arena, emulation.arena); !what.empty())
      report(Wrong::results, what);
  // The accessed bytes may depend on values decided by a race.
  if (!outcomes_[launch].trace.races)
    if (!original.loads.covers(emulation.loads) || !original.stores.covers(emulation.stores))
      report(Wrong::other_bytes, original.stores.covers(emulation.stores) ? "loads" : "stores");
  if (emulation.constant_loads.meets(emulation.stores)) report(Wrong::stored_constants, "");
  // With several sites it is unknown which of them was rewritten.
  if (emulation.is_original || kernel_.sites.size() != 1) return;
  for (const std::string& family : families) {
    bool some_need = false, some_hold = false;
    for (const PatternSite& site : kernel_.sites) {
      if (site.family != family || !site.has_evidence) continue;
      if (!shows(site.evidence, entry_text(text_, kernel_.name + "("), entry_text(rewritten, emulation.entry + "(")))
        continue;
      some_need = true;
      some_hold |= site.necessary(outcomes_[launch].trace);
    }
    if (some_need && !some_hold) report(Wrong::predicate, family + ": no fact that its sites need holds");
  }
}

} // namespace ptxrewrite::fuzz::launchtime
