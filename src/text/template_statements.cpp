// Statements: text, {{ output }} and {% tags %}; and the parser's way with tokens.
#include <algorithm>
#include <array>

#include "text/template_builtins.hpp"
#include "text/template_parser.hpp"

namespace ponder::text::jinja {

Tree parse_template(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    fail(ErrorKind::too_large, "a chat template of {} bytes, over the limit of {}", source.size(),
         kMaxTemplateBytes);
  }
  return Parser(tokenize(source)).run();
}

Tree Parser::run() {
  tree_.body = body({});
  if (!unknown_.empty()) {
    const Unknown& first = unknown_.front();
    fail(ErrorKind::unsupported, "chat template, line {}: no {} is called \"{}\"", first.line, first.what,
         printable(first.name));
  }
  return std::move(tree_);
}

// ---- Tokens

void Parser::unexpected(std::string_view wanted) const {
  const Token& token = current();
  std::string found;
  switch (token.kind) {
    case Kind::end:
      found = "the end of the template";
      break;
    case Kind::block_end:
      found = "\"%}\"";
      break;
    case Kind::variable_end:
      found = "\"}}\"";
      break;
    case Kind::string:
      found = "a string";
      break;
    case Kind::number:
      found = "a number";
      break;
    case Kind::data:
    case Kind::variable_begin:
    case Kind::block_begin:
      found = "text or a new tag";
      break;
    default:
      found = "\"" + printable(token.text) + "\"";
  }
  error(ErrorKind::bad_file, "expected {}, found {}", wanted, found);
}

bool Parser::skip_op(std::string_view op) {
  if (!is_op(op)) return false;
  skip();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  skip();
  return true;
}

void Parser::expect_op(std::string_view op) {
  if (!skip_op(op)) unexpected(fmt::format("\"{}\"", op));
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name)) unexpected(fmt::format("\"{}\"", name));
}

void Parser::expect_kind(Kind kind, std::string_view wanted) {
  if (current().kind != kind) unexpected(wanted);
  skip();
}

std::string Parser::expect_identifier() {
  if (current().kind != Kind::name) unexpected("a name");
  return take().text;
}

// ---- Statements

// Statements up to one of the end words (which stays the current token), or the end of the template without
// any.
Body Parser::body(std::initializer_list<std::string_view> ends) {
  Body out;
  while (true) {
    const Token& token = current();
    switch (token.kind) {
      case Kind::end:
        if (ends.size() > 0) unexpected(fmt::format("{{% {} %}}", *ends.begin()));
        return out;
      case Kind::data: {
        Stmt text;
        text.line = token.line;
        text.text = take().text;
        out.push_back(std::move(text));
        break;
      }
      case Kind::variable_begin: {
        Stmt output;
        output.kind = Stmt::Kind::output;
        output.line = token.line;
        skip();
        output.exprs.push_back(tuple(true, false));
        expect_kind(Kind::variable_end, "\"}}\"");
        out.push_back(std::move(output));
        break;
      }
      default:
        expect_kind(Kind::block_begin, "a tag");
        if (std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return is_name(end); }))
          return out;
        statement(out);
        expect_kind(Kind::block_end, "\"%}\"");
    }
  }
}

// The rest of an opening tag and what it encloses, up to one of the end words.
Body Parser::block(std::initializer_list<std::string_view> ends) {
  skip_op(":");
  expect_kind(Kind::block_end, "\"%}\"");
  return body(ends);
}

void Parser::statement(Body& out) {
  static const std::map<std::string, Stmt (Parser::*)(), std::less<>> kTags = {
      {"if", &Parser::if_statement},
      {"for", &Parser::for_statement},
      {"set", &Parser::set_statement},
      {"with", &Parser::with_statement},
      {"macro", &Parser::macro_statement},
      {"call", &Parser::call_statement},
      {"filter", &Parser::filter_statement},
      {"print", &Parser::print_statement},
      {"generation", &Parser::generation_statement},
  };
  const Level level(*this);
  if (current().kind != Kind::name) unexpected("the name of a tag");
  const int line = current().line;
  const std::string name = current().text;
  const auto tag = kTags.find(name);
  Stmt made;
  if (tag != kTags.end()) {
    skip();
    made = (this->*tag->second)();
  } else if (name == "break") {
    made = loop_control(Stmt::Kind::break_loop);
  } else if (name == "continue") {
    made = loop_control(Stmt::Kind::continue_loop);
  } else {
    unknown_tag(name);
  }
  made.line = line;
  out.push_back(std::move(made));
}

void Parser::unknown_tag(const std::string& name) const {
  static constexpr std::array<std::string_view, 6> kRefused = {"import",  "from",  "include",
                                                               "extends", "block", "autoescape"};
  if (std::find(kRefused.begin(), kRefused.end(), name) != kRefused.end()) {
    error(ErrorKind::unsupported, "the tag \"{}\" is not supported in chat templates", name);
  }
  error(ErrorKind::bad_file, "unexpected tag \"{}\"", printable(name));
}

Stmt Parser::if_statement() {
  const std::size_t unknown = unknown_.size();
  Stmt made;
  made.kind = Stmt::Kind::branch;
  while (true) {
    made.exprs.push_back(tuple(false, false));
    made.bodies.push_back(block({"endif", "elif", "else"}));
    if (skip_name("elif")) continue;
    if (skip_name("else")) made.bodies.push_back(block({"endif"}));
    expect_name("endif");
    break;
  }
  unknown_.resize(std::min(unknown, unknown_.size()));
  return made;
}

namespace {

bool assigns(const Target& target, Symbol symbol) {
  if (!target.is_tuple) return target.symbol == symbol;
  return std::any_of(target.parts.begin(), target.parts.end(),
                     [&](const Target& part) { return assigns(part, symbol); });
}

}  // namespace

Stmt Parser::for_statement() {
  Stmt made;
  made.kind = Stmt::Kind::loop;
  made.targets.push_back(target(false));
  if (assigns(made.targets[0], tree_.loop))
    error(ErrorKind::bad_file, "\"loop\" cannot be a loop's own variable");
  expect_name("in");
  made.exprs.push_back(tuple(false, false));
  made.exprs.push_back(skip_name("if") ? expression() : nullptr);
  made.recursive = skip_name("recursive");
  ++loops_;
  made.bodies.push_back(block({"endfor", "else"}));
  --loops_;
  if (skip_name("else")) made.bodies.push_back(block({"endfor"}));
  expect_name("endfor");
  return made;
}

Stmt Parser::set_statement() {
  Stmt made;
  made.targets.push_back(target(true));
  if (skip_op("=")) {
    made.kind = Stmt::Kind::assign;
    made.exprs.push_back(tuple(true, false));
    return made;
  }
  made.kind = Stmt::Kind::assign_block;
  made.exprs.push_back(is_op("|") ? filter_chain(nullptr, false) : nullptr);
  made.bodies.push_back(block({"endset"}));
  expect_name("endset");
  return made;
}

Stmt Parser::with_statement() {
  Stmt made;
  made.kind = Stmt::Kind::with;
  while (current().kind != Kind::block_end) {
    if (!made.targets.empty()) expect_op(",");
    made.targets.push_back(target(false));
    expect_op("=");
    made.exprs.push_back(expression());
  }
  made.bodies.push_back(block({"endwith"}));
  expect_name("endwith");
  return made;
}

void Parser::signature(MacroDef& macro) {
  expect_op("(");
  while (!is_op(")")) {
    if (!macro.params.empty()) expect_op(",");
    std::string name = expect_identifier();
    macro.explicit_caller |= name == "caller";
    macro.params.push_back(symbol(name));
    macro.param_names.push_back(std::move(name));
    if (skip_op("=")) {
      macro.defaults.push_back(expression());
    } else if (!macro.defaults.empty()) {
      error(ErrorKind::bad_file, "a parameter without a default follows one with a default");
    }
  }
  expect_op(")");
}

void Parser::macro_body(MacroDef& macro, std::string_view end) {
  macros_.push_back(&macro);
  const int outer_loops = std::exchange(loops_, 0);
  macro.body = block({end});
  loops_ = outer_loops;
  macros_.pop_back();
  expect_name(end);
}

Stmt Parser::macro_statement() {
  Stmt made;
  made.kind = Stmt::Kind::macro;
  auto macro = std::make_shared<MacroDef>();
  macro->name = expect_identifier();
  made.symbol = symbol(macro->name);
  signature(*macro);
  macro_body(*macro, "endmacro");
  made.macro = std::move(macro);
  return made;
}

Stmt Parser::call_statement() {
  Stmt made;
  made.kind = Stmt::Kind::call_block;
  auto macro = std::make_shared<MacroDef>();
  macro->name = "caller";
  if (is_op("(")) signature(*macro);
  made.exprs.push_back(expression());
  if (made.exprs[0]->op != Expr::Op::call) unexpected("a call");
  macro_body(*macro, "endcall");
  made.macro = std::move(macro);
  return made;
}

Stmt Parser::filter_statement() {
  Stmt made;
  made.kind = Stmt::Kind::filter_block;
  made.exprs.push_back(filter_chain(nullptr, true));
  made.bodies.push_back(block({"endfilter"}));
  expect_name("endfilter");
  return made;
}

// Hugging Face's mark of what the assistant wrote: its body is a call block of its own.
Stmt Parser::generation_statement() {
  Stmt made;
  made.kind = Stmt::Kind::generation;
  auto macro = std::make_shared<MacroDef>();
  macro_body(*macro, "endgeneration");
  made.macro = std::move(macro);
  return made;
}

Stmt Parser::print_statement() {
  Stmt made;
  made.kind = Stmt::Kind::output;
  while (current().kind != Kind::block_end) {
    if (!made.exprs.empty()) expect_op(",");
    made.exprs.push_back(expression());
  }
  return made;
}

Stmt Parser::loop_control(Stmt::Kind kind) {
  if (loops_ == 0) error(ErrorKind::bad_file, "\"{}\" outside a for loop", current().text);
  skip();
  Stmt made;
  made.kind = kind;
  return made;
}

Target Parser::target(bool with_namespace) {
  if (with_namespace && ahead().kind == Kind::op && ahead().text == ".") {
    Target made;
    made.symbol = symbol(expect_identifier());
    skip();
    if (current().kind == Kind::name) refuse_private(current().text, current().line);
    made.attribute = expect_identifier();
    return made;
  }
  return to_target(*tuple(false, false, true));
}

Target Parser::to_target(const Expr& expr) {
  Target made;
  if (expr.op == Expr::Op::tuple) {
    made.is_tuple = true;
    for (const ExprPtr& part : expr.args) made.parts.push_back(to_target(*part));
    return made;
  }
  if (expr.op != Expr::Op::name) error(ErrorKind::bad_file, "only names can be assigned to");
  made.symbol = expr.symbol;
  return made;
}

}  // namespace ponder::text::jinja
