// Arguments, functions, and the methods of everything but strings.
#include "text/template_builtins.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.hpp"
#include "text/template_interp.hpp"

namespace ponder::text::jinja {

using Kind = Value::Kind;

// ---- Params

Params::Params(std::string_view function, const CallArgs& args, std::initializer_list<std::string_view> names)
    : function_(function), names_(names), values_(names.size(), nullptr) {
  if (args.positional.size() > names_.size()) {
    fail(ErrorKind::invalid_input, "{} takes at most {} arguments, not {}", function, names_.size(),
         args.positional.size());
  }
  for (std::size_t i = 0; i < args.positional.size(); ++i) values_[i] = &args.positional[i];
  for (const auto& [name, value] : args.named) {
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end()) {
      fail(ErrorKind::invalid_input, "{} has no argument called \"{}\"", function, printable(name));
    }
    const Value*& slot = values_[static_cast<std::size_t>(at - names_.begin())];
    if (slot != nullptr) fail(ErrorKind::invalid_input, "{}: argument \"{}\" is given twice", function, name);
    slot = &value;
  }
}

const Value& Params::need(std::size_t i) const {
  if (!has(i)) fail(ErrorKind::invalid_input, "{}: argument \"{}\" is missing", function_, names_[i]);
  return *values_[i];
}

void Params::wrong_type(std::size_t i, std::string_view wanted) const {
  need_defined(*values_[i]);
  fail(ErrorKind::invalid_input, "{}: argument \"{}\" must be {}, not {}", function_, names_[i], wanted,
       type_name(*values_[i]));
}

std::int64_t Params::integer(std::size_t i, std::int64_t otherwise) const {
  if (!has(i)) return otherwise;
  if (!is_integer(*values_[i])) wrong_type(i, "an integer");
  return values_[i]->integer_or_bool();
}

const Text* Params::text_or_none(std::size_t i) const {
  if (none(i)) return nullptr;
  if (!values_[i]->is_string()) wrong_type(i, "a string or None");
  return &values_[i]->text();
}

const Text& Params::text(std::size_t i) const {
  if (!need(i).is_string()) wrong_type(i, "a string");
  return values_[i]->text();
}

void refuse_private(std::string_view name, int line) {
  if (name.starts_with('_')) {
    fail(ErrorKind::unsupported, "chat template, line {}: access to the attribute \"{}\" is refused", line,
         printable(name));
  }
}

void refuse_dunder(std::string_view name, int line) {
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) refuse_private(name, line);
}

const FilterInfo* find_filter(std::string_view name) {
  const FilterInfo* found = find_text_filter(name);
  return found != nullptr ? found : find_sequence_filter(name);
}

// ---- Functions

namespace {

struct FunctionObject : Callable {
  Value (*run)(Interp&, const CallArgs&) = nullptr;
  std::string_view type_name() const override { return "function"; }
  Value invoke(Interp& interp, const CallArgs& args) override { return run(interp, args); }
};

struct ClockObject : Callable {
  std::tm now{};
  std::string_view type_name() const override { return "function"; }
  Value invoke(Interp& /*interp*/, const CallArgs& args) override {
    return format_time(now, Params("strftime_now", args, {"format"}).text(0).view());
  }
};

struct CyclerObject : Object {
  std::vector<Value> items;
  std::size_t at = 0;
  std::string_view type_name() const override { return "Cycler"; }
  Value attribute(const Value& self, std::string_view name) override;
};

struct JoinerObject : Callable {
  Value separator;
  bool used = false;
  std::string_view type_name() const override { return "Joiner"; }
  Value invoke(Interp& /*interp*/, const CallArgs& args) override {
    const Params none("a joiner", args, {});
    return std::exchange(used, true) ? separator : Value("");
  }
};

template <class T>
Value object_value(std::shared_ptr<T> object) {
  return Value::adopt(Kind::object, std::move(object));
}

Value range_function(Interp& interp, const CallArgs& args) {
  const Params p("range", args, {"start", "stop", "step"});
  const bool one = !p.has(1);
  p.need(0);
  const std::int64_t start = one ? 0 : p.integer(0, 0), stop = p.integer(one ? 0 : 1, 0),
                     step = p.integer(2, 1);
  if (step == 0) fail(ErrorKind::invalid_input, "range: the step cannot be zero");
  // Distances as unsigned numbers, which cannot overflow.
  const auto distance = step > 0 ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                                 : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
  const auto by = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const bool empty = step > 0 ? stop <= start : stop >= start;
  const std::uint64_t count = empty ? 0 : (distance - 1) / by + 1;
  constexpr std::uint64_t kMaxRange = 100'000;  // the sandbox's own limit
  if (count > kMaxRange)
    fail(ErrorKind::too_large, "range of {} items, over the limit of {}", count, kMaxRange);
  interp.budget().spend(count);
  std::vector<Value> items;
  items.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    items.emplace_back(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(start) + (step > 0 ? i * by : 0 - i * by)));
  }
  Value made = make_sequence(Kind::range, std::move(items));
  made.sequence().start = start;
  made.sequence().stop = stop;
  made.sequence().step = step;
  return made;
}

// dict(mapping or pairs, name=value, ...)
Dict build_dict(Interp& interp, std::string_view function, const CallArgs& args) {
  if (args.positional.size() > 1)
    fail(ErrorKind::invalid_input, "{} takes at most one positional argument", function);
  Dict made;
  if (!args.positional.empty()) {
    const Value& from = args.positional[0];
    if (from.is_dict()) {
      interp.budget().spend(from.entries().size());
      made = from.mapping();
    } else {
      for (const Value& pair : iterate(interp.budget(), from)) {
        const std::vector<Value> parts = iterate(interp.budget(), pair);
        if (parts.size() != 2) fail(ErrorKind::invalid_input, "{} needs pairs of key and value", function);
        made.put(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : args.named) made.put(Value(name), value);
  return made;
}

Value dict_function(Interp& interp, const CallArgs& args) {
  return make_dict(build_dict(interp, "dict", args));
}

Value namespace_function(Interp& interp, const CallArgs& args) {
  auto made = std::make_shared<NamespaceObject>();
  made->attributes = build_dict(interp, "namespace", args);
  Value value = object_value(std::move(made));
  interp.keep(value);
  return value;
}

Value cycler_function(Interp& /*interp*/, const CallArgs& args) {
  if (args.positional.empty() || !args.named.empty()) fail(ErrorKind::invalid_input, "cycler needs items");
  auto made = std::make_shared<CyclerObject>();
  for (const Value& item : args.positional)
    made->depth = std::max(made->depth, checked_depth(depth_of(item)));
  made->items = args.positional;
  return object_value(std::move(made));
}

Value joiner_function(Interp& /*interp*/, const CallArgs& args) {
  const Params p("joiner", args, {"sep"});
  auto made = std::make_shared<JoinerObject>();
  made->separator = p.get(0, ", ");
  made->depth = checked_depth(depth_of(made->separator));
  return object_value(std::move(made));
}

Value raise_function(Interp& interp, const CallArgs& args) {
  const Params p("raise_exception", args, {"message"});
  throw RaisedByTemplate(ErrorKind::invalid_input,
                         "chat template: " + printable(to_text(interp.budget(), p.need(0)).bytes(), 1000));
}

Value no_clock_function(Interp& /*interp*/, const CallArgs& /*args*/) {
  fail(ErrorKind::unsupported, "strftime_now needs the date, and none was given to this rendering");
}

Value lipsum_function(Interp& /*interp*/, const CallArgs& /*args*/) {
  fail(ErrorKind::unsupported, "lipsum is not supported in chat templates");
}

}  // namespace

Value Value::clock(const std::tm& now) {
  auto made = std::make_shared<ClockObject>();
  made->now = now;
  return object_value(std::move(made));
}

Value find_global(std::string_view name) {
  // Made once: a function is the same object wherever it is named.
  static const std::map<std::string_view, Value> kFunctions = [] {
    std::map<std::string_view, Value> made;
    const auto add = [&](std::string_view function, Value (*run)(Interp&, const CallArgs&)) {
      auto object = std::make_shared<FunctionObject>();
      object->run = run;
      made.emplace(function, object_value(std::move(object)));
    };
    add("cycler", cycler_function);
    add("dict", dict_function);
    add("joiner", joiner_function);
    add("lipsum", lipsum_function);
    add("namespace", namespace_function);
    add("raise_exception", raise_function);
    add("range", range_function);
    add("strftime_now", no_clock_function);
    return made;
  }();
  const auto at = kFunctions.find(name);
  return at == kFunctions.end() ? Value() : at->second;
}

// ---- Methods

namespace {

struct MethodObject : Callable {
  Value self;
  std::string name;
  std::string_view type_name() const override { return "method"; }
  Value invoke(Interp& interp, const CallArgs& args) override;
};

Value dict_get(const Dict& dict, const CallArgs& args) {
  const Params p("dict.get", args, {"key", "default"});
  if (!hashable(p.need(0)))
    fail(ErrorKind::invalid_input, "a value of type {} cannot be a dict's key", type_name(p.need(0)));
  const Value* found = dict.find(p.need(0));
  return found != nullptr ? *found : p.get(1, nullptr);
}

Value dict_method(Budget& budget, const Value& self, std::string_view name, const CallArgs& args) {
  const Dict& dict = self.mapping();
  if (name == "get") return dict_get(dict, args);
  const Params none("dict." + std::string(name), args, {});
  if (name == "copy") return self;
  budget.spend(2 * dict.entries.size());
  std::vector<Value> items;
  items.reserve(dict.entries.size());
  for (const auto& [key, value] : dict.entries) {
    items.push_back(name == "keys" ? key : name == "values" ? value : Value::tuple({key, value}));
  }
  return make_sequence(Kind::view, std::move(items),
                       name == "keys"     ? "dict_keys"
                       : name == "values" ? "dict_values"
                                          : "dict_items");
}

Value list_method(Budget& budget, const Value& self, std::string_view name, const CallArgs& args) {
  const Params p("list." + std::string(name), args, {"value"});
  if (name == "copy") return self;
  std::int64_t count = 0, at = 0;
  for (const Value& item : self.items()) {
    if (equals(budget, item, p.need(0))) {
      if (name == "index") return at;
      ++count;
    }
    ++at;
  }
  if (name == "index") fail(ErrorKind::invalid_input, "list.index: the value is not in the list");
  return count;
}

Value cycler_method(const Value& self, std::string_view name, const CallArgs& args) {
  const Params none("cycler", args, {});
  auto& cycler = static_cast<CyclerObject&>(self.object());
  if (name == "reset") {
    cycler.at = 0;
    return nullptr;
  }
  Value item = cycler.items[cycler.at];
  cycler.at = (cycler.at + 1) % cycler.items.size();
  return item;
}

Value loop_method(Interp& interp, const Value& self, std::string_view name, const CallArgs& args) {
  auto& loop = static_cast<LoopObject&>(self.object());
  if (name == "cycle") {
    if (args.positional.empty()) fail(ErrorKind::invalid_input, "loop.cycle needs items");
    return args.positional[static_cast<std::size_t>(loop.index0) % args.positional.size()];
  }
  const auto same = [&] {
    const auto &last = *loop.last_changed, &now = args.positional;
    return std::equal(last.begin(), last.end(), now.begin(), now.end(),
                      [&](const Value& a, const Value& b) { return equals(interp.budget(), a, b); });
  };
  if (loop.last_changed.has_value() && same()) return false;
  if (!loop.last_changed.has_value()) interp.keep(self);
  loop.last_changed = args.positional;
  return true;
}

Value MethodObject::invoke(Interp& interp, const CallArgs& args) {
  switch (self.kind()) {
    case Kind::string:
      return string_method(interp.budget(), self.text(), name, args);
    case Kind::dict:
      return dict_method(interp.budget(), self, name, args);
    case Kind::object:
      if (dynamic_cast<LoopObject*>(&self.object()) != nullptr) return loop_method(interp, self, name, args);
      return cycler_method(self, name, args);
    default:
      return list_method(interp.budget(), self, name, args);
  }
}

template <std::size_t N>
bool one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value bound(const Value& self, std::string_view name) {
  auto made = std::make_shared<MethodObject>();
  made->self = self;
  made->name = name;
  made->depth = checked_depth(depth_of(self));
  return object_value(std::move(made));
}

Value CyclerObject::attribute(const Value& self, std::string_view name) {
  if (name == "current") return items[at];
  return name == "next" || name == "reset" ? bound(self, name) : Value();
}

Value withheld(const Value& self, std::string_view name) {
  return Value::undefined(
      fmt::format("{}.{} is refused: a template cannot change values", type_name(self), name));
}

}  // namespace

Value find_method(const Value& receiver, std::string_view name) {
  static constexpr std::array<std::string_view, 5> kDict = {"keys", "values", "items", "get", "copy"};
  static constexpr std::array<std::string_view, 5> kDictChanges = {"clear", "pop", "popitem", "setdefault",
                                                                   "update"};
  static constexpr std::array<std::string_view, 3> kList = {"count", "index", "copy"};
  static constexpr std::array<std::string_view, 8> kListChanges = {"append", "reverse", "insert", "sort",
                                                                   "extend", "remove",  "pop",    "clear"};
  switch (receiver.kind()) {
    case Kind::string:
      return is_string_method(name) ? bound(receiver, name) : Value();
    case Kind::dict:
      if (one_of(kDict, name)) return bound(receiver, name);
      return one_of(kDictChanges, name) ? withheld(receiver, name) : Value();
    case Kind::list:
      if (one_of(kList, name)) return bound(receiver, name);
      return one_of(kListChanges, name) ? withheld(receiver, name) : Value();
    case Kind::tuple:
      if (receiver.sequence().label != nullptr && name == "grouper") return receiver.items()[0];
      if (receiver.sequence().label != nullptr && name == "list") return receiver.items()[1];
      return name == "count" || name == "index" ? bound(receiver, name) : Value();
    case Kind::range:
      if (name == "start") return receiver.sequence().start;
      if (name == "stop") return receiver.sequence().stop;
      if (name == "step") return receiver.sequence().step;
      return name == "count" || name == "index" ? bound(receiver, name) : Value();
    default:
      return {};
  }
}

Value LoopObject::attribute(const Value& self, std::string_view name) {
  if (name == "index") return index0 + 1;
  if (name == "index0") return index0;
  if (name == "first") return index0 == 0;
  if (name == "last") return !peek();
  if (name == "length") return length();
  if (name == "revindex") return length() - index0;
  if (name == "revindex0") return length() - index0 - 1;
  if (name == "depth") return depth0 + 1;
  if (name == "depth0") return depth0;
  if (name == "previtem") return index0 == 0 ? Value::undefined("there is no previous item") : previous;
  if (name == "nextitem") return peek() ? *after : Value::undefined("there is no next item");
  return name == "cycle" || name == "changed" ? bound(self, name) : Value();
}

}  // namespace ponder::text::jinja
