#include "formats/checkpoint.hpp"

#include <optional>

#include "formats/safetensors.hpp"
#include "formats/support.hpp"

namespace ponder::formats {
namespace {

using test::as_bytes;
using test::expect_error;
using test::TempFolder;

TensorView tensor(std::string name, DType dtype, std::vector<std::int64_t> shape, std::string_view bytes) {
  return {std::move(name), dtype, std::move(shape), as_bytes(bytes), {}};
}

CheckpointPart part(std::string path, std::vector<TensorView> tensors,
                    std::map<std::string, std::string> metadata = {}) {
  return {{std::move(path), "made up", 100, 0, std::move(metadata)}, std::move(tensors), nullptr};
}

std::vector<CheckpointPart> two_parts() {
  std::vector<CheckpointPart> parts;
  parts.push_back(part("one", {tensor("z", DType::u8, {3}, "abc"), tensor("a", DType::u8, {1, 2}, "de")},
                       {{"format", "pt"}, {"only", "first"}}));
  parts.push_back(part("two", {tensor("m", DType::u8, {}, "f")}, {{"format", "other"}, {"late", "second"}}));
  return parts;
}

TEST(Checkpoint, KeepsTheOrderAndFindsByName) {
  const Checkpoint checkpoint(two_parts());
  ASSERT_EQ(checkpoint.size(), 3U);
  std::vector<std::string> names;
  for (const TensorView& t : checkpoint) names.push_back(t.name);
  EXPECT_EQ(names, (std::vector<std::string>{"z", "a", "m"}));
  EXPECT_EQ(checkpoint.find("a"), &checkpoint.tensors()[1]);
  EXPECT_EQ(checkpoint.at("m").file, "two");
  EXPECT_EQ(checkpoint.at("z").file, "one");
  EXPECT_EQ(checkpoint.find("b"), nullptr);
  EXPECT_EQ(checkpoint.find(""), nullptr);
  EXPECT_EQ(checkpoint.find("zz"), nullptr);
  EXPECT_TRUE(checkpoint.contains("z"));
  EXPECT_EQ(checkpoint.tensor_bytes(), 6U);
  ASSERT_EQ(checkpoint.files().size(), 2U);
  EXPECT_EQ(checkpoint.files()[0].tensors, 2U);
  EXPECT_EQ(checkpoint.files()[1].tensors, 1U);
  EXPECT_EQ(*checkpoint.metadata("format"), "pt");
  EXPECT_EQ(*checkpoint.metadata("late"), "second");
  EXPECT_EQ(checkpoint.metadata("none"), nullptr);
  expect_error([&] { checkpoint.at("b\n"); }, ErrorKind::bad_file,
               {"one and 1 more", "'b\\x0a'", "missing among 3"});
}

TEST(Checkpoint, AnEmptyOneHasNothing) {
  const Checkpoint checkpoint;
  EXPECT_TRUE(checkpoint.empty());
  EXPECT_EQ(checkpoint.find("a"), nullptr);
  EXPECT_EQ(checkpoint.files().size(), 0U);
  checkpoint.check_unchanged();
  expect_error([&] { checkpoint.at("a"); }, ErrorKind::bad_file, {"'a'"});
}

TEST(Checkpoint, RefusesANameInTwoFilesOrTwiceInOne) {
  auto parts = two_parts();
  parts.push_back(part("three", {tensor("a", DType::u8, {}, "g")}));
  expect_error([&] { const Checkpoint c(std::move(parts)); }, ErrorKind::bad_file,
               {"three", "'a'", "already in one"});
  std::vector<CheckpointPart> once;
  once.push_back(part("one", {tensor("a", DType::u8, {}, "g"), tensor("a", DType::u8, {}, "g")}));
  expect_error([&] { const Checkpoint c(std::move(once)); }, ErrorKind::bad_file, {"one", "'a'", "twice"});
}

TEST(Checkpoint, CopiesShareTheMappingAndOutliveTheOriginal) {
  const TempFolder folder;
  const TensorData data{"w", DType::u8, {4}, as_bytes("wxyz")};
  write_safetensors(folder / "w.safetensors", std::span(&data, 1));
  std::optional<Checkpoint> original = open_safetensors(folder / "w.safetensors");
  const Checkpoint copy = *original;
  const Checkpoint moved = std::move(*original);
  original.reset();
  EXPECT_EQ(copy.at("w").bytes.data(), moved.at("w").bytes.data());
  EXPECT_EQ(std::to_integer<char>(copy.at("w").bytes[3]), 'z');
  EXPECT_EQ(copy.at("w").file, (folder / "w.safetensors").string());
}

TEST(Checkpoint, Complaint38_CheckUnchangedNamesTheFileThatShrank) {
  const TempFolder folder;
  const TensorData a{"a", DType::u8, {4}, as_bytes("wxyz")};
  const TensorData b{"b", DType::u8, {4}, as_bytes("wxyz")};
  write_safetensors(folder / "a.safetensors", std::span(&a, 1));
  write_safetensors(folder / "b.safetensors", std::span(&b, 1));
  const Checkpoint checkpoint = open_model_folder(folder.path());
  checkpoint.check_unchanged();
  std::filesystem::resize_file(folder / "b.safetensors", 20);
  expect_error([&] { checkpoint.check_unchanged(); }, ErrorKind::bad_file, {"b.safetensors", "now has 20"});
}

TEST(Checkpoint, FloatValuesNameTheTensorTheyCannotRead) {
  const float values[2] = {1.5F, -2.0F};
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), values, 8);
  const TensorView good = tensor("w", DType::f32, {1, 2}, bytes);
  EXPECT_EQ(float_values(good), (std::vector<float>{1.5F, -2.0F}));
  TensorView bad = tensor("steps", DType::i64, {1}, bytes);
  bad.file = "f.safetensors";
  expect_error([&] { float_values(bad); }, ErrorKind::unsupported, {"f.safetensors", "'steps'", "i64"});
}

TEST(Checkpoint, ShapesAreCountedWithoutWrapping) {
  using Shape = std::vector<std::int64_t>;
  const std::int64_t big = std::int64_t{1} << 62;
  EXPECT_EQ(checked_elements(Shape{}), 1U);
  EXPECT_EQ(checked_elements(Shape{3, 0, 5}), 0U);
  EXPECT_EQ(checked_elements(Shape{big, 1}), std::uint64_t{1} << 62);
  EXPECT_EQ(checked_elements(Shape{big, 2}), std::nullopt);
  EXPECT_EQ(checked_elements(Shape{big, big}), std::nullopt);
  EXPECT_EQ(checked_elements(Shape{std::int64_t{1} << 32, std::int64_t{1} << 32}), std::nullopt);
  // A 0 excuses nothing, wherever it stands.
  EXPECT_EQ(checked_elements(Shape{0, big, big}), std::nullopt);
  EXPECT_EQ(checked_elements(Shape{big, big, 0}), std::nullopt);
  EXPECT_EQ(checked_elements(Shape{-1, 0}), std::nullopt);
  EXPECT_EQ(shape_text(Shape{}), "[]");
  EXPECT_EQ(shape_text(Shape{2, 4}), "[2, 4]");
  EXPECT_EQ(shape_text(Shape(10, 1)), "[1, 1, 1, 1, 1, 1, 1, 1, … 2 more]");
}

}  // namespace
}  // namespace ponder::formats
