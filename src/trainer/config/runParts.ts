/** Opens the data sets of a run's config, and the agent that plays their tasks. */
import { Effect } from "effect"
import * as Agents from "../../agents/agent/Agents.ts"
import { ConfigError, type DecodeOptions, type Plain, placeOf, variableIn } from "../../base/config/Config.ts"
import { openParts } from "../../agents/evaluate/openParts.ts"
import * as TaskSet from "../../agents/task/TaskSet.ts"
import { openLanguage } from "../baseModel.ts"
import { permit } from "../../base/trust/Trust.ts"
import { isOfThisComputer } from "../../agents/lm/addressTrust.ts"
import type { TeacherConfig } from "../teacher/TeacherConfig.ts"
import { openPairs } from "../preferences/pairs.ts"
import { isOnlyPairs, type OrchestratorConfig } from "./OrchestratorConfig.ts"

interface RunPlace {
  /** The origin of the run's config, for error messages. */
  readonly from: DecodeOptions
  /** The folder that relative paths start from. */
  readonly baseDir: string
  /** The name of the run's model in the engine. */
  readonly model: string
}

/** The tasks of a run that only learns from pairs. */
const noTasks = { type: "none", tasks: TaskSet.of("none", []) }

/**
 * Opens the data sets, and decodes the agent.
 */
export const openRunParts = Effect.fnUntraced(function* (
  config: OrchestratorConfig,
  { from, baseDir, model }: RunPlace,
) {
  const { agent, trainDataset, validationDataset, sampling, pairs: pairsConfig } = config
  const parts = yield* openParts(from, baseDir)
  const openDataset = (config: Plain, key: string) =>
    Effect.catchTag(parts.openDataset(config, key), "DatasetError", ({ message }) =>
      Effect.fail(ConfigError.at(from, key, message)),
    )
  if (trainDataset === null && !isOnlyPairs(config))
    return yield* ConfigError.at(from, "train_dataset", "expected the data set to learn from, found none")
  const train = trainDataset === null ? noTasks : yield* openDataset(trainDataset, "trainDataset")
  const validation = validationDataset === null ? null : yield* openDataset(validationDataset, "validationDataset")
  const pairs =
    pairsConfig === null
      ? null
      : yield* Effect.mapError(openPairs(pairsConfig, baseDir), ({ message }) =>
          ConfigError.at(from, "pairs.datasetPath", message),
        )
  if (config.teacher !== null) yield* checkTeacher(config.teacher, from, baseDir)
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
  return { train, validation, pairs, agent: decoded }
})

/** Fails if the folder of a teacher has no tokenizer, or if the config may not send texts to a teacher's server. */
const checkTeacher = (teacher: TeacherConfig, from: DecodeOptions, baseDir: string) => {
  if (teacher.type === "folder")
    return Effect.mapError(openLanguage(teacher, baseDir), ({ message }) =>
      ConfigError.at(from, "teacher.path", message),
    )
  if (teacher.type === "self") return Effect.void
  const { baseUrl: address, apiKey } = teacher
  const variable = variableIn(apiKey ?? "") ?? null
  if (variable === null && isOfThisComputer(address)) return Effect.void
  const place = placeOf(from, "teacher.baseUrl")
  return Effect.mapError(permit({ _tag: "Sending", place, address, variable }), ({ message }) =>
    ConfigError.at(from, "teacher.baseUrl", message),
  )
}
