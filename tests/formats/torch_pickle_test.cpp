// Pickles written opcode by opcode: each thing the reader must check, wrong once.
#include "formats/torch_pickle.hpp"

#include "formats/support.hpp"
#include "formats/zip_writer.hpp"

namespace ponder::formats {
namespace {

using test::as_bytes;
using test::expect_error;
using test::ZipWriter;

std::string raw(std::uint64_t value, std::size_t size) {
  std::string text(size, '\0');
  std::memcpy(text.data(), &value, size);
  return text;
}

std::string text(std::string_view s) {
  return "X" + raw(s.size(), 4) + std::string(s);
}
std::string integer(std::int64_t v) {
  return "\x8A\x08" + raw(static_cast<std::uint64_t>(v), 8);
}
std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
std::string tuple(const std::vector<std::string>& items) {
  std::string out = "(";
  for (const std::string& item : items) out += item;
  return out + "t";
}
std::string integers(const std::vector<std::int64_t>& values) {
  std::vector<std::string> items;
  items.reserve(values.size());
  for (const std::int64_t v : values) items.push_back(integer(v));
  return tuple(items);
}

const std::string ordered = global("collections", "OrderedDict") + ")R";

// One tensor's pickle; fields are changed by tests.
struct TensorCode {
  std::string id_kind = text("storage");
  std::string type = global("torch", "FloatStorage");
  std::string key = text("0");
  std::string device = text("cpu");
  std::string count = integer(6);
  std::string offset = integer(0);
  std::string shape = integers({2, 3});
  std::string stride = integers({3, 1});
  std::string grad = "\x89";
  std::string hooks = ordered;
  std::string more;

  std::string storage() const { return tuple({id_kind, type, key, device, count}) + "Q"; }
  std::string code() const {
    return global("torch._utils", "_rebuild_tensor_v2") +
           tuple({storage(), offset, shape, stride, grad, hooks, more}) + "R";
  }
};

// The dict {name: value}.
std::string dict(const std::string& value, const std::string& name = text("w")) {
  return "}" + name + value + "s";
}

std::string archive(const std::string& body,
                    std::string_view data = std::string_view("0123456789abcdefghijklmn")) {
  ZipWriter zip;
  zip.add("head/data.pkl", "\x80\x02" + body + ".");
  zip.add("head/data/0", data);
  zip.add("head/version", "3\n");
  return zip.finish();
}

std::vector<TensorView> parse(const std::string& file) {
  return parse_torch_state_dict(as_bytes(file), "head.pt");
}

void refuse(const std::string& body, ErrorKind kind, std::vector<std::string> parts) {
  parts.emplace_back("head.pt: ");
  const std::string file = archive(body);
  expect_error([&] { parse(file); }, kind, parts);
}

template <class Change>
void refuse_tensor(Change change, ErrorKind kind, const std::vector<std::string>& parts) {
  TensorCode tensor;
  change(tensor);
  refuse(dict(tensor.code()), kind, parts);
}

constexpr ErrorKind damaged = ErrorKind::bad_file;
constexpr ErrorKind unknown = ErrorKind::unsupported;

TEST(TorchPickle, ReadsADictWrittenByHand) {
  const std::string file = archive(dict(TensorCode().code()));
  const std::vector<TensorView> tensors = parse(file);
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(tensors[0].name, "w");
  EXPECT_EQ(tensors[0].dtype, DType::f32);
  EXPECT_EQ(tensors[0].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(tensors[0].bytes.data()), tensors[0].bytes.size()),
            "0123456789abcdefghijklmn");
}

TEST(TorchPickle, OffsetsAndStridesOfSingleRowsAreUnderstood) {
  TensorCode tensor;
  tensor.offset = integer(2);
  tensor.shape = integers({1, 3, 1});
  tensor.stride = integers({77, 1, -5});  // sizes of 1 have no stride to speak of
  const std::string file = archive(dict(tensor.code()));
  const std::vector<TensorView> tensors = parse(file);
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(tensors.at(0).bytes.data()), 12), "89abcdefghij");
  TensorCode empty;
  empty.offset = integer(6);
  empty.shape = integers({0, 4});
  empty.stride = integers({9, 9});
  const std::string other = archive(dict(empty.code()));
  EXPECT_TRUE(parse(other).at(0).bytes.empty());
}

TEST(TorchPickle, FlagsThatChangeNothingAreAccepted) {
  for (const std::string& more : {std::string("N"), std::string("}"), ordered}) {
    TensorCode tensor;
    tensor.more = more;
    tensor.hooks = "N";
    tensor.grad = "\x88";
    EXPECT_EQ(parse(archive(dict(tensor.code()))).size(), 1U);
  }
}

TEST(TorchPickle, Complaint39_GlobalsAreRefusedByName) {
  for (const auto& [module, name] :
       std::vector<std::pair<std::string, std::string>>{{"os", "system"},
                                                        {"builtins", "eval"},
                                                        {"__builtin__", "exec"},
                                                        {"torch", "load"},
                                                        {"torch", "LongStorage"},
                                                        {"torch.jit", "_load"},
                                                        {"collections", "ordereddict"},
                                                        {"torch._utils", "_rebuild_tensor"},
                                                        {"torch.FloatStorage", ""},
                                                        {"", ""},
                                                        {"numpy.core.multiarray", "_reconstruct"},
                                                        {"torch", "FloatStorage "},
                                                        {"collections.OrderedDict", "fromkeys"}}) {
    const std::string dotted = fmt::format("{}.{}", module, name);
    refuse(dict(global(module, name)), unknown, {dotted, "not allowed", "nothing was executed"});
    refuse(text(module) + text(name) + "\x93", unknown, {dotted});
  }
  refuse(dict(global("a\x01\xFF", "b")), unknown, {"a\\x01\\xff.b"});
  refuse(dict("c" + std::string(1000, 'm')), damaged, {"line end"});
  refuse("c" + std::string("torch\nFloatSto"), damaged, {"line end"});
  refuse(text("os") + integer(1) + "\x93", damaged, {"a text", "an integer"});
}

TEST(TorchPickle, Complaint39_OpcodesThatDoMoreAreRefusedByName) {
  for (const auto& [opcode, name] : std::vector<std::pair<int, std::string>>{{'i', "INST"},
                                                                             {'o', "OBJ"},
                                                                             {0x81, "NEWOBJ"},
                                                                             {0x92, "NEWOBJ_EX"},
                                                                             {0x82, "EXT1"},
                                                                             {0x83, "EXT2"},
                                                                             {0x84, "EXT4"},
                                                                             {'P', "PERSID"},
                                                                             {'0', "POP"},
                                                                             {'1', "POP_MARK"},
                                                                             {'2', "DUP"},
                                                                             {']', "EMPTY_LIST"},
                                                                             {'a', "APPEND"},
                                                                             {'e', "APPENDS"},
                                                                             {'l', "LIST"},
                                                                             {'d', "DICT"},
                                                                             {'I', "INT"},
                                                                             {'L', "LONG"},
                                                                             {'F', "FLOAT"},
                                                                             {'G', "BINFLOAT"},
                                                                             {'S', "STRING"},
                                                                             {'V', "UNICODE"},
                                                                             {'U', "SHORT_BINSTRING"},
                                                                             {'T', "BINSTRING"},
                                                                             {'B', "BINBYTES"},
                                                                             {'C', "SHORT_BINBYTES"},
                                                                             {'g', "GET"},
                                                                             {'p', "PUT"},
                                                                             {0x8B, "LONG4"},
                                                                             {0x8D, "BINUNICODE8"},
                                                                             {0x8E, "BINBYTES8"},
                                                                             {0x8F, "EMPTY_SET"},
                                                                             {0x90, "ADDITEMS"},
                                                                             {0x91, "FROZENSET"},
                                                                             {0x96, "BYTEARRAY8"},
                                                                             {0x97, "NEXT_BUFFER"},
                                                                             {0x98, "READONLY_BUFFER"},
                                                                             {0x80, "PROTO"}}) {
    refuse(std::string("}") + static_cast<char>(opcode), unknown, {"opcode " + name + " at byte 3"});
  }
  for (const int opcode : {0x00, 0x7A, 0x7F, 0x99, 0xFF}) {
    refuse(std::string("}") + static_cast<char>(opcode), damaged,
           {fmt::format("unknown opcode 0x{:02x}", opcode)});
  }
}

TEST(TorchPickle, Complaint39_CallsAreOnlyTheKnownOnes) {
  refuse(dict(global("torch", "FloatStorage") + ")R"), unknown, {"calls a storage type"});
  refuse(dict(text("eval") + ")R"), unknown, {"calls a text"});
  refuse(dict(ordered + ")R"), unknown, {"calls an OrderedDict"});
  refuse(dict(global("collections", "OrderedDict") + text("x") + "R"), unknown, {"a text"});
  refuse(dict(global("collections", "OrderedDict") + tuple({"}"}) + "R"), unknown, {"from arguments"});
  refuse(dict(global("torch._utils", "_rebuild_tensor_v2") + ")R"), unknown, {"unknown arguments"});
  refuse(dict(global("torch._utils", "_rebuild_parameter") + ")R"), unknown, {"unknown arguments"});
  refuse(dict(global("torch._utils", "_rebuild_parameter") + tuple({text("w"), "\x88", ordered}) + "R"),
         unknown, {"unknown arguments"});
}

TEST(TorchPickle, Complaint39_AttributesAreOnlyMetadata) {
  const std::string w = text("w") + TensorCode().code() + "s";
  EXPECT_EQ(parse(archive(ordered + w + dict(ordered, text("_metadata")) + "b")).size(), 1U);
  EXPECT_EQ(parse(archive(ordered + w + "}b")).size(), 1U);
  refuse(ordered + w + dict(ordered, text("__class__")) + "b", unknown, {"attributes of an OrderedDict"});
  refuse(ordered + w + dict(text("x"), text("_metadata")) + "b", unknown, {"attributes"});
  refuse(ordered + w + text("state") + "b", unknown, {"attributes"});
  refuse(ordered + w + "}" + text("_metadata") + ordered + "s" + text("more") + ordered + "sb", unknown,
         {"attributes"});
  refuse("}" + w + dict(ordered, text("_metadata")) + "b", unknown, {"attributes of a dict"});
  refuse(dict(TensorCode().code() + "}b"), unknown, {"attributes of a tensor"});
  refuse("}b", damaged, {"needs 1 values"});
}

TEST(TorchPickle, PersistentIdsAreStorages) {
  refuse_tensor([](TensorCode& t) { t.id_kind = text("module"); }, unknown, {"persistent id"});
  refuse_tensor([](TensorCode& t) { t.type = global("collections", "OrderedDict"); }, unknown,
                {"not a storage"});
  refuse_tensor([](TensorCode& t) { t.type = text("FloatStorage"); }, unknown, {"persistent id"});
  refuse_tensor([](TensorCode& t) { t.key = integer(0); }, unknown, {"persistent id"});
  refuse_tensor([](TensorCode& t) { t.count = text("6"); }, unknown, {"persistent id"});
  refuse_tensor([](TensorCode& t) { t.device = ""; }, unknown, {"persistent id"});
  refuse(dict(text("0") + "Q"), unknown, {"persistent id"});
  refuse_tensor([](TensorCode& t) { t.key = text("1"); }, damaged, {"'head/data/1'"});
  refuse_tensor([](TensorCode& t) { t.key = text("../version"); }, damaged, {"'head/data/../version'"});
  refuse_tensor([](TensorCode& t) { t.key = text(""); }, damaged, {"'head/data/'"});
  refuse_tensor([](TensorCode& t) { t.count = integer(5); }, damaged,
                {"storage '0'", "24 bytes", "5 values"});
  refuse_tensor([](TensorCode& t) { t.count = integer(7); }, damaged, {"storage '0'", "7 values"});
  refuse_tensor([](TensorCode& t) { t.count = integer(-6); }, damaged, {"storage '0'", "-6 values"});
  refuse_tensor([](TensorCode& t) { t.count = integer((std::int64_t{1} << 62) + 6); }, damaged,
                {"storage '0'"});
  refuse_tensor([](TensorCode& t) { t.type = global("torch", "DoubleStorage"); }, damaged,
                {"6 values of f64"});
  TensorCode half;
  half.type = global("torch", "HalfStorage");
  half.count = integer(12);
  refuse("}" + text("a") + TensorCode().code() + "s" + text("b") + half.code() + "s", unknown,
         {"f32 and f16"});
}

TEST(TorchPickle, TensorsStayInsideTheirStorage) {
  using Numbers = std::vector<std::int64_t>;
  const auto shaped = [](const Numbers& shape, const Numbers& stride, std::int64_t offset) {
    return [=](TensorCode& t) {
      t.shape = integers(shape);
      t.stride = integers(stride);
      t.offset = integer(offset);
    };
  };
  const std::int64_t big = std::int64_t{1} << 62;
  refuse_tensor(shaped({2, 4}, {4, 1}, 0), damaged, {"'w'", "[2, 4]", "storage of 6"});
  refuse_tensor(shaped({2, 3}, {3, 1}, 1), damaged, {"'w'", "value 1 of a storage of 6"});
  refuse_tensor(shaped({1}, {1}, 6), damaged, {"'w'"});
  refuse_tensor(shaped({0}, {1}, 7), damaged, {"'w'"});
  refuse_tensor(shaped({1}, {1}, -1), damaged, {"'w'", "-1"});
  refuse_tensor(shaped({1}, {1}, INT64_MIN), damaged, {"'w'"});
  refuse_tensor(shaped({1}, {1}, INT64_MAX), damaged, {"'w'"});
  refuse_tensor(shaped({-2, -3}, {-3, 1}, 0), damaged, {"'w'", "[-2, -3]"});
  refuse_tensor(shaped({big, 8}, {8, 1}, 0), damaged, {"'w'", "impossible"});
  refuse_tensor(shaped({big}, {1}, 0), damaged, {"'w'"});
  refuse_tensor(shaped({3, 2}, {1, 3}, 0), unknown, {"'w'", "contiguous"});
  refuse_tensor(shaped({3}, {2}, 0), unknown, {"'w'", "contiguous"});
  refuse_tensor(shaped({1000}, {0}, 0), unknown, {"'w'", "contiguous"});
  refuse_tensor(shaped({2, 3}, {3}, 0), unknown, {"'w'", "contiguous"});
  refuse_tensor(shaped({6}, {-1}, 0), unknown, {"'w'", "contiguous"});
  refuse_tensor([](TensorCode& t) { t.shape = tuple({text("2")}); }, unknown, {"unknown arguments"});
  refuse_tensor([](TensorCode& t) { t.shape = integer(2); }, unknown, {"unknown arguments"});
  refuse_tensor([](TensorCode& t) { t.shape = integers(std::vector<std::int64_t>(33, 1)); }, unknown,
                {"unknown arguments"});
  refuse_tensor([](TensorCode& t) { t.offset = text("0"); }, unknown, {"unknown arguments"});
  refuse_tensor([](TensorCode& t) { t.more = dict("\x88", text("neg")); }, unknown, {"'w'", "flags"});
  refuse_tensor([](TensorCode& t) { t.hooks = dict("\x88", text("hook")); }, unknown, {"'w'", "hooks"});
  refuse_tensor([](TensorCode& t) { t.hooks = text("hook"); }, unknown, {"'w'", "hooks"});
  refuse_tensor([](TensorCode& t) { t.more = "NN"; }, unknown, {"unknown arguments"});
}

TEST(TorchPickle, TheDictIsFlatAndItsNamesAreNames) {
  const std::string w = TensorCode().code();
  refuse(dict(dict(w)), unknown, {"a dict under 'w'"});
  refuse(dict("N"), unknown, {"None under 'w'"});
  refuse(dict(w, integer(3)), unknown, {"an integer as a key"});
  refuse("}" + text("w") + w + "s" + text("w") + w + "s", damaged, {"'w'", "twice"});
  refuse(dict(w, text("\xFF")), damaged, {"\\xff", "UTF-8"});
  refuse(dict(w, text("\xED\xA0\x80")), damaged, {"UTF-8"});
  refuse(w, unknown, {"a tensor", "flat dict"});
  refuse("N", unknown, {"None", "flat dict"});
  // A dict that holds itself.
  refuse("}q\x01" + text("w") + std::string("h\x01s"), unknown, {"a dict under 'w'"});
}

TEST(TorchPickle, TheStackAndMemoAreChecked) {
  refuse("", damaged, {"0 values"});
  refuse("}}", damaged, {"2 values"});
  refuse("}(", damaged, {"1 open marks"});
  refuse("t", damaged, {"mark"});
  refuse("u", damaged, {"mark"});
  refuse("(u", damaged, {"no dict"});
  refuse("}(" + text("k") + "u", damaged, {"key without a value"});
  refuse(text("x") + "(u", unknown, {"a text"});
  refuse("s", damaged, {"needs 3"});
  refuse("}(NNs", damaged, {"needs 3"});  // the dict lies below the mark
  refuse("N\x85\x86", damaged, {"needs 2"});
  refuse("R", damaged, {"needs 1"});
  refuse("Q", damaged, {"needs 1"});
  refuse(std::string("q\x01"), damaged, {"needs 1"});
  refuse(std::string("h\x01"), damaged, {"memo 1"});
  refuse("j" + raw(0xFFFFFFFF, 4), damaged, {"memo 4294967295"});
  refuse("X" + raw(0xFFFFFFFF, 4) + "w", damaged, {"4294967295 bytes wanted"});
  refuse("\x8A\x09" + std::string(9, '\x01'), unknown, {"integer of 9 bytes"});
  refuse("\x95" + raw(UINT64_MAX, 8), damaged, {"frame"});
  EXPECT_TRUE(parse(archive("}r" + raw(0xFFFFFFFF, 4))).empty());
}

TEST(TorchPickle, TheStreamStartsAndEndsAsItShould) {
  const auto pickled = [](const std::string& pickle) {
    ZipWriter zip;
    zip.add("head/data.pkl", pickle);
    return zip.finish();
  };
  const auto refuse_stream = [&](const std::string& pickle, ErrorKind kind,
                                 const std::vector<std::string>& parts) {
    const std::string file = pickled(pickle);
    expect_error([&] { parse(file); }, kind, parts);
  };
  for (const char protocol : {2, 3, 4, 5})
    EXPECT_TRUE(parse(pickled(std::string("\x80") + protocol + "}.")).empty());
  refuse_stream("", damaged, {"protocol 2 to 5"});
  refuse_stream("}.", damaged, {"protocol 2 to 5"});
  refuse_stream("(dp0\n.", damaged, {"protocol 2 to 5"});
  refuse_stream(std::string("\x80\x00}.", 4), unknown, {"protocol 0"});
  refuse_stream("\x80\x01}.", unknown, {"protocol 1"});
  refuse_stream("\x80\x06}.", unknown, {"protocol 6"});
  refuse_stream("\x80\x02}", damaged, {"cut short"});
  refuse_stream("\x80\x02", damaged, {"cut short"});
  refuse_stream("\x80\x02}.}", damaged, {"1 bytes after"});
  const std::string whole = "\x80\x02" + dict(TensorCode().code()) + ".";
  for (std::size_t kept = 0; kept < whole.size(); ++kept)
    refuse_stream(whole.substr(0, kept), damaged, {"head.pt: "});
}

TEST(TorchPickle, LongAndNegativeIntegersAreRead) {
  // Every way to write the number 3 or -1, seen through the shape they make.
  for (const std::string& three : {std::string("K\x03"), std::string("M\x03\x00", 3), "J" + raw(3, 4),
                                   std::string("\x8A\x01\x03"), integer(3)}) {
    TensorCode tensor;
    tensor.shape = tuple({three});
    tensor.stride = integers({1});
    EXPECT_EQ(parse(archive(dict(tensor.code()))).at(0).shape, std::vector<std::int64_t>{3});
  }
  for (const std::string& minus : {"J" + raw(0xFFFFFFFF, 4), std::string("\x8A\x01\xFF"), integer(-1)}) {
    refuse_tensor([&](TensorCode& t) { t.shape = tuple({minus}); }, damaged, {"[-1]"});
  }
  TensorCode zero;
  zero.offset = std::string("\x8A\x00", 2);  // the empty integer is 0
  EXPECT_EQ(parse(archive(dict(zero.code()))).size(), 1U);
}

TEST(TorchPickle, TheArchiveIsChecked) {
  const std::string pickle = "\x80\x02" + dict(TensorCode().code()) + ".";
  const std::string data = "0123456789abcdefghijklmn";
  const auto made = [&](auto add_more) {
    ZipWriter zip;
    zip.add("head/data.pkl", pickle);
    zip.add("head/data/0", data);
    add_more(zip);
    return zip.finish();
  };
  EXPECT_EQ(parse(made([](ZipWriter& z) { z.add("head/byteorder", "little"); })).size(), 1U);
  expect_error([&] { parse(made([](ZipWriter& z) { z.add("head/byteorder", "big"); })); }, unknown,
               {"'head/byteorder'", "'big'", "little"});
  expect_error([&] { parse(made([](ZipWriter& z) { z.add("x/data.pkl", "x"); })); }, damaged,
               {"'head/data.pkl'", "'x/data.pkl'"});
  for (const std::size_t wrong : {0U, 1U}) {
    expect_error([&] { parse(made([&](ZipWriter& z) { z.entries[wrong].crc ^= 1; })); }, damaged,
                 {wrong == 0 ? "'head/data.pkl'" : "'head/data/0'", "checksum"});
  }
  // A checksum of what is not used does not matter.
  EXPECT_EQ(parse(made([](ZipWriter& z) {
              z.add("head/data/99", "unused");
              z.entries[2].crc ^= 1;
            })).size(),
            1U);
}

TEST(TorchPickle, APickleOverTheLimitIsNotRead) {
  ZipWriter zip;
  zip.add("head/data.pkl", std::string((4U << 20) + 1, '}'));
  const std::string file = zip.finish();
  expect_error([&] { parse(file); }, ErrorKind::too_large, {"'head/data.pkl'", "4194305", "4194304"});
}

}  // namespace
}  // namespace ponder::formats
