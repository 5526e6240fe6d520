import { Context, Effect } from "effect"

/** Where the command writes: results to `stdout`, what is about them to `stderr`. */
export interface Output {
  readonly stdout: (text: string) => Effect.Effect<void>
  readonly stderr: (text: string) => void
}

/** A reader may have seen enough and be gone (`effect runs | head`), which is no error of ours. */
const toStdout = (text: string): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const ignore = (): void => {}
    process.stdout.once("error", ignore)
    process.stdout.write(text, () => {
      // The error event comes after this callback.
      setImmediate(() => process.stdout.off("error", ignore))
      resume(Effect.void)
    })
  })

/** The streams of this process, unless somebody provides others. */
export const Output = Context.Reference<Output>("effect-rl/cli/Output", {
  defaultValue: () => ({
    stdout: toStdout,
    stderr: (text) => void process.stderr.write(text),
  }),
})

/** Writes a text, which ends its lines itself, to stdout. */
export const writeOut = (text: string): Effect.Effect<void> => Effect.flatMap(Output, ({ stdout }) => stdout(text))

/** Writes a text, which ends its lines itself, to stderr. */
export const writeError = (text: string): Effect.Effect<void> => Effect.map(Output, ({ stderr }) => stderr(text))
