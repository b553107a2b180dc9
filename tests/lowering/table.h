// The table: the lowering beside ptxas, by target, group and half.
#pragma once

#include "tests/paper/signs.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

// One kernel for one target.
struct KernelRow {
  std::string group, kernel;
  bool held_out = false;
  uint32_t real = 0, estimated = 0;                     // machine instructions, static
  uint32_t real_registers = 0, estimated_registers = 0; // a thread
  uint32_t copies = 0;                                  // of `estimated`: further copies of loops
  double error() const { return double(estimated) / real - 1; }
  double register_error() const { return double(estimated_registers) / real_registers - 1; }
};

// Two versions of one kernel for one target.
struct SignRow {
  std::string group;
  bool held_out = false;
  VersionPair pair;
};

struct Figures {
  size_t kernels = 0;
  double absolute = 0, mean = 0, registers = 0; // errors in %, the first and last as absolute values
  SignCounts signs;
};

// Signs by version. Versions that only reorder instructions are counted apart: the model has one count for all orders.
struct VersionSigns {
  std::map<std::string, SignCounts> by_version;
  SignCounts order_alone, others;
};
VersionSigns version_signs(const std::vector<SignRow>& signs, bool held_out);

// Sums the rows of a group (all groups if empty) and of a half.
Figures figures_of(const std::vector<KernelRow>& kernels, const std::vector<SignRow>& signs, const std::string& group,
                   bool held_out);

struct TargetTable {
  std::string architecture;
  std::vector<KernelRow> kernels;
  std::vector<SignRow> signs;
  unsigned refused = 0, unread = 0, short_kernels = 0, repeated = 0; // left out
};

// `worst`: so many kernels and pairs of the looked-at half are shown; none of the other half ever is.
void print_table(const TargetTable& table, size_t worst);

// The mean of the targets' rows: both halves of all groups, and the samples apart.
void print_summary(const std::vector<TargetTable>& tables);

} // namespace ptxrewrite::tests
