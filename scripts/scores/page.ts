/** Writes the text of docs/scores.md and of docs/scores/runs.md from the results, and lists their pictures. */
import { shownLike } from "../../src/base/text/text.ts"
import { bootstrap, interquartileMean, meanOf } from "../../src/base/statistics/resampling.ts"
import { compareGroup, type GroupComparison } from "./groups.ts"
import { comparePeers } from "./peers.ts"
import { curvePicture, drawCurves, drawProfiles, profilePicture } from "./pictures.ts"
import { notes } from "./notes.ts"
import { type Published, published, sources } from "./published.ts"
import { groups, nameOf, type Row, rows } from "./rows.ts"
import { evaluationEpisodes, type ScoreResult, scoreOf } from "./ScoreResult.ts"

/** The results of a row, by who trained. */
interface RowResults {
  readonly row: Row
  readonly own: ReadonlyArray<ScoreResult>
  readonly peers: ReadonlyArray<ScoreResult>
}

const resultsOf = (row: Row, results: ReadonlyArray<ScoreResult>): RowResults => {
  const all = results
    .filter(({ algorithm, env }) => algorithm === row.algorithm && env === row.env)
    .toSorted((one, other) => one.seed - other.seed)
  return {
    row,
    own: all.filter(({ trainer }) => trainer === "effect-rl"),
    peers: all.filter(({ trainer }) => trainer === "stable-baselines3"),
  }
}

const table = (header: ReadonlyArray<string>, cells: ReadonlyArray<ReadonlyArray<string>>): string =>
  [header, header.map(() => "---"), ...cells].map((row) => `| ${row.join(" | ")} |`).join("\n")

/** Formats the interquartile mean of some scores with its 95 % interval, such as `512.3 [480.1; 530.0]`. */
const shownIqm = (scores: ReadonlyArray<number>): string => {
  const iqm = interquartileMean(scores)
  const digits = shownLike(iqm)
  if (scores.length === 1) return digits(iqm)
  const [low, high] = bootstrap(scores, interquartileMean)
  return `${digits(iqm)} [${digits(low)}; ${digits(high)}]`
}

const shownCount = (count: number): string => count.toLocaleString("en")

const shownPublished = ({ source, score, steps }: Published): string =>
  `${score.toLocaleString("en")} (${sources[source].name}, ${steps})`

const scoresTable = (trained: ReadonlyArray<RowResults>): string =>
  table(
    [
      "algorithm",
      "env",
      "steps",
      "seeds",
      "evaluation",
      "last 100 training episodes",
      "steps per CPU second",
      "published",
    ],
    trained.map(({ row, own }) => [
      row.algorithm,
      row.env,
      shownCount(row.steps),
      own.length < row.seeds ? `${own.length} of ${row.seeds}` : String(own.length),
      shownIqm(own.map(scoreOf)),
      shownIqm(own.map(({ training }) => training)),
      shownCount(Math.round(meanOf(own.map(({ steps, cpu_seconds }) => steps / cpu_seconds)))),
      (published[nameOf(row)] ?? []).map(shownPublished).join("; ") || "–",
    ]),
  )

/** Describes the rows that Stable-Baselines3 trained, too. */
const peersSection = (trained: ReadonlyArray<RowResults>): ReadonlyArray<string> => {
  const both = trained.filter(({ peers }) => peers.length > 0)
  if (both.length === 0) return []
  const cells = both.map((one) => {
    const { difference, score, ownSeconds, peerSeconds } = comparePeers(one)
    const digits = shownLike(difference.value)
    const interval =
      difference.low === null || difference.high === null
        ? ""
        : ` [${digits(difference.low)}; ${digits(difference.high)}]`
    return [
      nameOf(one.row),
      `${one.own.length} and ${one.peers.length}`,
      shownIqm(one.own.map(scoreOf)),
      shownIqm(one.peers.map(scoreOf)),
      `${digits(difference.value)}${interval}`,
      shownLike(score)(score),
      `${shownCount(Math.round(ownSeconds))} s`,
      `${shownCount(Math.round(peerSeconds))} s`,
    ]
  })
  const versions = [...new Set(both.flatMap(({ peers }) => peers.map(({ version }) => version)))].join(", ")
  return [
    "## Beside Stable-Baselines3",
    "",
    `Stable-Baselines3 (${versions}) was trained on the same machine, with the same settings and steps, so that a difference in`,
    "settings cannot hide a defect. The difference is that of the interquartile means of the evaluations, ours minus theirs. The",
    "times are CPU seconds of one process until the curve of training episodes first reaches the score, which is nine tenths of the",
    "way from the start of the curve to the lower one of the two ends: the machine had other work, so the clock says little.",
    "",
    table(
      [
        "row",
        "seeds",
        "effect-rl",
        "Stable-Baselines3",
        "difference",
        "score",
        "effect-rl, until then",
        "Stable-Baselines3",
      ],
      cells,
    ),
    "",
  ]
}

const groupSection = (comparison: GroupComparison): ReadonlyArray<string> => {
  const digits = shownLike(1)
  const shown = ({ value, low, high }: { value: number; low: number | null; high: number | null }): string =>
    low === null || high === null ? digits(value) : `${digits(value)} [${digits(low)}; ${digits(high)}]`
  return [
    `### ${comparison.group.title}`,
    "",
    `Over ${comparison.group.envs.join(", ")}.`,
    "",
    `![Performance profiles: ${comparison.group.title}](scores/pictures/${profilePicture(comparison)})`,
    "",
    table(
      ["algorithm", "IQM of the normalised scores"],
      comparison.algorithms.map(({ algorithm, mean }) => [algorithm, shown(mean)]),
    ),
    "",
    table(
      ["algorithm", "is better than", "with probability"],
      comparison.improvements.map(({ better, than, chance }) => [better, than, shown(chance)]),
    ),
    "",
  ]
}

const curvesSection = (trained: ReadonlyArray<RowResults>): ReadonlyArray<string> =>
  trained.length === 0
    ? []
    : [
        "## Learning curves",
        "",
        ...trained.flatMap(({ row }) => [
          `![Learning curves of ${nameOf(row)}](scores/pictures/${curvePicture(row)})`,
          "",
        ]),
      ]

const groupsSection = (comparisons: ReadonlyArray<GroupComparison>): ReadonlyArray<string> =>
  comparisons.length === 0
    ? []
    : [
        "## Algorithms over several envs",
        "",
        "As [Agarwal et al. (2021)](https://arxiv.org/abs/2108.13264) recommend: the interquartile mean over all trainings in all",
        "envs, with a stratified bootstrap interval; performance profiles, which show how many trainings score above each",
        "threshold; and the probability that a training of one algorithm scores higher than one of the other in the same env. In each",
        "env, 0 is the lowest score of these trainings, and 1 the highest.",
        "",
        ...comparisons.flatMap(groupSection),
      ]

const sourcesSection = (): ReadonlyArray<string> => [
  "## Published scores",
  "",
  "Each project says in its own way what a score is, and has its own settings and steps, so compare them with care:",
  "",
  ...Object.values(sources).map(({ name, url, measure }) => `- [${name}](${url}): ${measure}.`),
  "",
]

const intro = (machines: ReadonlyArray<string>): ReadonlyArray<string> => [
  "# Scores",
  "",
  "What the algorithms reach with the settings of [examples/presets](../examples/presets), at equal steps over several seeds.",
  "`npm run scores` trains what is missing and writes this page; [scores/runs.md](scores/runs.md) lists each training with its",
  "command, commit and digest.",
  "",
  "- **seeds**: the number of trainings, each with a seed of its own; `1 of 10` means that nine are still to come.",
  `- **evaluation**: after the training, each policy plays ${evaluationEpisodes} episodes with its best actions and with frozen normalisation. The`,
  "  mean return of these episodes is the score of the training. The table has the interquartile mean (IQM) of the scores over the",
  "  seeds: the mean without the lowest and the highest quarter, with its 95 % interval by the bootstrap over the seeds.",
  "- **last 100 training episodes**: the same of the mean return of the last 100 episodes of the training, whose actions were sampled.",
  "  Curves show the returns of training episodes, too.",
  "- **steps per CPU second**: env steps with learning, in one thread, divided by the CPU time of the process: the machine had other",
  "  work, so the clock says little. [scores/runs.md](scores/runs.md) has both times of each training.",
  ...(machines.length === 0 ? [] : ["", `Machines: ${machines.join("; ")}.`]),
  "",
]

/** The texts of the pages, and their pictures by their names. */
interface ScoresPage {
  readonly page: string
  readonly runs: string
}

/** Writes the list of all trainings. */
const runsPage = (results: ReadonlyArray<RowResults>): string =>
  [
    "# The trainings of the table of scores",
    "",
    "`effect replay RUN` computes a run again and compares its digest. Stable-Baselines3 has no digest, and its version in place of a",
    "commit.",
    "",
    table(
      ["training", "evaluation", "steps", "seconds", "CPU seconds", "commit", "digest", "command"],
      results.flatMap(({ own, peers }) =>
        [...own, ...peers].map((result) => [
          `${nameOf(result)}, seed ${result.seed}`,
          shownLike(scoreOf(result))(scoreOf(result)),
          shownCount(result.steps),
          result.seconds.toFixed(0),
          result.cpu_seconds.toFixed(0),
          result.digest === null ? result.version : result.version.slice(0, 8),
          result.digest === null ? "–" : result.digest.slice(0, 16),
          `\`${result.command}\``,
        ]),
      ),
    ),
    "",
  ].join("\n")

const notesSection = (trained: ReadonlyArray<RowResults>): ReadonlyArray<string> => {
  const shown = trained.flatMap(({ row }) => {
    const note = notes[nameOf(row)]
    return note === undefined ? [] : [`- **${nameOf(row)}**: ${note}`]
  })
  return shown.length === 0 ? [] : ["What stands out:", "", ...shown, ""]
}

/** Lists the rows without a training, one algorithm a line. */
const missingSection = (all: ReadonlyArray<RowResults>): ReadonlyArray<string> => {
  const missing = all.filter(({ own }) => own.length === 0)
  const algorithms = [...new Set(missing.map(({ row }) => row.algorithm))]
  const envsOf = (name: string) => missing.flatMap(({ row }) => (row.algorithm === name ? [row.env] : []))
  const lines = algorithms.map((name) => `- ${name}: ${envsOf(name).join(", ")}`)
  return lines.length === 0 ? [] : ["Not trained yet:", "", ...lines, ""]
}

/** Writes the pages from the results of all trainings. */
export const pagesOf = (results: ReadonlyArray<ScoreResult>): ScoresPage => {
  const all = rows.map((row) => resultsOf(row, results))
  const trained = all.filter(({ own }) => own.length > 0)
  const machines = [...new Set(results.map(({ machine }) => machine))].sort()
  const comparisons = groups.flatMap((group) => compareGroup(group, results) ?? [])
  const page = [
    ...intro(machines),
    ...(trained.length === 0 ? [] : [scoresTable(trained), ""]),
    ...notesSection(trained),
    ...missingSection(all),
    ...peersSection(trained),
    ...groupsSection(comparisons),
    ...sourcesSection(),
    ...curvesSection(trained),
  ].join("\n")
  return { page, runs: runsPage(trained) }
}

/** Draws all pictures of the page, by their names. */
export const picturesOf = (results: ReadonlyArray<ScoreResult>): ReadonlyMap<string, string> => {
  const curves = rows.flatMap((row) => {
    const { own, peers } = resultsOf(row, results)
    const drawing = drawCurves(row, own, peers)
    return drawing === undefined ? [] : [[curvePicture(row), drawing] as const]
  })
  const profiles = groups.flatMap((group) => {
    const comparison = compareGroup(group, results)
    return comparison === undefined ? [] : [[profilePicture(comparison), drawProfiles(comparison)] as const]
  })
  return new Map([...curves, ...profiles])
}
