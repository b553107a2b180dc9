// The options of a command or a tool. They are parsed by CLI11, which only options.cpp includes: it takes longer to
// compile than most of the files that have options.
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

// An option that was added, to say more about it.
class Option {
public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& required();
  // What --help calls its value.
  Option& type_name(const std::string& name);
  // --help shows the variable's present value.
  Option& show_default();

  Option& one_of(const std::vector<std::string>& words);
  Option& range(int least, int most);
  Option& range(unsigned least, unsigned most);
  Option& range(double least, double most);
  Option& existing_files();
  // 512M, 8G ...: the variable holds bytes.
  Option& size_with_suffix();

  // Of options that take several values:
  Option& delimiter(char character);
  Option& one_each(); // the option's name before each of them
  Option& only_one();

  Option& excludes(const Option& other);
  // `variable` becomes true where the option is given.
  Option& sets(bool& variable);

private:
  CLI::Option* option_;
};

// What a command or a tool takes. A name without a dash is a positional argument's. Variables have to live until
// parse() is done.
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

  // Is called at the end of parse() where this command is the one that the user named.
  void when_named(const std::function<void()>& action);

private:
  friend class Application;
  explicit Options(CLI::App* application) : application_(application) {}

  CLI::App* application_;
};

// What --help and messages say of a program.
struct ProgramText {
  std::string name;
  std::string about;
  std::string footer;
  std::function<std::string()> version; // asked when --version is given
};

// A program, with commands or without.
class Application : public Options {
public:
  explicit Application(const std::string& about); // called what the user called it
  explicit Application(const ProgramText& text);
  ~Application();
  Application(const Application&) = delete;

  // The command lives as long as the application.
  Options add_command(const std::string& name, const std::string& about, const std::string& footer);

  // Sets all variables. An exit code, where the program is at its end: after --help, and after wrong usage, which has
  // been shown.
  std::optional<int> parse(int count, char** arguments);
  std::optional<int> parse(const std::vector<std::string>& words); // without the program's name

  std::string help() const;

private:
  std::optional<int> parse_with(const std::function<void()>& parse);

  std::unique_ptr<CLI::App> owned_;
};

} // namespace ptxrewrite::cli
