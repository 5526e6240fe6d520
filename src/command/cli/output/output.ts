/** Writes the results and messages of the `effect` command. */
import { type Console, Context, Effect } from "effect"
import { harmless } from "../../../base/text/text.ts"
import { CommandError } from "../../CommandError.ts"

/** The streams of the command: results go to `stdout`; progress, warnings and errors go to `stderr`. */
export interface Output {
  readonly stdout: (text: string) => Effect.Effect<void>
  readonly stderr: (text: string) => void
}

/** Writes to stdout. Ignores the error of a closed pipe: a reader such as `head` may have read enough. */
const toStdout = (text: string): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const ignore = (): void => {}
    process.stdout.once("error", ignore)
    process.stdout.write(text, () => {
      // Keep the listener until the error event, which comes after this callback.
      setImmediate(() => process.stdout.off("error", ignore))
      resume(Effect.void)
    })
  })

/** The streams of this process by default; tests provide others. */
export const Output = Context.Reference<Output>("effect-rl/cli/Output", {
  defaultValue: () => ({
    stdout: toStdout,
    stderr: (text) => void process.stderr.write(text),
  }),
})

/** Writes a text to stdout, without adding a line feed. Characters that control the terminal are replaced. */
export const writeOut = (text: string): Effect.Effect<void> =>
  Effect.flatMap(Output, ({ stdout }) => stdout(harmless(text)))

const escapeOf = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/** Writes a value to stdout, as one line of JSON. */
export const writeJson = (value: unknown): Effect.Effect<void> =>
  writeOut(`${JSON.stringify(value).replace(/[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, escapeOf)}\n`)

/** Writes a text to stderr, without adding a line feed. Characters that control the terminal are replaced. */
export const writeError = (text: string): Effect.Effect<void> =>
  Effect.map(Output, ({ stderr }) => stderr(harmless(text)))

/**
 * Makes a console that works like another, but replaces characters that could control the terminal. Effect's logger uses it.
 */
export const harmlessConsole = (console: Console.Console): Console.Console => {
  const cleaned = (parts: ReadonlyArray<unknown>) =>
    parts.map((part) => (typeof part === "string" ? harmless(part) : part))
  return Object.assign(Object.create(console), {
    log: (...parts: ReadonlyArray<unknown>) => console.log(...cleaned(parts)),
    error: (...parts: ReadonlyArray<unknown>) => console.error(...cleaned(parts)),
  })
}

export const usageError = (message: string): CommandError => CommandError.usage(message)
