#include "cuda/interpose/programs.h"

#include "cuda/context/image.h"
#include "cuda/context/log.h"
#include "cuda/interpose/real_driver.h"
#include "launch/persistent_grid.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::cuda::interpose {
namespace {

// CU_DEVICE_ATTRIBUTE_*.
constexpr int multiprocessors = 16, capability_major = 75, capability_minor = 76;
// CU_LAUNCH_PARAM_*, for arguments passed as one block of bytes.
constexpr uintptr_t extra_end = 0, extra_pointer = 1, extra_size = 2;

int device_attribute(int attribute) {
  int value = 0;
  RealDriver::get().device_attribute(&value, attribute, current_device());
  return value;
}

uint32_t capability() {
  return static_cast<uint32_t>(device_attribute(capability_major) * 10 + device_attribute(capability_minor));
}

Rewriter& rewriter() {
  static Rewriter set = nullptr;
  return set;
}

Specialiser& specialiser() {
  static Specialiser set = nullptr;
  return set;
}

// The original's parameters as one block; nothing if the launch does not provide them, which the driver then reports.
std::optional<std::vector<std::byte>> packed(const launch::Signature& signature, void** arguments, void** extra) {
  std::vector<std::byte> bytes(signature.bytes);
  if (arguments) {
    for (size_t i = 0; i < signature.parameters.size(); ++i)
      std::memcpy(bytes.data() + signature.parameters[i].offset, arguments[i], signature.parameters[i].bytes);
    return bytes;
  }
  const void* given = nullptr;
  size_t size = 0;
  for (; extra && reinterpret_cast<uintptr_t>(*extra) != extra_end; extra += 2) {
    if (reinterpret_cast<uintptr_t>(*extra) == extra_pointer) given = extra[1];
    if (reinterpret_cast<uintptr_t>(*extra) == extra_size) size = *static_cast<const size_t*>(extra[1]);
  }
  if (bytes.empty()) return bytes;
  if (!given || size < bytes.size()) return std::nullopt;
  std::memcpy(bytes.data(), given, bytes.size());
  return bytes;
}

void set_driver_attribute(const Program& program, void* function, int attribute, int value) {
  const RealDriver& driver = RealDriver::get();
  if (program.is_library)
    driver.set_kernel_attribute(attribute, value, function, current_device());
  else
    driver.set_function_attribute(function, attribute, value);
}

void unload(const Program& program, void* handle) {
  const RealDriver& driver = RealDriver::get();
  program.is_library ? driver.unload_library(handle) : driver.module_unload(handle);
}

// While a thread captures a stream in the default mode, other threads can load modules in relaxed mode only.
class RelaxedCapture {
public:
  RelaxedCapture() { RealDriver::get().exchange_capture_mode(&mode_); }
  ~RelaxedCapture() { RealDriver::get().exchange_capture_mode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

private:
  int mode_ = 2; // CU_STREAM_CAPTURE_MODE_RELAXED; then the thread's own
};

// Loads the code as the original's kind of module. Returns nullptr if the driver rejects it.
void* loaded(const Program& program, const std::string& text, const std::string& entry, void*& function) {
  const RelaxedCapture relaxed;
  const RealDriver& driver = RealDriver::get();
  void* handle = nullptr;
  const int status = program.is_library
                         ? driver.load_library_data(&handle, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0)
                         : driver.module_load_data(&handle, text.c_str());
  if (status != success) return nullptr;
  const int found = program.is_library ? driver.kernel_of_library(&function, handle, entry.c_str())
                                       : driver.module_function(&function, handle, entry.c_str());
  if (found == success) return handle;
  unload(program, handle);
  return nullptr;
}

// Why the variant's launch is not possible; "" if it is.
std::string objection_to(const LaunchShape& shape, const launch::VariantChoice& choice) {
  if (shape.keeps_shape && (choice.grid != launch::GridMode::same || choice.block != shape.block))
    return "a cooperative or cluster launch keeps its shape";
  if (choice.block.count() > launch::max_block_threads)
    return fmt::format("it would have {} threads in a block", choice.block.count());
  return {};
}

// Number of resident blocks on the whole device.
uint64_t resident_blocks(void* function, const launch::Dim3& block, uint32_t dynamic_shared) {
  int blocks = 0;
  RealDriver::get().resident_blocks(&blocks, function, static_cast<int>(block.count()), dynamic_shared);
  return static_cast<uint64_t>(std::max(blocks, 1)) * static_cast<uint64_t>(device_attribute(multiprocessors));
}

std::shared_ptr<VariantLaunch> variant_launch(std::string entry, void* function, const launch::Signature& signature,
                                              const LaunchShape& shape, launch::VariantChoice choice) {
  auto launch = std::make_shared<VariantLaunch>();
  launch->entry = std::move(entry);
  launch->function = function;
  launch->shape = shape;
  launch->shape.block = choice.block;
  if (choice.grid == launch::GridMode::persistent)
    launch->shape.grid =
        launch::persistent_grid(shape.grid, resident_blocks(function, choice.block, shape.dynamic_shared));
  launch->parameters = std::move(choice.parameter_block);
  for (const launch::Parameter& parameter : signature.parameters)
    launch->arguments.push_back(launch->parameters.data() + parameter.offset);
  return launch;
}

std::string joined(const std::vector<std::string>& reasons) {
  std::string text;
  for (const std::string& reason : reasons)
    text += (text.empty() ? "" : "; ") + reason;
  return text;
}

} // namespace

int current_device() {
  int device = 0;
  return RealDriver::get().context_device(&device) == success ? device : 0;
}

void set_rewriter(Rewriter made) {
  rewriter() = made;
}

Result<RewrittenProgram> rewrite_program(const std::string& ptx, const std::string& label, const std::string& passes) {
  if (!rewriter()) return Error{"no passes here", {}};
  return rewriter()(ptx, label, passes);
}

void set_specialiser(Specialiser made) {
  specialiser() = made;
}

Result<SpecialisedProgram> specialised_program(const ir::Module& original, const std::string& kernel,
                                               const std::string& key, const std::string& passes) {
  if (!specialiser()) return Error{"no passes here", {}};
  return specialiser()(original, kernel, key, passes);
}

Programs& Programs::get() {
  static Programs* const made = [] {
    auto* programs = new Programs;
    set_log_level(programs->settings_.log_level);
    return programs;
  }();
  return *made;
}

std::unique_ptr<Program> Programs::rewrite(const void* image) {
  const Result<std::span<const std::byte>> bytes = image_at(image);
  if (!bytes) return nullptr;
  ImageText text = ptx_of_image(*bytes, capability());
  if (text.code != Code::success || text.ptx.empty()) {
    log(LogLevel::info, "a module runs as it is: {}", text.problem.empty() ? "it has no PTX" : text.problem);
    return nullptr;
  }
  auto program = std::make_unique<Program>();
  {
    std::shared_lock lock(mutex_);
    program->label = fmt::format("module {}", all_.size() + 1);
  }
  Result<RewrittenProgram> code = rewrite_program(text.ptx, program->label, settings_.passes);
  if (!code) {
    log(LogLevel::warn, "{} is not rewritten: {}", program->label, code.error().message);
    return nullptr;
  }
  if (!code->module && !settings_.specialise) return nullptr;
  program->code = *std::move(code);
  if (!program->code.module) return program;
  Result<launch::Variants> variants = launch::Variants::of(*program->code.module, nullptr);
  if (!variants) {
    log(LogLevel::warn, "{} is not rewritten: {}", program->label, variants.error().message);
    return nullptr;
  }
  program->variants = *std::move(variants);
  return program;
}

int Programs::load(const void* image, void** handle, bool is_library, const std::function<int(const void*)>& start) {
  std::unique_ptr<Program> program;
  if (image && handle && settings_.changes_kernels()) program = rewrite(image);
  if (!program) return start(image);
  if (!program->code.module) {
    if (const int status = start(image); status != success) return status;
  } else if (const int status = start(program->code.text.c_str()); status != success) {
    log(LogLevel::warn, "{}: the driver does not take it rewritten (error {}): it runs as it is", program->label,
        status);
    return start(image);
  }
  program->handle = *handle;
  program->is_library = is_library;
  std::unique_lock lock(mutex_);
  programs_[*handle] = program.get();
  all_.push_back(std::move(program));
  return success;
}

void Programs::forget(void* handle) {
  std::unique_lock lock(mutex_);
  const auto found = programs_.find(handle);
  if (found == programs_.end()) return;
  Program* const gone = found->second;
  for (auto& [name, kernel] : gone->kernels) {
    std::lock_guard kernel_lock(kernel->mutex);
    for (auto& [key, made] : kernel->specialised_kernels)
      unload(*gone, made.handle);
    kernel->specialised_kernels.clear();
  }
  std::erase_if(programs_, [&](const auto& entry) { return entry.second == gone; });
  std::erase_if(kernels_, [&](const auto& entry) { return entry.second->program == gone; });
}

void Programs::found_kernel(void* module, const char* name, void* function) {
  std::unique_lock lock(mutex_);
  const auto found = programs_.find(module);
  if (found == programs_.end() || !name || !function) return;
  Program& program = *found->second;
  std::unique_ptr<InterposedKernel>& kernel = program.kernels[name];
  if (!kernel) {
    const ir::Function* const text = launch::find_kernel(program.module(), name);
    if (!text) return;
    kernel = std::make_unique<InterposedKernel>();
    kernel->program = &program;
    kernel->name = name;
    kernel->signature = launch::signature_of(*text);
    kernel->has_variants = program.code.module && !program.variants.of_kernel(name).empty();
  }
  kernels_[function] = kernel.get();
}

void Programs::alias(void* function, void* other) {
  std::unique_lock lock(mutex_);
  if (const auto found = kernels_.find(function); found != kernels_.end() && other) kernels_[other] = found->second;
}

void Programs::alias_program(void* library, void* module) {
  std::unique_lock lock(mutex_);
  if (const auto found = programs_.find(library); found != programs_.end() && module) programs_[module] = found->second;
}

InterposedKernel* Programs::find_kernel(void* function) {
  std::shared_lock lock(mutex_);
  const auto found = kernels_.find(function);
  return found == kernels_.end() ? nullptr : found->second;
}

void Programs::set_attribute(void* function, int attribute, int value) {
  InterposedKernel* const kernel = find_kernel(function);
  if (!kernel) return;
  std::lock_guard lock(kernel->mutex);
  kernel->attributes[attribute] = value;
  for (auto& [name, variant] : kernel->variants)
    if (variant.function) set_driver_attribute(*kernel->program, variant.function, attribute, value);
  for (auto& [key, made] : kernel->specialised_kernels)
    set_driver_attribute(*kernel->program, made.function, attribute, value);
}

// The driver's handle of a variant, with the original's attributes. The kernel must be locked.
std::optional<KernelVariant> Programs::variant_of(InterposedKernel& kernel, const ir::Function& entry) {
  const Program& program = *kernel.program;
  const std::string name(program.code.module->text(entry.name));
  if (const auto known = kernel.variants.find(name); known != kernel.variants.end())
    return known->second.function ? std::optional(known->second) : std::nullopt;
  const RealDriver& driver = RealDriver::get();
  KernelVariant variant;
  variant.signature = launch::signature_of(entry);
  const int status = program.is_library ? driver.kernel_of_library(&variant.function, program.handle, name.c_str())
                                        : driver.module_function(&variant.function, program.handle, name.c_str());
  if (status != success) variant.function = nullptr;
  if (variant.function)
    for (const auto& [attribute, value] : kernel.attributes)
      set_driver_attribute(program, variant.function, attribute, value);
  kernel.variants.emplace(name, variant);
  return variant.function ? std::optional(variant) : std::nullopt;
}

// The kernel must be locked.
void Programs::specialise(InterposedKernel& kernel, const std::string& key) {
  const Program& program = *kernel.program;
  Result<SpecialisedProgram> code = specialised_program(*program.code.original, kernel.name, key, settings_.passes);
  if (!code) {
    kernel.not_made.insert(code.error().message);
    return;
  }
  const std::string entry = code->variants.of_kernel(kernel.name).front().entry;
  SpecialisedKernel made{*std::move(code), nullptr, nullptr};
  made.handle = loaded(program, made.code.text, entry, made.function);
  if (!made.handle) {
    kernel.not_made.insert("the driver does not take it");
    return;
  }
  for (const auto& [attribute, value] : kernel.attributes)
    set_driver_attribute(program, made.function, attribute, value);
  ++kernel.made;
  kernel.specialised_kernels.emplace(key, std::move(made));
}

// True if there is a kernel for this launch, which is then the choice. The kernel must be locked.
bool Programs::choose_specialised(InterposedKernel& kernel, const LaunchShape& shape, RememberedChoice& made) {
  const auto known = kernel.specialised_kernels.find(made.key);
  if (known == kernel.specialised_kernels.end()) return false;
  const SpecialisedKernel& own = known->second;
  Result<launch::VariantChoice> choice =
      own.code.variants.choose(kernel.name, made.parameters, shape.grid, shape.block);
  if (!choice || choice->is_original || choice->grid != launch::GridMode::same || choice->block != shape.block)
    return false;
  const std::string entry = std::string(own.code.module->text(choice->entry->name)) + " for " + made.key;
  const auto signature = launch::signature_of(*choice->entry);
  auto launch = variant_launch(entry, own.function, signature, shape, *std::move(choice));
  launch->is_specialised = true;
  made.launch = std::move(launch);
  made.key.clear();
  return true;
}

RememberedChoice Programs::choose(InterposedKernel& kernel, const LaunchShape& shape,
                                  std::vector<std::byte> parameters) {
  RememberedChoice made{std::move(parameters), shape.grid, shape.block, shape.dynamic_shared,
                        shape.keeps_shape,     {},         {},          {}};
  if (settings_.specialise && !shape.keeps_shape) {
    if (!kernel.keys)
      if (const ir::Function* const text = launch::find_kernel(*kernel.program->code.original, kernel.name))
        kernel.keys.emplace(*kernel.program->code.original, *text);
    if (kernel.keys) made.key = kernel.keys->of(shape.grid, shape.block, made.parameters);
    if (choose_specialised(kernel, shape, made)) return made;
  }
  if (!kernel.has_variants) return made.reason = "the passes do not change it", made;
  Result<launch::VariantChoice> choice =
      kernel.program->variants.choose(kernel.name, made.parameters, shape.grid, shape.block);
  if (!choice) return made.reason = choice.error().message, made;
  if (choice->is_original) return made.reason = joined(choice->reasons), made;
  if (const std::string why = objection_to(shape, *choice); !why.empty()) return made.reason = why, made;
  const std::optional<KernelVariant> variant = variant_of(kernel, *choice->entry);
  if (!variant) return made.reason = "the driver does not know the variant", made;
  const std::string entry(kernel.program->code.module->text(choice->entry->name));
  made.launch = variant_launch(entry, variant->function, variant->signature, shape, *std::move(choice));
  return made;
}

std::shared_ptr<const VariantLaunch> Programs::variant_for(InterposedKernel& kernel, const LaunchShape& shape,
                                                           void** arguments, void** extra) {
  std::optional<std::vector<std::byte>> parameters = packed(kernel.signature, arguments, extra);
  if (!parameters) return count(kernel, false, "its arguments are incomplete"), nullptr;
  // A launch recorded in a graph may later be repeated with other arguments.
  int capturing = 0;
  if (shape.stream && RealDriver::get().stream_is_capturing(shape.stream, &capturing) == success && capturing)
    return count(kernel, false, "a stream that is captured gets the original"), nullptr;
  std::unique_lock lock(kernel.mutex);
  auto known = std::ranges::find_if(kernel.remembered, [&](const RememberedChoice& choice) {
    return choice.grid == shape.grid && choice.block == shape.block && choice.dynamic_shared == shape.dynamic_shared &&
           choice.keeps_shape == shape.keeps_shape && choice.parameters == *parameters;
  });
  if (known == kernel.remembered.end()) {
    known =
        kernel.remembered.begin() + static_cast<std::ptrdiff_t>(kernel.next_remembered++ % kernel.remembered.size());
    *known = choose(kernel, shape, *std::move(parameters));
  }
  if (!known->key.empty() && kernel.repeated.is_due(known->key, settings_.specialise)) {
    specialise(kernel, known->key);
    if (!choose_specialised(kernel, shape, *known)) known->key.clear();
  } else if (!known->key.empty()) {
    choose_specialised(kernel, shape, *known); // made for a launch with other addresses
  }
  if (known->launch) return known->launch;
  const std::string reason = known->reason;
  lock.unlock();
  count(kernel, !kernel.has_variants && kernel.program->code.changed.contains(kernel.name), reason);
  return nullptr;
}

std::vector<const Program*> Programs::all() {
  std::shared_lock lock(mutex_);
  std::vector<const Program*> programs;
  for (const std::unique_ptr<Program>& program : all_)
    programs.push_back(program.get());
  return programs;
}

void Programs::count(InterposedKernel& kernel, bool is_rewritten, std::string_view reason) {
  std::lock_guard lock(kernel.mutex);
  ++(is_rewritten ? kernel.rewritten : kernel.original);
  if (is_rewritten) return;
  if (const auto known = kernel.reasons.find(reason); known != kernel.reasons.end())
    ++known->second;
  else
    kernel.reasons.emplace(reason, 1);
}

void Programs::count_specialised(InterposedKernel& kernel) {
  std::lock_guard lock(kernel.mutex);
  ++kernel.specialised;
}

} // namespace ptxrewrite::cuda::interpose
