/**
 * Names every file and folder of a run. No other file in `src/` spells one of these names, so the layout of a run can be
 * read, and changed, here. Paths are relative to the run's folder, with `/`; where that folder itself lies, `identifier.ts`
 * says.
 *
 * A run's config can place its checkpoints, its scores and its logs elsewhere. Writers and readers use the usual paths all
 * the same: `Places` says where they really lie, and `locate` translates.
 *
 * @example
 * ```ts
 * validationScores(50) // "scores/val/50_seen_episodes_scores.jsonl"
 * seenEpisodesOf("50_seen_episodes_scores.jsonl") // 50
 * locate(places({ checkpoints: "models" }), `${checkpoints}/${latestPointer}`) // "models/latest.json"
 * ```
 */
import { tidyFolder } from "../config/files.ts"
import { dataAt } from "./find/Value.ts"

const padded = (number: number, width: number): string => String(number).padStart(width, "0")

/** The number that a name holds by this pattern; undefined where the name doesn't match it. */
const numberIn = (pattern: RegExp, name: string): number | undefined => {
  const digits = pattern.exec(name)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/* What a run is */

/** The effective config. A folder that has it is a run, and `effect run` accepts it back. */
export const config = "config.yaml"
export const configJson = "config.json"
export const description = "description.txt"
/** The commit of the code that the run was made by, and what had been changed since. */
export const provenance = "git.json"
export const provenanceDiff = "git.diff"

/* How it goes */

export const log = "run.log"
export const tensorBoard = "logs.tfevents"
export const progressCsv = "progress.csv"
export const system = "system.jsonl"
/** Names the process that is writing the run, for as long as it does. */
export const lock = "run.lock"
/** The command that resumes the sweep that a run is part of. */
export const sweepCommand = "sweep.txt"

/* What came out */

export const metrics = "metrics.json"
/** The validations, in the format of RLtools. It is written last: a run that has it is finished. */
export const returns = "return.json"
/** What a new attempt at a run removes first: with these in the folder, the run would look finished. */
export const results: ReadonlyArray<string> = [returns, metrics]

/* Scores and rollouts, line by line */

export const scores = "scores"
const trainFolder = "train"
const validationFolder = "val"
export const trainScoresFolder = `${scores}/${trainFolder}`
export const trainScores = `${trainScoresFolder}/scores.jsonl`
export const validationScoresFolder = `${scores}/${validationFolder}`
/** The scores of the validation after so many training episodes; of an evaluation, of its agent with this number. */
export const validationScores = (seenEpisodes: number): string =>
  `${validationScoresFolder}/${seenEpisodes}_seen_episodes_scores.jsonl`

const rolloutsFolder = "rollouts"
export const trainRollouts = `${rolloutsFolder}/${trainFolder}/rollouts.jsonl`
export const validationRolloutsFolder = `${rolloutsFolder}/${validationFolder}`
export const validationRollouts = (seenEpisodes: number): string =>
  `${validationRolloutsFolder}/${seenEpisodes}_seen_episodes_rollouts.jsonl`
export const rollouts = (phase: "train" | number): string =>
  phase === "train" ? trainRollouts : validationRollouts(phase)

/** The number in the name of a validation's file of scores or rollouts; undefined for any other file. */
export const seenEpisodesOf = (name: string): number | undefined =>
  numberIn(/^(\d+)_seen_episodes_(?:scores|rollouts)\.jsonl$/, name)

/** The names of the validations' score files among these, in the order in which they were written. */
export const validationFilesIn = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names
    .map((name) => ({ name, seen: seenEpisodesOf(name) ?? NaN }))
    .filter(({ name, seen }) => !Number.isNaN(seen) && name === fileName(validationScores(seen)))
    .sort((a, b) => a.seen - b.seen)
    .map(({ name }) => name)

/** The last part of a path. */
export const fileName = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/* Rollouts that a program of the user's wrote, without a config */

export const batchRollouts = "rollouts.jsonl"
export const batchOutcomes = "outcomes.jsonl"
export const samples = "samples.jsonl"

/* Agents that ask a language model */

const memories = "memories"
const memoryName = (episode: number): string => `memory_${episode}.jsonl`
/** The memory of an agent after so many episodes. */
export const memory = (episode: number): string => `${memories}/${memoryName(episode)}`

const callsFolder = "llm_calls"

export interface CallPlace {
  readonly phase: "train" | "default" | { readonly seenEpisodes: number }
  readonly purpose: string
  readonly episode: number
  readonly step: number
}

/** The folder with the files of calls of one purpose. */
export const callFolder = ({ phase, purpose }: Pick<CallPlace, "phase" | "purpose">): string => {
  const folder = typeof phase === "string" ? phase : `validation/val_${phase.seenEpisodes}`
  return `${callsFolder}/${folder}/${purpose}s`
}

/** The file of one call of a model, which is the `call`th in its step, from 0. */
export const callFile = (place: CallPlace, call: number): string => {
  const { purpose, episode, step } = place
  const name = `${purpose}_episode_${padded(episode, 6)}_step_${padded(step, 4)}_call_${padded(call, 2)}.json`
  return `${callFolder(place)}/${name}`
}

/* Checkpoints */

export const checkpoints = "checkpoints"
/** In the folder of checkpoints: a link to the newest, and a file that names it where links cannot be had. */
export const latest = "latest"
export const latestPointer = "latest.json"

export const checkpoint = (name: string): string => `${checkpoints}/${name}`
export const checkpointFile = (name: string, file: string): string => `${checkpoint(name)}/${file}`

/** Trainings count steps, agents that talk count episodes. */
export type CheckpointUnit = "step" | "ep"
const checkpointDigits: Readonly<Record<CheckpointUnit, number>> = { step: 15, ep: 6 }

export const checkpointName = (unit: CheckpointUnit, count: number): string =>
  `${unit}_${padded(count, checkpointDigits[unit])}`

/** What the name of a checkpoint says; undefined for any other name. */
export const checkpointOf = (name: string): { readonly unit: CheckpointUnit; readonly count: number } | undefined => {
  const [, unit, digits] = /^(step|ep)_(\d+)$/.exec(name) ?? []
  return unit === "step" || unit === "ep" ? { unit, count: Number(digits) } : undefined
}

/** The files of one checkpoint. */
export const inCheckpoint = {
  /** Digests of the others. */
  manifest: "manifest.json",
  runtime: "runtime.json",
  /** Of an agent that talks. */
  agent: "agent.json",
  memory: memoryName,
  /** Of a training. */
  weights: "weights.safetensors",
  envs: "envs.safetensors",
  policy: "policy.onnx",
  /** A part of the learner's state, by its name. */
  arrays: (part: string): string => `${part}.safetensors`,
} as const

/** The part of the learner's state that a file of a checkpoint holds; undefined where the file holds something else. */
export const arraysOf = (file: string): string | undefined => /^(.*)\.safetensors$/.exec(file)?.[1]

/* What there is to look at and to take away at some step of a training, as RLtools' viewer expects it */

export const steps = "steps"
export const stepFolder = (step: number): string => `${steps}/${padded(step, 15)}`

/** The step of a folder in `steps/`, by its name; undefined for any other name. */
export const stepOf = (name: string): number | undefined => numberIn(/^(\d+)$/, name)

export const inStep = {
  trajectories: "trajectories.json.gz",
  picture: "episode.svg",
  evaluation: "evaluation_results.json",
  weights: "checkpoint.safetensors",
  onnx: "checkpoint.onnx",
  header: "checkpoint.h",
  hdf5: "checkpoint.h5",
} as const

/** The step folder of an exported policy (`steps/…/checkpoint.h5`); undefined for any other path. */
export const stepOfPolicy = (path: string): string | undefined => /^(steps\/\d+)\/checkpoint\.[^/]+$/.exec(path)?.[1]

/** The drawing of the env, for the step folders' trajectories. */
export const ui = { module: "ui.esm.js", classic: "ui.js" } as const

/* Evaluations */

export const evaluation = {
  episodes: "episodes.jsonl",
  steps: "steps.jsonl",
  table: "table.csv",
  /** The episodes that an unfinished evaluation has played. */
  journal: "played.jsonl",
} as const

/* Above the runs */

/** Names every file below the results folder, for pages on static web servers. */
export const resultsIndex = "index.txt"
export const resultsIndexLock = ".index.lock"
/** In the folder of a sweep for as long as the sweep is at work. */
export const sweepLock = "sweep.lock"
/** What several seeds have in common. It lies in one of the runs; next to the runs, a link named `metrics.json` leads to it. */
export const seedsSummary = "seeds.json"

/* Files that grow line by line and must be, at the end, as if the run had never been interrupted */

/** The logs among them, to which damage must not stop a run from being resumed. */
export const growingLogs: ReadonlyArray<string> = [tensorBoard, progressCsv]

/** Folders of others, and which of their files grow. */
export const growingFolders: Readonly<Record<string, RegExp>> = {
  [trainScoresFolder]: /\.jsonl$/,
  [validationScoresFolder]: /\.jsonl$/,
  // The folder may also hold samples, which are made of the rollouts.
  [`${rolloutsFolder}/${trainFolder}`]: /rollouts\.jsonl$/,
  [validationRolloutsFolder]: /rollouts\.jsonl$/,
  [memories]: /\.jsonl$/,
}

/* Where a config places them */

/** The places of files and folders that lie elsewhere than usual, by their usual paths: `{ checkpoints: "models" }`. */
export type Places = Readonly<Record<string, string>>

/** What a config can say of places. A folder is relative to the run's, or absolute. */
export interface Placement {
  readonly checkpoints?: string | null | undefined
  /** The folder of run.log, logs.tfevents and progress.csv. */
  readonly logs?: string | null | undefined
  /** The path of a file of scores, next to which `scores/` lies; or that folder. */
  readonly scores?: string | null | undefined
}

const join = (folder: string, name: string): string => (folder === "." ? name : `${folder}/${name}`)

const tidy = (folder: string): string => (folder.startsWith("/") ? `/${tidyFolder(folder)}` : tidyFolder(folder))

export const places = (placement: Placement): Places => {
  const logs = tidy(placement.logs ?? ".")
  const all = {
    [checkpoints]: tidy(placement.checkpoints ?? checkpoints),
    ...Object.fromEntries([log, tensorBoard, progressCsv].map((file) => [file, join(logs, file)])),
    [scores]: join(scoresRoot(placement.scores ?? null), scores),
  }
  return Object.fromEntries(Object.entries(all).filter(([usual, place]) => usual !== place))
}

/** The keys of config.yaml that place files, for readers that don't parse the whole file. */
export const placeKeys: ReadonlyArray<ReadonlyArray<string>> = [
  ["checkpoint", "dir"],
  ["runtime", "checkpoint_dir"],
  ["log_dir"],
  ["runtime", "scores_path"],
]

/** The places, by the values of `placeKeys`. */
export const placesAt = (values: ReadonlyArray<unknown>): Places => {
  const [trainingDir, agentsDir, logs, scores] = values.map((value) => (typeof value === "string" ? value : undefined))
  return places({ checkpoints: trainingDir ?? agentsDir, logs, scores })
}

/** The places in a config as config.yaml holds it. */
export const placesIn = (config: unknown): Places => placesAt(placeKeys.map((path) => dataAt(config, path)))

/** Where a file really lies, by its usual path. */
export const locate = (places: Places, path: string): string => {
  for (const [from, to] of Object.entries(places)) {
    if (path === from) return to
    if (path.startsWith(`${from}/`)) return join(to, path.slice(from.length + 1))
  }
  return path
}

/**
 * The part of a file's path below the folder of the checkpoints; undefined for a file that lies elsewhere. Where that is
 * the run's own folder, only `latest.json` and folders with the name of a checkpoint belong to it.
 */
export const belowCheckpoints = (path: string, folder: string): string | undefined => {
  if (folder !== ".") return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : undefined
  const [first, ...rest] = path.split("/")
  return path === latestPointer || (rest.length > 0 && checkpointOf(first) !== undefined) ? path : undefined
}

/** The folder that holds `scores/`: of the path `scores.jsonl` it is `.`, of `logs/scores.jsonl` it is `logs`. */
export const scoresRoot = (scoresPath: string | null): string => {
  if (scoresPath === null) return "."
  const root = scoresPath.startsWith("/") ? "/" : ""
  const parts = scoresPath.split("/").filter((part) => part !== "" && part !== ".")
  const last = parts.at(-1) ?? ""
  const folders = last.lastIndexOf(".") > 0 ? parts.slice(0, -1) : parts
  return folders.length === 0 ? root || "." : `${root}${folders.join("/")}`
}
