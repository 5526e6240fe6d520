/** Reads which backend a benchmark measures, for benchmarks that are worth measuring on several. */
import { backendNames, type BackendName } from "effect-rl/node"

/** Returns the backend that the environment variable `EFFECT_RL_BENCH_BACKEND` names; without it, `otherwise`. */
export const chosenBackend = (otherwise: BackendName): BackendName => {
  const text = process.env["EFFECT_RL_BENCH_BACKEND"] ?? otherwise
  const name = backendNames.find((each) => each === text)
  if (name === undefined)
    throw new Error(`EFFECT_RL_BENCH_BACKEND: expected one of ${backendNames.join(", ")}, found ${text}`)
  return name
}
