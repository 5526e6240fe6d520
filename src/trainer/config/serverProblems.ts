/** Finds the settings that do not work together with `trainer.type: tinker`, whose models are on a server. */
import { Redacted, Schema } from "effect"
import { variableIn } from "../../base/config/Config.ts"
import { firstDifference } from "../../base/config/difference.ts"
import { isKeyItself } from "../../agents/lm/providers/keys.ts"
import { columnsOf } from "../../rl/losses/Losses.ts"
import { projections } from "../../decoder/networks/Decoder.ts"
import { alpha, isOfAttention } from "../tinker/models/AdapterInTraining.ts"
import { InferenceSettings, type MultiRunConfig } from "./MultiRunConfig.ts"
import type { OrchestratorConfig } from "./OrchestratorConfig.ts"

type Problem = readonly [key: string, problem: string]

const withServer = "with trainer.type: tinker"

/** How to train what a server cannot. */
const otherwise = "to use one, train in this process (trainer.type: local)"

const unless = (holds: boolean, key: string, problem: string): ReadonlyArray<Problem> => (holds ? [] : [[key, problem]])

/** Returns the settings of a server that a trainer in this process has. */
const localProblems = ({ trainer }: MultiRunConfig): ReadonlyArray<Problem> => {
  const { baseUrl, apiKey, baseModel } = trainer
  const only = "expected null, because it is only used with trainer.type: tinker"
  return [
    ...unless(baseUrl === null, "trainer.base_url", only),
    ...unless(apiKey === null, "trainer.api_key", only),
    ...unless(baseModel === null, "trainer.base_model", only),
  ]
}

/** The sets of projections that a server can train. */
const trainable = [projections, projections.filter(isOfAttention), projections.filter((one) => !isOfAttention(one))]

const adapterProblems = ({ trainer: { lora } }: MultiRunConfig): ReadonlyArray<Problem> => {
  if (lora === null)
    return [["trainer.lora", `expected an adapter such as { rank: 8, alpha: ${alpha} } ${withServer}, found null`]]
  const chosen = new Set(lora.targets)
  const isTrainable = trainable.some((all) => all.length === chosen.size && all.every((one) => chosen.has(one)))
  return [
    ...unless(
      lora.alpha === alpha,
      "trainer.lora.alpha",
      `expected ${alpha} ${withServer}, whose adapters all have it; found ${lora.alpha}`,
    ),
    ...unless(
      isTrainable,
      "trainer.lora.targets",
      `expected all projections, those of attention or the others ${withServer} (${trainable.map((all) => all.join(", ")).join("; ")})`,
    ),
  ]
}

/** The defaults of the engine, which a server replaces. */
const usualInference = Schema.decodeSync(InferenceSettings)({})

/** The default of `broadcast.keep`, which is accepted because saved configs contain it. */
const usualBroadcasts = 2

/** Returns the settings of a trainer that do not fit its type. */
export const serverProblems = (config: MultiRunConfig): ReadonlyArray<Problem> => {
  const { model, trainer, inference, broadcast, orchestrators } = config
  if (trainer.type === "local") return localProblems(config)
  const { baseUrl, apiKey, ranks, mixing, referenceThread, enableRouterReplay } = trainer
  const engine = firstDifference(inference, usualInference)
  return [
    ...unless(
      baseUrl !== null,
      "trainer.base_url",
      `expected the address of the server ${withServer}, such as http://127.0.0.1:8000`,
    ),
    // A key itself would be in the config's file, and a saved config would not have it.
    ...unless(
      apiKey === null || (!isKeyItself(apiKey) && variableIn(Redacted.value(apiKey).trim()) !== undefined),
      "trainer.api_key",
      "expected the name of an environment variable, written as ${NAME}",
    ),
    ...unless(
      model.type === "folder",
      "model.type",
      `expected folder ${withServer}: a folder with the tokenizer and the config.json of the server's model`,
    ),
    ...adapterProblems(config),
    ...unless(ranks === 1, "trainer.ranks", `expected 1 ${withServer}, found ${ranks}`),
    ...unless(mixing === "one-run", "trainer.mixing", `expected one-run ${withServer}, found ${mixing}`),
    ...unless(
      referenceThread !== true,
      "trainer.reference_thread",
      `expected null or false ${withServer}, which has no reference model; found true`,
    ),
    ...unless(
      !enableRouterReplay,
      "trainer.enable_router_replay",
      `expected false ${withServer}, which does not return the experts of its answers; found true`,
    ),
    ...unless(engine === undefined, "inference", `expected no settings ${withServer}, which generates itself`),
    ...unless(
      orchestrators === "inside",
      "orchestrators",
      `expected inside ${withServer}, because its weights are not in files; found outside`,
    ),
    ...unless(
      broadcast.keep === 0 || broadcast.keep === usualBroadcasts,
      "broadcast.keep",
      `expected 0 ${withServer}, because its weights stay there; found ${broadcast.keep}`,
    ),
  ]
}

/** Returns the settings of a run that a server cannot carry out. */
export const serverRunProblems = (
  { trainer }: Pick<MultiRunConfig, "trainer">,
  { optimiser, objective, sampling, lora, weights, supervised, maxSteps, teacher, critic }: OrchestratorConfig,
): ReadonlyArray<Problem> => {
  if (trainer.type === "local") return []
  const needsReference = columnsOf(objective).includes("referenceLogProbability_t")
  const isReinforced = maxSteps === null || supervised.steps < maxSteps
  return [
    ...unless(
      optimiser.type === "adamw",
      "optimiser.type",
      `expected adamw, the only one ${withServer}; found ${optimiser.type}`,
    ),
    ...unless(
      !needsReference,
      objective.type === "dpo" ? "objective.type" : "objective.kl",
      `expected ${objective.type === "dpo" ? "another objective" : "null"} ${withServer}, which has no reference model; ${otherwise}`,
    ),
    ...unless(
      teacher === null || teacher.type === "server",
      "teacher.type",
      `expected server ${withServer}, whose weights are not in this process; found ${teacher?.type ?? "none"}`,
    ),
    ...unless(
      critic === null,
      "critic",
      `expected null ${withServer}, whose hidden states are not in this process; ${otherwise}`,
    ),
    ...unless(
      sampling.temperature === 1 || !isReinforced,
      "sampling.temperature",
      `expected 1 ${withServer}, which computes log-probabilities at this temperature; found ${sampling.temperature}`,
    ),
    ...unless(
      sampling.minP === 0,
      "sampling.min_p",
      `expected 0 ${withServer}, which lacks it; found ${sampling.minP}`,
    ),
    ...unless(
      lora.alpha === null || lora.alpha === alpha,
      "lora.alpha",
      `expected null or ${alpha} ${withServer}, whose adapters all have it; found ${lora.alpha}`,
    ),
    ...unless(
      weights.every === 0,
      "weights.every",
      `expected 0 ${withServer}, because its weights stay there; found ${weights.every}`,
    ),
  ]
}
