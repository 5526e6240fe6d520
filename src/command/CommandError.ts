/** Defines the error of the command, and the documentation page that belongs to an error. */
import { Schema } from "effect"

/** Reports that a command cannot do its work. The message is one line for people. */
export class CommandError extends Schema.TaggedError<CommandError>()("CommandError", {
  /**
   * `usage` if the user typed the command wrongly, so that its exit code is 2; `run` if a run of a sweep or of a study ended
   * without a result; `failed` in all other cases.
   */
  reason: Schema.Literals(["usage", "run", "failed"]),
  message: Schema.String,
}) {
  static usage(message: string): CommandError {
    return new CommandError({ reason: "usage", message })
  }

  static run(message: string): CommandError {
    return new CommandError({ reason: "run", message })
  }

  static failed(message: string): CommandError {
    return new CommandError({ reason: "failed", message })
  }
}

/** Tells whether a run of a sweep or of a study ended without a result. */
export const isRunError = (error: unknown): error is CommandError & { readonly reason: "run" } =>
  error instanceof CommandError && error.reason === "run"
