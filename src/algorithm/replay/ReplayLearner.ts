import { Effect, Schema, type Scope } from "effect"
import { Backend } from "../../backend/Backend.ts"
import { ConfigError } from "../../config/Config.ts"
import { fraction, naturalInt, nonNegative, positive, positiveInt, withDefault } from "../../config/fields.ts"
import { sizeOf } from "../../env/Space.ts"
import { gradients } from "../../graph/gradients.ts"
import { add, constant, input, mul, state, sub } from "../../graph/ops.ts"
import { adam, clipGlobalNorm } from "../../graph/optimisers.ts"
import { type Layout, layout } from "../../graph/Parameters.ts"
import { indicesFeed, type ProgramSpec } from "../../graph/Program.ts"
import type { Tensor } from "../../graph/Tensor.ts"
import { stream } from "../../rng/Rng.ts"
import {
  AgentError,
  type Learner,
  type LearnerError,
  type NamedTensors,
  type PolicyOptions,
  type Position,
  type SetupError,
  type Task,
} from "../Algorithm.ts"
import { Averages } from "../Averages.ts"
import { build } from "../build.ts"
import { drive } from "../drive.ts"
import { floatsOf, learnerPolicy, type NamedVector, onnxPolicy, restoreState } from "../learnerState.ts"
import { toEnvAction } from "../network/ActorCritic.ts"
import { type Declarations, isImage, type Weights } from "../network/trunk.ts"
import { randomActions } from "../randomActions.ts"
import { makePriorities } from "./Priorities.ts"
import { makeReplay } from "./Replay.ts"

/**
 * What DQN, SAC and TD3 share: act, keep what was seen in a replay memory, and learn from batches drawn from it. They
 * differ in how they act and in what they learn from a batch.
 */
export const replayFields = {
  gamma: withDefault(fraction, 0.99),
  /** Transitions that are remembered. */
  bufferSize: withDefault(positiveInt, 1_000_000),
  /** Transitions that an update learns from. */
  batchSize: withDefault(positiveInt, 256),
  /** Env steps before the first update; they are played at random. */
  learningStarts: withDefault(naturalInt, 1000),
  /** Env steps between updates, over all envs; rounded up to whole steps of all of them. */
  trainEvery: withDefault(positiveInt, 1),
  /** Updates each time. */
  gradientSteps: withDefault(positiveInt, 1),
  /** Rewards in a transition before the value takes over. */
  nsteps: withDefault(positiveInt, 1),
  /** Gradients are scaled down to this global norm; 0 leaves them alone. */
  maxGradNorm: withDefault(nonNegative, 0),
}

/** Prioritised replay (Schaul et al. 2015, arXiv:1511.05952). */
export const Prioritised = Schema.Struct({
  /** 0 draws uniformly, 1 in proportion to the error. */
  alpha: withDefault(fraction, 0.6),
  /** How far the bias that this brings is made up for at first; all the way at the end of the run. */
  beta: withDefault(fraction, 0.4),
  /** Added to every error. */
  epsilon: withDefault(positive, 1e-6),
})

export interface ReplayConfig {
  readonly gamma: number
  readonly bufferSize: number
  readonly batchSize: number
  readonly learningStarts: number
  readonly trainEvery: number
  readonly gradientSteps: number
  readonly nsteps: number
  readonly noiseRepeat?: number
  readonly prioritised?: typeof Prioritised.Type | null
}

export interface ReplayDefinition {
  readonly name: string
  readonly config: ReplayConfig
  /** What acts. */
  readonly actor: Declarations
  /** What only learns beside it. */
  readonly critic?: Declarations
  /** Which of the two have a second, slower copy. */
  readonly targets: ReadonlyArray<"actor" | "critic">
  /** Uniform numbers that acting takes an env, and that learning takes a row. */
  readonly noise: { readonly act: number; readonly learn: number }
  readonly act: (at: ActingOnce) => Tensor
  readonly greedy: (weights: Weights, observations: Tensor) => Tensor
  readonly learn: (batch: ReplayBatch) => Learnt
  /** First values of states that `learn` keeps, where they aren't zero. */
  readonly initial?: Readonly<Record<string, Float32Array>>
  /** The scalar that `act` explores by, after so many env steps. */
  readonly exploration?: (step: number) => number
  /** How often the copies are made equal to their originals, in env steps; without it `learn` moves them. */
  readonly targetEvery?: number
  /** Scalars that an update is fed, after so many env steps: learning rates. */
  readonly scalars: (step: number) => Readonly<Record<string, number>>
}

export interface ActingOnce {
  readonly weights: Weights
  readonly observations: Tensor
  readonly noise: Tensor
  readonly exploration: Tensor
}

/** A network as its flat vector of parameters, and those by name. */
export interface Net {
  readonly layout: Layout
  readonly theta: Tensor
  readonly weights: Weights
}

/** A drawn batch as `learn` sees it. */
export interface ReplayBatch {
  readonly actor: Net
  readonly critic: Net
  readonly targets: { readonly actor: Net; readonly critic: Net }
  readonly rows: number
  readonly observations: Tensor
  /** As the env took them. */
  readonly actions: Tensor
  readonly rewards: Tensor
  readonly nextObservations: Tensor
  /** What the next observation's value counts. */
  readonly discounts: Tensor
  /** How much each row counts, where rows are drawn by priority. */
  readonly importance: Tensor | undefined
  readonly noise: Tensor
  readonly scalar: (name: string) => Tensor
}

export interface Learnt {
  /** `actor`, `critic`, what optimisers keep, and the targets where `learn` moves them. */
  readonly states: Readonly<Record<string, { readonly tensor: Tensor; readonly next: Tensor }>>
  readonly metrics: Readonly<Record<string, Tensor>>
  /** How wrong each row was: its next priority. */
  readonly errors?: Tensor
}

/** The names of the networks' states in an update program. */
export const targetOf = (net: "actor" | "critic"): string => `target.${net}`

interface Layouts {
  readonly actor: Layout
  readonly critic: Layout
}

const netOf = (parameters: Layout, name: string): Net => {
  const theta = state(name, [parameters.size])
  return { layout: parameters, theta, weights: parameters.tensorsOf(theta) }
}

const errorsOutput = "errors"

const actSpec = ({ name, noise, act, exploration }: ReplayDefinition, layouts: Layouts, task: Task): ProgramSpec => {
  const { theta, weights } = netOf(layouts.actor, "actor")
  const observations = input("observations", [task.numEnvs, sizeOf(task.observationSpace)])
  const uniform = input("noise", [task.numEnvs, Math.max(1, noise.act)])
  const explore = input("exploration", [])
  const actions = act({ weights, observations, noise: uniform, exploration: explore })
  return {
    name: `${name}.act`,
    inputs: {
      observations,
      ...(noise.act === 0 ? {} : { noise: uniform }),
      ...(exploration === undefined ? {} : { exploration: explore }),
    },
    state: { actor: { tensor: theta } },
    outputs: { actions: toEnvAction(task.actionSpace, actions) },
  }
}

const policySpec = (
  definition: ReplayDefinition,
  layouts: Layouts,
  task: Task,
  numEnvs: number,
  { sampled = false, see = (seen) => seen }: PolicyOptions = {},
): ProgramSpec => {
  const { name, greedy, act, noise: needs, exploration } = definition
  const { theta, weights } = netOf(layouts.actor, "theta")
  const seen = input("observations", [numEnvs, sizeOf(task.observationSpace)])
  const observations = see(seen)
  const noise = input("noise", [numEnvs, Math.max(1, needs.act)])
  const draws = sampled && needs.act > 0
  const actions = draws
    ? act({ weights, observations, noise, exploration: constant(exploration?.(task.totalSteps) ?? 0) })
    : greedy(weights, observations)
  return {
    name: `${name}.policy`,
    inputs: { observations: seen, ...(draws ? { noise } : {}) },
    state: { theta: { tensor: theta } },
    outputs: { actions: toEnvAction(task.actionSpace, actions) },
  }
}

const updateSpec = (definition: ReplayDefinition, layouts: Layouts, task: Task): ProgramSpec => {
  const { name, config, noise, learn, scalars, targets } = definition
  const { batchSize: rows, gradientSteps } = config
  const width = sizeOf(task.observationSpace)
  const nets = { actor: netOf(layouts.actor, "actor"), critic: netOf(layouts.critic, "critic") }
  const slow = {
    actor: netOf(layouts.actor, targetOf("actor")),
    critic: netOf(layouts.critic, targetOf("critic")),
  }
  const gathered = {
    observations: input("observations", [rows, width]),
    actions:
      task.actionSpace._tag === "Discrete"
        ? input("actions", [rows], "i32")
        : input("actions", [rows, sizeOf(task.actionSpace)]),
    rewards: input("rewards", [rows]),
    nextObservations: input("nextObservations", [rows, width]),
    discounts: input("discounts", [rows]),
  }
  const importance = input("importance", [rows])
  const uniform = input("updateNoise", [rows, Math.max(1, noise.learn)])
  const fed = Object.fromEntries(Object.keys(scalars(0)).map((key) => [key, input(key, [])]))
  const { states, metrics, errors } = learn({
    ...gathered,
    ...nets,
    targets: slow,
    rows,
    importance: config.prioritised ? importance : undefined,
    noise: uniform,
    scalar: (key) => fed[key],
  })
  const inputs = {
    ...gathered,
    ...(config.prioritised ? { importance } : {}),
    ...(noise.learn === 0 ? {} : { updateNoise: uniform }),
  }
  return {
    name: `${name}.update`,
    inputs: { ...inputs, ...fed },
    state: { ...Object.fromEntries(targets.map((net) => [targetOf(net), { tensor: slow[net].theta }])), ...states },
    outputs: { ...metrics, ...(errors !== undefined && config.prioritised ? { [errorsOutput]: errors } : {}) },
    ...(gradientSteps === 1
      ? {}
      : {
          minibatches: { rows: rows * gradientSteps, batch: rows, count: gradientSteps, gathered: Object.keys(inputs) },
        }),
  }
}

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
  const backend = yield* Backend
  const layouts = { actor: layout(definition.actor), critic: layout(definition.critic ?? {}) }
  const nets = (["actor", "critic"] as const).filter((net) => definition[net] !== undefined)
  const act = yield* backend.compile(yield* build(() => actSpec(definition, layouts, task)))
  const spec = yield* build(() => updateSpec(definition, layouts, task))
  const update = yield* backend.compile(spec)
  const kept = Object.keys(spec.state).filter((key) => key !== "actor" && key !== "critic")

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
  const replay = makeReplay({
    numEnvs,
    observationSize: sizeOf(observationSpace),
    actionSize: sizeOf(actionSpace),
    capacity: config.bufferSize,
    gamma: config.gamma,
    nsteps: config.nsteps,
    images: isImage(observationSpace),
  })
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
    const diverged = averages.firstNotFinite()
    if (diverged !== undefined) {
      const message = `step ${step}: ${diverged.name} is ${diverged.value}: the training has diverged; a lower learning rate may help`
      return yield* new AgentError({ message })
    }
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
    weights: Effect.gen(function* () {
      let named: NamedTensors = {}
      for (const net of nets) named = { ...named, ...layouts[net].toNamed(yield* update.read(net)) }
      return named
    }),
    state: Effect.gen(function* () {
      const optimizer: Record<string, NamedVector> = {}
      for (const key of kept) optimizer[key] = { shape: spec.state[key].tensor.shape, data: yield* update.read(key) }
      return { optimizer, replay: { ...replay.state(), ...priorities?.state() } }
    }),
    restore: (weights, saved) =>
      restoreState(function* (files) {
        for (const net of nets) yield* update.write(net, yield* files.weights(layouts[net], weights))
        for (const key of kept) {
          yield* update.write(key, yield* files.floats("optimizer", key, spec.state[key].tensor.shape))
        }
        yield* files.use("replay", replay.restore)
        if (priorities !== undefined) yield* files.use("replay", priorities.restore)
        yield* followWeights
      }, saved),
  }
})

/** A network's next parameters by a loss, and what its optimiser keeps. */
export const descend = (
  name: string,
  { layout: parameters, theta, weights }: Net,
  loss: Tensor,
  { learningRate, epsilon = 1e-8, maxGradNorm = 0 }: DescentOptions,
): { readonly next: Tensor; readonly states: Learnt["states"] } => {
  const { names, size } = parameters
  const slopes = gradients(
    loss,
    names.map((key) => weights[key]),
  )
  const gradient = parameters.flatten(Object.fromEntries(names.map((key, index) => [key, slopes[index]])))
  const clipped = maxGradNorm > 0 ? clipGlobalNorm(gradient, maxGradNorm) : gradient
  const { next, moments } = adam({ name: `${name}.adam`, size, learningRate, epsilon }).update(theta, clipped)
  return { next, states: { [name]: { tensor: theta, next }, ...moments } }
}

interface DescentOptions {
  readonly learningRate: Tensor
  readonly epsilon?: number
  readonly maxGradNorm?: number
}

/** A slow copy moved a little towards its original: τ θ + (1 − τ) θ'. */
export const polyak = (net: "actor" | "critic", { theta }: Net, original: Tensor, tau: number): Learnt["states"] => ({
  [targetOf(net)]: { tensor: theta, next: add(theta, mul(sub(original, theta), tau)) },
})
