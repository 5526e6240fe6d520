/* Prints how many floating-point operations a second one core does in a loop of fused multiply-adds of BITS bits. */
#include <stdio.h>
#include <time.h>

typedef float vector __attribute__((vector_size(BITS / 8)));

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(void) {
  enum { vectors = 12, calls = 20, times = 4000000, lanes = BITS / 32 };
  vector sums[vectors], zero = {0}, factor = zero + 0.999f, term = zero + 0.001f;
  for (int v = 0; v < vectors; v++) sums[v] = zero + (float)v;
  double best = 0;
  for (int call = 0; call < calls; call++) {
    double start = now();
    for (int i = 0; i < times; i++)
      for (int v = 0; v < vectors; v++) sums[v] = sums[v] * factor + term;
    double speed = 2.0 * lanes * vectors * times / (now() - start);
    if (speed > best) best = speed;
  }
  float total = 0;
  for (int v = 0; v < vectors; v++) total += sums[v][0];
  fprintf(stderr, "%g\n", total);
  printf("{\"value\": %g}\n", best / 1e9);
}
