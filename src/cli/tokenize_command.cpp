// ponder tokenize: text to ids, ids to text, chat messages to the template's text. One JSON object a line.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "decide/json_value.hpp"
#include "decide/json_write.hpp"
#include "text/template.hpp"
#include "text/tokenizer.hpp"

namespace ponder::cli {
namespace {

using decide::Array;
using decide::Object;
using decide::Value;
using TemplateValue = text::jinja::Value;

struct TokenizeArguments {
  std::shared_ptr<ModelArguments> model = std::make_shared<ModelArguments>();
  std::string input;
  bool decode = false;
  bool render = false;
  bool plain = false;
};

TemplateValue to_template(const Value& value) {
  if (const bool* b = value.if_bool()) return *b;
  if (const std::int64_t* i = value.if_integer()) return *i;
  if (const decide::BigInteger* big = value.if_big_integer()) return TemplateValue::big_integer(big->text);
  if (const double* d = value.if_double()) return *d;
  if (const std::string* s = value.if_string()) return *s;
  if (const Array* array = value.if_array()) {
    std::vector<TemplateValue> items;
    for (const Value& item : *array) items.push_back(to_template(item));
    return TemplateValue::list(std::move(items));
  }
  if (const Object* object = value.if_object()) {
    TemplateValue dict = TemplateValue::dict();
    for (const decide::Member& m : object->members()) dict.set(m.key, to_template(m.value));
    return dict;
  }
  return nullptr;
}

class Tokenize {
 public:
  explicit Tokenize(const TokenizeArguments& args)
      : args_(args), tokenizer_(text::Tokenizer::load(args.model->folder())) {
    if (args.decode && args.render) fail(ErrorKind::usage, "--decode and --render exclude each other");
    if (!args.render) return;
    if (tokenizer_.chat_template().empty()) {
      fail(ErrorKind::unsupported, "{}: no chat template", args.model->folder().string());
    }
    template_ = text::ChatTemplate::parse(tokenizer_.chat_template());
  }

  int run() {
    Input input(args_.input);
    while (const auto line = input.line()) {
      try {
        const Value value = decide::parse_json(*line);
        const Object* object = value.if_object();
        if (object == nullptr) fail(ErrorKind::invalid_input, "expected a JSON object");
        print(decide::write_json(answer(*object)) + "\n");
      } catch (const Error& error) {
        fail(error.kind(), "{}: line {}: {}", input.name(), input.line_number(), error.what());
      }
    }
    return 0;
  }

 private:
  Value answer(const Object& line) const {
    Object out;
    if (args_.decode) {
      out.append("text", tokenizer_.decode(ids(line)));
    } else if (args_.render) {
      out.append("text", render(line));
    } else {
      const Value* text = line.find("text");
      if (text == nullptr || text->if_string() == nullptr)
        fail(ErrorKind::invalid_input, "expected \"text\": a string");
      const auto mode = args_.plain ? text::SpecialTokens::none : text::SpecialTokens::parse;
      Array ids;
      for (const std::int32_t id : tokenizer_.encode(*text->if_string(), mode))
        ids.emplace_back(std::int64_t{id});
      out.append("ids", std::move(ids));
    }
    return out;
  }

  static std::vector<std::int32_t> ids(const Object& line) {
    const Value* ids = line.find("ids");
    const Array* array = ids == nullptr ? nullptr : ids->if_array();
    if (array == nullptr) fail(ErrorKind::invalid_input, "expected \"ids\": an array of token ids");
    std::vector<std::int32_t> out;
    for (const Value& v : *array) {
      const std::int64_t* id = v.if_integer();
      if (id == nullptr || *id < 0 || *id > INT32_MAX) {
        fail(ErrorKind::invalid_input, "entry {} of \"ids\" is not a token id", out.size());
      }
      out.push_back(static_cast<std::int32_t>(*id));
    }
    return out;
  }

  std::string render(const Object& line) const {
    text::ChatRequest request;
    const Value* messages = line.find("messages");
    if (messages == nullptr || messages->if_array() == nullptr) {
      fail(ErrorKind::invalid_input, "expected \"messages\": an array");
    }
    request.messages = to_template(*messages);
    for (const decide::Member& m : line.members()) {
      if (m.key != "messages") request.extra.emplace_back(m.key, to_template(m.value));
    }
    const auto special = [&](const char* name, std::optional<std::int32_t> id) {
      if (id) request.special_tokens.emplace_back(name, std::string(*tokenizer_.token(*id)));
    };
    special("bos_token", tokenizer_.bos_id());
    special("eos_token", tokenizer_.eos_id());
    special("pad_token", tokenizer_.pad_id());
    return template_->render(request);
  }

  TokenizeArguments args_;
  text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> template_;
};

}  // namespace

Action add_tokenize(CLI::App& app) {
  auto args = std::make_shared<TokenizeArguments>();
  app.add_option("input", args->input, "JSON lines {\"text\"}; - or nothing: standard input")
      ->type_name("FILE");
  ModelArguments::add_model(app, args->model);
  app.add_flag("--decode", args->decode, "Lines are {\"ids\"}, replies {\"text\"}");
  app.add_flag("--render", args->render,
               "Lines are {\"messages\", ...template variables}, replies {\"text\"}");
  app.add_flag("--plain", args->plain,
               "Read control tokens in the text as ordinary text, as for users' text");
  return [args] { return Tokenize(*args).run(); };
}

}  // namespace ponder::cli
