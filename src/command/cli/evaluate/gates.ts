/**
 * Reads the flags of `effect eval` that decide whether an evaluation is good enough: a limit of its scores, and a limit of the
 * regression against an earlier evaluation. `Gate.ts` judges; this file parses, finds the baseline and refuses wrong flags
 * before anything is played.
 */
import { Effect } from "effect"
import { choiceHint } from "../../../base/text/closest.ts"
import { isPlain, type Plain } from "../../../base/config/Config.ts"
import { messageOf } from "../../../base/text/text.ts"
import { usualDirection } from "../../../agents/evaluate/report/direction.ts"
import type { GateOutcome } from "../../../agents/evaluate/report/Gate.ts"
import type { EvaluationResult } from "../../../agents/evaluate/result.ts"
import type { AgentReport, ComparisonReport } from "../../../agents/evaluate/report/Report.ts"
import type { EpisodeRow } from "../../../agents/evaluate/rows.ts"
import { evaluations, runFolder } from "../findRun.ts"
import { isBucket } from "../flags.ts"
import { usageError, writeError } from "../output/output.ts"
import { warningLabel } from "../output/colors.ts"
import type { CommandError } from "../../CommandError.ts"
import type { EvalFlags } from "./flags.ts"
import { lowest } from "../../../base/statistics/extremes.ts"

/** A limit of a scorer; without a name, of the evaluation's first scorer. */
interface Limit {
  /** The flag as the user typed it, for error messages. */
  readonly typed: string
  readonly scorer: string | undefined
  readonly value: number
}

interface Baseline {
  readonly folder: string
  readonly scorers: ReadonlySet<string>
  readonly rows: ReadonlyArray<EpisodeRow>
}

/** The gates that the user wants. */
export interface Gates {
  readonly failUnder: ReadonlyArray<Limit>
  readonly maxRegression: ReadonlyArray<Limit>
  readonly baseline: Baseline | undefined
  readonly strict: boolean
  readonly agents: ReadonlyArray<string>
}

/** What the gates found, and the comparisons with the baseline. */
export interface Judgement {
  readonly gates: ReadonlyArray<GateOutcome>
  readonly comparisons: ReadonlyArray<ComparisonReport>
  /** Why nothing could be compared with the baseline. */
  readonly error?: CommandError
}

/** A finished evaluation, with its saved config. */
interface Finished {
  readonly result: EvaluationResult
  readonly config: Plain
  readonly quiet: boolean
}

// The code that asks language models is loaded only when it is needed.
const evaluationModule = Effect.promise(() => import("../../../agents/evaluate/Evaluations.ts"))
const gateModule = Effect.promise(() => import("../../../agents/evaluate/report/Gate.ts"))

const number = /^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$/i

/** Parses `0.8`, or `SCORER=0.8`. */
const limitOf = (flag: string, typed: string): Effect.Effect<Limit, CommandError> => {
  const at = typed.lastIndexOf("=")
  const [scorer, text] = at < 0 ? [undefined, typed] : [typed.slice(0, at), typed.slice(at + 1)]
  const value = number.test(text) ? Number(text) : NaN
  return Number.isFinite(value) && scorer !== ""
    ? Effect.succeed({ typed: `--${flag} ${typed}`, scorer, value })
    : Effect.fail(usageError(`--${flag} ${typed}: expected a number such as 0.8, or SCORER=0.8`))
}

/** Reads the flags, and finds the baseline. Fails if they contradict each other, before anything is played. */
export const gatesOf = Effect.fnUntraced(function* (input: EvalFlags) {
  const { strict, agent: agents } = input
  const failUnder = yield* Effect.forEach(input.failUnder, (typed) => limitOf("fail-under", typed))
  const maxRegression = yield* Effect.forEach(input.maxRegression, (typed) => limitOf("max-regression", typed))
  const negative = maxRegression.find(({ value }) => value < 0)
  if (negative !== undefined) return yield* usageError(`${negative.typed}: expected 0 or more`)
  const named = input.baseline._tag === "Some" ? input.baseline.value : undefined
  if (maxRegression.length > 0 && named === undefined) {
    return yield* usageError("--max-regression: compared with nothing; name a finished evaluation with --baseline RUN")
  }
  if (failUnder.length === 0 && named === undefined && (strict || agents.length > 0)) {
    return yield* usageError(`--${strict ? "strict" : "agent"} only works with --fail-under or --baseline`)
  }
  const gates: Gates = {
    failUnder,
    // A baseline without a limit allows no regression.
    maxRegression:
      named === undefined || maxRegression.length > 0
        ? maxRegression
        : [{ typed: `--baseline ${named}`, scorer: undefined, value: 0 }],
    baseline: named === undefined ? undefined : yield* baselineOf(named, input),
    strict,
    agents,
  }
  return gates
})

const baselineOf = Effect.fnUntraced(function* (named: string, { resultsDir, quiet, json }: EvalFlags) {
  const refuse = ({ message }: { readonly message: string }) => usageError(`--baseline ${message}`)
  if (isBucket(named) || isBucket(resultsDir)) {
    return yield* usageError("--baseline does not work with runs in a bucket; copy the baseline to a folder")
  }
  const options = { folders: [resultsDir], usable: evaluations, quiet: quiet || json }
  const folder = yield* Effect.mapError(runFolder(named, options), refuse)
  const { readRows } = yield* evaluationModule
  const rows = yield* Effect.mapError(readRows(folder), refuse)
  const baseline: Baseline = {
    folder,
    scorers: new Set(rows.flatMap(({ scores }) => Object.keys(scores))),
    rows,
  }
  return baseline
})

/** The names of a config's scorers or agents. */
const namesAt = (config: Plain, key: "scorers" | "agents"): ReadonlyArray<string> => {
  const items = config[key]
  return (Array.isArray(items) ? items : []).flatMap((one: unknown) =>
    isPlain(one) && typeof one.name === "string" ? [one.name] : [],
  )
}

/** Returns the name of an evaluation's first scorer, which judges unless another one is named. */
export const firstScorer = (config: Plain): string => namesAt(config, "scorers")[0] ?? "score"

/** Tells whether a config's scorer of this name has no direction, so that it can't be judged. */
const isUndirected = (config: Plain, scorer: string): boolean => {
  const items: ReadonlyArray<unknown> = Array.isArray(config.scorers) ? config.scorers : []
  return items.some(
    (one) =>
      isPlain(one) &&
      one.name === scorer &&
      (one.direction ?? (typeof one.type === "string" ? usualDirection(one.type) : "higher")) === "none",
  )
}

/**
 * Returns the problem of gates whose scorers or agents an evaluation with this config doesn't have; undefined if there is
 * none.
 */
export const gateProblem = ({ failUnder, maxRegression, baseline, agents }: Gates, config: Plain) => {
  const [scorers, names] = [namesAt(config, "scorers"), namesAt(config, "agents")]
  const agent = agents.find((name) => !names.includes(name))
  if (agent !== undefined) return `--agent ${agent}: the evaluation has no such agent; ${choiceHint(agent, names)}`
  for (const { typed, scorer = scorers[0] } of [...failUnder, ...maxRegression]) {
    if (!scorers.includes(scorer)) {
      return `${typed}: the evaluation has no scorer "${scorer}"; ${choiceHint(scorer, scorers)}`
    }
    if (isUndirected(config, scorer)) {
      return `${typed}: ${scorer} has no direction, so no value of it is too low or too high; expected another scorer (SCORER=0.8), or direction: higher or lower in its settings`
    }
  }
  const missing = maxRegression.find(({ scorer = scorers[0] }) => baseline?.scorers.has(scorer) === false)
  if (missing === undefined || baseline === undefined) return undefined
  const { typed, scorer = scorers[0] } = missing
  return `${typed}: the baseline ${baseline.folder} has no scores of ${scorer}; expected one of ${[...baseline.scorers].join(", ")}, or another baseline`
}

/** Judges a finished evaluation. Without a usable comparison, its scores are judged, and the limits of regressions fail. */
export const judge = Effect.fnUntraced(function* (gates: Gates, finished: Finished) {
  const { score } = yield* gateModule
  const { result, config } = finished
  const scores = gates.failUnder.flatMap(({ scorer = firstScorer(config), value: limit }) =>
    score(result.report, { limit, scorer, strict: gates.strict, agents: gates.agents }),
  )
  const { baseline } = gates
  const compared = baseline === undefined ? noComparison : judgeRegressions({ ...gates, baseline }, finished)
  return yield* Effect.match(compared, {
    onFailure: (error): Judgement => ({ gates: [...scores, ...uncompared(gates, finished)], comparisons: [], error }),
    onSuccess: ({ gates: regressions, comparisons }): Judgement => ({
      gates: [...scores, ...regressions],
      comparisons,
    }),
  })
})

/** Returns the reports of the agents that are judged. */
const judgedAgents = ({ agents }: Gates, { result }: Finished): ReadonlyArray<AgentReport> =>
  result.report.agents.filter(({ agent }) => agents.length === 0 || agents.includes(agent))

/** Makes the outcomes of the limits of regressions if nothing can be compared. A report that lacks them would look passed. */
const uncompared = (gates: Gates, finished: Finished): ReadonlyArray<GateOutcome> =>
  gates.maxRegression.flatMap(({ scorer = firstScorer(finished.config), value: limit }) =>
    judgedAgents(gates, finished).map(({ agent }): GateOutcome => {
      const message = `${agent}: ${scorer} could not be compared with the baseline`
      return { gate: "regression", agent, scorer, limit, passed: false, value: null, tasks: 0, message }
    }),
  )

const noComparison = Effect.succeed<Judgement>({ gates: [], comparisons: [] })

/** Compares a finished evaluation with the baseline. Warns if some of the tasks are not compared. */
const judgeRegressions = Effect.fnUntraced(function* (
  gates: Gates & { readonly baseline: Baseline },
  finished: Finished,
) {
  const { maxRegression, baseline, strict } = gates
  const { result, config, quiet } = finished
  const { regression } = yield* gateModule
  const { compare, readRows, withIdsOf } = yield* evaluationModule
  const { runDir, confidence } = result
  const rows = yield* Effect.mapError(readRows(runDir), ({ message }) => usageError(message))
  const own = new Set(rows.map(({ env_id }) => env_id))
  const earlier = new Set(withIdsOf(rows, baseline.rows).map(({ env_id }) => env_id))
  if (![...own].some((task) => earlier.has(task)))
    return yield* otherTasks(baseline, result, "no task is in both evaluations")
  const judged = judgedAgents(gates, finished)
  const agents = judged.map(({ agent }) => agent)
  const seed = typeof config.seed === "number" ? config.seed : 0
  // Agents without any score have no comparison, which fails their gates.
  const comparisons = judged.every(({ scores }) => scores.length === 0)
    ? []
    : yield* Effect.mapError(compare(baseline.folder, runDir, { confidence, seed }), (error) =>
        otherTasks(baseline, result, messageOf(error)),
      )
  const outcomes = maxRegression.flatMap(({ scorer = firstScorer(config), value: limit }) =>
    regression(comparisons, { limit, scorer, strict, agents, confidence }),
  )
  const compared = outcomes.flatMap(({ tasks }) => (tasks === 0 ? [] : [tasks]))
  const fewest = lowest(compared)
  if (!quiet && fewest < Math.max(own.size, earlier.size)) {
    yield* writeError(
      `${warningLabel()} only ${fewest} tasks are compared: this evaluation has ${own.size}, the baseline ${baseline.folder} has ${earlier.size}\n`,
    )
  }
  const judgement: Judgement = { gates: outcomes, comparisons }
  return judgement
})

const otherTasks = ({ folder }: Baseline, { runDir }: EvaluationResult, problem: string): CommandError =>
  usageError(
    `--baseline ${folder}: ${problem}; expected an evaluation of the same tasks: effect eval ${runDir} --baseline RUN judges this one again`,
  )
