/**
 * Takes snapshots of a batch whose envs run elsewhere, and restores them. If the kernel cannot save the states of the
 * envs, a snapshot has the actions of the current episodes, and `restore` replays these.
 */
import { Effect } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import { EnvError } from "../../../base/EnvError.ts"
import type { Snapshot } from "../BatchEnv.ts"
import { command } from "./asyncKernel.ts"
import { type AsyncState, exchange, type OpenBatch } from "./asyncState.ts"
import { originOf, restoreSeed, saveSeed } from "./episodeSeeds.ts"
import { copyFrom } from "./episodes.ts"
import { ofWholeGames } from "./games.ts"

/** The largest number of steps that `restore` replays; a longer episode ends as truncated. */
export const longestReplay = 100_000

/** Returns the arrays that a snapshot copies. */
const savedColumns = ({
  observations,
  finalObservations,
  rewards,
  terminated,
  truncated,
  episodes,
  elapsed,
  lost,
}: AsyncState) =>
  Object.entries({ observations, finalObservations, rewards, terminated, truncated, episodes, elapsed, lost })

/** Returns copies of the batch's arrays, with the states of the envs or the actions of their current episodes. */
export const snapshotOf = (batch: OpenBatch): Snapshot => {
  const { kernel, seeds } = batch
  const origin = saveSeed(seeds)
  const copies = Object.fromEntries(savedColumns(batch).map(([key, column]) => [key, column.slice()] as const))
  if (kernel.states !== undefined) {
    return { origin, ...copies, ...(seeds.seed === undefined ? {} : kernel.states.save()) }
  }
  return { origin, ...copies, actions: actionsOf(batch), ...kernel.others?.save() }
}

/** Restores a snapshot: loads the states of the envs, or replays their current episodes. */
export const restore = (batch: OpenBatch, saved: Snapshot): Effect.Effect<void, EnvError> => {
  const { kernel, seeds, episodes } = batch
  return Effect.flatMap(
    attempt(() => restoreColumns(batch, saved), EnvError),
    (isSeeded) => {
      if (!isSeeded) return Effect.void
      if (kernel.states !== undefined) {
        return kernel.states.load(saved, (index) => seeds.parents[index].child(episodes[index]))
      }
      return Effect.andThen(kernel.others?.load(saved) ?? Effect.void, replay(batch))
    },
  )
}

/** Copies a snapshot's arrays back. Returns false if it was taken before the first reset. */
const restoreColumns = (batch: OpenBatch, saved: Snapshot): boolean => {
  const { env, seeds, kernel } = batch
  const origin = originOf(env.id, saved)
  for (const [key, column] of savedColumns(batch)) copyFrom(env.id, saved, key, column)
  if (!restoreSeed(seeds, origin)) return false
  if (kernel.states === undefined) loadActions(batch, saved)
  return true
}

const isReplayable = ({ lost, elapsed }: AsyncState, index: number): boolean =>
  lost[index] === 0 && elapsed[index] <= longestReplay

/** Returns the actions of the current episodes that can be played again, one after another. */
const actionsOf = (state: AsyncState): Float32Array | Int32Array => {
  const kept = state.taken.map((actions, index) => actions.of(isReplayable(state, index) ? state.elapsed[index] : 0))
  const all = new (state.isDiscrete ? Int32Array : Float32Array)(kept.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const actions of kept) {
    all.set(actions, at)
    at += actions.length
  }
  return all
}

const loadActions = (state: AsyncState, saved: Snapshot): void => {
  const { env, numEnvs, actionSize, isDiscrete, elapsed, taken } = state
  const total = elapsed.reduce((sum, steps, index) => sum + (isReplayable(state, index) ? steps * actionSize : 0), 0)
  const all = new (isDiscrete ? Int32Array : Float32Array)(total)
  copyFrom(env.id, saved, "actions", all)
  let at = 0
  for (let index = 0; index < numEnvs; index++) {
    if (!isReplayable(state, index)) continue
    for (let played = 0; played < elapsed[index]; played++, at += actionSize) taken[index].put(played, all, at)
  }
}

/** Replays the current episodes, and marks an env as lost if its replay differs. */
const replay = Effect.fnUntraced(function* (batch: OpenBatch): Effect.fn.Return<void, EnvError> {
  const { numEnvs, actionSize, commands, elapsed, taken, terminated, truncated, noActions } = batch
  const before = snapshotOf(batch)
  const isSame = Array.from({ length: numEnvs }, (_, index) => isReplayable(batch, index))
  const longest = elapsed.reduce((most, steps, index) => (isSame[index] ? Math.max(most, steps) : most), 0)
  for (let index = 0; index < numEnvs; index++) commands[index] = isSame[index] ? command.start : command.none
  batch.starts.set(batch.episodes)
  yield* exchange(batch, noActions)
  const actions = noActions.slice()
  for (let played = 0; played < longest; played++) {
    for (let index = 0; index < numEnvs; index++) {
      const plays = isSame[index] && played < elapsed[index]
      commands[index] = plays ? command.step : command.none
      if (plays) taken[index].copyTo(played, actions, index * actionSize)
    }
    terminated.fill(0)
    truncated.fill(0)
    yield* exchange(batch, actions)
    for (let index = 0; index < numEnvs; index++) {
      const hasEnded = (terminated[index] | truncated[index]) !== 0 && batch.kernel.recorded?.livesLost[index] !== 1
      if (commands[index] === command.step && hasEnded) isSame[index] = false
    }
  }
  returnTo(batch, before, isSame)
})

/** Restores the arrays as they were before the replay, and marks the envs as lost whose replay ended differently. */
const returnTo = (state: AsyncState, before: Snapshot, isSame: ReadonlyArray<boolean>): void => {
  const { env, numEnvs, observationSize, observations, lost, together } = state
  const replayed = observations.slice()
  for (const [key, column] of savedColumns(state)) copyFrom(env.id, before, key, column)
  for (let index = 0; index < numEnvs; index++) {
    let isLost = !isSame[index]
    for (let at = index * observationSize; !isLost && at < (index + 1) * observationSize; at++) {
      isLost = replayed[at] !== observations[at]
    }
    lost[index] = isLost ? 1 : 0
  }
  lost.set(ofWholeGames(lost, together))
}
