/**
 * Implements the batch of an env that runs elsewhere (in another process or across a network): seeds, time limit,
 * same-step auto-reset and snapshots. A kernel reaches the envs themselves; in one exchange of messages, it carries out
 * a command for each of them.
 *
 * A snapshot usually has no states of envs, but the seed of each current episode and the actions taken in it; `restore`
 * plays the episode again. If the env is not deterministic and the replay ends at a different observation, the episode
 * ends as truncated in the next step.
 */
import { Effect } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import { EnvError, invalid } from "../../../base/EnvError.ts"
import type { AsyncBatchEnv, EnvBatchOptions } from "../BatchEnv.ts"
import { type Env, rowSpaceOf } from "../Env.ts"
import { actionProblem } from "./actionCheck.ts"
import { type AsyncColumns, type AsyncKernel, command } from "./asyncKernel.ts"
import { longestReplay, restore, snapshotOf } from "./asyncSnapshots.ts"
import { type AsyncState, columnsFor, exchange, type OpenBatch, stateOf } from "./asyncState.ts"
import { setSeed } from "./episodeSeeds.ts"
import { errorAt, wrongLength } from "./episodes.ts"
import { ofWholeGames } from "./games.ts"

/** Makes the batch. `kernelOf` opens the envs, which write their results to the arrays that it receives. */
export const asyncBatchOf = Effect.fnUntraced(function* <R>(
  env: Env,
  numEnvs: number,
  options: EnvBatchOptions,
  kernelOf: (columns: AsyncColumns) => Effect.Effect<AsyncKernel, EnvError, R>,
): Effect.fn.Return<AsyncBatchEnv, EnvError, R> {
  const { autoReset } = options
  if (autoReset !== "same-step") {
    return yield* invalid(env.id, `it steps elsewhere, which is always with auto-reset same-step, not ${autoReset}`)
  }
  const state = yield* attempt(() => stateOf(env, numEnvs, options), EnvError)
  const kernel = yield* kernelOf(columnsFor(state))
  const batch: OpenBatch = { ...state, kernel }
  const { observations, finalObservations, rewards, terminated, truncated, observationSize, actionSize } = state
  return {
    id: env.id,
    isAsync: true,
    numEnvs,
    autoReset,
    observationSpace: rowSpaceOf(env),
    actionSpace: env.actionSpace,
    observationSize,
    actionSize,
    observations,
    finalObservations,
    rewards,
    terminated,
    truncated,
    reset: (seed, ...path) => reset(batch, seed, path),
    restart: (mask) => restart(batch, mask),
    step: (actions) => step(batch, actions),
    ...(kernel.renderSvg && { renderSvg: kernel.renderSvg }),
    ...kernel.recorded,
    snapshot: () => snapshotOf(batch),
    restore: (saved) => restore(batch, saved),
  }
})

/** Starts the first episode of all envs. */
const reset = (batch: OpenBatch, seed: number, path: ReadonlyArray<string | number>): Effect.Effect<void, EnvError> =>
  Effect.suspend(() => {
    setSeed(batch.seeds, seed, path)
    batch.episodes.fill(0)
    batch.commands.fill(command.start)
    return startAll(batch)
  })

/** Abandons the episodes of the envs whose `mask` is 1, and starts their next ones. */
const restart = (batch: OpenBatch, mask: Uint8Array): Effect.Effect<void, EnvError> =>
  Effect.suspend(() => {
    const { env, numEnvs, seeds, together, commands, episodes } = batch
    if (seeds.seed === undefined) return Effect.fail(invalid(env.id, "restart before reset"))
    if (mask.length !== numEnvs) {
      return Effect.fail(invalid(env.id, `restart got a mask of ${mask.length} for ${numEnvs} envs`))
    }
    const restarted = ofWholeGames(mask, together)
    for (let index = 0; index < numEnvs; index++) {
      commands[index] = restarted[index] === 0 ? command.none : command.start
      if (restarted[index] !== 0) episodes[index]++
    }
    return startAll(batch)
  })

/** Starts the current episodes of the envs whose command is `start`. */
const startAll = (batch: OpenBatch): Effect.Effect<void, EnvError> => {
  clearStarted(batch)
  batch.starts.set(batch.episodes)
  return Effect.andThen(
    exchange(batch, batch.noActions),
    Effect.suspend(() => failWith(resultProblem(batch))),
  )
}

/** Clears the results of the envs whose command is `start`. */
const clearStarted = ({ commands, elapsed, lost, rewards, terminated, truncated }: AsyncState): void => {
  for (let index = 0; index < commands.length; index++) {
    if (commands[index] !== command.start) continue
    elapsed[index] = 0
    lost[index] = 0
    rewards[index] = 0
    terminated[index] = 0
    truncated[index] = 0
  }
}

/** Takes a step of all envs. */
const step = (batch: OpenBatch, actions: Float32Array | Int32Array): Effect.Effect<void, EnvError> =>
  Effect.suspend(() => {
    const problem = stepProblem(batch, actions)
    if (problem !== undefined) return Effect.fail(problem)
    commandStep(batch, actions)
    return Effect.andThen(
      exchange(batch, actions),
      Effect.suspend(() => failWith(finishStep(batch) ?? resultProblem(batch))),
    )
  })

const failWith = (problem: EnvError | undefined): Effect.Effect<void, EnvError> =>
  problem === undefined ? Effect.void : Effect.fail(problem)

/** Writes the commands of a step. Also records its actions, which `restore` needs if the kernel cannot save states. */
const commandStep = (batch: OpenBatch, actions: Float32Array | Int32Array): void => {
  const { kernel, numEnvs, observationSize, actionSize, limit, observations, finalObservations } = batch
  const { commands, starts, lost, episodes, elapsed, taken } = batch
  for (let index = 0; index < numEnvs; index++) {
    starts[index] = episodes[index] + 1
    if (lost[index] !== 0) {
      commands[index] = command.start
      const first = index * observationSize
      finalObservations.set(observations.subarray(first, first + observationSize), first)
      continue
    }
    commands[index] = elapsed[index] + 1 >= limit ? command.lastStep : command.step
    if (kernel.states === undefined && elapsed[index] < longestReplay) {
      taken[index].put(elapsed[index], actions, index * actionSize)
    }
  }
  batch.truncated.fill(0)
}

/**
 * Counts the steps, and ends the episodes that are over. Returns the error of a wrong mask in a final observation, if
 * any.
 */
const finishStep = (state: OpenBatch): EnvError | undefined => {
  const { numEnvs, observationSize, maskSize, finalObservations, rewards, terminated, truncated } = state
  const { commands, lost, episodes, elapsed } = state
  const { scores, livesLost } = state.kernel.recorded ?? {}
  for (let index = 0; index < numEnvs; index++) {
    elapsed[index]++
    if (lost[index] !== 0) {
      lost[index] = 0
      rewards[index] = 0
      scores?.fill(0, index, index + 1)
      livesLost?.fill(0, index, index + 1)
      terminated[index] = 0
      truncated[index] = 1
    }
    if (commands[index] === command.lastStep) truncated[index] = 1
    if ((terminated[index] | truncated[index]) === 0) continue
    const end = (index + 1) * observationSize
    if (terminated[index] !== 0) finalObservations.fill(1, end - maskSize, end)
    const problem = maskProblem(state, finalObservations, index)
    if (problem !== undefined) return problem
    if (livesLost?.[index] === 1) continue
    episodes[index]++
    elapsed[index] = 0
  }
  return undefined
}

/** Returns why a step can't be taken; undefined if it can. */
const stepProblem = (state: AsyncState, actions: Float32Array | Int32Array): EnvError | undefined => {
  const { env, numEnvs, actionSize, seeds, actionCheck, observations, episodes, elapsed } = state
  if (seeds.seed === undefined) return invalid(env.id, "step before reset")
  if (actions.length !== numEnvs * actionSize) return wrongLength(env.id, numEnvs, actionSize, actions)
  const wrong = actionProblem(actionCheck, observations, actions)
  if (wrong === undefined) return undefined
  return errorAt(env.id, wrong.index, episodes[wrong.index], elapsed[wrong.index] + 1, wrong.problem)
}

/** Checks the mask at the end of an env's row. */
const maskProblem = (
  { env, observationSize, maskSize, writeMask, episodes, elapsed }: AsyncState,
  rows: Float32Array,
  index: number,
): EnvError | undefined => {
  const end = (index + 1) * observationSize
  const problem = writeMask?.(rows.subarray(end - maskSize, end), rows, end - maskSize)
  return problem === undefined ? undefined : errorAt(env.id, index, episodes[index], elapsed[index], problem)
}

/** Checks the numbers that the envs sent: they must be finite, and masks must be zeros and ones. */
const resultProblem = (state: OpenBatch): EnvError | undefined => {
  const { env, numEnvs, observationSize, writeMask, observations, rewards, episodes, elapsed } = state
  const errorOf = (index: number, problem: string) =>
    errorAt(env.id, index, episodes[index], elapsed[index], `${problem}, not a finite number`)
  for (let at = 0; at < observations.length; at++) {
    if (observations[at] - observations[at] === 0) continue
    const problem = `observation element ${at % observationSize} is ${observations[at]}`
    return errorOf(Math.floor(at / observationSize), problem)
  }
  for (let index = 0; writeMask !== undefined && index < numEnvs; index++) {
    const problem = maskProblem(state, observations, index)
    if (problem !== undefined) return problem
  }
  const index = rewards.findIndex((reward) => !Number.isFinite(reward))
  if (index >= 0) return errorOf(index, `reward is ${rewards[index]}`)
  const { scores = rewards } = state.kernel.recorded ?? {}
  const wrong = scores.findIndex((score) => !Number.isFinite(score))
  return wrong < 0 ? undefined : errorOf(wrong, `score is ${scores[wrong]}`)
}
