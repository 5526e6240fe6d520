import type { Tensor } from "./Tensor.ts"

/**
 * What a backend compiles: a graph with named ways in and out, and state that stays with the compiled program
 * (weights, optimiser moments) and is replaced by `next` at the end of every run.
 */
export interface ProgramSpec {
  /** For messages: `ppo.update`. */
  readonly name: string
  /** Each an `input` op of that name. */
  readonly inputs: Readonly<Record<string, Tensor>>
  /** Each a `state` op of that name. All `next` values are computed from the old state, then swapped in together. */
  readonly state: Readonly<Record<string, { readonly tensor: Tensor; readonly next?: Tensor }>>
  readonly outputs: Readonly<Record<string, Tensor>>
  readonly minibatches?: Minibatches
}

/**
 * Run the graph once for each row of an index matrix, in one call, threading the state through.
 *
 * An input named in `gathered` is fed whole, as [rows, ...rest], while the graph sees [batch, ...rest]:
 * iteration k sees the rows `indices[k * batch ..< (k + 1) * batch]` of the Int32Array feed `indices` (count × batch).
 * Inputs that are not gathered are the same for all iterations. Each output is stacked to [count, ...shape].
 * With `continueWhile` (a bool scalar of the graph), no iteration follows one where it is false; that one counts.
 */
export interface Minibatches {
  readonly rows: number
  readonly batch: number
  readonly count: number
  readonly gathered: ReadonlyArray<string>
  readonly continueWhile?: Tensor
}

/** The name of the feed that holds the index matrix of a program with minibatches. */
export const indicesFeed = "indices"
