import type { Tensor } from "./Tensor.ts"

/**
 * Describes a program for a backend to compile: a graph with named inputs and outputs, and with state (weights, optimiser
 * moments) that stays in the compiled program and is replaced by its `next` value at the end of every run.
 */
export interface ProgramSpec {
  /** The name of the program in logs and error messages, such as `ppo.update`. */
  readonly name: string
  /** The inputs by name. Each tensor is an `input` op of the same name. */
  readonly inputs: Readonly<Record<string, Tensor>>
  /**
   * The states by name. Each tensor is a `state` op of the same name. All `next` values are computed from the old state,
   * then replace it.
   */
  readonly state: Readonly<Record<string, { readonly tensor: Tensor; readonly next?: Tensor }>>
  readonly outputs: Readonly<Record<string, Tensor>>
  readonly minibatches?: Minibatches
}

/**
 * Runs the graph `count` times in one call, each time on other rows (a minibatch), and passes the state on to the next
 * iteration.
 *
 * The feed of an input named in `gathered` has the shape [rows, ...rest], while its tensor in the graph has the shape
 * [batch, ...rest]: iteration k reads the rows whose indices are the elements from k · batch to (k + 1) · batch − 1 of
 * the feed `indices`, an Int32Array of count · batch elements. All iterations read the same values of an input that is
 * not gathered. The outputs of all iterations are stacked: each result has the shape [count, ...shape]. `continueWhile`
 * is a bool scalar of the graph: the first iteration in which it is false is the last one.
 */
export interface Minibatches {
  readonly rows: number
  readonly batch: number
  readonly count: number
  readonly gathered: ReadonlyArray<string>
  readonly continueWhile?: Tensor
}

/** The name of the feed with the indices of the rows of all minibatches, one row of `batch` indices per iteration. */
export const indicesFeed = "indices"
