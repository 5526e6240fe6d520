/** Asks the user a yes-or-no question on the terminal. */
import { createInterface } from "node:readline"
import { Context, Effect } from "effect"

export interface Asking {
  /** Tells whether somebody can answer. Nobody can without a terminal, or where the variable CI is set. */
  readonly isPossible: () => boolean
  /** Shows a text and waits for a line. Returns true only for `y` and `yes`. */
  readonly ask: (text: string) => Effect.Effect<boolean>
}

const askOnTerminal = (text: string): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    // Even with `terminal: false`, the system turns Ctrl-C into a signal, which interrupts the command.
    const lines = createInterface({ input: process.stdin, terminal: false })
    process.stderr.write(text)
    let answer = ""
    lines.once("line", (line) => {
      answer = line
      lines.close()
    })
    lines.once("close", () => {
      process.stdin.pause()
      resume(Effect.succeed(/^y(es)?$/i.test(answer.trim())))
    })
    return Effect.sync(() => lines.close())
  })

/** Asks on the terminal of this process by default; tests provide another way. */
export const Asking = Context.Reference<Asking>("effect-rl/cli/Asking", {
  defaultValue: () => ({
    isPossible: () => process.stdin.isTTY === true && process.stderr.isTTY === true && (process.env.CI ?? "") === "",
    ask: askOnTerminal,
  }),
})
