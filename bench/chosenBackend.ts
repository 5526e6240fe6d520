/** Reads which backend a benchmark measures, for benchmarks that are worth measuring on several: `npm run bench -- --backend`. */
import { backendNames, type BackendName } from "effect-rl/node"

/** The environment variable by which `run.ts` tells a benchmark the backend. */
export const backendVariable = "EFFECT_RL_BENCH_BACKEND"

/** Returns the backend with this name; undefined if there is none. */
export const backendNamed = (text: string): BackendName | undefined => backendNames.find((each) => each === text)

/** Returns the backend that the environment variable `EFFECT_RL_BENCH_BACKEND` names; without it, `otherwise`. */
export const chosenBackend = (otherwise: BackendName): BackendName => {
  const text = process.env[backendVariable] ?? otherwise
  const name = backendNamed(text)
  if (name === undefined)
    throw new Error(`${backendVariable}: expected one of ${backendNames.join(", ")}, found ${text}`)
  return name
}

/**
 * Tells whether a benchmark also measures the backend `cpu`, to compare with: not if one of the backends of this processor was
 * chosen, because each of them has a row of its own then.
 */
export const isCpuMeasuredToo = (): boolean => !["wasm", "native", "cpu"].includes(process.env[backendVariable] ?? "")
