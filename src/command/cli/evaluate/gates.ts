/**
 * Reads the flags of `effect eval` that decide whether an evaluation is good enough: a limit of its scores, and a limit of the
 * regression against an earlier evaluation. `Gate.ts` judges; this file parses, finds the baseline and refuses wrong flags
 * before anything is played.
 */
import { Effect } from "effect"
import { choiceHint } from "../../../base/config/closest.ts"
import { isPlain, type Plain } from "../../../base/config/Config.ts"
import { messageOf } from "../../../base/config/text.ts"
import { usualDirection } from "../../../agents/evaluate/direction.ts"
import type { GateOutcome } from "../../../agents/evaluate/Gate.ts"
import type { EvaluationResult } from "../../../agents/evaluate/execute.ts"
import type { ComparisonReport } from "../../../agents/evaluate/Report.ts"
import { evaluations, runFolder } from "../findRun.ts"
import { isBucket } from "../flags.ts"
import { usageError, writeError } from "../output/output.ts"
import { warningLabel } from "../output/colors.ts"
import type { CommandError } from "../../CommandError.ts"
import type { EvalFlags } from "./flags.ts"

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
  readonly tasks: ReadonlySet<string>
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
}

// The code that asks language models is loaded only when it is needed.
const evaluationModule = Effect.promise(() => import("../../../agents/evaluate/Evaluations.ts"))
const gateModule = Effect.promise(() => import("../../../agents/evaluate/Gate.ts"))

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
    tasks: new Set(rows.map(({ env_id }) => env_id)),
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

/** Judges a finished evaluation, whose saved config is `config`. Warns if the baseline has other tasks as well. */
export const judge = Effect.fnUntraced(function* (
  { failUnder, maxRegression, baseline, strict, agents }: Gates,
  { result, config, quiet }: { readonly result: EvaluationResult; readonly config: Plain; readonly quiet: boolean },
) {
  const { score, regression } = yield* gateModule
  const first = firstScorer(config)
  const scores = failUnder.flatMap(({ scorer = first, value: limit }) =>
    score(result.report, { limit, scorer, strict, agents }),
  )
  const none: Judgement = { gates: scores, comparisons: [] }
  if (baseline === undefined) return none
  const { compare, readRows } = yield* evaluationModule
  const { confidence } = result
  const seed = typeof config.seed === "number" ? config.seed : 0
  const compared = compare(baseline.folder, result.runDir, { confidence, seed })
  const comparisons = yield* Effect.mapError(compared, (error) => otherTasks(baseline, result, messageOf(error)))
  const regressions = maxRegression.map(({ scorer = first, value: limit }) =>
    regression(comparisons, { limit, scorer, strict, agents }),
  )
  if (regressions.some((outcomes) => outcomes.length === 0)) {
    return yield* otherTasks(baseline, result, "they have no task in common that both have scored")
  }
  const own = new Set((yield* readRows(result.runDir)).map(({ env_id }) => env_id))
  const common = [...own].filter((task) => baseline.tasks.has(task)).length
  if (!quiet && (common < own.size || common < baseline.tasks.size)) {
    yield* writeError(
      `${warningLabel()} only ${common} tasks are compared: this evaluation has ${own.size}, the baseline ${baseline.folder} has ${baseline.tasks.size}\n`,
    )
  }
  return { gates: [...scores, ...regressions.flat()], comparisons }
})

const otherTasks = ({ folder }: Baseline, { runDir }: EvaluationResult, problem: string): CommandError =>
  usageError(
    `--baseline ${folder}: ${problem}; expected an evaluation of the same tasks: effect eval ${runDir} --baseline RUN judges this one again`,
  )
