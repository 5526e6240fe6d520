/**
 * Describes what a run is: its kind, its identity and its config. `config.yaml` has the kind under the key `kind`. It touches
 * no files; every kind of run and the commands use it.
 *
 * @example
 * ```ts
 * kindOf({ kind: "agents", runtime: {} }) // "agents"
 * kindOf({ dataset: { type: "qa" }, agent: {} }) // "evaluation": a file without `kind` is recognised by its keys
 * ```
 */
import { Effect, Option } from "effect"
import * as Schema from "effect/Schema"
import { closest } from "../base/text/closest.ts"
import { ConfigError, display, isPlain, type ConfigOrigin, type Plain } from "../base/config/Config.ts"
import { withDefault } from "../base/config/fields.ts"
import type { LogLevel } from "./record/logLevel.ts"
import type { RunStarted } from "./record/RunEvent.ts"
import type { RunIdentity } from "./identifier.ts"

/**
 * The kinds of runs: a training by reinforcement learning, a training of language-model agents, an evaluation of such agents,
 * a trainer of a language model for many runs, a gateway that records the calls of any agents, and a search for better prompts
 * of an agent.
 */
export const RunKind = Schema.Literals(["training", "agents", "evaluation", "multirun", "gateway", "prompts"])
export type RunKind = typeof RunKind.Type

/** The part of a run's description that every kind of run has. */
interface Described {
  readonly identity: RunIdentity
  /** The effective config, which becomes `config.yaml`. */
  readonly config: Plain
  /** The text of `description.txt`. */
  readonly description: string
  readonly env: string
  readonly algorithm: string
  /** Maps each compiled program, e.g. `update`, to the device that runs it; for agents, each agent to its model. */
  readonly devices: Readonly<Record<string, string>>
  /** The length of the whole run: env steps of a training, updates of a multi-run trainer, episodes of any other run. */
  readonly total: number
  readonly logLevel: LogLevel
}

/** The description of a run, by its kind. */
export type RunSpec =
  | (Described & { readonly kind: "training"; readonly numEnvs: number })
  | (Described & {
      readonly kind: "agents" | "evaluation" | "multirun" | "gateway" | "prompts"
      readonly quiet: boolean
    })

/** Makes the first event of a run. `resumedFromStep` is null for a new run. */
export const startedOf = (spec: RunSpec, resumedFromStep: number | null): RunStarted => {
  const { identity, env, algorithm, devices, total, config, logLevel } = spec
  const { name, seed } = identity
  return {
    _tag: "RunStarted",
    ...(spec.kind === "training" ? {} : spec.kind === "multirun" ? { agents: true } : { unit: "episodes" }),
    name,
    env,
    algorithm,
    devices,
    seed,
    totalSteps: total,
    numEnvs: spec.kind === "training" ? spec.numEnvs : 1,
    resumedFromStep,
    config,
    logLevel,
    ...(spec.kind !== "training" && spec.quiet ? { quiet: true } : {}),
  }
}

/** Makes the Schema of the key `kind` in a config. The key may be left out, but must not name another kind. */
export const kindField = <K extends RunKind>(kind: K) => withDefault(Schema.Literal(kind), kind)

const decodeKind = Schema.decodeUnknownOption(RunKind)

/** Fails if a config names a kind of run that does not exist, so that it is not mistaken for another kind. */
export const refuseUnknownKind = ({ kind }: Plain, from: ConfigOrigin): Effect.Effect<void, ConfigError> => {
  if (kind === undefined || Option.isSome(decodeKind(kind))) return Effect.void
  const near = typeof kind === "string" ? closest(kind, RunKind.literals) : undefined
  const hint = near === undefined ? "" : `; did you mean "${near}"?`
  const problem = `expected ${RunKind.literals.slice(0, -1).join(", ")} or ${RunKind.literals.at(-1)}, found ${display(kind)}${hint}`
  return Effect.fail(ConfigError.at(from, "kind", problem))
}

/** The keys that occur only in configs of trainings of language-model agents. */
const keysOfAgents = ["runtime", "train_dataset", "trainDataset", "validation_dataset", "validationDataset"]

/** Returns the kind of run that a parsed config describes, by its key `kind`, or if that is missing, by other keys. */
export const kindOf = (config: unknown): RunKind => {
  if (!isPlain(config)) return "training"
  return Option.getOrElse(decodeKind(config.kind), () => {
    if ("learner" in config && "agent" in config) return "prompts"
    if (keysOfAgents.some((key) => key in config)) return "agents"
    return "dataset" in config ? "evaluation" : "agent" in config ? "agents" : "training"
  })
}
