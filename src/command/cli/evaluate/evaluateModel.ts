/**
 * Implements `effect eval RUN` for a run of a language model's trainer: the run's agent plays the validation tasks with the
 * weights of a step. The evaluation has a folder of its own.
 */
import { basename, dirname, join } from "node:path"
import { Effect, Option } from "effect"
import type { Override } from "../../../base/config/Config.ts"
import { type Plain, snakeCase } from "../../../base/config/plain.ts"
import { nameOf } from "../../../trainer/Layout.ts"
import { configOf, findModel } from "../../../trainer/weights/SavedModel.ts"
import * as Layout from "../../../run/Layout.ts"
import { defaultResultsDir, flagWords, quoted } from "../flags.ts"
import { usageError, writeError } from "../output/output.ts"
import { warningLabel } from "../output/colors.ts"
import { parseSetting } from "../run/overrides.ts"
import { resumedCluster } from "../worker/cluster.ts"
import { playEvaluation } from "./evaluateFile.ts"
import { type EvalFlags, judgingFlags, refuseFlags } from "./flags.ts"
import { fromConfig } from "./loadEvaluation.ts"

export const evaluateModel = Effect.fnUntraced(function* (input: EvalFlags, named: string) {
  yield* refuseFlags(input, ["file", "render", "video"], "the run of a policy")
  const place = yield* findModel(named, Option.getOrUndefined(input.step))
  const run = dirname(dirname(place.folder))
  const name = nameOf(basename(run))
  const { agent, validationDataset, sampling } = yield* configOf(run)
  const settings = yield* Effect.forEach(input.set, parseSetting)
  for (const { path } of settings) yield* refuseTrainingKey(path)
  if (validationDataset === null && !settings.some(({ path }) => namesDataset.includes(snakeCase(path)))) {
    return yield* usageError(
      `${named}: expected validation_dataset in the run's config, found none; name another data set: --set dataset.type=…`,
    )
  }
  if (sampling.stopTokenIds.length > 0) {
    yield* writeError(
      `${warningLabel()} sampling.stop_token_ids of the run does not end the answers of this evaluation\n`,
    )
  }
  const config = {
    kind: "evaluation",
    description: `the validation tasks of ${run}, played after ${place.step} steps`,
    dataset: withoutOtherSettings(validationDataset ?? {}, settings),
    agent: {
      ...agent,
      name,
      // The agent takes the likeliest tokens, as in the validations of the training.
      lmConfig: {
        model: `decoder:${place.folder}`,
        temperature: 0,
        maxOutputTokens: sampling.maxTokens,
        stopSequences: sampling.stop,
      },
    },
  }
  const episodes = Option.toArray(input.episodes).map((value) => ({
    path: "dataset.maxSamples",
    value,
    source: "--episodes",
  }))
  return yield* playEvaluation(input, yield* fromConfig(config, { baseDir: run }), {
    options: { source: "effect eval", name, overrides: [...episodes, ...settings] },
    resumeCommand: (directory) => resumeCommand(input, directory),
  })
})

/** The settings that identify the data set. */
const namesDataset = ["dataset", "dataset.type", "dataset.dataset_path", "dataset.items", "dataset.hf_dataset"]

/**
 * Returns the run's data set. If a flag names another type, the settings are left out, because that type has other settings.
 */
const withoutOtherSettings = (dataset: Plain, settings: ReadonlyArray<Override>): Plain => {
  const type = settings.findLast(({ path }) => path === "dataset.type")?.value
  return type === undefined || type === (dataset["type"] ?? "qa") ? dataset : {}
}

/** Maps sections of a run's config to the sections of its evaluation's config, which have other names. */
const sectionsOfEvaluation: Readonly<Record<string, string>> = {
  train_dataset: "dataset",
  validation_dataset: "dataset",
  sampling: "agent.lm_config",
}

/** Fails if a setting belongs to the config of the training, and names the section that the evaluation has instead. */
const refuseTrainingKey = (path: string) => {
  const [section, ...rest] = path.split(".").map(snakeCase)
  const other = sectionsOfEvaluation[section]
  if (other === undefined) return Effect.void
  const key = [other, ...rest].join(".")
  return Effect.fail(usageError(`--set ${path}: this is a setting of the training; the evaluation has ${key}`))
}

/** Returns the command that resumes the evaluation from its own config. */
const resumeCommand = (input: EvalFlags, directory: string): string => {
  const { resultsDir, backend, cluster } = input
  const place = resultsDir === defaultResultsDir ? undefined : resultsDir
  const device = backend === "auto" ? undefined : backend
  const words = flagWords({
    resume: directory,
    "results-dir": place,
    backend: device,
    cluster: resumedCluster(cluster),
    ...judgingFlags(input),
  })
  return `npx effect eval ${quoted([join(directory, Layout.config), ...words])}`
}
