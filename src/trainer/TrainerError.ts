import { Schema } from "effect"

/**
 * Reports that a trainer, or one of its runs, cannot continue. The message is one line that names the folder, file or setting
 * and the problem. If the user can do something about it, the message also tells what to do before the trainer is resumed.
 */
export class TrainerError extends Schema.TaggedError<TrainerError>()("TrainerError", {
  message: Schema.String,
  /** The reason, if the trainer itself has to react to the error: */
  reason: Schema.optionalKey(
    Schema.Literals([
      /** The folder of the run was deleted or replaced, so there is nothing to try again. */
      "gone",
      /** The rollouts of a step cannot be written now, or are not the ones that were expected. */
      "rollouts",
      /** Other ranks did not join a meeting before the deadline, so they may be lost. */
      "absent",
      /** No rank has set a value of the ranks' store before the deadline. */
      "late",
      /** The trainer ends on all ranks, because the machine or the master keeps it from working. It can be resumed. */
      "stopped",
    ]),
  ),
  /** The system's error code of a disk failure, which `isMachineFault` examines. */
  code: Schema.optionalKey(Schema.String),
}) {
  /** Makes the error of a problem with a run, folder or file (`place`), whose name begins the message. */
  static at(place: string, problem: string): TrainerError {
    return new TrainerError({ message: `${place}: ${problem}` })
  }

  /** Converts the error of one of the trainer's parts. */
  static from({ message }: { readonly message: string }): TrainerError {
    return new TrainerError({ message })
  }
}

/** Tells whether an error ends the whole trainer, on all ranks. */
export const isStopped = (error: unknown): boolean => error instanceof TrainerError && error.reason === "stopped"

/** Tells whether an operation failed because the folder of its run was deleted or replaced. */
export const isGone = (error: unknown): boolean => error instanceof TrainerError && error.reason === "gone"
