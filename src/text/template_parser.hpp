// The recursive-descent parser behind parse_template(). Internal to the template engine.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "text/template_ast.hpp"
#include "text/template_lexer.hpp"

namespace ponder::text::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens);
  Tree run();

 private:
  using Kind = Token::Kind;

  // One level of brackets or blocks, for as long as it is being parsed.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) { parser_.enter(); }
    ~Level() { --parser_.nesting_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  // A filter or test nobody knows: an error unless the place may never be reached.
  struct Unknown {
    const char* what;
    std::string name;
    int line;
  };

  template <class... Args>
  [[noreturn]] void error(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) const {
    fail(kind, "chat template, line {}: {}", current().line,
         fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void unexpected(std::string_view wanted) const;

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return std::move(tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]); }
  void skip() { at_ += at_ + 1 < tokens_.size() ? 1 : 0; }
  bool is_op(std::string_view op) const { return current().kind == Kind::op && current().text == op; }
  bool is_name(std::string_view name) const { return current().kind == Kind::name && current().text == name; }
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_op(std::string_view op);
  void expect_name(std::string_view name);
  void expect_kind(Kind kind, std::string_view wanted);
  std::string expect_identifier();

  Symbol symbol(const std::string& name);
  void enter();
  ExprPtr make(Expr::Op op, int line) const;
  ExprPtr finish(ExprPtr expr) const;  // sets and checks the depth
  void note_special(const std::string& name);

  // Expressions.
  ExprPtr expression(bool conditional = true);
  ExprPtr choose();
  ExprPtr any_of();
  ExprPtr all_of();
  ExprPtr negate_truth();
  ExprPtr compare();
  bool compare_op(CompareOp& op);
  ExprPtr sum();
  ExprPtr concat();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filters = true);
  ExprPtr primary();
  ExprPtr tuple(bool conditional, bool in_parentheses, bool simple = false);
  ExprPtr list();
  ExprPtr dict();
  ExprPtr postfix(ExprPtr expr);
  ExprPtr filters_and_tests(ExprPtr expr);
  ExprPtr attribute(ExprPtr object);
  ExprPtr subscript(ExprPtr object);
  ExprPtr call(ExprPtr callee);
  void arguments(Expr& call);
  std::string dotted_name();
  ExprPtr filter(ExprPtr input);
  ExprPtr filter_chain(ExprPtr input, bool first_bare);
  ExprPtr test(ExprPtr input);

  // Statements.
  Body body(std::initializer_list<std::string_view> ends);
  void statement(Body& out);
  [[noreturn]] void unknown_tag(const std::string& name) const;
  Body block(std::initializer_list<std::string_view> ends);
  Stmt if_statement();
  Stmt for_statement();
  Stmt set_statement();
  Stmt with_statement();
  Stmt macro_statement();
  Stmt call_statement();
  Stmt filter_statement();
  Stmt generation_statement();
  Stmt print_statement();
  Stmt loop_control(Stmt::Kind kind);
  void signature(MacroDef& macro);
  void macro_body(MacroDef& macro, std::string_view end);
  Target target(bool with_namespace);
  Target to_target(const Expr& expr);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  int loops_ = 0;  // for-loops around this place, within the macro
  Tree tree_;
  std::map<std::string, Symbol, std::less<>> symbols_;
  std::vector<MacroDef*> macros_;  // being parsed, outermost first
  std::vector<Unknown> unknown_;
};

}  // namespace ponder::text::jinja
