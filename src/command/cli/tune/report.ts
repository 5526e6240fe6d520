/** Formats the progress and the result of a study for people, and its result as JSON. These are pure functions. */
import { Option } from "effect"
import { stringify } from "yaml"
import { toSnakeCase } from "../../../base/config/Config.ts"
import { shownScore } from "../../../base/text/text.ts"
import { table } from "../../../run/find/table.ts"
import { importances } from "../../tune/importance.ts"
import { sections } from "../../tune/StudyFile.ts"
import type { Study } from "../../tune/StudySettings.ts"
import { bestOf, ranked, type Trial } from "../../tune/Trial.ts"
import { runCommand, settingOf } from "../../sweep/command.ts"
import { shortNames } from "../../sweep/population.ts"
import type { TuneFlags } from "./flags.ts"
import { choicesOf } from "./plan.ts"

/** Returns the line that describes how a trial ended. */
export const trialLine = ({ trial, state, value, reason, params }: Trial): string => {
  const settings = choicesOf(params).map(settingOf).join(" ")
  const score = value === null ? "" : ` ${shownScore(value)}`
  const how = state === "finished" ? "" : `${state}${score === "" ? "" : ","}`
  return `trial ${trial}:${how === "" ? "" : ` ${how}`}${score}  ${settings}${reason === null ? "" : `  (${reason})`}\n`
}

const countOf = (trials: ReadonlyArray<Trial>, state: Trial["state"]): number =>
  trials.filter((trial) => trial.state === state).length

/** Returns the line with a study's progress for a terminal. */
export const statusLine = (study: Study, trials: ReadonlyArray<Trial>, running: number): string => {
  const { settings } = study
  const best = bestOf(trials, settings.direction)
  const pruned = countOf(trials, "pruned")
  return [
    `${trials.length} of ${settings.trials} trials`,
    `${running} running`,
    ...(pruned === 0 ? [] : [`${pruned} pruned`]),
    ...(best?.value == null ? [] : [`best ${shownScore(best.value)} (trial ${best.trial})`]),
  ].join(", ")
}

/** The largest number of trials in the table, which begins with the best. */
const mostRows = 10

/** Formats the best trials, the importance of the parameters, and commands that train with the best settings again. */
export const summary = (
  { settings, space }: Study,
  trials: ReadonlyArray<Trial>,
  { input, directory, bestFile }: { readonly input: TuneFlags; readonly directory: string; readonly bestFile: string },
): string => {
  const names = shortNames(space)
  const rows = ranked(trials, settings.direction).slice(0, mostRows)
  const headings = ["trial", settings.metric, "state", ...space.map(({ path }) => names.get(path) ?? path)]
  const rowOf = ({ trial, value, state, params }: Trial) => [
    trial,
    value ?? undefined,
    state,
    ...space.map(({ path }) =>
      Object.hasOwn(params, path) ? choicesOf({ [path]: params[path] })[0].shown : undefined,
    ),
  ]
  const shares = importances(space, trials, settings.direction)
  const best = bestOf(trials, settings.direction)
  const ended = `${trials.length} trials (${countOf(trials, "pruned")} pruned, ${countOf(trials, "failed")} failed)`
  return [
    table(headings, rows.map(rowOf)).trimEnd(),
    ...(shares.length === 0
      ? []
      : [
          `importance: ${shares.map(({ path, share }) => `${names.get(path) ?? path} ${(100 * share).toFixed(0)} %`).join(", ")}`,
        ]),
    ...(best?.value == null
      ? [`no trial has finished, of ${ended}`]
      : [
          `best: trial ${best.trial} with ${settings.metric} ${shownScore(best.value)}, of ${ended}`,
          runCommand(input, choicesOf(best.params)),
          // A run takes only one config, and names of env or algorithm in --set would reset the settings of the best trial.
          ...(Option.isSome(input.config) || input.set.length > 0
            ? []
            : [runCommand({ ...input, config: Option.some(bestFile) }, [])]),
        ]),
    directory,
    "",
  ].join("\n")
}

/** Returns the settings of the best trial as YAML, for `--config`; undefined if no trial has finished. */
export const bestYaml = ({ settings }: Study, trials: ReadonlyArray<Trial>): string | undefined => {
  const best = bestOf(trials, settings.direction)
  if (best?.value == null) return undefined
  const comment = `# trial ${best.trial}: ${settings.metric} ${best.value}\n`
  return `${comment}${stringify(toSnakeCase(sections(best.params)))}`
}

/** Returns the result of a study in the form that `--json` prints. */
export const resultOf = ({ settings, space }: Study, trials: ReadonlyArray<Trial>, directory: string) => {
  const { metric, direction } = settings
  const best = bestOf(trials, direction)
  return {
    studyDir: directory,
    metric,
    direction,
    trials: trials.length,
    pruned: countOf(trials, "pruned"),
    failed: countOf(trials, "failed"),
    best: best === undefined ? null : { trial: best.trial, value: best.value, params: best.params, runs: best.runs },
    importance: Object.fromEntries(importances(space, trials, direction).map(({ path, share }) => [path, share])),
  }
}
