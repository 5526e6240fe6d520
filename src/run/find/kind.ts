import { Effect } from "effect"
import { experimentKeys } from "../isExperiment.ts"
import type { RunFacts } from "./RunFacts.ts"

/** A training by an algorithm, an experiment with language-model agents, or an evaluation. */
export type RunKind = "training" | "experiment" | "evaluation"

/** Tells the kind of a run from its config: undefined where it has no config.yaml. */
export const kindOf = Effect.fnUntraced(function* (facts: RunFacts): Effect.fn.Return<RunKind | undefined> {
  if ((yield* facts.configText) === undefined) return undefined
  if ((yield* facts.configAt(["dataset"])) !== undefined) return "evaluation"
  for (const key of experimentKeys) if ((yield* facts.configAt([key])) !== undefined) return "experiment"
  return "training"
})
