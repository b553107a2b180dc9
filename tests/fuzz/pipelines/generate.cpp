// Pipelines by seed, and what they compute.
#include "tests/fuzz/pipelines/pipeline.h"
#include "tests/fuzz/random.h"

namespace ptxrewrite::fuzz::pipelines {

std::string_view name_of(Fault fault) {
  switch (fault) {
  case Fault::none:
    return "none";
  case Fault::early_consumer:
    return "early consumer";
  case Fault::early_producer:
    return "early producer";
  case Fault::short_count:
    return "short count";
  case Fault::long_count:
    return "long count";
  case Fault::missing_fence:
    return "missing fence";
  }
  return "";
}

Pipeline generate(uint64_t seed) {
  Random random(seed * 7919 + 13);
  Pipeline made;
  made.seed = seed;
  made.fill = static_cast<Fill>(random.below(3));
  made.stages = static_cast<uint32_t>(random.between(2, 4));
  // A warp's copies move 4, 8 or 16 bytes a lane; others any multiple of 16 bytes.
  made.words = made.fill == Fill::copies   ? 32u << random.below(3)
               : made.fill == Fill::stores ? 32 * static_cast<uint32_t>(random.between(1, 4))
                                           : 4 * static_cast<uint32_t>(random.between(8, 32));
  made.tiles = static_cast<uint32_t>(random.between(1, 9));
  made.consumers = static_cast<uint32_t>(random.between(1, 3));
  made.blocks = static_cast<uint32_t>(random.between(1, 3));
  made.all_release = random.one_in(3);
  made.counts_by_division = random.one_in(3);
  made.tests = random.one_in(3);
  made.stores_tiles = random.one_in(3);
  made.bulk_result = random.one_in(3);
  for (int64_t i = random.between(1, 3); i > 0; --i) {
    Read read;
    read.stride = static_cast<uint32_t>(random.between(0, 5));
    read.offset = static_cast<uint32_t>(random.below(200));
    read.factor = static_cast<uint32_t>(random.next()) | 1;
    read.mix = static_cast<uint32_t>(random.next());
    if (random.one_in(3)) read.lanes = static_cast<uint32_t>(random.between(1, 31));
    made.reads.push_back(read);
  }
  return made;
}

namespace {

std::vector<uint32_t> input_of(const Pipeline& pipeline) {
  Random random(pipeline.seed ^ 0x5eed);
  std::vector<uint32_t> input(pipeline.input_words());
  for (uint32_t& word : input)
    word = static_cast<uint32_t>(random.next());
  return input;
}

std::vector<uint32_t> expected(const Pipeline& pipeline, const std::vector<uint32_t>& input) {
  std::vector<uint32_t> output(pipeline.output_words());
  const uint32_t threads = pipeline.consumer_threads(), sums = pipeline.blocks * threads;
  for (uint32_t block = 0; block < pipeline.blocks; ++block)
    for (uint32_t thread = 0; thread < threads; ++thread) {
      uint32_t sum = thread + 1;
      for (uint32_t tile = 0; tile < pipeline.tiles; ++tile) {
        const uint32_t* words = input.data() + (block * pipeline.tiles + tile) * pipeline.words;
        for (const Read& read : pipeline.reads)
          if (thread % 32 < read.lanes)
            sum =
                (sum * read.factor + words[(thread * read.stride + read.offset) % pipeline.words]) ^ (read.mix + tile);
        if (pipeline.stores_tiles) output[sums + (block * pipeline.tiles + tile) * threads + thread] = sum;
      }
      output[block * threads + thread] = sum;
    }
  return output;
}

} // namespace

Case case_of(const Pipeline& pipeline) {
  Case made;
  made.text = print(pipeline);
  made.blocks = pipeline.blocks;
  made.threads = pipeline.threads();
  made.buffers = {input_of(pipeline), std::vector<uint32_t>(pipeline.output_words())};
  made.expected = expected(pipeline, made.buffers.front());
  made.parameters = {{.kind = Parameter::Kind::address, .buffer = 0},
                     {.kind = Parameter::Kind::address, .buffer = 1},
                     {.number = pipeline.tiles}};
  return made;
}

} // namespace ptxrewrite::fuzz::pipelines
