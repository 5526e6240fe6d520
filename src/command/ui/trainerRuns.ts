/**
 * Reads the states of a multi-run trainer's runs from the files in their folders: which are trained, which wait for an index,
 * and which were evicted or have a config that cannot be used, with the reason. `runIndex.ts` calls it.
 */
import { Effect } from "effect"
import { readTomlText } from "../../base/formats/toml.ts"
import { readYamlText } from "../../base/config/yaml.ts"
import * as Multirun from "../../trainer/Layout.ts"
import { isEndAfter } from "../../trainer/runs/runFolder.ts"
import { type Token, tokenOf } from "../../trainer/runs/token.ts"
import { dataAt } from "../../run/find/Value.ts"
import type { FileSource } from "../../run/read/FileSource.ts"
import { finite } from "./json.ts"
import { highest } from "../../base/statistics/extremes.ts"

/**
 * The state of a run: `waiting` until an index is free, `stopped` if the trainer no longer works, and `unconfigured` if
 * its folder has no config yet.
 */
type TrainerRunState = "training" | "waiting" | "finished" | "evicted" | "invalid" | "stopped" | "unconfigured"

/** A run of a trainer. */
export interface TrainerRun {
  /** The name of its folder, such as `run_letters`. */
  readonly id: string
  readonly state: TrainerRunState
  /** The position of the run among the waiting runs, from 1; null if it does not wait. */
  readonly place: number | null
  /** The reason why the run was evicted, or why its config cannot be used; null for other runs. */
  readonly reason: string | null
  /** The last step of the run in its config; null if the config has none. */
  readonly maxSteps: number | null
}

/** The state of a run as its files describe it. */
interface Facts extends Pick<TrainerRun, "maxSteps"> {
  readonly signature: string
  readonly evicted: string | null
  readonly problem: string | null
  readonly hasConfig: boolean
  readonly isFinished: boolean
  /** The mark that the trainer left in the folder when it found the run; undefined if it has not found the run. */
  readonly token: Token | undefined
}

interface ListedTrainer {
  /** The path of the trainer's folder. */
  readonly path: string
  /** The names of the folders of its runs. */
  readonly names: ReadonlyArray<string>
  /** The number of runs that are trained at the same time. */
  readonly maxRuns: number
  readonly isRunning: boolean
}

interface StampedFiles extends Pick<FileSource, "text"> {
  /** Returns a text that changes whenever the file changes. */
  readonly stamp: (file: string) => Effect.Effect<string>
}

const { toml, yaml } = Multirun.configFiles
const watched = [Multirun.evicted, Multirun.configProblem, Multirun.finished, Multirun.token, toml, yaml]

/** Makes a function that reads the runs of a trainer. Files that have not changed are not read again. */
export const makeTrainerRuns = (files: StampedFiles) => {
  let kept = new Map<string, Facts>()

  const maxStepsIn = Effect.fnUntraced(function* (folder: string) {
    for (const [name, read] of [
      [yaml, readYamlText],
      [toml, readTomlText],
    ] as const) {
      const text = yield* files.text(`${folder}/${name}`)
      if (text === undefined) continue
      const value = yield* Effect.match(read(text, name), { onSuccess: (one) => one.value, onFailure: () => undefined })
      return { maxSteps: finite(dataAt(value, ["max_steps"])) }
    }
    return undefined
  })

  const factsOf = Effect.fnUntraced(function* (folder: string): Effect.fn.Return<Facts> {
    const signature = (yield* Effect.forEach(watched, (name) => files.stamp(`${folder}/${name}`))).join(" ")
    const before = kept.get(folder)
    if (before?.signature === signature) return before
    const lineIn = (name: string) =>
      Effect.map(files.text(`${folder}/${name}`), (text) => (text === undefined ? null : text.trim()))
    const config = yield* maxStepsIn(folder)
    const maxSteps = config?.maxSteps ?? null
    return {
      signature,
      evicted: yield* lineIn(Multirun.evicted),
      problem: yield* lineIn(Multirun.configProblem),
      hasConfig: config !== undefined,
      maxSteps,
      isFinished: isEndAfter(maxSteps, (yield* lineIn(Multirun.finished)) ?? ""),
      token: tokenOf((yield* files.text(`${folder}/${Multirun.token}`)) ?? ""),
    }
  })

  /** Returns the runs in the order of their names, and forgets the trainer's other runs, whose folders are gone. */
  return Effect.fnUntraced(function* ({ path, names, maxRuns, isRunning }: ListedTrainer) {
    const all = new Map<string, Facts>()
    for (const name of names) all.set(name, yield* factsOf(`${path}/${name}`))
    const isOther = (folder: string): boolean => !folder.startsWith(`${path}/`)
    kept = new Map([...kept].filter(([folder]) => isOther(folder)))
    for (const [name, facts] of all) kept.set(`${path}/${name}`, facts)
    const places = isRunning ? placesOf(all, maxRuns) : undefined
    return Array.from(all, ([id, facts]): TrainerRun => ({
      id,
      ...stateOf(facts, places?.get(id)),
      maxSteps: facts.maxSteps,
    }))
  })
}

/** Tells whether a run would be trained or wait if its trainer were running. */
const isOpen = (facts: Facts): boolean => fixedState(facts) === undefined

/**
 * Returns the positions of the open runs: 0 for runs that are trained, then 1, 2, … for waiting runs. Runs begin in the order
 * in which the trainer found them. Runs that it has not found since its last start come after those.
 */
const placesOf = (all: ReadonlyMap<string, Facts>, maxRuns: number): ReadonlyMap<string, number> => {
  const open = [...all].filter(([, facts]) => isOpen(facts))
  const newest = highest(open.map(([, { token }]) => token?.startedAtMillis ?? -Infinity))
  const orderOf = ({ token }: Facts): number =>
    token?.startedAtMillis === newest ? token.generation : Number.MAX_SAFE_INTEGER
  const ids = open.toSorted(([, a], [, b]) => orderOf(a) - orderOf(b)).map(([id]) => id)
  return new Map(ids.map((id, at) => [id, Math.max(0, at + 1 - maxRuns)]))
}

type RunCondition = Pick<TrainerRun, "state" | "place" | "reason">

/** Returns the state of a run that is neither trained nor waits; undefined for other runs. */
const fixedState = ({ evicted, problem, hasConfig, isFinished }: Facts): RunCondition | undefined => {
  if (evicted !== null) return { state: "evicted", place: null, reason: evicted }
  if (problem !== null) return { state: "invalid", place: null, reason: problem }
  if (!hasConfig) return { state: "unconfigured", place: null, reason: null }
  if (isFinished) return { state: "finished", place: null, reason: null }
  return undefined
}

const stateOf = (facts: Facts, place: number | undefined): RunCondition => {
  const fixed = fixedState(facts)
  if (fixed !== undefined) return fixed
  if (place === undefined) return { state: "stopped", place: null, reason: null }
  return place === 0 ? { state: "training", place: null, reason: null } : { state: "waiting", place, reason: null }
}
