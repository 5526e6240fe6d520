/**
 * Executes a search for better prompts as a run. Every answer goes to the journal at once. A resumed run repeats the search
 * from its beginning with the answers of the journal, so it continues where it was stopped, without a repeated call, and ends
 * with the same candidates. `Prompts.ts` calls it.
 */
import { Clock, Effect, type Scope } from "effect"
import { ConfigError, type Plain } from "../../base/config/Config.ts"
import { sha256 } from "../../base/text/sha256.ts"
import { prettyJson } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { interval } from "../../base/statistics/intervals.ts"
import { paired } from "../../base/statistics/paired.ts"
import { refuseOther } from "../evaluate/resumed.ts"
import { CallSink } from "../lm/middleware/logged.ts"
import { isSpent } from "../lm/LmError.ts"
import { callFiles } from "../lm/callFiles.ts"
import { reportingFirstRetry } from "../lm/firstRetry.ts"
import { reportingFailures } from "../task/feedbackFailures.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import { type Evaluation, evaluationOf, outcomeOf, summaryOf } from "../../run/evaluation.ts"
import { derivedName } from "../../run/identifier.ts"
import * as Layout from "../../run/Layout.ts"
import type { Recorder } from "../../run/record/Recorder.ts"
import * as Run from "../../run/Run.ts"
import { speedOf } from "../../run/RunResult.ts"
import { RunOptions } from "../../run/RunOptions.ts"
import type { RunSpec } from "../../run/RunSpec.ts"
import type { Part } from "../../run/store/FileTree.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import type { OwnPlace, RunStore } from "../../run/store/RunStore.ts"
import * as Bootstrap from "./bootstrap.ts"
import { bestOf, type SearchState, type Texts } from "./candidates.ts"
import * as Gepa from "./gepa.ts"
import * as Journal from "./journal.ts"
import { makePlayer, type PlayError, type Player, type Playing } from "./play.ts"
import type { PromptsSettings } from "./PromptsConfig.ts"
import { PromptsResult } from "./PromptsResult.ts"
import { allTasks, scoresOf, type SearchEnd, type Surroundings, validationPlace } from "./search.ts"

/** A run that learns prompts and is ready to start. */
export interface PreparedPrompts extends Playing {
  readonly settings: PromptsSettings
  /** The config with all defaults, which is saved as `config.yaml`. */
  readonly effective: Plain
  /** The settings on which the answers depend. They must be the same when the run is resumed. */
  readonly identity: Plain
  /** Whether every call of a model is written to a file. */
  readonly logCalls: boolean
  /** The name of the config in error messages. */
  readonly source: string
  readonly place: OwnPlace | undefined
}

export type ExecuteError = PlayError | Run.RunError

/** The scores on test tasks of the seed and of the best candidate. */
type TestScores = { readonly seed: ReadonlyArray<number>; readonly best: ReadonlyArray<number> }

interface Progress {
  readonly earlier: ReadonlyMap<string, Part>
  search: SearchState | undefined
  end: SearchEnd
  test: TestScores | null
  played: number
  readonly evaluations: Array<Evaluation>
}

/** Runs the search, or the rest of it, and returns the result. */
export const execute = Effect.fnUntraced(function* (
  prepared: PreparedPrompts,
): Effect.fn.Return<PromptsResult, ExecuteError, RunStore | Recorder | Scope.Scope> {
  const { population = {}, onPlanned } = yield* RunOptions
  const spec = specOf(prepared, population)
  if (onPlanned !== undefined) yield* onPlanned(spec.identity, spec.config)
  return yield* Run.execute({
    spec,
    startedAtMillis: yield* Clock.currentTimeMillis,
    place: prepared.place,
    results: [Layout.learntTexts, Layout.prompts.candidates],
    open: (files: RunFiles) => open(prepared, files),
    loop: (progress: Progress) => learn(prepared, progress),
    position: ({ played }: Progress) => ({ step: played, episodes: played }),
    stopsUpon: isSpent,
    result: { schema: PromptsResult, of: (progress: Progress) => resultOf(prepared, progress) },
  })
})

const specOf = (
  { settings, sets, agent, effective }: PreparedPrompts,
  population: Readonly<Record<string, string>>,
): RunSpec => {
  const { learner, seed } = settings
  const tasks = sets.train?.name ?? "none"
  return {
    kind: "prompts",
    identity: {
      name: settings.name,
      population: { environment: derivedName(tasks), algorithm: derivedName(learner.type), ...population },
      seed,
    },
    config: effective,
    description:
      settings.description ?? `${learner.type} learns the prompts of ${agent.type} on ${tasks}, seed ${seed}`,
    env: tasks,
    algorithm: learner.type,
    devices: agent.model === null ? {} : { [agent.type]: agent.model },
    total: learner.maxMetricCalls,
    logLevel: settings.output.logLevel,
    quiet: !settings.verbose,
  }
}

/** Begins a journal, or reads that of an earlier process. */
const open = Effect.fnUntraced(function* (
  { identity, spent, source }: PreparedPrompts,
  files: RunFiles,
): Effect.fn.Return<Run.Opened<Progress, PromptsResult>, ExecuteError> {
  const before = yield* Journal.readEarlier(files)
  if (before.settings === undefined) yield* Journal.begin(files, identity)
  else yield* refuseOther(identity, before.settings, { source, what: "run" })
  Object.assign(spent, before.spent)
  const progress: Progress = {
    earlier: before.entries,
    search: undefined,
    end: "done",
    test: null,
    played: 0,
    evaluations: [],
  }
  return { state: progress, resumedFromStep: files.resumed ? before.entries.size : null, seconds: before.seconds }
})

const learn = Effect.fnUntraced(function* (prepared: PreparedPrompts, progress: Progress) {
  const { files, recording } = yield* CurrentRun
  const player = yield* makePlayer(prepared, progress.earlier)
  const searching = Effect.andThen(searched(prepared, progress, player), tested(prepared, progress, player))
  const sink = prepared.logCalls ? callFiles(files) : null
  const warn = (message: string) => recording.emit([{ _tag: "Warning", message }])
  yield* reportingFirstRetry(reportingFailures(Effect.provideService(searching, CallSink, sink), warn), warn)
}, Effect.scoped)

/** Returns the texts that are learned, with the values that the agent has itself. */
const seedOf = ({ settings, source }: PreparedPrompts, own: Texts): Effect.Effect<Texts, ConfigError> => {
  const { learn: wanted, learner } = settings
  const missing = learner.type === "bootstrap" && !Object.hasOwn(own, learner.text) ? { [learner.text]: "" } : {}
  const all: Texts = { ...own, ...missing }
  const names = learner.type === "bootstrap" ? [learner.text] : (wanted ?? Object.keys(all))
  const unknown = names.find((name) => !Object.hasOwn(all, name))
  const known = Object.keys(all).join(", ")
  if (unknown !== undefined) {
    const problem = `the agent has no text "${unknown}"; it has ${known === "" ? "none" : known}; name others in agent.texts`
    return Effect.fail(ConfigError.at({ source }, "learn", problem))
  }
  if (names.length === 0)
    return Effect.fail(ConfigError.at({ source }, "agent", "expected an agent with texts to learn, found none"))
  return Effect.succeed(Object.fromEntries(names.map((name) => [name, all[name]])))
}

/** Searches from the seed. The agent plays the validation tasks first, because a function agent names its texts then. */
const searched = Effect.fnUntraced(function* (prepared: PreparedPrompts, progress: Progress, player: Player) {
  const { settings, sets } = prepared
  const { learner, seed } = settings
  const sizes = { train: sets.train?.size ?? 0, validation: sets.validation?.size ?? 0 }
  const place = validationPlace(0)
  const tasks = allTasks(sizes.validation)
  const ofSeed = yield* player.play({ place, set: "validation", texts: {}, tasks, metricCalls: 0 })
  const seedTexts = yield* seedOf(prepared, player.seedTexts())
  const around: Surroundings<ExecuteError, CurrentRun> = {
    sizes,
    play: (request) => (request.place === place ? Effect.succeed(ofSeed) : player.play(request)),
    reflect: player.reflect,
    changed: (state) => changed(progress, player, state),
  }
  const { state, end } = yield* learner.type === "gepa"
    ? Gepa.search({ ...learner, seed }, seedTexts, around)
    : Bootstrap.search({ ...learner, seed }, seedTexts, around)
  progress.search = state
  progress.end = end
})

/** Records what an iteration did, and the validation of a new candidate, and writes the files with all candidates. */
const changed = Effect.fnUntraced(function* (progress: Progress, player: Player, state: SearchState) {
  const { recording } = yield* CurrentRun
  const before = progress.search?.candidates.length ?? 0
  progress.search = state
  progress.played = player.count()
  const iteration = state.iterations.at(-1)
  if (iteration !== undefined) {
    const { outcome, kind, changed: names, parents, candidate } = iteration
    const about = names.length === 0 ? "" : ` of ${names.join(", ")}`
    const result = candidate === null ? outcome : `${outcome} as candidate ${candidate}`
    const message = `iteration ${state.iterations.length}: ${kind}${about} from ${parents.join(" and ")}: ${result}`
    yield* recording.emit([{ _tag: "Note", message }])
  }
  const found = state.candidates.length
  if (found > before) {
    const { scores } = state.candidates[found - 1]
    const episodes = scores.map((score, task) => ({
      return: score,
      ...(player.endings.get(task) ?? { length: 0, terminated: false, truncated: false }),
    }))
    const step = state.metricCalls
    progress.evaluations.push(evaluationOf(step, { episodes }))
    yield* recording.emit([{ _tag: "ValidationEnded", step, seenEpisodes: step, ...outcomeOf(episodes) }])
    yield* writeCandidates(state)
  }
  player.forget()
})

/** Writes `candidates.json`, and `texts.json` with the best texts so far. */
const writeCandidates = Effect.fnUntraced(function* (state: SearchState) {
  const { files } = yield* CurrentRun
  const best = bestOf(state)
  yield* files.write(Layout.prompts.candidates, prettyJson({ best, ...state }))
  yield* files.write(Layout.learntTexts, prettyJson(state.candidates[best].texts))
})

/** Plays the test tasks with the seed's texts and with the best ones. */
const tested = Effect.fnUntraced(function* ({ sets }: PreparedPrompts, progress: Progress, player: Player) {
  const { search } = progress
  if (sets.test === null || search === undefined) return
  const tasks = allTasks(sets.test.size)
  const best = bestOf(search)
  const scoresWith = (candidate: number, metricCalls: number) =>
    Effect.map(
      player.play({
        place: `test/${candidate}`,
        set: "test",
        texts: search.candidates[candidate].texts,
        tasks,
        metricCalls,
      }),
      scoresOf,
    )
  const seed = yield* scoresWith(0, search.metricCalls)
  progress.test = { seed, best: best === 0 ? seed : yield* scoresWith(best, search.metricCalls + 1) }
})

/** Compares two lists of scores of the same tasks. */
const compared = (
  seedScores: ReadonlyArray<number>,
  bestScores: ReadonlyArray<number>,
  how: { readonly confidence: number; readonly seed: number },
) => {
  const byTask = (scores: ReadonlyArray<number>) => new Map(scores.map((score, task) => [String(task), score]))
  const difference = paired(byTask(seedScores), byTask(bestScores), how)
  const intervals = { seed: interval(seedScores, how), best: interval(bestScores, how) }
  return difference === null ? null : { tasks: seedScores.length, ...intervals, difference }
}

/** Writes the last files, and returns the content of `metrics.json` and of `return.json`. */
const resultOf = Effect.fnUntraced(function* (prepared: PreparedPrompts, progress: Progress) {
  const { files, seconds, secondsOfWork } = yield* CurrentRun
  const { search, end, test, evaluations, played } = progress
  if (search === undefined) return yield* Effect.die(new Error("the search has no state"))
  yield* writeCandidates(search)
  const { confidence, seed, learner } = prepared.settings
  const best = bestOf(search)
  const how = { confidence, seed }
  const validation = compared(search.candidates[0].scores, search.candidates[best].scores, how)
  if (validation === null) return yield* Effect.die(new Error("there are no validation tasks"))
  const counts = Map.groupBy(search.iterations, ({ outcome }) => outcome)
  const { candidates, iterations, metricCalls, tokens } = search
  const metrics: PromptsResult = {
    runDir: files.directory,
    steps: metricCalls,
    episodes: metricCalls,
    meanScore: null,
    meanReturn: null,
    validation: summaryOf(evaluations[best]),
    failedValidations: 0,
    digest: yield* sha256(utf8.encode(JSON.stringify({ candidates, iterations, metricCalls, tokens, test }))),
    wallSeconds: yield* seconds,
    stepsPerSecond: speedOf(played, yield* secondsOfWork),
    learner: learner.type,
    candidates: candidates.length,
    iterations: iterations.length,
    best,
    outcomes: [...counts].map(([outcome, { length }]) => ({ outcome, count: length })),
    tokens,
    endedBy: end,
    validationScores: validation,
    testScores: test === null ? null : compared(test.seed, test.best, how),
    confidence,
  }
  return { metrics, evaluations }
})
