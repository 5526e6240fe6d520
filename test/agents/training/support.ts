import { Effect, FileSystem, Layer, Path } from "effect"
import type { Agent } from "../../../src/agents/agent/Agent.ts"
import * as HistoryAgent from "../../../src/agents/agent/HistoryAgent.ts"
import * as TaskSet from "../../../src/agents/task/TaskSet.ts"
import * as TextEnv from "../../../src/agents/task/TextEnv.ts"
import { type RunFiles, RunStore } from "../../../src/run/store/RunStore.ts"
import type { RunIdentity } from "../../../src/run/identifier.ts"
import type { Lm } from "../../../src/agents/lm/Lm.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import { Recorder, type Sink } from "../../../src/run/record/Recorder.ts"
import type { RunEvent } from "../../../src/run/record/RunEvent.ts"
import { runLog } from "../../../src/run/record/runLog.ts"
import { scores } from "../../../src/run/record/scores.ts"
import * as Runtime from "../../../src/agents/training/Runtime.ts"
import type { RuntimeResult } from "../../../src/agents/training/RuntimeResult.ts"

/** Returns the name of a number, which an agent can't know but only learn. */
const nameOf = (number: number): string => `name-${(number * 7) % 11}`

/** Asks for a number's name twice at most; what was right is told after each try. */
export const naming = (id: string, number: number): TextEnv.TextEnv =>
  TextEnv.make<number>({
    id,
    type: "naming",
    begin: () => ({ state: 0, observation: `What is [${number}] called?` }),
    step: (tries, action) => {
      const right = action.trim() === nameOf(number)
      const message = right ? "Correct." : `The target is "${nameOf(number)}".`
      return {
        state: tries + 1,
        observation: right || tries === 1 ? null : `What is [${number}] called?`,
        feedback: { score: right ? 1 : 0, target: nameOf(number), message },
        terminated: right || tries === 1,
      }
    },
  })

/** Numbers come again and again. */
export const tasks = (count: number, kinds = 5): TaskSet.TaskSet =>
  TaskSet.of(
    "naming",
    Array.from({ length: count }, (_, index) => naming(`naming-${index}`, index % kinds)),
  )

export const history = HistoryAgent.make({ model: "scripted:reader" })

export interface Kept {
  readonly result: RuntimeResult
  readonly events: ReadonlyArray<RunEvent>
  /** The texts of the files, by their paths in the run's folder. */
  readonly files: ReadonlyMap<string, string>
}

export type Input = Runtime.RuntimeInput<Effect.Error<typeof history>, Lm>

/** Files in memory; `resume` goes on with the run of that folder. */
export interface Place {
  readonly files?: Map<string, Uint8Array>
  readonly resume?: string
  readonly model?: Layer.Layer<Lm>
  readonly sinks?: ReadonlyArray<Sink>
  /** The disk with the checkpoints of other runs; none if left out. */
  readonly disk?: Layer.Layer<FileSystem.FileSystem | Path.Path>
  /** Wraps the run's files, for example so that some operations fail. */
  readonly broken?: (run: RunFiles) => RunFiles
}

const noDisk = Layer.merge(FileSystem.layerNoop({}), Path.layer)

export const runIn = (place: Place, input: Input) => {
  const events: Array<RunEvent> = []
  const sink: Sink = () =>
    Effect.succeed({ emit: (batch) => Effect.sync(() => void events.push(...batch)), flush: Effect.void })
  const store = RunStore.memory({
    ...(place.resume === undefined ? {} : { resume: place.resume }),
    files: place.files ?? new Map(),
  })
  const { broken = (run) => run } = place
  const opening = Effect.map(RunStore, (whole) => ({
    ...whole,
    open: (identity: RunIdentity) => Effect.map(whole.open(identity), broken),
  }))
  const layers = Layer.mergeAll(
    Layer.effect(RunStore, opening).pipe(Layer.provide(store.layer)),
    Recorder.layer(scores, runLog, sink, ...(place.sinks ?? [])),
    place.model ?? Scripted.layer(Scripted.named["reader"]),
    place.disk ?? noDisk,
  )
  return {
    events,
    files: store.files,
    effect: Effect.provide(Runtime.run(input), layers),
  }
}

export const keep = (input: Input, place: Place = {}) => {
  const { effect, events, files } = runIn(place, input)
  return Effect.map(effect, (result): Kept => ({ result, events, files: below(files, `${result.runDir}/`) }))
}

/** A folder's files as text, by their paths in it. */
export const below = (files: ReadonlyMap<string, Uint8Array>, folder: string): ReadonlyMap<string, string> =>
  new Map(
    [...files].flatMap(([path, bytes]) =>
      path.startsWith(folder) ? [[path.slice(folder.length), new TextDecoder().decode(bytes)] as const] : [],
    ),
  )

/** The only folder that there is. */
export const folderOf = (files: ReadonlyMap<string, Uint8Array>): string =>
  [...files.keys()].find((path) => path.endsWith("/config.yaml"))?.slice(0, -"/config.yaml".length) ?? ""

/** Lines of scores, without what the clock says. */
export const withoutTimes = (text: string | undefined): ReadonlyArray<unknown> =>
  (text ?? "")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { timestamp: _1, step_start: _2, step_end: _3, duration_ms: _4, ...rest } = JSON.parse(line)
      return rest
    })

/** Returns the parts of a run's files that must be equal however often it was stopped. */
export const lasting = (files: ReadonlyMap<string, string>) => {
  const { wall_seconds: _1, steps_per_second: _2, ...metrics } = JSON.parse(files.get("metrics.json") ?? "{}")
  const names = [...files.keys()].filter((path) => /^(scores|memories|rollouts)\//.test(path)).sort()
  const text = (path: string) => files.get(path)
  return {
    metrics,
    names,
    returns: text("return.json"),
    scores: names.filter((path) => path.startsWith("scores/")).map((path) => withoutTimes(text(path))),
    rest: names.filter((path) => !path.startsWith("scores/")).map(text),
  }
}

export type { Agent }
