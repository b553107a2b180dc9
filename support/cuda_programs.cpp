#include "support/cuda_programs.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace ptxrewrite {

namespace {

// Toolkits below /usr/local with a version in their name, newest first ("cuda-13.0" before "cuda-9.2").
std::vector<std::string> versioned_toolkits() {
  std::vector<std::pair<double, std::string>> found;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/local", failure)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with("cuda-")) found.emplace_back(std::atof(name.c_str() + 5), entry.path().string());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths;
  for (auto& [version, path] : found)
    paths.push_back(std::move(path));
  return paths;
}

// Where NVIDIA's wheel keeps its programs below a virtual environment: lib/python3.11/site-packages/nvidia/cu13/bin.
void add_wheel_folders(const std::filesystem::path& environment, std::vector<std::string>& folders) {
  std::error_code failure;
  for (const auto& python : std::filesystem::directory_iterator(environment / "lib", failure))
    for (const auto& part : std::filesystem::directory_iterator(python.path() / "site-packages" / "nvidia", failure))
      folders.push_back((part.path() / "bin").string());
}

// build/ of build/release/cli/ptxrewrite; empty where the program does not say where it is.
std::filesystem::path folder_of_builds() {
  std::error_code failure;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failure);
  return failure ? std::filesystem::path() : program.parent_path().parent_path().parent_path();
}

std::vector<std::string>& added_environments() {
  static std::vector<std::string> environments;
  return environments;
}

} // namespace

void add_python_environment(const std::string& prefix) {
  added_environments().push_back(prefix);
}

std::vector<std::string> cuda_program_folders() {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("PATH"); path != nullptr)
    for (std::string_view rest = path; !rest.empty();) {
      const size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) folders.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  std::vector<std::string> toolkits;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(variable); home != nullptr && *home != '\0') toolkits.push_back(home);
  toolkits.push_back("/usr/local/cuda");
  for (std::string& toolkit : versioned_toolkits())
    toolkits.push_back(std::move(toolkit));
  for (const char* place : {"/opt/cuda", "/usr/lib/cuda", "/usr/lib/nvidia-cuda-toolkit"})
    toolkits.push_back(place);
  for (const std::string& toolkit : toolkits)
    folders.push_back(toolkit + "/bin");
  if (const char* environment = std::getenv("VIRTUAL_ENV"); environment != nullptr && *environment != '\0')
    add_wheel_folders(environment, folders);
  for (const std::string& environment : added_environments())
    add_wheel_folders(environment, folders);
  if (const std::filesystem::path builds = folder_of_builds(); !builds.empty())
    add_wheel_folders(builds / "ptxas", folders);
  return folders;
}

} // namespace ptxrewrite
