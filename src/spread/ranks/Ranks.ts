/**
 * The service that spreads the slices of minibatches over ranks: processes that compute gradients for a training. A slice is
 * a fixed share of a minibatch, and its result depends only on the program, its inputs and its rows. So the results are the
 * same on any number of ranks. Losing a rank costs time, but changes no results.
 *
 * By default all slices are computed in this process. `hub.ts` spreads them.
 *
 * @example
 * ```ts
 * const ranks = yield* Ranks
 * const sharing = yield* ranks.open(spec, program)
 * yield* sharing.begin // once for each update, when the inputs of its rows are filled
 * yield* sharing.compute(slices, results) // for each minibatch, when the state and the other inputs are set
 * ```
 */
import { Context, Effect } from "effect"
import type { BackendError, Program } from "../../tensor/backend/Backend.ts"
import { indicesFeed } from "../../tensor/graph/Program.ts"
import type { SlicedSpec } from "./SlicedSpec.ts"
import { copyResults } from "./wire.ts"

export type { SlicedSpec } from "./SlicedSpec.ts"

/** Computes the slices of one program. */
export interface Sharing {
  /** Prepares an update: the inputs with the rows of all its minibatches are filled. */
  readonly begin: Effect.Effect<void, BackendError>
  /**
   * Computes the results of slices with the state and the inputs that the program has now. Each slice is the list of its
   * rows' indices, and its results are written into the array at the same position of `into`, in the order of the
   * program's results.
   */
  readonly compute: (
    slices: ReadonlyArray<Int32Array>,
    into: ReadonlyArray<Float32Array>,
  ) => Effect.Effect<void, BackendError>
}

export interface RanksService {
  /** Returns the functions that compute slices of this program. */
  readonly open: (spec: SlicedSpec, program: Program) => Effect.Effect<Sharing>
}

/** Computes one slice in this process. */
export const computeHere = (
  program: Program,
  slice: Int32Array,
  into: Float32Array,
): Effect.Effect<void, BackendError> =>
  Effect.suspend(() => {
    program.feeds[indicesFeed].set(slice)
    return Effect.map(program.run, () => copyResults(program, into))
  })

/** Computes all slices in this process. */
export const alone: RanksService = {
  open: (_, program) =>
    Effect.succeed({
      begin: Effect.void,
      compute: (slices, into) =>
        Effect.forEach(slices, (slice, at) => computeHere(program, slice, into[at]), { discard: true }),
    }),
}

/** The ranks of this training. By default, this process is the only one. */
export const Ranks = Context.Reference<RanksService>("effect-rl/ranks/Ranks", { defaultValue: () => alone })
