// Quantised hybrid checkpoints: rounding while loading, and folders that hold matrices packed.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpu/quantized_oracle.hpp"
#include "formats/support.hpp"
#include "models/golden_model.hpp"

namespace ponder::test {
namespace {

using hybrid::TypeChoice;
using ops::WeightType;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr WeightType kTypes[] = {WeightType::q8, WeightType::q4, WeightType::q4tp};

std::string type_text(WeightType type) {
  return std::string(ops::weight_type_name(type));
}

hybrid::Config config_of(const std::string& checkpoint) {
  return hybrid::Config::parse(read_text(golden_folder(checkpoint) / "config.json"));
}

std::unique_ptr<ops::Backend> scalar_backend() {
  return cpu::make_cpu_backend({.isa = cpu::InstructionSet::scalar});
}

// The rule of cli.md, by name: matrices but the gates' projections and an embedding beside a head.
bool is_packed(const formats::TensorView& t, bool tied) {
  const auto has = [&](std::string_view part) { return t.name.find(part) != std::string::npos; };
  if (t.shape.size() != 2 || has("visual") || has("mtp.") || has("_scale")) return false;
  if (has("in_proj_a.") || has("in_proj_b.")) return false;
  return tied || !has("embed_tokens");
}

// tiny-x with its matrices packed: "X.weight" becomes "X.weight.q4".
struct PackedFolder {
  formats::test::TempFolder folder;
  std::vector<formats::TensorData> tensors;
  std::vector<ops::WeightPtr> weights;
  std::map<std::string, ops::WeightPtr> by_name;

  PackedFolder(const std::string& checkpoint, WeightType type) {
    const auto backend = scalar_backend();
    const formats::Checkpoint original = formats::open_model_folder(golden_folder(checkpoint));
    const bool tied = std::none_of(original.begin(), original.end(),
                                   [](const auto& t) { return t.name.find("lm_head") != std::string::npos; });
    std::vector<formats::TensorData> rest;
    for (const formats::TensorView& t : original) {
      if (!is_packed(t, tied)) {
        rest.push_back({t.name, t.dtype, t.shape, t.bytes});
        continue;
      }
      ops::WeightData data;
      data.dtype = t.dtype;
      data.rows = t.shape[0];
      data.cols = t.shape[1];
      data.data = t.bytes.data();
      weights.push_back(backend->make_weight(data, type));
      by_name[t.name] = weights.back();
      const std::span<const std::byte> packed = weights.back()->packed();
      tensors.push_back(
          {t.name + "." + type_text(type), DType::u8, {static_cast<std::int64_t>(packed.size())}, packed});
    }
    for (formats::TensorData& t : rest) tensors.push_back(std::move(t));
    keep_ = std::make_shared<formats::Checkpoint>(original);
    write();
  }

  void write() const {
    formats::write_safetensors(folder / "model.safetensors", tensors, {}, formats::TensorOrder::as_given);
  }
  formats::Checkpoint open() const { return formats::open_model_folder(folder.path()); }

 private:
  std::shared_ptr<formats::Checkpoint> keep_;
};

std::vector<float> values_of(ops::Backend& b, const ops::Weight& w) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(w.rows()));
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> out(ids.size() * static_cast<std::size_t>(w.cols()));
  b.embed(w, ids, {out.data(), w.cols()});
  return out;
}

// All matrices in a fixed order.
std::vector<const ops::Weight*> matrices(const hybrid::Weights& w) {
  std::vector<const ops::Weight*> out = {w.embedding.get(), w.head.get()};
  for (const hybrid::LayerWeights& l : w.layers) {
    for (const hybrid::Linear* m :
         {&l.delta.qkv, &l.delta.z, &l.delta.a, &l.delta.b, &l.delta.out, &l.attention.q, &l.attention.k,
          &l.attention.v, &l.attention.o, &l.gate, &l.up, &l.down}) {
      if (m->weight != nullptr) out.push_back(m->weight.get());
    }
  }
  return out;
}

TEST(PackedWeights, TypesFollowTheMatrixsRole) {
  const auto backend = scalar_backend();
  for (const WeightType type : kTypes) {
    const auto untied = hybrid::load_weights(
        config_of("tiny-a"), formats::open_model_folder(golden_folder("tiny-a")), *backend, type);
    EXPECT_EQ(untied.embedding->type(), WeightType::bf16) << "only looked up";
    EXPECT_EQ(untied.head->type(), type);
    const auto tied = hybrid::load_weights(
        config_of("tiny-b"), formats::open_model_folder(golden_folder("tiny-b")), *backend, type);
    EXPECT_EQ(tied.head, tied.embedding);
    EXPECT_EQ(tied.head->type(), type);
    for (const hybrid::LayerWeights& l : untied.layers) {
      for (const hybrid::Linear* m : {&l.gate, &l.up, &l.down}) EXPECT_EQ(m->weight->type(), type);
      if (l.kind == hybrid::LayerKind::delta) {
        for (const hybrid::Linear* m : {&l.delta.a, &l.delta.b})
          EXPECT_EQ(m->weight->type(), WeightType::bf16);
        for (const hybrid::Linear* m : {&l.delta.qkv, &l.delta.z, &l.delta.out})
          EXPECT_EQ(m->weight->type(), type);
      } else {
        for (const hybrid::Linear* m : {&l.attention.q, &l.attention.k, &l.attention.v, &l.attention.o}) {
          EXPECT_EQ(m->weight->type(), type);
        }
      }
    }
    // What rounding cost in all is what its parts say.
    ops::QuantizationError sum;
    for (const ops::Weight* m : matrices(untied)) {
      sum.difference += m->error().difference;
      sum.value += m->error().value;
    }
    EXPECT_NEAR(untied.error.relative(), sum.relative(), 1e-12);
    EXPECT_GT(untied.error.relative(), type == WeightType::q8 ? 0.002 : 0.04);
    EXPECT_LT(untied.error.relative(), type == WeightType::q8 ? 0.02 : 0.15);
  }
}

TEST(PackedWeights, APackedFolderIsUsedInPlaceWithTheSameValues) {
  const auto backend = scalar_backend();
  for (const char* checkpoint : {"tiny-a", "tiny-b", "tiny-d"}) {
    for (const WeightType type : kTypes) {
      SCOPED_TRACE(std::string(checkpoint) + " " + type_text(type));
      const hybrid::Config config = config_of(checkpoint);
      const PackedFolder packed(checkpoint, type);
      const auto from_packed = hybrid::load_weights(config, packed.open(), *backend, std::nullopt);
      const auto rounded =
          hybrid::load_weights(config, formats::open_model_folder(golden_folder(checkpoint)), *backend, type);
      EXPECT_EQ(from_packed.owned_bytes, 0U);
      EXPECT_EQ(from_packed.error.value, 0);
      EXPECT_EQ(from_packed.bytes_per_row, rounded.bytes_per_row);
      const auto a = matrices(from_packed), b = matrices(rounded);
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i]->type(), b[i]->type());
        EXPECT_TRUE(std::ranges::equal(a[i]->packed(), b[i]->packed())) << i;
        EXPECT_EQ(values_of(*backend, *a[i]), values_of(*backend, *b[i])) << i;
      }
      // Asking for the type it has changes nothing.
      EXPECT_EQ(hybrid::load_weights(config, packed.open(), *backend, type).owned_bytes, 0U);
    }
  }
}

TEST(PackedWeights, APackedFolderAsF32HoldsItsValues) {
  const auto backend = scalar_backend();
  for (const WeightType type : kTypes) {
    const PackedFolder packed("tiny-a", type);
    const auto as_f32 = hybrid::load_weights(config_of("tiny-a"), packed.open(), *backend, WeightType::f32);
    const auto expect_values = [&](const ops::Weight& got, const std::string& name) {
      SCOPED_TRACE(name + " from " + type_text(type));
      EXPECT_EQ(got.type(), WeightType::f32);
      const ops::Weight& source = *packed.by_name.at(name);
      const std::vector<float> values = values_of(*backend, got);
      for (std::int64_t r = 0; r < got.rows(); ++r) {
        for (std::int64_t i = 0; i < got.cols(); ++i) {
          ASSERT_EQ(values[static_cast<std::size_t>(r * got.cols() + i)],
                    static_cast<float>(packed_value(type, source.packed(), got.cols(), r, i)));
        }
      }
    };
    expect_values(*as_f32.head, "lm_head.weight");
    expect_values(*as_f32.layers[0].delta.qkv.weight, "model.layers.0.linear_attn.in_proj_qkv.weight");
    expect_values(*as_f32.layers[3].attention.k.weight, "model.layers.3.self_attn.k_proj.weight");
    expect_values(*as_f32.layers[2].down.weight, "model.layers.2.mlp.down_proj.weight");
  }
}

TEST(PackedWeights, TheEstimateIsWhatLoadingAllocates) {
  const auto backend = scalar_backend();
  for (const char* checkpoint : {"tiny-a", "tiny-b", "tiny-c", "tiny-d"}) {
    const hybrid::Config config = config_of(checkpoint);
    const formats::Checkpoint files = formats::open_model_folder(golden_folder(checkpoint));
    for (const WeightType type : kTypes) {
      SCOPED_TRACE(std::string(checkpoint) + " " + type_text(type));
      const auto needs = hybrid::estimate_memory(config, files, type);
      const auto weights = hybrid::load_weights(config, files, *backend, type);
      EXPECT_EQ(needs.allocated, weights.owned_bytes);
      EXPECT_EQ(needs.largest_unpacked, 0U);
      std::uint64_t all = 0;
      const auto list = matrices(weights);
      for (std::size_t i = list[0] == list[1] ? 1 : 0; i < list.size(); ++i) all += list[i]->bytes();
      EXPECT_EQ(needs.mapped + needs.allocated, all);
    }
  }
  for (const WeightType type : kTypes) {
    const PackedFolder packed("tiny-a", type);
    const formats::Checkpoint files = packed.open();
    const hybrid::Config config = config_of("tiny-a");
    EXPECT_EQ(hybrid::estimate_memory(config, files, std::nullopt).allocated, 0U);
    for (const WeightType target : {WeightType::f32, WeightType::q8, WeightType::bf16, WeightType::q4}) {
      if (target == type) continue;
      const auto needs = hybrid::estimate_memory(config, files, target);
      EXPECT_EQ(needs.allocated, hybrid::load_weights(config, files, *backend, target).owned_bytes)
          << type_text(target);
      EXPECT_EQ(needs.largest_unpacked,
                static_cast<std::uint64_t>(config.vocab_size * config.hidden_size) * 4);
    }
  }
}

// ---- errors
// --------------------------------------------------------------------------------------------------

std::string load_edited(const std::function<void(PackedFolder&)>& edit) {
  PackedFolder packed("tiny-a", WeightType::q4);
  edit(packed);
  packed.write();
  const auto backend = scalar_backend();
  try {
    hybrid::load_weights(config_of("tiny-a"), packed.open(), *backend, std::nullopt);
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("model.safetensors"), Not(HasSubstr("\n"))));
    return e.what();
  }
  return "loaded";
}

formats::TensorData& named(PackedFolder& packed, const std::string& name) {
  return *std::find_if(packed.tensors.begin(), packed.tensors.end(),
                       [&](const auto& t) { return t.name == name; });
}

TEST(PackedWeights, FaultsAreOneLineThatNamesTheTensor) {
  EXPECT_EQ(load_edited([](auto&) {}), "loaded");
  const std::string down = "model.layers.1.mlp.down_proj.weight";
  // 64 rows of 128 inputs: 4 blocks of 4 groups, each 256 bytes of codes and 32 of scales.
  const std::string size = std::to_string(4 * 4 * (256 + 32));
  EXPECT_THAT(load_edited([&](PackedFolder& p) {
                formats::TensorData& t = named(p, down + ".q4");
                t.bytes = t.bytes.first(t.bytes.size() - 64);
                t.shape[0] -= 64;
              }),
              AllOf(HasSubstr(down + ".q4"), HasSubstr("[" + size + "]")));
  EXPECT_THAT(load_edited([&](PackedFolder& p) {
                formats::TensorData& t = named(p, down + ".q4");
                t.shape = {2, t.shape[0] / 2};
              }),
              AllOf(HasSubstr(down + ".q4"), HasSubstr("[" + size + "]")));
  EXPECT_THAT(load_edited([&](PackedFolder& p) { named(p, down + ".q4").dtype = DType::i8; }),
              AllOf(HasSubstr(down + ".q4"), HasSubstr("i8"), HasSubstr("u8")));
  EXPECT_THAT(load_edited([&](PackedFolder& p) { named(p, down + ".q4").name = down + ".q8"; }),
              AllOf(HasSubstr(down + ".q8"), HasSubstr("shape")));
  EXPECT_THAT(load_edited([&](PackedFolder& p) { named(p, down + ".q4").name = down + ".q5"; }),
              HasSubstr(down));
}

TEST(PackedWeights, BothFormsOfAMatrixAreRefused) {
  const std::string down = "model.layers.1.mlp.down_proj.weight";
  static const std::vector<std::byte> plain(64 * 128 * 2);
  EXPECT_THAT(load_edited([&](PackedFolder& p) {
                p.tensors.push_back({down, DType::bf16, {64, 128}, plain});
              }),
              HasSubstr(down + ".q4"));
  static const std::vector<std::byte> other(4 * (4 * 512 + 64));
  EXPECT_THAT(
      load_edited([&](PackedFolder& p) {
        p.tensors.push_back({down + ".q8", DType::u8, {static_cast<std::int64_t>(other.size())}, other});
      }),
      HasSubstr(down + ".q"));
  // A gate's projection is never quantised by us, but a file that holds it packed is taken at its word.
  EXPECT_THAT(load_edited([&](PackedFolder& p) {
                p.tensors.push_back({"model.norm.weight.q4", DType::u8, {64}, std::span(plain).first(64)});
              }),
              HasSubstr("model.norm.weight.q4"));
}

}  // namespace
}  // namespace ponder::test
