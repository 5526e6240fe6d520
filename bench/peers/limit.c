/* Prints how many floating-point operations a second one core does in a loop of fused multiply-adds of 256 bits. */
#include <immintrin.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(void) {
  enum { vectors = 12, calls = 20, times = 4000000 };
  __m256 sums[vectors], factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(0.001f);
  for (int v = 0; v < vectors; v++) sums[v] = _mm256_set1_ps(v);
  double best = 0;
  for (int call = 0; call < calls; call++) {
    double start = now();
    for (int i = 0; i < times; i++)
      for (int v = 0; v < vectors; v++) sums[v] = _mm256_fmadd_ps(sums[v], factor, term);
    double speed = 16.0 * vectors * times / (now() - start);
    if (speed > best) best = speed;
  }
  float total = 0;
  for (int v = 0; v < vectors; v++) total += _mm256_cvtss_f32(sums[v]);
  fprintf(stderr, "%g\n", total);
  printf("{\"value\": %g}\n", best / 1e9);
}
