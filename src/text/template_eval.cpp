// Expressions.
#include <algorithm>

#include "text/template_interp.hpp"

namespace ponder::text::jinja {

using Op = Expr::Op;
using Kind = Value::Kind;

Value Interp::eval_part(const ExprPtr& expr, const ScopePtr& scope) {
  return expr ? eval(*expr, scope) : Value(nullptr);
}

Value Interp::eval(const Expr& expr, const ScopePtr& scope) {
  const Level level(*this);
  budget_.spend(1);
  switch (expr.op) {
    case Op::constant:
      return expr.value;
    case Op::name:
      line_ = expr.line;
      return lookup(scope, expr.symbol);
    case Op::attribute: {
      const Value object = eval(*expr.args[0], scope);
      line_ = expr.line;
      return attribute(object, expr.name);
    }
    case Op::item: {
      const Value object = eval(*expr.args[0], scope);
      const Value key = eval(*expr.args[1], scope);
      line_ = expr.line;
      return item(object, key);
    }
    case Op::slice: {
      const Value object = eval(*expr.args[0], scope);
      const Value from = eval_part(expr.args[1], scope), to = eval_part(expr.args[2], scope);
      const Value step = eval_part(expr.args[3], scope);
      line_ = expr.line;
      return slice(budget_, object, from, to, step);
    }
    case Op::call:
      return eval_call(expr, scope, nullptr);
    case Op::filter:
      return eval_filter(expr, scope);
    case Op::test:
      return eval_test(expr, scope);
    case Op::negate_truth:
      return !truth(eval(*expr.args[0], scope));
    case Op::all_of:
    case Op::any_of: {
      Value value;
      for (const ExprPtr& part : expr.args) {
        value = eval(*part, scope);
        if (truth(value) == (expr.op == Op::any_of)) break;
      }
      return value;
    }
    case Op::negate:
      return negate(eval(*expr.args[0], scope));
    case Op::plus: {
      Value value = eval(*expr.args[0], scope);
      need_defined(value);
      if (!is_number(value)) fail(ErrorKind::invalid_input, "unary + does not work on {}", type_name(value));
      return value.is(Kind::boolean) ? Value(value.integer_or_bool()) : value;
    }
    case Op::arithmetic: {
      const Value left = eval(*expr.args[0], scope);
      const Value right = eval(*expr.args[1], scope);
      line_ = expr.line;
      return arithmetic(budget_, static_cast<Arith>(expr.arith), left, right);
    }
    case Op::concat:
      return eval_concat(expr, scope);
    case Op::compare:
      return eval_compare(expr, scope);
    case Op::choose:
      if (truth(eval(*expr.args[1], scope))) return eval(*expr.args[0], scope);
      if (expr.args[2]) return eval(*expr.args[2], scope);
      return Value::undefined("the inline if-expression evaluated to false and no else section was defined");
    case Op::list:
    case Op::tuple:
      return eval_sequence(expr, scope);
    case Op::dict:
      return eval_dict(expr, scope);
  }
  return {};
}

Value Interp::eval_concat(const Expr& expr, const ScopePtr& scope) {
  TextBuilder out(budget_);
  for (const ExprPtr& part : expr.args) append_str(out, eval(*part, scope));
  return out.take_value();
}

Value Interp::eval_sequence(const Expr& expr, const ScopePtr& scope) {
  std::vector<Value> items;
  items.reserve(expr.args.size());
  for (const ExprPtr& part : expr.args) items.push_back(eval(*part, scope));
  return make_sequence(expr.op == Op::list ? Kind::list : Kind::tuple, std::move(items));
}

Value Interp::eval_dict(const Expr& expr, const ScopePtr& scope) {
  Dict made;
  for (std::size_t i = 0; i + 1 < expr.args.size(); i += 2) {
    Value key = eval(*expr.args[i], scope);
    made.put(std::move(key), eval(*expr.args[i + 1], scope));
  }
  return make_dict(std::move(made));
}

bool Interp::compare(CompareOp op, const Value& a, const Value& b) {
  switch (op) {
    case CompareOp::eq:
      return equals(budget_, a, b);
    case CompareOp::ne:
      return !equals(budget_, a, b);
    case CompareOp::lt:
      return std::is_lt(order(budget_, a, b, "<"));
    case CompareOp::le:
      return std::is_lteq(order(budget_, a, b, "<="));
    case CompareOp::gt:
      return std::is_gt(order(budget_, a, b, ">"));
    case CompareOp::ge:
      return std::is_gteq(order(budget_, a, b, ">="));
    case CompareOp::in:
      return contains(budget_, a, b);
    case CompareOp::not_in:
      return !contains(budget_, a, b);
  }
  return false;
}

Value Interp::eval_compare(const Expr& expr, const ScopePtr& scope) {
  Value left = eval(*expr.args[0], scope);
  for (std::size_t i = 0; i < expr.compares.size(); ++i) {
    Value right = eval(*expr.args[i + 1], scope);
    line_ = expr.line;
    if (!compare(expr.compares[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

CallArgs Interp::eval_args(const Expr& expr, const ScopePtr& scope) {
  CallArgs args;
  for (std::size_t i = 1; i < expr.args.size(); ++i) args.positional.push_back(eval(*expr.args[i], scope));
  const auto add_named = [&](const std::string& name, Value value) {
    const auto same = [&](const auto& arg) { return arg.first == name; };
    if (std::any_of(args.named.begin(), args.named.end(), same)) {
      fail(ErrorKind::invalid_input, "argument \"{}\" is given twice", printable(name));
    }
    args.named.emplace_back(name, std::move(value));
  };
  for (const auto& [name, value] : expr.named) add_named(name, eval(*value, scope));
  if (expr.star) {
    const std::vector<Value> more = iterate(budget_, eval(*expr.star, scope));
    args.positional.insert(args.positional.end(), more.begin(), more.end());
  }
  if (expr.star_star) {
    const Value more = eval(*expr.star_star, scope);
    if (!more.is_dict()) fail(ErrorKind::invalid_input, "** needs a dict, not {}", type_name(more));
    budget_.spend(more.entries().size() * (1 + more.entries().size() / 16));
    for (const auto& [key, value] : more.entries()) {
      if (!key.is_string()) fail(ErrorKind::invalid_input, "** needs a dict whose keys are strings");
      add_named(key.as_string(), value);
    }
  }
  return args;
}

Value Interp::eval_filter(const Expr& expr, const ScopePtr& scope) {
  const Value input = expr.args[0] ? eval(*expr.args[0], scope) : block_value_;
  const CallArgs args = eval_args(expr, scope);
  line_ = expr.line;
  if (expr.filter == nullptr)
    fail(ErrorKind::unsupported, "no filter is called \"{}\"", printable(expr.name));
  return expr.filter->apply(*this, input, args);
}

Value Interp::eval_test(const Expr& expr, const ScopePtr& scope) {
  const Value input = eval(*expr.args[0], scope);
  const CallArgs args = eval_args(expr, scope);
  line_ = expr.line;
  if (expr.test == nullptr) fail(ErrorKind::unsupported, "no test is called \"{}\"", printable(expr.name));
  return expr.test->check(*this, input, args);
}

Value Interp::eval_call(const Expr& expr, const ScopePtr& scope, const Value* caller) {
  const Value callee = eval(*expr.args[0], scope);
  CallArgs args = eval_args(expr, scope);
  if (caller != nullptr) args.named.emplace_back("caller", *caller);
  line_ = expr.line;
  return call(callee, args);
}

Value Interp::call(const Value& callee, const CallArgs& args) {
  need_defined(callee);
  if (!callee.is(Kind::object) || !callee.object().callable()) {
    fail(ErrorKind::invalid_input, "a value of type {} cannot be called", type_name(callee));
  }
  const Level level(*this);
  return static_cast<Callable&>(callee.object()).invoke(*this, args);
}

// ---- Attributes and items

namespace {

Value missing(const Value& object, const Value& key, Budget& budget) {
  const std::string owner = object.is_none() ? "None" : "'" + std::string(type_name(object)) + " object'";
  if (key.is_string())
    return Value::undefined(owner + " has no attribute '" + key.as_string().substr(0, 200) + "'");
  TextBuilder shown(budget);
  if (is_number(key)) append_repr(shown, key);
  return Value::undefined(owner + " has no element " + shown.take().bytes());
}

// An attribute in Python's sense: a method, or a field of an object; undefined when there is none.
Value own_attribute(const Value& object, std::string_view name) {
  return object.is(Kind::object) ? object.object().attribute(object, name) : find_method(object, name);
}

// object[key] in Python's sense; nothing where Python raises.
const Value* own_item(const Value& object, const Value& key, Value& made, Budget& budget) {
  if (object.is_dict()) return hashable(key) ? object.mapping().find(key) : nullptr;
  if (!is_integer(key) || object.is(Kind::view) || object.is(Kind::iterator)) return nullptr;
  if (!object.is_string() && !object.is_sequence_cell()) return nullptr;
  const auto length = static_cast<std::int64_t>(*length_of(object));
  const std::int64_t given = key.integer_or_bool();
  const std::int64_t index = given < 0 ? given + length : given;
  if (index < 0 || index >= length) return nullptr;
  if (object.is_sequence_cell()) return &object.sequence().items[static_cast<std::size_t>(index)];
  const Text& text = object.text();
  if (!text.ascii()) budget.spend_bytes(text.bytes().size());
  const std::size_t begin = text.offset(static_cast<std::size_t>(index));
  TextBuilder out(budget);
  out.append(text, begin, text.ascii() ? begin + 1 : text.offset(static_cast<std::size_t>(index) + 1));
  made = out.take_value(text.markup());
  return &made;
}

}  // namespace

Value Interp::attribute(const Value& object, const std::string& name) {
  need_defined(object);
  refuse_private(name, line_);
  Value own = own_attribute(object, name);
  // An attribute the sandbox withholds is undefined with a reason, and hides the key of that name.
  if (!own.is_undefined() || own.cell() != nullptr) return own;
  if (object.is_dict()) {
    if (const Value* found = object.mapping().find_name(name)) return *found;
  }
  return missing(object, Value(name), budget_);
}

Value Interp::item(const Value& object, const Value& key) {
  need_defined(object);
  Value made;
  if (const Value* found = own_item(object, key, made, budget_)) return *found;
  if (key.is_string()) {
    refuse_dunder(key.as_string(), line_);
    Value own = own_attribute(object, key.as_string());
    if (!own.is_undefined() || own.cell() != nullptr) return own;
  }
  return missing(object, key, budget_);
}

}  // namespace ponder::text::jinja
