/** Lets a command that works in a temporary folder print addresses in a bucket instead of paths in that folder. */
import { Effect } from "effect"
import { messageOf } from "../../../base/text/text.ts"
import { Output, usageError } from "../output/output.ts"
import { CommandError } from "../../CommandError.ts"

/**
 * Runs `body`. In everything that it prints, and in the message of its error, the path of the folder is replaced by the
 * address.
 */
export const printingAddresses = <A, E, R>(folder: string, address: string, body: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const output = yield* Output
    const addressed = (text: string): string => text.replaceAll(folder, address)
    return yield* body.pipe(
      Effect.provideService(Output, {
        stdout: (text) => output.stdout(addressed(text)),
        stderr: (text) => output.stderr(addressed(text)),
      }),
      Effect.mapError((error) => {
        const message = messageOf(error)
        if (!message.includes(folder)) return error
        return error instanceof CommandError && error.reason === "usage"
          ? usageError(addressed(message))
          : CommandError.failed(addressed(message))
      }),
    )
  })
