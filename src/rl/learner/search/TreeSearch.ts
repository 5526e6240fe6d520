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

/** The number of words of its stream between the draws of a tree's states. */
const wordsPerState = 65_536

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
  const { env, rows, simulations, gamma, exploration, explorationBase } = options
  const actions = evaluator.priors.length / rows
  const width = sizeOf(rowSpaceOf(env))
  const observed = sizeOf(env.observationSpace)
  const writeObservation = writerOf(env.observationSpace, "observation")
  const writeMask = maskWriter(env)

  // A tree's nodes are states; node 0 is its root. Node k of row r has the index r · size + k in the arrays, and its edge
  // (action) a the index node · actions + a.
  const size = simulations + 1
  const states = new Array<unknown>(rows * size)
  const parents = new Int32Array(rows * size)
  const rewards = new Float64Array(rows * size)
  /** 1 for states in which the episode is over, whose value is in `ends`. */
  const isEnd = new Uint8Array(rows * size)
  const ends = new Float64Array(rows * size)
  const children = new Int32Array(rows * size * actions)
  const priors = new Float64Array(rows * size * actions)
  const visits = new Int32Array(rows * size * actions)
  const totals = new Float64Array(rows * size * actions)
  const passed = new Int32Array(rows * size)
  /** The leaf of each row's current simulation. */
  const leaves = new Int32Array(rows)
  const randoms = new Array<Stream>(rows)
  const rootVisits = new Int32Array(rows * actions)
  const rootValues = new Float64Array(rows)

  /** Writes the observation of a node to its row of the evaluator's input. */
  const observe = (row: number, node: number, isOver: boolean): void => {
    const state = states[node]
    const problem =
      writeObservation(env.observe(state), evaluator.observations, row * width) ??
      writeMask?.(state, isOver, evaluator.observations, row * width + observed)
    if (problem !== undefined) throw invalid(env.id, `${problem}, in a search`)
  }

  /** Opens a node that was evaluated: its actions get their priors. */
  const open = (row: number, node: number): void => {
    passed[node] = 1
    const from = node * actions
    const maskAt = row * width + observed
    for (let action = 0; action < actions; action++) {
      const isAllowed = writeMask === undefined || evaluator.observations[maskAt + action] !== 0
      priors[from + action] = isAllowed ? evaluator.priors[row * actions + action] : forbidden
      children[from + action] = -1
      visits[from + action] = 0
      totals[from + action] = 0
    }
  }

  /** Returns the edge of a node with the largest score. */
  const chosen = (node: number): number => {
    const from = node * actions
    const count = passed[node]
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
  const descend = (row: number, added: number): number => {
    let node = row * size
    while (isEnd[node] === 0) {
      const edge = chosen(node)
      if (children[edge] >= 0) {
        node = children[edge]
        continue
      }
      const leaf = row * size + added
      const random = randoms[row]
      random.position = added * wordsPerState
      const { state, reward, terminated, truncated } = env.step(states[node], edge - node * actions, random)
      states[leaf] = state
      parents[leaf] = edge
      rewards[leaf] = reward
      children[edge] = leaf
      // The value of a state in which the env cuts an episode off is evaluated, once.
      isEnd[leaf] = terminated || truncated === true ? 1 : 0
      ends[leaf] = terminated ? 0 : NaN
      if (!terminated) observe(row, leaf, truncated === true)
      return leaf
    }
    return node
  }

  /** Adds the return of a simulation to all edges between its leaf and the root. */
  const backUp = (row: number, leaf: number, value: number): void => {
    const root = row * size
    let total = value
    for (let node = leaf; node !== root;) {
      const edge = parents[node]
      total = rewards[node] + gamma * total
      visits[edge]++
      totals[edge] += total
      node = Math.floor(edge / actions)
      passed[node]++
    }
    rootValues[row] += total
  }

  return {
    visits: rootVisits,
    values: rootValues,
    run: function* ({ first, count, stateAt, randomOf, mix }: Roots): Steps<void> {
      const end = first + count
      for (let row = first; row < end; row++) {
        const root = row * size
        states[root] = stateAt(row)
        isEnd[root] = 0
        randoms[row] = randomOf(row)
        observe(row, root, false)
      }
      yield evaluator.program
      for (let row = first; row < end; row++) {
        open(row, row * size)
        mix?.(row, priors, row * size * actions)
        rootValues[row] = 0
      }
      for (let simulation = 1; simulation <= simulations; simulation++) {
        for (let row = first; row < end; row++) leaves[row] = descend(row, simulation)
        yield evaluator.program
        for (let row = first; row < end; row++) {
          const leaf = leaves[row]
          if (isEnd[leaf] === 0) open(row, leaf)
          else if (Number.isNaN(ends[leaf])) ends[leaf] = evaluator.values[row]
          backUp(row, leaf, isEnd[leaf] === 0 ? evaluator.values[row] : ends[leaf])
        }
      }
      for (let row = first; row < end; row++) {
        rootValues[row] /= simulations
        const from = row * size * actions
        for (let action = 0; action < actions; action++) rootVisits[row * actions + action] = visits[from + action]
      }
    },
    best: (row) => {
      let best = 0
      for (let action = 1; action < actions; action++) {
        if (rootVisits[row * actions + action] > rootVisits[row * actions + best]) best = action
      }
      return best
    },
  }
}
