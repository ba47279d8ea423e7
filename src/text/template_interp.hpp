// The interpreter: one rendering of one tree. Internal to the template engine.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "text/template.hpp"
#include "text/template_ast.hpp"
#include "text/template_builtins.hpp"

namespace ponder::text::jinja {

// Variables set at one place. `for` bodies, macros, `with` and blocks open a new one; `if` does not.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<Symbol, Value>> vars;

  void set(Symbol symbol, Value value);
};
using ScopePtr = std::shared_ptr<Scope>;

// A template's raise_exception(message): shown without a line, since it speaks to who made the request.
class RaisedByTemplate : public Error {
 public:
  using Error::Error;
};

struct Callable : Object {
  virtual Value invoke(Interp& interp, const CallArgs& args) = 0;
  bool callable() const override { return true; }
};

struct NamespaceObject : Object {
  Dict attributes;
  std::string_view type_name() const override { return "Namespace"; }
  void append_repr(TextBuilder& out, std::size_t depth_now) const override;
  void release() override { attributes = {}; }
  Value attribute(const Value& self, std::string_view name) override;
};

// The `loop` variable: walks the iterable one item at a time, as far ahead as it was asked to look.
struct LoopObject : Callable {
  Value source;  // list, tuple, range, view or iterator
  std::function<bool(const Value&)> filter;
  const Stmt* recursive = nullptr;  // the statement to run again when called
  ScopePtr scope;                   // where it stands; only of a recursive loop
  std::int64_t index0 = -1;
  std::int64_t depth0 = 0;
  Value previous, now;
  std::optional<Value> after;
  std::deque<Value> ahead;  // pulled to learn the length
  std::optional<std::vector<Value>> last_changed;

  std::string_view type_name() const override { return "LoopContext"; }
  void append_repr(TextBuilder& out, std::size_t depth_now) const override;
  void release() override;
  bool callable() const override { return true; }
  Value invoke(Interp& interp, const CallArgs& args) override;

  bool advance();
  bool peek();
  std::int64_t length();
  Value attribute(const Value& self, std::string_view name) override;

 private:
  std::optional<Value> pull();
  std::optional<std::int64_t> length_;
  std::size_t next_ = 0;
};

class Interp {
 public:
  Interp(const Tree& tree, const Value& context, const RenderLimits& limits);
  ~Interp();
  Interp(const Interp&) = delete;
  Interp& operator=(const Interp&) = delete;

  Text run();
  int line() const { return line_; }

  Budget& budget() { return budget_; }
  Value call(const Value& callee, const CallArgs& args);
  Value item(const Value& object, const Value& key);
  Value attribute(const Value& object, const std::string& name);
  // Objects that could end up in a ring are let go of when the rendering ends.
  void keep(const Value& object);
  Text loop_again(const LoopObject& loop, const Value& iterable);
  Value call_macro(const MacroDef& macro, const ScopePtr& scope, const CallArgs& args);
  // One level of evaluation; fails when they are too many for the stack.
  class Level {
   public:
    explicit Level(Interp& interp) : interp_(interp) { interp_.enter(); }
    ~Level() { --interp_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Interp& interp_;
  };

 private:
  enum class Flow { on, break_loop, continue_loop };

  void enter();
  void keep(const ScopePtr& scope);
  Value lookup(const ScopePtr& scope, Symbol symbol);
  template <class Run>
  Text capture(Run&& run);

  Flow exec(const Body& body, const ScopePtr& scope);
  Flow exec(const Stmt& stmt, const ScopePtr& scope);
  Flow exec_branch(const Stmt& stmt, const ScopePtr& scope);
  void exec_loop(const Stmt& stmt, const Value& iterable, const ScopePtr& scope, std::int64_t depth0);
  void exec_with(const Stmt& stmt, const ScopePtr& scope);
  Flow exec_assign_block(const Stmt& stmt, const ScopePtr& scope);
  Flow exec_filter_block(const Stmt& stmt, const ScopePtr& scope);
  void exec_call_block(const Stmt& stmt, const ScopePtr& scope);
  void assign(const Target& target, const Value& value, const ScopePtr& scope);

  Value eval(const Expr& expr, const ScopePtr& scope);
  Value eval_part(const ExprPtr& expr, const ScopePtr& scope);  // None when null
  Value eval_compare(const Expr& expr, const ScopePtr& scope);
  Value eval_concat(const Expr& expr, const ScopePtr& scope);
  Value eval_dict(const Expr& expr, const ScopePtr& scope);
  Value eval_sequence(const Expr& expr, const ScopePtr& scope);
  Value eval_filter(const Expr& expr, const ScopePtr& scope);
  Value eval_test(const Expr& expr, const ScopePtr& scope);
  Value eval_call(const Expr& expr, const ScopePtr& scope, const Value* caller);
  CallArgs eval_args(const Expr& expr, const ScopePtr& scope);
  bool compare(CompareOp op, const Value& a, const Value& b);

  const Tree& tree_;
  const Value& context_;
  Budget budget_;
  TextBuilder* out_ = nullptr;
  Value block_value_;  // what a filter block or set block encloses
  int line_ = 1;
  int depth_ = 0;
  std::vector<std::shared_ptr<Cell>> kept_;
  std::vector<ScopePtr> kept_scopes_;
};

inline constexpr int kMaxEvalDepth = 600;

}  // namespace ponder::text::jinja
