/** Opens the data sets of a run's config, and the agent that plays their tasks. */
import { Effect } from "effect"
import * as Agents from "../../agents/agent/Agents.ts"
import { ConfigError, type DecodeOptions, type Plain } from "../../base/config/Config.ts"
import { openParts } from "../../agents/evaluate/openParts.ts"
import type { OrchestratorConfig } from "./OrchestratorConfig.ts"

interface RunPlace {
  /** The origin of the run's config, for error messages. */
  readonly from: DecodeOptions
  /** The folder that relative paths start from. */
  readonly baseDir: string
  /** The name of the run's model in the engine. */
  readonly model: string
}

/**
 * Opens the data sets, and decodes the agent.
 */
export const openRunParts = Effect.fnUntraced(function* (
  { agent, trainDataset, validationDataset, sampling }: OrchestratorConfig,
  { from, baseDir, model }: RunPlace,
) {
  const parts = yield* openParts(from, baseDir)
  const openDataset = (config: Plain, key: string) =>
    Effect.catchTag(parts.openDataset(config, key), "DatasetError", ({ message }) =>
      Effect.fail(ConfigError.at(from, key, message)),
    )
  if (trainDataset === null)
    return yield* ConfigError.at(from, "train_dataset", "expected the data set to learn from, found none")
  const train = yield* openDataset(trainDataset, "trainDataset")
  const validation = validationDataset === null ? null : yield* openDataset(validationDataset, "validationDataset")
  if ("lmConfig" in agent)
    return yield* ConfigError.at(
      from,
      "agent.lm_config",
      "expected no model, as it is the one that is trained; sampling says how it answers",
    )
  const { temperature, maxTokens, stop } = sampling
  const decoded = yield* Agents.decode(
    {
      ...agent,
      lmConfig: { model, temperature, maxOutputTokens: maxTokens, stopSequences: stop },
      traceTokens: true,
    },
    { ...from, prefix: [...(from.prefix ?? []), "agent"], baseDir },
  )
  yield* decoded.permit
  return { train, validation, agent: decoded }
})
