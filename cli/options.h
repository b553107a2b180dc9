// The options of a command or a tool. They are parsed by CLI11, which only options.cpp includes: compiling it takes
// longer than compiling most of the files that use options.
//
//   Application tool("prints the figures of PTX files"); // the description in --help
//   tool.add_option("FILE", files, "PTX files").required();
//   if (std::optional<int> code = tool.parse(count, arguments)) return *code;
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace ptxrewrite::cli {

// An option that has been added, for setting further properties.
class Option {
public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& required();
  // The name of its value in --help.
  Option& type_name(const std::string& name);
  // Shows the variable's present value in --help.
  Option& show_default();

  Option& one_of(const std::vector<std::string>& words);
  Option& range(int least, int most);
  Option& range(unsigned least, unsigned most);
  Option& range(double least, double most);
  Option& existing_files();
  // Accepts 512M, 8G ...: the variable holds bytes.
  Option& size_with_suffix();

  // For options that take several values:
  Option& delimiter(char character);
  Option& one_each(); // the option's name must precede each value
  Option& only_one();

  Option& excludes(const Option& other);
  // Sets `variable` to true if the option is given.
  Option& sets(bool& variable);

private:
  CLI::Option* option_;
};

// The options and arguments of a command or a tool. A name without a dash is a positional argument. Variables must
// outlive parse().
class Options {
public:
  using TakeText = std::function<void(const std::string&)>;

  Option add_option(const std::string& name, std::string& variable, const std::string& help);
  Option add_option(const std::string& name, int& variable, const std::string& help);
  Option add_option(const std::string& name, uint32_t& variable, const std::string& help);
  Option add_option(const std::string& name, uint64_t& variable, const std::string& help);
  Option add_option(const std::string& name, double& variable, const std::string& help);
  Option add_option(const std::string& name, std::optional<int>& variable, const std::string& help);
  Option add_option(const std::string& name, std::optional<uint64_t>& variable, const std::string& help);
  Option add_option(const std::string& name, std::vector<std::string>& variable, const std::string& help);
  Option add_option(const std::string& name, std::vector<uint32_t>& variable, const std::string& help);
  Option add_option(const std::string& name, const TakeText& take, const std::string& help);

  // "!--no-form" sets the variable to false. "--form{word}" may have a value (--form=other); without, it is `word`.
  Option add_flag(const std::string& name, bool& variable, const std::string& help);
  Option add_flag(const std::string& name, std::string& variable, const std::string& help);
  Option add_flag(const std::string& name, uint32_t& variable, const std::string& help);

  // `action` is called at the end of parse() if the user named this command.
  void when_named(const std::function<void()>& action);

private:
  friend class Application;
  explicit Options(CLI::App* application) : application_(application) {}

  CLI::App* application_;
};

// Texts about a program for --help and messages.
struct ProgramText {
  std::string name;
  std::string about;
  std::string footer;
  std::function<std::string()> version; // called for --version
};

// A program, with or without commands.
class Application : public Options {
public:
  explicit Application(const std::string& about); // named as in the command line
  explicit Application(const ProgramText& text);
  ~Application();
  Application(const Application&) = delete;

  // The command lives as long as the application.
  Options add_command(const std::string& name, const std::string& about, const std::string& footer);

  // Sets all variables. Returns an exit code if the program must end: after --help, and after a usage error, which has
  // been shown.
  std::optional<int> parse(int count, char** arguments);
  std::optional<int> parse(const std::vector<std::string>& words); // without the program's name

  std::string help() const;

private:
  std::optional<int> parse_with(const std::function<void()>& parse);

  std::unique_ptr<CLI::App> owned_;
};

} // namespace ptxrewrite::cli
