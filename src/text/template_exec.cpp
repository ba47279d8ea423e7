// Statements, scopes and macros.
#include <algorithm>

#include "text/template_interp.hpp"

namespace ponder::text::jinja {
namespace {

struct MacroObject : Callable {
  std::shared_ptr<const MacroDef> definition;
  ScopePtr scope;

  std::string_view type_name() const override { return "Macro"; }
  void append_repr(TextBuilder& out, std::size_t /*depth_now*/) const override {
    out.append("<Macro '" + definition->name + "'>");
  }
  Value invoke(Interp& interp, const CallArgs& args) override {
    return interp.call_macro(*definition, scope, args);
  }
  Value attribute(const Value& /*self*/, std::string_view name) override {
    if (name == "name") return definition->name;
    if (name != "arguments") return {};
    return Value::list({definition->param_names.begin(), definition->param_names.end()});
  }
};

Value make_macro(const std::shared_ptr<const MacroDef>& definition, const ScopePtr& scope) {
  auto macro = std::make_shared<MacroObject>();
  macro->definition = definition;
  macro->scope = scope;
  return Value::adopt(Value::Kind::object, std::move(macro));
}

ScopePtr inside(const ScopePtr& parent) {
  auto scope = std::make_shared<Scope>();
  scope->parent = parent;
  return scope;
}

}  // namespace

void Scope::set(Symbol symbol, Value value) {
  const auto at =
      std::find_if(vars.begin(), vars.end(), [&](const auto& var) { return var.first == symbol; });
  if (at != vars.end()) {
    at->second = std::move(value);
  } else {
    vars.emplace_back(symbol, std::move(value));
  }
}

Interp::Interp(const Tree& tree, const Value& context, const RenderLimits& limits)
    : tree_(tree), context_(context), budget_(limits.max_steps, limits.max_text_bytes) {}

Interp::~Interp() {
  // Everything stays held by these lists until all of it has let go: no ring is left and no chain is taken
  // apart recursively.
  for (const auto& cell : kept_) static_cast<Object&>(*cell).release();
  std::vector<std::vector<std::pair<Symbol, Value>>> vars;
  for (const ScopePtr& scope : kept_scopes_) vars.push_back(std::move(scope->vars));
}

void Interp::keep(const Value& object) {
  kept_.push_back(object.cell());
}

void Interp::keep(const ScopePtr& scope) {
  if (kept_scopes_.empty() || kept_scopes_.back() != scope) kept_scopes_.push_back(scope);
}

void Interp::enter() {
  if (++depth_ > kMaxEvalDepth) {
    --depth_;
    fail(ErrorKind::too_large, "macros and expressions call one another deeper than {} levels",
         kMaxEvalDepth);
  }
}

Text Interp::run() {
  TextBuilder out(budget_);
  out_ = &out;
  exec(tree_.body, std::make_shared<Scope>());
  return out.take();
}

template <class Run>
Text Interp::capture(Run&& run) {
  TextBuilder inner(budget_);
  TextBuilder* const outer = std::exchange(out_, &inner);
  run();
  out_ = outer;
  return inner.take();
}

Value Interp::lookup(const ScopePtr& scope, Symbol symbol) {
  for (const Scope* at = scope.get(); at != nullptr; at = at->parent.get()) {
    for (const auto& [name, value] : at->vars) {
      if (name == symbol) return value;
    }
  }
  const std::string& name = tree_.symbols[symbol];
  if (const Value* found = context_.mapping().find_name(name)) return *found;
  Value global = find_global(name);
  return global.is_undefined() ? Value::undefined("'" + name + "' is undefined") : global;
}

Interp::Flow Interp::exec(const Body& body, const ScopePtr& scope) {
  for (const Stmt& stmt : body) {
    const Flow flow = exec(stmt, scope);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Interp::Flow Interp::exec(const Stmt& stmt, const ScopePtr& scope) {
  const Level level(*this);
  budget_.spend(1);
  line_ = stmt.line;
  switch (stmt.kind) {
    case Stmt::Kind::text:
      out_->append(stmt.text);
      return Flow::on;
    case Stmt::Kind::output:
      for (const ExprPtr& expr : stmt.exprs) append_str(*out_, eval(*expr, scope));
      return Flow::on;
    case Stmt::Kind::branch:
      return exec_branch(stmt, scope);
    case Stmt::Kind::loop:
      if (stmt.recursive) keep(scope);
      exec_loop(stmt, eval(*stmt.exprs[0], scope), scope, 0);
      return Flow::on;
    case Stmt::Kind::assign:
      assign(stmt.targets[0], eval(*stmt.exprs[0], scope), scope);
      return Flow::on;
    case Stmt::Kind::assign_block:
      return exec_assign_block(stmt, scope);
    case Stmt::Kind::macro:
      keep(scope);
      scope->set(stmt.symbol, make_macro(stmt.macro, scope));
      return Flow::on;
    case Stmt::Kind::call_block:
      exec_call_block(stmt, scope);
      return Flow::on;
    case Stmt::Kind::filter_block:
      return exec_filter_block(stmt, scope);
    case Stmt::Kind::with:
      exec_with(stmt, scope);
      return Flow::on;
    case Stmt::Kind::break_loop:
      return Flow::break_loop;
    case Stmt::Kind::continue_loop:
      return Flow::continue_loop;
    case Stmt::Kind::generation:
      append_str(*out_, call_macro(*stmt.macro, scope, {}));
      return Flow::on;
  }
  return Flow::on;
}

Interp::Flow Interp::exec_branch(const Stmt& stmt, const ScopePtr& scope) {
  for (std::size_t i = 0; i < stmt.exprs.size(); ++i) {
    if (truth(eval(*stmt.exprs[i], scope))) return exec(stmt.bodies[i], scope);
  }
  return stmt.bodies.size() > stmt.exprs.size() ? exec(stmt.bodies.back(), scope) : Flow::on;
}

void Interp::exec_loop(const Stmt& stmt, const Value& iterable, const ScopePtr& scope, std::int64_t depth0) {
  const auto loop = std::make_shared<LoopObject>();
  const Value handle = Value::adopt(Value::Kind::object, loop);
  loop->source = iterable.is_sequence_cell() ? iterable : Value::list(iterate(budget_, iterable));
  loop->depth = checked_depth(depth_of(loop->source));
  loop->depth0 = depth0;
  if (stmt.recursive) {
    loop->recursive = &stmt;
    loop->scope = scope;
  }
  if (stmt.exprs[1]) {
    loop->filter = [&](const Value& item) {
      const ScopePtr own = inside(scope);
      assign(stmt.targets[0], item, own);
      return truth(eval(*stmt.exprs[1], own));
    };
  }
  bool finished_one = false;  // as compiled by Jinja: a pass left by break or continue does not count
  while (loop->advance()) {
    budget_.spend(1);
    const ScopePtr own = inside(scope);
    own->vars.emplace_back(tree_.loop, handle);
    assign(stmt.targets[0], loop->now, own);
    const Flow flow = exec(stmt.bodies[0], own);
    if (flow == Flow::break_loop) break;
    finished_one |= flow == Flow::on;
  }
  loop->filter = nullptr;  // whoever still holds the loop must not look back into this call
  if (!finished_one && stmt.bodies.size() > 1) exec(stmt.bodies[1], inside(scope));
}

Text Interp::loop_again(const LoopObject& loop, const Value& iterable) {
  return capture([&] { exec_loop(*loop.recursive, iterable, loop.scope, loop.depth0 + 1); });
}

void Interp::exec_with(const Stmt& stmt, const ScopePtr& scope) {
  const ScopePtr own = inside(scope);
  for (std::size_t i = 0; i < stmt.targets.size(); ++i)
    assign(stmt.targets[i], eval(*stmt.exprs[i], scope), own);
  exec(stmt.bodies[0], own);
}

Interp::Flow Interp::exec_assign_block(const Stmt& stmt, const ScopePtr& scope) {
  Flow flow = Flow::on;
  const ScopePtr own = inside(scope);
  Value value = make_text(capture([&] { flow = exec(stmt.bodies[0], own); }));
  if (flow != Flow::on) return flow;
  if (stmt.exprs[0]) {
    std::swap(block_value_, value);
    Value filtered = eval(*stmt.exprs[0], own);
    block_value_ = std::move(value);
    value = std::move(filtered);
  }
  assign(stmt.targets[0], value, scope);
  return Flow::on;
}

Interp::Flow Interp::exec_filter_block(const Stmt& stmt, const ScopePtr& scope) {
  Flow flow = Flow::on;
  const ScopePtr own = inside(scope);
  Value value = make_text(capture([&] { flow = exec(stmt.bodies[0], own); }));
  if (flow != Flow::on) return flow;
  std::swap(block_value_, value);
  const Value filtered = eval(*stmt.exprs[0], own);
  block_value_ = std::move(value);
  append_str(*out_, filtered);
  return Flow::on;
}

void Interp::exec_call_block(const Stmt& stmt, const ScopePtr& scope) {
  keep(scope);
  const Value caller = make_macro(stmt.macro, scope);
  append_str(*out_, eval_call(*stmt.exprs[0], scope, &caller));
}

void Interp::assign(const Target& target, const Value& value, const ScopePtr& scope) {
  if (target.is_tuple) {
    const std::vector<Value> items = iterate(budget_, value);
    if (items.size() != target.parts.size()) {
      fail(ErrorKind::invalid_input, "{} values cannot be unpacked into {} names", items.size(),
           target.parts.size());
    }
    for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i], scope);
    return;
  }
  if (target.attribute.empty()) {
    scope->set(target.symbol, value);
    return;
  }
  const Value object = lookup(scope, target.symbol);
  auto* space = object.is(Value::Kind::object) ? dynamic_cast<NamespaceObject*>(&object.object()) : nullptr;
  if (space == nullptr) {
    fail(ErrorKind::invalid_input, "only a namespace's attributes can be set; \"{}\" is of type {}",
         tree_.symbols[target.symbol], type_name(object));
  }
  space->attributes.put(Value(target.attribute), value);
}

// Binds arguments as jinja2's Macro does: positional, then named, then defaults; what is left goes to varargs
// and kwargs when the body mentions them.
Value Interp::call_macro(const MacroDef& macro, const ScopePtr& scope, const CallArgs& args) {
  const Level level(*this);
  const ScopePtr own = inside(scope);
  const std::size_t count = macro.params.size();
  std::vector<std::pair<std::string, Value>> named = args.named;
  const auto take_named = [&](const std::string& name) -> std::optional<Value> {
    const auto at =
        std::find_if(named.begin(), named.end(), [&](const auto& arg) { return arg.first == name; });
    if (at == named.end()) return std::nullopt;
    Value value = std::move(at->second);
    named.erase(at);
    return value;
  };
  for (std::size_t i = 0; i < count; ++i) {
    std::optional<Value> value;
    if (i < args.positional.size()) {
      value = args.positional[i];
    } else {
      value = take_named(macro.param_names[i]);
    }
    const std::size_t first_default = count - macro.defaults.size();
    if (!value.has_value() && i >= first_default) value = eval(*macro.defaults[i - first_default], own);
    if (!value.has_value())
      value = Value::undefined("parameter '" + macro.param_names[i] + "' was not provided");
    own->set(macro.params[i], std::move(*value));
  }
  if (macro.uses_caller && !macro.explicit_caller) {
    own->set(tree_.caller, take_named("caller").value_or(Value::undefined("No caller defined")));
  }
  if (macro.uses_kwargs) {
    Dict rest;
    for (auto& [name, value] : named) rest.put(Value(name), std::move(value));
    own->set(tree_.kwargs, make_dict(std::move(rest)));
  } else if (!named.empty()) {
    fail(ErrorKind::invalid_input, "macro '{}' takes no argument called '{}'", macro.name,
         printable(named[0].first));
  }
  if (macro.uses_varargs) {
    std::vector<Value> rest;
    for (std::size_t i = count; i < args.positional.size(); ++i) rest.push_back(args.positional[i]);
    own->set(tree_.varargs, Value::tuple(std::move(rest)));
  } else if (args.positional.size() > count) {
    fail(ErrorKind::invalid_input, "macro '{}' takes at most {} arguments", macro.name, count);
  }
  return make_text(capture([&] { exec(macro.body, own); }));
}

// ---- Objects

void NamespaceObject::append_repr(TextBuilder& out, std::size_t depth_now) const {
  out.append("<Namespace ");
  append_dict_repr(out, attributes, depth_now);
  out.append(">");
}

Value NamespaceObject::attribute(const Value& /*self*/, std::string_view name) {
  const Value* found = attributes.find_name(name);
  return found == nullptr ? Value() : *found;
}

std::optional<Value> LoopObject::pull() {
  if (!ahead.empty()) {
    Value value = std::move(ahead.front());
    ahead.pop_front();
    return value;
  }
  Sequence& sequence = source.sequence();
  std::size_t& next = source.is(Value::Kind::iterator) ? sequence.cursor : next_;
  while (next < sequence.items.size()) {
    Value value = sequence.items[next++];
    if (!filter || filter(value)) return value;
  }
  return std::nullopt;
}

bool LoopObject::peek() {
  if (!after.has_value()) after = pull();
  return after.has_value();
}

bool LoopObject::advance() {
  if (!peek()) return false;
  ++index0;
  previous = std::move(now);
  now = std::move(*after);
  after.reset();
  return true;
}

std::int64_t LoopObject::length() {
  if (length_.has_value()) return *length_;
  if (!filter && !source.is(Value::Kind::iterator)) {
    length_ = static_cast<std::int64_t>(source.sequence().items.size());
    return *length_;
  }
  std::deque<Value> rest;
  while (std::optional<Value> value = pull()) rest.push_back(std::move(*value));
  ahead = std::move(rest);
  length_ = static_cast<std::int64_t>(ahead.size()) + index0 + 1 + (after.has_value() ? 1 : 0);
  return *length_;
}

void LoopObject::append_repr(TextBuilder& out, std::size_t /*depth_now*/) const {
  out.append(fmt::format("<LoopContext {}/{}>", index0 + 1, const_cast<LoopObject*>(this)->length()));
}

void LoopObject::release() {
  last_changed.reset();
  scope.reset();
}

Value LoopObject::invoke(Interp& interp, const CallArgs& args) {
  const Params params("loop", args, {"iterable"});
  if (recursive == nullptr) fail(ErrorKind::invalid_input, "only a loop marked \"recursive\" can be called");
  return make_text(interp.loop_again(*this, params.need(0)));
}

}  // namespace ponder::text::jinja
