#include "cli/arguments.hpp"

#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/error.hpp"
#include "cli/io.hpp"

namespace ponder::cli {
namespace {

// Places of the demo model relative to the program: as installed, and in a build tree below the sources.
constexpr const char* kDemoPlaces[] = {"../share/ponder/models/demo", "../../../models/demo"};

std::filesystem::path demo_folder() {
  std::error_code ec;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ec).parent_path();
  for (const char* place : kDemoPlaces) {
    std::filesystem::path folder = (program / place).lexically_normal();
    if (std::filesystem::exists(folder / "config.json", ec)) return folder;
  }
  fail(ErrorKind::bad_file,
       "the demo model is not beside this program ({}); name a model folder with --model",
       (program / kDemoPlaces[0]).lexically_normal().string());
}

}  // namespace

CLI::Option* add_numbers(CLI::App& app, const char* name, std::vector<std::int32_t>& values,
                         const char* example, const char* what) {
  // CLI11's own lists leave out empty entries and read 0x10 as 16.
  const auto read = [&values](const std::string& text) {
    values.clear();
    for (const char *at = text.data(), *const end = at + text.size();;) {
      std::int32_t number = 0;
      const auto [stop, error] = std::from_chars(at, end, number);
      if (error != std::errc() || (stop != end && *stop != ',')) return false;
      values.push_back(number);
      if (stop == end) return true;
      at = stop + 1;
    }
  };
  CLI::Option* option = app.add_option(
      name,
      [read, name = std::string(name), example = std::string(example)](const CLI::results_t& given) {
        if (given.size() == 1 && read(given[0])) return true;
        throw CLI::ValidationError(
            name, fmt::format("{}: expected whole numbers like {}", given.empty() ? "" : given[0], example));
      },
      what);
  option->expected(1)->type_name("N,N,...");
  if (!values.empty()) option->default_str(fmt::format("{}", fmt::join(values, ",")));
  return option;
}

hybrid::TypeChoice parse_weight_type(const std::string& text) {
  if (text == "auto") return std::nullopt;
  if (text == "f32") return ops::WeightType::f32;
  if (text == "bf16") return ops::WeightType::bf16;
  if (text == "f16") return ops::WeightType::f16;
  if (text == "fp8") return ops::WeightType::f8_e4m3;
  if (text == "q8") return ops::WeightType::q8;
  if (text == "q4") return ops::WeightType::q4;
  if (text == "q4tp") return ops::WeightType::q4tp;
  fail(ErrorKind::usage, "--type {}: expected auto, f32, bf16, f16, fp8, q8, q4 or q4tp", printable(text));
}

ops::KvType parse_kv_type(const std::string& text, const char* option) {
  if (text == "f32") return ops::KvType::f32;
  if (text == "bf16") return ops::KvType::bf16;
  if (text == "q8") return ops::KvType::q8;
  fail(ErrorKind::usage, "{} {}: expected f32, bf16 or q8", option, printable(text));
}

void ModelArguments::add_model(CLI::App& app, const std::shared_ptr<ModelArguments>& args) {
  app.add_option("-m,--model", args->model, "Model folder (default: the demo model)")->type_name("PATH");
}

void ModelArguments::add_all(CLI::App& app, const std::shared_ptr<ModelArguments>& args) {
  add_model(app, args);
  app.add_option("--type", args->type,
                 "How weights are held: auto (as stored), f32, bf16, f16, fp8, q8, q4, q4tp")
      ->type_name("TYPE")
      ->capture_default_str();
  app.add_option("--threads", args->threads,
                 "Threads to compute with (default: the CPUs this process may use)")
      ->type_name("N");
  app.add_option("--isa", args->isa,
                 "Instruction set: scalar, avx2, avx512, neon (default: the best there is), or reference")
      ->type_name("NAME");
  app.add_option(
         "--activations", args->activations,
         "What inputs of matrix products are rounded to: f32 (not at all), bf16, native (int8 for q8 and q4 "
         "weights, bf16 for bf16 ones), auto (native from a hidden size of 1024 on, else f32)")
      ->type_name("TYPE")
      ->capture_default_str();
  app.add_option("--kv", args->kv, "How keys and values are held: f32, bf16, q8")
      ->type_name("TYPE")
      ->capture_default_str();
  app.add_option("--step-rows", args->step_rows, "Most rows computed in one step: the size of a prompt chunk")
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("-v,--verbose", args->verbose, "Say on stderr what is computed with");
}

std::filesystem::path ModelArguments::folder() const {
  return model.empty() ? demo_folder() : std::filesystem::path(model);
}

decide::LoadOptions ModelArguments::load_options() const {
  decide::LoadOptions options;
  options.type = parse_weight_type(type);
  options.kv = parse_kv_type(kv, "--kv");
  options.runtime.threads = threads;
  if (!isa.empty() && isa != "reference") options.runtime.isa = cpu::parse_instruction_set(isa);
  options.runtime.reference = isa == "reference";
  if (activations == "f32") {
    options.runtime.activations = ops::ActivationType::f32;
  } else if (activations == "bf16") {
    options.runtime.activations = ops::ActivationType::bf16;
  } else if (activations == "native") {
    options.runtime.activations = ops::ActivationType::native;
  } else if (activations != "auto") {
    fail(ErrorKind::usage, "--activations {}: expected auto, f32, bf16 or native", printable(activations));
  }
  constexpr int most_rows = 1 << 16;
  if (step_rows < 1 || step_rows > most_rows) {
    fail(ErrorKind::usage, "--step-rows {}: expected 1 to {}", step_rows, most_rows);
  }
  options.step_rows = step_rows;
  return options;
}

void DraftArguments::add(CLI::App& app, const std::shared_ptr<DraftArguments>& args) {
  app.add_option("--drafter", args->drafter,
                 "Drafter's weights (default: the drafter*.safetensors of the model)")
      ->type_name("FILE");
  app.add_option("--draft-window", args->memory.window, "Newest tokens that drafts see in delta layers")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--draft-sinks", args->memory.sinks, "First tokens that drafts see in delta layers")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--draft-kv", args->kv, "How what drafts see in delta layers is held: f32, bf16, q8")
      ->type_name("TYPE")
      ->capture_default_str();
}

hybrid::DraftMemory DraftArguments::checked_memory() const {
  const auto range = [](const char* flag, std::int64_t value, std::int64_t low) {
    if (value < low || value > decide::max_setting) {
      fail(ErrorKind::usage, "{} {}: expected {} to {}", flag, value, low, decide::max_setting);
    }
  };
  range("--draft-window", memory.window, 1);
  range("--draft-sinks", memory.sinks, 0);
  hybrid::DraftMemory out = memory;
  out.type = parse_kv_type(kv, "--draft-kv");
  return out;
}

void ModelArguments::announce(const std::string& description) const {
  if (verbose || ::isatty(STDERR_FILENO) == 1) complain(description);
}

}  // namespace ponder::cli
