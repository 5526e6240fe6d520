/** Makes learners whose rollouts are played in the graph: states, actions and experience stay in the backend. */
import { Effect, type Scope } from "effect"
import { Backend, type Program } from "../../../tensor/backend/Backend.ts"
import { attempt } from "../../../base/config/attempt.ts"
import { ConfigError } from "../../../base/config/Config.ts"
import type { EnvGraph } from "../../env/EnvGraph.ts"
import { makeLog } from "../../env/EpisodeLog.ts"
import { display } from "../../env/Space.ts"
import { type ParameterLayout, layout } from "../../../tensor/graph/Parameters.ts"
import { indicesFeed } from "../../../tensor/graph/Program.ts"
import type { Schedule } from "../../../tensor/graph/schedules.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { policies } from "../acting.ts"
import { type Learner, type LearnerError, LearningError, type Position, type SetupError, steered } from "../Learner.ts"
import { Averages } from "../Averages.ts"
import type { Columns } from "../Batch.ts"
import { build } from "../graphs.ts"
import { copyInto, floatsOf, namedVector, savedState, statesOf, weightsIn } from "../learnerState.ts"
import type { Experience, GeneralisedAdvantages } from "../rollout/Experience.ts"
import type { RolloutUpdate } from "../rollout/DescribedLearner.ts"
import type { BaseColumns } from "../rollout/RolloutData.ts"
import { checkDivisors, declaredBy } from "../rollout/RolloutLearner.ts"
import type { Phase } from "../rollout/Phase.ts"
import { withTotalLoss } from "../rollout/update.ts"
import { fillScheduled, type ScheduledInputs } from "../scheduled.ts"
import { columnState, envStates, rolloutSpec, stepColumns } from "./rolloutSpec.ts"
import { Starts } from "./Starts.ts"
import { storedColumns, updateSpec } from "./updateSpec.ts"

/** An update that one program can compute, with the rollout's returns. */
interface GraphUpdate<C> extends GeneralisedAdvantages {
  readonly learningRate: Schedule
  readonly phase: Phase<C>
}

/**
 * Makes the learner that `rolloutLearner` described, for an env with a graph form (see `EnvGraph`). In each iteration
 * one program plays the whole rollout, and another computes advantages and learns from it. The programs share their
 * states, so only random numbers, first states of episodes and the log of ended episodes pass through JavaScript.
 *
 * It draws the same random numbers as `makeRolloutLearner`: episodes begin in the same states, and the same noise draws
 * the actions. The results differ in rounding, because the env's dynamics are computed in single precision.
 */
export const makeGraphLearner = Effect.fnUntraced(function* <C extends BaseColumns & Columns>(
  experience: Experience<C>,
  rolloutUpdate: RolloutUpdate<C>,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  const { name, task, actor } = experience
  const graphUpdate = yield* graphUpdateOf(experience, rolloutUpdate)
  const { graph, maxSteps } = yield* formOf(experience)
  yield* checkDivisors(experience, [graphUpdate.phase])
  const { numEnvs, seed } = task
  const backend = yield* Backend
  const parameters: ParameterLayout = yield* build(() => layout(experience.parameters))
  const starts = new Starts({ graph, numEnvs, steps: experience.steps, maxSteps, seed })
  const columns = storedColumns(experience.columns)
  const specs = yield* specsOf(experience, graphUpdate, { graph, maxSteps }, parameters, starts)
  const { rollout, update } = yield* backend.compileAll(specs)
  const playing = playingOf(experience, rollout, starts, graph)
  const learning = learningOf(experience, graphUpdate, update)

  yield* rollout.write("theta", parameters.initialise(stream(seed, "weights")))
  yield* rollout.write("envs", starts.current())
  yield* rollout.write("slots", starts.next())
  starts.fill(playing.rings)

  const weights = update.read("theta")
  const inRollout = [...Object.keys(columns), ...stepColumns].map(columnState)
  const optimiser = statesOf(update, specs.update, ["theta", ...inRollout])
  const progress = statesOf(rollout, specs.rollout, Object.keys(specs.rollout.state).filter(isNoEnvState))
  return {
    devices: Object.fromEntries([rollout, update].map((program) => [program.name, program.device])),
    episodes: playing.episodes,
    rollout: (_, { iteration }) => play(playing, iteration),
    update: (position) => learn(learning, position),
    ...declaredBy(experience, { totalLoss: true }),
    metrics: () => learning.averages.take(),
    ...policies(backend, { name, task, actor, layout: parameters }, weights),
    weights: Effect.map(weights, parameters.toNamed),
    state: Effect.gen(function* () {
      return {
        optimizer: yield* optimiser.read,
        rollout: { ...(yield* progress.read), episodes: namedVector(starts.episodes) },
      }
    }),
    start: (named) => Effect.flatMap(weightsIn(parameters, named), (theta) => rollout.write("theta", theta)),
    restore: Effect.fnUntraced(function* (named, saved) {
      const checkpoint = savedState(saved)
      yield* rollout.write("theta", yield* checkpoint.weights(parameters, named))
      yield* optimiser.restore(checkpoint, "optimizer")
      yield* progress.restore(checkpoint, "rollout")
      yield* checkpoint.use("rollout", (arrays) => copyInto(arrays, "episodes", starts.episodes))
      starts.fill(playing.rings)
      playing.episodes.clear()
    }),
  }
})

/** Describes the programs of the rollout and of the update. */
const specsOf = Effect.fnUntraced(function* <C extends BaseColumns & Columns>(
  { name, task, steps, actor, columns, learningRateShares }: Experience<C>,
  { phase, gamma, lambda }: GraphUpdate<C>,
  { graph, maxSteps }: { readonly graph: EnvGraph; readonly maxSteps: number },
  parameters: ParameterLayout,
  { slots }: Starts,
) {
  const common = { name, task, steps, layout: parameters }
  const stored = storedColumns(columns)
  const learned = task.logLoss ? withTotalLoss(phase) : phase
  return {
    rollout: yield* build(() => rolloutSpec({ ...common, actor, graph, maxSteps, slots, columns: stored })),
    update: yield* build(() => updateSpec({ ...common, columns, phase: learned, gamma, lambda, learningRateShares })),
  }
})

/** The rollouts of a learner, each of which one program plays as a whole. */
interface GraphPlaying {
  readonly steps: number
  readonly numEnvs: number
  readonly seed: number
  readonly noiseRepeat: number
  readonly rollout: Program
  readonly starts: Starts
  /** The least number of steps of an episode. */
  readonly shortest: number
  /** The states in which later episodes begin, and the noise of all steps. Both are inputs of the program. */
  readonly rings: Float32Array
  readonly noise: Float32Array
  readonly episodes: ReturnType<typeof makeLog>
  /** The number of episodes of each env that ended in the last rollout. */
  readonly ended: Int32Array
}

const playingOf = <C extends Columns>(
  { task, steps, noiseRepeat }: Experience<C>,
  rollout: Program,
  starts: Starts,
  { shortest }: EnvGraph,
): GraphPlaying => {
  const { numEnvs, seed } = task
  rollout.feeds[indicesFeed].forEach((_, t, feed) => (feed[t] = t))
  return {
    steps,
    numEnvs,
    seed,
    noiseRepeat,
    rollout,
    starts,
    shortest,
    rings: floatsOf(rollout.feeds, "starts"),
    noise: floatsOf(rollout.feeds, "noise"),
    episodes: makeLog(numEnvs),
    ended: new Int32Array(numEnvs),
  }
}

/** Plays a rollout. Returns the number of env steps. */
const play = Effect.fnUntraced(function* (
  playing: GraphPlaying,
  iteration: number,
): Effect.fn.Return<number, LearnerError> {
  drawNoise(playing, iteration)
  yield* playing.rollout.run
  yield* attempt(() => logEpisodes(playing, iteration), LearningError)
  return playing.steps * playing.numEnvs
})

/** Fills the noise of all steps with the numbers that `makeRollout` draws for them. */
const drawNoise = ({ steps, seed, noiseRepeat, noise }: GraphPlaying, iteration: number): void => {
  if (noiseRepeat === 1) return stream(seed, "act", iteration).fillUniform(noise)
  const size = noise.length / steps
  for (let t = 0; t < steps; t++) {
    const draw = Math.floor((iteration * steps + t) / noiseRepeat)
    stream(seed, "act", draw).fillUniform(noise, t * size, (t + 1) * size)
  }
}

/** Adds the episodes that ended in the last rollout to the log, and draws the states in which later ones begin. */
const logEpisodes = (playing: GraphPlaying, iteration: number): void => {
  const { steps, numEnvs, rollout, starts, shortest, rings, episodes, ended } = playing
  const { lengths, returns, terminated, truncated } = rollout.results
  ended.fill(0)
  for (let at = 0; at < steps * numEnvs; at++) {
    if (lengths[at] === 0) continue
    const env = at % numEnvs
    if (++ended[env] > starts.slots) {
      const message = `${ended[env]} episodes ended within ${steps} steps, but the env's graph form names ${shortest} as the least number of steps of an episode`
      throw new LearningError({ message })
    }
    const row = episodes.next()
    episodes.envs[row] = env
    episodes.episodes[row] = starts.episodes[env]
    episodes.returns[row] = returns[at]
    episodes.lengths[row] = lengths[at]
    episodes.steps[row] = iteration * steps + Math.floor(at / numEnvs) + 1
    episodes.terminated[row] = terminated[at]
    episodes.truncated[row] = truncated[at]
    starts.begin(rings, env)
  }
}

/** The updates of a learner, each of which one program computes as a whole. */
interface GraphLearning {
  readonly seed: number
  /** The number of iterations of the run. */
  readonly iterations: number
  readonly update: Program
  readonly learningRate: Schedule
  readonly epochs: number
  readonly scheduledInputs: ScheduledInputs | undefined
  /** The order of the rows in an epoch. */
  readonly order: Int32Array
  readonly averages: Averages
}

const learningOf = <C extends Columns>(
  { task, steps }: Experience<C>,
  { phase, learningRate }: Pick<GraphUpdate<C>, "phase" | "learningRate">,
  update: Program,
): GraphLearning => {
  const rows = steps * task.numEnvs
  update.feeds.row.forEach((_, row, feed) => (feed[row] = row))
  return {
    seed: task.seed,
    iterations: Math.ceil(task.totalSteps / rows),
    update,
    learningRate,
    epochs: phase.epochs,
    scheduledInputs: phase.scheduledInputs,
    order: new Int32Array(rows),
    averages: new Averages(),
  }
}

/** Learns from the last rollout. */
const learn = Effect.fnUntraced(function* (
  learning: GraphLearning,
  position: Position,
): Effect.fn.Return<void, LearnerError> {
  const { update, averages } = learning
  const { iteration } = position
  const progress = iteration / learning.iterations
  const rate = steered(position, learning.learningRate(progress))
  shuffle(learning, iteration)
  fillScheduled(learning.scheduledInputs, update.feeds, progress)
  update.feeds.learningRate[0] = rate
  averages.add("charts/learning_rate", rate)
  yield* update.run
  averages.addResults(update)
  yield* averages.checkFinite(`update ${iteration + 1}`)
})

/** Draws the order of the rows for each epoch. */
const shuffle = ({ seed, update, epochs, order }: GraphLearning, iteration: number): void => {
  const random = stream(seed, "minibatches", iteration)
  const indices = update.feeds[indicesFeed]
  for (let epoch = 0; epoch < epochs; epoch++) {
    random.permutation(order)
    indices.set(order, epoch * order.length)
  }
}

const isNoEnvState = (state: string): boolean => !envStates.some((other) => other === state)

const refuse = (name: string) => (key: string, problem: string) =>
  Effect.fail(ConfigError.at({ source: name, prefix: ["algorithm"] }, key, problem))

/**
 * Returns the update in the form that one program can compute. Fails if it has several phases, slices, or returns of
 * its own.
 */
const graphUpdateOf = <C extends Columns>(
  { name, returns }: Experience<C>,
  { phases, learningRate }: RolloutUpdate<C>,
) => {
  const [phase] = phases
  const { slices = 1 } = phase
  if (slices > 1) {
    return refuse(name)("slices", `expected 1 with rollouts "graph", whose rows stay in the graph, found ${slices}`)
  }
  if (phases.length > 1 || !("loss" in phase) || typeof returns === "function")
    return refuse(name)("rollouts", `expected "envs": ${name} has an update of several parts, or returns of its own`)
  return Effect.succeed({ phase, learningRate, gamma: returns.gamma, lambda: returns.lambda })
}

/** Returns the graph form of the task's env. Fails if there is none, or if the actor has parts that need the env itself. */
const formOf = <C extends Columns>({ name, task, actor, exploration, features, freshNoise }: Experience<C>) => {
  const refused = refuse(name)
  const { graph, maxSteps = Infinity } = task
  if (graph === undefined) {
    const envs =
      "CartPole, Pendulum, GridWorld, KeyDoor, ApplePicker, DeepSea and MemoryChain have one, with any time limit, " +
      "and Breakout and SpaceInvaders of MinAtar with stickyActionProb 0"
    return refused("rollouts", `"graph" needs an env with a graph form; ${envs}. Use "envs" for other envs`)
  }
  const { observationSpace, actionSpace } = task
  if (observationSpace._tag !== "Box" || (actionSpace._tag !== "Discrete" && actionSpace._tag !== "Box")) {
    const needs = `"graph" needs observations in a box, and one choice or real numbers as actions`
    return refused("rollouts", `${needs}, found ${display(observationSpace)} and ${display(actionSpace)}`)
  }
  if (actor.memorySize > 0) return refused("lstm", `expected 0 with algorithm.rollouts "graph"`)
  if (freshNoise) return refused("sde", `expected null with algorithm.rollouts "graph"`)
  if (features.length > 0) return refused("rollouts", `expected "envs": ${name} adds parts to the rollout`)
  if (exploration !== undefined) return refused("rollouts", `expected "envs": ${name} explores by a schedule`)
  return Effect.succeed({ graph, maxSteps })
}
