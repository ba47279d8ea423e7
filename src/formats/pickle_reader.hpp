// The pickle opcodes that describe a flat dict of tensors; internal to this room.
//
// Values live in flat pools and refer to each other by index, so that no input makes the reader recurse, and
// every opcode adds a bounded amount: time and memory are linear in the pickle's size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "formats/checkpoint.hpp"

namespace ponder::formats {

class PickleReader {
 public:
  // The bytes of the storage `key`, checked; throws when there is none.
  using StorageLookup = std::function<std::span<const std::byte>(std::string_view key)>;

  // `where` starts every message: the file and the entry inside it.
  PickleReader(std::span<const std::byte> pickle, std::string where, StorageLookup lookup);

  // Reads all of it; the dict's tensors in its order.
  std::vector<TensorView> read();

 private:
  enum class Global {
    ordered_dict,
    rebuild_tensor,
    rebuild_parameter,
    storage_f64,
    storage_f32,
    storage_f16,
    storage_bf16
  };

  struct Value {
    enum class Kind { none, boolean, integer, text, tuple, dict, ordered_dict, global, storage, tensor };
    Kind kind = Kind::none;
    std::int64_t number = 0;  // boolean, integer; Global; else an index into the pool of its kind
    std::string_view text;    // inside the pickle
  };
  using Kind = Value::Kind;

  struct Storage {
    DType dtype = DType::f32;
    std::span<const std::byte> bytes;
  };

  // As saved; checked when its name is known.
  struct Tensor {
    std::size_t storage = 0;
    std::int64_t offset = 0;  // in elements
    std::size_t shape = 0;    // tuples_
    std::size_t stride = 0;   // tuples_, in elements
    bool plain = true;        // without hooks or flags that would change its values
  };

  template <class... Args>
  [[noreturn]] void damaged(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::bad_file, "{}: {}", where_, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  [[noreturn]] void refused(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::unsupported, "{}: {}", where_, fmt::format(format, std::forward<Args>(args)...));
  }

  // Reading the opcode stream.
  std::span<const std::byte> take(std::uint64_t count);
  template <class T>
  T take_number();
  std::string_view take_text(std::uint64_t size);
  std::string_view take_line();

  // The stack. A mark hides everything below it.
  void push(Value value) { stack_.push_back(value); }
  void push(Kind kind, std::int64_t number) { stack_.push_back({kind, number, {}}); }
  void need(std::size_t count) const;
  Value pop();
  const Value& top();
  std::size_t pop_mark();  // where the values above it begin

  bool step();  // false after STOP
  bool literal(std::uint8_t opcode);
  bool memo(std::uint8_t opcode);
  bool container(std::uint8_t opcode);
  bool call(std::uint8_t opcode);

  void push_global(std::string_view module, std::string_view name);
  void push_tuple(std::size_t first);
  void push_long(std::span<const std::byte> digits);
  void set_items(std::size_t first);
  void remember(std::uint32_t slot);
  void load_storage();
  void reduce();
  void build();
  Value make_tensor(std::span<const Value> arguments);
  Value make_parameter(std::span<const Value> arguments) const;

  bool is_empty_dict(const Value& value) const;
  bool is_integer_tuple(const Value& value) const;
  std::span<const Value> items(std::size_t tuple) const;
  static std::string_view kind_name(Kind kind);

  std::vector<TensorView> finish();
  TensorView view(std::string_view name, const Tensor& tensor) const;
  bool is_contiguous(const TensorView& view, std::size_t stride) const;

  std::span<const std::byte> pickle_;
  std::string where_;
  StorageLookup lookup_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;

  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, Value> memo_;
  std::vector<Value> tuple_items_;
  std::vector<std::pair<std::size_t, std::size_t>> tuples_;  // (first, count) in tuple_items_
  std::vector<std::vector<std::pair<Value, Value>>> dicts_;  // both kinds
  std::vector<Storage> storages_;
  std::map<std::string_view, std::size_t> storage_of_key_;
  std::vector<Tensor> tensors_;
};

}  // namespace ponder::formats
