// ponder convert: a model folder rewritten with quantised weights, packed as the kernels read them, so that
// loading it is mapping it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/format_bytes.hpp"
#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "decide/decision_model.hpp"
#include "decide/json_write.hpp"
#include "formats/safetensors.hpp"
#include "models/hybrid/convert.hpp"

namespace ponder::cli {
namespace {

using decide::Object;
using decide::Value;

namespace fs = std::filesystem;

// Tensors of one output file wait in memory until it is written.
constexpr std::uint64_t kShardBytes = std::uint64_t{1} << 30U;

struct ConvertArguments {
  std::string source, output, type = "q4";
  std::optional<std::int64_t> threads;
  bool json = false;
};

struct Part {
  std::uint64_t bytes = 0;
  ops::QuantizationError error;
};

class Conversion {
 public:
  explicit Conversion(const ConvertArguments& args)
      : args_(args),
        type_(parse_weight_type(args.type)),
        source_(args.source),
        target_(args.output),
        progress_(::isatty(STDERR_FILENO) == 1) {
    if (!type_ || !ops::is_quantized(*type_)) {
      fail(ErrorKind::usage, "--type {}: expected q8, q4 or q4tp", printable(args.type));
    }
    std::error_code ec;
    if (fs::exists(target_, ec) && (!fs::is_directory(target_, ec) || !fs::is_empty(target_, ec))) {
      fail(ErrorKind::invalid_input, "--output {}: exists already, expected a folder that is new or empty",
           target_.string());
    }
  }

  void run() {
    const auto files = decide::BackboneFiles::open(source_);
    engine::RuntimeOptions runtime;
    runtime.threads = args_.threads;
    const auto backend = engine::make_backend(runtime);
    const auto tensors = hybrid::plan_conversion(files.config, files.checkpoint, *backend, *type_);
    for (const hybrid::ConvertedTensor& tensor : tensors) total_ += tensor.bytes;
    std::error_code ec;
    fs::create_directories(target_, ec);
    if (ec) fail(ErrorKind::bad_file, "{}: cannot be created: {}", target_.string(), ec.message());
    write_weights(tensors);
    copy_others();  // config.json among them, last: a folder without it is no model
    files.checkpoint.check_unchanged();
    if (progress_) complain("");
  }

  std::string text() const {
    std::string out = fmt::format("{}: {} in {} file{}, {}\n", target_.string(), format_bytes(total_),
                                  shards_, shards_ == 1 ? "" : "s", ops::weight_type_name(*type_));
    for (const auto& [name, part] : parts_) {
      out += fmt::format("{:<10} {:>10}  relative error {:.3g}\n", name, format_bytes(part.bytes),
                         part.error.relative());
    }
    return out;
  }

  Value json() const {
    Object parts;
    for (const auto& [name, part] : parts_) {
      Object one;
      one.append("bytes", static_cast<std::int64_t>(part.bytes));
      one.append("relative_error", part.error.relative());
      parts.append(name, std::move(one));
    }
    Object out;
    out.append("output", target_.string());
    out.append("type", std::string(ops::weight_type_name(*type_)));
    out.append("bytes", static_cast<std::int64_t>(total_));
    out.append("files", static_cast<std::int64_t>(shards_));
    out.append("parts", std::move(parts));
    return out;
  }

 private:
  using Tensors = std::vector<hybrid::ConvertedTensor>;

  // [begin, end) of each output file.
  static std::vector<std::pair<std::size_t, std::size_t>> shards_of(const Tensors& tensors) {
    std::vector<std::pair<std::size_t, std::size_t>> out{{0, 0}};
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (bytes > 0 && bytes + tensors[i].bytes > kShardBytes) {
        out.emplace_back(i, i);
        bytes = 0;
      }
      bytes += tensors[i].bytes;
      out.back().second = i + 1;
    }
    return out;
  }

  void write_weights(const Tensors& tensors) {
    const auto shards = shards_of(tensors);
    shards_ = shards.size();
    Object weight_map;
    for (std::size_t s = 0; s < shards.size(); ++s) {
      const std::string name = shards.size() == 1
                                   ? "model.safetensors"
                                   : fmt::format("model-{:05}-of-{:05}.safetensors", s + 1, shards.size());
      write_shard(tensors, shards[s], name);
      for (std::size_t i = shards[s].first; i < shards[s].second; ++i)
        weight_map.append(tensors[i].name, name);
    }
    if (shards.size() == 1) return;
    Object metadata, index;
    metadata.append("total_size", static_cast<std::int64_t>(total_));
    index.append("metadata", std::move(metadata));
    index.append("weight_map", std::move(weight_map));
    write_text("model.safetensors.index.json", decide::write_json(Value(std::move(index))));
  }

  void write_shard(const Tensors& tensors, std::pair<std::size_t, std::size_t> range,
                   const std::string& name) {
    std::vector<hybrid::ConvertedTensor::Content> contents;
    std::vector<formats::TensorData> data;
    for (std::size_t i = range.first; i < range.second; ++i) {
      const hybrid::ConvertedTensor& tensor = tensors[i];
      contents.push_back(tensor.make());
      data.push_back({tensor.name, tensor.dtype, tensor.shape, contents.back().bytes});
      if (!tensor.part.empty()) {
        Part& part = parts_[tensor.part];
        part.bytes += tensor.bytes;
        part.error.difference += contents.back().error.difference;
        part.error.value += contents.back().error.value;
      }
      done_ += tensor.bytes;
      if (progress_)
        fmt::print(stderr, "\r{:3}%  {:<60.60}", done_ * 100 / std::max<std::uint64_t>(total_, 1),
                   tensor.name);
    }
    const std::map<std::string, std::string> metadata{{"format", "pt"}, {"ponder.packed", "16x32"}};
    formats::write_safetensors(target_ / name, data, metadata, formats::TensorOrder::as_given);
  }

  void write_text(const std::string& name, const std::string& text) {
    std::ofstream out(target_ / name, std::ios::binary);
    out << text << '\n';
    out.close();
    if (!out) fail(ErrorKind::bad_file, "{}: cannot be written", (target_ / name).string());
  }

  // Everything in the folder that is not the backbone's weights: configuration, tokenizer, head, drafters.
  void copy_others() {
    std::vector<fs::path> others;
    for (const fs::directory_entry& entry : fs::directory_iterator(source_)) {
      const std::string name = entry.path().filename().string();
      const bool weights = name.ends_with(".safetensors") && !name.starts_with("drafter");
      if (!entry.is_regular_file() || weights || name == "model.safetensors.index.json") continue;
      others.push_back(entry.path());
    }
    std::sort(others.begin(), others.end(), [](const fs::path& a, const fs::path& b) {
      return std::pair(a.filename() == "config.json", a) < std::pair(b.filename() == "config.json", b);
    });
    for (const fs::path& from : others) {
      std::error_code ec;
      fs::copy_file(from, target_ / from.filename(), ec);
      if (ec) fail(ErrorKind::bad_file, "{}: cannot be copied: {}", from.string(), ec.message());
    }
  }

  const ConvertArguments& args_;
  hybrid::TypeChoice type_;
  fs::path source_, target_;
  bool progress_;
  std::uint64_t total_ = 0, done_ = 0;
  std::size_t shards_ = 0;
  std::map<std::string, Part> parts_;
};

}  // namespace

Action add_convert(CLI::App& app) {
  const auto args = std::make_shared<ConvertArguments>();
  app.add_option("source", args->source, "Model folder")->type_name("FOLDER")->required();
  app.add_option("-o,--output", args->output, "New folder to write")->type_name("FOLDER")->required();
  app.add_option("--type", args->type, "q8, q4 or q4tp")->type_name("TYPE")->capture_default_str();
  app.add_option("--threads", args->threads,
                 "Threads to compute with (default: the CPUs this process may use)")
      ->type_name("N");
  app.add_flag("--json", args->json, "Report as JSON");
  return [args] {
    Conversion conversion(*args);
    conversion.run();
    print(args->json ? decide::write_json(conversion.json()) + "\n" : conversion.text());
    return 0;
  };
}

}  // namespace ponder::cli
