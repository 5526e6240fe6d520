import { Clock, Effect, Schema } from "effect"
import type { SetupError, Task } from "../algorithm/Algorithm.ts"
import type { Backend } from "../backend/Backend.ts"
import { ConfigError, isPlain, toCamelCase, toSnakeCase } from "../config/Config.ts"
import { encodeEvaluations } from "../experiment/evaluation.ts"
import { type RunFiles, RunStore } from "../experiment/RunStore.ts"
import { Recorder } from "../record/Recorder.ts"
import { digestOf } from "./digest.ts"
import { makeEnvs, makeValidationEnvs } from "./envs.ts"
import { resume, saveCheckpoint } from "./checkpointing.ts"
import { RunState } from "./RunState.ts"
import { RunResult } from "./RunResult.ts"
import { type Plan, plan, type TrainInput } from "./Settings.ts"
import { type LoopError, supervise, type Training } from "./Trainer.ts"
import { makeValidator } from "./Validation.ts"

export type TrainError = SetupError | LoopError

/**
 * A training run as a value: give it Layers for the backend, the store and the recorder, and it runs.
 *
 * @example
 * ```ts
 * import { CartPole, Ppo, Train } from "effect-rl"
 *
 * export default Train.run({ env: CartPole.env, algorithm: Ppo.make(), totalSteps: 100_000 })
 * ```
 */
export const run = (input: TrainInput): Effect.Effect<RunResult, TrainError, Backend | RunStore | Recorder> =>
  plan(input).pipe(Effect.flatMap(runPlan), Effect.scoped)

/** The same from plain data, as a run's `config.yaml` holds it: env and algorithm by name. */
export const fromConfig = (config: unknown): Effect.Effect<RunResult, TrainError, Backend | RunStore | Recorder> => {
  const tree = toCamelCase(config)
  const { env, algorithm, ...rest } = isPlain(tree) ? tree : {}
  const { name, ...settings } = isPlain(algorithm) ? algorithm : { name: algorithm }
}
