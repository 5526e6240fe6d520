/** Defines the subcommand `effect tune`, which runs a study: a search for better settings of a training with many trials. */
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { Cause, Effect, Exit, Option } from "effect"
import { harmless } from "../../../base/text/text.ts"
import { asSaved } from "../../../base/config/yaml.ts"
import { isPlain } from "../../../base/config/plain.ts"
import * as Layout from "../../../run/Layout.ts"
import { onDisk } from "../../../run/store/FileTree.ts"
import { gitCommit } from "../../../run/store/git-node.ts"
import { holdLock } from "../../../run/store/lock.ts"
import { owner } from "../../../run/store/owner-node.ts"
import { suggest } from "../../tune/study.ts"
import { readStudy, type Study } from "../../tune/StudySettings.ts"
import type { Trial } from "../../tune/Trial.ts"
import { watchModules } from "../../../spread/cluster/sent/loadedModules-node.ts"
import { defaultResultsDir, flagWords, isBucket, quoted, subcommand } from "../flags.ts"
import { warningLabel } from "../output/colors.ts"
import { Output, usageError, writeError, writeJson, writeOut } from "../output/output.ts"
import { removeAttempts } from "../../sweep/job.ts"
import { withFindRun } from "../run/finding.ts"
import { withConfigs } from "../trust/ownFiles.ts"
import { loadTraining } from "../userCode/loadTraining.ts"
import { notKeys, readLocatedYaml } from "../userCode/yamlFile.ts"
import { dispatcherLayer, resumedCluster } from "../worker/cluster.ts"
import { flags, type TuneFlags } from "./flags.ts"
import {
  earlierStudy,
  newStudy,
  pathOf,
  refuseOtherStudy,
  refuseOtherTraining,
  saveSettings,
  type StudyFolder,
} from "./folder.ts"
import { checkMetric, measuresTime } from "./metric.ts"
import { checkSpace, planBase, planTrial, type Tuned } from "./plan.ts"
import { bestYaml, resultOf, statusLine, summary, trialLine } from "./report.ts"
import { runTrials, type TrialEvents } from "./trials.ts"

export const tune = subcommand(
  "tune",
  {
    description:
      "Search for better settings of a training: run trials with settings that earlier results suggest (TPE) or that are " +
      "drawn at random, stop those that fall behind, and report the best. All trials are ordinary runs in one folder, the " +
      "study. Ctrl-C saves it and prints the command that resumes it, with the same result.",
    examples: {
      "effect tune train.ts --space space.yaml --trials 60": "Run 60 trials with the settings in space.yaml",
      "effect tune train.ts --resume latest": "Resume the newest unfinished study of this name",
      "effect tune train.ts --resume latest --trials 100": "Add trials to a study",
      "effect tune train.ts --space space.yaml --dry-run": "Check the settings and show the first trials",
    },
  },
  flags,
  Effect.fnUntraced(function* (input) {
    if (isBucket(input.resultsDir))
      return yield* usageError("--results-dir: a study is saved in a folder, not in a bucket")
    if (Option.isNone(input.space) && Option.isNone(input.resume))
      return yield* usageError("expected --space FILE with the settings to vary, or --resume STUDY")
    if (Option.isSome(input.cluster)) watchModules()
    const configs = [...Option.toArray(input.config), ...Option.toArray(input.space)]
    const study = Effect.gen(function* () {
      const tuned: Tuned = { input, training: yield* loadTraining(input.file) }
      const folder = yield* openStudy(tuned)
      if (folder === undefined) return
      const running = Effect.scoped(inFolder(tuned, folder)).pipe(Effect.provide(dispatcherLayer(input.cluster)))
      yield* input.alert.length === 0 ? running : alertingStudy(input.alert, folder, running)
    })
    yield* study.pipe(withFindRun(input), withConfigs(input.file, configs, Option.isNone(input.resume)))
  }),
)

/** Runs the trials of a study with the alerts of the command. */
const alertingStudy = <A, E, R>(flags: ReadonlyArray<string>, folder: StudyFolder, running: Effect.Effect<A, E, R>) =>
  Effect.flatMap(
    Effect.promise(() => import("../alerts/alerts.ts")),
    ({ alerting }) =>
      alerting({ flags, about: { run: pathOf(folder), name: folder.file.name }, what: "a study" }, running),
  )

/** Reads the file of `--space`, and checks it against the training. Returns the study, and the base config of its trials. */
const readSpace = Effect.fnUntraced(function* (tuned: Tuned, file: string) {
  const { input } = tuned
  const { value, lines } = yield* readLocatedYaml(file)
  if (!isPlain(value)) return yield* notKeys(file, value)
  const fromFlags = {
    ...(Option.isSome(input.trials) ? { trials: input.trials.value } : {}),
    ...(Option.isSome(input.seed) ? { seed: input.seed.value } : {}),
  }
  const sources = new Map([...lines, ...Object.keys(fromFlags).map((key) => [key, `--${key}`] as const)])
  const origin = { source: file, sources }
  const study = yield* readStudy({ ...value, ...fromFlags }, origin)
  yield* checkMetric(study.settings.metric, origin)
  const planned = yield* checkSpace(tuned, study, origin)
  return { study, ...planned }
})

/** Makes a new study, or opens the study to resume. Returns undefined after `--dry-run`. */
const openStudy = Effect.fnUntraced(function* (tuned: Tuned) {
  const { input } = tuned
  const written = Option.isSome(input.space) ? yield* readSpace(tuned, input.space.value) : undefined
  if (Option.isNone(input.resume)) {
    if (written === undefined) return undefined
    if (input.dryRun) return yield* dryRun(tuned, written.study)
    const base = asSaved(written.effective)
    return yield* newStudy(input.resultsDir, written.study, {
      file: input.file,
      name: written.identity.name,
      commit: yield* gitCommit,
      base: isPlain(base) ? base : {},
    })
  }
  const { identity, effective } = written ?? (yield* planBase(tuned))
  const folder = yield* earlierStudy(input.resume.value, input.resultsDir, identity.name)
  if (written !== undefined) yield* refuseOtherStudy(folder, written.study)
  if (Option.isSome(input.seed) && input.seed.value !== folder.study.settings.seed)
    return yield* usageError(
      `--seed ${input.seed.value}: the study was started with seed ${folder.study.settings.seed}`,
    )
  yield* refuseOtherTraining(folder, effective)
  const trials = Option.getOrElse(input.trials, () => folder.study.settings.trials)
  if (trials < folder.trials.length)
    return yield* usageError(`--trials ${trials}: the study has ${folder.trials.length} trials already; expected more`)
  const longer: StudyFolder = {
    ...folder,
    study: { ...folder.study, settings: { ...folder.study.settings, trials } },
    // If no trial has succeeded yet, the training was broken, so all trials are run again.
    trials: folder.trials.every(({ state }) => state === "failed") ? [] : folder.trials,
  }
  if (input.dryRun) return yield* dryRun(tuned, longer.study)
  return longer
})

/** Implements `--dry-run`: prints the settings of the first trials, which are suggested before any trial has ended. */
const dryRun = Effect.fnUntraced(function* (tuned: Tuned, study: Study) {
  const { trials, parallel, seeds } = study.settings
  const first = Array.from({ length: Math.min(trials, parallel) }, (_, number) => ({
    number,
    params: suggest(study, number, { ended: [], pending: [] }),
    limits: [],
  }))
  for (const trial of first) yield* planTrial(tuned, study, trial)
  if (tuned.input.json) return yield* writeJson({ trials, seeds, first: first.map(({ params }) => params) })
  const lines = first.map(({ number, params }) =>
    trialLine({ trial: number, state: "finished", value: null, reason: null, params, runs: [], curve: [] }),
  )
  yield* writeOut(`${lines.join("")}${trials} trials, each with ${seeds} ${seeds === 1 ? "run" : "runs"}\n`)
})

/** Returns the command that resumes a study. */
const resumeCommand = (input: TuneFlags, directory: string): string => {
  const { config, set, totalSteps, backend, threads, name, workers, cluster, csv, resultsDir } = input
  const words = flagWords({
    config,
    set,
    "total-steps": totalSteps,
    backend: backend === "auto" ? undefined : backend,
    threads,
    name,
    workers,
    cluster: resumedCluster(cluster),
    csv,
    "results-dir": resultsDir === defaultResultsDir ? undefined : resultsDir,
    resume: directory,
  })
  return `npx effect tune ${quoted([input.file, ...words])}`
}

/** Runs the trials that have not ended, and holds the lock of the study's folder during that time. */
const inFolder = Effect.fnUntraced(function* (tuned: Tuned, folder: StudyFolder) {
  const { input } = tuned
  const { study, resultsDir, time } = folder
  const directory = pathOf(folder)
  const command = resumeCommand(input, directory)
  yield* holdLock(join(directory, Layout.sweepLock), owner)
  yield* saveSettings(folder)
  const isSpread = Option.isSome(input.cluster)
  const most = isSpread ? study.settings.parallel : Math.max(1, availableParallelism())
  const { stderr } = yield* Output
  const write = (text: string): void => void (input.quiet || stderr(text))
  const isTerminal = process.stderr.isTTY === true
  const watched = watchedBy(study, write, isTerminal)
  const { metric } = study.settings
  if (measuresTime(metric))
    write(
      `${warningLabel()} metric: ${metric} measures time, so the best trial depends on this machine and on what else it does; ` +
        "run nothing else meanwhile, and one trial at a time: --workers 1\n",
    )
  const workers = Option.getOrElse(input.workers, () => most)
  const trials = yield* runTrials(tuned, folder, { workers, command, watched }).pipe(
    Effect.onExit((exit) => {
      if (Exit.isSuccess(exit)) return Effect.void
      if (Cause.hasInterruptsOnly(exit.cause)) return writeError(`\ninterrupted; resume with: ${command}\n`)
      // The error needs a line of its own.
      return Effect.sync(() => isTerminal && write(eraseLine))
    }),
  )
  if (isSpread) yield* removeAttempts(resultsDir, time)
  const best = bestYaml(study, trials)
  if (best !== undefined) yield* (yield* onDisk(directory)).write(Layout.study.best, best)
  if (input.json) return yield* writeJson(resultOf(study, trials, directory))
  if (input.quiet) return
  const bestFile = join(directory, Layout.study.best)
  yield* writeOut(summary(study, trials, { input, directory, bestFile }))
})

/** The characters that erase the last line of a terminal. */
const eraseLine = "\r\u001b[J"

/** Shows the progress of a study: a line for each trial that has ended, and on a terminal a last line that is redrawn. */
const watchedBy = (study: Study, write: (text: string) => void, isTerminal: boolean): TrialEvents => {
  const ended: Array<Trial> = []
  const running = new Set<number>()
  const show = (text: string): void => {
    if (!isTerminal) return write(harmless(text))
    const status = harmless(statusLine(study, ended, running.size))
    write(`${eraseLine}${harmless(text)}${ended.length < study.settings.trials ? status : ""}`)
  }
  return {
    started: (trial) => {
      running.add(trial)
      show("")
    },
    ended: (trial, isEarlier) => {
      running.delete(trial.trial)
      ended.push(trial)
      show(isEarlier ? "" : trialLine(trial))
    },
  }
}
