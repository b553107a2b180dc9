#include "cli/options.h"

#include "support/text/near_names.h"

#include <CLI/CLI.hpp>

namespace ptxrewrite::cli {

namespace {
constexpr int usage_code = 2;
constexpr unsigned column_of_help = 34;

// "; did you mean '--passes'?" for a message of CLI11 that ends in an unknown option; otherwise "".
std::string near_options(const CLI::App& application, const std::string& message) {
  size_t begin = message.find(": -");
  if (begin == std::string::npos) return {};
  if (message.compare(begin, 5, ": -- ") == 0) begin += 3; // `exec --chek -- PROGRAM`: CLI11 names both
  const std::string word = message.substr(begin + 2, message.find_first_of(" =", begin + 2) - begin - 2);
  std::vector<std::string> known;
  const auto add = [&](const CLI::App& command) {
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : option->get_lnames())
        known.push_back("--" + name);
  };
  for (const CLI::App* command : application.get_subcommands())
    add(*command);
  if (known.empty()) add(application);
  const std::string near = near_names(word, known);
  return near.starts_with("; did") ? near : std::string();
}

// The same for a message that ends in `WORD not in {A,B,C}`.
std::string near_values(const std::string& message) {
  const size_t end = message.find(" not in {"), close = message.rfind('}');
  if (end == std::string::npos || close == std::string::npos) return {};
  const size_t begin = message.rfind(' ', end - 1) + 1; // 0: the message begins with the word
  std::vector<std::string> known;
  for (size_t at = end + std::string_view(" not in {").size(); at < close;) {
    const size_t comma = std::min(message.find(',', at), close);
    known.push_back(message.substr(at, comma - at));
    at = comma + 1;
  }
  const std::string near = near_names(message.substr(begin, end - begin), known);
  return near.starts_with("; did") ? near : std::string();
}
} // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Option& Option::range(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::range(unsigned least, unsigned most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::range(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option& Option::existing_files() {
  option_->check(CLI::ExistingFile);
  return *this;
}

Option& Option::size_with_suffix() {
  option_->transform(CLI::Validator(CLI::AsSizeValue(false)).description(""));
  return *this;
}

Option& Option::delimiter(char character) {
  option_->delimiter(character);
  return *this;
}

Option& Option::one_each() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::only_one() {
  option_->expected(1);
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

Option& Option::sets(bool& variable) {
  option_->each([&variable](const std::string&) { variable = true; });
  return *this;
}

Option Options::add_option(const std::string& name, std::string& variable, const std::string& help) {
  return Option(*application_->add_option(name, variable, help));
}

Option Options::add_option(const std::string& name, int& variable, const std::string& help) {
  return Option(*application_->add_option(name, variable, help));
}

Option Options::add_option(const std::string& name, uint32_t& variable, const std::string& help) {
  return Option(*application_->add_option(name, variable, help));
}

Option Options::add_option(const std::string& name, uint64_t& variable, const std::string& help) {
  return Option(*application_->add_option(name, variable, help));
}

Option Options::add_option(const std::string& name, double& variable, const std::string& help) {
  return Option(*application_->add_option(name, variable, help));
}

Option Options::add_option(const std::string& name, std::optional<int>& variable, const std::string& help) {
  return Option(*application_->add_option(name, variable, help));
}

Option Options::add_option(const std::string& name, std::optional<uint64_t>& variable, const std::string& help) {
  return Option(*application_->add_option(name, variable, help));
}

Option Options::add_option(const std::string& name, std::vector<std::string>& variable, const std::string& help) {
  return Option(*application_->add_option(name, variable, help));
}

Option Options::add_option(const std::string& name, std::vector<uint32_t>& variable, const std::string& help) {
  return Option(*application_->add_option(name, variable, help));
}

Option Options::add_option(const std::string& name, const TakeText& take, const std::string& help) {
  return Option(*application_->add_option_function<std::string>(name, take, help));
}

Option Options::add_flag(const std::string& name, bool& variable, const std::string& help) {
  return Option(*application_->add_flag(name, variable, help));
}

Option Options::add_flag(const std::string& name, std::string& variable, const std::string& help) {
  return Option(*application_->add_flag(name, variable, help));
}

Option Options::add_flag(const std::string& name, uint32_t& variable, const std::string& help) {
  return Option(*application_->add_flag(name, variable, help));
}

void Options::when_named(const std::function<void()>& action) {
  application_->callback(action);
}

Application::Application(const std::string& about) : Application(ProgramText{{}, about, {}, {}}) {}

// Commands inherit the formatting of help and errors from the application, so it must be set before commands are added.
Application::Application(const ProgramText& text)
    : Options(nullptr), owned_(std::make_unique<CLI::App>(text.about, text.name)) {
  application_ = owned_.get();
  owned_->footer(text.footer);
  if (text.version) owned_->set_version_flag("--version", text.version);
  owned_->set_help_flag("-h,--help", "this text");
  owned_->require_subcommand(0, 1);
  owned_->failure_message([](const CLI::App* application, const CLI::Error& error) {
    const std::string& name = application->get_name();
    std::string message = name + ": " + error.what() + near_options(*application, error.what()) +
                          near_values(error.what()) + "\nRun '" + name + " --help'";
    if (!application->get_subcommands({}).empty()) message += " or '" + name + " COMMAND --help'";
    return message + ".\n";
  });
  owned_->get_formatter()->column_width(column_of_help);
}

Application::~Application() = default;

Options Application::add_command(const std::string& name, const std::string& about, const std::string& footer) {
  CLI::App* command = owned_->add_subcommand(name, about);
  command->footer(footer);
  return Options(command);
}

std::optional<int> Application::parse(int count, char** arguments) {
  return parse_with([&] { owned_->parse(count, arguments); });
}

std::optional<int> Application::parse(const std::vector<std::string>& words) {
  return parse_with([&] { owned_->parse(std::vector<std::string>(words.rbegin(), words.rend())); });
}

std::optional<int> Application::parse_with(const std::function<void()>& parse) {
  try {
    parse();
  } catch (const CLI::ParseError& error) {
    // CLI11's own codes are above 100. Requests for help are not errors.
    return owned_->exit(error) == 0 ? 0 : usage_code;
  }
  return std::nullopt;
}

std::string Application::help() const {
  return owned_->help();
}

} // namespace ptxrewrite::cli
