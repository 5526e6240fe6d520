/**
 * Saves an evaluation that another program played as a run: a folder like that of our own evaluations, with its table, report and
 * rollouts. So `effect eval`, the page and exports work with it. The episodes are read three times: for what tells agents and
 * tasks apart, for the names of agents and scorers, which the run's config has, and to write them.
 */
import { Clock, Effect, type Scope, Stream } from "effect"
import type { ConfigError } from "../../base/config/Config.ts"
import { derivedName } from "../../run/identifier.ts"
import { usualDirection } from "../evaluate/report/direction.ts"
import { episodeId } from "../evaluate/Evaluate.ts"
import { episodeEnded, eventsOf } from "../evaluate/events.ts"
import { EvaluationResult, resultOf, scoredEpisodes } from "../evaluate/result.ts"
import { type EpisodeRow, jsonl, stepRows } from "../evaluate/rows.ts"
import type { Rollout } from "../episode/Rollout.ts"
import * as Rollouts from "../episode/rollouts/Rollouts.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import { outcomeOf } from "../../run/evaluation.ts"
import * as Layout from "../../run/Layout.ts"
import type { Recorder } from "../../run/record/Recorder.ts"
import * as Run from "../../run/Run.ts"
import type { RunSpec } from "../../run/RunSpec.ts"
import type { RunStore } from "../../run/store/RunStore.ts"
import { FormatError } from "../../base/formats/FormatError.ts"
import { type ImportedEpisode, playedOf, renamed, rowOf } from "./ImportedEpisode.ts"

interface ImportOptions {
  /** The name of the run. */
  readonly name: string
  /** The files that were read, for the run's config. */
  readonly sources: ReadonlyArray<string>
  readonly quiet: boolean
}

/** The agents, tasks and scorers of an evaluation, in the order in which they first appear. */
interface Contents {
  /** The model of each agent, by the agent's name. */
  readonly agents: ReadonlyMap<string, string | null>
  readonly scorers: ReadonlySet<string>
  /** The position of each task, by its id. */
  readonly tasks: ReadonlyMap<string, number>
  readonly episodes: number
  readonly repeats: number
  /** Returns an episode with the agent's name and the task's id that it has among all episodes. */
  readonly named: (episode: ImportedEpisode) => ImportedEpisode
}

/** The most agents, each of which has an open file of its own, and the most scorers, each of which has a column. */
const most = { agents: 200, scorers: 200 }

type ImportError = ConfigError | FormatError

/** Saves the episodes as a run, and returns its result. Reads the stream three times. */
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
    const variants = new Map<string, Set<string>>()
    const groups = new Set<string>()
    yield* Stream.runForEach(episodes, ({ agent, variant, group }) =>
      Effect.sync(() => {
        variants.set(agent, (variants.get(agent) ?? new Set()).add(variant))
        groups.add(group)
      }),
    )
    const named = (episode: ImportedEpisode): ImportedEpisode => {
      const { agent, variant, group, task } = episode
      return {
        ...episode,
        agent: (variants.get(agent)?.size ?? 0) > 1 ? `${agent} ${variant}`.trim() : agent,
        task: groups.size > 1 ? { ...task, id: `${group}/${task.id}` } : task,
      }
    }
    const agents = new Map<string, string | null>()
    const scorers = new Set<string>()
    const tasks = new Map<string, number>()
    let [count, repeats] = [0, 1]
    const repeatOf = numbering()
    yield* Stream.runForEach(Stream.map(episodes, named), (episode) =>
      Effect.sync(() => {
        const { agent, model, task, scores, row } = episode
        agents.set(agent, agents.get(agent) ?? model)
        for (const scorer of Object.keys(row?.scores ?? scores)) scorers.add(scorer)
        if (!tasks.has(task.id)) tasks.set(task.id, tasks.size)
        repeats = Math.max(repeats, repeatOf(episode).count)
        count++
        return agents.size > most.agents ? "agents" : scorers.size > most.scorers ? "scorers" : undefined
      }).pipe(
        Effect.flatMap((tooMany) =>
          tooMany === undefined
            ? Effect.void
            : Effect.fail(new FormatError({ message: `expected at most ${most[tooMany]} ${tooMany}, found more` })),
        ),
      ),
    )
    const contents: Contents = { agents, scorers, tasks, episodes: count, repeats, named }
    return contents
  })

/**
 * Makes a function that returns the number of an episode among those of its agent and task, and how many there were so far. The
 * number is the recorded one, unless another episode has it.
 */
const numbering = () => {
  const taken = new Map<string, Set<number>>()
  return ({ agent, task, repeat }: ImportedEpisode) => {
    const key = JSON.stringify([agent, task.id])
    const numbers = taken.get(key) ?? new Set<number>()
    taken.set(key, numbers)
    let number = repeat !== null && !numbers.has(repeat) ? repeat : numbers.size
    while (numbers.has(number)) number++
    numbers.add(number)
    return { repeat: number, count: numbers.size }
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

/** Encodes a rollout. A text has a largest length, which the rollout of a large file can exceed. */
const lineOf = (rollout: Rollout): Effect.Effect<string, FormatError> =>
  Effect.try({
    try: () => Rollouts.line(rollout),
    catch: () =>
      new FormatError({ message: `the episode ${JSON.stringify(rollout.id.slice(0, 80))} is too long for a line` }),
  })

/** Writes the tables, the rollouts and the scores of all episodes. */
const writeAll = Effect.fnUntraced(function* <R>(
  episodes: Stream.Stream<ImportedEpisode, ImportError, R>,
  { agents, tasks, repeats, named }: Contents,
  rows: Array<EpisodeRow>,
) {
  const { files, recording } = yield* CurrentRun
  const names = [...agents.keys()]
  const rolloutFiles = yield* Effect.forEach(names, (_, at) => files.appending(Layout.validationRollouts(at)))
  const table = yield* files.appending(Layout.evaluation.episodes)
  const steps = yield* files.appending(Layout.evaluation.steps)
  const counts = new Map<string, number>()
  const repeatOf = numbering()
  yield* Stream.runForEach(
    Stream.map(episodes, named),
    Effect.fnUntraced(function* (episode) {
      const { agent, model } = episode
      const seenEpisodes = names.indexOf(agent)
      const index = counts.get(agent) ?? 0
      counts.set(agent, index + 1)
      const task = tasks.get(episode.task.id) ?? 0
      const { repeat } = repeatOf(episode)
      const rollouts = renamed(episode.rollouts, episodeId({ task, repeat }, { isRepeated: repeats > 1 }))
      const played = playedOf({ ...episode, rollouts }, { index, task, repeat })
      const row = rowOf(episode, played)
      rows.push(row)
      for (const rollout of played.rollouts) yield* rolloutFiles[seenEpisodes](yield* lineOf(rollout))
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
