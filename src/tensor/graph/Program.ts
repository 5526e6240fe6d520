import type { Tensor } from "./Tensor.ts"

/**
 * Describes a program for a backend to compile: a graph with named inputs and outputs, and with state (weights,
 * optimiser moments) that stays in the compiled program and is replaced by its `next` value after each run of the graph.
 * Learners and models make such a spec; the compilers `wasm` and `onnx` and the `reference` backend read it.
 */
export interface ProgramSpec {
  /** The name of the program in logs and error messages, such as `ppo.update`. */
  readonly name: string
  /** The inputs by name. Each tensor is an `input` op of the same name. */
  readonly inputs: Readonly<Record<string, Tensor>>
  /**
   * The states by name. Each tensor is a `state` op of the same name. All `next` values are computed from the old
   * states, and then replace them. A state without `next` changes only when the caller writes it.
   */
  readonly state: Readonly<Record<string, StateSpec>>
  readonly outputs: Readonly<Record<string, Tensor>>
  readonly minibatches?: Minibatches
}

export interface StateSpec {
  readonly tensor: Tensor
  readonly next?: Tensor
  /**
   * Whether the state changes rarely; such a state has no `next`. ONNX Runtime then keeps its numbers inside of the loaded
   * model, in the order in which its products read them, so products of a few rows take about half the time. But the
   * model takes more memory, and the first run after each change loads it again. Other backends ignore this.
   */
  readonly frozen?: boolean
  /**
   * Whether the state collects `next` of all minibatches: it has the shape [count, ...next.shape], and iteration k
   * writes row k. The program itself must not read such a state, nor end its minibatches early. Another program of the
   * group reads it, so that values which one program computes in a loop reach the other without passing through
   * JavaScript.
   */
  readonly stacked?: boolean
}

/**
 * Runs the graph `count` times in one call, each time on other rows (a minibatch), and passes the state on to the next
 * iteration.
 *
 * A feed is the array that the caller fills for an input. For an input named in `gathered`, the feed has the shape
 * [rows, ...rest], while the tensor in the graph has the shape [batch, ...rest]: iteration k reads only `batch` rows of
 * the feed. Their indices are the elements from k · batch to (k + 1) · batch − 1 of the feed `indices`, an Int32Array
 * of count · batch elements. All other inputs have the same values in all iterations.
 *
 * The outputs of all iterations are stacked: each result has the shape [count, ...shape]. `continueWhile` is a bool
 * scalar of the graph: the first iteration in which it is false is the last one.
 */
export interface Minibatches {
  readonly rows: number
  readonly batch: number
  readonly count: number
  readonly gathered: ReadonlyArray<string>
  readonly continueWhile?: Tensor
}

/** The name of the feed [count, batch] that lists, for each minibatch, the indices of the rows that it reads. */
export const indicesFeed = "indices"

/** Lists the states that have a next value. */
export const changing = (spec: ProgramSpec): ReadonlyArray<readonly [string, ChangingState]> =>
  Object.entries(spec.state).flatMap(([name, { tensor, next, stacked = false }]) =>
    next === undefined ? [] : [[name, { tensor, next, stacked }] as const],
  )

interface ChangingState {
  readonly tensor: Tensor
  readonly next: Tensor
  readonly stacked: boolean
}

/** Lists the states that collect a tensor over all minibatches, each with this tensor. */
export const stackedStates = (spec: ProgramSpec): ReadonlyArray<readonly [string, Tensor]> =>
  changing(spec).flatMap(([name, { next, stacked }]) => (stacked ? [[name, next] as const] : []))
