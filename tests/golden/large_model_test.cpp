// A checkpoint of the 9B model's shape, 18 GB of it holes: it must load by mapping, and a machine that is too
// small must say so before any work.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "decide/decision_model.hpp"
#include "golden/support.hpp"

namespace ponder::test {
namespace {

using testing::HasSubstr;

// The header of a safetensors file with these bf16 tensors, in order.
class Header {
 public:
  void add(const std::string& name, const std::vector<std::int64_t>& shape) {
    std::uint64_t bytes = 2;
    for (const std::int64_t n : shape) bytes *= static_cast<std::uint64_t>(n);
    json_[name] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {at_, at_ + bytes}}};
    at_ += bytes;
  }
  // Writes the header and leaves the data a hole. False when the file system has no room even for a sparse
  // file.
  bool write(const std::filesystem::path& path) const {
    std::string text = json_.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = text.size();
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << text;
    out.close();
    std::error_code ec;
    std::filesystem::resize_file(path, sizeof length + length + at_, ec);
    return !ec;
  }
  std::uint64_t data_bytes() const { return at_; }

 private:
  Json json_;
  std::uint64_t at_ = 0;
};

Header header_of(const hybrid::Config& c) {
  Header h;
  const std::int64_t e = c.hidden_size;
  const std::int64_t f = c.intermediate_size;
  h.add("model.embed_tokens.weight", {c.vocab_size, e});
  h.add("lm_head.weight", {c.vocab_size, e});
  h.add("model.norm.weight", {e});
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    const std::string p = "model.layers." + std::to_string(i) + ".";
    for (const char* n : {"input_layernorm.weight", "post_attention_layernorm.weight"}) h.add(p + n, {e});
    for (const char* n : {"mlp.gate_proj.weight", "mlp.up_proj.weight"}) h.add(p + n, {f, e});
    h.add(p + "mlp.down_proj.weight", {e, f});
    if (c.layers[i] == hybrid::LayerKind::attention) {
      const std::int64_t q = std::int64_t{c.num_attention_heads} * c.head_dim;
      const std::int64_t kv = std::int64_t{c.num_key_value_heads} * c.head_dim;
      h.add(p + "self_attn.q_proj.weight", {2 * q, e});
      h.add(p + "self_attn.k_proj.weight", {kv, e});
      h.add(p + "self_attn.v_proj.weight", {kv, e});
      h.add(p + "self_attn.o_proj.weight", {e, q});
      for (const char* n : {"self_attn.q_norm.weight", "self_attn.k_norm.weight"}) h.add(p + n, {c.head_dim});
      continue;
    }
    const std::string a = p + "linear_attn.";
    h.add(a + "in_proj_qkv.weight", {c.conv_dim(), e});
    h.add(a + "in_proj_z.weight", {c.value_dim(), e});
    for (const char* n : {"in_proj_a.weight", "in_proj_b.weight"})
      h.add(a + n, {c.linear_num_value_heads, e});
    h.add(a + "out_proj.weight", {e, c.value_dim()});
    h.add(a + "conv1d.weight", {c.conv_dim(), 1, c.linear_conv_kernel_dim});
    for (const char* n : {"dt_bias", "A_log"}) h.add(a + n, {c.linear_num_value_heads});
    h.add(a + "norm.weight", {c.linear_value_head_dim});
  }
  return h;
}

std::uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  in >> size >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

class LargeModel : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "resident memory is the sanitizer's here";
#endif
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("ponder-9b-") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "proc");
    std::ofstream(folder_ / "config.json") << "{}";  // the defaults are the public 9B model
    const Header header = header_of(hybrid::Config::parse("{}"));
    data_bytes_ = header.data_bytes();
    if (!header.write(folder_ / "model.safetensors")) GTEST_SKIP() << "no room for a sparse file of 18 GB";
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
  }

  // A machine with this much memory.
  MemoryBudgetSources machine(std::uint64_t gib) const {
    const std::string kib = std::to_string(gib << 20);
    std::ofstream(folder_ / "proc" / "meminfo") << "MemTotal:       " << kib << " kB\nMemFree:        " << kib
                                                << " kB\nMemAvailable:   " << kib << " kB\n";
    MemoryBudgetSources sources;
    sources.root = folder_.string();
    return sources;
  }

  std::filesystem::path folder_;
  std::uint64_t data_bytes_ = 0;
};

TEST_F(LargeModel, LoadsByMapping) {
  ASSERT_GT(data_bytes_, 17'000'000'000U);
  decide::LoadOptions options;
  options.memory = machine(24);
  options.step_rows = 16;
  const std::uint64_t before = resident_bytes();
  const auto files = decide::BackboneFiles::open(folder_);
  const auto engine = decide::load_backbone(files, options, 1, 1024);
  const std::uint64_t grown = resident_bytes() - before;
  EXPECT_LT(grown, 256U << 20) << "weights are read when they are used, not when they are loaded";
  EXPECT_EQ(dynamic_cast<hybrid::HybridModel&>(engine->model()).weights().owned_bytes, 0U);
}

TEST_F(LargeModel, AMachineThatIsTooSmallSaysSoBeforeAnyWork) {
  const auto files = decide::BackboneFiles::open(folder_);
  const auto refusal = [&](std::uint64_t gib, hybrid::TypeChoice type) -> std::string {
    decide::LoadOptions options;
    options.memory = machine(gib);
    options.type = type;
    options.step_rows = 16;
    try {
      decide::load_backbone(files, options, 1, 1024);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::no_memory);
      return error.what();
    }
    return "loaded";
  };
  const std::uint64_t before = resident_bytes();
  const std::string small = refusal(16, std::nullopt);
  EXPECT_THAT(small, HasSubstr(folder_.string()));
  EXPECT_THAT(small, HasSubstr("16"));
  EXPECT_NE(refusal(24, ops::WeightType::f32), "loaded") << "36 GB of floats do not fit";
  EXPECT_LT(resident_bytes() - before, 64U << 20);
}

}  // namespace
}  // namespace ponder::test
