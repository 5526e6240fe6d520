/**
 * Implements the batch of an env that steps elsewhere: its seeds, the time limit, same-step auto-reset and snapshots. The
 * envs themselves are behind a kernel, which carries out a command for each of them in one exchange of messages.
 *
 * A snapshot has no states of envs. It has the seed of each current episode and the actions taken in it, by which `restore`
 * plays the episode again. If an env then shows another observation than before, it is not deterministic: the interrupted
 * episode ends as truncated in the next step, and the next episode begins.
 */
import { Effect } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import { utf8 } from "../../../base/config/utf8.ts"
import { type Stream, stream } from "../../../base/rng/Rng.ts"
import type { AsyncBatchEnv, BatchOptions, Snapshot } from "../BatchEnv.ts"
import { type Env, rowSpaceOf } from "../Env.ts"
import { EnvError, invalid } from "../../../base/EnvError.ts"
import { maskSizeOf, optionsOf, sizeOf } from "../Space.ts"
import { arraysFor, type Columns, copyFrom, errorAt, noLimit, originOf, wrongLength } from "./episodes.ts"
import { ofWholeGames, rowsOfGame } from "./games.ts"
import { forbiddenProblemIn, givenMaskWriter } from "./rows.ts"
import { stepsTaken } from "./stepsTaken.ts"

/** The commands of an exchange, one for each env. Foreign envs get these numbers in their messages. */
export const command = {
  /** Do nothing. */
  none: 0,
  /** Take a step. If it ends the episode, keep its last observation, and start the next episode. */
  step: 1,
  /** Take a step, which is the last one that the time limit allows: the next episode starts in any case. */
  lastStep: 2,
  /** Leave the current episode, if there is one, and start the next one. */
  start: 3,
} as const

/** The arrays that a kernel reads and writes. */
export interface AsyncColumns extends Columns {
  readonly finalObservations: Float32Array
  readonly commands: Uint8Array
  /** Returns the random numbers of the episode that env `index` starts next. */
  readonly nextEpisode: (index: number) => Stream
}

/** The envs of a batch. */
export interface AsyncKernel {
  /**
   * Carries out the commands. For an env that took a step it writes reward and `terminated`, and sets `truncated` (0 before
   * the call) if the env itself cuts the episode off. For an env whose episode ended it also writes the final observation.
   * If the env has masks, there is one in each row, except in that of a terminal state.
   */
  readonly exchange: (actions: Float32Array | Int32Array) => Effect.Effect<void, EnvError>
  readonly renderSvg?: (index: number) => Effect.Effect<string, EnvError>
  /** The states of the envs, if the kernel has them itself. Then no episode is played again by `restore`. */
  readonly states?: {
    readonly save: () => Snapshot
    /** Copies saved states back; `streamOf` returns the random stream of an env's current episode. */
    readonly load: (saved: Snapshot, streamOf: (index: number) => Stream) => Effect.Effect<void, EnvError>
  }
  /** Saves and loads the kernel's own state. Episodes are played again, from their seeds and actions, after it was loaded. */
  readonly others?: { readonly save: () => Snapshot; readonly load: (saved: Snapshot) => Effect.Effect<void, EnvError> }
}

/** The length in steps above which an episode is not played again by `restore`, but ends as truncated. */
const longestReplay = 100_000

/** Keeps the actions of the current episode of one env. */
class Actions {
  private taken: Float32Array | Int32Array
  private readonly size: number

  constructor(isDiscrete: boolean, size: number) {
    this.taken = isDiscrete ? new Int32Array(16 * size) : new Float32Array(16 * size)
    this.size = size
  }

  /** Stores the action of the step with this number, from 0; `from` is the index of its first number in `actions`. */
  put(step: number, actions: ArrayLike<number>, from: number): void {
    const at = step * this.size
    if (at + this.size > this.taken.length) {
      const larger = this.taken instanceof Int32Array ? Int32Array : Float32Array
      const before = this.taken
      this.taken = new larger(2 * before.length)
      this.taken.set(before)
    }
    for (let element = 0; element < this.size; element++) this.taken[at + element] = actions[from + element]
  }

  copyTo(step: number, into: Float32Array | Int32Array, at: number): void {
    for (let element = 0; element < this.size; element++) into[at + element] = this.taken[step * this.size + element]
  }

  of(steps: number): Float32Array | Int32Array {
    return this.taken.subarray(0, steps * this.size)
  }
}

/** Makes the batch. `kernelOf` opens the envs, which write their results to the arrays that it receives. */
export const asyncBatchOf = Effect.fnUntraced(function* <R>(
  env: Env,
  numEnvs: number,
  options: BatchOptions,
  kernelOf: (columns: AsyncColumns) => Effect.Effect<AsyncKernel, EnvError, R>,
): Effect.fn.Return<AsyncBatchEnv, EnvError, R> {
  const { autoReset, firstIndex } = options
  if (autoReset !== "same-step") {
    return yield* invalid(env.id, `it steps elsewhere, which is always with auto-reset same-step, not ${autoReset}`)
  }
  const together = yield* attempt(() => rowsOfGame(env, numEnvs), EnvError)
  const observationSpace = rowSpaceOf(env)
  const observationSize = sizeOf(observationSpace)
  const maskSize = maskSizeOf(observationSpace)
  const writeMask = observationSpace._tag === "Masked" ? givenMaskWriter(observationSpace.choices) : undefined
  const actionSize = sizeOf(env.actionSpace)
  const forbidden = forbiddenProblemIn(observationSpace, actionSize)
  const choices = optionsOf(env.actionSpace)
  const isDiscrete = choices !== undefined
  const limit = options.maxSteps ?? noLimit
  const results = arraysFor(numEnvs, observationSize, options.arrays)
  const { observations, finalObservations, rewards, terminated, truncated } = results
  const episodes = new Int32Array(numEnvs)
  const elapsed = new Int32Array(numEnvs)
  const commands = new Uint8Array(numEnvs)
  /** Marks with 1 the envs whose episode could not be continued after `restore`; the next step truncates it. */
  const lost = new Uint8Array(numEnvs)
  const taken = Array.from({ length: numEnvs }, () => new Actions(isDiscrete, actionSize))
  const noActions = isDiscrete ? new Int32Array(numEnvs * actionSize) : new Float32Array(numEnvs * actionSize)

  let seed: number | undefined
  let path: ReadonlyArray<string | number> = []
  /** The stream (seed, ...path, firstIndex + i, "episode") of each env i: the parent of its episodes' streams. */
  let parents: ReadonlyArray<Stream> = []
  /** The number of the episode that env `index` starts in the current exchange. */
  let startsAt = (index: number): number => episodes[index] + 1

  const seedStreams = (newSeed: number, newPath: ReadonlyArray<string | number>): void => {
    seed = newSeed
    path = newPath
    parents = Array.from({ length: numEnvs }, (_, index) => stream(newSeed, ...newPath, firstIndex + index, "episode"))
  }

  const kernel = yield* kernelOf({
    ...results,
    numEnvs,
    episodes,
    elapsed,
    commands,
    nextEpisode: (index) => parents[index].child(startsAt(index)),
  })

  /** Carries out the commands. An interruption waits for the answer, so that no answer is left for a later exchange. */
  const exchange = (
    actions: Float32Array | Int32Array,
    starts: (index: number) => number,
  ): Effect.Effect<void, EnvError> =>
    Effect.suspend(() => {
      startsAt = starts
      stepsTaken[0]++
      return Effect.uninterruptible(kernel.exchange(actions))
    })

  const nextNumber = (index: number): number => episodes[index] + 1

  const check = (actions: Float32Array | Int32Array): EnvError | undefined => {
    if (actions.length !== numEnvs * actionSize) return wrongLength(env.id, numEnvs, actionSize, actions)
    for (let at = 0; at < actions.length; at++) {
      const index = Math.floor(at / actionSize)
      const action = actions[at]
      if (choices !== undefined) {
        const most = choices[at % actionSize] - 1
        if (action >>> 0 === action && action <= most) continue
        const where = actionSize === 1 ? "an action" : `a number as element ${at % actionSize} of the action`
        const expected = `expected ${where} from 0 to ${most}, found ${action}`
        return errorAt(env.id, index, episodes[index], elapsed[index] + 1, expected)
      }
      if (action - action === 0) continue
      const problem = `action element ${at % actionSize} is ${action}; expected a finite number`
      return errorAt(env.id, index, episodes[index], elapsed[index] + 1, problem)
    }
    const found = forbidden?.(observations, actions)
    if (found === undefined) return undefined
    return errorAt(env.id, found.index, episodes[found.index], elapsed[found.index] + 1, found.problem)
  }

  /** Checks the mask at the end of an env's row. */
  const maskProblem = (rows: Float32Array, index: number): EnvError | undefined => {
    const end = (index + 1) * observationSize
    const problem = writeMask?.(rows.subarray(end - maskSize, end), rows, end - maskSize)
    return problem === undefined ? undefined : errorAt(env.id, index, episodes[index], elapsed[index], problem)
  }

  /** Checks the numbers that the envs sent: they must be finite, and masks must be zeros and ones. */
  const checkResults = (): EnvError | undefined => {
    for (let at = 0; at < observations.length; at++) {
      if (observations[at] - observations[at] === 0) continue
      const index = Math.floor(at / observationSize)
      const problem = `observation element ${at % observationSize} is ${observations[at]}, not a finite number`
      return errorAt(env.id, index, episodes[index], elapsed[index], problem)
    }
    for (let index = 0; writeMask !== undefined && index < numEnvs; index++) {
      const problem = maskProblem(observations, index)
      if (problem !== undefined) return problem
    }
    const index = rewards.findIndex((reward) => !Number.isFinite(reward))
    if (index < 0) return undefined
    return errorAt(env.id, index, episodes[index], elapsed[index], `reward is ${rewards[index]}, not a finite number`)
  }
  const checked = Effect.suspend(() => {
    const problem = checkResults()
    return problem === undefined ? Effect.void : Effect.fail(problem)
  })

  const step = (actions: Float32Array | Int32Array): Effect.Effect<void, EnvError> =>
    Effect.suspend(() => {
      if (seed === undefined) return Effect.fail(invalid(env.id, "step before reset"))
      const problem = check(actions)
      if (problem !== undefined) return Effect.fail(problem)
      let lostOnes = 0
      for (let index = 0; index < numEnvs; index++) {
        if (lost[index] !== 0) {
          commands[index] = command.start
          lostOnes++
          const first = index * observationSize
          finalObservations.set(observations.subarray(first, first + observationSize), first)
          continue
        }
        commands[index] = elapsed[index] + 1 >= limit ? command.lastStep : command.step
        if (kernel.states === undefined && elapsed[index] < longestReplay)
          taken[index].put(elapsed[index], actions, index * actionSize)
      }
      truncated.fill(0)
      return Effect.andThen(
        exchange(actions, nextNumber),
        Effect.suspend(() => {
          for (let index = 0; index < numEnvs; index++) {
            elapsed[index]++
            if (lostOnes > 0 && lost[index] !== 0) {
              lost[index] = 0
              rewards[index] = 0
              terminated[index] = 0
              truncated[index] = 1
            }
            if (commands[index] === command.lastStep) truncated[index] = 1
            if ((terminated[index] | truncated[index]) === 0) continue
            const end = (index + 1) * observationSize
            if (terminated[index] !== 0) finalObservations.fill(1, end - maskSize, end)
            const problem = maskProblem(finalObservations, index)
            if (problem !== undefined) return Effect.fail(problem)
            episodes[index]++
            elapsed[index] = 0
          }
          return checked
        }),
      )
    })

  /** Clears the results of the envs whose command is `start`. */
  const clearStarted = (): void => {
    for (let index = 0; index < numEnvs; index++) {
      if (commands[index] !== command.start) continue
      elapsed[index] = 0
      lost[index] = 0
      rewards[index] = 0
      terminated[index] = 0
      truncated[index] = 0
    }
  }

  const reset = (newSeed: number, ...newPath: ReadonlyArray<string | number>): Effect.Effect<void, EnvError> =>
    Effect.suspend(() => {
      seedStreams(newSeed, newPath)
      episodes.fill(0)
      commands.fill(command.start)
      clearStarted()
      return Effect.andThen(
        exchange(noActions, () => 0),
        checked,
      )
    })

  const restart = (mask: Uint8Array): Effect.Effect<void, EnvError> =>
    Effect.suspend(() => {
      if (seed === undefined) return Effect.fail(invalid(env.id, "restart before reset"))
      if (mask.length !== numEnvs)
        return Effect.fail(invalid(env.id, `restart got a mask of ${mask.length} for ${numEnvs} envs`))
      const restarted = ofWholeGames(mask, together)
      for (let index = 0; index < numEnvs; index++) {
        commands[index] = restarted[index] === 0 ? command.none : command.start
        if (restarted[index] !== 0) episodes[index]++
      }
      clearStarted()
      return Effect.andThen(
        exchange(noActions, (index) => episodes[index]),
        checked,
      )
    })

  const columns = { observations, finalObservations, rewards, terminated, truncated, episodes, elapsed, lost }

  const snapshot = (): Snapshot => {
    const origin = utf8.encode(JSON.stringify({ seed: seed ?? null, path }))
    const copies = Object.entries(columns).map(([key, column]) => [key, column.slice()] as const)
    if (kernel.states !== undefined) {
      return { origin, ...Object.fromEntries(copies), ...(seed === undefined ? {} : kernel.states.save()) }
    }
    const kept = taken.map((actions, index) => actions.of(isReplayable(index) ? elapsed[index] : 0))
    const all = new (isDiscrete ? Int32Array : Float32Array)(kept.reduce((sum, { length }) => sum + length, 0))
    let at = 0
    for (const actions of kept) {
      all.set(actions, at)
      at += actions.length
    }
    return { origin, ...Object.fromEntries(copies), actions: all, ...kernel.others?.save() }
  }

  const isReplayable = (index: number): boolean => lost[index] === 0 && elapsed[index] <= longestReplay

  const loadActions = (saved: Snapshot): void => {
    const total = elapsed.reduce((sum, steps, index) => sum + (isReplayable(index) ? steps * actionSize : 0), 0)
    const all = new (isDiscrete ? Int32Array : Float32Array)(total)
    copyFrom(env.id, saved, "actions", all)
    let at = 0
    for (let index = 0; index < numEnvs; index++) {
      if (!isReplayable(index)) continue
      for (let played = 0; played < elapsed[index]; played++, at += actionSize) taken[index].put(played, all, at)
    }
  }

  /** Plays the current episodes again, and marks those as lost that take another course. */
  const replay = Effect.gen(function* () {
    const before = snapshot()
    const replayed = Array.from({ length: numEnvs }, (_, index) => isReplayable(index))
    const current = (index: number): number => episodes[index]
    let longest = 0
    for (let index = 0; index < numEnvs; index++) {
      commands[index] = replayed[index] ? command.start : command.none
      if (replayed[index]) longest = Math.max(longest, elapsed[index])
    }
    yield* exchange(noActions, current)
    const actions = noActions.slice()
    for (let played = 0; played < longest; played++) {
      for (let index = 0; index < numEnvs; index++) {
        const plays = replayed[index] && played < elapsed[index]
        commands[index] = plays ? command.step : command.none
        if (plays) taken[index].copyTo(played, actions, index * actionSize)
      }
      terminated.fill(0)
      truncated.fill(0)
      yield* exchange(actions, current)
      for (let index = 0; index < numEnvs; index++) {
        if (commands[index] === command.step && (terminated[index] | truncated[index]) !== 0) replayed[index] = false
      }
    }
    const replayedObservations = observations.slice()
    for (const [key, column] of Object.entries(columns)) copyFrom(env.id, before, key, column)
    for (let index = 0; index < numEnvs; index++) {
      for (let at = index * observationSize; replayed[index] && at < (index + 1) * observationSize; at++) {
        if (replayedObservations[at] !== observations[at]) replayed[index] = false
      }
      lost[index] = replayed[index] ? 0 : 1
    }
    lost.set(ofWholeGames(lost, together))
  })

  const restore = (saved: Snapshot): Effect.Effect<void, EnvError> =>
    Effect.flatMap(
      attempt(() => {
        const origin = originOf(env.id, saved)
        for (const [key, column] of Object.entries(columns)) copyFrom(env.id, saved, key, column)
        seed = undefined
        if (origin.seed === null) return false
        seedStreams(origin.seed, origin.path)
        if (kernel.states === undefined) loadActions(saved)
        return true
      }, EnvError),
      (isSeeded) =>
        !isSeeded
          ? Effect.void
          : (kernel.states?.load(saved, (index) => parents[index].child(episodes[index])) ??
            Effect.andThen(kernel.others?.load(saved) ?? Effect.void, replay)),
    )

  return {
    id: env.id,
    isAsync: true,
    numEnvs,
    autoReset,
    observationSpace,
    actionSpace: env.actionSpace,
    observationSize,
    actionSize,
    ...results,
    reset,
    restart,
    step,
    ...(kernel.renderSvg && { renderSvg: kernel.renderSvg }),
    snapshot,
    restore,
  }
})
