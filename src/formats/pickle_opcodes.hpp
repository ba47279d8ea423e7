// The opcodes of pickle protocols 0 to 5 by name; internal to this room. (Python's pickletools lists them.)
#pragma once

#include <cstdint>
#include <string_view>

namespace ponder::formats::op {

// What the reader knows.
inline constexpr std::uint8_t mark = '(';
inline constexpr std::uint8_t stop = '.';
inline constexpr std::uint8_t none = 'N';
inline constexpr std::uint8_t bin_int = 'J';
inline constexpr std::uint8_t bin_int1 = 'K';
inline constexpr std::uint8_t bin_int2 = 'M';
inline constexpr std::uint8_t bin_pers_id = 'Q';
inline constexpr std::uint8_t reduce = 'R';
inline constexpr std::uint8_t bin_unicode = 'X';
inline constexpr std::uint8_t build = 'b';
inline constexpr std::uint8_t global = 'c';
inline constexpr std::uint8_t empty_dict = '}';
inline constexpr std::uint8_t empty_tuple = ')';
inline constexpr std::uint8_t bin_get = 'h';
inline constexpr std::uint8_t long_bin_get = 'j';
inline constexpr std::uint8_t bin_put = 'q';
inline constexpr std::uint8_t long_bin_put = 'r';
inline constexpr std::uint8_t set_item = 's';
inline constexpr std::uint8_t tuple = 't';
inline constexpr std::uint8_t set_items = 'u';
inline constexpr std::uint8_t proto = 0x80;
inline constexpr std::uint8_t tuple1 = 0x85;
inline constexpr std::uint8_t tuple2 = 0x86;
inline constexpr std::uint8_t tuple3 = 0x87;
inline constexpr std::uint8_t new_true = 0x88;
inline constexpr std::uint8_t new_false = 0x89;
inline constexpr std::uint8_t long1 = 0x8A;
inline constexpr std::uint8_t short_bin_unicode = 0x8C;
inline constexpr std::uint8_t stack_global = 0x93;
inline constexpr std::uint8_t memoize = 0x94;
inline constexpr std::uint8_t frame = 0x95;

// The name of an opcode that exists and is refused; empty for one that does not exist.
constexpr std::string_view name_of_refused(std::uint8_t opcode) noexcept {
  struct Named {
    std::uint8_t opcode;
    std::string_view name;
  };
  constexpr Named names[] = {
      {'0', "POP"},
      {'1', "POP_MARK"},
      {'2', "DUP"},
      {'F', "FLOAT"},
      {'I', "INT"},
      {'L', "LONG"},
      {'P', "PERSID"},
      {'S', "STRING"},
      {'T', "BINSTRING"},
      {'U', "SHORT_BINSTRING"},
      {'V', "UNICODE"},
      {'a', "APPEND"},
      {'d', "DICT"},
      {'e', "APPENDS"},
      {'g', "GET"},
      {'i', "INST"},
      {'l', "LIST"},
      {'o', "OBJ"},
      {'p', "PUT"},
      {'G', "BINFLOAT"},
      {']', "EMPTY_LIST"},
      {'B', "BINBYTES"},
      {'C', "SHORT_BINBYTES"},
      {proto, "PROTO"},
      {0x81, "NEWOBJ"},
      {0x82, "EXT1"},
      {0x83, "EXT2"},
      {0x84, "EXT4"},
      {0x8B, "LONG4"},
      {0x8D, "BINUNICODE8"},
      {0x8E, "BINBYTES8"},
      {0x8F, "EMPTY_SET"},
      {0x90, "ADDITEMS"},
      {0x91, "FROZENSET"},
      {0x92, "NEWOBJ_EX"},
      {0x96, "BYTEARRAY8"},
      {0x97, "NEXT_BUFFER"},
      {0x98, "READONLY_BUFFER"},
  };
  for (const Named& entry : names) {
    if (entry.opcode == opcode) return entry.name;
  }
  return {};
}

}  // namespace ponder::formats::op
