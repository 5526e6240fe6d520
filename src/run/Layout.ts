/**
 * Names every file and folder of a run. No other file in `src/` spells one of these names, so the layout of a run can be
 * read, and changed, here. Paths are relative to the run's folder, with `/`. The path of that folder
 * itself is defined in `identifier.ts`.
 *
 * A run's config can place its checkpoints, its scores and its logs elsewhere. Writers and readers still use the
 * usual paths: `Places` maps them to the actual ones, and `locate` translates a path.
 *
 * @example
 * ```ts
 * validationScores(50) // "scores/val/50_seen_episodes_scores.jsonl"
 * seenEpisodesOf("50_seen_episodes_scores.jsonl") // 50
 * locate(places({ checkpoints: "models" }), `${checkpoints}/${latestPointer}`) // "models/latest.json"
 * ```
 */
import { tidyFolder } from "../base/files/files.ts"
import { dataAt } from "./find/Value.ts"

export { childNameOf, childOf, isChildName } from "./identifier.ts"

const padded = (number: number, width: number): string => String(number).padStart(width, "0")

/** Returns the number that the first group of a pattern matches in a name; undefined if the name does not match. */
const numberIn = (pattern: RegExp, name: string): number | undefined => {
  const digits = pattern.exec(name)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/* Files that describe a run */

/** The effective config. A folder with this file is a run, and `effect run` accepts the file as input. */
export const config = "config.yaml"
export const configJson = "config.json"
export const description = "description.txt"
/** The commit of the code that made the run, and its uncommitted changes. */
export const provenance = "git.json"
export const provenanceDiff = "git.diff"
/** The folder with a copy of the program that made the run, and of the local files that it imports. */
export const code = "code"

/* Files about the progress of a run */

export const log = "run.log"
export const tensorBoard = "logs.tfevents"
export const progressCsv = "progress.csv"
export const system = "system.jsonl"
/** The file with the name of the process that is writing the run. It is removed when the run ends. */
export const lock = "run.lock"
/** The file with the number of the process that may write the run; see `store/fence.ts`. It is kept when the run ends. */
export const lease = "run.lease"
/** Tells whether a file describes the processes that write a run. A copy of the run leaves these files out. */
export const isOfWriter = (name: string): boolean => name === lock || name === lease
/** The file with the command that resumes a sweep. Each run that belongs to a sweep has it. */
export const sweepCommand = "sweep.txt"

/**
 * Returns the folder for the large attachments of jobs that other machines do. It is removed when the jobs are done. The name
 * distinguishes a run from an evaluation of it, which may send jobs at the same time.
 */
export const sent = (name: string): string => `.sent-${name}`

/** The file with what the run's owner noted about it: see `manage/labels.ts`. Neither the run nor a resume reads it. */
export const labels = "labels.json"

/* Files with the results of a run */

export const metrics = "metrics.json"
/** The validations, in the format of RLtools. This file is written last: a run that has it is finished. */
export const returns = "return.json"
/** The files that a run deletes before it starts or resumes: with them, the run would look finished. */
export const results: ReadonlyArray<string> = [returns, metrics]

/* Files of scores and of rollouts, with one record per line */

export const scores = "scores"
const trainFolder = "train"
const validationFolder = "val"
export const trainScoresFolder = `${scores}/${trainFolder}`
export const trainScores = `${trainScoresFolder}/scores.jsonl`
export const validationScoresFolder = `${scores}/${validationFolder}`
/**
 * Returns the path of the file with a validation's scores. `seenEpisodes` is the number of training episodes before the
 * validation; in an evaluation of agents, it is the index of the agent.
 */
export const validationScores = (seenEpisodes: number): string =>
  `${validationScoresFolder}/${seenEpisodes}_seen_episodes_scores.jsonl`

const rolloutsFolder = "rollouts"
export const trainRollouts = `${rolloutsFolder}/${trainFolder}/rollouts.jsonl`
export const validationRolloutsFolder = `${rolloutsFolder}/${validationFolder}`
export const validationRollouts = (seenEpisodes: number): string =>
  `${validationRolloutsFolder}/${seenEpisodes}_seen_episodes_rollouts.jsonl`
export const rollouts = (phase: "train" | number): string =>
  phase === "train" ? trainRollouts : validationRollouts(phase)

/** Returns the number in the name of a validation's file of scores or rollouts; undefined for other files. */
export const seenEpisodesOf = (name: string): number | undefined =>
  numberIn(/^(\d+)_seen_episodes_(?:scores|rollouts)\.jsonl$/, name)

/** Returns those of `names` that are score files of validations, in the order in which a run writes them. */
export const validationFilesIn = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names
    .map((name) => ({ name, seen: seenEpisodesOf(name) ?? NaN }))
    .filter(({ name, seen }) => !Number.isNaN(seen) && name === fileName(validationScores(seen)))
    .sort((a, b) => a.seen - b.seen)
    .map(({ name }) => name)

export const fileName = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/* Rollouts that a user's own program wrote, in a folder without config.yaml */

export const batchRollouts = "rollouts.jsonl"
export const batchOutcomes = "outcomes.jsonl"
export const samples = "samples.jsonl"

/* Agents that ask a language model */

const memories = "memories"
const memoryName = (episode: number): string => `memory_${episode}.jsonl`
/** Returns the path of the agent's memory after this many episodes. */
export const memory = (episode: number): string => `${memories}/${memoryName(episode)}`

const callsFolder = "llm_calls"

interface CallPlace {
  readonly phase: "train" | "default" | { readonly seenEpisodes: number }
  readonly purpose: string
  readonly episode: number
  readonly step: number
}

/** Returns the folder with a file for each call of a language model in this phase and for this purpose. */
export const callFolder = ({ phase, purpose }: Pick<CallPlace, "phase" | "purpose">): string => {
  const folder = typeof phase === "string" ? phase : `validation/val_${phase.seenEpisodes}`
  return `${callsFolder}/${folder}/${purpose}s`
}

/** Returns the path of the file of one model call; `call` is its number within the step, from 0. */
export const callFile = (place: CallPlace, call: number): string => {
  const { purpose, episode, step } = place
  const name = `${purpose}_episode_${padded(episode, 6)}_step_${padded(step, 4)}_call_${padded(call, 2)}.json`
  return `${callFolder(place)}/${name}`
}

/* Checkpoints */

export const checkpoints = "checkpoints"
/** Two pointers to the newest checkpoint: a link to its folder, and for systems without links, a file with its name. */
export const latest = "latest"
export const latestPointer = "latest.json"

export const checkpoint = (name: string): string => `${checkpoints}/${name}`
export const checkpointFile = (name: string, file: string): string => `${checkpoint(name)}/${file}`

/** The unit in a checkpoint's name: trainings count steps, language-model agents count episodes. */
type CheckpointUnit = "step" | "ep"
const checkpointDigits: Readonly<Record<CheckpointUnit, number>> = { step: 15, ep: 6 }

export const checkpointName = (unit: CheckpointUnit, count: number): string =>
  `${unit}_${padded(count, checkpointDigits[unit])}`

/** Returns the unit and count in the name of a checkpoint; undefined for other names. */
export const checkpointOf = (name: string): { readonly unit: CheckpointUnit; readonly count: number } | undefined => {
  const [, unit, digits] = /^(step|ep)_(\d+)$/.exec(name) ?? []
  return unit === "step" || unit === "ep" ? { unit, count: Number(digits) } : undefined
}

/** The files of one checkpoint. */
export const inCheckpoint = {
  /** The file with the sizes and digests of all other files. */
  manifest: "manifest.json",
  runtime: "runtime.json",
  agent: "agent.json",
  memory: memoryName,
  weights: "weights.safetensors",
  envs: "envs.safetensors",
  policy: "policy.onnx",
  /** Returns the name of the file of the policy, or of one of several separate policies. */
  policyOf: (name?: string): string => (name === undefined ? "policy.onnx" : `policy.${name}.onnx`),
  /** Returns the name of the file for a named part of the learner's state, e.g. the optimiser. */
  arrays: (part: string): string => `${part}.safetensors`,
} as const

/** Returns the name of the part of the learner's state that a checkpoint file holds; undefined for other files. */
export const arraysOf = (file: string): string | undefined => /^(.*)\.safetensors$/.exec(file)?.[1]

/** Tells whether a checkpoint file holds a policy. */
export const isPolicy = (file: string): boolean => file === inCheckpoint.policy || separatePolicyOf(file) !== undefined

/** Returns the name of the separate policy that a file of a checkpoint or of a step's folder holds; undefined for other files. */
export const separatePolicyOf = (file: string): string | undefined =>
  /^(?:policy|checkpoint)\.(.+)\.onnx$/.exec(file)?.[1]

/* Folders that a training exports at some of its steps, as RLtools' viewer expects them */

export const steps = "steps"
export const stepFolder = (step: number): string => `${steps}/${padded(step, 15)}`

/** Returns the step of a folder in `steps/`; undefined for other names. */
export const stepOf = (name: string): number | undefined => numberIn(/^(\d+)$/, name)

export const inStep = {
  trajectories: "trajectories.json.gz",
  picture: "episode.svg",
  /** Returns the name of a video: `episode.gif`, and `episode_1.gif` for the second one. */
  videoOf: (format: "gif" | "mp4", index: number): string =>
    index === 0 ? `episode.${format}` : `episode_${index}.${format}`,
  evaluation: "evaluation_results.json",
  weights: "checkpoint.safetensors",
  onnx: "checkpoint.onnx",
  /** Returns the name of the file of the policy, or of one of several separate policies. */
  onnxOf: (policy?: string): string => (policy === undefined ? "checkpoint.onnx" : `checkpoint.${policy}.onnx`),
  header: "checkpoint.h",
  hdf5: "checkpoint.h5",
} as const

/** Returns the step folder of an exported policy (`steps/…/checkpoint.h5`); undefined for other paths. */
export const stepOfPolicy = (path: string): string | undefined => /^(steps\/\d+)\/checkpoint\.[^/]+$/.exec(path)?.[1]

/** The code that renders the env's states in a browser, for the trajectories in step folders, as two kinds of script. */
export const ui = { module: "ui.esm.js", classic: "ui.js" } as const

/* Evaluations */

export const evaluation = {
  episodes: "episodes.jsonl",
  steps: "steps.jsonl",
  table: "table.csv",
  /** The file with the episodes that an unfinished evaluation has played so far. */
  journal: "played.jsonl",
} as const

/* Gateways */

/** The file with the calls that a gateway has recorded, from which it resumes. */
export const gatewayJournal = "sessions.jsonl"

/* Runs that learn prompts */

/** The best texts that a run has found, by name. An agent loads this file. */
export const learntTexts = "texts.json"
export const prompts = {
  /** All candidates with their parents and scores, and what each iteration did. */
  candidates: "candidates.json",
  /** The played episodes and the reflections, from which the run resumes. */
  journal: "prompts.jsonl",
} as const

/* Files in the folders that contain runs */

/** The list of all files below the results folder. A page on a static web server finds the runs with it. */
export const resultsIndex = "index.txt"
export const resultsIndexLock = ".index.lock"
/** The file in a sweep's folder that marks the sweep as in progress. */
export const sweepLock = "sweep.lock"
/**
 * The files in the folder of a study (the sweep of `effect tune`): its settings, its trials with one line for each, and the
 * settings of the best trial, for `--config`.
 */
export const study = { settings: "study.yaml", trials: "trials.jsonl", best: "best.yaml" } as const
/** The folder in a results folder in which other machines train the runs of a sweep, until the runs are finished. */
export const attempts = ".attempts"
/** The summary of runs that differ only in their seed. It is in one of their folders; the folder above has a link to it. */
export const seedsSummary = "seeds.json"

/* Files that grow line by line. After a resume, they must end up equal to those of an uninterrupted run. */

/** The growing files (files to which a run appends) that are logs. Damage to a log does not prevent a resume. */
export const growingLogs: ReadonlyArray<string> = [tensorBoard, progressCsv]

/** The folders that hold growing files, each with a pattern for the names of these files. */
export const growingFolders: Readonly<Record<string, RegExp>> = {
  [trainScoresFolder]: /\.jsonl$/,
  [validationScoresFolder]: /\.jsonl$/,
  // The folder may also hold `samples.jsonl`, which a user computed from the rollouts, so match only rollouts.
  [`${rolloutsFolder}/${trainFolder}`]: /rollouts\.jsonl$/,
  [validationRolloutsFolder]: /rollouts\.jsonl$/,
  [memories]: /\.jsonl$/,
}

/* Files that a config places elsewhere */

/** Maps the usual path of a file or folder to its actual one, if that differs: `{ checkpoints: "models" }`. */
export type Places = Readonly<Record<string, string>>

/** The settings of a config that place files. A path is absolute, or relative to the run's folder. */
interface Placement {
  readonly checkpoints?: string | null | undefined
  /** The folder of run.log, logs.tfevents and progress.csv. */
  readonly logs?: string | null | undefined
  /** The folder to put `scores/` into. For a path of a file, such as `logs/scores.jsonl`, it is the file's folder. */
  readonly scores?: string | null | undefined
}

/** Returns the path of a file in a folder of the run, where `.` is the run's own folder. */
export const inFolder = (folder: string, name: string): string => (folder === "." ? name : `${folder}/${name}`)

const tidy = (folder: string): string => (folder.startsWith("/") ? `/${tidyFolder(folder)}` : tidyFolder(folder))

/** Returns the actual paths of a run's files that its settings move away from their usual paths. */
export const places = (placement: Placement): Places => {
  const logs = tidy(placement.logs ?? ".")
  const all = {
    [checkpoints]: tidy(placement.checkpoints ?? checkpoints),
    ...Object.fromEntries([log, tensorBoard, progressCsv].map((file) => [file, inFolder(logs, file)])),
    [scores]: inFolder(scoresRoot(placement.scores ?? null), scores),
  }
  return Object.fromEntries(Object.entries(all).filter(([usual, place]) => usual !== place))
}

/** The paths of the settings in config.yaml that place files, for readers that don't parse the whole file. */
export const placeKeys: ReadonlyArray<ReadonlyArray<string>> = [
  ["checkpoint", "dir"],
  ["runtime", "checkpoint_dir"],
  ["log_dir"],
  ["runtime", "scores_path"],
]

/** Returns the places of a run, as `places` does, from the values of `placeKeys` in the run's config, in the same order. */
export const placesAt = (values: ReadonlyArray<unknown>): Places => {
  const [trainingDir, agentsDir, logs, scores] = values.map((value) => (typeof value === "string" ? value : undefined))
  return places({ checkpoints: trainingDir ?? agentsDir, logs, scores })
}

/** Returns the places of a run, as `places` does, from the parsed config.yaml. */
export const placesIn = (config: unknown): Places => placesAt(placeKeys.map((path) => dataAt(config, path)))

/** Returns the actual path of a file or folder, given its usual path. */
export const locate = (places: Places, path: string): string => {
  for (const [from, to] of Object.entries(places)) {
    if (path === from) return to
    if (path.startsWith(`${from}/`)) return inFolder(to, path.slice(from.length + 1))
  }
  return path
}

/**
 * Returns the path of a checkpoint's file below `folder`, which holds the checkpoints; undefined for other files. If
 * `folder` is the run's own folder (`.`), only `latest.json` and files in folders named like checkpoints count.
 */
export const belowCheckpoints = (path: string, folder: string): string | undefined => {
  if (folder !== ".") return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : undefined
  const [first, ...rest] = path.split("/")
  return path === latestPointer || (rest.length > 0 && checkpointOf(first) !== undefined) ? path : undefined
}

/** Returns the folder that holds `scores/`: `.` for the path `scores.jsonl`, `logs` for `logs/scores.jsonl`. */
export const scoresRoot = (scoresPath: string | null): string => {
  if (scoresPath === null) return "."
  const root = scoresPath.startsWith("/") ? "/" : ""
  const parts = scoresPath.split("/").filter((part) => part !== "" && part !== ".")
  const last = parts.at(-1) ?? ""
  const folders = last.lastIndexOf(".") > 0 ? parts.slice(0, -1) : parts
  return folders.length === 0 ? root || "." : `${root}${folders.join("/")}`
}
