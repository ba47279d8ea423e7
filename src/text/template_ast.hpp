// The parsed template: a tree of statements and expressions. Internal to the template engine.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/template_value.hpp"

namespace ponder::text::jinja {

struct FilterInfo;
struct TestInfo;
struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using Body = std::vector<Stmt>;
using Symbol = std::uint32_t;  // a variable's name, by its place in Tree::symbols

enum class CompareOp { eq, ne, lt, le, gt, ge, in, not_in };

struct Expr {
  enum class Op {
    constant,   // value
    name,       // symbol
    attribute,  // args[0].name
    item,       // args[0][args[1]]
    slice,      // args[0][args[1]:args[2]:args[3]], each part may be null
    call,       // args[0](args[1]..., named...)
    filter,     // args[0] | name(args[1]..., named...); a null args[0] is the enclosing block's text
    test,       // args[0] is name(args[1]..., named...)
    negate_truth,
    all_of,  // and
    any_of,  // or
    negate,
    plus,
    arithmetic,  // args[0] op args[1]
    concat,      // ~
    compare,     // args[0] compares[0] args[1] compares[1] args[2] ...
    choose,      // args[0] if args[1] else args[2] (may be null)
    list,
    tuple,
    dict,  // key, value, key, value, ...
  };
  Op op = Op::constant;
  int line = 0;
  int depth = 1;  // levels of expressions from here down
  std::string name;
  Symbol symbol = 0;
  int arith = 0;  // Arith
  Value value;
  std::vector<ExprPtr> args;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star, star_star;  // f(*star, **star_star)
  std::vector<CompareOp> compares;
  const FilterInfo* filter = nullptr;
  const TestInfo* test = nullptr;
};

// What `set`, `for` and `with` assign to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  Symbol symbol = 0;
  std::string attribute;
  bool is_tuple = false;
  std::vector<Target> parts;
};

struct MacroDef {
  std::string name;
  std::vector<Symbol> params;
  std::vector<std::string> param_names;
  std::vector<ExprPtr> defaults;  // of the last params
  Body body;
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
  bool explicit_caller = false;  // a parameter is called "caller"
};

struct Stmt {
  enum class Kind {
    text,
    output,        // exprs
    branch,        // bodies[i] when exprs[i]; one more body is the else
    loop,          // for targets[0] in exprs[0] if exprs[1]; bodies: body, else
    assign,        // targets[0] = exprs[0]
    assign_block,  // targets[0] = bodies[0] through exprs[0] (may be null)
    macro,         // symbol, macro
    call_block,    // exprs[0] called with macro as its caller
    filter_block,  // bodies[0] through exprs[0]
    with,          // targets[i] = exprs[i] in bodies[0]
    break_loop,
    continue_loop,
    generation,  // macro, called at once
  };
  Kind kind = Kind::text;
  int line = 0;
  bool recursive = false;
  std::string text;
  Symbol symbol = 0;
  std::vector<ExprPtr> exprs;
  std::vector<Target> targets;
  std::vector<Body> bodies;
  std::shared_ptr<const MacroDef> macro;
};

struct Tree {
  Body body;
  std::vector<std::string> symbols;
  Symbol loop = 0, caller = 0, varargs = 0, kwargs = 0;
};

inline constexpr std::size_t kMaxTemplateBytes = std::size_t{1} << 20;
inline constexpr int kMaxNesting = 128;    // brackets and blocks open at one place
inline constexpr int kMaxExprDepth = 400;  // operators on one another, as in a + b + c + ...

// Fails with the line: bad_file for wrong syntax, unsupported for what this engine refuses, too_large for
// limits.
Tree parse_template(std::string_view source);

}  // namespace ponder::text::jinja
