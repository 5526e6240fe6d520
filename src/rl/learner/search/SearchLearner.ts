/** Makes learners that choose their actions by tree search and learn from the searches: AlphaZero. */
import { Effect, type Scope } from "effect"
import { Backend, type Program } from "../../../tensor/backend/Backend.ts"
import { ConfigError } from "../../../base/config/Config.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import type { Env } from "../../env/Env.ts"
import { invalid } from "../../../base/EnvError.ts"
import { sizeOf } from "../../env/Space.ts"
import { exp, input } from "../../../tensor/graph/ops.ts"
import type { OptimiserOf } from "../../../tensor/graph/optimiserSettings.ts"
import { layout } from "../../../tensor/graph/Parameters.ts"
import { indicesFeed, type ProgramSpec } from "../../../tensor/graph/Program.ts"
import type { Schedule } from "../../../tensor/graph/schedules.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import type { ActorCritic } from "../../model/ActorCritic.ts"
import type { Weights } from "../../model/trunk.ts"
import { gae } from "../../returns/gae.ts"
import { dirichlet } from "../../../base/rng/dirichlet.ts"
import { exp as exponential, log } from "../../../base/rng/Elementary.ts"
import { type Stream, stream } from "../../../base/rng/Rng.ts"
import { policies } from "../acting.ts"
import {
  type Learner,
  type LearnerError,
  type LearnerState,
  type Policy,
  type Position,
  type SetupError,
  steered,
  type Task,
} from "../Algorithm.ts"
import { Averages } from "../Averages.ts"
import { arraysOf, type Batch, f32, feedsOf } from "../Batch.ts"
import { batchSpec } from "../batchProgram.ts"
import { drive, type Steps, waitFor } from "../drive.ts"
import { build, descend, type Loss, netOf } from "../graphs.ts"
import { floatsOf, savedState, statesOf, vectorsOf, weightsIn } from "../learnerState.ts"
import { needsChoices } from "../requirements.ts"
import type { SearchSettings } from "./fields.ts"
import { type Roots, treeSearch, type TreeSearch } from "./TreeSearch.ts"

export interface SearchLearnerOptions extends Required<SearchSettings> {
  readonly name: string
  readonly task: Task
  readonly network: ActorCritic
  /** The discount factor, which is negative if two players take turns. */
  readonly gamma: number
  /** The λ of the returns that the values learn: 1 learns from the outcomes of episodes alone. */
  readonly lambda: number
  /** The number of steps that each env takes between two updates. */
  readonly nsteps: number
  /** The number of rollouts, from the last one back, that an update learns from. */
  readonly window: number
  /** The number of minibatches of an update, and of the rows of each, which are drawn from the window. */
  readonly updates: number
  readonly batchSize: number
  readonly maxGradNorm: number
  readonly learningRate: Schedule
  readonly optimiser: OptimiserOf
  /** Whether a validation searches, or takes the network's best action. */
  readonly validateBy: "search" | "network"
  readonly loss: (batch: Batch<SearchColumns>, weights: Weights) => Loss
}

/** The columns that an update reads of each step. */
export type SearchColumns = ReturnType<typeof searchColumns>

const searchColumns = (task: Task, actions: number) => ({
  observations: f32(sizeOf(task.observationSpace)),
  /** The share of each action in the visits of the search. */
  visits: f32(actions),
  /** The return that the value learns. */
  targets: f32(),
})

/** Describes the program that evaluates states: the probabilities of actions and the value of each observation. */
const evaluatorSpec = (
  { name, task, network }: SearchLearnerOptions,
  parameters: ReturnType<typeof layout>,
  rows: number,
): ProgramSpec => {
  const { theta, weights } = netOf(parameters, "theta")
  const observations = input("observations", [rows, sizeOf(task.observationSpace)])
  const { distribution, value } = network.evaluate(weights, observations)
  const [logProbabilities]: ReadonlyArray<Tensor> = distribution.parameters
  return {
    name: `${name}.evaluator`,
    inputs: { observations },
    state: { theta: { tensor: theta } },
    outputs: { priors: exp(logProbabilities), values: value },
  }
}

const evaluatorOf = (program: Program) => ({
  program,
  observations: floatsOf(program.feeds, "observations"),
  priors: floatsOf(program.results, "priors"),
  values: floatsOf(program.results, "values"),
})

/**
 * Makes the learner of AlphaZero. In each iteration every env takes `nsteps` steps, each chosen by a search. The update
 * draws minibatches from the last rollouts: the policy learns the shares of the visits, the value the returns.
 */
export const searchLearner = Effect.fnUntraced(function* (
  options: SearchLearnerOptions,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  const { name, task, network, nsteps, window, gamma, lambda, noiseShare, noiseAlpha, temperature } = options
  const { numEnvs, seed } = task
  const actions = yield* needsChoices(name, task)
  const model = yield* modelOf(name, task)
  const backend = yield* Backend
  const parameters = yield* build(() => layout(network.parameters))
  const evaluator = yield* backend.compile(yield* build(() => evaluatorSpec(options, parameters, numEnvs)))
  const rows = nsteps * numEnvs
  const columns = searchColumns(task, actions)
  const spec = yield* build(() => updateSpec(options, parameters, columns, rows * window))
  const update = yield* backend.compile(spec)
  const optimiser = statesOf(update, spec, ["theta"])
  const search = treeSearch(evaluatorOf(evaluator), { ...options, env: model, rows: numEnvs })

  // The window of rollouts is the input of the update itself; the rollout of iteration i is number i modulo the window.
  const stored = feedsOf(columns, update.feeds)
  const { observations } = evaluatorOf(evaluator)
  const width = observations.length / numEnvs
  const rollout = arraysOf(
    { rewards: f32(), values: f32(), truncatedValues: f32(), advantages: f32(), targets: f32() },
    rows,
  )
  const terminated = new Uint8Array(rows)
  const truncated = new Uint8Array(rows)
  const lastValues = new Float32Array(numEnvs)
  /** The number of steps of each env's current episode. */
  const elapsed = new Int32Array(numEnvs)
  const envActions = new Int32Array(numEnvs)
  const weightsOf = new Float64Array(actions)
  const noise = new Float64Array(actions)

  /** Mixes the priors of the actions that are allowed with noise. */
  const mixer =
    (randomOf: (row: number) => Stream): NonNullable<Roots["mix"]> =>
    (row, priors, from) => {
      if (noiseShare === 0) return
      let count = 0
      for (let edge = from; edge < from + actions; edge++) if (priors[edge] >= 0) count++
      dirichlet(randomOf(row), noiseAlpha, noise, count)
      for (let edge = from, next = 0; edge < from + actions; edge++) {
        if (priors[edge] >= 0) priors[edge] = (1 - noiseShare) * priors[edge] + noiseShare * noise[next++]
      }
    }

  /** Chooses the action of an env: in proportion to visits^(1/temperature) early in an episode, later the most visited. */
  const choose = (env: number, random: Stream): number => {
    if (elapsed[env] >= options.temperatureSteps) return search.best(env)
    // Divided by the largest number, so that no power is too large.
    const most = search.visits[env * actions + search.best(env)]
    for (let action = 0; action < actions; action++) {
      const share = search.visits[env * actions + action] / most
      weightsOf[action] = temperature === 1 ? share : exponential(log(share) / temperature)
    }
    return random.categorical(weightsOf)
  }

  const collect = function* (envs: AnyBatchEnv, iteration: number): Steps<number> {
    const stateAt = statesIn(envs)
    const slot = (iteration % window) * rows
    for (let t = 0; t < nsteps; t++) {
      const base = t * numEnvs
      const random = stream(seed, "search", iteration, t)
      yield* search.run({
        first: 0,
        count: numEnvs,
        stateAt,
        randomOf: (env) => random.child("model", env),
        mix: mixer((env) => random.child("noise", env)),
      })
      stored.observations.set(envs.observations, (slot + base) * width)
      for (let env = 0; env < numEnvs; env++) {
        const to = (slot + base + env) * actions
        for (let action = 0; action < actions; action++) {
          stored.visits[to + action] = search.visits[env * actions + action] / options.simulations
        }
        rollout.values[base + env] = search.values[env]
        envActions[env] = choose(env, random.child("action", env))
        elapsed[env]++
      }
      const wait = envs.step(envActions)
      if (wait !== undefined) yield waitFor(wait)
      rollout.rewards.set(envs.rewards, base)
      terminated.set(envs.terminated, base)
      truncated.set(envs.truncated, base)
      let cut = false
      for (let env = 0; env < numEnvs; env++) {
        if ((envs.terminated[env] | envs.truncated[env]) !== 0) elapsed[env] = 0
        if (envs.truncated[env] !== 0 && envs.terminated[env] === 0) cut = true
      }
      if (!cut) continue
      observations.set(envs.finalObservations)
      yield evaluator
      rollout.truncatedValues.set(floatsOf(evaluator.results, "values"), base)
    }
    observations.set(envs.observations)
    yield evaluator
    lastValues.set(floatsOf(evaluator.results, "values"))
    const { rewards, values, truncatedValues, advantages: out, targets } = rollout
    gae({ rewards, values, lastValues, terminated, truncated, truncatedValues, gamma, lambda, out, targets })
    stored.targets.set(targets, slot)
    return rows
  }

  const averages = new Averages()
  const iterations = Math.ceil(task.totalSteps / rows)
  const updated = new Float32Array(parameters.size)
  const learn = Effect.fnUntraced(function* (position: Position): Effect.fn.Return<void, LearnerError> {
    const { iteration } = position
    const rate = steered(position, options.learningRate(iteration / iterations))
    const random = stream(seed, "update", iteration)
    const filled = Math.min(iteration + 1, window) * rows
    const indices = update.feeds[indicesFeed]
    for (let at = 0; at < indices.length; at++) indices[at] = random.integer(filled)
    update.feeds.learningRate[0] = rate
    averages.add("charts/learning_rate", rate)
    yield* update.run
    averages.addResults(update)
    yield* averages.checkFinite(`update ${iteration + 1}`)
    yield* evaluator.write("theta", yield* update.read("theta", updated))
  })

  const weights = update.read("theta")
  const setWeights = Effect.fnUntraced(function* (theta: Float32Array) {
    yield* update.write("theta", theta)
    yield* evaluator.write("theta", theta)
  })
  yield* setWeights(parameters.initialise(stream(seed, "weights")))

  const acting = { name, task, actor: network, layout: parameters }
  const { policy: plain, ...exports } = policies(backend, acting, weights)
  const searching: typeof plain = Effect.fnUntraced(function* (count, policyOptions) {
    const policy = yield* plain(count, policyOptions)
    if (policyOptions?.sampled === true) return policy
    const program = yield* backend.compile(yield* build(() => evaluatorSpec(options, parameters, count)))
    const trees = treeSearch(evaluatorOf(program), { ...options, env: model, rows: count })
    return {
      ...policy,
      refresh: Effect.andThen(
        policy.refresh,
        Effect.flatMap(weights, (theta) => program.write("theta", theta)),
      ),
      search: (envs, at) => searchIn(envs, at, trees, policy.actions, stream(seed, "search", "validation")),
    } satisfies Policy
  })
  const progress = vectorsOf({ ...stored, elapsed })
  return {
    devices: { [evaluator.name]: evaluator.device, [update.name]: update.device },
    plans: true,
    rollout: (envs, { iteration }) => drive(() => collect(envs, iteration)),
    update: learn,
    metrics: () => averages.take(),
    ...exports,
    policy: options.validateBy === "network" ? plain : searching,
    weights: Effect.map(weights, parameters.toNamed),
    state: Effect.map(optimiser.read, (optimizer): LearnerState => ({ optimizer, replay: progress.state() })),
    start: (named) => Effect.flatMap(weightsIn(parameters, named), setWeights),
    restore: Effect.fnUntraced(function* (named, saved) {
      const checkpoint = savedState(saved)
      yield* setWeights(yield* checkpoint.weights(parameters, named))
      yield* optimiser.restore(checkpoint, "optimizer")
      yield* checkpoint.use("replay", progress.restore)
    }),
  }
})

/** Describes the update: gradient steps on minibatches of the window's rows. */
const updateSpec = (
  { name, loss, optimiser, maxGradNorm, updates, batchSize }: SearchLearnerOptions,
  parameters: ReturnType<typeof layout>,
  columns: SearchColumns,
  rows: number,
): ProgramSpec => {
  const net = netOf(parameters, "theta")
  return batchSpec({
    name: `${name}.update`,
    columns,
    sequences: batchSize,
    minibatches: { rows, count: updates },
    build: ({ batch, scalar }) => {
      const { loss: total, metrics } = loss(batch, net.weights)
      const made = optimiser({ layout: parameters, size: parameters.size, learningRate: scalar("learningRate") })
      const { next, moments } = descend(net, total, made, maxGradNorm)
      return { states: { theta: { tensor: net.theta, next }, ...moments }, outputs: metrics }
    },
  })
}

/** Returns the env of a task, which is the model; fails if its states are elsewhere, or those of several agents. */
const modelOf = (name: string, { model }: Task): Effect.Effect<Env, ConfigError> => {
  const fail = (problem: string) =>
    Effect.fail(ConfigError.at({ source: name }, "algorithm", `${name} needs an env ${problem}`))
  if (model === undefined || model.open !== undefined) return fail("whose states are in this program, to search them")
  return model.agents === undefined
    ? Effect.succeed(model)
    : fail(`of one agent, found ${model.id}; MultiEnv.against makes one of a game`)
}

/** Searches from the states of a batch without noise, and takes the most visited actions. */
function* searchIn(
  envs: AnyBatchEnv,
  at: number,
  trees: TreeSearch,
  actions: Policy["actions"],
  random: Stream,
): Steps<void> {
  const stateAt = statesIn(envs)
  yield* trees.run({
    first: at,
    count: envs.numEnvs,
    stateAt: (row) => stateAt(row - at),
    randomOf: (row) => random.child(row),
  })
  for (let env = 0; env < envs.numEnvs; env++) actions[at + env] = trees.best(at + env)
}

/** Returns the function that gives the states of a batch. Throws if they are elsewhere. */
const statesIn = (envs: AnyBatchEnv): ((index: number) => unknown) => {
  if (envs.stateAt !== undefined) return envs.stateAt
  throw invalid(envs.id, "a search needs the states of the envs, which are in other threads or processes")
}
