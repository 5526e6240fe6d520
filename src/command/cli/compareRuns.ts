/**
 * Implements `effect runs compare A B`: tests whether the difference between trainings is more than chance, in each
 * environment and over all of them.
 */
import { Effect } from "effect"
import * as Argument from "effect/cli/Argument"
import { fieldOf } from "../../base/formats/csv.ts"
import * as Query from "../../run/find/query.ts"
import type { RunEntry } from "../../run/find/RunEntry.ts"
import { type Cell, short, table } from "../../run/find/table.ts"
import {
  type AlgorithmComparison,
  compareAlgorithms,
  type Estimate,
  type Unpaired,
} from "../../base/statistics/unpaired.ts"
import { evaluations, findRun } from "./findRun.ts"
import { withRunsOnDisk } from "./openRuns.ts"
import * as Flags from "./flags.ts"
import { usageError, writeError, writeJson, writeOut } from "./output/output.ts"
import { groupsNamed, labelsOf, openRun, type RunGroup } from "./runGroups.ts"

const flags = {
  runs: Flags.argument(
    "runs",
    "Two or more sets of runs, the first of which the others are compared with: a folder with the runs of several seeds, and of several environments if you like; a part of their paths; or two evaluations",
  ).pipe(Argument.atLeast(2)),
  resultsDir: Flags.lookupDir,
  by: Flags.textOr(
    "validation",
    "by",
    "key",
    "The score: validation (mean of the last one), best_validation, or a key of metrics.json such as mean_return (default: validation)",
  ),
  lowest: Flags.toggle("lowest", "A lower score is better"),
  label: Flags.texts("label", "name", "The name of a set of runs in the output, once for each in their order"),
  json: Flags.toggle("json", "Print one JSON object, which also has the performance profiles with their intervals"),
  csv: Flags.toggle("csv", "Print comma-separated values, a line for each environment and one for all"),
}

export const compareRuns = Flags.subcommand(
  "compare",
  {
    description:
      "Compare the scores of trainings: the difference of interquartile means (IQM) and the probability of improvement " +
      "with 95 % bootstrap intervals, a p-value by permutation, and performance profiles over several environments. For two " +
      "evaluations, it compares them task by task, as effect eval A B does.",
    short: "Test whether trainings differ in more than luck",
    examples: {
      "effect runs compare results/…/ppo results/…/a2c": "Compare two algorithms over the seeds in two folders",
      "effect runs compare before after --by wall_seconds --lowest": "Compare another metric, of which less is better",
      "effect runs compare ppo a2c dqn --label PPO --label A2C --label DQN --csv > table.csv":
        "Compare two algorithms with the first one, as a table for other programs",
    },
  },
  flags,
  Effect.fnUntraced(function* (input) {
    if (input.json && input.csv) return yield* usageError("--json and --csv exclude each other; use one of them")
    const named = { runs: input.runs, resultsDir: input.resultsDir }
    yield* withRunsOnDisk(named, { curves: true, quiet: true }, (onDisk) => compareNamed({ ...input, ...onDisk }))
  }),
)

type CompareInput = Flags.FlagValues<typeof flags>

const compareNamed = Effect.fnUntraced(function* (input: CompareInput) {
  if (yield* isEvaluation(input.runs[0], input.resultsDir)) return yield* compareTwoEvaluations(input)
  const sides = yield* Effect.forEach(input.runs, (typed) => sideOf(typed, input))
  const labels = input.label.length > 0 ? input.label : labelsOf(sides.map(({ group }) => group))
  if (labels.length !== sides.length) {
    return yield* usageError(`--label: expected ${sides.length} names, found ${labels.length}`)
  }
  const [first, ...others] = sides
  const comparisons = yield* Effect.forEach(others, (other, index) => {
    const comparison = compareSides(first, other, input.lowest)
    return comparison === null
      ? Effect.fail(
          usageError(
            `${first.typed} and ${other.typed}: expected runs of a common environment, found ${namesIn(first)} and ${namesIn(other)}`,
          ),
        )
      : Effect.succeed({ left: labels[0], right: labels[index + 1], ...comparison })
  })
  if (input.csv) return yield* writeOut(csvOf(comparisons))
  if (input.json) {
    const runs = sides.map(({ runs }, index) => ({
      label: labels[index],
      runs: runs.map(({ path, environment, score }) => ({ path, environment, score })),
    }))
    return yield* writeJson({ by: input.by, lowest: input.lowest, sides: runs, comparisons })
  }
  yield* writeOut(textOf(comparisons))
  for (const note of notesOn(comparisons)) yield* writeError(`${note}\n`)
})

interface ScoredRun {
  readonly path: string
  readonly environment: string
  readonly score: number
}

/** One of the sets of runs that are compared. */
interface Side {
  readonly typed: string
  readonly group: RunGroup
  readonly runs: ReadonlyArray<ScoredRun>
}

/**
 * Reads the scores of the runs that the user named. Fails if the runs in one environment differ in anything but their seeds.
 */
const sideOf = Effect.fnUntraced(function* (typed: string, { resultsDir, by }: CompareInput) {
  const groups = yield* groupsNamed(typed, resultsDir)
  const entries: ReadonlyArray<RunEntry> = groups.flatMap(({ runs }) => runs)
  const readers = entries.map((entry) => openRun(entry))
  const scores = yield* Effect.mapError(Query.valuesOf(readers, by, { entries, asked: `--by ${by}` }), ({ message }) =>
    usageError(message),
  )
  const environments = yield* Query.eachRun(readers, (run) => Query.valueOf(run, "environment"))
  const runs = entries.flatMap(({ path }, index): ReadonlyArray<ScoredRun> => {
    const score = scores[index]
    return typeof score === "number" ? [{ path, environment: String(environments[index] ?? "-"), score }] : []
  })
  const without = entries.find(({ path }) => runs.every((run) => run.path !== path))
  if (without !== undefined) return yield* usageError(`${without.path}: the run has no number for ${by}`)
  const pathsOf = (group: RunGroup) => group.runs.map(({ path }) => path)
  for (const [environment, some] of Map.groupBy(runs, (run) => run.environment)) {
    const mixed = groups.filter((group) => pathsOf(group).some((path) => some.some((run) => run.path === path)))
    if (mixed.length > 1) {
      return yield* usageError(
        `${typed}: expected runs of ${environment} that differ only in their seeds, found ${labelsOf(mixed).join(", ")}; name one of them`,
      )
    }
  }
  return { typed, group: { key: typed, runs: entries }, runs }
})

const namesIn = ({ runs }: Side): string => [...new Set(runs.map(({ environment }) => environment))].join(", ")

/**
 * Compares two sides. If a lower score is better, the scores are negated for the comparison, and the result is negated back.
 */
const compareSides = (left: Side, right: Side, isLowest: boolean): AlgorithmComparison | null => {
  const scoresOf = ({ runs }: Side) =>
    new Map(
      [...Map.groupBy(runs, ({ environment }) => environment)].map(([environment, some]) => [
        environment,
        some.map(({ score }) => (isLowest ? -score : score)),
      ]),
    )
  const comparison = compareAlgorithms(scoresOf(left), scoresOf(right))
  if (comparison === null || !isLowest) return comparison
  return { ...comparison, environments: comparison.environments.map((one) => ({ ...one, ...negated(one) })) }
}

const negated = ({ left, right, difference: { value, low, high } }: Unpaired) => ({
  left: 0 - left,
  right: 0 - right,
  difference: { value: 0 - value, low: high === null ? null : 0 - high, high: low === null ? null : 0 - low },
})

type NamedComparison = AlgorithmComparison & { readonly left: string; readonly right: string }

/** Returns the lines of a comparison: one line for each environment, and one line for all of them if there are several. */
const linesOf = ({
  environments,
  overall,
}: NamedComparison): ReadonlyArray<Unpaired & { readonly environment: string }> => [
  ...environments,
  ...(overall === null ? [] : [{ environment: "all (normalised)", ...overall }]),
]

const csvOf = (comparisons: ReadonlyArray<NamedComparison>): string => {
  const heading = "left,right,environment,left_runs,right_runs,left_iqm,right_iqm,difference,difference_low,difference_high,improvement,improvement_low,improvement_high,p,smallest_p" // prettier-ignore
  const estimate = ({ value, low, high }: Estimate) => [value, low, high]
  const rows = comparisons.flatMap((comparison) =>
    linesOf(comparison).map((one) => [
      comparison.left,
      comparison.right,
      one.environment,
      one.leftRuns,
      one.rightRuns,
      one.left,
      one.right,
      ...estimate(one.difference),
      ...estimate(one.improvement),
      one.p,
      one.smallestP,
    ]),
  )
  return [heading, ...rows.map((row) => row.map(fieldOf).join(","))].map((line) => `${line}\n`).join("")
}

const between = ({ low, high }: Estimate): Cell =>
  low === null || high === null ? null : `${short(low)} to ${short(high)}`
const probability = (value: number): string => (value < 0.0001 ? "<0.0001" : short(value))

const textOf = (comparisons: ReadonlyArray<NamedComparison>): string => {
  const rows = comparisons.flatMap((comparison) =>
    linesOf(comparison).map((one) => [
      `${comparison.right} − ${comparison.left}`,
      one.environment,
      `${one.leftRuns}, ${one.rightRuns}`,
      one.left,
      one.right,
      `${one.difference.value > 0 ? "+" : ""}${short(one.difference.value)}`,
      between(one.difference),
      one.improvement.value,
      between(one.improvement),
      one.p === null ? null : probability(one.p),
    ]),
  )
  const headings = ["compared", "environment", "runs", "IQM before", "IQM after", "difference", "95 %", "P(better)", "95 %", "p"] // prettier-ignore
  const shown = comparisons.flatMap((comparison) => (comparison.overall === null ? [] : [profilesText(comparison)]))
  return [table(headings, rows), ...shown].join("\n")
}

/** The thresholds whose shares the text shows; the JSON has more. */
const shownThresholds: ReadonlySet<number> = new Set([0.25, 0.5, 0.75, 0.9])

/** Formats, for some thresholds, the share of the runs whose normalised score is above the threshold. */
const profilesText = ({ left, right, profiles }: NamedComparison): string => {
  const shown = profiles.filter(({ threshold }) => shownThresholds.has(threshold))
  return table(
    ["runs that score above", ...shown.map(({ threshold }) => String(threshold))],
    (
      [
        [left, "left"],
        [right, "right"],
      ] as const
    ).map(([name, side]) => [
      // prettier-ignore
      name,
      ...shown.map((profile) => `${Math.round(100 * profile[side].value)} %`),
    ]),
  )
}

/**
 * The percentage of 95 % intervals that hold the true difference, by the number of runs on each side. It was counted over
 * 2,000 draws from normal distributions. With five or more runs it is 94 %.
 */
const coverages: Readonly<Record<number, number>> = { 2: 64, 3: 80 }

/** Returns notes about what these few runs cannot show. */
const notesOn = (comparisons: ReadonlyArray<NamedComparison>): ReadonlyArray<string> => {
  const leftOut = [...new Set(comparisons.flatMap((comparison) => comparison.leftOut))]
  const fewest = Math.min(
    ...comparisons.flatMap(({ environments }) => environments.map((one) => Math.min(one.leftRuns, one.rightRuns))),
  )
  const coverage = coverages[fewest]
  const smallest = Math.max(
    ...comparisons.flatMap((comparison) => linesOf(comparison).map(({ smallestP }) => smallestP)),
  )
  return [
    ...(leftOut.length === 0 ? [] : [`left out, because only one side has runs of them: ${leftOut.join(", ")}`]),
    ...(fewest > 1 ? [] : ["one run on a side has no interval and no p-value; train more seeds, such as --seeds 1..5"]),
    ...(fewest > 1 && smallest > 0.05
      ? [`so few runs cannot have a p-value below ${probability(smallest)}, whatever their scores`]
      : []),
    ...(coverage === undefined
      ? []
      : [
          `with ${fewest} runs on a side, an interval of 95 % holds the true difference only ${coverage} % of the time`,
        ]),
  ]
}

/** Tells whether the user named an evaluation. If the name matches several runs, the answer is no. */
const isEvaluation = (typed: string, resultsDir: string) =>
  Effect.orElseSucceed(
    Effect.flatMap(findRun(typed, { folders: [resultsDir] }), (entry) => evaluations.isUsable(entry)),
    () => false,
  )

const compareTwoEvaluations = Effect.fnUntraced(function* ({ runs, resultsDir, json, csv }: CompareInput) {
  if (csv || runs.length > 2) {
    return yield* usageError("effect runs compare: two evaluations are compared as text or with --json")
  }
  const [left, right] = yield* Effect.forEach(runs, (typed) =>
    findRun(typed, { folders: [resultsDir], usable: evaluations }),
  )
  const { compareEvaluations } = yield* Effect.promise(() => import("./evaluate/showEvaluation.ts"))
  yield* compareEvaluations(left.path, right.path, json)
})
