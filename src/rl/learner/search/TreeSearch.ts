/**
 * Searches trees of an env's future from several states at once, as AlphaZero does (Silver et al. 2018, "A general
 * reinforcement learning algorithm that masters chess, shogi, and Go through self-play"). The env's own functions are the
 * model; a network evaluates the leaves of all trees together, in one call for each simulation.
 */
import { type Env, rowSpaceOf } from "../../env/Env.ts"
import { invalid } from "../../../base/EnvError.ts"
import { maskWriter } from "../../env/internal/rows.ts"
import { writerOf } from "../../env/internal/values.ts"
import { sizeOf } from "../../env/Space.ts"
import { log } from "../../../base/rng/Elementary.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import type { Awaited, Steps } from "../drive.ts"

/** The network that evaluates states: a program with its arrays, which have a row for each tree. */
export interface Evaluator {
  /** Computes `priors` and `values` from `observations`. */
  readonly program: Awaited
  /** The observations [rows, size], with action masks if the env has them. */
  readonly observations: Float32Array
  /** The probability of each action [rows, actions]. An action that the mask forbids is never tried. */
  readonly priors: Float32Array
  /** The value of each state, for the player whose turn it is. */
  readonly values: Float32Array
}

export interface SearchOptions {
  /** The env whose steps are searched. Its actions must be choices. */
  readonly env: Env
  /** The number of trees. */
  readonly rows: number
  /** The number of simulations of each search, each of which adds a state to each tree. */
  readonly simulations: number
  /** The discount factor. It is negative if two players take turns, because the next state's value is the opponent's. */
  readonly gamma: number
  /** The weight of the priors, c_init. */
  readonly exploration: number
  /** The number of visits after which the weight of the priors begins to grow, c_base. */
  readonly explorationBase: number
}

/** The roots of a search: a state for each row from `first` to `first + count` − 1. */
export interface Roots {
  readonly first: number
  readonly count: number
  readonly stateAt: (row: number) => unknown
  /** Returns the stream of the model's own randomness in the tree of a row. */
  readonly randomOf: (row: number) => Stream
  /** Changes the priors of a root, such as by noise: those of the actions that are allowed, from index `from` on. */
  readonly mix?: (row: number, priors: Float64Array, from: number) => void
}

export interface TreeSearch {
  /** The number of visits of each action at the roots, [rows, actions]. */
  readonly visits: Int32Array
  /** The mean return of the simulations from each root. */
  readonly values: Float64Array
  /** Searches from these states. `drive` runs it. */
  readonly run: (roots: Roots) => Steps<void>
  /** Returns the action of a row that was visited most; the first of several. */
  readonly best: (row: number) => number
}

/** The prior of an action that is forbidden. */
const forbidden = -1

/** The number of random words reserved for each state of a tree. */
const wordsPerState = 65_536

/**
 * The trees of a search. Their nodes are states; node 0 of each is its root. Node k of row r has the index r · size + k in the
 * arrays, and its edge (action) a the index node · actions + a.
 */
interface Trees {
  readonly evaluator: Evaluator
  readonly options: SearchOptions
  /**
   * The number of actions of each state, the number of nodes of each tree, and the length of a row of the evaluator's
   * input.
   */
  readonly actions: number
  readonly size: number
  readonly width: number
  /** The length of an observation; in a row, the action mask follows it. */
  readonly observed: number
  readonly writeObservation: ReturnType<typeof writerOf>
  readonly writeMask: ReturnType<typeof maskWriter>
  readonly states: Array<unknown>
  /** The edge that leads to each node. */
  readonly parents: Int32Array
  readonly rewards: Float64Array
  /** 1 for states in which the episode is over, whose value is in `ends`. */
  readonly isEnd: Uint8Array
  readonly ends: Float64Array
  /** The number of simulations that passed through each node, including the one that added it. */
  readonly passed: Int32Array
  /** The node that each edge leads to; −1 before it was taken. */
  readonly children: Int32Array
  readonly priors: Float64Array
  readonly visits: Int32Array
  readonly totals: Float64Array
  /** The leaf of each row's current simulation. */
  readonly leaves: Int32Array
  readonly randoms: Array<Stream>
  readonly rootVisits: Int32Array
  readonly rootValues: Float64Array
}

const makeTrees = (evaluator: Evaluator, options: SearchOptions): Trees => {
  const { env, rows, simulations } = options
  const actions = evaluator.priors.length / rows
  const size = simulations + 1
  const nodes = rows * size
  const edges = nodes * actions
  return {
    evaluator,
    options,
    actions,
    size,
    width: sizeOf(rowSpaceOf(env)),
    observed: sizeOf(env.observationSpace),
    writeObservation: writerOf(env.observationSpace, "observation"),
    writeMask: maskWriter(env),
    states: new Array<unknown>(nodes),
    parents: new Int32Array(nodes),
    rewards: new Float64Array(nodes),
    isEnd: new Uint8Array(nodes),
    ends: new Float64Array(nodes),
    passed: new Int32Array(nodes),
    children: new Int32Array(edges),
    priors: new Float64Array(edges),
    visits: new Int32Array(edges),
    totals: new Float64Array(edges),
    leaves: new Int32Array(rows),
    randoms: new Array<Stream>(rows),
    rootVisits: new Int32Array(rows * actions),
    rootValues: new Float64Array(rows),
  }
}

/**
 * Makes a search. A simulation goes down the tree from the root, in each state s to the action a with the largest
 *
 *     Q(s, a) + c(s) P(s, a) √N(s) / (1 + N(s, a)),    c(s) = log((1 + N(s) + c_base) / c_base) + c_init,
 *
 * with the prior P, the mean return Q of the simulations through the action (0 before the first), their number N(s, a), and
 * N(s) = 1 + Σ N(s, a). At the first action that was never taken it steps the env, evaluates the new state, and adds
 * r + γ v to the returns of all actions on the way. The env steps once for each action of a tree: of an env with chance, the
 * search sees one outcome of each action.
 *
 * @example
 * ```ts
 * import { Learner, Rng, TicTacToe } from "effect-rl"
 *
 * const moveOf = function* (evaluator: Learner.Evaluator, state: Int32Array): Learner.Steps<number> {
 *   const weights = { exploration: 1.25, explorationBase: 19_652 }
 *   const search = Learner.treeSearch(evaluator, { env: TicTacToe.selfPlay, rows: 1, simulations: 50, gamma: -1, ...weights })
 *   yield* search.run({ first: 0, count: 1, stateAt: () => state, randomOf: () => Rng.stream(1) })
 *   return search.best(0)
 * }
 * ```
 */
export const treeSearch = (evaluator: Evaluator, options: SearchOptions): TreeSearch => {
  const trees = makeTrees(evaluator, options)
  const { rootVisits, rootValues } = trees
  return {
    visits: rootVisits,
    values: rootValues,
    run: (roots) => search(trees, roots),
    best: (row) => bestOf(trees, row),
  }
}

/** Searches from these states: evaluates the roots, then the leaves of one simulation after another. */
const search = function* (trees: Trees, roots: Roots): Steps<void> {
  const { evaluator, options, actions, size, leaves, visits, rootVisits, rootValues } = trees
  const { first, count } = roots
  const end = first + count
  plant(trees, roots)
  yield evaluator.program
  for (let row = first; row < end; row++) {
    open(trees, row, row * size)
    roots.mix?.(row, trees.priors, row * size * actions)
    rootValues[row] = 0
  }
  for (let simulation = 1; simulation <= options.simulations; simulation++) {
    for (let row = first; row < end; row++) leaves[row] = descend(trees, row, simulation)
    yield evaluator.program
    for (let row = first; row < end; row++) backUp(trees, row, leaves[row], finishLeaf(trees, row, leaves[row]))
  }
  for (let row = first; row < end; row++) {
    rootValues[row] /= options.simulations
    const from = row * size * actions
    for (let action = 0; action < actions; action++) rootVisits[row * actions + action] = visits[from + action]
  }
}

/** Begins new trees, and writes the observations of their roots to the evaluator's input. */
const plant = (trees: Trees, { first, count, stateAt, randomOf }: Roots): void => {
  for (let row = first; row < first + count; row++) {
    const root = row * trees.size
    trees.states[root] = stateAt(row)
    trees.isEnd[root] = 0
    trees.randoms[row] = randomOf(row)
    observe(trees, row, root, false)
  }
}

/** Writes the observation of a node to its row of the evaluator's input. */
const observe = (trees: Trees, row: number, node: number, isOver: boolean): void => {
  const { evaluator, width, observed, writeObservation, writeMask } = trees
  const { env } = trees.options
  const state = trees.states[node]
  const problem =
    writeObservation(env.observe(state), evaluator.observations, row * width) ??
    writeMask?.(state, isOver, evaluator.observations, row * width + observed)
  if (problem !== undefined) throw invalid(env.id, `${problem}, in a search`)
}

/** Opens a node that was evaluated: its actions get their priors. */
const open = (trees: Trees, row: number, node: number): void => {
  const { evaluator, actions, writeMask, priors, children, visits, totals } = trees
  trees.passed[node] = 1
  const from = node * actions
  const maskAt = row * trees.width + trees.observed
  for (let action = 0; action < actions; action++) {
    const isAllowed = writeMask === undefined || evaluator.observations[maskAt + action] !== 0
    priors[from + action] = isAllowed ? evaluator.priors[row * actions + action] : forbidden
    children[from + action] = -1
    visits[from + action] = 0
    totals[from + action] = 0
  }
}

/** Returns the edge of a node with the largest score. */
const chosen = (trees: Trees, node: number): number => {
  const { actions, priors, visits, totals } = trees
  const { exploration, explorationBase } = trees.options
  const from = node * actions
  const count = trees.passed[node]
  const weight = (log((1 + count + explorationBase) / explorationBase) + exploration) * Math.sqrt(count)
  let best = -1
  let highest = -Infinity
  for (let edge = from; edge < from + actions; edge++) {
    if (priors[edge] === forbidden) continue
    const taken = visits[edge]
    const score = (taken === 0 ? 0 : totals[edge] / taken) + (weight * priors[edge]) / (1 + taken)
    if (best < 0 || score > highest) {
      highest = score
      best = edge
    }
  }
  return best
}

/** Goes down the tree of a row, and adds the state that it comes to as node number `added`; returns the leaf. */
const descend = (trees: Trees, row: number, added: number): number => {
  const { isEnd, children, size } = trees
  let node = row * size
  while (isEnd[node] === 0) {
    const edge = chosen(trees, node)
    if (children[edge] < 0) return grow(trees, row, node, edge, added)
    node = children[edge]
  }
  return node
}

/** Steps the env along an edge, and adds the new state as node number `added`; returns that node. */
const grow = (trees: Trees, row: number, node: number, edge: number, added: number): number => {
  const { options, actions, states, isEnd, ends } = trees
  const leaf = row * trees.size + added
  const random = trees.randoms[row]
  random.position = added * wordsPerState
  const { state, reward, terminated, truncated } = options.env.step(states[node], edge - node * actions, random)
  states[leaf] = state
  trees.parents[leaf] = edge
  trees.rewards[leaf] = reward
  trees.children[edge] = leaf
  // If the env truncates the episode here, the state's value is evaluated once, by the network.
  isEnd[leaf] = terminated || truncated === true ? 1 : 0
  ends[leaf] = terminated ? 0 : NaN
  if (!terminated) observe(trees, row, leaf, truncated === true)
  return leaf
}

/** Returns the value of a leaf after the evaluation, and opens it unless its episode is over. */
const finishLeaf = (trees: Trees, row: number, leaf: number): number => {
  const { evaluator, isEnd, ends } = trees
  if (isEnd[leaf] === 0) {
    open(trees, row, leaf)
    return evaluator.values[row]
  }
  if (Number.isNaN(ends[leaf])) ends[leaf] = evaluator.values[row]
  return ends[leaf]
}

/** Adds the return of a simulation to all edges between its leaf and the root. */
const backUp = (trees: Trees, row: number, leaf: number, value: number): void => {
  const { actions, parents, rewards, visits, totals, passed } = trees
  const { gamma } = trees.options
  const root = row * trees.size
  let total = value
  for (let node = leaf; node !== root;) {
    const edge = parents[node]
    total = rewards[node] + gamma * total
    visits[edge]++
    totals[edge] += total
    node = Math.floor(edge / actions)
    passed[node]++
  }
  trees.rootValues[row] += total
}

/** Returns the action of a row that was visited most; the first of several. */
const bestOf = ({ actions, rootVisits }: Trees, row: number): number => {
  let best = 0
  for (let action = 1; action < actions; action++) {
    if (rootVisits[row * actions + action] > rootVisits[row * actions + best]) best = action
  }
  return best
}
