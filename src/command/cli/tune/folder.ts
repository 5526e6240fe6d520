/** Makes the folder of a new study, or finds the folder of the study to resume. It also reads and writes the files in it. */
import { basename, dirname, join, resolve } from "node:path"
import { Effect, Option } from "effect"
import { display, type Plain, toSnakeCase } from "../../../base/config/Config.ts"
import { exists, mostBytes, namesIn, readRunText } from "../../../base/files/files.ts"
import { asSaved } from "../../../base/config/yaml.ts"
import { diff } from "../../../run/find/diff.ts"
import { dateOf, isSameName } from "../../../run/identifier.ts"
import * as Layout from "../../../run/Layout.ts"
import { onDisk } from "../../../run/store/FileTree.ts"
import { parseStudy, parseTrials, type StudyFile, settingsIn, studyText, trialsText } from "../../tune/StudyFile.ts"
import type { Study } from "../../tune/StudySettings.ts"
import type { Trial } from "../../tune/Trial.ts"
import { usageError } from "../output/output.ts"
import { irrelevant, newFolder } from "../../sweep/folder.ts"

/** The folder of a study, with the trials that have ended so far. */
export interface StudyFolder {
  readonly resultsDir: string
  readonly time: string
  readonly file: StudyFile
  readonly study: Study
  readonly trials: ReadonlyArray<Trial>
}

export const pathOf = ({ resultsDir, time }: Pick<StudyFolder, "resultsDir" | "time">): string => join(resultsDir, time)

/** Makes the folder of a new study and saves its settings there. */
export const newStudy = Effect.fnUntraced(function* (resultsDir: string, study: Study, file: Omit<StudyFile, "study">) {
  const { time } = yield* newFolder(resultsDir, [])
  const folder: StudyFolder = { resultsDir, time, file: { ...file, study: {} }, study, trials: [] }
  yield* saveSettings(folder)
  return folder
})

/** Saves the settings of a study. */
export const saveSettings = Effect.fnUntraced(function* (folder: StudyFolder) {
  const files = yield* onDisk(pathOf(folder))
  yield* files.write(Layout.study.settings, studyText({ ...folder.file, study: settingsIn(folder.study.settings) }))
})

/** Saves the records of the trials that have ended: the file is replaced as a whole, so it is never incomplete. */
export const saveTrials = Effect.fnUntraced(function* (directory: string, trials: ReadonlyArray<Trial>) {
  const files = yield* onDisk(directory)
  yield* files.write(Layout.study.trials, trialsText(trials))
})

/**
 * Finds and reads the study that the user named. `latest` means the newest unfinished study with this name, or the newest
 * study if all are finished.
 */
export const earlierStudy = Effect.fnUntraced(function* (wanted: string, resultsDir: string, name: string) {
  if (wanted !== "latest") return yield* readFolder(yield* namedFolder(wanted, resultsDir))
  let finished: StudyFolder | undefined
  for (const path of (yield* studiesIn(resultsDir)).toReversed()) {
    const folder = yield* readFolder(path)
    if (!isSameName(folder.file.name, name)) continue
    if (folder.trials.length < folder.study.settings.trials) return folder
    finished ??= folder
  }
  return finished ?? (yield* usageError(`--resume latest: there is no study of ${name} in ${resultsDir}`))
})

/** Returns the folders of the studies in a results folder, the oldest first. */
const studiesIn = Effect.fnUntraced(function* (resultsDir: string) {
  const paths = (yield* namesIn(resultsDir))
    .filter((one) => dateOf(one) !== undefined)
    .map((one) => join(resultsDir, one))
  return yield* Effect.filter(paths.toSorted(), (path) => exists(join(path, Layout.study.settings)))
})

const namedFolder = Effect.fnUntraced(function* (wanted: string, resultsDir: string) {
  // A path such as `.` is resolved to find the name of the folder. A name that is a time stays as it is, because it may be a
  // part of a path.
  const folder = dateOf(basename(wanted)) === undefined ? resolve(wanted) : wanted
  if (dateOf(basename(folder)) !== undefined && (yield* exists(join(folder, Layout.study.settings)))) return folder
  const paths = (yield* studiesIn(resultsDir)).filter((path) => path.includes(wanted))
  if (paths.length === 1) return paths[0]
  const problem =
    paths.length === 0
      ? "expected the folder of a study, which is named by its time and has a study.yaml, or a part of its path"
      : `${paths.length} studies have this in their paths: ${paths.slice(0, 3).join(", ")}; write more of one of them`
  return yield* usageError(`--resume ${wanted}: ${problem}`)
})

const readFolder = Effect.fnUntraced(function* (path: string) {
  const place = join(path, Layout.study.settings)
  const text = yield* Effect.mapError(readRunText(place, mostBytes.config), ({ message }) =>
    usageError(`${place}: ${message}`),
  )
  const { file, study } = yield* parseStudy(text, place)
  const lines = yield* Effect.option(readRunText(join(path, Layout.study.trials), mostBytes.text))
  const trials = parseTrials(Option.getOrElse(lines, () => ""))
  const folder: StudyFolder = { resultsDir: dirname(path), time: basename(path), file, study, trials }
  return folder
})

/**
 * Refuses to resume a study with another search space or with other settings of the study. Only the number of trials may
 * differ.
 */
export const refuseOtherStudy = Effect.fnUntraced(function* ({ study }: StudyFolder, wanted: Study) {
  const other = diff(toSnakeCase(settingsIn(study.settings)), toSnakeCase(settingsIn(wanted.settings))).find(
    ({ key }) => key !== "trials",
  )
  if (other === undefined) return
  return yield* usageError(
    `--resume: the study was started with ${other.key} = ${display(other.left)}, and now it is ${display(other.right)}; ` +
      "use the same settings, or start a new study without --resume",
  )
})

/** Refuses to resume a study with another training, because new trials would then not be comparable with the earlier ones. */
export const refuseOtherTraining = Effect.fnUntraced(function* ({ file }: StudyFolder, base: Plain) {
  const other = diff(toSnakeCase(file.base), asSaved(toSnakeCase(base))).find(({ key }) => !irrelevant.test(key))
  if (other === undefined) return
  return yield* usageError(
    `--resume: the study was started with ${other.key} = ${display(other.left)}, and this training has ` +
      `${display(other.right)}; use the same settings, or start a new study without --resume`,
  )
})
