/** Runs the hooks of the trainer's parts. The failure of a hook becomes a message, and does not end the trainer. */
import { Cause, Effect, Exit } from "effect"
import { isMachineFault } from "../../base/files/files.ts"
import { messageOf, oneLine } from "../../base/text/text.ts"
import { machineFault, retried } from "../machine.ts"
import type { Hook, Hooks } from "./RunSlot.ts"
import type { TrainerError } from "../TrainerError.ts"

type Identified = { readonly id: string }
type Problem = Effect.Error<ReturnType<Hook>>

const messageIn = (error: unknown): string =>
  typeof error === "object" && error !== null && "message" in error ? oneLine(String(error.message)) : messageOf(error)

/** Runs an effect, and returns the message if it fails or has a defect. An interruption is passed on. */
const messageOfFailure = (effect: Effect.Effect<void, Problem>): Effect.Effect<string | undefined> =>
  Effect.flatMap(Effect.exit(effect), (exit) => {
    if (Exit.isSuccess(exit)) return Effect.succeed(undefined)
    if (Cause.hasInterruptsOnly(exit.cause)) return Effect.interrupt
    return Effect.succeed(messageIn(Cause.squash(exit.cause)))
  })

/**
 * Runs a hook, and returns the message if it fails. If the machine is at fault, the hook is tried again; if that does not
 * help, fails with an error that ends the trainer.
 */
export const outcomeOf = Effect.fnUntraced(function* <Run extends Identified>(
  hook: Hook<Run> | undefined,
  run: Run,
): Effect.fn.Return<string | undefined, TrainerError> {
  if (hook === undefined) return undefined
  let fault: Problem | undefined
  const work = retried(
    run.id,
    Effect.suspend(() => hook(run)),
  )
  const message = yield* messageOfFailure(
    Effect.catchIf(work, isMachineFault, (error) => Effect.sync(() => void (fault = error))),
  )
  return fault === undefined ? message : yield* machineFault(run.id, fault)
})

/** Runs one hook of all parts, in order, until one fails. Returns the message of the failure. */
export const untilFailure = Effect.fnUntraced(function* <Run extends Identified>(
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
export const all = Effect.fnUntraced(function* <Run extends Identified>(
  parts: ReadonlyArray<Hooks>,
  hookOf: (part: Hooks) => Hook<Run> | undefined,
  run: Run,
  moment: string,
) {
  for (const part of parts) {
    const hook = hookOf(part)
    const problem = hook && (yield* messageOfFailure(Effect.suspend(() => hook(run))))
    if (problem !== undefined) yield* Effect.logWarning(`${run.id}: a hook on its ${moment} failed: ${problem}`)
  }
})
