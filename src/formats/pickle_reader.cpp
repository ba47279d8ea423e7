#include "formats/pickle_reader.hpp"

#include <algorithm>
#include <cstring>

#include "formats/pickle_opcodes.hpp"

namespace ponder::formats {
namespace {

constexpr std::size_t max_global_line = 256;
constexpr std::size_t max_dimensions = 32;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string dotted(std::string_view module, std::string_view name) {
  return printable(std::string(module) + "." + std::string(name), 200);
}

}  // namespace

PickleReader::PickleReader(std::span<const std::byte> pickle, std::string where, StorageLookup lookup)
    : pickle_(pickle), where_(std::move(where)), lookup_(std::move(lookup)) {}

std::vector<TensorView> PickleReader::read() {
  if (pickle_.size() < 2 || static_cast<std::uint8_t>(pickle_[0]) != op::proto) {
    damaged("does not start as a pickle of protocol 2 to 5");
  }
  const auto protocol = static_cast<std::uint8_t>(pickle_[1]);
  if (protocol < 2 || protocol > 5) refused("is a pickle of protocol {}, expected 2 to 5", protocol);
  at_ = 2;
  while (step()) {
  }
  if (at_ != pickle_.size()) damaged("has {} bytes after the pickle's end", pickle_.size() - at_);
  return finish();
}

std::span<const std::byte> PickleReader::take(std::uint64_t count) {
  if (count > pickle_.size() - at_) {
    damaged("is cut short: {} bytes wanted at byte {}, {} left", count, at_, pickle_.size() - at_);
  }
  const auto bytes = pickle_.subspan(at_, static_cast<std::size_t>(count));
  at_ += bytes.size();
  return bytes;
}

template <class T>
T PickleReader::take_number() {
  T value;
  std::memcpy(&value, take(sizeof value).data(), sizeof value);
  return value;
}

std::string_view PickleReader::take_text(std::uint64_t size) {
  return as_text(take(size));
}

std::string_view PickleReader::take_line() {
  const std::string_view rest = as_text(pickle_.subspan(at_)).substr(0, max_global_line + 1);
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) {
    damaged("has no line end within {} bytes of the global at byte {}", max_global_line, opcode_at_);
  }
  at_ += end + 1;
  return rest.substr(0, end);
}

void PickleReader::need(std::size_t count) const {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() - floor < count) {
    damaged("the opcode at byte {} needs {} values, {} are there", opcode_at_, count, stack_.size() - floor);
  }
}

PickleReader::Value PickleReader::pop() {
  need(1);
  const Value value = stack_.back();
  stack_.pop_back();
  return value;
}

const PickleReader::Value& PickleReader::top() {
  need(1);
  return stack_.back();
}

std::size_t PickleReader::pop_mark() {
  if (marks_.empty()) damaged("the opcode at byte {} needs a mark and there is none", opcode_at_);
  const std::size_t first = marks_.back();
  marks_.pop_back();
  return first;
}

bool PickleReader::step() {
  opcode_at_ = at_;
  const auto opcode = take_number<std::uint8_t>();
  if (opcode == op::stop) return false;
  if (literal(opcode) || memo(opcode) || container(opcode) || call(opcode)) return true;
  const std::string_view name = op::name_of_refused(opcode);
  if (name.empty()) damaged("has the unknown opcode 0x{:02x} at byte {}", opcode, opcode_at_);
  refused(
      "uses the opcode {} at byte {}, which a flat dict of float tensors does not need; nothing was executed",
      name, opcode_at_);
}

bool PickleReader::literal(std::uint8_t opcode) {
  switch (opcode) {
    case op::frame:
      if (take_number<std::uint64_t>() > pickle_.size() - at_) damaged("has a frame that runs past its end");
      return true;
    case op::none:
      push(Kind::none, 0);
      return true;
    case op::new_true:
    case op::new_false:
      push(Kind::boolean, opcode == op::new_true ? 1 : 0);
      return true;
    case op::bin_int:
      push(Kind::integer, take_number<std::int32_t>());
      return true;
    case op::bin_int1:
      push(Kind::integer, take_number<std::uint8_t>());
      return true;
    case op::bin_int2:
      push(Kind::integer, take_number<std::uint16_t>());
      return true;
    case op::long1:
      push_long(take(take_number<std::uint8_t>()));
      return true;
    case op::bin_unicode:
      push({Kind::text, 0, take_text(take_number<std::uint32_t>())});
      return true;
    case op::short_bin_unicode:
      push({Kind::text, 0, take_text(take_number<std::uint8_t>())});
      return true;
    default:
      return false;
  }
}

// Little-endian two's complement of any length up to 8.
void PickleReader::push_long(std::span<const std::byte> digits) {
  if (digits.size() > 8) refused("has an integer of {} bytes at byte {}", digits.size(), opcode_at_);
  const bool negative = !digits.empty() && (digits.back() & std::byte{0x80}) != std::byte{0};
  std::uint64_t bits = negative ? UINT64_MAX : 0;
  if (!digits.empty()) std::memcpy(&bits, digits.data(), digits.size());
  push(Kind::integer, static_cast<std::int64_t>(bits));
}

bool PickleReader::memo(std::uint8_t opcode) {
  const auto recall = [&](std::uint32_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end())
      damaged("recalls the memo {} at byte {}, which was never set", slot, opcode_at_);
    push(found->second);
  };
  switch (opcode) {
    case op::bin_put:
      remember(take_number<std::uint8_t>());
      return true;
    case op::long_bin_put:
      remember(take_number<std::uint32_t>());
      return true;
    case op::memoize:
      remember(static_cast<std::uint32_t>(memo_.size()));
      return true;
    case op::bin_get:
      recall(take_number<std::uint8_t>());
      return true;
    case op::long_bin_get:
      recall(take_number<std::uint32_t>());
      return true;
    default:
      return false;
  }
}

void PickleReader::remember(std::uint32_t slot) {
  memo_[slot] = top();
}

bool PickleReader::container(std::uint8_t opcode) {
  switch (opcode) {
    case op::mark:
      marks_.push_back(stack_.size());
      return true;
    case op::empty_tuple:
      push_tuple(stack_.size());
      return true;
    case op::tuple1:
    case op::tuple2:
    case op::tuple3: {
      const std::size_t count = opcode - op::tuple1 + 1U;
      need(count);
      push_tuple(stack_.size() - count);
      return true;
    }
    case op::tuple:
      push_tuple(pop_mark());
      return true;
    case op::empty_dict:
      dicts_.emplace_back();
      push(Kind::dict, static_cast<std::int64_t>(dicts_.size() - 1));
      return true;
    case op::set_item:
      need(3);
      set_items(stack_.size() - 2);
      return true;
    case op::set_items:
      set_items(pop_mark());
      return true;
    default:
      return false;
  }
}

// Moves stack_[first..] into a new tuple.
void PickleReader::push_tuple(std::size_t first) {
  const std::size_t begin = tuple_items_.size();
  tuple_items_.insert(tuple_items_.end(), stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
  tuples_.emplace_back(begin, tuple_items_.size() - begin);
  stack_.resize(first);
  push(Kind::tuple, static_cast<std::int64_t>(tuples_.size() - 1));
}

// stack_[first..] are keys and values in turn for the dict below them.
void PickleReader::set_items(std::size_t first) {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (first <= floor) damaged("the opcode at byte {} has no dict to fill", opcode_at_);
  const Value& target = stack_[first - 1];
  if (target.kind != Kind::dict && target.kind != Kind::ordered_dict) {
    refused("sets items of {} at byte {}, expected a dict", kind_name(target.kind), opcode_at_);
  }
  if ((stack_.size() - first) % 2 != 0) damaged("has a key without a value at byte {}", opcode_at_);
  auto& dict = dicts_[static_cast<std::size_t>(target.number)];
  for (std::size_t i = first; i < stack_.size(); i += 2) dict.emplace_back(stack_[i], stack_[i + 1]);
  stack_.resize(first);
}

bool PickleReader::call(std::uint8_t opcode) {
  switch (opcode) {
    case op::global: {
      const std::string_view module = take_line();
      push_global(module, take_line());
      return true;
    }
    case op::stack_global: {
      const Value name = pop();
      const Value module = pop();
      if (name.kind != Kind::text || module.kind != Kind::text) {
        damaged("names a global by {} and {} at byte {}", kind_name(module.kind), kind_name(name.kind),
                opcode_at_);
      }
      push_global(module.text, name.text);
      return true;
    }
    case op::bin_pers_id:
      load_storage();
      return true;
    case op::reduce:
      reduce();
      return true;
    case op::build:
      build();
      return true;
    default:
      return false;
  }
}

void PickleReader::push_global(std::string_view module, std::string_view name) {
  struct Known {
    std::string_view module;
    std::string_view name;
    Global global;
  };
  static constexpr std::array<Known, 7> known{{
      {"collections", "OrderedDict", Global::ordered_dict},
      {"torch._utils", "_rebuild_tensor_v2", Global::rebuild_tensor},
      {"torch._utils", "_rebuild_parameter", Global::rebuild_parameter},
      {"torch", "DoubleStorage", Global::storage_f64},
      {"torch", "FloatStorage", Global::storage_f32},
      {"torch", "HalfStorage", Global::storage_f16},
      {"torch", "BFloat16Storage", Global::storage_bf16},
  }};
  for (const Known& entry : known) {
    if (entry.module == module && entry.name == name) {
      return push(Kind::global, static_cast<std::int64_t>(entry.global));
    }
  }
  refused(
      "asks for the global {}, which is not allowed: only float storages and the three ways to rebuild a "
      "state "
      "dict are; nothing was executed",
      dotted(module, name));
}

std::span<const PickleReader::Value> PickleReader::items(std::size_t tuple) const {
  const auto [first, count] = tuples_[tuple];
  return std::span(tuple_items_).subspan(first, count);
}

// ('storage', type, key, device, element count) -> that storage; the device does not matter here.
void PickleReader::load_storage() {
  const Value id = pop();
  const std::span<const Value> parts =
      id.kind == Kind::tuple ? items(static_cast<std::size_t>(id.number)) : std::span<const Value>();
  if (parts.size() != 5 || parts[0].kind != Kind::text || parts[0].text != "storage" ||
      parts[1].kind != Kind::global || parts[2].kind != Kind::text || parts[4].kind != Kind::integer) {
    refused("has a persistent id at byte {} that is not ('storage', type, key, device, count)", opcode_at_);
  }
  DType dtype = DType::f32;
  switch (static_cast<Global>(parts[1].number)) {
    case Global::storage_f64:
      dtype = DType::f64;
      break;
    case Global::storage_f32:
      break;
    case Global::storage_f16:
      dtype = DType::f16;
      break;
    case Global::storage_bf16:
      dtype = DType::bf16;
      break;
    default:
      refused("has a persistent id at byte {} whose type is not a storage", opcode_at_);
  }
  const std::string_view key = parts[2].text;
  const std::int64_t count = parts[4].number;
  const auto [known, added] = storage_of_key_.try_emplace(key, storages_.size());
  if (added) storages_.push_back({dtype, lookup_(key)});
  const Storage& storage = storages_[known->second];
  if (storage.dtype != dtype) {
    refused("uses the storage '{}' as both {} and {}", printable(key), dtype_name(storage.dtype),
            dtype_name(dtype));
  }
  if (count < 0 || dtype_bytes(dtype, static_cast<std::uint64_t>(count)) != storage.bytes.size()) {
    damaged("the storage '{}' has {} bytes, expected {} values of {}", printable(key), storage.bytes.size(),
            count, dtype_name(dtype));
  }
  push(Kind::storage, static_cast<std::int64_t>(known->second));
}

void PickleReader::reduce() {
  const Value arguments = pop();
  const Value callee = pop();
  if (callee.kind != Kind::global || arguments.kind != Kind::tuple) {
    refused("calls {} with {} at byte {}", kind_name(callee.kind), kind_name(arguments.kind), opcode_at_);
  }
  const std::span<const Value> values = items(static_cast<std::size_t>(arguments.number));
  switch (static_cast<Global>(callee.number)) {
    case Global::ordered_dict:
      if (!values.empty()) refused("builds an OrderedDict from arguments at byte {}", opcode_at_);
      dicts_.emplace_back();
      return push(Kind::ordered_dict, static_cast<std::int64_t>(dicts_.size() - 1));
    case Global::rebuild_tensor:
      return push(make_tensor(values));
    case Global::rebuild_parameter:
      return push(make_parameter(values));
    default:
      refused("calls a storage type at byte {}", opcode_at_);
  }
}

// nn.Module.state_dict() hangs its version numbers on the dict as the attribute _metadata; nothing else may
// be set.
void PickleReader::build() {
  const Value state = pop();
  const Value& target = top();
  if (target.kind == Kind::ordered_dict && state.kind == Kind::dict) {
    const auto& attributes = dicts_[static_cast<std::size_t>(state.number)];
    const bool only_metadata =
        attributes.size() == 1 && attributes[0].first.kind == Kind::text &&
        attributes[0].first.text == "_metadata" &&
        (attributes[0].second.kind == Kind::ordered_dict || attributes[0].second.kind == Kind::dict);
    if (attributes.empty() || only_metadata) return;
  }
  refused("sets attributes of {} at byte {}, expected only _metadata of an OrderedDict",
          kind_name(target.kind), opcode_at_);
}

// (storage, offset, shape, strides, requires_grad, hooks[, flags])
PickleReader::Value PickleReader::make_tensor(std::span<const Value> arguments) {
  const bool known = (arguments.size() == 6 || arguments.size() == 7) && arguments[0].kind == Kind::storage &&
                     arguments[1].kind == Kind::integer && is_integer_tuple(arguments[2]) &&
                     is_integer_tuple(arguments[3]) && arguments[4].kind == Kind::boolean;
  if (!known) refused("rebuilds a tensor from unknown arguments at byte {}", opcode_at_);
  Tensor tensor;
  tensor.storage = static_cast<std::size_t>(arguments[0].number);
  tensor.offset = arguments[1].number;
  tensor.shape = static_cast<std::size_t>(arguments[2].number);
  tensor.stride = static_cast<std::size_t>(arguments[3].number);
  tensor.plain = is_empty_dict(arguments[5]) && (arguments.size() == 6 || is_empty_dict(arguments[6]));
  tensors_.push_back(tensor);
  return {Kind::tensor, static_cast<std::int64_t>(tensors_.size() - 1), {}};
}

// (tensor, requires_grad, hooks)
PickleReader::Value PickleReader::make_parameter(std::span<const Value> arguments) const {
  if (arguments.size() != 3 || arguments[0].kind != Kind::tensor || arguments[1].kind != Kind::boolean ||
      !is_empty_dict(arguments[2])) {
    refused("rebuilds a parameter from unknown arguments at byte {}", opcode_at_);
  }
  return arguments[0];
}

// None counts as empty.
bool PickleReader::is_empty_dict(const Value& value) const {
  if (value.kind == Kind::none) return true;
  if (value.kind != Kind::dict && value.kind != Kind::ordered_dict) return false;
  return dicts_[static_cast<std::size_t>(value.number)].empty();
}

bool PickleReader::is_integer_tuple(const Value& value) const {
  if (value.kind != Kind::tuple) return false;
  const auto values = items(static_cast<std::size_t>(value.number));
  return values.size() <= max_dimensions &&
         std::all_of(values.begin(), values.end(), [](const Value& v) { return v.kind == Kind::integer; });
}

std::string_view PickleReader::kind_name(Kind kind) {
  static constexpr std::array<std::string_view, 10> names{
      "None",   "a truth value",  "an integer", "a text",    "a tuple",
      "a dict", "an OrderedDict", "a global",   "a storage", "a tensor"};
  return names[static_cast<std::size_t>(kind)];
}

std::vector<TensorView> PickleReader::finish() {
  if (!marks_.empty() || stack_.size() != 1) {
    damaged("ends with {} values and {} open marks, expected one value", stack_.size(), marks_.size());
  }
  const Value& root = stack_.front();
  if (root.kind != Kind::dict && root.kind != Kind::ordered_dict) {
    refused("holds {}, expected a flat dict of tensors", kind_name(root.kind));
  }
  const auto& dict = dicts_[static_cast<std::size_t>(root.number)];
  std::vector<TensorView> views;
  views.reserve(dict.size());
  for (const auto& [key, value] : dict) {
    if (key.kind != Kind::text) refused("has {} as a key, expected a tensor's name", kind_name(key.kind));
    if (value.kind != Kind::tensor) {
      refused("has {} under '{}', expected a tensor", kind_name(value.kind), printable(key.text));
    }
    views.push_back(view(key.text, tensors_[static_cast<std::size_t>(value.number)]));
  }
  return views;
}

TensorView PickleReader::view(std::string_view name, const Tensor& tensor) const {
  const Storage& storage = storages_[tensor.storage];
  TensorView out;
  out.name = name;
  out.dtype = storage.dtype;
  for (const Value& size : items(tensor.shape)) out.shape.push_back(size.number);
  const std::string shown = printable(name);
  const std::optional<std::uint64_t> count = checked_elements(out.shape);
  if (!count) damaged("the tensor '{}' has the impossible shape {}", shown, shape_text(out.shape));
  const std::uint64_t elements = *count;
  if (!tensor.plain) refused("the tensor '{}' carries hooks or flags, expected plain values", shown);
  if (!is_contiguous(out, tensor.stride)) {
    refused("the tensor '{}' of shape {} is not stored contiguously; save tensor.contiguous()", shown,
            shape_text(out.shape));
  }
  const std::uint64_t item = dtype_info(storage.dtype).block_bytes;
  const std::uint64_t held = storage.bytes.size() / item;
  const auto offset = static_cast<std::uint64_t>(tensor.offset);
  if (tensor.offset < 0 || offset > held || elements > held - offset) {
    damaged("the tensor '{}' of shape {} begins at value {} of a storage of {}", shown, shape_text(out.shape),
            tensor.offset, held);
  }
  out.bytes = storage.bytes.subspan(offset * item, elements * item);
  return out;
}

// The stride of a dimension of size 1, and every stride of an empty tensor, means nothing.
bool PickleReader::is_contiguous(const TensorView& view, std::size_t stride) const {
  const std::span<const Value> strides = items(stride);
  if (strides.size() != view.shape.size()) return false;
  if (std::find(view.shape.begin(), view.shape.end(), 0) != view.shape.end()) return true;
  std::int64_t expected = 1;
  for (std::size_t i = strides.size(); i-- > 0;) {
    if (view.shape[i] == 1) continue;
    if (strides[i].number != expected) return false;
    expected *= view.shape[i];
  }
  return true;
}

}  // namespace ponder::formats
