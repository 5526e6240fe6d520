/**
 * Makes learners of off-policy algorithms from an experience (how they act and store steps) and an update's graph. A
 * learner touches no files: `state` returns the arrays of a checkpoint, and `restore` takes them.
 */
import { Effect, type Scope } from "effect"
import { Backend, type Program } from "../../../tensor/backend/Backend.ts"
import { attempt } from "../../../base/config/attempt.ts"
import { bounds } from "../../../base/config/bounds.ts"
import { ConfigError } from "../../../base/config/Config.ts"
import { EnvError } from "../../../base/EnvError.ts"
import { sizeOf } from "../../env/Space.ts"
import { indicesFeed } from "../../../tensor/graph/Program.ts"
import { isImage } from "../../model/observations.ts"
import { type Stream, stream } from "../../../base/rng/Rng.ts"
import { actSpec, policies } from "../acting.ts"
import { type Learner, type Position, type SetupError, steered, type Task } from "../Learner.ts"
import { Averages } from "../Averages.ts"
import { type Columns, f32, feedsOf } from "../Batch.ts"
import { build } from "../graphs.ts"
import { drive } from "../drive.ts"
import { floatsOf, savedState, vectorsOf } from "../learnerState.ts"
import { ratesOf } from "../parts.ts"
import { fillScheduled, type ScheduledInputs } from "../scheduled.ts"
import { hindsight } from "./Hindsight.ts"
import { prioritisedDraws } from "./Priorities.ts"
import { makeReplay, type Replay } from "./Replay.ts"
import { replayColumns, type ReplayExperience, sequenceColumns } from "./ReplayExperience.ts"
import { drawableIn, replayBytes, type BufferLayout } from "./BufferLayout.ts"
import type { ReplayConfig } from "./fields.ts"
import { compileUpdate, errorsOutput, type UpdateOptions } from "./networks.ts"
import { makeReplayRollout, playReplayRollout, type ReplayRollout } from "./replayRollout.ts"
import { tooLarge } from "./storage.ts"

/**
 * Makes a learner that stores env steps in a replay buffer and learns from batches that it draws from there: DQN, SAC
 * and TD3. In each iteration it acts for `trainEvery` env steps, rounded up to whole steps of all envs. Then, once
 * there are enough steps to learn from, it takes the updates that are due, one for every `trainEvery` env steps of the
 * run. Each update takes `gradientSteps` gradient steps.
 */
export const replayLearner = Effect.fnUntraced(function* <
  N extends string,
  T extends N | "actor",
  S extends string,
  C extends Columns,
>(
  experience: ReplayExperience<N, T, C>,
  options: UpdateOptions<N, T, S, C>,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  const { name, task, config, actor, exploration, copyTargetsEvery, priorities } = experience
  const { batchSize } = config
  const gradientSteps = yield* gradientStepsOf(name, config)
  const bufferLayout = yield* checkedBufferLayout(experience)

  // The programs: one acts, and one updates the networks.
  const backend = yield* Backend
  const compiled = yield* compileUpdate({ ...experience, config: { batchSize, gradientSteps } }, options)
  const { update, layouts, copyTargets } = compiled
  const acting = { name, task, actor, layout: layouts.actor, exploration }
  const act = yield* backend.compile(yield* build(() => actSpec(acting)))
  const actorWeights = new Float32Array(layouts.actor.size)
  const copyToActing = Effect.flatMap(update.read("actor", actorWeights), (theta) => act.write("theta", theta))
  yield* copyToActing

  const replay = makeReplay(bufferLayout)
  const prioritised =
    priorities === null
      ? undefined
      : prioritisedDraws(priorities, replay, experience, floatsOf(update.feeds, "importance"))
  const rollout = makeReplayRollout(experience, act, replay, prioritised)
  const learning = yield* learningOf(experience, options, rollout, update, gradientSteps)
  const noiseState = vectorsOf(rollout.process === undefined ? {} : { noise: rollout.process.values })
  return {
    devices: { [act.name]: act.device, [update.name]: update.device },
    rollout: (envs, position) => drive(() => playReplayRollout(rollout, envs, position)),
    capabilities: { rolloutSteps: rollout.steps },
    update: Effect.fnUntraced(function* (position) {
      if (yield* learn(learning, position)) yield* copyToActing
    }),
    metrics: () => learning.averages.take(),
    ...(copyTargetsEvery === undefined ? {} : { target: { everySteps: copyTargetsEvery, update: copyTargets } }),
    ...policies(backend, acting, update.read("actor")),
    weights: compiled.weights,
    state: Effect.map(compiled.optimizer, (optimizer) => ({
      optimizer,
      replay: { ...replay.state(), ...prioritised?.state(), ...noiseState.state() },
    })),
    start: (weights) => Effect.andThen(compiled.start(weights), copyToActing),
    restore: Effect.fnUntraced(function* (weights, saved) {
      const checkpoint = savedState(saved)
      yield* compiled.restore(weights, checkpoint)
      yield* checkpoint.use("replay", (arrays) => {
        replay.restore(arrays)
        prioritised?.restore(arrays)
        noiseState.restore(arrays)
      })
      yield* copyToActing
    }),
  }
})

/** The parts of a learner that update its networks after a rollout. */
interface ReplayLearning {
  readonly task: Task
  readonly config: ReplayConfig
  readonly rollout: ReplayRollout
  readonly update: Program
  readonly scheduledInputs: ScheduledInputs | undefined
  readonly rates: ReturnType<typeof ratesOf>
  readonly random: Stream
  /** The places of the drawn transitions or sequences. */
  readonly places: Int32Array
  /** Fills the feeds (input arrays) of the update with the steps at these places. */
  readonly fill: (random: Stream, places: Int32Array) => Effect.Effect<void, EnvError>
  /** The random numbers that the update reads, if it reads any. */
  readonly noise: Float32Array | undefined
  readonly averages: Averages
}

const learningOf = Effect.fnUntraced(function* <
  N extends string,
  T extends N | "actor",
  S extends string,
  C extends Columns,
>(
  experience: ReplayExperience<N, T, C>,
  { noiseSize, learningRates, scheduledInputs }: UpdateOptions<N, T, S, C>,
  rollout: ReplayRollout,
  update: Program,
  gradientSteps: number,
): Effect.fn.Return<ReplayLearning, ConfigError> {
  const { task, config } = experience
  const fill = yield* filling(experience, rollout.replay, update)
  const places = new Int32Array(config.batchSize * gradientSteps)
  // The drawn transitions are in random order already, so the minibatches take the rows in their order.
  if (gradientSteps > 1) for (let row = 0; row < places.length; row++) update.feeds[indicesFeed][row] = row
  return {
    task,
    config,
    rollout,
    update,
    scheduledInputs,
    rates: ratesOf(learningRates, config.schedule ?? "constant"),
    random: stream(task.seed, "update"),
    places,
    fill,
    noise: noiseSize === 0 ? undefined : feedsOf({ noise: f32(noiseSize) }, update.feeds).noise,
    averages: new Averages(),
  }
})

/** Returns the number of updates that are due before an iteration: one every `trainEvery` env steps. */
const updatesBefore = ({ task, config, rollout }: ReplayLearning, iteration: number): number =>
  Math.floor((iteration * rollout.steps * task.numEnvs) / config.trainEvery)

/** Takes the updates that are due after a rollout. Returns whether there were enough steps to learn from. */
const learn = Effect.fnUntraced(function* (learning: ReplayLearning, position: Position) {
  const { task, config, rollout, update, places, averages } = learning
  const { replay, prioritised } = rollout
  const { iteration, step } = position
  if (step + rollout.steps * task.numEnvs <= config.learningStarts || replay.size() < config.batchSize) return false
  const progress = step / task.totalSteps
  for (const [key, rate] of learning.rates) update.feeds[key][0] = steered(position, rate(progress))
  fillScheduled(learning.scheduledInputs, update.feeds, progress)
  const end = updatesBefore(learning, iteration + 1)
  for (let updated = updatesBefore(learning, iteration); updated < end; updated++) {
    const random = learning.random.child(updated)
    if (prioritised === undefined) replay.draw(random, places)
    else prioritised.draw(random, Math.min(1, progress), places)
    yield* learning.fill(random, places)
    if (learning.noise !== undefined) random.fillUniform(learning.noise)
    yield* update.run
    averages.addResults(update, errorsOutput)
    yield* averages.checkFinite(`step ${step}`)
    prioritised?.learned(places, update.results[errorsOutput])
  }
  return true
})

/** The batches of all gradient steps of an update are drawn before it, so all their rows are in memory together. */
const mostRowsOfUpdate = bounds.axis.most

/**
 * Returns the number of gradient steps of an update; the setting −1 means one for each env step. Fails if there are too
 * many.
 */
const gradientStepsOf = (
  name: string,
  { gradientSteps, trainEvery, batchSize }: Pick<ReplayConfig, "gradientSteps" | "trainEvery" | "batchSize">,
): Effect.Effect<number, ConfigError> => {
  const wrong = (key: string, problem: string) =>
    Effect.fail(ConfigError.at({ source: name, prefix: ["algorithm"] }, key, problem))
  const { most } = bounds.rounds
  if (gradientSteps === -1 && trainEvery > most) {
    return wrong("train_every", `expected at most ${most} with algorithm.gradient_steps -1, found ${trainEvery}`)
  }
  const steps = gradientSteps === -1 ? trainEvery : gradientSteps
  const rows = batchSize * steps
  if (rows <= mostRowsOfUpdate) return Effect.succeed(steps)
  return wrong(
    "gradient_steps",
    `expected at most ${mostRowsOfUpdate} rows in the batches of an update, found gradient_steps ${steps} with batch_size ${batchSize}, which are ${rows}; lower one of them`,
  )
}

/** Returns the function that fills the feeds of an update with the drawn transitions or sequences. */
const filling = Effect.fnUntraced(function* <N extends string, T extends N | "actor", C extends Columns>(
  experience: Pick<ReplayExperience<N, T, C>, "name" | "task" | "config" | "actor" | "sequences">,
  replay: Replay,
  { feeds }: Program,
): Effect.fn.Return<(random: Stream, places: Int32Array) => Effect.Effect<void, EnvError>, ConfigError> {
  const { name, task, config, actor, sequences } = experience
  const { her = null, nsteps } = config
  if (sequences === undefined) {
    const { importance: _, noise: __, ...columns } = replayColumns(task, 0)
    const transitions = feedsOf(columns, feeds)
    const relabel = her === null ? undefined : yield* hindsight(her, replay, experience)
    return (random, places) => {
      replay.gather(places, transitions)
      return relabel === undefined ? Effect.void : attempt(() => relabel(random, places, transitions), EnvError)
    }
  }
  if (her !== null) {
    const problem = "expected null for a network with a memory: hindsight changes the goals of single transitions"
    return yield* Effect.fail(ConfigError.at({ source: name }, "algorithm.her", problem))
  }
  const lengths = { ...sequences, nsteps, memorySize: actor.memorySize }
  const { importance: _, noise: __, ...columns } = sequenceColumns(task, lengths, 0)
  const drawn = feedsOf(columns, feeds)
  return (_random, places) => Effect.sync(() => replay.gatherSequences(places, drawn))
})

/** Returns the options of the replay buffer; fails unless it can hold a batch and fits into memory. */
const checkedBufferLayout = <N extends string, T extends N | "actor", C extends Columns>({
  name,
  task: { numEnvs, observationSpace, actionSpace },
  config: { bufferSize, batchSize, gamma, nsteps, her = null },
  actor: { memorySize },
  sequences,
}: ReplayExperience<N, T, C>): Effect.Effect<BufferLayout, ConfigError> => {
  const wrong = (problem: string) => Effect.fail(ConfigError.at({ source: name }, "algorithm.buffer_size", problem))
  const options: BufferLayout = {
    numEnvs,
    observationSize: sizeOf(observationSpace),
    actionSize: sizeOf(actionSpace),
    capacity: bufferSize,
    gamma,
    nsteps,
    images: isImage(observationSpace),
    hindsight: her !== null,
    sequences: sequences === undefined ? undefined : { ...sequences, memorySize },
  }
  if (drawableIn(options) < batchSize) {
    const what = sequences === undefined ? "" : ` sequences of ${sequences.length} steps`
    return wrong(`${bufferSize} transitions can't give a batch of ${batchSize}${what}`)
  }
  const problem = tooLarge(replayBytes(options))
  return problem === undefined ? Effect.succeed(options) : wrong(`${bufferSize} transitions ${problem}`)
}
