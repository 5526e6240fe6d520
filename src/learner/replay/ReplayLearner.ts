import { Effect, type Scope } from "effect"
import { Backend } from "../../backend/Backend.ts"
import { ConfigError } from "../../config/Config.ts"
import { sizeOf } from "../../env/Space.ts"
import { layout } from "../../graph/Parameters.ts"
import { indicesFeed } from "../../graph/Program.ts"
import { stream } from "../../rng/Rng.ts"
import {
  type Learner,
  type LearnerError,
  type NamedTensors,
  type Position,
  type SetupError,
  type Task,
} from "../Algorithm.ts"
import { Averages } from "../Averages.ts"
import { build } from "../build.ts"
import { drive } from "../drive.ts"
import { floatsOf, learnerPolicy, onnxPolicy, restoreState, statesOf } from "../learnerState.ts"
import { isImage } from "../../model/trunk.ts"
import { randomActions } from "../randomActions.ts"
import { type ReplayDefinition, targetOf } from "./definition.ts"
import { makePriorities } from "./Priorities.ts"
import { actSpec, errorsOutput, policySpec, updateSpec } from "./programs.ts"
import { tooLarge } from "./limit.ts"
import { makeReplay, replayBytes } from "./Replay.ts"

/** Sets such a learner up for a task. */
export const replayLearner = Effect.fnUntraced(function* (
  definition: ReplayDefinition,
  task: Task,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  const { name, config, noise, exploration, targetEvery, scalars, targets } = definition
  const { numEnvs, seed, observationSpace, actionSpace } = task
  const { batchSize, gradientSteps, learningStarts } = config
  if (config.bufferSize < batchSize) {
    const message = `algorithm.buffer_size: ${config.bufferSize} transitions can't give a batch of ${batchSize}`
    return yield* new ConfigError({ source: name, key: "algorithm.buffer_size", message })
  }
  const replayOptions = {
    numEnvs,
    observationSize: sizeOf(observationSpace),
    actionSize: sizeOf(actionSpace),
    capacity: config.bufferSize,
    gamma: config.gamma,
    nsteps: config.nsteps,
    images: isImage(observationSpace),
  }
  const problem = tooLarge(replayBytes(replayOptions))
  if (problem !== undefined) {
    const message = `algorithm.buffer_size: ${config.bufferSize} transitions ${problem}`
    return yield* new ConfigError({ source: name, key: "algorithm.buffer_size", message })
  }
  const backend = yield* Backend
  const layouts = { actor: layout(definition.actor), critic: layout(definition.critic ?? {}) }
  const nets = (["actor", "critic"] as const).filter((net) => definition[net] !== undefined)
  const act = yield* backend.compile(yield* build(() => actSpec(definition, layouts, task)))
  const spec = yield* build(() => updateSpec(definition, layouts, task))
  const update = yield* backend.compile(spec)
  const optimiser = statesOf(update, spec, ["actor", "critic"])

  const copyTargets = Effect.forEach(targets, (net) =>
    Effect.flatMap(update.read(net), (theta) => update.write(targetOf(net), theta)),
  )
  for (const net of nets) yield* update.write(net, layouts[net].initialise(stream(seed, "weights", net)))
  yield* copyTargets
  for (const [key, values] of Object.entries(definition.initial ?? {})) yield* update.write(key, values)
  const followWeights = Effect.flatMap(update.read("actor"), (theta) => act.write("actor", theta))
  yield* followWeights

  const steps = Math.ceil(config.trainEvery / numEnvs)
  const stepsPerIteration = steps * numEnvs
  const replay = makeReplay(replayOptions)
  const priorities = config.prioritised ? makePriorities(replay.capacity) : undefined
  const { alpha = 0, beta = 0, epsilon = 0 } = config.prioritised ?? {}

  const rows = batchSize * gradientSteps
  const places = new Int32Array(rows)
  const drawn = new Int32Array(batchSize)
  const { observations, rewards, nextObservations, discounts } = {
    observations: floatsOf(update.feeds, "observations"),
    rewards: floatsOf(update.feeds, "rewards"),
    nextObservations: floatsOf(update.feeds, "nextObservations"),
    discounts: floatsOf(update.feeds, "discounts"),
  }
  const { actions } = update.feeds
  const { actions: acted } = act.results
  if (actions instanceof Uint8Array || acted instanceof Uint8Array) throw new TypeError("actions are numbers")
  const transitions = { observations, actions, rewards, nextObservations, discounts }
  const importance = priorities === undefined ? undefined : floatsOf(update.feeds, "importance")
  const updateNoise = noise.learn === 0 ? undefined : floatsOf(update.feeds, "updateNoise")
  if (gradientSteps > 1) for (let row = 0; row < rows; row++) update.feeds[indicesFeed][row] = row
  const acting = stream(seed, "act")
  const learning = stream(seed, "update")
  const actNoise = new Float32Array(noise.act * numEnvs)
  const hold = config.noiseRepeat ?? 1
  /** Which draw is in `actNoise`. */
  let lastDraw = -1
  const averages = new Averages()

  /** The newest moment can be drawn only once all steps of its transition are in; the one being filled never. */
  const admit = (): void => {
    if (priorities === undefined) return
    const known = replay.size() > 0
    for (let env = 0; env < numEnvs; env++) {
      priorities.clear(replay.placeOf(env, 0))
      if (known) priorities.setNew(replay.placeOf(env, config.nsteps))
    }
  }

  const draw = (step: number, iteration: number): void => {
    const random = learning.child(iteration)
    if (priorities === undefined || importance === undefined) {
      replay.draw(random, places)
    } else {
      const correction = beta + (1 - beta) * Math.min(1, step / task.totalSteps)
      const count = replay.size()
      for (let batch = 0; batch < gradientSteps; batch++) {
        priorities.draw(random, drawn)
        places.set(drawn, batch * batchSize)
        let greatest = 0
        for (let row = 0; row < batchSize; row++) {
          const weight = ((count * priorities.get(drawn[row])) / priorities.total()) ** -correction
          importance[batch * batchSize + row] = weight
          if (weight > greatest) greatest = weight
        }
        for (let row = 0; row < batchSize; row++) importance[batch * batchSize + row] /= greatest
      }
    }
    replay.gather(places, transitions)
    if (updateNoise !== undefined) random.fillUniform(updateNoise)
  }

  const learn = Effect.fnUntraced(function* ({ iteration, step }: Position): Effect.fn.Return<void, LearnerError> {
    if (step + stepsPerIteration <= learningStarts || replay.size() < batchSize) return
    draw(step, iteration)
    const fed = scalars(step)
    for (const key of Object.keys(fed)) update.feeds[key][0] = fed[key]
    yield* update.run
    averages.addResults(update, errorsOutput)
    yield* averages.checkFinite(`step ${step}`)
    if (priorities !== undefined) {
      const errors = update.results[errorsOutput]
      for (let row = 0; row < rows; row++) priorities.set(places[row], (Math.abs(errors[row]) + epsilon) ** alpha)
    }
    yield* followWeights
  })

  return {
    devices: { [act.name]: act.device, [update.name]: update.device },
    rollout: (envs, { iteration, step }) =>
      drive(function* () {
        if (iteration === 0) replay.see(envs)
        for (let t = 0; t < steps; t++) {
          const now = step + t * numEnvs
          const draw = Math.floor((iteration * steps + t) / hold)
          if (now < learningStarts) {
            randomActions(actionSpace, acting.child("random", draw), acted)
          } else {
            act.feeds.observations.set(envs.observations)
            if (draw !== lastDraw) acting.child(draw).fillUniform(actNoise)
            lastDraw = draw
            if (noise.act > 0) act.feeds.noise.set(actNoise)
            if (exploration !== undefined) act.feeds.exploration[0] = exploration(now)
            yield act
          }
          envs.step(acted)
          replay.add(acted, envs)
          admit()
        }
        return stepsPerIteration
      }),
    update: learn,
    metrics: () => averages.take(),
    ...(targetEvery === undefined ? {} : { target: { everySteps: targetEvery, update: Effect.asVoid(copyTargets) } }),
    policy: (count, options) =>
      learnerPolicy(backend, () => policySpec(definition, layouts, task, count, options), update.read("actor")),
    exportPolicy: (see = (seen) => seen) =>
      onnxPolicy(() => policySpec(definition, layouts, task, 1, { see }), update.read("actor")),
    ...(definition.dense === undefined ? {} : { dense: definition.dense }),
    weights: Effect.gen(function* () {
      let named: NamedTensors = {}
      for (const net of nets) named = { ...named, ...layouts[net].toNamed(yield* update.read(net)) }
      return named
    }),
    state: Effect.map(optimiser.read, (optimizer) => ({
      optimizer,
      replay: { ...replay.state(), ...priorities?.state(replay.filled()) },
    })),
    restore: (weights, saved) =>
      restoreState(function* (files) {
        for (const net of nets) yield* update.write(net, yield* files.weights(layouts[net], weights))
        yield* optimiser.restore(files, "optimizer")
        yield* files.use("replay", replay.restore)
        if (priorities !== undefined) {
          yield* files.use("replay", (arrays) => priorities.restore(arrays, replay.filled()))
        }
        yield* followWeights
      }, saved),
  }
})
