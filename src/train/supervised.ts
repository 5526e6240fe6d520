import { Cause, Effect, Exit } from "effect"

export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** A loop of a training and what is to be done at its end. */
export interface Supervised<E> {
  readonly loop: Effect.Effect<void, E>
  /** Whether the training is over, and its last checkpoint holds all of it. */
  readonly isSaved: () => boolean
  /** Records the end: an interruption saves a checkpoint first. */
  readonly conclude: (end: Exit.Exit<void, E>) => Effect.Effect<void, E>
}

/**
 * Runs a training's loop to whatever end it comes to, and records that end. To be run uninterruptibly; `restore` is for the
 * loop, so that nothing comes between its end and what follows.
 */
export const supervised = <E>({ loop, isSaved, conclude }: Supervised<E>, restore: Restore): Effect.Effect<void, E> =>
  Effect.flatMap(Effect.exit(restore(loop)), (exit) => {
    // An interruption after the last checkpoint comes too late: there is nothing left to interrupt.
    const isFinished = Exit.isSuccess(exit) || (Cause.hasInterruptsOnly(exit.cause) && isSaved())
    const end = isFinished ? Exit.void : exit
    return Effect.andThen(conclude(end), end)
  })
