/**
 * Makes learners of off-policy algorithms from an experience (how they act and store steps) and an update's graph. They
 * touch no files: `state` returns the arrays of a checkpoint, and `restore` takes them.
 */
import { Effect, Record, type Scope, Struct } from "effect"
import { Backend } from "../../backend/Backend.ts"
import { ConfigError } from "../../config/Config.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { sizeOf } from "../../env/Space.ts"
import { type Layout, layout } from "../../graph/Parameters.ts"
import { indicesFeed, type ProgramSpec } from "../../graph/Program.ts"
import type { Tensor } from "../../graph/Tensor.ts"
import { isImage } from "../../model/observations.ts"
import { stream } from "../../rng/Rng.ts"
import { actSpec, policies } from "../acting.ts"
import { type Learner, type NamedTensors, type Position, type SetupError, steered } from "../Algorithm.ts"
import { Averages } from "../Averages.ts"
import { type Batch, feedsOf } from "../Batch.ts"
import { batchSpec } from "../batchProgram.ts"
import { build, netOf } from "../graphs.ts"
import { drive, type Steps, waitFor } from "../drive.ts"
import { floatsOf, numbersOf, savedState, statesOf, weightsIn } from "../learnerState.ts"
import { randomActions } from "../exploration.ts"
import { courseOf } from "../parts.ts"
import { hindsight } from "./Hindsight.ts"
import { prioritisedDraws } from "./Priorities.ts"
import { makeReplay, replayBytes, type ReplayOptions } from "./Replay.ts"
import { type ReplayColumns, replayColumns, type ReplayExperience } from "./ReplayExperience.ts"
import type { NamedNet, NextStates } from "./steps.ts"
import { tooLarge } from "./storage.ts"

/** The inputs of an update's graph: a batch of transitions, and the networks before the update. */
export interface Learning<Name extends string, Target extends Name | "actor", Rate extends string> {
  readonly batch: Batch<ReplayColumns>
  readonly networks: PerNetwork<Name, NamedNet>
  readonly targets: Pick<PerNetwork<Name, NamedNet>, Target>
  readonly learningRates: Readonly<Record<Rate, Tensor>>
}

/** A value for the actor and for each other network. */
type PerNetwork<Name extends string, A> = Readonly<Record<Name | "actor", A>>

/** The outputs of an update's graph. */
export interface Update {
  /** The next weights of networks and target networks, and the next states of optimisers. */
  readonly states: NextStates
  readonly metrics: Readonly<Record<string, Tensor>>
  /** The error of each transition; only an experience made by `withPriorities` needs it. */
  readonly errors?: Tensor
}

/** Describes how a replay learner learns from a batch. */
interface UpdateOptions<Name extends string, Target extends Name | "actor", Rate extends string> {
  /** The learning rates, by the names that the update reads them by. */
  readonly learningRates: Readonly<Record<Rate, number>>
  /** The number of uniform random numbers that an update needs for each transition. */
  readonly noiseSize: number
  readonly update: (at: Learning<Name, Target, Rate>) => Update
}

/**
 * Makes a learner that stores env steps in a replay buffer and learns from batches that it draws from there: DQN, SAC and
 * TD3. In each iteration it acts for `trainEvery` env steps, then updates its networks with `gradientSteps` batches.
 */
export const replayLearner = Effect.fnUntraced(function* <N extends string, T extends N | "actor", S extends string>(
  experience: ReplayExperience<N, T>,
  options: UpdateOptions<N, T, S>,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  const { name, task, config, actor, exploration, networks, targets, copyTargetsEvery, priorities } = experience
  const { numEnvs, seed, totalSteps } = task
  const { batchSize, gradientSteps, learningStarts, noiseRepeat = 1 } = config
  const replayOptions = yield* checkedReplayOptions(experience)

  // The programs: one acts, and one updates the networks.
  const backend = yield* Backend
  const layouts: PerNetwork<N, Layout> = { actor: layout(actor.parameters), ...Record.map(networks, layout) }
  const names = Record.keys(layouts)
  const acting = { name, task, actor, layout: layouts.actor, exploration }
  const act = yield* backend.compile(yield* build(() => actSpec(acting)))
  const spec = yield* build(() => updateSpec(experience, options, layouts))
  const update = yield* backend.compile(spec)
  /** Reads and restores the states of the update program other than the weights: optimisers and target networks. */
  const optimiser = statesOf(update, spec, names)

  // Draw the first weights, and copy them to the target networks and to the acting program.
  const copyTargets = Effect.forEach(
    targets,
    (key) => Effect.flatMap(update.read(key), (theta) => update.write(targetOf(key), theta)),
    { discard: true },
  )
  const copyToActing = Effect.flatMap(update.read("actor"), (theta) => act.write("theta", theta))
  for (const key of names) yield* update.write(key, layouts[key].initialise(stream(seed, "weights", key)))
  yield* copyTargets
  yield* copyToActing

  // The rollout: acts in the envs, at random before `learningStarts`, and stores every step in the replay buffer.
  const replay = makeReplay(replayOptions)
  const prioritised =
    priorities === null
      ? undefined
      : prioritisedDraws(priorities, replay, experience, floatsOf(update.feeds, "importance"))
  const { her = null } = config
  const relabel = her === null ? undefined : yield* hindsight(her, replay, experience)
  const envActions = numbersOf(act.results, "envActions")
  /** The number of steps that each env takes between two updates. */
  const steps = Math.ceil(config.trainEvery / numEnvs)
  const actNoise = new Float32Array(actor.noiseSize * numEnvs)
  const actRandom = stream(seed, "act")
  /** The number of the last draw of noise; `noiseRepeat` consecutive steps use the same draw. */
  let drawn = -1
  /** Takes the steps of one rollout. It yields the acting program each time that it has to run; `drive` runs it. */
  const collect = function* (envs: AnyBatchEnv, { iteration, step }: Position): Steps<number> {
    if (iteration === 0) replay.begin(envs)
    for (let t = 0; t < steps; t++) {
      const now = step + t * numEnvs
      const draw = Math.floor((iteration * steps + t) / noiseRepeat)
      if (now < learningStarts) {
        randomActions(task, envs.observations, actRandom.child("random", draw), envActions)
      } else {
        act.feeds.observations.set(envs.observations)
        if (draw !== drawn) actRandom.child(draw).fillUniform(actNoise)
        drawn = draw
        act.feeds.noise.set(actNoise)
        if (exploration !== undefined) act.feeds.exploration[0] = exploration(now / totalSteps)
        yield act
      }
      const wait = envs.step(envActions)
      if (wait !== undefined) yield waitFor(wait)
      replay.add(envActions, envs)
      prioritised?.added()
    }
    return steps * numEnvs
  }

  // The update: draws transitions and noise into the feeds (input arrays) of its program.
  const { importance: _, noise: noiseColumn, ...columns } = replayColumns(task, options.noiseSize)
  const transitions = feedsOf(columns, update.feeds)
  const noise = options.noiseSize === 0 ? undefined : feedsOf({ noise: noiseColumn }, update.feeds).noise
  const places = new Int32Array(batchSize * gradientSteps)
  // The drawn transitions are in random order already, so the minibatches take them one after another.
  if (gradientSteps > 1) for (let row = 0; row < places.length; row++) update.feeds[indicesFeed][row] = row
  const updateRandom = stream(seed, "update")
  const averages = new Averages()
  const rates = Object.entries<number>(options.learningRates)
  const course = courseOf(config.schedule ?? "constant")
  const learn = Effect.fnUntraced(function* (position: Position) {
    const { iteration, step } = position
    if (step + steps * numEnvs <= learningStarts || replay.size() < batchSize) return
    for (const [key, rate] of rates) update.feeds[key][0] = steered(position, rate * course(step / totalSteps))
    const random = updateRandom.child(iteration)
    if (prioritised === undefined) replay.draw(random, places)
    else prioritised.draw(random, Math.min(1, step / totalSteps), places)
    replay.gather(places, transitions)
    relabel?.(random, places, transitions)
    if (noise !== undefined) random.fillUniform(noise)
    yield* update.run
    averages.addResults(update, errorsOutput)
    yield* averages.checkFinite(`step ${step}`)
    prioritised?.learned(places, update.results[errorsOutput])
    yield* copyToActing
  })

  return {
    devices: { [act.name]: act.device, [update.name]: update.device },
    rollout: (envs, position) => drive(() => collect(envs, position)),
    update: learn,
    metrics: () => averages.take(),
    ...(copyTargetsEvery === undefined ? {} : { target: { everySteps: copyTargetsEvery, update: copyTargets } }),
    ...policies(backend, acting, update.read("actor")),
    weights: Effect.gen(function* () {
      let named: NamedTensors = {}
      for (const key of names) named = { ...named, ...layouts[key].toNamed(yield* update.read(key)) }
      return named
    }),
    state: Effect.map(optimiser.read, (optimizer) => ({
      optimizer,
      replay: { ...replay.state(), ...prioritised?.state() },
    })),
    start: Effect.fnUntraced(function* (weights) {
      for (const key of names) yield* update.write(key, yield* weightsIn(layouts[key], weights))
      yield* copyTargets
      yield* copyToActing
    }),
    restore: Effect.fnUntraced(function* (weights, saved) {
      const checkpoint = savedState(saved)
      for (const key of names) yield* update.write(key, yield* checkpoint.weights(layouts[key], weights))
      yield* optimiser.restore(checkpoint, "optimizer")
      yield* checkpoint.use("replay", (arrays) => {
        replay.restore(arrays)
        prioritised?.restore(arrays)
      })
      yield* copyToActing
    }),
  }
})

/** Returns the options of the replay buffer; fails unless it can hold a batch and fits into memory. */
const checkedReplayOptions = <N extends string, T extends N | "actor">({
  name,
  task: { numEnvs, observationSpace, actionSpace },
  config: { bufferSize, batchSize, gamma, nsteps, her = null },
}: ReplayExperience<N, T>): Effect.Effect<ReplayOptions, ConfigError> => {
  const wrong = (problem: string) => Effect.fail(ConfigError.at({ source: name }, "algorithm.buffer_size", problem))
  if (bufferSize < batchSize) return wrong(`${bufferSize} transitions can't give a batch of ${batchSize}`)
  const options: ReplayOptions = {
    numEnvs,
    observationSize: sizeOf(observationSpace),
    actionSize: sizeOf(actionSpace),
    capacity: bufferSize,
    gamma,
    nsteps,
    images: isImage(observationSpace),
    hindsight: her !== null,
  }
  const problem = tooLarge(replayBytes(options))
  return problem === undefined ? Effect.succeed(options) : wrong(`${bufferSize} transitions ${problem}`)
}

/** Returns the name of the state that holds the weights of a network's target network. */
const targetOf = (name: string): string => `target.${name}`

/** The name of an update's output that holds the error of each transition. */
const errorsOutput = "errors"

/** Describes the update's program. Its graph, from a batch to the next weights, runs once for each gradient step. */
const updateSpec = <N extends string, T extends N | "actor", S extends string>(
  { name, task, config: { batchSize, gradientSteps }, targets, priorities }: ReplayExperience<N, T>,
  { learningRates, noiseSize, update }: UpdateOptions<N, T, S>,
  layouts: PerNetwork<N, Layout>,
): ProgramSpec => {
  const namedNet = (layout: Layout, key: string): NamedNet => ({ name: key, ...netOf(layout, key) })
  return batchSpec({
    name: `${name}.update`,
    columns: replayColumns(task, noiseSize),
    sequences: batchSize,
    minibatches: gradientSteps === 1 ? undefined : { rows: batchSize * gradientSteps, count: gradientSteps },
    build: ({ batch, scalar }) => {
      const copies = Record.map(layouts, (layout, key) => namedNet(layout, targetOf(key)))
      const { states, metrics, errors } = update({
        batch,
        networks: Record.map(layouts, namedNet),
        targets: Struct.pick(copies, targets),
        learningRates: Record.map(learningRates, (_, key) => scalar(key)),
      })
      return {
        states: {
          ...Object.fromEntries(targets.map((key) => [targetOf(key), { tensor: copies[key].theta }])),
          ...states,
        },
        outputs: { ...metrics, ...(priorities === null || errors === undefined ? {} : { [errorsOutput]: errors }) },
      }
    },
  })
}
