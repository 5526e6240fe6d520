/**
 * Saves an evaluation that another program played as a run: a folder like that of our own evaluations, with its table, report and
 * rollouts. So `effect eval`, the page and exports work with it. The episodes are read twice: first for the names of agents and
 * scorers, which the run's config has.
 */
import { Clock, Effect, type Scope, Stream } from "effect"
import type { ConfigError } from "../../base/config/Config.ts"
import { derivedName } from "../../run/identifier.ts"
import { usualDirection } from "../evaluate/direction.ts"
import { episodeEnded, eventsOf } from "../evaluate/events.ts"
import { EvaluationResult, resultOf, scoredEpisodes } from "../evaluate/result.ts"
import { type EpisodeRow, jsonl, stepRows } from "../evaluate/rows.ts"
import * as Rollouts from "../episode/rollouts/Rollouts.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import { outcomeOf } from "../../run/evaluation.ts"
import * as Layout from "../../run/Layout.ts"
import type { Recorder } from "../../run/record/Recorder.ts"
import * as Run from "../../run/Run.ts"
import type { RunSpec } from "../../run/RunSpec.ts"
import type { RunStore } from "../../run/store/RunStore.ts"
import type { FormatError } from "../../base/formats/FormatError.ts"
import { type ImportedEpisode, playedOf, rowOf } from "./ImportedEpisode.ts"

interface ImportOptions {
  /** The name of the run. */
  readonly name: string
  /** The files that were read, for the run's config. */
  readonly sources: ReadonlyArray<string>
  readonly quiet: boolean
}

/** The agents and scorers of an evaluation, in the order in which they first appear. */
interface Contents {
  readonly agents: Map<string, string | null>
  readonly scorers: Set<string>
  readonly tasks: Map<string, number>
  episodes: number
  repeats: number
}

type ImportError = ConfigError | FormatError

/** Saves the episodes as a run, and returns its result. Reads the stream twice. */
export const importRun = Effect.fnUntraced(function* <R>(
  episodes: Stream.Stream<ImportedEpisode, ImportError, R>,
  options: ImportOptions,
): Effect.fn.Return<EvaluationResult, ImportError | Run.RunError, R | RunStore | Recorder | Scope.Scope> {
  const contents = yield* contentsOf(episodes)
  const directions = new Map([...contents.scorers].map((name) => [name, usualDirection(name)]))
  const parts = {
    settings: { passAt: null, repeats: contents.repeats, passThreshold: 1, by: [], confidence: 0.95, seed: 0 },
    scorers: [...directions].map(([name, direction]) => ({ name, direction, timed: false })),
    contestants: [...contents.agents.keys()].map((name) => ({ name })),
    other: null,
  }
  return yield* Run.execute({
    spec: specOf(contents, options),
    startedAtMillis: yield* Clock.currentTimeMillis,
    open: () => Effect.succeed({ state: new Array<EpisodeRow>(), resumedFromStep: null }),
    loop: (rows: Array<EpisodeRow>) => writeAll(episodes, contents, rows),
    position: (rows: Array<EpisodeRow>) => ({ step: rows.length, episodes: rows.length }),
    result: { schema: EvaluationResult, of: (rows: Array<EpisodeRow>) => resultOf(parts, rows) },
  })
})

const contentsOf = <R>(episodes: Stream.Stream<ImportedEpisode, ImportError, R>) =>
  Effect.gen(function* () {
    const contents: Contents = { agents: new Map(), scorers: new Set(), tasks: new Map(), episodes: 0, repeats: 1 }
    const repeatOf = counting()
    yield* Stream.runForEach(episodes, (episode) =>
      Effect.sync(() => {
        const { agent, model, task, scores, row } = episode
        contents.agents.set(agent, contents.agents.get(agent) ?? model)
        for (const scorer of Object.keys(row?.scores ?? scores)) contents.scorers.add(scorer)
        if (!contents.tasks.has(task.id)) contents.tasks.set(task.id, contents.tasks.size)
        contents.repeats = Math.max(contents.repeats, repeatOf(episode) + 1)
        contents.episodes++
      }),
    )
    return contents
  })

/** Makes a function that numbers the episodes of each agent's tasks, unless the program recorded the number. */
const counting = () => {
  const counts = new Map<string, number>()
  return ({ agent, task, repeat }: ImportedEpisode): number => {
    const key = JSON.stringify([agent, task.id])
    const count = counts.get(key) ?? 0
    counts.set(key, count + 1)
    return repeat ?? count
  }
}

const specOf = ({ agents, scorers, tasks, repeats, episodes }: Contents, options: ImportOptions): RunSpec => {
  const names = [...agents.keys()]
  const line = `imported evaluation of ${names.join(", ")} on ${tasks.size} tasks, ${episodes} episodes`
  return {
    kind: "evaluation",
    identity: {
      name: options.name,
      population: { environment: "imported", algorithm: names.map(derivedName).join("+").slice(0, 60) },
      seed: 0,
    },
    config: {
      kind: "evaluation",
      name: options.name,
      description: line,
      seed: 0,
      repeats,
      dataset: { type: "imported", files: options.sources },
      agents: [...agents].map(([name, model]) => ({ name, type: "imported", model })),
      scorers: [...scorers].map((name) => ({ name, type: "imported", direction: usualDirection(name) })),
    },
    description: line,
    env: "imported",
    algorithm: names.join("+"),
    devices: Object.fromEntries([...agents].flatMap(([name, model]) => (model === null ? [] : [[name, model]]))),
    total: episodes,
    logLevel: "INFO",
    quiet: options.quiet,
  }
}

/** Writes the tables, the rollouts and the scores of all episodes. */
const writeAll = Effect.fnUntraced(function* <R>(
  episodes: Stream.Stream<ImportedEpisode, ImportError, R>,
  { agents, tasks }: Contents,
  rows: Array<EpisodeRow>,
) {
  const { files, recording } = yield* CurrentRun
  const names = [...agents.keys()]
  const rollouts = yield* Effect.forEach(names, (_, at) => files.appending(Layout.validationRollouts(at)))
  const table = yield* files.appending(Layout.evaluation.episodes)
  const steps = yield* files.appending(Layout.evaluation.steps)
  const counts = new Map<string, number>()
  const repeatOf = counting()
  yield* Stream.runForEach(
    episodes,
    Effect.fnUntraced(function* (episode) {
      const { agent, model } = episode
      const seenEpisodes = names.indexOf(agent)
      const index = counts.get(agent) ?? 0
      counts.set(agent, index + 1)
      const task = tasks.get(episode.task.id) ?? 0
      const played = playedOf(episode, { index, task, repeat: repeatOf(episode) })
      const row = rowOf(episode, played)
      rows.push(row)
      for (const rollout of played.rollouts) yield* rollouts[seenEpisodes](Rollouts.line(rollout))
      yield* steps(jsonl(stepRows(played, agent)))
      yield* table(jsonl([row]))
      const { totalScore, ending } = played
      const ended = { step: rows.length, episode: rows.length - 1, return: totalScore, length: played.steps.length }
      yield* recording.emit([
        ...eventsOf(played, { seenEpisodes, agent: { type: agent, model }, verbose: true }),
        episodeEnded(ended, ending),
      ])
    }),
  )
  for (const [at, name] of names.entries()) {
    const own = rows.filter((row) => row.agent === name)
    const scored = scoredEpisodes(own, name)
    if (scored.length === 0) continue
    const failed = own.length - scored.length
    yield* recording.emit([{ _tag: "ValidationEnded", step: at, seenEpisodes: at, ...outcomeOf(scored), failed }])
  }
}, Effect.scoped)
