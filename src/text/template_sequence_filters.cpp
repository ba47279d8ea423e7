// Filters on lists and dicts.
#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "text/template_interp.hpp"

namespace ponder::text::jinja {
namespace {

using Kind = Value::Kind;

Value iterator_of(std::vector<Value> items) {
  return make_sequence(Kind::iterator, std::move(items));
}

Value lowered(Interp& interp, const Value& value) {
  return value.is_string() ? make_text(change_case(interp.budget(), value.text(), Case::lower)) : value;
}

// Looks up "a.b.0" as jinja2's make_attrgetter: each part as an item, whole numbers as indices.
class Getter {
 public:
  Getter(Interp& interp, const Value& attribute, bool ignore_case = false, Value fallback = nullptr)
      : interp_(&interp), ignore_case_(ignore_case), fallback_(std::move(fallback)) {
    if (attribute.is_none()) return;
    if (!attribute.is_string()) {
      need_defined(attribute);
      parts_.push_back(attribute);
      return;
    }
    const Text dot(".");
    for (const Value& part : split(interp.budget(), attribute.text(), &dot, -1)) {
      const std::string& name = part.as_string();
      const bool number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
      parts_.push_back(number ? parse_int(name, 10).value_or(part) : part);
    }
  }

  Value operator()(Value item) const {
    for (const Value& part : parts_) {
      item = interp_->item(item, part);
      if (!fallback_.is_none() && item.is_undefined()) item = fallback_;
    }
    return ignore_case_ ? lowered(*interp_, item) : item;
  }

 private:
  Interp* interp_;
  bool ignore_case_;
  Value fallback_;
  std::vector<Value> parts_;
};

// Values sorted by key, equal ones left in their order, whichever the direction.
std::vector<Value> sorted_by(Interp& interp, const std::vector<Value>& values, const std::vector<Value>& keys,
                             bool reverse) {
  std::vector<std::size_t> places(values.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return std::is_lt(order(interp.budget(), keys[reverse ? b : a], keys[reverse ? a : b], "<"));
  });
  std::vector<Value> out;
  out.reserve(values.size());
  for (const std::size_t place : places) out.push_back(values[place]);
  return out;
}

Value sort_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("sort", args, {"reverse", "case_sensitive", "attribute"});
  std::vector<Getter> getters;
  const Value attribute = p.get(2, nullptr);
  const bool ignore_case = !p.flag(1, false);
  if (attribute.is_string()) {
    const Text comma(",");
    for (const Value& one : split(interp.budget(), attribute.text(), &comma, -1)) {
      getters.emplace_back(interp, one, ignore_case);
    }
  } else {
    getters.emplace_back(interp, attribute, ignore_case);
  }
  const std::vector<Value> values = iterate(interp.budget(), input);
  std::vector<Value> keys;
  for (const Value& value : values) {
    std::vector<Value> key;
    key.reserve(getters.size());
    for (const Getter& getter : getters) key.push_back(getter(value));
    keys.push_back(Value::list(std::move(key)));
  }
  return Value::list(sorted_by(interp, values, keys, p.flag(0, false)));
}

Value dictsort_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("dictsort", args, {"case_sensitive", "by", "reverse"});
  need_defined(input);
  if (!input.is_dict()) fail(ErrorKind::invalid_input, "dictsort needs a dict, not {}", type_name(input));
  const std::string by = p.has(1) ? to_text(interp.budget(), p.need(1)).bytes() : "key";
  if (by != "key" && by != "value") fail(ErrorKind::invalid_input, "dictsort sorts by \"key\" or \"value\"");
  std::vector<Value> pairs, keys;
  for (const auto& [key, value] : input.entries()) {
    interp.budget().spend(1);
    const Value& chosen = by == "key" ? key : value;
    keys.push_back(p.flag(0, false) ? chosen : lowered(interp, chosen));
    pairs.push_back(Value::tuple({key, value}));
  }
  return Value::list(sorted_by(interp, pairs, keys, p.flag(2, false)));
}

Value groupby_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("groupby", args, {"attribute", "default", "case_sensitive"});
  const bool ignore_case = !p.flag(2, false);
  const Getter getter(interp, p.need(0), ignore_case, p.get(1, nullptr));
  const Getter plain(interp, p.need(0), false, p.get(1, nullptr));
  const std::vector<Value> values = iterate(interp.budget(), input);
  std::vector<Value> keys;
  keys.reserve(values.size());
  for (const Value& value : values) keys.push_back(getter(value));
  std::vector<Value> groups, group;
  std::optional<Value> key;
  const auto close = [&] {
    if (!group.empty()) {
      Value shown = plain(group[0]);
      groups.push_back(
          make_sequence(Kind::tuple, {std::move(shown), Value::list(std::move(group))}, "group"));
    }
    group.clear();
  };
  for (const Value& value : sorted_by(interp, values, keys, false)) {
    Value now = getter(value);
    if (!key.has_value() || !equals(interp.budget(), *key, now)) close();
    key = std::move(now);
    group.push_back(value);
  }
  close();
  return Value::list(std::move(groups));
}

Value unique_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("unique", args, {"case_sensitive", "attribute"});
  const Getter getter(interp, p.get(1, nullptr), !p.flag(0, false));
  std::set<Value, KeyLess> seen;
  std::vector<Value> out;
  for (const Value& value : iterate(interp.budget(), input)) {
    Value key = getter(value);
    if (!hashable(key))
      fail(ErrorKind::invalid_input, "unique: values of type {} cannot be compared", type_name(key));
    interp.budget().spend(weight_of(key) * 8);
    if (seen.insert(std::move(key)).second) out.push_back(value);
  }
  return iterator_of(std::move(out));
}

Value extreme(Interp& interp, const Value& input, const CallArgs& args, bool largest) {
  const Params p(largest ? "max" : "min", args, {"case_sensitive", "attribute"});
  const Getter getter(interp, p.get(1, nullptr), !p.flag(0, false));
  const std::vector<Value> values = iterate(interp.budget(), input);
  if (values.empty()) return Value::undefined("no aggregated item, the sequence was empty");
  const Value* best = &values[0];
  Value best_key = getter(values[0]);
  for (std::size_t i = 1; i < values.size(); ++i) {
    Value key = getter(values[i]);
    const auto ordering = order(interp.budget(), key, best_key, largest ? ">" : "<");
    if (!(largest ? std::is_gt(ordering) : std::is_lt(ordering))) continue;
    best = &values[i];
    best_key = std::move(key);
  }
  return *best;
}

Value min_filter(Interp& interp, const Value& input, const CallArgs& args) {
  return extreme(interp, input, args, false);
}
Value max_filter(Interp& interp, const Value& input, const CallArgs& args) {
  return extreme(interp, input, args, true);
}

Value sum_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("sum", args, {"attribute", "start"});
  const Getter getter(interp, p.get(0, nullptr));
  Value total = p.get(1, 0);
  if (total.is_string()) fail(ErrorKind::invalid_input, "sum does not add strings");
  for (const Value& value : iterate(interp.budget(), input)) {
    total = arithmetic(interp.budget(), Arith::add, total, getter(value));
  }
  return total;
}

Value join_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("join", args, {"d", "attribute"});
  const Text separator = to_text(interp.budget(), p.get(0, ""));
  const Getter getter(interp, p.get(1, nullptr));
  TextBuilder out(interp.budget());
  bool first = true;
  for (const Value& value : iterate(interp.budget(), input)) {
    if (!first) out.append(separator);
    first = false;
    append_str(out, getter(value));
  }
  return out.take_value();
}

Value first_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("first", args, {});
  if (input.is(Kind::iterator)) {
    Sequence& rest = input.sequence();
    if (rest.cursor < rest.items.size()) return rest.items[rest.cursor++];
  } else if (input.is_string() && !input.text().bytes().empty()) {
    return interp.item(input, 0);
  } else {
    const std::vector<Value> values = iterate(interp.budget(), input);
    if (!values.empty()) return values[0];
  }
  return Value::undefined("no first item, the sequence was empty");
}

Value last_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("last", args, {});
  if (input.is(Kind::iterator))
    fail(ErrorKind::invalid_input, "last needs a list, not an iterator (use \"| list\")");
  if (input.is_string() && !input.text().bytes().empty()) return interp.item(input, -1);
  const std::vector<Value> values = iterate(interp.budget(), input);
  return values.empty() ? Value::undefined("no last item, the sequence was empty") : values.back();
}

Value list_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("list", args, {});
  return Value::list(iterate(interp.budget(), input));
}

Value reverse_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("reverse", args, {});
  if (input.is_string()) return make_text(reversed(interp.budget(), input.text()));
  std::vector<Value> values = iterate(interp.budget(), input);
  std::reverse(values.begin(), values.end());
  return input.is(Kind::iterator) ? Value::list(std::move(values)) : iterator_of(std::move(values));
}

Value items_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("items", args, {});
  std::vector<Value> pairs;
  if (input.is_undefined()) return iterator_of({});
  if (!input.is_dict()) fail(ErrorKind::invalid_input, "items needs a dict, not {}", type_name(input));
  interp.budget().spend(2 * input.entries().size());
  for (const auto& [key, value] : input.entries()) pairs.push_back(Value::tuple({key, value}));
  return iterator_of(std::move(pairs));
}

Value batch_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("batch", args, {"linecount", "fill_with"});
  p.need(0);
  const std::int64_t size = p.integer(0, 0);
  std::vector<Value> out, row;
  for (const Value& value : iterate(interp.budget(), input)) {
    if (static_cast<std::int64_t>(row.size()) == size) {
      out.push_back(Value::list(std::move(row)));
      row = {};
    }
    row.push_back(value);
  }
  if (!row.empty()) {
    while (!p.none(1) && static_cast<std::int64_t>(row.size()) < size) {
      interp.budget().spend(1);
      row.push_back(p.need(1));
    }
    out.push_back(Value::list(std::move(row)));
  }
  return iterator_of(std::move(out));
}

Value slice_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("slice", args, {"slices", "fill_with"});
  p.need(0);
  const std::int64_t slices = p.integer(0, 0);
  const std::vector<Value> values = iterate(interp.budget(), input);
  if (slices == 0) fail(ErrorKind::invalid_input, "division by zero");
  const auto length = static_cast<std::int64_t>(values.size());
  std::vector<Value> out;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < slices; ++i) {
    interp.budget().spend(2);
    const bool longer = i < length % slices;
    const std::int64_t end = at + length / slices + (longer ? 1 : 0);
    std::vector<Value> part(values.begin() + at, values.begin() + end);
    if (!p.none(1) && !longer) part.push_back(p.need(1));
    out.push_back(Value::list(std::move(part)));
    at = end;
  }
  return iterator_of(std::move(out));
}

// ---- Filters that take a filter or a test by name

std::string_view name_argument(const CallArgs& args, std::size_t at, std::string_view what) {
  if (!args.positional[at].is_string()) {
    fail(ErrorKind::invalid_input, "the name of a {} must be a string, not {}", what,
         type_name(args.positional[at]));
  }
  return args.positional[at].as_string();
}

CallArgs after(const CallArgs& args, std::size_t count) {
  return {{args.positional.begin() + static_cast<std::ptrdiff_t>(count), args.positional.end()}, args.named};
}

Value map_filter(Interp& interp, const Value& input, const CallArgs& args) {
  std::vector<Value> out;
  if (!truth(input)) return iterator_of({});
  if (args.positional.empty()) {
    const Params p("map", args, {"attribute", "default"});
    const Getter getter(interp, p.need(0), false, p.get(1, nullptr));
    for (Value& value : iterate(interp.budget(), input)) out.push_back(getter(std::move(value)));
    return iterator_of(std::move(out));
  }
  const std::string_view name = name_argument(args, 0, "filter");
  const FilterInfo* filter = find_filter(name);
  if (filter == nullptr) fail(ErrorKind::unsupported, "no filter is called \"{}\"", printable(name));
  const CallArgs rest = after(args, 1);
  const Interp::Level level(interp);  // map can name itself
  for (const Value& value : iterate(interp.budget(), input))
    out.push_back(filter->apply(interp, value, rest));
  return iterator_of(std::move(out));
}

Value pick(Interp& interp, const Value& input, const CallArgs& args, bool wanted, bool by_attribute) {
  if (!truth(input)) return iterator_of({});
  const std::size_t skip = by_attribute ? 1 : 0;
  if (args.positional.size() < skip)
    fail(ErrorKind::invalid_input, "selectattr and rejectattr need an attribute");
  const Getter getter(interp, by_attribute ? args.positional[0] : Value(nullptr));
  const TestInfo* test = nullptr;
  CallArgs rest;
  if (args.positional.size() > skip) {
    const std::string_view name = name_argument(args, skip, "test");
    test = find_test(name);
    if (test == nullptr) fail(ErrorKind::unsupported, "no test is called \"{}\"", printable(name));
    rest = after(args, skip + 1);
  }
  std::vector<Value> out;
  for (const Value& value : iterate(interp.budget(), input)) {
    interp.budget().spend(1);
    const Value looked_at = getter(value);
    const bool holds = test != nullptr ? test->check(interp, looked_at, rest) : truth(looked_at);
    if (holds == wanted) out.push_back(value);
  }
  return iterator_of(std::move(out));
}

template <bool wanted, bool by_attribute>
Value pick_filter(Interp& interp, const Value& input, const CallArgs& args) {
  return pick(interp, input, args, wanted, by_attribute);
}

}  // namespace

const FilterInfo* find_sequence_filter(std::string_view name) {
  static const std::map<std::string_view, FilterInfo> kFilters = {
      {"batch", {batch_filter}},
      {"dictsort", {dictsort_filter}},
      {"first", {first_filter}},
      {"groupby", {groupby_filter}},
      {"items", {items_filter}},
      {"join", {join_filter}},
      {"last", {last_filter}},
      {"list", {list_filter}},
      {"map", {map_filter}},
      {"max", {max_filter}},
      {"min", {min_filter}},
      {"reject", {pick_filter<false, false>}},
      {"rejectattr", {pick_filter<false, true>}},
      {"reverse", {reverse_filter}},
      {"select", {pick_filter<true, false>}},
      {"selectattr", {pick_filter<true, true>}},
      {"slice", {slice_filter}},
      {"sort", {sort_filter}},
      {"sum", {sum_filter}},
      {"unique", {unique_filter}},
  };
  const auto at = kFilters.find(name);
  return at == kFilters.end() ? nullptr : &at->second;
}

}  // namespace ponder::text::jinja
