#include "decide/decision_model.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include "base/error.hpp"
#include "decide/json_value.hpp"
#include "formats/safetensors.hpp"
#include "formats/torch_pickle.hpp"

namespace ponder::decide {
namespace {

constexpr std::string_view kFormat = "markers-v3-plainchains";
constexpr std::size_t kLargestJson = std::size_t{16} << 20;

std::string read_small_file(const std::filesystem::path& path) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec)) {
    fail(ErrorKind::bad_file, "{}: {}", path.string(),
         std::filesystem::exists(path, ec) ? "not a file" : "not found");
  }
  const auto size = std::filesystem::file_size(path, ec);
  if (ec || size > kLargestJson) {
    fail(ErrorKind::bad_file, "{}: {} bytes, expected at most {}", path.string(), size, kLargestJson);
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(size), '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(size))) {
    fail(ErrorKind::bad_file, "{}: cannot be read", path.string());
  }
  return text;
}

std::optional<double> number(const Object& object, const char* key, const std::string& where) {
  const Value* v = object.find(key);
  if (v == nullptr || v->is_null()) return std::nullopt;
  if (const double* d = v->if_double()) return *d;
  if (const std::int64_t* i = v->if_integer()) return static_cast<double>(*i);
  fail(ErrorKind::bad_file, "{}: {} is not a number", where, key);
}

std::string text(const Object& object, const char* key, const std::string& otherwise,
                 const std::string& where) {
  const Value* v = object.find(key);
  if (v == nullptr || v->is_null()) return otherwise;
  if (const std::string* s = v->if_string()) return *s;
  fail(ErrorKind::bad_file, "{}: {} is not a string", where, key);
}

}  // namespace

ExportInfo ExportInfo::load(const std::filesystem::path& file) {
  const std::string where = file.string();
  Value root;
  try {
    root = parse_json(read_small_file(file));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::bad_file) throw;
    fail(ErrorKind::bad_file, "{}: {}", where, error.what());
  }
  const Object* object = root.if_object();
  if (object == nullptr) fail(ErrorKind::bad_file, "{}: not a JSON object", where);
  ExportInfo info;
  info.temperature = number(*object, "temperature", where).value_or(1.0);
  if (!std::isfinite(info.temperature) || info.temperature <= 0 || !std::isfinite(1 / info.temperature)) {
    fail(ErrorKind::bad_file, "{}: temperature is {}, expected a positive number", where, info.temperature);
  }
  const double head_dim = number(*object, "head_dim", where).value_or(0);
  if (head_dim < 0 || head_dim > 1 << 20 || head_dim != std::floor(head_dim)) {
    fail(ErrorKind::bad_file, "{}: head_dim is {}, expected a positive integer", where, head_dim);
  }
  info.head_dim = static_cast<int>(head_dim);
  info.format = text(*object, "format", info.format, where);
  if (info.format != kFormat) {
    fail(ErrorKind::unsupported, "{}: format \"{}\" is not supported, only \"{}\"", where,
         printable(info.format), kFormat);
  }
  info.precision = text(*object, "precision", "", where);
  if (!info.precision.empty() && info.precision != "bf16" && info.precision != "fp8") {
    fail(ErrorKind::unsupported, "{}: precision \"{}\" is not supported, only \"bf16\" and \"fp8\"", where,
         printable(info.precision));
  }
  return info;
}

BackboneFiles BackboneFiles::open(const std::filesystem::path& folder) {
  std::error_code ec;
  if (!std::filesystem::is_directory(folder, ec)) {
    fail(ErrorKind::bad_file, "{}: {}", folder.string(),
         std::filesystem::exists(folder, ec) ? "not a model folder" : "no such model folder");
  }
  const std::filesystem::path config = folder / "config.json";
  return {folder, hybrid::Config::parse(read_small_file(config), config.string()),
          formats::open_model_folder(folder)};
}

std::optional<std::filesystem::path> choose_drafter(const std::filesystem::path& folder,
                                                    const LoadOptions& options) {
  if (options.drafter) {
    return options.drafter->empty() ? std::nullopt : options.drafter;
  }
  const std::vector<std::filesystem::path> found = formats::find_drafters(folder);
  if (found.empty()) return std::nullopt;
  if (found.size() > 1) {
    fail(ErrorKind::bad_file, "{}: holds {} drafters ({}, {}), expected one: name one with --drafter",
         folder.string(), found.size(), found[0].filename().string(), found[1].filename().string());
  }
  return found.front();
}

namespace {

// Bytes of a sequence's pages of `page_bytes` that hold `tokens` tokens.
std::uint64_t page_memory(std::size_t page_bytes, std::int64_t tokens) {
  return static_cast<std::uint64_t>(tokens / ops::kPageRows + 2) * page_bytes;
}

}  // namespace

std::unique_ptr<engine::Engine> load_backbone(const BackboneFiles& files, const LoadOptions& options,
                                              int sequences, std::int64_t tokens,
                                              const std::optional<std::filesystem::path>& drafter) {
  hybrid::MemoryNeeds needs = hybrid::estimate_memory(files.config, files.checkpoint, options.type);
  std::optional<formats::Checkpoint> drafts;
  if (drafter) {
    drafts = formats::open_safetensors(*drafter);
    const hybrid::MemoryNeeds more = hybrid::estimate_drafter_memory(files.config, *drafts, options.type);
    needs.mapped += more.mapped;
    needs.allocated += more.allocated;
    needs.largest_unpacked = std::max(needs.largest_unpacked, more.largest_unpacked);
  }
  const MemoryBudget budget = detect_memory_budget(options.memory);
  const std::string what = "model " + files.folder.string();
  require_memory(budget, needs.mapped, needs.allocated + needs.largest_unpacked, what);

  engine::RuntimeOptions runtime = options.runtime;
  runtime.activations = engine::choose_activations(runtime, files.config.hidden_size);
  const std::shared_ptr<ops::Backend> backend = engine::make_backend(runtime);
  hybrid::Config config = files.config;
  config.kv_type = options.kv;
  hybrid::Weights weights = hybrid::load_weights(config, files.checkpoint, *backend, options.type);
  hybrid::Drafter loaded;
  if (drafts) loaded = hybrid::load_drafter(config, *drafts, *backend, options.type);
  auto model = std::make_unique<hybrid::HybridModel>(config, std::move(weights), std::move(loaded),
                                                     options.draft_memory, backend, options.step_rows);
  const models::StateLayout& state = model->state_layout();
  // A sequence may hold a state of its own and a fork to read out from; the two share their full pages.
  std::uint64_t states =
      (2 * static_cast<std::uint64_t>(sequences) + 1) * state.recurrent_floats * sizeof(float);
  if (drafts) {
    const std::int64_t seen = state.draft_window + state.draft_sinks + options.step_rows;
    states +=
        static_cast<std::uint64_t>(sequences) * page_memory(state.draft_page_bytes, std::min(tokens, seen));
  }
  const std::uint64_t one_sequence = page_memory(state.page_bytes, tokens);
  require_memory(budget, needs.mapped, needs.allocated + states + one_sequence,
                 fmt::format("{} with the states of {} questions and {} tokens", what, sequences, tokens));
  // Whatever else is free may go to keys and values; past that a request fails, not the process.
  engine::Options limits;
  const std::uint64_t used = needs.allocated + states;
  limits.cache_limit_bytes =
      std::min(budget.available - used, budget.total - std::min(budget.total, needs.mapped + used));
  return std::make_unique<engine::Engine>(std::move(model), limits);
}

DecisionModel::DecisionModel(BackboneFiles files, ExportInfo info, hybrid::PointerHead head, Encoder encoder)
    : name_(std::filesystem::absolute(files.folder).lexically_normal().filename().string()),
      files_(std::move(files)),
      info_(std::move(info)),
      head_(std::move(head)),
      encoder_(std::move(encoder)) {
  if (name_.empty()) {  // a path that ends in a slash
    name_ = std::filesystem::absolute(files_.folder).lexically_normal().parent_path().filename().string();
  }
}

std::unique_ptr<DecisionModel> DecisionModel::load(const std::filesystem::path& folder,
                                                   const LoadOptions& options) {
  BackboneFiles files = BackboneFiles::open(folder);
  ExportInfo info = ExportInfo::load(folder / "export.json");
  hybrid::PointerHead head(formats::load_torch_state_dict(folder / "head.pt"), files.config.hidden_size,
                           info.temperature);
  if (info.head_dim != 0 && info.head_dim != head.head_dim()) {
    fail(ErrorKind::bad_file, "{}: head_dim is {}, but head.pt has {}", (folder / "export.json").string(),
         info.head_dim, head.head_dim());
  }
  Encoder encoder(folder);
  if (encoder.tokenizer().vocab_size() > files.config.vocab_size) {
    fail(ErrorKind::bad_file, "{}: the tokenizer has ids up to {}, the model only {} rows", folder.string(),
         encoder.tokenizer().vocab_size() - 1, files.config.vocab_size);
  }
  std::unique_ptr<DecisionModel> model(
      new DecisionModel(std::move(files), std::move(info), std::move(head), std::move(encoder)));
  model->engine_ = load_backbone(model->files_, options, options.limits.max_rows, options.limits.max_len,
                                 choose_drafter(folder, options));
  model->answerer_ =
      std::make_unique<Answerer>(*model->engine_, model->encoder_, model->head_, options.limits);
  return model;
}

std::string DecisionModel::describe() const {
  return dynamic_cast<hybrid::HybridModel&>(engine_->model()).backend().describe();
}

}  // namespace ponder::decide
