// Expressions, with Jinja's precedences: if-else, or, and, not, comparisons, + -, ~, * / // %, **, unary,
// filters.
#include "text/template_parser.hpp"

#include <algorithm>

#include "text/template_builtins.hpp"
#include "text/template_ops.hpp"

namespace ponder::text::jinja {

using Op = Expr::Op;

Parser::Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  tree_.loop = symbol("loop");
  tree_.caller = symbol("caller");
  tree_.varargs = symbol("varargs");
  tree_.kwargs = symbol("kwargs");
}

Symbol Parser::symbol(const std::string& name) {
  const auto [at, added] = symbols_.try_emplace(name, static_cast<Symbol>(tree_.symbols.size()));
  if (added) tree_.symbols.push_back(name);
  return at->second;
}

void Parser::enter() {
  if (++nesting_ > kMaxNesting) {
    error(ErrorKind::too_large, "blocks and brackets are nested deeper than {} levels", kMaxNesting);
  }
}

ExprPtr Parser::make(Op op, int line) const {
  auto expr = std::make_unique<Expr>();
  expr->op = op;
  expr->line = line;
  return expr;
}

ExprPtr Parser::finish(ExprPtr expr) const {
  int inner = 0;
  const auto look = [&](const ExprPtr& child) { inner = std::max(inner, child ? child->depth : 0); };
  for (const ExprPtr& child : expr->args) look(child);
  for (const auto& [name, child] : expr->named) look(child);
  look(expr->star);
  look(expr->star_star);
  expr->depth = inner + 1;
  if (expr->depth > kMaxExprDepth) {
    error(ErrorKind::too_large, "an expression is nested deeper than {} levels", kMaxExprDepth);
  }
  return expr;
}

// ---- Operators, loosest first

ExprPtr Parser::expression(bool conditional) {
  const Level level(*this);
  return conditional ? choose() : any_of();
}

ExprPtr Parser::choose() {
  const std::size_t unknown = unknown_.size();
  ExprPtr expr = any_of();
  while (is_name("if")) {
    ExprPtr made = make(Op::choose, current().line);
    skip();
    made->args.push_back(std::move(expr));
    made->args.push_back(any_of());
    made->args.push_back(skip_name("else") ? expression() : nullptr);
    expr = finish(std::move(made));
    unknown_.resize(std::min(unknown, unknown_.size()));
  }
  return expr;
}

ExprPtr Parser::any_of() {
  ExprPtr expr = all_of();
  if (!is_name("or")) return expr;
  ExprPtr made = make(Op::any_of, expr->line);
  made->args.push_back(std::move(expr));
  while (skip_name("or")) made->args.push_back(all_of());
  return finish(std::move(made));
}

ExprPtr Parser::all_of() {
  ExprPtr expr = negate_truth();
  if (!is_name("and")) return expr;
  ExprPtr made = make(Op::all_of, expr->line);
  made->args.push_back(std::move(expr));
  while (skip_name("and")) made->args.push_back(negate_truth());
  return finish(std::move(made));
}

ExprPtr Parser::negate_truth() {
  if (!is_name("not")) return compare();
  const Level level(*this);
  ExprPtr made = make(Op::negate_truth, current().line);
  skip();
  made->args.push_back(negate_truth());
  return finish(std::move(made));
}

bool Parser::compare_op(CompareOp& op) {
  static constexpr std::pair<std::string_view, CompareOp> kOps[] = {
      {"==", CompareOp::eq}, {"!=", CompareOp::ne}, {"<", CompareOp::lt},
      {"<=", CompareOp::le}, {">", CompareOp::gt},  {">=", CompareOp::ge},
  };
  for (const auto& [sign, meaning] : kOps) {
    if (!skip_op(sign)) continue;
    op = meaning;
    return true;
  }
  if (skip_name("in")) {
    op = CompareOp::in;
    return true;
  }
  if (!is_name("not") || ahead().kind != Kind::name || ahead().text != "in") return false;
  skip();
  skip();
  op = CompareOp::not_in;
  return true;
}

ExprPtr Parser::compare() {
  ExprPtr expr = sum();
  CompareOp op = CompareOp::eq;
  if (!compare_op(op)) return expr;
  ExprPtr made = make(Op::compare, expr->line);
  made->args.push_back(std::move(expr));
  do {
    made->compares.push_back(op);
    made->args.push_back(sum());
  } while (compare_op(op));
  return finish(std::move(made));
}

namespace {

int arith_of(std::string_view op) {
  static constexpr std::pair<std::string_view, Arith> kOps[] = {
      {"+", Arith::add},       {"-", Arith::sub}, {"*", Arith::mul},  {"/", Arith::div},
      {"//", Arith::floordiv}, {"%", Arith::mod}, {"**", Arith::pow},
  };
  const auto* at =
      std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& entry) { return entry.first == op; });
  return static_cast<int>(at->second);
}

}  // namespace

ExprPtr Parser::sum() {
  ExprPtr expr = concat();
  while (is_op("+") || is_op("-")) {
    ExprPtr made = make(Op::arithmetic, expr->line);
    made->arith = arith_of(current().text);
    skip();
    made->args.push_back(std::move(expr));
    made->args.push_back(concat());
    expr = finish(std::move(made));
  }
  return expr;
}

ExprPtr Parser::concat() {
  ExprPtr expr = product();
  if (!is_op("~")) return expr;
  ExprPtr made = make(Op::concat, expr->line);
  made->args.push_back(std::move(expr));
  while (skip_op("~")) made->args.push_back(product());
  return finish(std::move(made));
}

ExprPtr Parser::product() {
  ExprPtr expr = power();
  while (is_op("*") || is_op("/") || is_op("//") || is_op("%")) {
    ExprPtr made = make(Op::arithmetic, expr->line);
    made->arith = arith_of(current().text);
    skip();
    made->args.push_back(std::move(expr));
    made->args.push_back(power());
    expr = finish(std::move(made));
  }
  return expr;
}

ExprPtr Parser::power() {
  ExprPtr expr = unary();
  while (is_op("**")) {
    ExprPtr made = make(Op::arithmetic, expr->line);
    made->arith = static_cast<int>(Arith::pow);
    skip();
    made->args.push_back(std::move(expr));
    made->args.push_back(unary());
    expr = finish(std::move(made));
  }
  return expr;
}

ExprPtr Parser::unary(bool with_filters) {
  ExprPtr expr;
  if (is_op("-") || is_op("+")) {
    const Level level(*this);
    expr = make(is_op("-") ? Op::negate : Op::plus, current().line);
    skip();
    expr->args.push_back(unary(false));
    expr = finish(std::move(expr));
  } else {
    expr = primary();
  }
  expr = postfix(std::move(expr));
  return with_filters ? filters_and_tests(std::move(expr)) : std::move(expr);
}

// ---- Atoms

ExprPtr Parser::primary() {
  const int line = current().line;
  ExprPtr expr = make(Op::constant, line);
  if (current().kind == Kind::name) {
    const std::string name = take().text;
    if (name == "true" || name == "True" || name == "false" || name == "False") {
      expr->value = Value(name == "true" || name == "True");
    } else if (name == "none" || name == "None") {
      expr->value = Value(nullptr);
    } else {
      note_special(name);
      expr->op = Op::name;
      expr->symbol = symbol(name);
      expr->name = name;
    }
    return expr;
  }
  if (current().kind == Kind::string) {
    std::string text;
    while (current().kind == Kind::string) text += take().text;
    expr->value = Value(std::move(text));
    return expr;
  }
  if (current().kind == Kind::number) {
    expr->value = take().number;
    return expr;
  }
  if (skip_op("(")) {
    expr = tuple(true, true);
    expect_op(")");
    return expr;
  }
  if (is_op("[")) return list();
  if (is_op("{")) return dict();
  unexpected("an expression");
}

// A macro that mentions these takes what its parameters do not.
void Parser::note_special(const std::string& name) {
  for (MacroDef* macro : macros_) {
    macro->uses_varargs |= name == "varargs";
    macro->uses_kwargs |= name == "kwargs";
    macro->uses_caller |= name == "caller";
  }
}

// One expression, or several with commas between as a tuple.
ExprPtr Parser::tuple(bool conditional, bool in_parentheses, bool simple) {
  const int line = current().line;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) expect_op(",");
    if (current().kind == Kind::variable_end || current().kind == Kind::block_end || is_op(")")) {
      break;
    }
    items.push_back(simple ? primary() : expression(conditional));
    if (!is_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return std::move(items[0]);
    if (!in_parentheses) unexpected("an expression");
  }
  ExprPtr made = make(Op::tuple, line);
  made->args = std::move(items);
  return finish(std::move(made));
}

ExprPtr Parser::list() {
  ExprPtr made = make(Op::list, current().line);
  expect_op("[");
  while (!is_op("]")) {
    if (!made->args.empty()) expect_op(",");
    if (is_op("]")) break;
    made->args.push_back(expression());
  }
  expect_op("]");
  return finish(std::move(made));
}

ExprPtr Parser::dict() {
  ExprPtr made = make(Op::dict, current().line);
  expect_op("{");
  while (!is_op("}")) {
    if (!made->args.empty()) expect_op(",");
    if (is_op("}")) break;
    made->args.push_back(expression());
    expect_op(":");
    made->args.push_back(expression());
  }
  expect_op("}");
  return finish(std::move(made));
}

// ---- What follows an atom

ExprPtr Parser::postfix(ExprPtr expr) {
  while (true) {
    if (is_op(".")) {
      expr = attribute(std::move(expr));
    } else if (is_op("[")) {
      expr = subscript(std::move(expr));
    } else if (is_op("(")) {
      expr = call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr Parser::filters_and_tests(ExprPtr expr) {
  while (true) {
    if (is_op("|")) {
      skip();
      expr = filter(std::move(expr));
    } else if (is_name("is")) {
      expr = test(std::move(expr));
    } else if (is_op("(")) {
      expr = call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr Parser::attribute(ExprPtr object) {
  const int line = current().line;
  expect_op(".");
  if (current().kind == Kind::number && is_integer(current().number)) {
    ExprPtr made = make(Op::item, line);
    ExprPtr index = make(Op::constant, line);
    index->value = take().number;
    made->args.push_back(std::move(object));
    made->args.push_back(std::move(index));
    return finish(std::move(made));
  }
  ExprPtr made = make(Op::attribute, line);
  if (current().kind == Kind::name) refuse_private(current().text, current().line);
  made->name = expect_identifier();
  made->args.push_back(std::move(object));
  return finish(std::move(made));
}

ExprPtr Parser::subscript(ExprPtr object) {
  const int line = current().line;
  expect_op("[");
  ExprPtr made = make(Op::item, line);
  made->args.push_back(std::move(object));
  if (is_op("]")) {  // x[] is x[()]
    made->args.push_back(make(Op::tuple, line));
  } else {
    ExprPtr first = is_op(":") ? nullptr : expression();
    if (is_op(":")) {
      made->op = Op::slice;
      made->args.push_back(std::move(first));
      for (int part = 0; part < 2; ++part) {
        const bool given = skip_op(":") && !is_op(":") && !is_op("]") && !is_op(",");
        made->args.push_back(given ? expression() : nullptr);
      }
    } else if (is_op(",")) {
      ExprPtr several = make(Op::tuple, line);
      several->args.push_back(std::move(first));
      while (skip_op(",")) several->args.push_back(expression());
      made->args.push_back(finish(std::move(several)));
    } else {
      if (first->op == Op::constant && first->value.is_string()) {
        refuse_dunder(first->value.as_string(), first->line);
      }
      made->args.push_back(std::move(first));
    }
  }
  expect_op("]");
  return finish(std::move(made));
}

ExprPtr Parser::call(ExprPtr callee) {
  ExprPtr made = make(Op::call, current().line);
  made->args.push_back(std::move(callee));
  arguments(*made);
  return finish(std::move(made));
}

void Parser::arguments(Expr& call) {
  expect_op("(");
  bool first = true;
  const auto need = [&](bool in_order) {
    if (!in_order) error(ErrorKind::bad_file, "arguments in the wrong order (positional, named, *, **)");
  };
  while (!is_op(")")) {
    if (!first) {
      expect_op(",");
      if (is_op(")")) break;
    }
    first = false;
    if (skip_op("*")) {
      need(!call.star && !call.star_star);
      call.star = expression();
    } else if (skip_op("**")) {
      need(!call.star_star);
      call.star_star = expression();
    } else if (current().kind == Kind::name && ahead().kind == Kind::op && ahead().text == "=") {
      need(!call.star_star);
      std::string name = take().text;
      skip();
      call.named.emplace_back(std::move(name), expression());
    } else {
      need(!call.star && !call.star_star && call.named.empty());
      call.args.push_back(expression());
    }
  }
  expect_op(")");
}

std::string Parser::dotted_name() {
  std::string name = expect_identifier();
  while (skip_op(".")) name += "." + expect_identifier();
  return name;
}

ExprPtr Parser::filter(ExprPtr input) {
  ExprPtr made = make(Op::filter, current().line);
  made->name = dotted_name();
  made->filter = find_filter(made->name);
  if (made->filter == nullptr) unknown_.push_back({"filter", made->name, made->line});
  made->args.push_back(std::move(input));
  if (is_op("(")) arguments(*made);
  return finish(std::move(made));
}

// a | b | c; with `first_bare` the first filter stands without its bar.
ExprPtr Parser::filter_chain(ExprPtr input, bool first_bare) {
  while (first_bare || is_op("|")) {
    if (!first_bare) skip();
    first_bare = false;
    input = filter(std::move(input));
  }
  return input;
}

ExprPtr Parser::test(ExprPtr input) {
  ExprPtr made = make(Op::test, current().line);
  expect_name("is");
  const bool negated = skip_name("not");
  made->name = dotted_name();
  made->test = find_test(made->name);
  if (made->test == nullptr) unknown_.push_back({"test", made->name, made->line});
  made->args.push_back(std::move(input));
  if (is_op("(")) {
    arguments(*made);
  } else if (current().kind == Kind::name || current().kind == Kind::string ||
             current().kind == Kind::number || is_op("[") || is_op("{")) {
    if (is_name("is")) error(ErrorKind::bad_file, "tests cannot be chained with \"is\"");
    if (!is_name("else") && !is_name("or") && !is_name("and")) made->args.push_back(postfix(primary()));
  }
  ExprPtr expr = finish(std::move(made));
  if (!negated) return expr;
  ExprPtr wrapped = make(Op::negate_truth, expr->line);
  wrapped->args.push_back(std::move(expr));
  return finish(std::move(wrapped));
}

}  // namespace ponder::text::jinja
