/**
 * Finds the run that a setting names by something other than its path: `latest`, or a part of its path. The settings
 * `start.from`, `start.memory`, `start.texts` and the `texts` of an agent use it. The commands provide it, since they know the
 * results folder; without them, only paths name runs.
 *
 * @example
 * ```ts
 * const findRun = yield* FindRun
 * const folder = yield* findRun("latest", "prompts") // "results/20260102_030405/…/0001"
 * ```
 */
import { Context, Effect } from "effect"
import type { RunKind } from "./RunSpec.ts"

/** Returns the folder of the run of this kind; a path that exists is returned as it is. */
export type FindRun = (wanted: string, kind: RunKind) => Effect.Effect<string, { readonly message: string }>

export const FindRun = Context.Reference<FindRun>("effect-rl/run/FindRun", {
  defaultValue: () => (wanted) => Effect.succeed(wanted),
})
