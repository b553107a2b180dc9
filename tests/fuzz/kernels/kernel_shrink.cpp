#include "tests/fuzz/kernels/kernel_shrink.h"

#include "tests/fuzz/kernels/kernel_oracle.h"

#include <algorithm>

namespace ptxrewrite::fuzz {

namespace {

// Visits every list of statements, the outer ones first.
template <class Visit> void for_each_list(std::vector<Statement>& statements, Visit&& visit) {
  visit(statements);
  for (Statement& statement : statements)
    for (std::vector<Statement>& body : statement.bodies)
      for_each_list(body, visit);
}
template <class Visit> void for_each_list(Kernel& kernel, Visit&& visit) {
  for (Function& function : kernel.functions)
    for_each_list(function.body, visit);
  for_each_list(kernel.body, visit);
}

class Shrinker {
public:
  Shrinker(const Kernel& kernel, const Shape& shape, const std::function<bool(const Kernel&)>& is_interesting)
      : kernel_(kernel), shape_(shape), is_interesting_(is_interesting) {}

  Kernel run() {
    bool smaller = true;
    while (smaller) {
      const size_t before = count_statements(kernel_);
      for (size_t size = before; size >= 1; size /= 2)
        remove_chunks(size);
      flatten();
      smaller = count_statements(kernel_) < before;
    }
    return kernel_;
  }

private:
  bool accept(const Kernel& candidate) {
    if (!is_interesting_(candidate) || !run_oracle(candidate, shape_).problem.empty()) return false;
    kernel_ = candidate;
    return true;
  }

  // Removes `size` statements of one list at a time, from the end: later ones use earlier definitions.
  void remove_chunks(size_t size) {
    size_t lists = 0;
    for_each_list(kernel_, [&](std::vector<Statement>&) { ++lists; });
    for (size_t list = 0; list < lists; ++list) {
      if (size >= 2 * list_size(list)) continue; // removing all of it was tried already
      for (size_t end = list_size(list); end > 0;) {
        const size_t begin = end > size ? end - size : 0;
        Kernel candidate = kernel_;
        with_list(candidate, list, [&](std::vector<Statement>& statements) {
          statements.erase(statements.begin() + static_cast<std::ptrdiff_t>(begin),
                           statements.begin() + static_cast<std::ptrdiff_t>(end));
        });
        accept(candidate);
        end = std::min(begin, list_size(list));
      }
    }
  }

  // Replaces an if, switch, loop or scope by one of its bodies.
  void flatten() {
    for (size_t list = 0; list_size(list) != 0 || list < 2; ++list)
      for (size_t at = list_size(list); at-- > 0;)
        for (size_t body = 0; at < list_size(list); ++body) {
          Kernel candidate = kernel_;
          bool possible = false;
          with_list(candidate, list, [&](std::vector<Statement>& statements) {
            Statement old = statements[at];
            if (body >= old.bodies.size() || old.kind == StatementKind::scope) return;
            possible = true;
            statements.erase(statements.begin() + static_cast<std::ptrdiff_t>(at));
            statements.insert(statements.begin() + static_cast<std::ptrdiff_t>(at), old.bodies[body].begin(),
                              old.bodies[body].end());
          });
          if (!possible) break;
          if (leaves_loop(candidate)) continue;
          if (accept(candidate)) break;
        }
  }

  // Whether there is a break or continue outside of a loop.
  static bool leaves_loop(const std::vector<Statement>& statements, bool inside) {
    return std::any_of(statements.begin(), statements.end(), [&](const Statement& statement) {
      const bool leaves = statement.kind == StatementKind::break_loop || statement.kind == StatementKind::continue_loop;
      if (leaves && !inside) return true;
      const bool within = inside || statement.kind == StatementKind::loop;
      return std::any_of(statement.bodies.begin(), statement.bodies.end(),
                         [&](const std::vector<Statement>& body) { return leaves_loop(body, within); });
    });
  }
  static bool leaves_loop(const Kernel& kernel) {
    return leaves_loop(kernel.body, false) ||
           std::any_of(kernel.functions.begin(), kernel.functions.end(),
                       [](const Function& function) { return leaves_loop(function.body, false); });
  }

  template <class Action> static void with_list(Kernel& kernel, size_t wanted, Action&& action) {
    size_t index = 0;
    std::vector<Statement>* found = nullptr;
    for_each_list(kernel, [&](std::vector<Statement>& statements) {
      if (index++ == wanted) found = &statements;
    });
    if (found != nullptr) action(*found);
  }
  size_t list_size(size_t wanted) {
    size_t size = 0;
    with_list(kernel_, wanted, [&](std::vector<Statement>& statements) { size = statements.size(); });
    return size;
  }

  Kernel kernel_;
  const Shape& shape_;
  const std::function<bool(const Kernel&)>& is_interesting_;
};

} // namespace

size_t count_statements(const Kernel& kernel) {
  Kernel copy = kernel;
  size_t count = 0;
  for_each_list(copy, [&](std::vector<Statement>& statements) { count += statements.size(); });
  return count;
}

Kernel shrink_kernel(const Kernel& kernel, const Shape& shape,
                     const std::function<bool(const Kernel&)>& is_interesting) {
  return Shrinker(kernel, shape, is_interesting).run();
}

} // namespace ptxrewrite::fuzz
