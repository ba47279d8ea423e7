#include "models/hybrid/config.hpp"

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_guard.hpp"

namespace ponder::hybrid {
namespace {

using Json = nlohmann::json;

// Looks fields up in the text model's object first, then at the top level (multimodal configurations keep
// some of them there), and remembers the file for messages.
class Fields {
 public:
  Fields(const Json& inner, const Json& outer, const std::string& where)
      : inner_(inner), outer_(outer), where_(where) {}

  const Json* find(const char* key) const {
    for (const Json* scope : {&inner_, &outer_}) {
      const auto it = scope->find(key);
      if (it != scope->end() && !it->is_null()) return &*it;
    }
    return nullptr;
  }

  void read(const char* key, int& out) const {
    const Json* v = find(key);
    if (v == nullptr) return;
    const bool whole = v->is_number_integer() || v->is_number_unsigned();
    // Larger than any published size by far, small enough that products of two cannot overflow 64 bits.
    constexpr std::int64_t limit = 1 << 26;
    if (!whole || v->get<double>() < 1 || v->get<double>() > limit)
      bad(key, *v, "an integer from 1 to 67108864");
    out = v->get<int>();
  }

  void read(const char* key, double& out) const {
    const Json* v = find(key);
    if (v == nullptr) return;
    if (!v->is_number() || !std::isfinite(v->get<double>()) || v->get<double>() <= 0)
      bad(key, *v, "a positive number");
    out = v->get<double>();
  }

  bool read(const char* key, bool& out) const {
    const Json* v = find(key);
    if (v == nullptr) return false;
    if (!v->is_boolean()) bad(key, *v, "true or false");
    out = v->get<bool>();
    return true;
  }

  [[noreturn]] void bad(const char* key, const Json& got, std::string_view expected) const {
    fail(ErrorKind::bad_file, "{}: {} is {}, expected {}", where_, key, shown(got), expected);
  }

  static std::string shown(const Json& v) {
    if (v.is_structured()) return v.is_array() ? "an array" : "an object";
    return printable(v.dump(-1, ' ', true, Json::error_handler_t::replace), 60);
  }

 private:
  const Json& inner_;
  const Json& outer_;
  const std::string& where_;
};

void read_rope(const Fields& fields, Config& c, const std::string& where) {
  fields.read("rope_theta", c.rope_theta);
  fields.read("partial_rotary_factor", c.partial_rotary_factor);
  const Json* rope = fields.find("rope_parameters");
  if (rope == nullptr || (rope->is_object() && rope->empty())) rope = fields.find("rope_scaling");
  if (rope != nullptr) {
    if (!rope->is_object()) fields.bad("rope_parameters", *rope, "an object");
    const Json none = Json::object();
    const Fields inner(*rope, none, where);
    for (const char* key : {"rope_type", "type"}) {
      const Json* type = inner.find(key);
      if (type == nullptr) continue;
      if (*type != "default") {
        fail(ErrorKind::unsupported, "{}: {} {} is not supported, only \"default\"", where, key,
             Fields::shown(*type));
      }
      break;
    }
    inner.read("rope_theta", c.rope_theta);
    inner.read("partial_rotary_factor", c.partial_rotary_factor);
  }
  if (c.partial_rotary_factor > 1) {
    fail(ErrorKind::bad_file, "{}: partial_rotary_factor is {}, expected at most 1", where,
         c.partial_rotary_factor);
  }
}

void read_layers(const Fields& fields, Config& c, const std::string& where) {
  const Json* types = fields.find("layer_types");
  if (types == nullptr) {
    int every = 4;
    fields.read("full_attention_interval", every);
    for (int i = 0; i < c.num_hidden_layers; ++i) {
      c.layers.push_back((i + 1) % every == 0 ? LayerKind::attention : LayerKind::delta);
    }
    return;
  }
  if (!types->is_array()) fields.bad("layer_types", *types, "an array");
  if (types->size() != static_cast<std::size_t>(c.num_hidden_layers)) {
    fail(ErrorKind::bad_file, "{}: layer_types has {} entries, num_hidden_layers is {}", where, types->size(),
         c.num_hidden_layers);
  }
  for (std::size_t i = 0; i < types->size(); ++i) {
    const Json& type = (*types)[i];
    if (type != "linear_attention" && type != "full_attention") {
      fail(ErrorKind::unsupported,
           "{}: layer_types[{}] is {}, expected \"linear_attention\" or \"full_attention\"", where, i,
           Fields::shown(type));
    }
    c.layers.push_back(type == "full_attention" ? LayerKind::attention : LayerKind::delta);
  }
}

void check_divides(int part, const char* part_name, int whole, const char* whole_name,
                   const std::string& where) {
  if (whole % part != 0) {
    fail(ErrorKind::bad_file, "{}: {} {} is not a multiple of {} {}", where, whole_name, whole, part_name,
         part);
  }
}

// Every derived size (conv_dim, q projection rows) must fit an int.
void check_products(const Config& c, const std::string& where) {
  const auto product = [](std::int64_t a, std::int64_t b) { return a * b; };
  const std::int64_t conv = 2 * product(c.linear_num_key_heads, c.linear_key_head_dim) +
                            product(c.linear_num_value_heads, c.linear_value_head_dim);
  const std::int64_t q = 2 * product(c.num_attention_heads, c.head_dim);
  const std::int64_t kv = product(c.num_key_value_heads, c.head_dim);
  for (const std::int64_t size : {conv, q, kv}) {
    if (size > std::numeric_limits<int>::max() / 64) {
      fail(ErrorKind::bad_file,
           "{}: heads times head sizes give {} features, more than this engine can address", where, size);
    }
  }
}

}  // namespace

Config Config::parse(std::string_view text, const std::string& where) {
  check_json_text(text, where);
  const Json root = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded() || !root.is_object()) {
    fail(ErrorKind::bad_file, "{}: not a JSON object", where);
  }
  const auto nested = root.find("text_config");
  const bool has_nested = nested != root.end() && nested->is_object();
  const Fields fields(has_nested ? *nested : root, root, where);

  Config c;
  fields.read("vocab_size", c.vocab_size);
  fields.read("hidden_size", c.hidden_size);
  fields.read("intermediate_size", c.intermediate_size);
  fields.read("num_hidden_layers", c.num_hidden_layers);
  if (c.num_hidden_layers > 4096) {
    fail(ErrorKind::bad_file, "{}: num_hidden_layers is {}, expected at most 4096", where,
         c.num_hidden_layers);
  }
  fields.read("num_attention_heads", c.num_attention_heads);
  fields.read("num_key_value_heads", c.num_key_value_heads);
  fields.read("head_dim", c.head_dim);
  fields.read("attention_bias", c.attention_bias);
  fields.read("linear_num_key_heads", c.linear_num_key_heads);
  fields.read("linear_num_value_heads", c.linear_num_value_heads);
  fields.read("linear_key_head_dim", c.linear_key_head_dim);
  fields.read("linear_value_head_dim", c.linear_value_head_dim);
  fields.read("linear_conv_kernel_dim", c.linear_conv_kernel_dim);
  fields.read("rms_norm_eps", c.rms_norm_eps);
  c.tie_given = fields.read("tie_word_embeddings", c.tie_word_embeddings);
  if (const Json* act = fields.find("hidden_act"); act != nullptr && *act != "silu") {
    fail(ErrorKind::unsupported, "{}: hidden_act {} is not supported, only \"silu\"", where,
         Fields::shown(*act));
  }
  read_rope(fields, c, where);
  read_layers(fields, c, where);
  check_divides(c.num_key_value_heads, "num_key_value_heads", c.num_attention_heads, "num_attention_heads",
                where);
  check_divides(c.linear_num_key_heads, "linear_num_key_heads", c.linear_num_value_heads,
                "linear_num_value_heads", where);
  check_products(c, where);
  if (c.linear_conv_kernel_dim > 64) {
    fail(ErrorKind::bad_file, "{}: linear_conv_kernel_dim is {}, expected at most 64", where,
         c.linear_conv_kernel_dim);
  }
  return c;
}

}  // namespace ponder::hybrid
