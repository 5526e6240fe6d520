// Measures RLtools' SAC on Pendulum, with its settings, and prints env steps a second as a line of JSON.
#include "sac/cpu/training.h"
#include <chrono>
#include <cstdio>

int main() {
  const auto start = std::chrono::steady_clock::now();
  run(0);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  std::printf("{\"value\": %g}\n", LOOP_CORE_PARAMETERS::STEP_LIMIT / passed.count());
}
