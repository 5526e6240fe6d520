/**
 * A run as a line of the page's table, from what its folder holds: a finished one from its `metrics.json` and
 * `return.json`, one that is still at work from the end of its log and scores.
 *
 * A thousand of them are read before the page shows anything, so files are looked at only as far as needed: no YAML
 * reader, no Schema.
 */
import { fromFlatPath, fromPath } from "../run/identifier.ts"
import { type ScoreLine, scoreLine } from "../run/record/scoreLine.ts"

/** Of what only keeps rollouts nothing says whether it goes on. */
export type RunState = "finished" | "running" | "stopped" | "failed" | "unknown"

/** What is trained; agents that are only measured; or a folder that somebody's program wrote rollouts into. */
export type RunKind = "run" | "evaluation" | "rollouts"

export interface RunSummary {
  /** Its folder, relative to the results folder; what everything else asks for it by. */
  readonly path: string
  readonly kind: RunKind
  /** What its config says apart from the seed, as a digest: alike are runs of one config. */
  readonly configDigest: string
  readonly time: string
  readonly commit: string
  readonly name: string
  readonly population: Readonly<Record<string, string>>
  readonly seed: number | null
  readonly env: string
  readonly algorithm: string
  readonly state: RunState
  readonly steps: number | null
  readonly totalSteps: number | null
  readonly episodes: number | null
  /** Mean return of the last validation; of the last training episodes where there was none. */
  readonly score: number | null
  readonly scoreStd: number | null
  /** The best validation's. */
  readonly best: number | null
  readonly seconds: number | null
}

/** What was found in a run's folder; undefined where there is no such file. */
export interface Evidence {
  readonly path: string
  /** With the folders above the results folder, of which the identifier may need some. */
  readonly absolutePath: string
  readonly config: string | undefined
  readonly configDigest: string
  /** It has neither config nor scores, only what agents said. */
  readonly onlyRollouts: boolean
  readonly metrics: string | undefined
  readonly returns: string | undefined
  /** The last part of `run.log`, and of the training scores. */
  readonly log: string | undefined
  readonly scores: string | undefined
  /** How many lines those are in all, where one is a step. */
  readonly scoredSteps?: number | undefined
  /** Its lock is held by a process that lives. */
  readonly owned: boolean
}

export const summarise = (evidence: Evidence): RunSummary => {
  const { path, absolutePath, config = "", log = "" } = evidence
  const identifier = fromPath(absolutePath)
  const metrics = fields(parsed(evidence.metrics))
  const validation = fields(metrics.validation)
  const validations =
    evidence.returns === undefined ? fromLog(log) : fromReturns(parsed(evidence.returns), validation.std_return)
  const kind = evidence.onlyRollouts ? "rollouts" : /^dataset:/m.test(config) ? "evaluation" : "run"
  // An evaluation has one for each agent, and the first is what the others are compared with.
  const last = kind === "evaluation" ? validations[0] : validations.at(-1)
  const newest = lastScore(evidence)
  const population = identifier?.population ?? {}
  const setting = (pattern: RegExp): string | undefined => pattern.exec(config)?.[1]?.trim()
  const dataset = setting(/^train_dataset:\n {2}(?:type|name): (.*)$/m)
  return {
    path,
    kind,
    configDigest: evidence.configDigest,
    time: identifier?.time ?? fromFlatPath(absolutePath)?.time ?? "",
    commit: identifier?.commit ?? "",
    name: identifier?.name ?? setting(/^name: (.*)$/m) ?? path,
    population,
    seed: identifier?.seed ?? number(setting(/^seed: (.*)$/m)),
    env: setting(/^env: (.+)$/m) ?? population.environment ?? dataset ?? "",
    algorithm:
      setting(/^algorithm:\n {2}name: (.*)$/m) ?? population.algorithm ?? setting(/^agent:\n {2}type: (.*)$/m) ?? "",
    state: stateOf(evidence, log),
    steps: finite(metrics.steps) ?? finite(metrics.train_steps) ?? newest?.step ?? last?.step ?? null,
    totalSteps: number(setting(/^total_steps: (.*)$/m)),
    episodes: finite(metrics.train_episodes) ?? finite(metrics.episodes) ?? newest?.episodes ?? null,
    score: last?.mean ?? finite(metrics.mean_return),
    scoreStd: last?.std ?? null,
    best: validations.length === 0 ? null : validations.reduce((best, { mean }) => Math.max(best, mean), -Infinity),
    seconds: finite(metrics.wall_seconds),
  }
}

const stateOf = ({ returns, owned, onlyRollouts }: Evidence, log: string): RunState =>
  owned
    ? "running"
    : returns !== undefined
      ? "finished"
      : /^\S+ failed at (?:step|episode) .*\n?$/m.test(lastLine(log))
        ? "failed"
        : onlyRollouts
          ? "unknown"
          : "stopped"

const lastLine = (text: string): string => text.slice(text.trimEnd().lastIndexOf("\n") + 1)

interface Validation {
  readonly step: number
  readonly mean: number
  readonly std: number | null
}

const fromLog = (log: string): ReadonlyArray<Validation> =>
  [...log.matchAll(/ validation at (?:step|episode) (\d+): mean return (\S+) ± (\S+) over/g)].map(
    ([, step, mean, std]) => ({
      step: Number(step),
      mean: Number(mean),
      std: Number(std),
    }),
  )

const fromReturns = (records: unknown, lastStd: unknown): ReadonlyArray<Validation> =>
  Array.isArray(records)
    ? records.flatMap((record: unknown) => {
        const { step, returns_mean, returns_std } = fields(record)
        const mean = finite(returns_mean)
        return mean === null ? [] : [{ step: finite(step) ?? 0, mean, std: finite(returns_std) ?? finite(lastStd) }]
      })
    : []

/** Of the last whole line. */
const lastScore = ({
  scores,
  scoredSteps,
}: Evidence): { readonly step: number | null; readonly episodes: number } | undefined => {
  const line = newestLine(scores)
  if (line === undefined) return undefined
  const { of, step, episode } = line
  // A trainer counts episodes from 0.
  return of === "step" ? { step: scoredSteps ?? null, episodes: episode ?? 0 } : { step, episodes: (episode ?? 0) + 1 }
}

/** The last whole line of a part of a file. */
export const newestLine = (scores: string | undefined): ScoreLine | undefined => {
  const last = scores?.split("\n").slice(0, -1).at(-1)
  return last === undefined ? undefined : scoreLine(last)
}

/** Anything at all, as JSON; what is no JSON, such as half a file, is nothing. */
export const parsed = (text: string | undefined): unknown => {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The fields of an object; of anything else none. */
export const fields = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? { ...value } : {}

export const finite = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null

const number = (text: string | undefined): number | null => (text === undefined ? null : finite(Number(text)))
