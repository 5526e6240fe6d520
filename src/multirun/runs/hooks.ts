/** Runs the hooks of the trainer's parts, so that the failure of a hook is a message and never ends the trainer. */
import { Cause, Effect, Exit } from "effect"
import { messageOf, oneLine } from "../../config/text.ts"
import type { Hook, Hooks } from "./RunSlot.ts"

/** Runs a hook; returns the message of its failure, also of a defect. An interruption is passed on. */
export const outcomeOf = <Run>(hook: Hook<Run> | undefined, run: Run): Effect.Effect<string | undefined> => {
  if (hook === undefined) return Effect.succeed(undefined)
  return Effect.suspend(() => hook(run)).pipe(
    Effect.exit,
    Effect.flatMap((exit) => {
      if (Exit.isSuccess(exit)) return Effect.succeed(undefined)
      if (Cause.hasInterruptsOnly(exit.cause)) return Effect.interrupt
      return Effect.succeed(messageIn(Cause.squash(exit.cause)))
    }),
  )
}

const messageIn = (error: unknown): string =>
  typeof error === "object" && error !== null && "message" in error ? oneLine(String(error.message)) : messageOf(error)

/** Runs one hook of all parts, in order, until one fails; returns the failure's message. */
export const untilFailure = Effect.fnUntraced(function* <Run>(
  parts: ReadonlyArray<Hooks>,
  hookOf: (part: Hooks) => Hook<Run> | undefined,
  run: Run,
) {
  for (const part of parts) {
    const problem = yield* outcomeOf(hookOf(part), run)
    if (problem !== undefined) return problem
  }
  return undefined
})

/** Runs one hook of all parts, in order. A failure is logged, and the hooks after it still run. */
export const all = Effect.fnUntraced(function* <Run extends { readonly id: string }>(
  parts: ReadonlyArray<Hooks>,
  hookOf: (part: Hooks) => Hook<Run> | undefined,
  run: Run,
  moment: string,
) {
  for (const part of parts) {
    const problem = yield* outcomeOf(hookOf(part), run)
    if (problem !== undefined) yield* Effect.logWarning(`${run.id}: a hook on its ${moment} failed: ${problem}`)
  }
})
