/**
 * Makes learners of off-policy algorithms from an experience (how they act and store steps) and an update's graph. They
 * touch no files: `state` returns the arrays of a checkpoint, and `restore` takes them.
 */
import { Effect, type Scope } from "effect"
import { Backend, type Program } from "../../../tensor/backend/Backend.ts"
import { attempt } from "../../../base/config/attempt.ts"
import { bounds } from "../../../base/config/bounds.ts"
import { ConfigError } from "../../../base/config/Config.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { EnvError } from "../../../base/EnvError.ts"
import { sizeOf } from "../../env/Space.ts"
import { indicesFeed } from "../../../tensor/graph/Program.ts"
import type { Actor } from "../../model/Actor.ts"
import { isImage } from "../../model/observations.ts"
import { type Stream, stream } from "../../../base/rng/Rng.ts"
import { actSpec, policies } from "../acting.ts"
import { type Learner, type Position, type SetupError, steered } from "../Algorithm.ts"
import { Averages } from "../Averages.ts"
import { type Columns, f32, feedsOf } from "../Batch.ts"
import { build } from "../graphs.ts"
import { drive, type Steps, waitFor } from "../drive.ts"
import { floatsOf, numbersOf, savedState, vectorsOf } from "../learnerState.ts"
import { addNoise, randomActions } from "../exploration.ts"
import { ratesOf } from "../parts.ts"
import { fillScheduled } from "../scheduled.ts"
import { drawOf } from "../stateDependent.ts"
import { hindsight } from "./Hindsight.ts"
import { prioritisedDraws } from "./Priorities.ts"
import { makeReplay, type Replay } from "./Replay.ts"
import { replayColumns, type ReplayExperience, sequenceColumns } from "./ReplayExperience.ts"
import { drawableIn, replayBytes, type ReplayOptions } from "./ReplayOptions.ts"
import type { ReplayConfig } from "./fields.ts"
import { ornsteinUhlenbeck } from "./ornsteinUhlenbeck.ts"
import { compileUpdate, errorsOutput, type UpdateOptions } from "./networks.ts"
import { tooLarge } from "./storage.ts"

/**
 * Makes a learner that stores env steps in a replay buffer and learns from batches that it draws from there: DQN, SAC and
 * TD3. In each iteration it acts for `trainEvery` env steps, then updates its networks with `gradientSteps` batches. Where a
 * step of all envs is more than that, as many updates follow it, so that their number depends on the env steps alone.
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
  const { freshNoise = false, actsAtWarmup = false, warmUpNoise } = experience
  const { numEnvs, seed, totalSteps } = task
  const { batchSize, learningStarts, trainEvery, noiseRepeat = 1 } = config
  const gradientSteps = yield* gradientStepsOf(name, config)
  if (batchSize * gradientSteps > mostRowsOfUpdate) {
    const problem = `expected at most ${mostRowsOfUpdate} rows in the batches of an update, found gradient_steps ${gradientSteps} with batch_size ${batchSize}, which are ${batchSize * gradientSteps}; lower one of them`
    return yield* ConfigError.at({ source: name, prefix: ["algorithm"] }, "gradient_steps", problem)
  }
  const replayOptions = yield* checkedReplayOptions(experience)

  // The programs: one acts, and one updates the networks.
  const backend = yield* Backend
  const compiled = yield* compileUpdate({ ...experience, config: { batchSize, gradientSteps } }, options)
  const { update, layouts, copyTargets } = compiled
  const acting = { name, task, actor, layout: layouts.actor, exploration }
  const act = yield* backend.compile(yield* build(() => actSpec(acting)))
  const actorWeights = new Float32Array(layouts.actor.size)
  const copyToActing = Effect.flatMap(update.read("actor", actorWeights), (theta) => act.write("theta", theta))
  yield* copyToActing

  // The rollout: acts in the envs, at random before `learningStarts`, and stores every step in the replay buffer.
  const replay = makeReplay(replayOptions)
  const prioritised =
    priorities === null
      ? undefined
      : prioritisedDraws(priorities, replay, experience, floatsOf(update.feeds, "importance"))
  const envActions = numbersOf(act.results, "envActions")
  /** The number of steps that each env takes in an iteration. */
  const steps = Math.ceil(trainEvery / numEnvs)
  const actNoise = new Float32Array(actor.noiseSize * numEnvs)
  const readNoise = readParts(actNoise, actor)
  const actRandom = stream(seed, "act")
  /** The number of the last draw of noise; `noiseRepeat` consecutive steps use the same draw. */
  let drawn = -1
  const { processSize = 0 } = actor
  const process = processSize === 0 ? undefined : ornsteinUhlenbeck(numEnvs, processSize)
  const noiseState = vectorsOf(process === undefined ? {} : { noise: process.values })
  const remembers = actor.memorySize > 0
  /** Keeps the memories after a step; those of envs whose episode ended with it become empty. */
  const remember = ({ terminated, truncated }: AnyBatchEnv): void => {
    const { memorySize } = actor
    replay.memories.set(act.results.nextMemory)
    for (let env = 0; env < numEnvs; env++) {
      if ((terminated[env] | truncated[env]) !== 0) replay.memories.fill(0, env * memorySize, (env + 1) * memorySize)
    }
  }
  /** Takes the steps of one rollout. It yields the acting program each time that it has to run; `drive` runs it. */
  const collect = function* (envs: AnyBatchEnv, { iteration, step }: Position): Steps<number> {
    if (iteration === 0) replay.begin(envs)
    for (let t = 0; t < steps; t++) {
      const now = step + t * numEnvs
      const draw = drawOf({ noiseRepeat, freshNoise }, steps, { iteration, t })
      // The process moves once in a draw, also if the run resumes within it.
      const beginsDraw = (iteration * steps + t) % noiseRepeat === 0
      if (now < learningStarts && !remembers && !actsAtWarmup) {
        // Random actions never share what state-dependent noise does.
        const random = actRandom.child("random", freshNoise ? iteration * steps + t : draw)
        randomActions(task, envs.observations, random, envActions)
        if (warmUpNoise !== undefined && task.actionSpace._tag === "Box") {
          const deviation = warmUpNoise(now / totalSteps)
          const noise = random.child("noise")
          if (beginsDraw) process?.step(noise)
          const noiseAt = (place: number): number => deviation * (process?.values[place] ?? noise.normal())
          addNoise(task.actionSpace, noiseAt, envActions)
        }
      } else {
        act.feeds.observations.set(envs.observations)
        if (draw !== drawn) {
          const random = actRandom.child(draw)
          for (const part of readNoise) random.fillUniform(part)
        }
        drawn = draw
        if (beginsDraw) process?.step(actRandom.child(draw))
        if (actor.noiseSize > 0) act.feeds.noise.set(actNoise)
        if (process !== undefined) act.feeds.process.set(process.values)
        // An actor with a memory acts from the start, so that its memory is that of its steps; its first actions are random.
        if (exploration !== undefined)
          act.feeds.exploration[0] = now < learningStarts ? 1 : exploration(now / totalSteps)
        if (remembers) act.feeds.memory.set(replay.memories)
        yield act
      }
      const wait = envs.step(envActions)
      if (wait !== undefined) yield waitFor(wait)
      if (remembers) remember(envs)
      process?.afterStep(envs)
      replay.add(envActions, envs)
      prioritised?.added()
    }
    return steps * numEnvs
  }

  // The update: draws transitions or sequences, and noise, into the feeds (input arrays) of its program.
  const fill = yield* filling(experience, replay, update)
  const noise = options.noiseSize === 0 ? undefined : feedsOf({ noise: f32(options.noiseSize) }, update.feeds).noise
  const places = new Int32Array(batchSize * gradientSteps)
  // The drawn transitions are in random order already, so the minibatches take them one after another.
  if (gradientSteps > 1) for (let row = 0; row < places.length; row++) update.feeds[indicesFeed][row] = row
  const updateRandom = stream(seed, "update")
  const averages = new Averages()
  const rates = ratesOf(options.learningRates, config.schedule ?? "constant")
  /** Returns the number of updates that are due before an iteration: one every `trainEvery` env steps. */
  const updatesBefore = (iteration: number): number => Math.floor((iteration * steps * numEnvs) / trainEvery)
  const learn = Effect.fnUntraced(function* (position: Position) {
    const { iteration, step } = position
    if (step + steps * numEnvs <= learningStarts || replay.size() < batchSize) return
    for (const [key, rate] of rates) update.feeds[key][0] = steered(position, rate(step / totalSteps))
    fillScheduled(options.scheduledInputs, update.feeds, step / totalSteps)
    for (let updated = updatesBefore(iteration); updated < updatesBefore(iteration + 1); updated++) {
      const random = updateRandom.child(updated)
      if (prioritised === undefined) replay.draw(random, places)
      else prioritised.draw(random, Math.min(1, step / totalSteps), places)
      yield* fill(random, places)
      if (noise !== undefined) random.fillUniform(noise)
      yield* update.run
      averages.addResults(update, errorsOutput)
      yield* averages.checkFinite(`step ${step}`)
      prioritised?.learned(places, update.results[errorsOutput])
    }
    yield* copyToActing
  })

  return {
    devices: { [act.name]: act.device, [update.name]: update.device },
    rollout: (envs, position) => drive(() => collect(envs, position)),
    rolloutSteps: steps,
    update: learn,
    metrics: () => averages.take(),
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

/** All batches of an update are drawn before it, so their rows are in memory at the same time. */
const mostRowsOfUpdate = bounds.axis.most

/** Returns the number of gradient steps of an update; −1 is as many as the env steps before it, within the bounds of the number. */
const gradientStepsOf = (
  name: string,
  { gradientSteps, trainEvery }: Pick<ReplayConfig, "gradientSteps" | "trainEvery">,
): Effect.Effect<number, ConfigError> => {
  if (gradientSteps !== -1) return Effect.succeed(gradientSteps)
  const { most } = bounds.rounds
  if (trainEvery <= most) return Effect.succeed(trainEvery)
  const problem = `expected at most ${most} with algorithm.gradient_steps -1, found ${trainEvery}`
  return Effect.fail(ConfigError.at({ source: name, prefix: ["algorithm"] }, "train_every", problem))
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

/** Returns the parts of the noise that an actor reads: all of it, or all rows without what they share after the first one. */
const readParts = (noise: Float32Array, actor: Actor): ReadonlyArray<Float32Array> => {
  const { noiseSize, sharedNoiseSize = 0 } = actor
  if (sharedNoiseSize === 0) return [noise]
  const own = noiseSize - sharedNoiseSize
  return Array.from({ length: noise.length / noiseSize }, (_, row) =>
    noise.subarray(row * noiseSize, row * noiseSize + (row === 0 ? noiseSize : own)),
  )
}

/** Returns the options of the replay buffer; fails unless it can hold a batch and fits into memory. */
const checkedReplayOptions = <N extends string, T extends N | "actor", C extends Columns>({
  name,
  task: { numEnvs, observationSpace, actionSpace },
  config: { bufferSize, batchSize, gamma, nsteps, her = null },
  actor: { memorySize },
  sequences,
}: ReplayExperience<N, T, C>): Effect.Effect<ReplayOptions, ConfigError> => {
  const wrong = (problem: string) => Effect.fail(ConfigError.at({ source: name }, "algorithm.buffer_size", problem))
  const options: ReplayOptions = {
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
