/** Trains the agent that a config describes: opens its data sets, model and agent, and passes them to `execute.ts`. */
import { Effect, Schema, type Scope } from "effect"
import * as Agents from "../agent/Agents.ts"
import { type DecodeOptions, sourceOf } from "../../base/config/Config.ts"
import { withPlaces } from "../../base/config/places.ts"
import * as Datasets from "../task/Datasets.ts"
import { agentIdentity, openParts } from "../evaluate/openParts.ts"
import { type ConfigPlace, readSections } from "../evaluate/readSections.ts"
import { priceOf } from "../lm/middleware/budgeted.ts"
import { isKeyItself } from "../lm/providers/keys.ts"
import { Lm } from "../lm/Lm.ts"
import type * as Lms from "../lm/Lms.ts"
import { RunOptions, sentTraining } from "../../run/RunOptions.ts"
import { execute, type AgentTrainingNeeds, type RuntimeError } from "./execute.ts"
import { RunSettings } from "./RuntimeConfig.ts"
import type { RuntimeResult } from "./RuntimeResult.ts"

/** The Schema of a config. The sections of the data sets and the agent are decoded later, by their types. */
const Experiment = Schema.Struct({
  ...RunSettings.fields,
  trainDataset: Schema.optionalKey(Schema.Unknown),
  validationDataset: Schema.optionalKey(Schema.Unknown),
  agent: Schema.optionalKey(Schema.Unknown),
})

/**
 * The Schema of a config with the settings of all built-in types. Error messages use it to find where a misplaced key
 * belongs.
 */
const whole = Schema.Struct({
  ...RunSettings.fields,
  trainDataset: Datasets.DatasetConfig,
  validationDataset: Datasets.DatasetConfig,
  agent: Agents.AgentConfig,
})

/**
 * Makes an Effect that trains an agent and returns the result. The config is plain data, such as a parsed YAML file,
 * that describes the data sets, the agent and its model.
 */
export const fromConfig = (
  config: unknown,
  place: ConfigPlace = {},
): Effect.Effect<RuntimeResult, RuntimeError, AgentTrainingNeeds | Lms.LmNeeds> =>
  Effect.scoped(Agents.withOwnKinds(config, (named) => fromNamed(named, place)))

const fromNamed = Effect.fnUntraced(function* (
  config: unknown,
  place: ConfigPlace,
): Effect.fn.Return<RuntimeResult, RuntimeError, AgentTrainingNeeds | Lms.LmNeeds | Scope.Scope> {
  const options = yield* RunOptions
  const { sections, from, agentFrom, baseDir } = yield* readSections(config, {
    ...place,
    source: options.source,
    schema: Experiment,
    whole,
    datasets: ["trainDataset", "validationDataset"],
  })
  const { trainDataset, validationDataset, agent, ...settings } = sections
  const { spent, openLm, openDataset } = yield* openParts(from, baseDir)
  const dataset = (config: unknown, key: string) =>
    config === undefined || config === null ? Effect.succeed(null) : openDataset(config, key)
  const train = yield* dataset(trainDataset, "trainDataset")
  const validation = yield* dataset(validationDataset, "validationDataset")
  const decoded = yield* Agents.decode(agent ?? {}, agentFrom)
  const { lmConfig } = decoded
  const lm = yield* openLm(lmConfig, ["agent", "lmConfig"])
  const made = yield* Effect.provideService(decoded.make, Lm, lm)
  const described = {
    agent: yield* withPlaces(decoded.config, baseDir),
    trainDataset: train === null ? null : yield* withPlaces(train.config, baseDir),
    validationDataset: validation === null ? null : yield* withPlaces(validation.config, baseDir),
  }
  return yield* execute({
    settings,
    agent: made,
    train: train?.tasks ?? null,
    validation: validation?.tasks ?? null,
    described,
    price: lmConfig === null ? undefined : priceOf(lmConfig.model, lmConfig.prices),
    sent: sentTraining(options, { ...settings, ...described }),
    agentIdentity: agentIdentity(decoded.config, lmConfig),
    warnings: lmConfig !== null && isKeyItself(lmConfig.apiKey) ? [keyWarning(from)] : [],
    logCalls: lmConfig?.logCalls === true,
    spent,
    from,
  })
})

/** Makes the warning that the config contains an API key itself, instead of the name of a variable as `${NAME}`. */
const keyWarning = (from: DecodeOptions): string =>
  `${sourceOf(from, "agent.lmConfig.apiKey")}: agent.lm_config.api_key: the key itself stands there, where others may read it; ` +
  "better is the name of a variable that holds it, as ${MY_KEY}"
