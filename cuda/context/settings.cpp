#include "cuda/context/settings.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace ptxrewrite::cuda {
namespace {

constexpr std::array log_level_names = {"error", "warn", "info", "debug"};

std::string text_of(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

uint64_t number_of(const char* name) {
  const std::string text = text_of(name);
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

} // namespace

const ir::Machine& default_machine() {
  return *ir::find_machine("H100");
}

LogLevel log_level_of(const std::string& text) {
  for (size_t i = 0; i < log_level_names.size(); ++i)
    if (text == log_level_names[i]) return static_cast<LogLevel>(i);
  return LogLevel::warn;
}

std::vector<std::string> environment_of(const Settings& settings) {
  std::vector<std::string> all;
  const auto add = [&](const char* name, const std::string& value) { all.push_back(std::string(name) + "=" + value); };
  add("PTXREWRITE_EMULATE", std::string(settings.machine ? settings.machine->name : default_machine().name));
  add("PTXREWRITE_LOG_LEVEL", log_level_names[static_cast<size_t>(settings.log_level)]);
  add("PTXREWRITE_CHECK", settings.check ? "1" : "");
  add("PTXREWRITE_COUNTERS", settings.counters ? "1" : "");
  add("PTXREWRITE_REPORT", settings.json);
  add("PTXREWRITE_EXEC_PASSES", settings.passes);
  add("PTXREWRITE_SPECIALISE", std::to_string(settings.specialise));
  add("PTXREWRITE_EXEC_VERIFY", settings.verify);
  add("PTXREWRITE_CAPTURE", settings.capture);
  add("PTXREWRITE_CAPTURES", std::to_string(settings.captures));
  add("PTXREWRITE_STUDY", settings.study ? "1" : "");
  add("PTXREWRITE_SCORE", settings.score ? std::string(settings.score->name) : "");
  add("PTXREWRITE_HTML", settings.html);
  add("PTXREWRITE_FUEL", std::to_string(settings.fuel));
  add("PTXREWRITE_MEMORY", std::to_string(settings.memory));
  add("PTXREWRITE_HOST_THREADS", std::to_string(settings.host_threads));
  add("PTXREWRITE_ENGINE", settings.engine);
  add("PTXREWRITE_MATRIX_SUMS", settings.matrix_sums);
  return all;
}

Settings settings_from_environment() {
  Settings settings;
  settings.machine = ir::find_machine(text_of("PTXREWRITE_EMULATE"));
  if (!settings.machine) settings.machine = &default_machine();
  settings.log_level = log_level_of(text_of("PTXREWRITE_LOG_LEVEL"));
  settings.check = !text_of("PTXREWRITE_CHECK").empty();
  settings.counters = !text_of("PTXREWRITE_COUNTERS").empty();
  settings.json = text_of("PTXREWRITE_REPORT");
  settings.passes = text_of("PTXREWRITE_EXEC_PASSES");
  settings.specialise = number_of("PTXREWRITE_SPECIALISE");
  settings.verify = text_of("PTXREWRITE_EXEC_VERIFY");
  settings.capture = text_of("PTXREWRITE_CAPTURE");
  settings.captures = number_of("PTXREWRITE_CAPTURES");
  settings.study = !text_of("PTXREWRITE_STUDY").empty();
  settings.score = ir::find_machine(text_of("PTXREWRITE_SCORE"));
  settings.html = text_of("PTXREWRITE_HTML");
  settings.fuel = number_of("PTXREWRITE_FUEL");
  settings.memory = number_of("PTXREWRITE_MEMORY");
  settings.host_threads = static_cast<unsigned>(number_of("PTXREWRITE_HOST_THREADS"));
  settings.engine = text_of("PTXREWRITE_ENGINE");
  settings.matrix_sums = text_of("PTXREWRITE_MATRIX_SUMS");
  return settings;
}

} // namespace ptxrewrite::cuda
