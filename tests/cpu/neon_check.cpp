// The NEON kernels against the scalar ones and against double-precision sums, on a machine that is not Arm:
// built by a cross compiler and run in an emulator, so without GoogleTest and any other library. Prints what
// is wrong; exit status 1 if something is.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "cpu/kernels/table.hpp"

namespace {

using namespace ponder::cpu;

int failures = 0;

#define CHECK(condition, ...)              \
  do {                                     \
    if (!(condition) && ++failures < 20) { \
      std::printf("line %d: ", __LINE__);  \
      std::printf(__VA_ARGS__);            \
      std::printf("\n");                   \
    }                                      \
  } while (false)

std::uint64_t state = 1;
std::uint32_t random_bits() {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return static_cast<std::uint32_t>(state >> 32U);
}
// About normal: a sum of uniforms.
float random_value() {
  double sum = -2;
  for (int i = 0; i < 4; ++i) sum += random_bits() / 4294967296.0;
  return static_cast<float>(1.7 * sum);
}
std::vector<float> random_values(std::size_t n) {
  std::vector<float> out(n);
  for (float& v : out) v = random_value();
  return out;
}
bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
bool near(double a, double b, double bound) {
  return std::fabs(a - b) <= bound;
}
void expect_near(const std::vector<float>& a, const std::vector<float>& b, double relative,
                 const char* what) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(near(a[i], b[i], relative * (std::fabs(b[i]) + 1)), "%s [%zu]: %g and %g", what, i, a[i], b[i]);
  }
}

// ---- packed products
// -----------------------------------------------------------------------------------------

enum Type { q8, q4, q4tp };
const char* const kNames[] = {"q8", "q4", "q4tp"};

struct PackedMatrix {
  Type type;
  std::int64_t rows, groups;
  std::size_t block_bytes;
  std::vector<std::uint8_t> bytes;

  PackedMatrix(Type t, std::int64_t r, std::int64_t g) : type(t), rows(r), groups(g) {
    const auto n = static_cast<std::size_t>(groups);
    block_bytes = (code_bytes() + (type == q8 ? 64 : type == q4 ? n * 32 : n * 16 + 192) + 63) / 64 * 64;
    bytes.resize(static_cast<std::size_t>((rows + 15) / 16) * block_bytes);
    for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random_bits());
    for (std::size_t block = 0; block < bytes.size(); block += block_bytes) make_scales(block + code_bytes());
  }
  std::size_t code_bytes() const { return static_cast<std::size_t>(groups) * (type == q8 ? 512 : 256); }

  template <class T>
  void put(std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  template <class T>
  T get(std::size_t at) const {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  }
  // Halves of [1, 2) and signs; ladders that stay near 1.
  void make_scales(std::size_t at) {
    const auto n = static_cast<std::size_t>(groups);
    for (std::size_t lane = 0; lane < 16; ++lane) {
      if (type == q8) put(at + lane * 4, random_value());
      for (std::size_t g = 0; g < n && type == q4; ++g) {
        put(at + (g * 16 + lane) * 2, static_cast<std::uint16_t>(0x3C00U | (random_bits() & 0x83FFU)));
      }
      if (type == q4tp) {
        put(at + n * 16 + lane * 4, 0.5F + 0.1F * static_cast<float>(random_bits() % 10));
        put(at + n * 16 + 64 + lane * 4, 1.0F + 0.01F * static_cast<float>(random_bits() % 10));
      }
    }
  }
  double value(std::int64_t r, std::int64_t i) const {
    const auto lane = static_cast<std::size_t>(r % 16), g = static_cast<std::size_t>(i / 32);
    const auto k = static_cast<std::size_t>(i % 32);
    const std::size_t block = static_cast<std::size_t>(r / 16) * block_bytes, scales = block + code_bytes();
    if (type == q8) {
      return (get<std::uint8_t>(block + g * 512 + k / 4 * 64 + lane * 4 + k % 4) - 128.0) *
             get<float>(scales + lane * 4);
    }
    const auto both = get<std::uint8_t>(block + g * 256 + k % 16 / 4 * 64 + lane * 4 + k % 4);
    const double code = (k < 16 ? both & 15 : both >> 4) - 8.0;
    if (type == q4) {
      const auto half = get<std::uint16_t>(scales + (g * 16 + lane) * 2);
      return code * (1 + (half & 0x3FF) / 1024.0) * ((half & 0x8000) != 0 ? -1 : 1);
    }
    const std::size_t ladder = scales + static_cast<std::size_t>(groups) * 16;
    float rung = get<float>(ladder + lane * 4);
    for (int c = get<std::uint8_t>(scales + g * 16 + lane) % 32; c > 0; --c)
      rung *= get<float>(ladder + 64 + lane * 4);
    return code * rung;
  }
};

PackedProduct product_of(const PackedMatrix& w, std::vector<float>& y) {
  PackedProduct p{};
  p.w = w.bytes.data();
  p.block_bytes = static_cast<std::int64_t>(w.block_bytes);
  p.w_rows = w.rows;
  p.groups = w.groups;
  p.y = y.data();
  p.y_stride = w.rows;
  return p;
}

std::vector<float> dot(const PackedKernels& k, const PackedMatrix& w, const std::vector<float>& x,
                       std::int64_t cols, int rows) {
  const std::int64_t group = input_group_of(w.type), groups = (cols + group - 1) / group;
  std::vector<std::int8_t> tile(static_cast<std::size_t>(groups * rows * (group + kInputExtra)));
  for (int r = 0; r < rows; ++r)
    k.quantize_input[w.type](x.data() + r * cols, cols, 0, groups, rows, r, tile.data());
  std::vector<float> y(static_cast<std::size_t>(rows * w.rows), NAN);
  PackedProduct p = product_of(w, y);
  p.x = tile.data();
  p.x_rows = rows;
  k.dot[w.type](p);
  return y;
}

std::vector<float> float_product(const PackedKernels& k, const PackedMatrix& w, const std::vector<float>& x,
                                 std::int64_t cols, int rows) {
  std::vector<float> padded(static_cast<std::size_t>(rows * w.groups * 32)),
      y(static_cast<std::size_t>(rows * w.rows));
  for (int r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < cols; ++i) {
      padded[static_cast<std::size_t>(r * w.groups * 32 + i)] = x[static_cast<std::size_t>(r * cols + i)];
    }
  }
  PackedProduct p = product_of(w, y);
  p.x = padded.data();
  p.x_stride = w.groups * 32;
  p.x_rows = rows;
  k.product[w.type](p);
  return y;
}

void check_packed(const PackedKernels& k, const char* name, Type type, int rows, std::int64_t cols,
                  std::int64_t outs) {
  const PackedMatrix w(type, outs, (cols + 31) / 32);
  const std::vector<float> x = random_values(static_cast<std::size_t>(rows * cols));
  const std::vector<float> y = dot(k, w, x, cols, rows), f = float_product(k, w, x, cols, rows);
  CHECK(same(y, dot(kNeonPacked, w, x, cols, rows)), "%s: dot differs with the dot product instructions",
        kNames[type]);
  expect_near(y, dot(kScalarPacked, w, x, cols, rows), 1e-3, "dot");
  for (int r = 0; r < rows; ++r) {
    const std::vector<float> one(x.begin() + r * cols, x.begin() + (r + 1) * cols);
    const std::vector<float> alone = dot(k, w, one, cols, 1), alone_f = float_product(k, w, one, cols, 1);
    for (std::int64_t o = 0; o < outs; ++o) {
      const auto at = static_cast<std::size_t>(r * outs + o);
      CHECK(alone[static_cast<std::size_t>(o)] == y[at] && alone_f[static_cast<std::size_t>(o)] == f[at],
            "%s %s rows %d: row %d alone", name, kNames[type], rows, r);
      double sum = 0, size = 0, off = 0;
      for (std::int64_t i = 0; i < cols; ++i) {
        const double value = w.value(o, i);
        double largest = 0;
        const std::int64_t group = input_group_of(type), first = i / group * group;
        for (std::int64_t j = first; j < cols && j < first + group; ++j) {
          largest = std::fmax(largest, std::fabs(one[static_cast<std::size_t>(j)]));
        }
        sum += value * one[static_cast<std::size_t>(i)];
        size += std::fabs(value * one[static_cast<std::size_t>(i)]);
        off += std::fabs(value) * largest / 254;  // an input is at most half a step off
      }
      CHECK(near(f[at], sum, 4e-6 * size), "%s %s rows %d [%d, %d]: %g, wanted %g", name, kNames[type], rows,
            r, static_cast<int>(o), f[at], sum);
      CHECK(near(y[at], sum, off + 1e-5 * size), "%s %s int8 rows %d [%d, %d]: %g, wanted %g", name,
            kNames[type], rows, r, static_cast<int>(o), y[at], sum);
    }
  }
}

void check_inputs(int type) {
  const int group = input_group_of(type), bytes = group + kInputExtra;
  for (const int n : {1, 3, 4, 31, 32, 33, 100, 127, 128, 129, 300}) {
    std::vector<float> x = random_values(static_cast<std::size_t>(n));
    if (n == 33 || n == 129) x.back() = 1e-40F;
    if (n == 100) x[40] = NAN;
    const std::int64_t groups = (n + group - 1) / group;
    std::vector<std::int8_t> a(static_cast<std::size_t>(groups * bytes)), b = a;
    kNeonPacked.quantize_input[type](x.data(), n, 0, groups, 1, 0, a.data());
    kScalarPacked.quantize_input[type](x.data(), n, 0, groups, 1, 0, b.data());
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::int8_t *p = a.data() + g * bytes, *q = b.data() + g * bytes;
      float factor;
      std::memcpy(&factor, p + group, sizeof factor);
      if (n == 100 && g == 40 / group) {
        CHECK(std::isnan(factor), "a NaN gives the scale %g", factor);
      } else {
        CHECK(std::memcmp(p, q, static_cast<std::size_t>(bytes)) == 0, "%s: group %d of %d inputs",
              kNames[type], static_cast<int>(g), n);
      }
    }
  }
}

// ---- the other kernels
// ---------------------------------------------------------------------------------------

void check_codes() {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  for (int type = 1; type < 4; ++type) {
    const std::int64_t n = type == 3 ? 256 : 65536;
    std::vector<std::uint8_t> bytes(256);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
    const void* codes = type == 3 ? static_cast<const void*>(bytes.data()) : halves.data();
    std::vector<float> a(static_cast<std::size_t>(n)), b = a;
    kNeonKernels.embed[type](codes, n, 1.0F, a.data());
    kScalarKernels.embed[type](codes, n, 1.0F, b.data());
    for (std::size_t i = 0; i < a.size(); ++i) {
      CHECK(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])), "code %zu of type %d: %g and %g", i, type,
            a[i], b[i]);
    }
  }
  std::vector<float> x(50000), a(x.size()), b(x.size());
  for (float& v : x) {
    const std::uint32_t bits = random_bits() << (random_bits() % 2 * 15);
    std::memcpy(&v, &bits, sizeof v);
    if (std::isnan(v)) v = 1;
  }
  kNeonKernels.round_bf16(x.data(), static_cast<std::int64_t>(x.size()), a.data());
  kScalarKernels.round_bf16(x.data(), static_cast<std::int64_t>(x.size()), b.data());
  CHECK(same(a, b), "round_bf16");
}

void check_linear() {
  for (const int rows : {1, 3, 13, 31}) {
    const int cols = 530, outs = 70;
    const std::vector<float> x = random_values(static_cast<std::size_t>(rows * cols));
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(outs * cols) * 2);
    for (std::uint8_t& c : codes)
      c = static_cast<std::uint8_t>(random_bits() & 0x3F);  // ordinary numbers in every type
    for (int type = 1; type < 4; ++type) {
      std::vector<float> a(static_cast<std::size_t>(rows * outs)),
          b = a, scale(static_cast<std::size_t>(outs), 0.5F);
      LinearBlock block{};
      block.w = codes.data();
      block.w_rows = outs;
      block.cols = cols;
      block.scale = type == 3 ? scale.data() : nullptr;
      block.x = x.data();
      block.x_stride = cols;
      block.x_rows = rows;
      block.y = a.data();
      block.y_stride = outs;
      kNeonKernels.linear[type](block);
      block.y = b.data();
      kScalarKernels.linear[type](block);
      expect_near(a, b, 1e-4, "linear");
    }
  }
}

void check_rows() {
  for (const int n : {1, 3, 4, 5, 64, 101}) {
    const auto size = static_cast<std::size_t>(n);
    const std::vector<float> x = random_values(size), z = random_values(size), w = random_values(size);
    std::vector<float> a(size), b(size);
    const auto both = [&](const char* what, auto run) {
      a = x;
      b = x;
      run(kNeonKernels, a);
      run(kScalarKernels, b);
      expect_near(a, b, 4e-6, what);
    };
    both("rms_norm", [&](const KernelTable& k, std::vector<float>& y) {
      k.rms_norm(x.data(), n, w.data(), 1e-6F, y.data());
    });
    both("gated_rms_norm", [&](const KernelTable& k, std::vector<float>& y) {
      k.gated_rms_norm(x.data(), z.data(), n, w.data(), 1e-6F, y.data());
    });
    both("l2_norm",
         [&](const KernelTable& k, std::vector<float>& y) { k.l2_norm(x.data(), n, 1e-6F, 0.5F, y.data()); });
    both("silu_mul", [&](const KernelTable& k, std::vector<float>& y) { k.silu_mul(y.data(), z.data(), n); });
    both("sigmoid_mul",
         [&](const KernelTable& k, std::vector<float>& y) { k.sigmoid_mul(y.data(), z.data(), n); });
    both("rotate",
         [&](const KernelTable& k, std::vector<float>& y) { k.rotate(y.data(), n / 2, z.data(), w.data()); });
    both("scale", [&](const KernelTable& k, std::vector<float>& y) { k.scale(x.data(), 3, n, y.data()); });
    both("combine", [&](const KernelTable& k, std::vector<float>& y) {
      k.combine(2, x.data(), 3, z.data(), n, y.data());
    });
  }
}

void check_gemm() {
  for (const int cols : {1, 7, 12, 40}) {
    const int rows = 13, depth = 30;
    const std::vector<float> a = random_values(rows * depth),
                             b = random_values(static_cast<std::size_t>(depth * cols));
    std::vector<float> c(static_cast<std::size_t>(rows * cols)), d = c;
    Gemm g{};
    g.a = a.data();
    g.a_row = depth;
    g.a_step = 1;
    g.b = b.data();
    g.b_row = cols;
    g.c_row = cols;
    g.rows = rows;
    g.cols = cols;
    g.depth = depth;
    g.c = c.data();
    kNeonKernels.gemm(g);
    g.c = d.data();
    kScalarKernels.gemm(g);
    expect_near(c, d, 1e-5, "gemm");
  }
}

}  // namespace

int main() {
  for (int type = 0; type < kPackedTypes; ++type) check_inputs(type);
  for (const auto& [kernels, name] :
       {std::pair{&kNeonPacked, "neon"}, std::pair{&kNeonDotPacked, "neon dotprod"}}) {
    for (const Type type : {q8, q4, q4tp}) {
      for (int rows = 1; rows <= kInputTile; ++rows)
        check_packed(*kernels, name, type, rows, 40 + 13 * rows, 3 * rows);
      check_packed(*kernels, name, type, 5, 1100, 33);
    }
  }
  check_codes();
  check_linear();
  check_rows();
  check_gemm();
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
