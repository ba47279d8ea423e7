#include "text/tokenizer_file.hpp"

#include <initializer_list>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "text/splitter.hpp"
#include "text/tokenizer_json.hpp"

namespace ponder::text {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxSteps = 16;

// One object of the file with the path to it, for messages.
class Node {
 public:
  Node(const json& value, std::string path) : value_(value), path_(std::move(path)) {
    if (!value_.is_object()) fail(ErrorKind::bad_file, "{}: expected an object", path_);
  }

  const std::string& path() const { return path_; }
  const json& get(const char* key) const {
    static const json null;
    const auto it = value_.find(key);
    return it == value_.end() ? null : *it;
  }
  bool has(const char* key) const { return !get(key).is_null(); }
  std::string at(const char* key) const { return path_ + "." + key; }

  bool flag(const char* key, bool missing) const {
    const json& v = get(key);
    if (v.is_null()) return missing;
    if (!v.is_boolean()) fail(ErrorKind::bad_file, "{}: expected true or false", at(key));
    return v.get<bool>();
  }

  const std::string& text(const char* key) const {
    const json& v = get(key);
    if (!v.is_string()) fail(ErrorKind::bad_file, "{}: expected a string", at(key));
    return v.get_ref<const std::string&>();
  }

  const json& array(const char* key) const {
    const json& v = get(key);
    if (!v.is_array()) fail(ErrorKind::bad_file, "{}: expected an array", at(key));
    return v;
  }

  // What is not in the list could change the result in a way this reader does not know.
  void only(std::initializer_list<std::string_view> keys) const {
    for (const auto& item : value_.items()) {
      bool known = false;
      for (const std::string_view key : keys) known = known || key == item.key();
      if (!known) fail(ErrorKind::unsupported, "{}: \"{}\" is not handled", path_, printable(item.key()));
    }
  }

  [[noreturn]] void refuse_type(std::string_view what) const {
    fail(ErrorKind::unsupported, "{}: {} of type \"{}\" is not handled", path_, what,
         printable(text("type")));
  }

 private:
  const json& value_;
  std::string path_;
};

std::vector<Node> nodes_of(const Node& parent, const char* key) {
  std::vector<Node> nodes;
  std::size_t i = 0;
  for (const json& item : parent.array(key))
    nodes.emplace_back(item, fmt::format("{}[{}]", parent.at(key), i++));
  return nodes;
}

std::int32_t id_of(const json& v, const std::string& path) {
  if (!v.is_number_unsigned() || v.get<std::uint64_t>() >= INT32_MAX) {
    fail(ErrorKind::bad_file, "{}: expected a token id, a whole number from 0 to {}", path, INT32_MAX - 1);
  }
  return static_cast<std::int32_t>(v.get<std::uint64_t>());
}

AddedToken added_token(const Node& node, std::int32_t id) {
  AddedToken t;
  t.id = id;
  t.content = node.text("content");
  t.special = node.flag("special", false);
  t.normalized = node.flag("normalized", !t.special);
  t.lstrip = node.flag("lstrip", false);
  t.rstrip = node.flag("rstrip", false);
  t.single_word = node.flag("single_word", false);
  return t;
}

// ------------------------------------------------------------------ normalizer

void read_normalizer(const Node& node, NormalForm& form, int depth) {
  const std::string& type = node.text("type");
  if (type == "Sequence" && depth == 0) {
    node.only({"type", "normalizers"});
    for (const Node& part : nodes_of(node, "normalizers")) read_normalizer(part, form, depth + 1);
    return;
  }
  node.only({"type"});
  NormalForm found = NormalForm::none;
  if (type == "NFC") found = NormalForm::nfc;
  if (type == "NFD") found = NormalForm::nfd;
  if (type == "NFKC") found = NormalForm::nfkc;
  if (type == "NFKD") found = NormalForm::nfkd;
  if (found == NormalForm::none) node.refuse_type("a normalizer");
  if (form != NormalForm::none && form != found) {
    fail(ErrorKind::unsupported, "{}: a sequence of different normalization forms is not handled",
         node.path());
  }
  form = found;
}

// ------------------------------------------------------------------ pre_tokenizer

SplitStep split_step(const Node& node) {
  node.only({"type", "pattern", "behavior", "invert"});
  const std::string& behavior = node.text("behavior");
  if (behavior != "Isolated") {
    fail(ErrorKind::unsupported, "{}: behavior \"{}\" is not handled; only \"Isolated\" is", node.path(),
         printable(behavior));
  }
  if (node.flag("invert", false)) fail(ErrorKind::unsupported, "{}: invert is not handled", node.path());
  const Node pattern(node.get("pattern"), node.at("pattern"));
  pattern.only({"Regex", "String"});
  if (pattern.has("Regex") == pattern.has("String")) {
    fail(ErrorKind::bad_file, "{}: expected either Regex or String", pattern.path());
  }
  return pattern.has("Regex") ? SplitStep{pattern.text("Regex"), false}
                              : SplitStep{pattern.text("String"), true};
}

// Appends the steps of one pre-tokenizer; returns true for ByteLevel, which must be there once and come last.
bool read_pre_tokenizer(const Node& node, std::vector<SplitStep>& steps) {
  const std::string& type = node.text("type");
  if (type == "Split") {
    steps.push_back(split_step(node));
    return false;
  }
  if (type == "Digits") {
    node.only({"type", "individual_digits"});
    steps.push_back({node.flag("individual_digits", false) ? "\\p{N}" : "\\p{N}+", false});
    return false;
  }
  if (type != "ByteLevel") node.refuse_type("a pre-tokenizer");
  node.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (node.flag("add_prefix_space", true)) {
    fail(ErrorKind::unsupported, "{}: add_prefix_space is not handled", node.path());
  }
  if (node.flag("use_regex", true)) steps.push_back({std::string(kByteLevelPattern), false});
  return true;
}

void read_pre_tokenizers(const Node& node, std::vector<SplitStep>& steps) {
  bool bytes = false;
  if (node.text("type") != "Sequence") {
    bytes = read_pre_tokenizer(node, steps);
  } else {
    node.only({"type", "pretokenizers"});
    for (const Node& part : nodes_of(node, "pretokenizers")) {
      if (bytes)
        fail(ErrorKind::unsupported, "{}: a pre-tokenizer behind ByteLevel is not handled", part.path());
      bytes = read_pre_tokenizer(part, steps);
      if (steps.size() > kMaxSteps) fail(ErrorKind::too_large, "{}: over {} steps", node.path(), kMaxSteps);
    }
  }
  if (!bytes) {
    fail(ErrorKind::unsupported, "{}: no ByteLevel at the end; only byte-level BPE is handled", node.path());
  }
}

// ------------------------------------------------------------------ decoder, post_processor

void check_decoder(const Node& node, int depth) {
  const std::string& type = node.text("type");
  if (type == "Sequence" && depth == 0) {
    node.only({"type", "decoders"});
    const std::vector<Node> parts = nodes_of(node, "decoders");
    if (parts.size() != 1)
      fail(ErrorKind::unsupported, "{}: {} decoders; one is handled", node.path(), parts.size());
    return check_decoder(parts[0], depth + 1);
  }
  if (type != "ByteLevel") node.refuse_type("a decoder");
}

void read_template(const Node& node, TokenizerSpec& spec) {
  node.only({"type", "single", "pair", "special_tokens"});
  bool behind = false;
  for (const Node& part : nodes_of(node, "single")) {
    if (part.has("Sequence")) {
      if (behind) fail(ErrorKind::unsupported, "{}: the text stands in it twice", node.path());
      behind = true;
      continue;
    }
    const Node special(part.get("SpecialToken"), part.at("SpecialToken"));
    const std::string& name = special.text("id");
    const Node tokens(node.get("special_tokens"), node.at("special_tokens"));
    const Node token(tokens.get(name.c_str()), tokens.at(printable(name).c_str()));
    for (const json& id : token.array("ids")) {
      (behind ? spec.suffix : spec.prefix).push_back(id_of(id, token.at("ids")));
    }
  }
  if (!behind) fail(ErrorKind::bad_file, "{}: the text does not stand in it", node.path());
}

void read_post_processor(const Node& node, TokenizerSpec& spec, int depth) {
  const std::string& type = node.text("type");
  if (type == "Sequence" && depth == 0) {
    node.only({"type", "processors"});
    for (const Node& part : nodes_of(node, "processors")) read_post_processor(part, spec, depth + 1);
    return;
  }
  if (type == "ByteLevel") return;  // moves offsets, not ids
  if (type != "TemplateProcessing") node.refuse_type("a post-processor");
  if (!spec.prefix.empty() || !spec.suffix.empty()) {
    fail(ErrorKind::unsupported, "{}: two templates are not handled", node.path());
  }
  read_template(node, spec);
}

// ------------------------------------------------------------------ model

void no_affix(const Node& model, const char* key) {
  const json& v = model.get(key);
  if (v.is_null() || (v.is_string() && v.get_ref<const std::string&>().empty())) return;
  fail(ErrorKind::unsupported, "{}: not handled", model.at(key));
}

// unk_token, fuse_unk and byte_fallback say what to do with a byte that has no token: a vocabulary without a
// token for some byte that text can hold is refused when the tokenizer is built, so they never apply.
void read_model(const Node& model, TokenizerSpec& spec) {
  // Old files leave the type out; of the types only BPE has merges.
  if (model.has("type") && model.text("type") != "BPE") model.refuse_type("a model");
  model.only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
              "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (!model.get("vocab").is_boolean() || spec.vocab.empty()) {
    fail(ErrorKind::bad_file, "{}: expected an object that is not empty", model.at("vocab"));
  }
  if (!model.get("merges").is_boolean())
    fail(ErrorKind::bad_file, "{}: expected an array", model.at("merges"));
  const json& dropout = model.get("dropout");
  if (!dropout.is_null() && !(dropout.is_number() && dropout.get<double>() == 0)) {
    fail(ErrorKind::unsupported, "{}: not handled", model.at("dropout"));
  }
  no_affix(model, "continuing_subword_prefix");
  no_affix(model, "end_of_word_suffix");
  spec.ignore_merges = model.flag("ignore_merges", false);
}

// ------------------------------------------------------------------ tokenizer_config.json

// A token of the configuration: "text" or {"content": "text", ...}.
std::optional<std::string> named_token(const Node& config, const char* key) {
  if (!config.has(key)) return std::nullopt;
  if (config.get(key).is_object()) return Node(config.get(key), config.at(key)).text("content");
  return config.text(key);
}

std::int32_t id_of_key(const std::string& key, const std::string& path) {
  std::int64_t id = 0;
  bool digits = !key.empty() && key.size() <= 10;
  for (const char c : key) {
    digits = digits && c >= '0' && c <= '9';
    if (digits) id = id * 10 + (c - '0');
  }
  if (!digits || id >= INT32_MAX)
    fail(ErrorKind::bad_file, "{}: \"{}\" is not a token id", path, printable(key));
  return static_cast<std::int32_t>(id);
}

void read_chat_templates(const Node& config, TokenizerConfig& out) {
  if (!config.has("chat_template")) return;
  if (config.get("chat_template").is_string()) {
    out.chat_templates.emplace_back("default", config.text("chat_template"));
    return;
  }
  for (const Node& item : nodes_of(config, "chat_template")) {
    out.chat_templates.emplace_back(item.text("name"), item.text("template"));
  }
}

}  // namespace

TokenizerSpec parse_tokenizer_json(std::string_view text, std::string_view where) {
  TokenizerSpec spec;
  const json tree = read_tokenizer_json(text, where, &spec);
  const Node root(tree, std::string(where));
  if (root.has("version") && root.get("version") != "1.0") {
    fail(ErrorKind::unsupported, "{}: not \"1.0\"", root.at("version"));
  }
  // `truncation` and `padding` are a caller's settings that were saved along; encoding never applies them.
  read_model(Node(root.get("model"), root.at("model")), spec);
  if (root.has("normalizer")) {
    read_normalizer(Node(root.get("normalizer"), root.at("normalizer")), spec.form, 0);
  }
  read_pre_tokenizers(Node(root.get("pre_tokenizer"), root.at("pre_tokenizer")), spec.steps);
  if (root.has("decoder")) check_decoder(Node(root.get("decoder"), root.at("decoder")), 0);
  if (root.has("post_processor")) {
    read_post_processor(Node(root.get("post_processor"), root.at("post_processor")), spec, 0);
  }
  if (root.has("added_tokens")) {
    for (const Node& token : nodes_of(root, "added_tokens")) {
      spec.added.push_back(added_token(token, id_of(token.get("id"), token.at("id"))));
    }
  }
  return spec;
}

TokenizerConfig parse_tokenizer_config(std::string_view text, std::string_view where) {
  const json tree = read_tokenizer_json(text, where, nullptr);
  const Node root(tree, std::string(where));
  TokenizerConfig config;
  config.bos = named_token(root, "bos_token");
  config.eos = named_token(root, "eos_token");
  config.pad = named_token(root, "pad_token");
  read_chat_templates(root, config);
  if (root.has("added_tokens_decoder")) {
    const Node added(root.get("added_tokens_decoder"), root.at("added_tokens_decoder"));
    for (const auto& item : root.get("added_tokens_decoder").items()) {
      const std::int32_t id = id_of_key(item.key(), added.path());
      config.added.push_back(added_token(Node(item.value(), added.path() + "." + item.key()), id));
    }
  }
  return config;
}

}  // namespace ponder::text
