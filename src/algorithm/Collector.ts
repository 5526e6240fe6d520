import { Effect } from "effect"
import type { Program, TensorData } from "../backend/Backend.ts"
import type { BatchEnv } from "../env/BatchEnv.ts"
import { gae } from "../returns/gae.ts"
import { stream } from "../rng/Rng.ts"
import type { LearnerError, Task } from "./Algorithm.ts"
import { attempt } from "./attempt.ts"
import { CutRows } from "./CutRows.ts"

/**
 * Collects T steps of N envs into flat, time-major arrays (row t · N + n), and turns their rewards into advantages and
 * value targets. The arrays are the update program's own feeds where it has them, so nothing is copied again.
 */
export interface Collector {
  readonly values: Float32Array
  readonly targets: Float32Array
  readonly collect: (envs: BatchEnv, iteration: number) => Effect.Effect<void, LearnerError>
}

export interface CollectorOptions {
  readonly task: Task
  readonly steps: number
  readonly noiseSize: number
  readonly gamma: number
  readonly lambda: number
  /** Feeds observations and noise; results actions, envActions, logProbs and values. */
  readonly act: Program
  /** Where rows are kept: observations, actions, logProbs, values, advantages, targets. */
  readonly feeds: Readonly<Record<string, TensorData>>
}

export const makeCollector = ({ task, steps, noiseSize, gamma, lambda, act, feeds }: CollectorOptions): Collector => {
  const { numEnvs, seed } = task
  const rows = steps * numEnvs
  const actObservations = act.feeds.observations
  const width = actObservations.length / numEnvs
  const envActions = act.results.envActions
  const keep = (name: string, size: number): Float32Array => {
    const feed = feeds[name]
    return feed instanceof Float32Array ? feed : new Float32Array(rows * size)
  }
  const observations = keep("observations", width)
  const values = keep("values", 1)
  const logProbs = keep("logProbs", 1)
  const advantages = keep("advantages", 1)
  const targets = keep("targets", 1)
  const actions = feeds.actions
  const actionWidth = actions.length / rows

  const noise = new Float32Array(rows * noiseSize)
  const rewards = new Float32Array(rows)
  const terminated = new Uint8Array(rows)
  const truncated = new Uint8Array(rows)
  const truncatedValues = new Float32Array(rows)
  const lastValues = new Float32Array(numEnvs)
  const cut = new CutRows(width, Math.max(16, numEnvs))

  const beforeAct = (envs: BatchEnv, t: number): void => {
    copy(envs.observations, 0, actObservations, 0, numEnvs * width)
    copy(envs.observations, 0, observations, t * numEnvs * width, numEnvs * width)
    copy(noise, t * numEnvs * noiseSize, act.feeds.noise, 0, numEnvs * noiseSize)
  }

  const afterAct = (envs: BatchEnv, t: number): void => {
    const base = t * numEnvs
    copy(act.results.actions, 0, actions, base * actionWidth, numEnvs * actionWidth)
    copy(act.results.logProbs, 0, logProbs, base, numEnvs)
    copy(act.results.values, 0, values, base, numEnvs)
    if (envActions instanceof Uint8Array) throw new TypeError("actions are numbers")
    envs.step(envActions)
    for (let env = 0; env < numEnvs; env++) {
      rewards[base + env] = envs.rewards[env]
      terminated[base + env] = envs.terminated[env]
      truncated[base + env] = envs.truncated[env]
      // Where both hold, the episode is over in the env's own terms and nothing is bootstrapped.
      if (envs.truncated[env] !== 0 && envs.terminated[env] === 0) cut.add(base + env, envs.finalObservations, env)
    }
  }

  /** Puts the cut rows from `from` on, at most numEnvs of them, into the act program. */
  const beforeCutValues = (from: number): number => {
    const count = Math.min(numEnvs, cut.count - from)
    copy(cut.observations, from * width, actObservations, 0, count * width)
    return count
  }
  const afterCutValues = (from: number, count: number): void => {
    for (let index = 0; index < count; index++) truncatedValues[cut.rows[from + index]] = act.results.values[index]
  }

  const finish = (): void => {
    copy(act.results.values, 0, lastValues, 0, numEnvs)
    gae({
      rewards,
      values,
      lastValues,
      terminated,
      ...(cut.count > 0 ? { truncated, truncatedValues } : {}),
      gamma,
      lambda,
      out: advantages,
      targets,
    })
  }

  const begin = (iteration: number): void => {
    cut.clear()
    stream(seed, "act", iteration).fillUniform(noise)
  }

  const collectSync = (runSync: () => void, envs: BatchEnv, iteration: number): void => {
    begin(iteration)
    for (let t = 0; t < steps; t++) {
      beforeAct(envs, t)
      runSync()
      afterAct(envs, t)
    }
    for (let from = 0; from < cut.count; from += numEnvs) {
      const count = beforeCutValues(from)
      runSync()
      afterCutValues(from, count)
    }
    copy(envs.observations, 0, actObservations, 0, numEnvs * width)
    runSync()
    finish()
  }

  const collectAsync = Effect.fnUntraced(function* (
    envs: BatchEnv,
    iteration: number,
  ): Effect.fn.Return<void, LearnerError> {
    begin(iteration)
    for (let t = 0; t < steps; t++) {
      beforeAct(envs, t)
      yield* act.run
      yield* attempt(() => afterAct(envs, t))
    }
    for (let from = 0; from < cut.count; from += numEnvs) {
      const count = beforeCutValues(from)
      yield* act.run
      afterCutValues(from, count)
    }
    copy(envs.observations, 0, actObservations, 0, numEnvs * width)
    yield* act.run
    finish()
  })

  const { runSync } = act
  return {
    values,
    targets,
    collect: (envs, iteration) =>
      runSync === undefined ? collectAsync(envs, iteration) : attempt(() => collectSync(runSync, envs, iteration)),
  }
}

/** For the few dozen numbers of a step, a loop is faster than making a view for `set`. */
const copy = (from: TensorData, fromOffset: number, to: TensorData, toOffset: number, length: number): void => {
  for (let index = 0; index < length; index++) to[toOffset + index] = from[fromOffset + index]
}
