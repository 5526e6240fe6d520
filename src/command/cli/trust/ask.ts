/** Asks the user a question whose answer is yes or no, on the terminal. */
import { createInterface } from "node:readline"
import { Context, Effect } from "effect"

export interface Asking {
  /** Tells whether somebody can answer: not without a terminal, and not where the variable CI is set. */
  readonly isPossible: () => boolean
  /** Shows a text and waits for a line. Only `y` and `yes` mean yes. */
  readonly ask: (text: string) => Effect.Effect<boolean>
}

const askOnTerminal = (text: string): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    // With `terminal: false` the system still turns Ctrl-C into a signal, which interrupts the command.
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
