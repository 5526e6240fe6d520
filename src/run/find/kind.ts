import { Effect } from "effect"
import { kindOf as kindOfConfig, type RunKind } from "../RunSpec.ts"
import type { RunFacts } from "./RunFacts.ts"

/** Tells the kind of a run from its config: undefined where it has no config.yaml. */
export const kindOf = Effect.fnUntraced(function* (facts: RunFacts): Effect.fn.Return<RunKind | undefined> {
  if ((yield* facts.configText) === undefined) return undefined
  // One key is read without parsing the whole file.
  const kind = yield* facts.configAt(["kind"])
  return kindOfConfig(kind === undefined ? yield* facts.config : { kind })
})
