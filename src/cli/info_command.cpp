// ponder info: what a model folder is, without loading its weights.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/format_bytes.hpp"
#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cpu/kv_page.hpp"
#include "decide/decision_model.hpp"
#include "decide/json_write.hpp"
#include "formats/safetensors.hpp"

namespace ponder::cli {
namespace {

using decide::Array;
using decide::Object;
using decide::Value;
using decide::whole;

struct InfoArguments {
  std::shared_ptr<ModelArguments> model = std::make_shared<ModelArguments>();
  bool json = false;
};

struct TypeTotal {
  std::uint64_t tensors = 0, elements = 0, bytes = 0;
};

constexpr std::pair<const char*, ops::KvType> kKvTypes[] = {
    {"f32", ops::KvType::f32}, {"bf16", ops::KvType::bf16}, {"q8", ops::KvType::q8}};

// A drafter beside the model.
struct DrafterFile {
  std::filesystem::path path;
  std::uint64_t tensors = 0, bytes = 0;
};

DrafterFile look_at_drafter(const std::filesystem::path& path) {
  DrafterFile out{path};
  for (const formats::TensorView& tensor : formats::open_safetensors(path)) {
    ++out.tensors;
    out.bytes += tensor.bytes.size();
  }
  return out;
}

class Info {
 public:
  explicit Info(const std::filesystem::path& folder)
      : files_(decide::BackboneFiles::open(folder)),
        needs_(hybrid::estimate_memory(files_.config, files_.checkpoint, {})) {
    for (const formats::TensorView& tensor : files_.checkpoint) {
      TypeTotal& total = types_[std::string(dtype_name(tensor.dtype))];
      ++total.tensors;
      total.elements += static_cast<std::uint64_t>(formats::element_count(tensor));
      total.bytes += tensor.bytes.size();
    }
    std::error_code ec;
    if (std::filesystem::exists(folder / "export.json", ec)) {
      export_ = decide::ExportInfo::load(folder / "export.json");
    }
    for (const auto& path : formats::find_drafters(folder)) drafters_.push_back(look_at_drafter(path));
  }

  Value json() const {
    Object out;
    out.append("kind", "hybrid");
    out.append("path", files_.folder.string());
    out.append("config", config());
    out.append("weights", weights());
    out.append("memory", memory());
    out.append("decision", decision());
    return out;
  }

  std::string text() const {
    const hybrid::Config& c = files_.config;
    std::string out =
        fmt::format("{}: hybrid model, {} layers ({} delta, {} attention), hidden {}, vocabulary {}\n",
                    printable(files_.folder.string(), 4000), c.num_hidden_layers, delta_layers(),
                    attention_layers(), c.hidden_size, c.vocab_size);
    out +=
        fmt::format("attention  {} heads of {}, {} key/value heads, rotary on {} with theta {}\n",
                    c.num_attention_heads, c.head_dim, c.num_key_value_heads, c.rotary_dim(), c.rope_theta);
    out += fmt::format("delta      {} key heads of {}, {} value heads of {}, convolution over {}\n",
                       c.linear_num_key_heads, c.linear_key_head_dim, c.linear_num_value_heads,
                       c.linear_value_head_dim, c.linear_conv_kernel_dim);
    out +=
        fmt::format("mlp        {}{}\n", c.intermediate_size, tied() ? ", head tied to the embedding" : "");
    for (const auto& [name, total] : types_) {
      out += fmt::format("weights    {}: {} tensors, {} numbers, {}\n", name, total.tensors, total.elements,
                         format_bytes(total.bytes));
    }
    for (const formats::FileInfo& file : files_.checkpoint.files()) {
      out += fmt::format("file       {} ({}, {} tensors)\n", printable(file.path, 4000),
                         format_bytes(file.bytes), file.tensors);
    }
    out += fmt::format("memory     {} of matrices mapped, {} a sequence besides keys and values\n",
                       format_bytes(needs_.mapped), format_bytes(recurrent_bytes()));
    std::string kv;
    for (const auto& [name, type] : kKvTypes) {
      kv += fmt::format("{}{} in {}", kv.empty() ? "" : ", ", format_bytes(kv_bytes_per_token(type)), name);
    }
    out += fmt::format("kv         {} a token\n", kv);
    if (export_) {
      out += fmt::format("decision   format {}, temperature {}{}\n", export_->format, export_->temperature,
                         export_->head_dim != 0 ? fmt::format(", head of {}", export_->head_dim) : "");
    }
    for (const DrafterFile& file : drafters_) {
      out += fmt::format("drafter    {} ({} tensors, {})\n", printable(file.path.string(), 4000),
                         file.tensors, format_bytes(file.bytes));
    }
    if (!drafters_.empty()) {
      out += fmt::format(
          "drafts     {} a token in {}, for the newest {} and the first {}; as published {}, for every "
          "token\n",
          format_bytes(draft_bytes_per_token()), name_of(memory_.type), memory_.window, memory_.sinks,
          format_bytes(published_draft_bytes_per_token()));
    }
    return out;
  }

 private:
  int attention_layers() const {
    return static_cast<int>(
        std::count(files_.config.layers.begin(), files_.config.layers.end(), hybrid::LayerKind::attention));
  }
  int delta_layers() const { return files_.config.num_hidden_layers - attention_layers(); }
  bool tied() const { return !files_.checkpoint.contains("lm_head.weight"); }

  static const char* name_of(ops::KvType type) {
    for (const auto& [name, kv] : kKvTypes) {
      if (kv == type) return name;
    }
    return "";
  }
  static std::uint64_t bytes_per_token(int layers, const ops::KvShape& shape) {
    const std::int64_t page = cpu::KvPageLayout(shape).head_bytes * shape.heads;
    return static_cast<std::uint64_t>(layers) * static_cast<std::uint64_t>(page / ops::kPageRows);
  }
  std::uint64_t kv_bytes_per_token(ops::KvType type) const {
    ops::KvShape shape = files_.config.kv_shape();
    shape.type = type;
    return bytes_per_token(attention_layers(), shape);
  }
  std::uint64_t draft_bytes_per_token() const {
    return bytes_per_token(delta_layers(), hybrid::draft_kv_shape(files_.config, memory_.type));
  }
  // Keys repeated for every value head, keys and values in 16 bits, and every token kept.
  std::uint64_t published_draft_bytes_per_token() const {
    return static_cast<std::uint64_t>(delta_layers()) *
           static_cast<std::uint64_t>(files_.config.value_dim()) * 2 * sizeof(std::uint16_t);
  }
  std::uint64_t recurrent_bytes() const {
    const hybrid::Config& c = files_.config;
    const std::uint64_t conv = static_cast<std::uint64_t>(c.linear_conv_kernel_dim - 1 + ops::kHeldRows) *
                               static_cast<std::uint64_t>(c.conv_dim());
    return static_cast<std::uint64_t>(delta_layers()) *
           (ops::DeltaStateLayout(c.delta_shape()).floats + conv) * sizeof(float);
  }

  Value config() const {
    const hybrid::Config& c = files_.config;
    Array layers;
    for (const hybrid::LayerKind kind : c.layers) {
      layers.emplace_back(kind == hybrid::LayerKind::attention ? "full_attention" : "linear_attention");
    }
    Object o;
    o.append("vocab_size", c.vocab_size);
    o.append("hidden_size", c.hidden_size);
    o.append("intermediate_size", c.intermediate_size);
    o.append("num_hidden_layers", c.num_hidden_layers);
    o.append("layer_types", std::move(layers));
    o.append("num_attention_heads", c.num_attention_heads);
    o.append("num_key_value_heads", c.num_key_value_heads);
    o.append("head_dim", c.head_dim);
    o.append("attention_bias", c.attention_bias);
    o.append("linear_num_key_heads", c.linear_num_key_heads);
    o.append("linear_num_value_heads", c.linear_num_value_heads);
    o.append("linear_key_head_dim", c.linear_key_head_dim);
    o.append("linear_value_head_dim", c.linear_value_head_dim);
    o.append("linear_conv_kernel_dim", c.linear_conv_kernel_dim);
    o.append("rms_norm_eps", c.rms_norm_eps);
    o.append("rope_theta", c.rope_theta);
    o.append("partial_rotary_factor", c.partial_rotary_factor);
    o.append("rotary_dim", c.rotary_dim());
    o.append("key_dim", c.key_dim());
    o.append("value_dim", c.value_dim());
    o.append("conv_dim", c.conv_dim());
    o.append("tie_word_embeddings", tied());
    return o;
  }

  Value weights() const {
    Object types;
    for (const auto& [name, total] : types_) {
      Object o;
      o.append("tensors", whole(total.tensors));
      o.append("elements", whole(total.elements));
      o.append("bytes", whole(total.bytes));
      types.append(name, std::move(o));
    }
    Array files;
    for (const formats::FileInfo& file : files_.checkpoint.files()) {
      Object o;
      o.append("path", file.path);
      o.append("format", file.format);
      o.append("bytes", whole(file.bytes));
      o.append("tensors", whole(file.tensors));
      files.emplace_back(std::move(o));
    }
    Object out;
    out.append("types", std::move(types));
    out.append("files", std::move(files));
    return out;
  }

  Value memory() const {
    Object o;
    o.append("matrix_bytes", whole(needs_.mapped));
    o.append("kv_bytes_per_token", whole(kv_bytes_per_token(files_.config.kv_type)));
    Object by_type;
    for (const auto& [name, type] : kKvTypes) by_type.append(name, whole(kv_bytes_per_token(type)));
    o.append("kv_bytes_per_token_by_type", std::move(by_type));
    o.append("recurrent_bytes_per_sequence", whole(recurrent_bytes()));
    return o;
  }

  Value decision() const {
    if (!export_) return nullptr;
    Array drafters;
    for (const DrafterFile& file : drafters_) {
      Object d;
      d.append("path", file.path.string());
      d.append("tensors", whole(file.tensors));
      d.append("bytes", whole(file.bytes));
      drafters.emplace_back(std::move(d));
    }
    Object o;
    o.append("format", export_->format);
    o.append("temperature", export_->temperature);
    o.append("head_dim", export_->head_dim);
    o.append("precision", export_->precision.empty() ? Value() : Value(export_->precision));
    o.append("drafters", std::move(drafters));
    if (!drafters_.empty()) o.append("draft_memory", draft_memory());
    return o;
  }

  Value draft_memory() const {
    Object o;
    o.append("window", memory_.window);
    o.append("sinks", memory_.sinks);
    o.append("type", name_of(memory_.type));
    o.append("bytes_per_token", whole(draft_bytes_per_token()));
    o.append("published_bytes_per_token", whole(published_draft_bytes_per_token()));
    return o;
  }

  decide::BackboneFiles files_;
  hybrid::MemoryNeeds needs_;
  hybrid::DraftMemory memory_;  // the defaults
  std::map<std::string, TypeTotal> types_;
  std::optional<decide::ExportInfo> export_;
  std::vector<DrafterFile> drafters_;
};

}  // namespace

Action add_info(CLI::App& app) {
  auto args = std::make_shared<InfoArguments>();
  ModelArguments::add_model(app, args->model);
  app.add_option("path", args->model->model, "Model folder, as --model")->type_name("PATH");
  app.add_flag("--json", args->json, "Print JSON");
  return [args] {
    const Info info(args->model->folder());
    print(args->json ? decide::write_json(info.json(), 2) + "\n" : info.text());
    return 0;
  };
}

}  // namespace ponder::cli
