/** Plays the rollouts of a learner that chooses its actions by tree search, and keeps the last ones in memory. */
import type { Program } from "../../../tensor/backend/Backend.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { invalid } from "../../../base/EnvError.ts"
import { sizeOf } from "../../env/Space.ts"
import { gae } from "../../returns/gae.ts"
import { dirichlet } from "../../../base/rng/dirichlet.ts"
import { exp as exponential, log } from "../../../base/rng/Elementary.ts"
import { type Stream, stream } from "../../../base/rng/Rng.ts"
import type { Policy, Task } from "../Learner.ts"
import { type Arrays, arraysOf, f32, feedsOf } from "../Batch.ts"
import { type Steps, waitFor } from "../drive.ts"
import { floatsOf } from "../learnerState.ts"
import type { SearchSettings } from "./fields.ts"
import type { TreeSearch } from "./TreeSearch.ts"

/** The columns that an update reads of each step. */
export type SearchColumns = ReturnType<typeof searchColumns>

export const searchColumns = (task: Task, actions: number) => ({
  observations: f32(sizeOf(task.observationSpace)),
  /** The share of each action in the visits of the search. */
  visits: f32(actions),
  /** The return that the value learns. */
  targets: f32(),
})

export const evaluatorOf = (program: Program) => ({
  program,
  observations: floatsOf(program.feeds, "observations"),
  priors: floatsOf(program.results, "priors"),
  values: floatsOf(program.results, "values"),
})

/** The settings of a rollout. */
export interface SearchRolloutOptions extends Required<SearchSettings> {
  readonly task: Task
  /** The discount factor, which is negative if two players take turns. */
  readonly gamma: number
  /** The λ of the returns that the values learn: 1 learns from the outcomes of episodes alone. */
  readonly lambda: number
  /** The number of steps that each env takes between two updates. */
  readonly nsteps: number
  /** The number of rollouts, from the last one back, that an update learns from. */
  readonly window: number
}

/** The last rollouts of a learner, and the state from which the next one is played. */
interface SearchRollout {
  readonly options: SearchRolloutOptions
  readonly search: TreeSearch
  readonly evaluator: ReturnType<typeof evaluatorOf>
  readonly actions: number
  /** The number of rows of a rollout, and the length of a row of observations. */
  readonly rows: number
  readonly width: number
  /** The window of rollouts, whose arrays are the inputs of the update: rollout i is in part i modulo the window. */
  readonly stored: Arrays<SearchColumns>
  readonly rewards: Float32Array
  readonly values: Float32Array
  readonly terminated: Uint8Array
  readonly truncated: Uint8Array
  readonly truncatedValues: Float32Array
  readonly lastValues: Float32Array
  readonly advantages: Float32Array
  readonly targets: Float32Array
  /** The number of steps of each env's current episode. */
  readonly elapsed: Int32Array
  readonly envActions: Int32Array
  /** The weights of the actions among which one is drawn, and the noise of a root. */
  readonly actionWeights: Float64Array
  readonly noise: Float64Array
}

/** Makes the rollouts, which write their rows to the inputs of the update. */
export const makeSearchRollout = (
  options: SearchRolloutOptions,
  actions: number,
  search: TreeSearch,
  evaluator: ReturnType<typeof evaluatorOf>,
  feeds: Program["feeds"],
): SearchRollout => {
  const { task, nsteps } = options
  const { numEnvs } = task
  const rows = nsteps * numEnvs
  return {
    options,
    search,
    evaluator,
    actions,
    rows,
    width: evaluator.observations.length / numEnvs,
    stored: feedsOf(searchColumns(task, actions), feeds),
    ...arraysOf({ rewards: f32(), values: f32(), truncatedValues: f32(), advantages: f32(), targets: f32() }, rows),
    terminated: new Uint8Array(rows),
    truncated: new Uint8Array(rows),
    lastValues: new Float32Array(numEnvs),
    elapsed: new Int32Array(numEnvs),
    envActions: new Int32Array(numEnvs),
    actionWeights: new Float64Array(actions),
    noise: new Float64Array(actions),
  }
}

/** Plays a rollout, and computes the returns that the values learn. Returns the number of env steps. */
export const playSearchRollout = function* (
  rollout: SearchRollout,
  envs: AnyBatchEnv,
  iteration: number,
): Steps<number> {
  const { options, rows, evaluator, lastValues } = rollout
  const { nsteps, window, task } = options
  const slot = (iteration % window) * rows
  for (let t = 0; t < nsteps; t++) {
    const random = stream(task.seed, "search", iteration, t)
    yield* chooseActions(rollout, envs, random, slot, t)
    const wait = envs.step(rollout.envActions)
    if (wait !== undefined) yield waitFor(wait)
    if (!keepResults(rollout, envs, t)) continue
    evaluator.observations.set(envs.finalObservations)
    yield evaluator.program
    rollout.truncatedValues.set(evaluator.values, t * task.numEnvs)
  }
  evaluator.observations.set(envs.observations)
  yield evaluator.program
  lastValues.set(evaluator.values)
  const { rewards, values, terminated, truncated, truncatedValues, advantages: out, targets } = rollout
  const { gamma, lambda } = options
  gae({ rewards, values, lastValues, terminated, truncated, truncatedValues, gamma, lambda, out, targets })
  rollout.stored.targets.set(targets, slot)
  return rows
}

/** Searches from the states of all envs, keeps the results of the searches, and chooses the actions of step t. */
const chooseActions = function* (
  rollout: SearchRollout,
  envs: AnyBatchEnv,
  random: Stream,
  slot: number,
  t: number,
): Steps<void> {
  const { options, search, actions, stored, values, envActions, elapsed } = rollout
  const { numEnvs } = options.task
  const base = t * numEnvs
  yield* search.run({
    first: 0,
    count: numEnvs,
    stateAt: statesIn(envs),
    randomOf: (env) => random.child("model", env),
    ...(options.noiseShare === 0
      ? {}
      : { mix: (env, priors, from) => mixNoise(rollout, random.child("noise", env), priors, from) }),
  })
  stored.observations.set(envs.observations, (slot + base) * rollout.width)
  for (let env = 0; env < numEnvs; env++) {
    const to = (slot + base + env) * actions
    for (let action = 0; action < actions; action++) {
      stored.visits[to + action] = search.visits[env * actions + action] / options.simulations
    }
    values[base + env] = search.values[env]
    envActions[env] = choose(rollout, env, random.child("action", env))
    elapsed[env]++
  }
}

/** Mixes the priors of the actions that are allowed with noise. */
const mixNoise = ({ options, actions, noise }: SearchRollout, random: Stream, priors: Float64Array, from: number) => {
  const { noiseShare, noiseAlpha } = options
  if (noiseShare === 0) return
  let count = 0
  for (let edge = from; edge < from + actions; edge++) if (priors[edge] >= 0) count++
  dirichlet(random, noiseAlpha, noise, count)
  for (let edge = from, next = 0; edge < from + actions; edge++) {
    if (priors[edge] >= 0) priors[edge] = (1 - noiseShare) * priors[edge] + noiseShare * noise[next++]
  }
}

/** Chooses the action of an env: in proportion to visits^(1/temperature) early in an episode, later the most visited. */
const choose = ({ options, search, actions, elapsed, actionWeights }: SearchRollout, env: number, random: Stream) => {
  const { temperature, temperatureSteps } = options
  if (elapsed[env] >= temperatureSteps) return search.best(env)
  // Divide by the largest number first, so that no power overflows.
  const most = search.visits[env * actions + search.best(env)]
  for (let action = 0; action < actions; action++) {
    const share = search.visits[env * actions + action] / most
    actionWeights[action] = temperature === 1 ? share : exponential(log(share) / temperature)
  }
  return random.categorical(actionWeights)
}

/**
 * Stores the results of step t. Returns whether it truncated an episode, whose final observation must then be
 * evaluated.
 */
const keepResults = (
  { options, rewards, terminated, truncated, elapsed }: SearchRollout,
  envs: AnyBatchEnv,
  t: number,
): boolean => {
  const { numEnvs } = options.task
  const base = t * numEnvs
  rewards.set(envs.rewards, base)
  terminated.set(envs.terminated, base)
  truncated.set(envs.truncated, base)
  let isCut = false
  for (let env = 0; env < numEnvs; env++) {
    if ((envs.terminated[env] | envs.truncated[env]) !== 0) elapsed[env] = 0
    if (envs.truncated[env] !== 0 && envs.terminated[env] === 0) isCut = true
  }
  return isCut
}

/** Searches from the states of a batch without noise, and takes the most visited actions. */
export function* searchIn(
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

/**
 * Returns the function that returns the state of each env in a batch. Throws if the states are in other programs or
 * threads.
 */
const statesIn = (envs: AnyBatchEnv): ((index: number) => unknown) => {
  if (envs.stateAt !== undefined) return envs.stateAt
  throw invalid(envs.id, "a search needs the states of the envs, which are in other threads or processes")
}
