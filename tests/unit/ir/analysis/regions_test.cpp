// Regions: Algorithm 1 on hand-written blocks, and a staging unit that follows the marks for each lane over random
// graphs: it detects lost values, registers that are never freed, and every missing mark.
#include "ir/machine/registers/regions.h"

#include "ir/core/module.h"
#include "ir/machine/registers/machine_blocks.h"
#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "tests/unit/grammar/read.h"
#include "tests/unit/ir/analysis/warp_simulator.h"
#include "tests/unit/paths.h"

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <stdexcept>

namespace ptxrewrite::tests::regions_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;
using namespace ptxrewrite::tests;

namespace {

// One block of instructions.
struct Line {
  Module module;
  Function function{module};
  RegisterProgram program;

  Line() {
    function.has_body = true;
    function.place_block(function.add_block());
    program = register_blocks(function);
  }
  Line& add(std::vector<unsigned> writes, std::vector<unsigned> reads, bool loads = false) {
    RegisterInstruction instruction;
    for (unsigned r : writes)
      instruction.writes.set(r);
    for (unsigned r : reads)
      instruction.reads.set(r);
    instruction.long_latency = loads;
    program.blocks[0].instructions.push_back(instruction);
    return *this;
  }
  std::vector<Region> regions(const RegionLimits& limits = {}) {
    WarpLiveness liveness(program);
    std::vector<Region> regions = create_regions(program, liveness, limits);
    for (const std::string& error : verify_regions(program, liveness, regions, limits))
      FAIL_CHECK(error);
    return regions;
  }
};

// A staging unit in strict mode.
class StrictUnit : public WarpSimulator {
public:
  StrictUnit(const RegisterProgram& program, const std::vector<Region>& regions, Random& random)
      : WarpSimulator(program, random), program_(program), regions_(regions) {}
  std::string error;

  // Reports registers that are still present when the warp has ended.
  void check_end() {
    if (!stored_.empty()) fail("R" + std::to_string(stored_.begin()->first) + " is left behind");
  }

protected:
  void execute(uint32_t block, uint32_t index, Mask active, Mask writing) override {
    (void)active;
    const RegisterInstruction& instruction = program_.blocks[block].instructions[index];
    const Region& region = region_of(block, index);
    if (index == region.begin) start(region);
    for (unsigned r = 0; r < program_.registers; ++r)
      if (instruction.reads.test(r)) read(r, writing);
    for (unsigned r = 0; r < program_.registers; ++r)
      if (instruction.writes.test(r)) write(r, writing);
    for (unsigned r = 0; r < program_.registers; ++r) {
      if (region.erased[index - region.begin].test(r)) staged_.erase(r);
      if (region.evicted[index - region.begin].test(r)) evict(r);
    }
    if (index + 1 == region.end && !staged_.empty())
      fail("R" + std::to_string(staged_.begin()->first) + " is staged behind its region");
  }

private:
  static constexpr unsigned lost = UINT32_MAX;
  struct Entry {
    std::array<unsigned, lanes> stamps;
    bool dirty = false;
  };

  const Region& region_of(uint32_t block, uint32_t index) {
    for (const Region& region : regions_)
      if (region.block == block && region.begin <= index && index < region.end) return region;
    throw std::logic_error("no region");
  }
  void fail(const std::string& what) {
    if (error.empty()) error = what;
  }
  void start(const Region& region) {
    staged_.clear();
    for (unsigned r = 0; r < program_.registers; ++r) {
      if (region.invalidated.test(r)) stored_.erase(r);
      if (!region.inputs.test(r)) continue;
      Entry entry;
      entry.stamps.fill(lost);
      if (auto copy = stored_.find(r); copy != stored_.end()) entry = copy->second;
      entry.dirty = false;
      staged_[r] = entry;
      if (region.last_reads.test(r)) stored_.erase(r);
    }
  }
  void read(unsigned r, Mask reading) {
    auto entry = staged_.find(r);
    if (entry == staged_.end()) {
      fail("R" + std::to_string(r) + " is read without being staged");
      return;
    }
    for (unsigned lane = 0; lane < lanes; ++lane)
      if (reading >> lane & 1 && written_[r][lane] != 0 && entry->second.stamps[lane] != written_[r][lane])
        fail("R" + std::to_string(r) + " of a lane is lost");
  }
  void write(unsigned r, Mask writing) {
    auto [entry, fresh] = staged_.try_emplace(r);
    if (fresh) {
      entry->second.stamps.fill(lost);
      if (stored_.count(r)) fail("R" + std::to_string(r) + " begins a new life beside a stored copy");
    }
    entry->second.dirty = true;
    for (unsigned lane = 0; lane < lanes; ++lane)
      if (writing >> lane & 1) entry->second.stamps[lane] = written_[r][lane] = ++clock_;
  }
  void evict(unsigned r) {
    auto entry = staged_.find(r);
    if (entry == staged_.end()) {
      fail("R" + std::to_string(r) + " is evicted without being staged");
      return;
    }
    if (entry->second.dirty && stored_.count(r)) fail("R" + std::to_string(r) + " has a copy that is out of date");
    stored_[r] = entry->second;
    staged_.erase(entry);
  }

  const RegisterProgram& program_;
  const std::vector<Region>& regions_;
  std::map<unsigned, Entry> staged_, stored_;
  std::map<unsigned, std::array<unsigned, lanes>> written_; // 0: never
  unsigned clock_ = 0;
};

bool ends_together(const RegisterProgram& program) {
  return std::ranges::all_of(program.blocks, [](const RegisterBlock& block) {
    return !block.diverges || block.post_dominator != RegisterBlock::none;
  });
}

// The first error of some runs.
std::string first_error(const RegisterProgram& program, const std::vector<Region>& regions, Random& random,
                        unsigned runs) {
  // Lanes that leave the kernel in different places may leave registers that the others would have needed.
  bool one_end = ends_together(program);
  for (unsigned run = 0; run < runs; ++run) {
    StrictUnit unit(program, regions, random);
    bool ended = unit.run(60);
    if (ended && one_end) unit.check_end();
    if (!unit.error.empty()) return unit.error;
  }
  return {};
}

// A random graph whose last blocks have instructions at which registers can be invalidated.
RegisterProgram random_program(Random& random, Function& function) {
  RegisterProgram program = random_register_program(random, function, 1 + below(random, 6), 5);
  for (RegisterBlock& block : program.blocks)
    if (block.successors.empty()) block.instructions.emplace_back();
  return program;
}

struct Mutation {
  RegisterSet Region::*set = nullptr;
  std::vector<RegisterSet> Region::*list = nullptr;
};

} // namespace

TEST_CASE("a block that fits is one region") {
  Line line;
  line.add({0}, {}).add({1}, {0}).add({2}, {0, 1}).add({}, {2});
  std::vector<Region> regions = line.regions();
  REQUIRE(regions.size() == 1);
  CHECK(regions[0].inputs.none());
  CHECK(regions[0].outputs.none());
  CHECK(regions[0].interior.count() == 3);
  CHECK(regions[0].live == 3);
  CHECK(regions[0].erased[2].test(0));
  CHECK(regions[0].erased[2].test(1));
}

TEST_CASE("a load and its first use part, where fewest registers cross") {
  Line line;
  line.add({0}, {}, true);                             // load
  line.add({1}, {}).add({2}, {1}).add({3}, {2});       // one register is live after each of these
  line.add({1}, {}).add({2}, {}).add({4}, {1, 2});     // two or three are live inside of this
  line.add({5}, {4, 3}).add({6}, {0, 5}).add({}, {6}); // first use of the load
  std::vector<Region> regions = line.regions();
  REQUIRE(regions.size() == 2);
  CHECK(regions[0].end == 8);
  CHECK(regions[0].outputs == RegisterSet(1u << 0 | 1u << 5));
  CHECK(regions[1].last_reads == regions[1].inputs);
}

TEST_CASE("six instructions at least, where the window allows it") {
  // The use is the fourth instruction: the limit on loads wins.
  Line line;
  line.add({0}, {}, true).add({1}, {}).add({2}, {1}).add({3}, {0, 2}).add({}, {3});
  std::vector<Region> regions = line.regions();
  REQUIRE(regions.size() == 2);
  CHECK(regions[0].end == 3);
}

TEST_CASE("no region needs more than the limits") {
  for (uint32_t limit : {4, 6, 9}) {
    Line line;
    for (unsigned r = 0; r < 12; ++r)
      line.add({r}, {});
    for (unsigned r = 0; r < 12; ++r)
      line.add({20}, {r, 20});
    line.add({}, {20});
    for (const Region& region : line.regions({.live = limit, .per_bank = 2}))
      CHECK(region.live <= limit);
  }
}

TEST_CASE("one instruction is a region whatever it needs") {
  Line line;
  line.add({}, {0, 1, 2, 3});
  CHECK(line.regions({.live = 2}).size() == 1);
}

TEST_CASE("what dies on an edge is invalidated where all lanes are done with it") {
  // 0 -> {1, 2} -> 3; R0 is read in 1 only.
  Module module;
  Function function(module);
  function.has_body = true;
  for (int i = 0; i < 4; ++i)
    function.place_block(function.add_block());
  auto edges = [&](unsigned from, std::vector<unsigned> to) {
    std::vector<EdgeId> list;
    for (unsigned one : to)
      list.push_back(function.add_edge(BlockId(from), BlockId(one)));
    function.set_successors(BlockId(from), list, false);
  };
  edges(0, {1, 2});
  edges(1, {3});
  edges(2, {3});
  RegisterProgram program = register_blocks(function);
  program.registers = 2;
  RegisterInstruction define, read, nothing;
  define.writes.set(0);
  read.reads.set(0);
  program.blocks[0].instructions = {define};
  program.blocks[1].instructions = {read};
  program.blocks[2].instructions = {nothing};
  program.blocks[3].instructions = {nothing};
  WarpLiveness liveness(program);
  std::vector<Region> regions = create_regions(program, liveness, {});
  REQUIRE(regions.size() == 4);
  CHECK(regions[1].last_reads.test(0));  // the other lanes do not need it
  CHECK(regions[2].invalidated.none());  // lanes that wait for block 1 need it
  CHECK(regions[3].invalidated.test(0)); // all lanes may have passed block 2
}

namespace {

// Blocks by their successors; instructions are added as "writes < reads".
struct Shape {
  Module module;
  Function function{module};
  RegisterProgram program;
  std::vector<Region> regions;

  explicit Shape(const std::vector<std::vector<unsigned>>& successors) {
    function.has_body = true;
    for (size_t i = 0; i < successors.size(); ++i)
      function.place_block(function.add_block());
    for (uint32_t i = 0; i < successors.size(); ++i) {
      std::vector<EdgeId> edges;
      for (unsigned to : successors[i])
        edges.push_back(function.add_edge(BlockId(i), BlockId(to)));
      function.set_successors(BlockId(i), edges, false);
    }
    program = register_blocks(function);
    program.registers = 4;
  }
  Shape& add(uint32_t block, std::vector<unsigned> writes, std::vector<unsigned> reads, bool loads = false) {
    RegisterInstruction& instruction = program.blocks[block].instructions.emplace_back();
    for (unsigned r : writes)
      instruction.writes.set(r);
    for (unsigned r : reads)
      instruction.reads.set(r);
    instruction.long_latency = loads;
    return *this;
  }
  // Checks the rules, and that a warp's lanes find their values on all paths.
  void form() {
    WarpLiveness liveness(program);
    regions = create_regions(program, liveness, {});
    for (const std::string& error : verify_regions(program, liveness, regions, {}))
      FAIL_CHECK(error);
    Random random(1);
    CHECK(first_error(program, regions, random, 500) == "");
  }
  const Region& region(uint32_t block, uint32_t number = 0) const {
    for (const Region& one : regions)
      if (one.block == block && number-- == 0) return one;
    throw std::logic_error("no such region");
  }
  size_t count(uint32_t block) const { return static_cast<size_t>(std::ranges::count(regions, block, &Region::block)); }
};

} // namespace

TEST_CASE("a loop: what every trip reads is evicted, not erased, and invalidated behind it") {
  Shape loop({{1}, {1, 2}, {}});
  loop.add(0, {0}, {}).add(1, {1}, {0}).add(1, {}, {1}).add(2, {}, {}).form();
  CHECK(loop.region(0).outputs.test(0));
  CHECK(loop.region(1).inputs == RegisterSet(1));
  CHECK(loop.region(1).last_reads.none()); // the next trip reads it again
  CHECK(loop.region(1).evicted[0].test(0));
  CHECK(loop.region(1).interior == RegisterSet(2));
  CHECK(loop.region(1).erased[1].test(1));
  CHECK(loop.region(2).invalidated == RegisterSet(1));
}

TEST_CASE("a loop: a load at its end that the next trip uses needs no further region") {
  Shape loop({{1}, {1, 2}, {}});
  loop.add(0, {0}, {}, true).add(1, {1}, {0}).add(1, {0}, {1}, true).add(2, {}, {0}).form();
  CHECK(loop.count(1) == 1);
  CHECK(loop.region(1).inputs.test(0));
  CHECK(loop.region(1).outputs.test(0));
  Shape used({{1}, {1, 2}, {}});
  used.add(0, {0}, {}).add(1, {1}, {0}, true).add(1, {0}, {1}).add(2, {}, {0}).form();
  CHECK(used.count(1) == 2); // separated from its first use
}

TEST_CASE("a loop with a break: lanes that left keep their values until all have") {
  Shape shape({{1}, {2, 4}, {3, 4}, {1}, {}});
  shape.add(0, {0}, {}).add(0, {2}, {}).add(1, {}, {2}).add(2, {0}, {0}).add(3, {1}, {0}).add(3, {}, {1});
  shape.add(4, {}, {0}).form();
  CHECK(shape.region(2).inputs.test(0));      // a soft definition
  CHECK(shape.region(2).outputs.test(0));     //
  CHECK(shape.region(3).last_reads.none());   // lanes wait after the loop with R0, and the next trip reads it
  CHECK(shape.region(3).interior.test(1));    //
  CHECK(shape.region(1).last_reads.none());   // R2 is read in every trip
  CHECK(shape.region(4).last_reads.test(0));  //
  CHECK(shape.region(4).invalidated.test(2)); // and only dead here
}

TEST_CASE("nested divergence: a value of the inner branch is invalidated where the outer ways meet") {
  // 0 -> {1, 6}, 1 -> {2, 3}, both -> 4 -> 5, 6 -> 5. R0 is read in 2 and in 6.
  Shape shape({{1, 6}, {2, 3}, {4}, {4}, {5}, {}, {5}});
  shape.add(0, {0}, {}).add(1, {}, {}).add(2, {}, {0}).add(3, {}, {}).add(4, {}, {}).add(5, {}, {}).add(6, {}, {0});
  shape.form();
  CHECK(shape.region(2).last_reads.none()); // the lanes of 6 may come later
  CHECK(shape.region(3).invalidated.none());
  CHECK(shape.region(4).invalidated.none());
  CHECK(shape.region(5).invalidated.test(0));
}

namespace {

// By definition: `upper` dominates `lower` if there is no path to it without `upper`.
bool reaches_without(const RegisterProgram& program, uint32_t from, uint32_t to, uint32_t without) {
  if (from == without) return false;
  std::vector<bool> seen(program.blocks.size());
  std::vector<uint32_t> work{from};
  seen[from] = true;
  while (!work.empty()) {
    const uint32_t here = work.back();
    work.pop_back();
    const std::vector<uint32_t>& next = program.blocks[here].successors;
    if (here == to || (to == RegisterBlock::none && next.empty())) return true;
    for (uint32_t one : next)
      if (one != without && !seen[one]) {
        seen[one] = true;
        work.push_back(one);
      }
  }
  return false;
}

std::vector<unsigned> writes_in_order(const RegisterProgram& program) {
  std::vector<unsigned> ids;
  for (const RegisterBlock& block : program.blocks)
    for (const RegisterInstruction& instruction : block.instructions)
      if (instruction.writes.any()) ids.push_back(instruction.id.index());
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  return ids;
}

} // namespace

TEST_CASE("blocks of the machine: dominators are right, nothing is lost, and lanes find what they need") {
  unsigned fewer = 0, parted = 0;
  for (const char* sample : {"backprop", "bplus_tree", "particlefilter", "srad_v2", "lud", "nw", "hotspot"}) {
    CAPTURE(sample);
    ReadText text(read_file(source_path(std::string("samples/") + sample + "/" + sample + ".ptx")).value());
    REQUIRE(text.ok());
    for (const auto& kernel : text.module->functions) {
      if (!kernel->is_entry || !construct_ssa(*kernel).ok()) continue;
      const AllocationOptions wanted{.predicate_limit = 255, .keep_names = true};
      Result<Allocation> allocation = allocate_registers(*kernel, wanted);
      REQUIRE(allocation.ok());
      ControlFlow flow(*kernel);
      MachineValues values(*kernel, flow, 80, allocation->apart);
      const RegisterProgram before = register_program(*kernel, values, *allocation);
      const RegisterProgram program = machine_blocks(*kernel, before, 80);
      fewer += program.blocks.size() < before.blocks.size() ? 1 : 0;
      parted += program.blocks.size() > before.blocks.size() ? 1 : 0;
      CHECK(writes_in_order(program) == writes_in_order(before));
      const auto blocks = static_cast<uint32_t>(program.blocks.size());
      for (uint32_t b = 1; b < blocks; ++b) {
        CHECK(!reaches_without(program, 0, b, program.blocks[b].dominator));
        for (uint32_t other = 0; other < blocks; ++other) // the immediate one is dominated by all others
          if (other != b && !reaches_without(program, 0, b, other))
            CHECK((other == program.blocks[b].dominator || program.dominates(other, program.blocks[b].dominator)));
      }
      for (uint32_t b = 0; b < blocks; ++b)
        if (const uint32_t post = program.blocks[b].post_dominator; post != RegisterBlock::none)
          CHECK(!reaches_without(program, b, RegisterBlock::none, post));
      const WarpLiveness liveness(program);
      const std::vector<Region> regions = create_regions(program, liveness, {});
      for (const std::string& error : verify_regions(program, liveness, regions, {}))
        FAIL_CHECK(error);
      Random random(1);
      CHECK(first_error(program, regions, random, 20) == "");
    }
  }
  CHECK(fewer > 3);
  CHECK(parted > 0);
}

TEST_CASE("random graphs: no lane loses anything, and nothing is left behind") {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Module module;
    Function function(module);
    RegisterProgram program = random_program(random, function);
    RegionLimits limits{.live = 2 + below(random, 4), .per_bank = 2};
    WarpLiveness liveness(program);
    std::vector<Region> regions = create_regions(program, liveness, limits);
    for (const std::string& error : verify_regions(program, liveness, regions, limits))
      FAIL_CHECK(error);
    std::string error = first_error(program, regions, random, 100);
    CHECK(error == "");
  }
}

TEST_CASE("random graphs: a mark that is left out is found") {
  const Mutation kinds[] = {{&Region::inputs, nullptr},
                            {&Region::last_reads, nullptr},
                            {&Region::invalidated, nullptr},
                            {nullptr, &Region::erased},
                            {nullptr, &Region::evicted}};
  unsigned left_out[5] = {}, found[5] = {};
  for (unsigned seed = 0; seed < 300; ++seed) {
    Random random(seed);
    Module module;
    Function function(module);
    RegisterProgram program = random_program(random, function);
    if (!ends_together(program)) continue;
    WarpLiveness liveness(program);
    const std::vector<Region> regions = create_regions(program, liveness, {.live = 4, .per_bank = 2});
    for (unsigned kind = 0; kind < 5; ++kind)
      for (size_t i = 0; i < regions.size(); ++i)
        for (unsigned r = 0; r < program.registers; ++r) {
          std::vector<Region> wrong = regions;
          bool removed = false;
          if (RegisterSet Region::*set = kinds[kind].set) {
            removed = (wrong[i].*set).test(r);
            (wrong[i].*set).reset(r);
          } else {
            for (RegisterSet& marks : wrong[i].*kinds[kind].list)
              if (!removed && marks.test(r)) {
                marks.reset(r);
                removed = true;
              }
          }
          if (!removed) continue;
          ++left_out[kind];
          found[kind] += first_error(program, wrong, random, 300).empty() ? 0 : 1;
        }
  }
  // Not detected: marks made redundant by a later one on every path (a register that is erased twice, a copy that
  // another path has to invalidate anyway), and those on paths without an end.
  for (unsigned kind = 0; kind < 5; ++kind) {
    CAPTURE(kind);
    CHECK(left_out[kind] > 20);
    CHECK(found[kind] * 100 >= left_out[kind] * 70);
    MESSAGE(found[kind] << " of " << left_out[kind]);
  }
}

} // namespace ptxrewrite::tests::regions_test
