/* Forward and backward of the model's small operations in one pass each, for float32 on the CPU. Compiled by kernels.py;
   what each computes is written in model.py, which uses PyTorch alone where there is no compiler. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#define D 32        /* head size of delta layers */
#define SEGMENT 16  /* rows between kept states */
#define EPS 1e-6f

static float sigmoidf(float x) { return 1.0f / (1.0f + expf(-x)); }

/* y = x / rms(x) * (one + w); rows of n */
void rms_forward(const float* x, const float* w, float one, float eps, float* y, float* inv, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r, x += n, y += n) {
    float sum = 0;
    for (size_t i = 0; i < n; ++i) sum += x[i] * x[i];
    const float s = 1.0f / sqrtf(sum / (float)n + eps);
    inv[r] = s;
    for (size_t i = 0; i < n; ++i) y[i] = x[i] * s * (one + w[i]);
  }
}

void rms_backward(const float* x, const float* w, float one, const float* inv, const float* dy, float* dx, float* dw, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r, x += n, dy += n, dx += n) {
    const float s = inv[r];
    float dot = 0;
    for (size_t i = 0; i < n; ++i) dot += dy[i] * (one + w[i]) * x[i];
    const float c = dot * s * s / (float)n;
    for (size_t i = 0; i < n; ++i) {
      dx[i] = s * (dy[i] * (one + w[i]) - x[i] * c);
      dw[i] += dy[i] * x[i] * s;
    }
  }
}

/* y = silu(a) * b */
void gate_forward(const float* a, const float* b, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = a[i] * sigmoidf(a[i]) * b[i];
}

void gate_backward(const float* a, const float* b, const float* dy, float* da, float* db, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const float s = sigmoidf(a[i]);
    da[i] = dy[i] * b[i] * s * (1.0f + a[i] * (1.0f - s));
    db[i] = dy[i] * a[i] * s;
  }
}

/* y[t] = silu(sum_j x[t + j] * w[j]): x [batch, T + 3, C], w [4, C], y and z (before SiLU) [batch, T, C] */
void conv_forward(const float* x, const float* w, float* z, float* y, size_t batch, size_t T, size_t C) {
  for (size_t b = 0; b < batch; ++b, x += 3 * C)
    for (size_t t = 0; t < T; ++t, x += C, z += C, y += C)
      for (size_t c = 0; c < C; ++c) {
        const float s = x[c] * w[c] + x[C + c] * w[C + c] + x[2 * C + c] * w[2 * C + c] + x[3 * C + c] * w[3 * C + c];
        z[c] = s;
        y[c] = s * sigmoidf(s);
      }
}

/* dx and dw come in as zeros */
void conv_backward(const float* x, const float* w, const float* z, const float* dy, float* dx, float* dw, size_t batch, size_t T, size_t C) {
  for (size_t b = 0; b < batch; ++b, x += 3 * C, dx += 3 * C)
    for (size_t t = 0; t < T; ++t, x += C, dx += C, z += C, dy += C)
      for (size_t c = 0; c < C; ++c) {
        const float s = sigmoidf(z[c]), d = dy[c] * s * (1.0f + z[c] * (1.0f - s));
        for (size_t j = 0; j < 4; ++j) {
          dx[j * C + c] += d * w[j * C + c];
          dw[j * C + c] += d * x[j * C + c];
        }
      }
}

/* One row of the delta rule on S [D, D] (key, value); q and k normalised. */
static void step(float* S, const float* q, const float* k, const float* v, float g, float beta, float* o) {
  const float e = expf(g);
  float r[D] = {0}, u[D], out[D] = {0};
  for (int i = 0; i < D; ++i)
    for (int j = 0; j < D; ++j) r[j] += k[i] * S[i * D + j];
  for (int j = 0; j < D; ++j) u[j] = beta * (v[j] - e * r[j]);
  for (int i = 0; i < D; ++i)
    for (int j = 0; j < D; ++j) {
      const float s = e * S[i * D + j] + k[i] * u[j];
      S[i * D + j] = s;
      out[j] += q[i] * s;
    }
  if (o) memcpy(o, out, sizeof out);
}

static float unit(const float* x, float scale, float* y) {
  float sum = 0;
  for (int i = 0; i < D; ++i) sum += x[i] * x[i];
  const float inv = 1.0f / sqrtf(sum + EPS);
  for (int i = 0; i < D; ++i) y[i] = x[i] * inv * scale;
  return inv;
}

/* y [batch, T, C]: keys heads of q, as many of k, heads of v; g, beta [batch, T, heads]; S [batch, heads, D, D] moves on;
   o [batch, T, heads, D]; kept [batch, heads, ceil(T / SEGMENT), D, D]: S before every segment */
void delta_forward(const float* y, const float* g, const float* beta, float* S, float* o, float* kept, size_t batch, size_t T, size_t keys, size_t heads) {
  const size_t C = (2 * keys + heads) * D, rep = heads / keys, segments = (T + SEGMENT - 1) / SEGMENT;
  for (size_t b = 0; b < batch; ++b)
    for (size_t h = 0; h < heads; ++h) {
      float* s = S + (b * heads + h) * D * D;
      for (size_t t = 0; t < T; ++t) {
        if (t % SEGMENT == 0) memcpy(kept + ((b * heads + h) * segments + t / SEGMENT) * D * D, s, D * D * sizeof(float));
        const float* row = y + (b * T + t) * C;
        float q[D], k[D];
        unit(row + h / rep * D, 1.0f / sqrtf(D), q);
        unit(row + (keys + h / rep) * D, 1.0f, k);
        const size_t at = (b * T + t) * heads + h;
        step(s, q, k, row + (2 * keys + h) * D, g[at], beta[at], o + at * D);
      }
    }
}

/* dS comes in as the gradient of the state behind and leaves as that of the state before; dy comes in as zeros. */
void delta_backward(const float* y, const float* g, const float* beta, const float* kept, const float* dout, float* dS, float* dy, float* dg, float* dbeta, size_t batch,
                    size_t T, size_t keys, size_t heads) {
  const size_t C = (2 * keys + heads) * D, rep = heads / keys, segments = (T + SEGMENT - 1) / SEGMENT;
  static _Thread_local float states[SEGMENT + 1][D * D];
  for (size_t b = 0; b < batch; ++b)
    for (size_t h = 0; h < heads; ++h) {
      float* ds = dS + (b * heads + h) * D * D;
      for (size_t segment = segments; segment-- > 0;) {
        const size_t first = segment * SEGMENT, rows = T - first < SEGMENT ? T - first : SEGMENT;
        float q[SEGMENT][D], k[SEGMENT][D], qi[SEGMENT], ki[SEGMENT];
        memcpy(states[0], kept + ((b * heads + h) * segments + segment) * D * D, sizeof states[0]);
        for (size_t n = 0; n < rows; ++n) {
          const float* row = y + (b * T + first + n) * C;
          qi[n] = unit(row + h / rep * D, 1.0f / sqrtf(D), q[n]);
          ki[n] = unit(row + (keys + h / rep) * D, 1.0f, k[n]);
          const size_t at = (b * T + first + n) * heads + h;
          memcpy(states[n + 1], states[n], sizeof states[0]);
          step(states[n + 1], q[n], k[n], row + (2 * keys + h) * D, g[at], beta[at], NULL);
        }
        for (size_t n = rows; n-- > 0;) {
          const size_t at = (b * T + first + n) * heads + h;
          const float* v = y + (b * T + first + n) * C + (2 * keys + h) * D;
          const float *before = states[n], *after = states[n + 1], *go = dout + at * D;
          const float e = expf(g[at]);
          float r[D] = {0}, u[D], du[D] = {0}, dr[D], dq[D], dk[D], db = 0, de = 0;
          for (int i = 0; i < D; ++i)
            for (int j = 0; j < D; ++j) {
              ds[i * D + j] += q[n][i] * go[j];
              du[j] += k[n][i] * ds[i * D + j];
              r[j] += k[n][i] * before[i * D + j];
            }
          for (int j = 0; j < D; ++j) {
            r[j] = v[j] - e * r[j];
            u[j] = beta[at] * r[j];
            db += du[j] * r[j];
            dr[j] = beta[at] * du[j];
          }
          for (int i = 0; i < D; ++i) {
            float a = 0, c = 0, f = 0;
            for (int j = 0; j < D; ++j) {
              a += after[i * D + j] * go[j];
              c += ds[i * D + j] * u[j] - e * before[i * D + j] * dr[j];
              const float d = ds[i * D + j] - k[n][i] * dr[j];
              f += d * before[i * D + j];
              ds[i * D + j] = e * d;
            }
            dq[i] = a;
            dk[i] = c;
            de += f;
          }
          dg[at] = de * e;
          dbeta[at] = db;
          float* row = dy + (b * T + first + n) * C;
          float qq = 0, kk = 0;
          const float scale = 1.0f / sqrtf(D);
          for (int i = 0; i < D; ++i) {
            qq += q[n][i] * dq[i];
            kk += k[n][i] * dk[i];
          }
          for (int i = 0; i < D; ++i) {
            /* q[n] carries the scale once: q / |q| = q[n] / scale */
            row[h / rep * D + i] += qi[n] * (scale * dq[i] - q[n][i] * qq / scale);
            row[(keys + h / rep) * D + i] += ki[n] * (dk[i] - k[n][i] * kk);
            row[(2 * keys + h) * D + i] = dr[i];
          }
        }
      }
    }
}
