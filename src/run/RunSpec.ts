/**
 * Says what a run is: its kind, its identity and its config. `config.yaml` holds the kind under the key `kind`.
 *
 * @example
 * ```ts
 * kindOf({ kind: "agents", runtime: {} }) // "agents"
 * kindOf({ dataset: { type: "qa" }, agent: {} }) // "evaluation": a file without `kind` is recognised by its keys
 * ```
 */
import { Option, Schema } from "effect"
import { isPlain } from "../config/Config.ts"
import { withDefault } from "../config/fields.ts"

/** A training by reinforcement learning, a training of agents that ask a language model, or an evaluation of such agents. */
export const RunKind = Schema.Literals(["training", "agents", "evaluation"])
export type RunKind = typeof RunKind.Type

/** The key `kind` of a config: it may be left out, but not name another kind. */
export const kindField = <K extends RunKind>(kind: K) => withDefault(Schema.Literal(kind), kind)

const decodeKind = Schema.decodeUnknownOption(RunKind)

/** The keys by which a file without `kind` is recognised. */
export const keysOfKind = {
  evaluation: ["dataset"],
  agents: ["runtime", "train_dataset", "trainDataset", "validation_dataset", "validationDataset", "agent"],
} as const

/** Tells the kind of run that a config is for. This is the only place that decides it. */
export const kindOf = (config: unknown): RunKind => {
  if (!isPlain(config)) return "training"
  const { kind } = config
  const has = (key: string): boolean => key in config
  return Option.getOrElse(decodeKind(kind), () =>
    has("dataset") && !keysOfKind.agents.some((key) => key !== "agent" && has(key))
      ? "evaluation"
      : keysOfKind.agents.some(has)
        ? "agents"
        : "training",
  )
}
