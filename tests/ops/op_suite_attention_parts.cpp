// Attention over pasts that a backend may cut into parts, sequences that share pages, and the types a cache
// may be held in.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "attention_case.hpp"

namespace ponder::ops::testing {
namespace {

// Small heads, long pasts.
AttentionCase long_case(Random& rng, Kind kind) {
  AttentionCase c;
  c.kv = {random_between(rng, 1, 2), random_between(rng, 1, 24), random_between(rng, 1, 80)};
  c.heads = c.kv.heads * random_between(rng, 1, 3);
  c.q_head_stride = c.kv.key_dim;
  c.scale = static_cast<float>(1.0 / std::sqrt(c.kv.key_dim));
  int rows = 0;
  for (int i = random_between(rng, 1, 3); i > 0; --i) {
    const int count = chance(rng, 0.5) ? random_between(rng, 1, 3) : random_between(rng, 20, 50);
    c.segments.push_back(random_segment(rng, c.kv, kind, count, 1500, 90));
    AttentionRows& s = c.segments.back();
    if (kind == Kind::windowed) {  // sinks and window may lie parts apart
      s.window = chance(rng, 0.5) ? random_between(rng, 1, 90) : random_between(rng, 400, 900);
      s.sinks = chance(rng, 0.5) ? random_between(rng, 1, 20) : random_between(rng, 500, 700);
    }
    s.first_row = rows;
    rows += count;
  }
  c.q = Matrix::normal(rng, rows, c.heads * c.kv.key_dim, chance(rng, 0.2) ? 20.0 : 1.0);
  c.out = Matrix::scattered(rng, rows, static_cast<std::int64_t>(c.heads) * c.kv.value_dim);
  return c;
}

TEST_P(OpSuite, AttentionOfLongPasts) {
  Random rng(seed() + 60);
  for (const Kind kind : {Kind::causal, Kind::mask_block, Kind::windowed}) {
    for (int i = 0; i < std::max(2, trials() / 8) && !HasFailure(); ++i) {
      check_attention(bench_, tolerance(), rng, long_case(rng, kind));
    }
  }
}

// A prompt row, the same row of a draft and the same row decoded alone, around the borders of parts.
TEST_P(OpSuite, AttentionOfLongPromptsHoweverCut) {
  Random rng(seed() + 61);
  AttentionCase c = long_case(rng, Kind::causal);
  for (const int before : {440, 505, 1000, 1017}) {
    AttentionRows s;
    s.rows = 72;
    s.visible_end = before + 1;
    s.cache = Cache(rng, c.kv, before + s.rows);
    c.segments = {s};
    c.q = Matrix::normal(rng, s.rows, c.heads * c.kv.key_dim);
    c.out = Matrix::scattered(rng, s.rows, c.out.cols());
    const std::vector<float> whole = c.run(*bench_.subject);
    for (const int group : {1, 4, 16, 31, 32, 33, 64}) {
      expect_same_bits(c.run(*bench_.subject, group), whole,
                       fmt::format("{}, groups of {}", c.name(), group));
    }
  }
}

// Parts of very different weight: the largest score in the first part, the last one, or everywhere the same.
TEST_P(OpSuite, AttentionAcrossPartsOfUnequalScores) {
  Random rng(seed() + 62);
  for (const int hot : {0, 700, 1290, -1}) {
    AttentionCase c = long_case(rng, Kind::causal);
    c.segments.resize(1);
    AttentionRows& s = c.segments[0];
    s.rows = 1;
    s.visible_end = 1300;
    s.cache = Cache(rng, c.kv, 1300);
    for (std::int64_t p = 0; p < 1300; ++p) s.cache.keys.fill_row(p, p == hot ? 30.0F : -30.0F);
    c.scale = 1;
    c.q = Matrix(1, c.q.cols());
    c.q.fill_row(0, 1.0F);
    c.out = Matrix::scattered(rng, 1, c.out.cols());
    const Expected want = expected(c, {.softmax = 1e-5 / (1 + 30.0 * c.kv.key_dim)});
    expect_within(c.run(*bench_.subject), want.values, want.bounds, fmt::format("{}, hot {}", c.name(), hot));
  }
}

TEST_P(OpSuite, AttentionPassesNanOfAnEarlyPartOn) {
  Random rng(seed() + 63);
  for (const bool in_value : {false, true}) {
    AttentionCase c = long_case(rng, Kind::causal);
    for (AttentionRows& s : c.segments) {
      s.visible_end = 1200;
      s.cache = Cache(rng, c.kv, 1300);
      (in_value ? s.cache.values : s.cache.keys).fill_row(3, std::numeric_limits<float>::quiet_NaN());
    }
    for (const float v : c.run(*bench_.subject)) EXPECT_TRUE(std::isnan(v)) << c.name();
  }
}

// ---- forks -----------------------------------------------------------------------------------------------

// A prefix in pages that all sequences hold, and for each a copy of the last one, gone on with by itself.
struct Forks {
  KvShape kv;
  std::size_t page_bytes;
  std::vector<AlignedBuffer<std::byte>> blocks;
  std::vector<std::vector<std::byte*>> tables;

  Forks(Backend& b, const KvShape& shape, const std::vector<Cache>& caches, int prefix)
      : kv(shape), page_bytes(b.kv_page_bytes(shape)) {
    std::vector<std::byte*> shared;
    for (int p = 0; p * kPageRows < prefix; ++p) shared.push_back(page());
    b.kv_append(kv, KvAppend{{shared.data(), 0}, 0, 0, prefix}, caches[0].keys.view(),
                caches[0].values.view());
    for (const Cache& cache : caches) {
      tables.push_back(shared);
      if (prefix % kPageRows != 0) {
        tables.back().back() = page();
        std::copy_n(shared.back(), page_bytes, tables.back().back());
      }
      const auto all = static_cast<int>(cache.positions());
      while (static_cast<int>(tables.back().size()) * kPageRows < all) tables.back().push_back(page());
      b.kv_append(kv, KvAppend{{tables.back().data(), 0}, prefix, prefix, all - prefix}, cache.keys.view(),
                  cache.values.view());
    }
  }

  std::byte* page() { return blocks.emplace_back(page_bytes).data(); }
};

TEST_P(OpSuite, AttentionOfForksIsThatOfEachAlone) {
  Random rng(seed() + 64);
  for (const int prefix : {511, 512, 640, 1100}) {
    AttentionCase c = long_case(rng, Kind::causal);
    c.kv.type = prefix == 640 ? KvType::q8 : KvType::f32;
    std::vector<Cache> caches;
    c.segments.clear();
    int rows = 0;
    const Cache common(rng, c.kv, prefix);
    for (int i = 0; i < 7; ++i) {
      AttentionRows s;
      s.first_row = rows;
      s.rows = i == 3 ? 5 : 1;
      s.visible_end = prefix + (i == 5 ? -3 : random_between(rng, 1, 150));
      if (i == 4) s.window = 300;
      s.cache = Cache(rng, c.kv, prefix + 160);
      for (int p = 0; p < prefix; ++p) {
        std::copy_n(common.keys[p], common.keys.cols(), s.cache.keys[p]);
        std::copy_n(common.values[p], common.values.cols(), s.cache.values[p]);
      }
      rows += s.rows;
      caches.push_back(s.cache);
      c.segments.push_back(std::move(s));
    }
    c.q = Matrix::normal(rng, rows, c.heads * c.kv.key_dim);
    c.out = Matrix::scattered(rng, rows, static_cast<std::int64_t>(c.heads) * c.kv.value_dim);
    const std::vector<float> alone = c.run(*bench_.subject, 1);  // every sequence on pages of its own
    const Forks forks(*bench_.subject, c.kv, caches, prefix);
    std::vector<AttentionSegment> list;
    for (std::size_t i = 0; i < c.segments.size(); ++i) {
      const AttentionRows& s = c.segments[i];
      AttentionSegment& segment = list.emplace_back();
      segment.first_row = s.first_row;
      segment.rows = s.rows;
      segment.cache = {forks.tables[i].data(), 0};
      segment.visible_end = s.visible_end;
      segment.window = s.window;
    }
    Matrix target = c.out;
    c.call(*bench_.subject, target, list);
    expect_same_bits(target.dense(), alone, fmt::format("prefix {}", prefix));
  }
}

// ---- types of a cache ------------------------------------------------------------------------------------

float nearest_bf16(float x) {
  if (std::isnan(x)) return x;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t low = bits & 0xffffU, kept = bits >> 16U;
  const bool up = low > 0x8000U || (low == 0x8000U && (kept & 1U) != 0);
  return std::bit_cast<float>((kept + (up ? 1U : 0U)) << 16U);
}

// Each group of 32 of a head's vector as whole numbers times its largest magnitude over 127.
void round_q8(float* x, int dim) {
  for (int g = 0; g < dim; g += 32) {
    const int end = std::min(dim, g + 32);
    float top = 0;
    bool finite = true;
    for (int i = g; i < end; ++i) {
      top = std::max(top, std::fabs(x[i]));
      finite = finite && std::isfinite(x[i]);
    }
    const float scale = top / 127.0F;
    for (int i = g; i < end; ++i) {
      if (!finite)
        x[i] = std::numeric_limits<float>::quiet_NaN();
      else
        x[i] = scale == 0.0F ? 0.0F : std::rint(x[i] / scale) * scale;
    }
  }
}

AttentionCase rounded(const AttentionCase& c) {
  AttentionCase out = c;
  const auto round = [&](Matrix& m, int dim) {
    for (std::int64_t p = 0; p < m.rows(); ++p) {
      for (int h = 0; h < c.kv.heads; ++h) {
        float* x = m[p] + static_cast<std::int64_t>(h) * dim;
        if (c.kv.type == KvType::bf16) std::transform(x, x + dim, x, nearest_bf16);
        if (c.kv.type == KvType::q8) round_q8(x, dim);
      }
    }
  };
  for (AttentionRows& s : out.segments) {
    round(s.cache.keys, c.kv.key_dim);
    round(s.cache.values, c.kv.value_dim);
  }
  return out;
}

TEST_P(OpSuite, AttentionOfEveryCacheType) {
  Random rng(seed() + 65);
  for (const KvType type : {KvType::bf16, KvType::q8}) {
    for (int i = 0; i < std::max(6, trials() / 3) && !HasFailure(); ++i) {
      AttentionCase c = i % 3 == 0 ? long_case(rng, Kind::causal)
                                   : random_case(rng, i % 3 == 1 ? Kind::mask_block : Kind::windowed);
      c.kv.type = type;
      if (i % 4 == 3) c.segments[0].cache.keys.fill_row(0, 0.0F);
      const std::string what = fmt::format("{}, type {}", c.name(), static_cast<int>(type));
      const Expected want = expected(rounded(c), tolerance());
      const std::vector<float> got = c.run(*bench_.subject);
      expect_within(c.run(*bench_.reference), want.values, want.bounds, "reference, " + what);
      expect_within(got, want.values, want.bounds, what);
      for (const auto& twin : bench_.twins) expect_same_bits(c.run(*twin), got, "twin, " + what);
      for (const int group : {1, 3, 40})
        expect_same_bits(c.run(*bench_.subject, group), got, "in parts, " + what);
    }
  }
}

// Row by row or at once, over rows that were there before: a page holds the same bytes.
TEST_P(OpSuite, AppendingToAPageOfAnyTypeIsExact) {
  Random rng(seed() + 66);
  for (const KvType type : {KvType::f32, KvType::bf16, KvType::q8}) {
    for (int i = 0; i < 8; ++i) {
      const KvShape kv{random_between(rng, 1, 3), random_dim(rng, 128), random_dim(rng, 128), type};
      Cache cache(rng, kv, kPageRows);
      if (i == 0) cache.keys.fill_row(5, std::numeric_limits<float>::infinity());
      if (i == 1) cache.values.fill_row(6, std::numeric_limits<float>::quiet_NaN());
      const std::size_t bytes = bench_.subject->kv_page_bytes(kv);
      AlignedBuffer<std::byte> whole(bytes), pieces(bytes);
      std::byte *a = whole.data(), *b = pieces.data();
      const Cache other(rng, kv, kPageRows);
      bench_.subject->kv_append(kv, KvAppend{{&a, 0}, 0, 0, kPageRows}, cache.keys.view(),
                                cache.values.view());
      bench_.subject->kv_append(kv, KvAppend{{&b, 0}, 20, 20, 30}, other.keys.view(), other.values.view());
      for (int at = 0; at < kPageRows;) {
        const int rows = std::min(random_between(rng, 1, 9), kPageRows - at);
        bench_.subject->kv_append(kv, KvAppend{{&b, 0}, at, at, rows}, cache.keys.view(),
                                  cache.values.view());
        at += rows;
      }
      EXPECT_TRUE(std::equal(whole.begin(), whole.end(), pieces.begin()))
          << "type " << static_cast<int>(type);
    }
  }
}

// Many sequences in one call, some with no rows and some across pages, as one call each.
TEST_P(OpSuite, AppendingForManySequencesAtOnceIsAppendingForEach) {
  Random rng(seed() + 67);
  constexpr int kPages = 3;
  for (const KvType type : {KvType::f32, KvType::bf16, KvType::q8}) {
    for (int i = 0; i < 6; ++i) {
      const KvShape kv{random_between(rng, 1, 9), random_dim(rng, 128), random_dim(rng, 128), type};
      const std::size_t bytes = bench_.subject->kv_page_bytes(kv);
      const int sequences = random_between(rng, 1, 6);
      const std::size_t space = static_cast<std::size_t>(sequences * kPages) * bytes;
      AlignedBuffer<std::byte> together(space), apart(space);
      std::vector<std::vector<std::byte*>> tables;  // of both, one after the other
      std::vector<KvAppend> appends;
      int batch = 0;
      for (int s = 0; s < sequences; ++s) {
        const int rows = random_between(rng, 0, 2) == 0 ? 0 : random_between(rng, 1, 2 * kPageRows);
        const int position = random_between(rng, 0, kPages * kPageRows - rows);
        appends.push_back({{}, position, batch, rows});
        batch += rows;
      }
      for (std::byte* data : {together.data(), apart.data()}) {
        for (int s = 0; s < sequences; ++s) {
          tables.emplace_back();
          for (int page = 0; page < kPages; ++page) {
            tables.back().push_back(data + static_cast<std::size_t>(s * kPages + page) * bytes);
          }
        }
      }
      const Cache cache(rng, kv, std::max(batch, 1));
      std::vector<KvAppend> whole = appends;
      for (std::size_t s = 0; s < appends.size(); ++s) {
        whole[s].cache.pages = tables[s].data();
        appends[s].cache.pages = tables[appends.size() + s].data();
        bench_.subject->kv_append(kv, appends[s], cache.keys.view(), cache.values.view());
      }
      bench_.subject->kv_append(kv, whole, cache.keys.view(), cache.values.view());
      EXPECT_TRUE(std::equal(together.begin(), together.end(), apart.begin()))
          << "type " << static_cast<int>(type) << ", " << sequences << " sequences";
      EXPECT_TRUE(batch == 0 || std::any_of(together.begin(), together.end(),
                                            [](std::byte b) { return b != std::byte{0}; }));
    }
  }
}

}  // namespace
}  // namespace ponder::ops::testing
