#include "device/cpu/kernels/layernorm.h"
#include "device/cpu/cpu.h"

/* Rows that a thread takes at a time; columns likewise. */
enum { ROWS = 8, STRIPE = 64 };

static bool is_rows(g3_tensor t, int64_t m, int64_t n, g3_dtype dtype) {
  return t.data && t.ndim == 2 && t.dim[0] == m && t.dim[1] == n && (n <= 1 || t.stride[1] == 1) &&
         t.dtype == dtype;
}

static bool is_vector(g3_tensor t, int64_t n, g3_dtype dtype) {
  return t.data && g3_tensor_count(t) == n && g3_tensor_dense(t) && t.dtype == dtype;
}

g3_status g3_cpu_layernorm(g3_stream *s, g3_tensor y, g3_tensor mean, g3_tensor rstd, g3_tensor x,
                           g3_tensor w, g3_tensor b) {
  G3_TRY(g3_stream_drain(s));
  const int64_t m = x.dim[0], n = x.dim[1];
  const g3_dtype t = x.dtype;
  G3_CHECK(is_rows(x, m, n, t) && is_rows(y, m, n, t) && is_vector(w, n, t) && is_vector(b, n, t) &&
               is_vector(mean, m, G3_F32) && is_vector(rstd, m, G3_F32),
           "layernorm: shapes or types differ from x [%lld, %lld] %s", (long long)m, (long long)n,
           g3_dtype_name(t));
  const g3_layernorm_kernels *k = g3_layernorm();
  const int threads = g3_cpu_threads(s, m * n);
#pragma omp parallel for num_threads(threads) schedule(static, ROWS)
  for (int64_t r = 0; r < m; r++)
    k->forward(g3_tensor_at(y, r * y.stride[0]), (float *)mean.data + r, (float *)rstd.data + r,
               g3_tensor_at(x, r * x.stride[0]), w.data, b.data, n, t == G3_BF16);
  return G3_OK;
}

g3_status g3_cpu_layernorm_bwd(g3_stream *s, g3_tensor dx, g3_tensor dres, g3_tensor dw,
                               g3_tensor db, g3_tensor dy, g3_tensor x, g3_tensor w, g3_tensor mean,
                               g3_tensor rstd) {
  G3_TRY(g3_stream_drain(s));
  const int64_t m = x.dim[0], n = x.dim[1];
  const g3_dtype t = x.dtype;
  G3_CHECK(is_rows(x, m, n, t) && is_rows(dx, m, n, t) && is_rows(dy, m, n, t) &&
               (!dres.data || is_rows(dres, m, n, t)) && is_vector(w, n, t) &&
               is_vector(dw, n, G3_F32) && is_vector(db, n, G3_F32) && is_vector(mean, m, G3_F32) &&
               is_vector(rstd, m, G3_F32),
           "layernorm_bwd: shapes or types differ from x [%lld, %lld] %s", (long long)m,
           (long long)n, g3_dtype_name(t));
  const g3_layernorm_kernels *k = g3_layernorm();
  const float *shift = mean.data, *scale = rstd.data;
  /* Weights first: dx may be written over dy. */
  const int threads = g3_cpu_threads(s, m * n);
#pragma omp parallel num_threads(threads)
  {
#pragma omp for
    for (int64_t c = 0; c < n; c += STRIPE)
      k->weight((float *)dw.data + c, (float *)db.data + c, g3_tensor_at(dy, c), dy.stride[0],
                g3_tensor_at(x, c), x.stride[0], shift, scale, m, n - c < STRIPE ? n - c : STRIPE,
                t == G3_BF16);
#pragma omp for schedule(static, ROWS)
    for (int64_t r = 0; r < m; r++)
      k->input(g3_tensor_at(dx, r * dx.stride[0]),
               dres.data ? g3_tensor_at(dres, r * dres.stride[0]) : NULL,
               g3_tensor_at(dy, r * dy.stride[0]), g3_tensor_at(x, r * x.stride[0]), w.data,
               shift[r], scale[r], n, t == G3_BF16);
  }
  return G3_OK;
}
