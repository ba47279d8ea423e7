#include "formats/safetensors.hpp"

#include <algorithm>
#include <deque>
#include <random>

#include <fcntl.h>
#include <unistd.h>

#include "formats/safetensors_dtypes.hpp"
#include "formats/support.hpp"

namespace ponder::formats {
namespace {

using test::as_bytes;
using test::expect_error;
using test::read_file;
using test::safetensors_file;
using test::TempFolder;

SafetensorsContents parse(std::string_view header, std::size_t data_bytes) {
  static std::deque<std::string> kept;  // views point into the file
  std::string data(data_bytes, '\0');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>('a' + i % 26);
  kept.push_back(safetensors_file(header, data));
  return parse_safetensors(as_bytes(kept.back()), "f.safetensors");
}

void refuse(std::string_view header, std::size_t data_bytes, std::vector<std::string> parts) {
  SCOPED_TRACE(header.substr(0, 200));
  parts.emplace_back("f.safetensors");
  expect_error([&] { parse(header, data_bytes); }, ErrorKind::bad_file, parts);
}

// A header of one tensor "w" with this entry.
std::string entry(std::string_view fields) {
  return "{\"w\":{" + std::string(fields) + "}}";
}

std::string text(const TensorView& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
}

TEST(Safetensors, ReadsNamesTypesShapesBytesAndMetadata) {
  const auto contents = parse(
      R"({"__metadata__":{"format":"pt","é":"ü"},"second":{"shape":[2,1],"data_offsets":[2,6],"dtype":"BF16"},)"
      R"("first":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"scalar":{"dtype":"F32","shape":[],)"
      R"("data_offsets":[6,10]}}   )",
      10);
  ASSERT_EQ(contents.tensors.size(), 3U);
  EXPECT_EQ(contents.tensors[0].name, "second");
  EXPECT_EQ(contents.tensors[0].dtype, DType::bf16);
  EXPECT_EQ(contents.tensors[0].shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(text(contents.tensors[0]), "cdef");
  EXPECT_EQ(text(contents.tensors[1]), "ab");
  EXPECT_EQ(contents.tensors[2].shape, std::vector<std::int64_t>{});
  EXPECT_EQ(text(contents.tensors[2]), "ghij");
  EXPECT_EQ(contents.metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"é", "ü"}}));
}

TEST(Safetensors, AcceptsTheUnusualButValid) {
  EXPECT_TRUE(parse("{}", 0).tensors.empty());
  EXPECT_TRUE(parse("{}      ", 0).tensors.empty());
  EXPECT_TRUE(parse("{ \"__metadata__\" : { } }\n", 0).metadata.empty());
  // Empty tensors, at the start, the end and between others.
  const auto empty = parse(
      R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"x":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},)"
      R"("y":{"dtype":"F32","shape":[7,0],"data_offsets":[2,2]},"c":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},)"
      R"("z":{"dtype":"F4","shape":[0],"data_offsets":[3,3]}})",
      3);
  EXPECT_EQ(empty.tensors.size(), 5U);
  // Names and keys written with escapes.
  const auto escaped =
      parse(R"({"\u0077\"\u00e9\ud83d\ude00":{"d\u0074ype":"U8","shape":[1],"data_offsets":[0,1]}})", 1);
  EXPECT_EQ(escaped.tensors.at(0).name, "w\"é😀");
  EXPECT_EQ(parse(R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1).tensors.at(0).name, "");
}

TEST(Safetensors, Complaint37_EmptyMetadataOpens) {
  const auto contents =
      parse(R"({"__metadata__":{},"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1);
  EXPECT_EQ(contents.tensors.size(), 1U);
  EXPECT_TRUE(contents.metadata.empty());
}

TEST(Safetensors, EveryTypeHasItsSize) {
  // Elements and bytes from the format's description, in bits for the small floats.
  const std::vector<std::tuple<std::string, std::size_t, std::size_t>> sizes{
      {"F64", 3, 24},    {"F32", 3, 12},    {"F16", 3, 6},         {"BF16", 3, 6},        {"F8_E4M3", 3, 3},
      {"F8_E5M2", 3, 3}, {"F8_E8M0", 3, 3}, {"F8_E4M3FNUZ", 3, 3}, {"F8_E5M2FNUZ", 3, 3}, {"F6_E2M3", 4, 3},
      {"F6_E3M2", 8, 6}, {"F4", 6, 3},      {"C64", 3, 24},        {"I64", 3, 24},        {"I32", 3, 12},
      {"I16", 3, 6},     {"I8", 3, 3},      {"U64", 3, 24},        {"U32", 3, 12},        {"U16", 3, 6},
      {"U8", 3, 3},      {"BOOL", 3, 3}};
  EXPECT_EQ(sizes.size(), safetensors_dtypes.size());
  const auto header = [](const std::string& name, std::size_t elements, std::size_t end) {
    return entry(fmt::format(R"("dtype":"{}","shape":[{}],"data_offsets":[0,{}])", name, elements, end));
  };
  for (const auto& [name, elements, bytes] : sizes) {
    EXPECT_EQ(safetensors_name_of(parse(header(name, elements, bytes), bytes).tensors.at(0).dtype), name);
    for (const std::size_t wrong : {bytes - 1, bytes + 1}) {
      refuse(header(name, elements, wrong), wrong, {"'w'", name, std::to_string(bytes)});
    }
  }
  refuse(entry(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])"), 2, {"'w'", "F4", "[3]"});
  refuse(entry(R"("dtype":"F6_E2M3","shape":[6],"data_offsets":[0,5])"), 5, {"'w'", "F6_E2M3", "[6]"});
}

TEST(Safetensors, Complaint37_EachFieldWrongOnce) {
  refuse(entry(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])"), 4, {"'w'", "'f32'"});
  refuse(entry(R"("dtype":7,"shape":[1],"data_offsets":[0,4])"), 4, {"'w'", "dtype", "7"});
  refuse(entry(R"("dtype":null,"shape":[1],"data_offsets":[0,4])"), 4, {"'w'", "null"});
  refuse(entry(R"("dtype":["F32"],"shape":[1],"data_offsets":[0,4])"), 4, {"'w'", "a list"});
  refuse(entry(R"("shape":[1],"data_offsets":[0,4])"), 4, {"'w'", "no dtype"});
  refuse(entry(R"("dtype":"F32","data_offsets":[0,4])"), 4, {"'w'", "no shape"});
  refuse(entry(R"("dtype":"F32","shape":[1])"), 4, {"'w'", "no data_offsets"});
  refuse(entry(""), 0, {"'w'", "no dtype"});
  refuse(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"extra":1)"), 4, {"'w'", "'extra'"});
  for (const char* shape : {"1", "\"1\"", "{}", "null", "true"}) {
    refuse(entry(fmt::format(R"("dtype":"F32","shape":{},"data_offsets":[0,4])", shape)), 4,
           {"'w'", "shape"});
  }
  for (const char* size : {"-1", "-0", "1.0", "1e0", "true", "null", "\"1\"", "[1]", "{}",
                           "9223372036854775808", "18446744073709551616", "1e400"}) {
    refuse(entry(fmt::format(R"("dtype":"F32","shape":[{}],"data_offsets":[0,4])", size)), 4, {});
  }
  for (const char* offsets :
       {"0", "null", "[]", "[0]", "[0,4,4]", "[0,-4]", "[0,4.0]", "[\"0\",4]", "[[0],4]", "[4,0]",
        "[0,18446744073709551616]", "[0,18446744073709551615]", "{}"}) {
    refuse(entry(fmt::format(R"("dtype":"F32","shape":[1],"data_offsets":{})", offsets)), 4,
           {"'w'", "data_offsets"});
  }
  for (const char* value : {"1", "null", "[]", "\"F32\"", "true", "-1", "0.5"}) {
    refuse(fmt::format(R"({{"w":{}}})", value), 0, {"'w'", "expected an object"});
  }
}

TEST(Safetensors, Complaint37_NothingMayOccurTwice) {
  const std::string w = R"("w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  const std::string w2 = R"("w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]})";
  refuse("{" + w + "," + w2 + "}", 2, {"'w'", "twice"});
  // The same name behind an escape: two parsers would see two names.
  refuse("{" + w + R"(,"\u0077":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2, {"'w'", "twice"});
  refuse(entry(R"("dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1])"), 1,
         {"'w'", "'dtype'", "twice"});
  refuse(entry(R"("dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1])"), 1,
         {"'w'", "'shape'", "twice"});
  refuse(entry(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"data_offsets":[0,1])"), 1,
         {"'w'", "'data_offsets'", "twice"});
  refuse(R"({"__metadata__":{},"__metadata__":{}})", 0, {"__metadata__", "twice"});
  refuse(R"({"__metadata__":{"a":"1","a":"2"}})", 0, {"__metadata__", "'a'", "twice"});
}

TEST(Safetensors, Complaint37_MetadataIsTextOnly) {
  for (const char* value : {"null", "1", "[]", "\"x\"", "true", "1.5"}) {
    refuse(fmt::format(R"({{"__metadata__":{}}})", value), 0, {"__metadata__", "expected an object"});
  }
  for (const char* value : {"null", "1", "-1", "[]", "{}", "true", "1.5"}) {
    refuse(fmt::format(R"({{"__metadata__":{{"key":{}}}}})", value), 0,
           {"__metadata__", "'key'", "expected text"});
  }
}

TEST(Safetensors, Complaint37_DataIsCoveredExactlyOnce) {
  const auto three = [](int a, int b, int c, int d, int e, int f) {
    return fmt::format(
        R"({{"a":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}},"b":{{"dtype":"U8","shape":[{}],)"
        R"("data_offsets":[{},{}]}},"c":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}}})",
        b - a, a, b, d - c, c, d, f - e, e, f);
  };
  EXPECT_EQ(parse(three(4, 6, 0, 1, 1, 4), 6).tensors.size(), 3U);
  refuse(three(0, 2, 2, 4, 4, 6), 7, {"byte 6", "7 bytes"});
  refuse(three(0, 2, 2, 4, 4, 6), 5, {"'c'", "[4, 6]", "5 bytes"});
  refuse(three(1, 2, 2, 4, 4, 6), 6, {"'a'", "byte 1", "from 0"});
  refuse(three(0, 2, 3, 4, 4, 6), 6, {"'b'", "byte 3", "from 2"});
  refuse(three(0, 3, 2, 4, 4, 6), 6, {"'b'", "byte 2", "'a'", "at 3"});
  refuse(three(0, 6, 2, 4, 4, 6), 6, {"'b'", "'a'"});
  refuse(three(0, 6, 0, 6, 0, 6), 6, {"begins at byte 0"});
  refuse(three(0, 6, 3, 3, 6, 6), 6, {"'b'", "byte 3", "'a'"});  // an empty tensor inside another
  refuse("{}", 1, {"byte 0", "1 bytes"});
}

TEST(Safetensors, Complaint37_TheHeaderIsStrictJson) {
  const std::string good = R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  EXPECT_EQ(parse(good, 1).tensors.size(), 1U);
  for (const char* header : {"",
                             " ",
                             "[]",
                             "\"w\"",
                             "0",
                             "null",
                             " {}",
                             "\xEF\xBB\xBF{}",
                             "{",
                             "{}}",
                             "{} {}",
                             "{},",
                             "{}x",
                             "{\"w\"}",
                             "{\"w\":}",
                             "{w:1}",
                             "{'w':{}}",
                             "{\"w\":{},}",
                             "{}//",
                             "/**/{}",
                             "{\"\\ud800\":{}}",
                             "{\"\xC3\":{}}",
                             "{\"\xED\xA0\x80\":{}}",
                             "{\"a\nb\":{}}",
                             "{\"__metadata__\":{\"a\":\"\xFF\"}}",
                             "{\"w\":NaN}",
                             "{\"w\":01}"}) {
    refuse(header, 0, {});
  }
  // A NUL byte, which some parsers take for the end of the text.
  refuse(std::string_view("{}\0", 3), 0, {"NUL", "byte 2"});
  refuse(good + std::string(1, '\0') + "{}", 1, {"NUL"});
  for (std::size_t kept = 1; kept < good.size(); ++kept) refuse(good.substr(0, kept), 1, {"not valid JSON"});
}

TEST(Safetensors, Complaint37_DepthNeedsNoStack) {
  for (const char* opening : {"[", "{\"a\":", "[{\"a\":"}) {
    std::string header = "{\"w\":";
    for (int i = 0; i < 1'000'000; ++i) header += opening;
    refuse(header, 0, {"'"});
    refuse(entry("\"dtype\":" + header.substr(5)), 0, {"'w'"});
    refuse(entry("\"shape\":[" + header.substr(5)), 0, {"'w'"});
    refuse("{\"__metadata__\":{\"a\":" + header.substr(5), 0, {"__metadata__"});
  }
}

TEST(Safetensors, Complaint37_ShapesCannotWrap) {
  for (const char* shape : {"4294967296,4294967296", "9223372036854775807,2", "4611686018427387904,4",
                            "0,4294967296,4294967296", "4294967296,4294967296,0"}) {
    refuse(entry(fmt::format(R"("dtype":"F32","shape":[{}],"data_offsets":[0,0])", shape)), 0,
           {"'w'", "63 bits"});
  }
  refuse(entry(R"("dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0])"), 0, {"'w'", "F64"});
  std::string many = "1";
  for (int i = 1; i < 32; ++i) many += ",1";
  const auto with = [](const std::string& shape) {
    return entry(R"("dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,1])");
  };
  EXPECT_EQ(parse(with(many), 1).tensors.at(0).shape.size(), 32U);
  refuse(with(many + ",1"), 1, {"'w'", "32 dimensions"});
}

TEST(Safetensors, Complaint37_TheHeaderLengthIsCheckedFirst) {
  const auto with_length = [](std::uint64_t length, std::string_view rest) {
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    file += rest;
    return file;
  };
  const auto open = [](const std::string& file) { parse_safetensors(as_bytes(file), "f.safetensors"); };
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{1} << 31, std::uint64_t{1} << 63, UINT64_MAX - 7, UINT64_MAX}) {
    expect_error([&] { open(with_length(length, "{}")); }, ErrorKind::bad_file,
                 {"f.safetensors", std::to_string(length), "2 bytes"});
  }
  expect_error([&] { open(with_length(0, "{}")); }, ErrorKind::bad_file, {"does not start with"});
  expect_error([&] { open(with_length(1, "{}")); }, ErrorKind::bad_file, {"not valid JSON"});
  for (std::size_t size = 0; size < 8; ++size) {
    expect_error([&] { open(std::string(size, 'x')); }, ErrorKind::bad_file, {fmt::format("{} bytes", size)});
  }
}

// A file of `bytes` bytes that occupies next to none.
bool make_sparse(const std::filesystem::path& path, std::string_view start, std::uint64_t bytes) {
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  const bool made = file >= 0 &&
                    ::write(file, start.data(), start.size()) == static_cast<ssize_t>(start.size()) &&
                    ::ftruncate(file, static_cast<off_t>(bytes)) == 0;
  if (file >= 0) ::close(file);
  return made;
}

TEST(Safetensors, Complaint37_AHeaderOverTheLimitIsNotRead) {
  const TempFolder folder;
  const std::uint64_t length = 100'000'001;
  std::string start(8, '\0');
  std::memcpy(start.data(), &length, 8);
  if (!make_sparse(folder / "f.safetensors", start, length + 8)) GTEST_SKIP() << "no sparse files here";
  expect_error([&] { open_safetensors(folder / "f.safetensors"); }, ErrorKind::too_large,
               {"f.safetensors", "100000001", "100000000"});
}

std::uint64_t resident_bytes() {
  std::istringstream status(read_file("/proc/self/statm"));
  std::uint64_t pages = 0;
  status >> pages >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// The shapes of the 9B model: opening may read the header only.
TEST(Safetensors, OpeningAnEighteenGigabyteFileTouchesOnlyItsHeader) {
  std::string header = "{";
  std::uint64_t at = 0;
  std::size_t count = 0;
  const auto add = [&](const std::string& name, std::uint64_t out, std::uint64_t in) {
    const std::uint64_t end = at + 2 * out * in;
    header += fmt::format("{}\"{}\":{{\"dtype\":\"BF16\",\"shape\":[{},{}],\"data_offsets\":[{},{}]}}",
                          count++ == 0 ? "" : ",", name, out, in, at, end);
    at = end;
  };
  add("model.embed_tokens.weight", 248'320, 4096);
  add("lm_head.weight", 248'320, 4096);
  for (int layer = 0; layer < 32; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    add(prefix + "mlp.gate_proj.weight", 12'288, 4096);
    add(prefix + "mlp.up_proj.weight", 12'288, 4096);
    add(prefix + "mlp.down_proj.weight", 4096, 12'288);
    add(prefix + "linear_attn.in_proj_qkv.weight", 8192, 4096);
    add(prefix + "linear_attn.in_proj_z.weight", 4096, 4096);
    add(prefix + "linear_attn.out_proj.weight", 4096, 4096);
    for (int i = 0; i < 10; ++i) add(prefix + fmt::format("norm{}.weight", i), 1, 4096);
  }
  header += "}";
  ASSERT_GT(at, 18'000'000'000U);
  const TempFolder folder;
  if (!make_sparse(folder / "model.safetensors", safetensors_file(header, ""), 8 + header.size() + at)) {
    GTEST_SKIP() << "no file of " << at << " bytes here";
  }
  open_safetensors(folder / "model.safetensors");  // once for what any first call brings in
  const std::uint64_t before = resident_bytes();
  const Checkpoint checkpoint = open_safetensors(folder / "model.safetensors");
  const std::uint64_t after = resident_bytes();
  EXPECT_EQ(checkpoint.size(), count);
  EXPECT_EQ(checkpoint.tensor_bytes(), at);
  EXPECT_LT(after - std::min(before, after), 4U << 20);
}

// Whatever a few changed bytes make of a file, it opens or is refused, and every view stays inside it.
TEST(Safetensors, ChangedBytesNeverBreakTheReader) {
  const std::string good = safetensors_file(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,4],"data_offsets":[0,32]},)"
      R"("b":{"dtype":"BF16","shape":[6],"data_offsets":[32,44]}})",
      std::string(44, 'd'));
  std::mt19937_64 random(37);
  std::size_t opened = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string file = good;
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      constexpr std::string_view likely = "0123456789{}[],:\"-.e\\ \0\xFF";
      file[random() % file.size()] = likely[random() % likely.size()];
    }
    try {
      const auto contents = parse_safetensors(as_bytes(file), "f");
      ++opened;
      for (const TensorView& tensor : contents.tensors) {
        ASSERT_GE(tensor.bytes.data(), as_bytes(file).data());
        ASSERT_LE(tensor.bytes.data() + tensor.bytes.size(), as_bytes(file).data() + file.size());
      }
    } catch (const Error& error) {
      ASSERT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
    }
  }
  EXPECT_GT(opened, 500U);  // changed data bytes and names
}

}  // namespace
}  // namespace ponder::formats
