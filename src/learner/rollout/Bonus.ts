import { Effect, type Scope } from "effect"
import { Backend, type BackendError, type BackendUnavailable, type Program } from "../../backend/Backend.ts"
import type { BatchEnv } from "../../env/BatchEnv.ts"
import { make as makeMoments } from "../../env/RunningMoments.ts"
import type { GraphError } from "../../graph/GraphError.ts"
import type { Tensor } from "../../graph/Tensor.ts"
import { gae } from "../../returns/gae.ts"
import { stream } from "../../rng/Rng.ts"
import type { Metrics, NamedArrays } from "../Algorithm.ts"
import { build } from "../build.ts"
import type { Steps } from "../drive.ts"
import { copyInto, floatsOf, namedVector } from "../learnerState.ts"
import type { Declarations } from "../../model/trunk.ts"
import { randomActions } from "../randomActions.ts"
import { type Blueprint, type Loss, type Minibatch, rowsSpec } from "./programs.ts"
import type { Rollout } from "./Rollout.ts"

/** A reward that a learner gives itself for what surprises it. */
export interface Bonus {
  readonly parameters: Declarations
  /** How fast they learn, in shares of the learning rate; 1 by default. */
  readonly pace?: number
  /** Drawn once and never learnt. */
  readonly fixed?: Declarations
  /** Of a transition's columns: how surprising each row is. */
  readonly surprise: (view: Pick<Minibatch, "weights" | "fixed" | "column">) => Tensor
  /** What makes it less so; added to the first phase's loss. */
  readonly loss: (batch: Minibatch) => Loss
  /**
   * The columns it needs, by the shapes of their rows: `nextObservations`, what came after each; `seen`, the same with
   * mean 0 and deviation 1; `learns`, 1 in a drawn share of the rows; `bonusTargets`, for a critic of its own.
   */
  readonly columns: Readonly<Record<string, ReadonlyArray<number>>>
  /** The share of rows that `learns` marks. */
  readonly share: number
  /** Steps of random play before the first rollout, for the mean and deviation behind `seen`. */
  readonly warmUp: number
  readonly reward: Added | Own
}

/** Added to the env's own reward. */
export interface Added {
  readonly kind: "added"
  readonly coefficient: number
}

/** With a critic of its own (`bonusValues`), its own discount, and in units of its own returns' deviation. */
export interface Own {
  readonly kind: "own"
  readonly gamma: number
  readonly lambda: number
  readonly coefficient: number
  readonly extrinsicCoefficient: number
  /** Whether what surprises ends with the episode. */
  readonly episodic: boolean
}

/** A bonus at work. */
export interface Curiosity {
  readonly program: Program
  readonly warmUp: (envs: BatchEnv) => void
  /** Finds out how surprising the rollout was. */
  readonly reward: (iteration: number) => Steps<void>
  /** Joins the advantages of both critics. */
  readonly combine: () => void
  readonly metrics: () => Metrics
  readonly state: () => NamedArrays
  readonly restore: (arrays: NamedArrays) => void
}

const bound = 5

export const makeCuriosity = Effect.fnUntraced(function* (
  bonus: Bonus,
  blueprint: Blueprint,
  rollout: Rollout,
): Effect.fn.Return<Curiosity, GraphError | BackendUnavailable | BackendError, Backend | Scope.Scope> {
  const { compile } = yield* Backend
  const spec = yield* build(() => rowsSpec(blueprint, "bonus", (view) => ({ surprise: bonus.surprise(view) })))
  const program = yield* compile(spec)
  const surprise = floatsOf(program.results, "surprise")
  const { columns, numEnvs, steps, observationSize: size, rewards } = rollout
  const { seed, actionSpace } = blueprint.task
  const rows = steps * numEnvs
  const own = bonus.reward.kind === "own" ? bonus.reward : undefined

  const moments = makeMoments(size)
  const returnMoments = makeMoments(1)
  const returns = new Float64Array(numEnvs)
  const intrinsic = new Float32Array(rows)
  const intrinsicAdvantages = new Float32Array(rows)
  const none = new Uint8Array(rows)
  const advantages = floatsOf(columns, "advantages")
  const columnIn = (name: string) => (name in bonus.columns ? floatsOf(columns, name) : undefined)
  const seen = columnIn("seen")
  const next = columnIn("nextObservations")
  const learns = columnIn("learns")
  const targets = columnIn("bonusTargets")
  let mean = 0

  const normalise = (): void => {
    if (seen === undefined || next === undefined) return
    moments.update(next)
    for (let column = 0; column < size; column++) {
      const scale = 1 / Math.sqrt(moments.variance[column] + 1e-8)
      for (let at = column; at < rows * size; at += size) {
        const value = (next[at] - moments.mean[column]) * scale
        seen[at] = Math.min(Math.max(value, -bound), bound)
      }
    }
  }

  /** Divides by the deviation of the discounted sums of surprises, so that a coefficient means the same in every env. */
  const scaled = (gamma: number): void => {
    for (let t = 0; t < steps; t++) {
      for (let env = 0; env < numEnvs; env++) returns[env] = returns[env] * gamma + surprise[t * numEnvs + env]
      returnMoments.update(returns)
    }
    const scale = 1 / Math.sqrt(returnMoments.variance[0] + 1e-8)
    for (let row = 0; row < rows; row++) intrinsic[row] = surprise[row] * scale
  }

  return {
    program,
    warmUp: (envs) => {
      if (bonus.warmUp === 0) return
      // The envs are put back afterwards: nobody else notices.
      const before = envs.snapshot()
      const random = stream(seed, "warm-up")
      const actions =
        actionSpace._tag === "Discrete" ? new Int32Array(numEnvs) : new Float32Array(numEnvs * envs.actionSize)
      for (let step = 0; step < bonus.warmUp; step++) {
        randomActions(actionSpace, random, actions)
        envs.step(actions)
        moments.update(envs.observations)
      }
      envs.restore(before)
    },
    reward: function* (iteration) {
      normalise()
      if (learns !== undefined) {
        stream(seed, "bonus", iteration).fillUniform(learns)
        for (let row = 0; row < rows; row++) learns[row] = learns[row] < bonus.share ? 1 : 0
      }
      for (const name of Object.keys(spec.inputs)) program.feeds[name].set(columns[name])
      yield program
      mean = 0
      for (let row = 0; row < rows; row++) mean += surprise[row] / rows
      if (bonus.reward.kind === "added") {
        for (let row = 0; row < rows; row++) rewards[row] += bonus.reward.coefficient * surprise[row]
        return
      }
      const { gamma, lambda, episodic } = bonus.reward
      scaled(gamma)
      gae({
        rewards: intrinsic,
        values: floatsOf(columns, "bonusValues"),
        lastValues: rollout.last.bonusValues,
        terminated: episodic ? rollout.terminated : none,
        ...(episodic ? { truncated: rollout.truncated, truncatedValues: rollout.atCuts.bonusValues } : {}),
        gamma,
        lambda,
        out: intrinsicAdvantages,
        ...(targets === undefined ? {} : { targets }),
      })
    },
    combine: () => {
      if (own === undefined) return
      for (let row = 0; row < rows; row++) {
        advantages[row] = own.extrinsicCoefficient * advantages[row] + own.coefficient * intrinsicAdvantages[row]
      }
    },
    metrics: () => ({ "charts/intrinsic_reward": mean }),
    state: () => ({
      "bonus.returns": namedVector(returns),
      "bonus.mean": namedVector(moments.mean),
      "bonus.variance": namedVector(moments.variance),
      "bonus.count": namedVector(moments.count),
      "bonus.return.mean": namedVector(returnMoments.mean),
      "bonus.return.variance": namedVector(returnMoments.variance),
      "bonus.return.count": namedVector(returnMoments.count),
    }),
    restore: (arrays) => {
      copyInto(arrays, "bonus.returns", returns)
      copyInto(arrays, "bonus.mean", moments.mean)
      copyInto(arrays, "bonus.variance", moments.variance)
      copyInto(arrays, "bonus.count", moments.count)
      copyInto(arrays, "bonus.return.mean", returnMoments.mean)
      copyInto(arrays, "bonus.return.variance", returnMoments.variance)
      copyInto(arrays, "bonus.return.count", returnMoments.count)
    },
  }
})
