// Measures RLtools' PPO on Pendulum, with its settings, and prints env steps a second as a line of JSON.
#define main rl_tools_main
#include "ppo/cpu/training.cpp"
#undef main
#include <chrono>
#include <cstdio>

int main() {
  DEVICE device;
  LOOP_STATE state;
  rlt::malloc(device, state);
  rlt::init(device, state, 0);
  const auto start = std::chrono::steady_clock::now();
  while (!rlt::step(device, state)) {
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  using PARAMETERS = CONFIG::LOOP_CORE_PARAMETERS;
  const double steps = 1.0 * PARAMETERS::STEP_LIMIT * PARAMETERS::ON_POLICY_RUNNER_STEPS_PER_ENV * PARAMETERS::N_ENVIRONMENTS;
  std::printf("{\"value\": %g}\n", steps / passed.count());
}
