/**
 * Makes learners that choose their actions by tree search and learn from the results of the searches, as AlphaZero
 * does.
 */
import { Effect, type Scope } from "effect"
import { Backend, type Program } from "../../../tensor/backend/Backend.ts"
import { ConfigError } from "../../../base/config/Config.ts"
import type { Env } from "../../env/Env.ts"
import { sizeOf } from "../../env/Space.ts"
import { exp, input } from "../../../tensor/graph/ops.ts"
import type { OptimiserOf } from "../../../tensor/graph/optimiserSettings.ts"
import { type ParameterLayout, layout } from "../../../tensor/graph/Parameters.ts"
import { indicesFeed, type ProgramSpec } from "../../../tensor/graph/Program.ts"
import type { Schedule } from "../../../tensor/graph/schedules.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import type { ActorCritic } from "../../model/ActorCritic.ts"
import type { Weights } from "../../model/trunk.ts"
import { stream } from "../../../base/rng/Rng.ts"
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
} from "../Learner.ts"
import { Averages } from "../Averages.ts"
import type { Batch } from "../Batch.ts"
import { batchSpec } from "../batchProgram.ts"
import { drive } from "../drive.ts"
import { build, descend, type Loss, netOf } from "../graphs.ts"
import { savedState, statesOf, vectorsOf, weightsIn } from "../learnerState.ts"
import { needsChoices } from "../requirements.ts"
import {
  evaluatorOf,
  makeSearchRollout,
  playSearchRollout,
  searchColumns,
  type SearchColumns,
  searchIn,
  type SearchRolloutOptions,
} from "./searchRollout.ts"
import { treeSearch } from "./TreeSearch.ts"

export interface SearchLearnerOptions extends SearchRolloutOptions {
  readonly name: string
  readonly network: ActorCritic
  /**
   * The number of minibatches of an update, and the number of rows of each minibatch. They are drawn from the window of
   * rollouts.
   */
  readonly updates: number
  readonly batchSize: number
  readonly maxGradNorm: number
  readonly learningRate: Schedule
  readonly optimiser: OptimiserOf
  /** Whether a validation searches, or takes the network's best action. */
  readonly validateBy: "search" | "network"
  readonly loss: (batch: Batch<SearchColumns>, weights: Weights) => Loss
}

/** Describes the program that evaluates states: the probabilities of actions and the value of each observation. */
const evaluatorSpec = (
  { name, task, network }: SearchLearnerOptions,
  parameters: ParameterLayout,
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

/**
 * Makes the learner of AlphaZero. In each iteration every env takes `nsteps` steps, each chosen by a search. The update
 * draws minibatches from the last rollouts: the policy learns the shares of the visits, the value the returns.
 */
export const searchLearner = Effect.fnUntraced(function* (
  options: SearchLearnerOptions,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  const { name, task, network, nsteps, window } = options
  const { numEnvs, seed } = task
  const actions = yield* needsChoices(name, task)
  const model = yield* modelOf(name, task)
  const backend = yield* Backend
  const parameters = yield* build(() => layout(network.parameters))
  const evaluator = yield* backend.compile(yield* build(() => evaluatorSpec(options, parameters, numEnvs)))
  const columns = searchColumns(task, actions)
  const spec = yield* build(() => updateSpec(options, parameters, columns, nsteps * numEnvs * window))
  const update = yield* backend.compile(spec)
  const optimiser = statesOf(update, spec, ["theta"])
  const search = treeSearch(evaluatorOf(evaluator), { ...options, env: model, rows: numEnvs })
  const rollout = makeSearchRollout(options, actions, search, evaluatorOf(evaluator), update.feeds)

  const weights = update.read("theta")
  const setWeights = Effect.fnUntraced(function* (theta: Float32Array) {
    yield* update.write("theta", theta)
    yield* evaluator.write("theta", theta)
  })
  yield* setWeights(parameters.initialise(stream(seed, "weights")))

  const averages = new Averages()
  const learning = { options, update, evaluator, averages, updated: new Float32Array(parameters.size) }
  const { policy: plain, ...exports } = policies(backend, { name, task, actor: network, layout: parameters }, weights)
  const progress = vectorsOf({ ...rollout.stored, elapsed: rollout.elapsed })
  return {
    devices: { [evaluator.name]: evaluator.device, [update.name]: update.device },
    capabilities: { plans: true },
    rollout: (envs, { iteration }) => drive(() => playSearchRollout(rollout, envs, iteration)),
    update: (position) => learn(learning, position),
    metrics: () => averages.take(),
    ...exports,
    policy: options.validateBy === "network" ? plain : searching(options, model, backend, parameters, weights, plain),
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

/** The programs of an update, and what an update needs besides. */
interface SearchLearning {
  readonly options: SearchLearnerOptions
  readonly update: Program
  /** The program that evaluates states for the search. After an update, it gets the new weights. */
  readonly evaluator: Program
  readonly averages: Averages
  /** The weights after the last update. */
  readonly updated: Float32Array
}

/** Learns from rows that are drawn from the window of rollouts. */
const learn = Effect.fnUntraced(function* (
  { options, update, evaluator, averages, updated }: SearchLearning,
  position: Position,
): Effect.fn.Return<void, LearnerError> {
  const { task, nsteps, window, learningRate } = options
  const { iteration } = position
  const rows = nsteps * task.numEnvs
  const rate = steered(position, learningRate(iteration / Math.ceil(task.totalSteps / rows)))
  const random = stream(task.seed, "update", iteration)
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

/** Returns the policies for validations. They search before each action, unless actions are sampled. */
const searching = (
  options: SearchLearnerOptions,
  model: Env,
  backend: Backend["Service"],
  parameters: ParameterLayout,
  weights: ReturnType<Program["read"]>,
  plain: NonNullable<Learner["policy"]>,
): NonNullable<Learner["policy"]> =>
  Effect.fnUntraced(function* (count, policyOptions) {
    const policy = yield* plain(count, policyOptions)
    if (policyOptions?.sampled === true) return policy
    const program = yield* backend.compile(yield* build(() => evaluatorSpec(options, parameters, count)))
    const trees = treeSearch(evaluatorOf(program), { ...options, env: model, rows: count })
    const random = stream(options.task.seed, "search", "validation")
    return {
      ...policy,
      refresh: Effect.andThen(
        policy.refresh,
        Effect.flatMap(weights, (theta) => program.write("theta", theta)),
      ),
      search: (envs, at) => searchIn(envs, at, trees, policy.actions, random),
    } satisfies Policy
  })

/** Describes the update: gradient steps on minibatches of the window's rows. */
const updateSpec = (
  { name, loss, optimiser, maxGradNorm, updates, batchSize }: SearchLearnerOptions,
  parameters: ParameterLayout,
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
      const chosenOptimiser = optimiser({
        layout: parameters,
        size: parameters.size,
        learningRate: scalar("learningRate"),
      })
      const { next, moments } = descend(net, total, chosenOptimiser, maxGradNorm)
      return { states: { theta: { tensor: net.theta, next }, ...moments }, outputs: metrics }
    },
  })
}

/**
 * Returns the task's env, which is the model of the search. Fails if its states are in another program, or it has
 * several agents.
 */
const modelOf = (name: string, { model }: Task): Effect.Effect<Env, ConfigError> => {
  const fail = (problem: string) =>
    Effect.fail(ConfigError.at({ source: name }, "algorithm", `${name} needs an env ${problem}`))
  if (model === undefined || model.open !== undefined) return fail("whose states are in this program, to search them")
  return model.agents === undefined
    ? Effect.succeed(model)
    : fail(`of one agent, found ${model.id}; MultiEnv.against makes one of a game`)
}
