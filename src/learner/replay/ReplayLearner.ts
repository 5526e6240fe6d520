import { Effect, Record, type Scope } from "effect"
import { Backend, type Program } from "../../backend/Backend.ts"
import { ConfigError } from "../../config/Config.ts"
import type { BatchEnv } from "../../env/BatchEnv.ts"
import { sizeOf } from "../../env/Space.ts"
import { type Layout, layout } from "../../graph/Parameters.ts"
import { indicesFeed } from "../../graph/Program.ts"
import { isImage } from "../../model/trunk.ts"
import { stream } from "../../rng/Rng.ts"
import type { Learner, NamedTensors, Position, SetupError, Task } from "../Algorithm.ts"
import { Averages } from "../Averages.ts"
import { feedsOf } from "../Batch.ts"
import { build } from "../build.ts"
import { drive, type Steps } from "../drive.ts"
import { floatsOf, learnerPolicy, onnxPolicy, restoreState, statesOf } from "../learnerState.ts"
import { actSpec, policySpec } from "../programs.ts"
import { randomActions } from "../randomActions.ts"
import { type PerNetwork, replayColumns, type ReplayConfig, type ReplayDefinition } from "./definition.ts"
import { errorsOutput, targetOf, updateSpec } from "./updateProgram.ts"
import { makeReplay, type Replay, replayBytes, type ReplayOptions } from "./Replay.ts"
import { prioritisedSampler, type Sampler, uniformSampler } from "./Sampler.ts"
import { tooLarge } from "./storage.ts"

/**
 * Makes a learner that collects transitions in a replay buffer and learns from batches that it draws from there: DQN, SAC
 * and TD3. In each iteration it takes `trainEvery` env steps (`rollout`), then does `gradientSteps` steps (`update`).
 */
export const replayLearner = Effect.fnUntraced(function* <N extends string, T extends N | "actor", S extends string>(
  definition: ReplayDefinition<N, T, S>,
  task: Task,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  const { name, config, actor, networks, targets, scalars, exploration } = definition
  const options = yield* checkedOptions(name, config, task)
  const backend = yield* Backend
  const layouts: PerNetwork<N, Layout> = { actor: layout(actor.parameters), ...Record.map(networks, layout) }
  const nets = Record.keys(layouts)
  const acting = { name, task, actor, layout: layouts.actor, explores: exploration !== undefined }
  const act = yield* backend.compile(yield* build(() => actSpec(acting)))
  const spec = yield* build(() => updateSpec(definition, layouts, task))
  const update = yield* backend.compile(spec)
  /** Everything that the update keeps but the weights: the optimisers' states and the target networks. */
  const optimiser = statesOf(update, spec, nets)

  const copyTargets = Effect.forEach(targets, (net) =>
    Effect.flatMap(update.read(net), (theta) => update.write(targetOf(net), theta)),
  )
  const copyWeightsToActor = Effect.flatMap(update.read("actor"), (theta) => act.write("theta", theta))
  for (const net of nets) yield* update.write(net, layouts[net].initialise(stream(task.seed, "weights", net)))
  yield* copyTargets
  yield* copyWeightsToActor
  for (const [key, value] of Object.entries<number>(scalars)) update.feeds[key][0] = value

  const replay = makeReplay(options)
  const sampler = samplerOf(config, task, replay, update)
  const averages = new Averages()
  const learn = updater(definition, task, update, replay, sampler)
  const playing = { ...acting, exploration: exploration?.(task.totalSteps) }

  return {
    devices: { [act.name]: act.device, [update.name]: update.device },
    rollout: collector(definition, task, act, replay, sampler),
    update: Effect.fnUntraced(function* (position) {
      if (!learn.prepare(position)) return
      yield* update.run
      averages.addResults(update, errorsOutput)
      yield* averages.checkFinite(`step ${position.step}`)
      learn.finish()
      yield* copyWeightsToActor
    }),
    metrics: () => averages.take(),
    ...(definition.copyTargetsEvery === undefined
      ? {}
      : { target: { everySteps: definition.copyTargetsEvery, update: Effect.asVoid(copyTargets) } }),
    policy: (numEnvs, options) =>
      learnerPolicy(backend, () => policySpec(playing, numEnvs, options), update.read("actor")),
    exportPolicy: (see = (seen) => seen) => onnxPolicy(() => policySpec(playing, 1, { see }), update.read("actor")),
    ...(actor.dense === undefined ? {} : { dense: actor.dense }),
    weights: Effect.gen(function* () {
      let named: NamedTensors = {}
      for (const net of nets) named = { ...named, ...layouts[net].toNamed(yield* update.read(net)) }
      return named
    }),
    state: Effect.map(optimiser.read, (optimizer) => ({
      optimizer,
      replay: { ...replay.state(), ...sampler.state() },
    })),
    restore: (weights, saved) =>
      restoreState(function* (files) {
        for (const net of nets) yield* update.write(net, yield* files.weights(layouts[net], weights))
        yield* optimiser.restore(files, "optimizer")
        yield* files.use("replay", (arrays) => {
          replay.restore(arrays)
          sampler.restore(arrays)
        })
        yield* copyWeightsToActor
      }, saved),
  }
})

/** The replay buffer's options, if the config asks for a buffer that can be had. */
const checkedOptions = (
  name: string,
  config: ReplayConfig,
  { numEnvs, observationSpace, actionSpace }: Task,
): Effect.Effect<ReplayOptions, ConfigError> => {
  const { bufferSize, batchSize, gamma, nsteps } = config
  const wrong = (problem: string) => ConfigError.at({ source: name }, "algorithm.buffer_size", problem)
  if (bufferSize < batchSize) {
    return Effect.fail(wrong(`${bufferSize} transitions can't give a batch of ${batchSize}`))
  }
  const options: ReplayOptions = {
    numEnvs,
    observationSize: sizeOf(observationSpace),
    actionSize: sizeOf(actionSpace),
    capacity: bufferSize,
    gamma,
    nsteps,
    images: isImage(observationSpace),
  }
  const problem = tooLarge(replayBytes(options))
  return problem === undefined ? Effect.succeed(options) : Effect.fail(wrong(`${bufferSize} transitions ${problem}`))
}

const samplerOf = (
  { prioritised, nsteps, batchSize }: ReplayConfig,
  { numEnvs }: Task,
  replay: Replay,
  { feeds }: Program,
): Sampler =>
  prioritised == null
    ? uniformSampler(replay)
    : prioritisedSampler(replay, {
        ...prioritised,
        numEnvs,
        nsteps,
        batchSize,
        importance: floatsOf(feeds, "importance"),
      })

/** The number of steps that each env takes between two updates. */
const stepsBetweenUpdates = ({ trainEvery }: ReplayConfig, { numEnvs }: Task): number => Math.ceil(trainEvery / numEnvs)

/** Acts in the envs, at random before `learningStarts`, and adds every step to the replay buffer. */
const collector = <N extends string, T extends N | "actor", S extends string>(
  { config, actor: { noiseSize }, exploration }: ReplayDefinition<N, T, S>,
  task: Task,
  act: Program,
  replay: Replay,
  sampler: Sampler,
): Learner["rollout"] => {
  const { numEnvs, seed, actionSpace } = task
  const { learningStarts, noiseRepeat = 1 } = config
  const { envActions } = act.results
  if (envActions instanceof Uint8Array) throw new TypeError("actions are numbers")
  const steps = stepsBetweenUpdates(config, task)
  const random = stream(seed, "act")
  const uniform = new Float32Array(noiseSize * numEnvs)
  /** The index of the noise in `uniform`, which is drawn again every `noiseRepeat` steps. */
  let drawn = -1

  const collect = function* (envs: BatchEnv, { iteration, step }: Position): Steps<number> {
    if (iteration === 0) replay.begin(envs)
    for (let t = 0; t < steps; t++) {
      const now = step + t * numEnvs
      const draw = Math.floor((iteration * steps + t) / noiseRepeat)
      if (now < learningStarts) {
        randomActions(actionSpace, random.child("random", draw), envActions)
      } else {
        act.feeds.observations.set(envs.observations)
        if (draw !== drawn) random.child(draw).fillUniform(uniform)
        drawn = draw
        act.feeds.noise.set(uniform)
        if (exploration !== undefined) act.feeds.exploration[0] = exploration(now)
        yield act
      }
      envs.step(envActions)
      replay.add(envActions, envs)
      sampler.added()
    }
    return steps * numEnvs
  }
  return (envs, position) => drive(() => collect(envs, position))
}

/** Fills the feeds of the update's program, and learns from its results what the sampler needs. */
const updater = <N extends string, T extends N | "actor", S extends string>(
  { config, noiseSize }: ReplayDefinition<N, T, S>,
  task: Task,
  { feeds, results }: Program,
  replay: Replay,
  sampler: Sampler,
) => {
  const { batchSize, gradientSteps, learningStarts } = config
  const { numEnvs, seed, totalSteps } = task
  const { importance: _, noise: noiseColumn, ...columns } = replayColumns(task, noiseSize)
  const transitions = feedsOf(columns, feeds)
  const noise = noiseSize === 0 ? undefined : feedsOf({ noise: noiseColumn }, feeds).noise
  const places = new Int32Array(batchSize * gradientSteps)
  if (gradientSteps > 1) for (let row = 0; row < places.length; row++) feeds[indicesFeed][row] = row
  const random = stream(seed, "update")
  const stepsPerIteration = stepsBetweenUpdates(config, task) * numEnvs
  return {
    /** Draws the transitions and the noise of an update; false if it is too early for one. */
    prepare: ({ iteration, step }: Position): boolean => {
      if (step + stepsPerIteration <= learningStarts || replay.size() < batchSize) return false
      const draws = random.child(iteration)
      sampler.draw(draws, Math.min(1, step / totalSteps), places)
      replay.gather(places, transitions)
      if (noise !== undefined) draws.fillUniform(noise)
      return true
    },
    finish: () => sampler.learned(places, results[errorsOutput]),
  }
}
