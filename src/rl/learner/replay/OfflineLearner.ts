/** Makes learners of algorithms that learn from a data set of transitions, and play no env. */
import { Effect, Record, type Scope, Struct } from "effect"
import { Backend } from "../../../tensor/backend/Backend.ts"
import type { ScheduleCourse, Schedule } from "../../../tensor/graph/schedules.ts"
import { type Stream, stream } from "../../../base/rng/Rng.ts"
import { policies } from "../acting.ts"
import { display } from "../../../base/config/Config.ts"
import { type Learner, LearningError, type SetupError, steered } from "../Learner.ts"
import { Averages } from "../Averages.ts"
import { type Arrays, feedsOf } from "../Batch.ts"
import { checkFit } from "../Demonstrations.ts"
import { namedVector, savedState } from "../learnerState.ts"
import { notFiniteIn } from "../transitions/player.ts"
import { ratesOf } from "../parts.ts"
import type { Transitions } from "../transitions/Transitions.ts"
import { compileUpdate, type UpdateOptions, type Updating } from "./networks.ts"
import { type ReplayColumns, replayColumns } from "./ReplayExperience.ts"

interface OfflineExperience<N extends string, T extends N | "actor"> extends Omit<
  Updating<N, T>,
  "config" | "priorities" | "columns"
> {
  readonly transitions: Transitions
  readonly config: { readonly batchSize: number; readonly gamma: number }
  /** The factor of rewards. */
  readonly rewardScale: number
  /** The schedule of all learning rates that have no schedule of their own. */
  readonly schedule: ScheduleCourse | Schedule
}

/**
 * Makes a learner that draws each batch from a data set of transitions; all have the same probability. A step of its run is
 * one transition that it learns from.
 */
export const offlineLearner = Effect.fnUntraced(function* <N extends string, T extends N | "actor", S extends string>(
  experience: OfflineExperience<N, T>,
  options: UpdateOptions<N, T, S>,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  const { name, task, actor, transitions, config } = experience
  yield* checkFit(name, transitions, task)
  yield* checkEpisodes(name, transitions)
  const backend = yield* Backend
  const { batchSize } = config
  const columnsOf = (noiseSize: number) => replayColumns(task, noiseSize)
  const compiled = yield* compileUpdate(
    { ...experience, config: { batchSize, gradientSteps: 1 }, priorities: null, columns: columnsOf },
    options,
  )
  const { update, layouts } = compiled

  const { importance: _, noise: noiseColumn, ...columns } = columnsOf(options.noiseSize)
  const fill = batches(experience, feedsOf(columns, update.feeds))
  const noise = options.noiseSize === 0 ? undefined : feedsOf({ noise: noiseColumn }, update.feeds).noise
  const random = stream(task.seed, "update")
  const averages = new Averages()
  const rates = ratesOf(options.learningRates, experience.schedule)
  const { observations, actions, rewards, lengths, terminated, finalObservations } = transitions
  const data = { observations, actions, rewards, lengths, terminated, finalObservations }
  return {
    devices: { [update.name]: update.device },
    capabilities: { plays: "nothing" },
    data: Record.map(data, namedVector),
    rollout: (_envs, { iteration }) =>
      Effect.sync(() => {
        const draws = random.child(iteration)
        fill(draws)
        if (noise !== undefined) draws.fillUniform(noise)
        return batchSize
      }),
    update: Effect.fnUntraced(function* (position) {
      const { iteration, step } = position
      for (const [key, rate] of rates) update.feeds[key][0] = steered(position, rate(step / task.totalSteps))
      yield* update.run
      averages.addResults(update)
      yield* averages.checkFinite(`update ${iteration + 1}`)
    }),
    metrics: () => averages.take(),
    ...policies(backend, { name, task, actor, layout: layouts.actor }, update.read("actor")),
    weights: compiled.weights,
    state: Effect.map(compiled.optimizer, (optimizer) => ({ optimizer })),
    start: compiled.start,
    restore: (weights, saved) => compiled.restore(weights, savedState(saved)),
  }
})

/**
 * Fails unless all fields of a data set describe the same steps and episodes, and its rewards and final observations
 * are finite.
 */
const checkEpisodes = (
  algorithm: string,
  { rows, observations, rewards, lengths, terminated, finalObservations }: Transitions,
): Effect.Effect<void, LearningError> => {
  const fail = (problem: string) => Effect.fail(new LearningError({ message: `${algorithm}: ${problem}` }))
  const steps = lengths.reduce((sum, length) => sum + length, 0)
  if (steps !== rows || lengths.some((length) => length < 0)) {
    return fail(`lengths: expected those of the episodes of ${rows} steps, found ${display(Array.from(lengths))}`)
  }
  const width = observations.length / rows
  const expected = { rewards: rows, terminated: lengths.length, finalObservations: lengths.length * width }
  const found = { rewards, terminated, finalObservations }
  for (const name of Struct.keys(expected)) {
    if (found[name].length === expected[name]) continue
    return fail(`${name}: expected ${expected[name]} numbers, found ${found[name].length}`)
  }
  for (const [name, numbers] of Object.entries({ rewards, finalObservations })) {
    const wrong = notFiniteIn(numbers)
    if (wrong >= 0) return fail(`${name}: expected finite numbers, found ${numbers[wrong]} at ${wrong}`)
  }
  return Effect.void
}

/** Returns a function that fills the feeds with drawn transitions. */
const batches = (
  {
    transitions,
    config,
    rewardScale,
  }: Pick<OfflineExperience<string, never>, "transitions" | "config" | "rewardScale">,
  into: Arrays<Omit<ReplayColumns, "importance" | "noise">>,
): ((random: Stream) => void) => {
  const { rows, observations, actions, rewards, lengths, terminated, finalObservations } = transitions
  const { batchSize, gamma } = config
  const width = observations.length / rows
  const actionSize = actions.length / rows
  /** For each row: the index of the episode whose last step it is; −1 if it is not a last step. */
  const ended = new Int32Array(rows).fill(-1)
  let start = 0
  for (const [episode, length] of lengths.entries()) {
    start += length
    if (length > 0) ended[start - 1] = episode
  }
  const uniform = new Float64Array(batchSize)
  return (random) => {
    random.fillUniform(uniform)
    for (let row = 0; row < batchSize; row++) {
      const from = Math.floor(uniform[row] * rows)
      const episode = ended[from]
      const next = episode < 0 ? observations : finalObservations
      const nextAt = (episode < 0 ? from + 1 : episode) * width
      for (let at = 0; at < width; at++) {
        into.observations[row * width + at] = observations[from * width + at]
        into.nextObservations[row * width + at] = next[nextAt + at]
      }
      for (let at = 0; at < actionSize; at++) into.actions[row * actionSize + at] = actions[from * actionSize + at]
      into.rewards[row] = rewardScale * rewards[from]
      into.discounts[row] = episode >= 0 && terminated[episode] !== 0 ? 0 : gamma
    }
  }
}
