import { readFileSync } from "node:fs"
import { join } from "node:path"
import { parse } from "yaml"
import { effect, root } from "../cli/effect.ts"
import { runsIn } from "../cli/crash.ts"
import { differences, killed, twoRuns, uninterrupted, type Victim } from "../cli/multirunCrash.ts"
import { must, type Proof } from "./Proof.ts"

/** Small language models learn from right answers, then from rewards: the examples as they stand. */

const example = "examples/reverse-text.yaml"
/** The folder of its run, in that of the trainer. */
const run = "run_letters"

/** Returns the validation scores of a run by step, which `--csv` wrote. */
const validationsOf = (run: string): ReadonlyMap<number, number> =>
  new Map(
    Array.from(
      readFileSync(join(run, "progress.csv"), "utf8").matchAll(/^(\d+),validation\/score,(.+)$/gm),
      ([, step, score]): [number, number] => [Number(step), Number(score)],
    ),
  )

const numberIn = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? NaN)

const percent = (scores: ReadonlyArray<number>): string => scores.map((score) => (100 * score).toFixed(1)).join(", ")

interface Curve {
  /** How many of the run's steps are supervised, and how many there are. */
  readonly supervised: number
  readonly last: number
  /** The validation score after a number of steps. */
  readonly at: (step: number) => number
}

/**
 * Trains an example with one seed, and returns the learning curve of each of its runs, and how long it took. The runs of a
 * trainer are in folders below its own.
 */
const curvesOf = async (name: string, folder: string) => {
  const file = `examples/${name}.yaml`
  const { code, stdout, stderr } = await effect(["run", file, "--csv", "--results-dir", folder, "--quiet", "--json"])
  must(code === 0, stderr)
  const result: { readonly runDir: string; readonly wallSeconds: number } = JSON.parse(stdout)
  const {
    runs,
  }: {
    readonly runs: Readonly<
      Record<string, { readonly max_steps: number; readonly supervised: { readonly steps: number } }>
    >
  } = parse(readFileSync(join(root, file), "utf8"))
  const curves = Object.entries(runs).map(([run, { max_steps: last, supervised }]): Curve => {
    const scores = validationsOf(join(result.runDir, `run_${run}`))
    return { supervised: supervised.steps, last, at: (step) => scores.get(step) ?? NaN }
  })
  return { curves, seconds: result.wallSeconds.toFixed(0) }
}

/** Says the scores before the first step, after the supervised steps, and at the end. */
const stagesOf = ({ supervised, last, at }: Curve): string =>
  `${percent([at(0)])} % at first, ${percent([at(supervised)])} % after ${supervised} supervised steps, ${percent([at(last)])} % after ${last - supervised} more`

const ofExample = (name: string, claim: string, holds: (curve: Curve) => boolean): Proof => ({
  name,
  claim: `examples/${name}.yaml: ${claim}, seed 1`,
  run: async (folder) => {
    const { curves, seconds } = await curvesOf(name, folder)
    const seen = `${curves.map(stagesOf).join("; ")}; ${seconds} s`
    must(curves.length > 0 && curves.every(holds), seen)
    return seen
  },
  curve: ".",
})

export const multirun: ReadonlyArray<Proof> = [
  {
    name: "reverse-text",
    claim: `${example}: right answers alone bring a model of random weights to 50 % exact, then GRPO to at least 90 %, seeds 1 to 3`,
    run: async (folder) => {
      const config = readFileSync(join(root, example), "utf8")
      const [last, first] = [numberIn(config, /max_steps: (\d+)/), numberIn(config, /supervised: \{ steps: (\d+)/)]
      const jobs = process.env.PROVE_JOBS ?? "1"
      const command = ["run", example, "--seeds", "1..3", "--jobs", jobs, "--csv", "--results-dir", folder, "--quiet"]
      const { code, stdout, stderr } = await effect([...command, "--json"])
      must(code === 0, stderr)
      const { seeds }: { readonly seeds: ReadonlyArray<{ readonly wallSeconds: number }> } = JSON.parse(stdout)
      const runs = [...runsIn(folder)].sort().map((trainer) => validationsOf(join(trainer, run)))
      must(runs.length === 3, `${runs.length} runs`)
      const scoresAt = (step: number): ReadonlyArray<number> => runs.map((scores) => scores.get(step) ?? NaN)
      const [supervised, reinforced] = [scoresAt(first), scoresAt(last)]
      const seconds = Math.max(...seeds.map(({ wallSeconds }) => wallSeconds)).toFixed(0)
      const seen = `${percent(supervised)} % after ${first} supervised steps, ${percent(reinforced)} % after ${last - first} more of GRPO, at most ${seconds} s`
      const better = reinforced.every((score, at) => score >= 0.9 && score > supervised[at])
      must(supervised.every((score) => score >= 0.5) && better, seen)
      return seen
    },
    curve: ".",
  },
  {
    name: "multirun-crash",
    claim:
      "two runs of a trainer, whose processes are killed with kill -9 at 50 random moments and started again: the weights, samples, progress, scores and curves of an uninterrupted training",
    run: async (folder) => {
      const whole = await uninterrupted(folder, twoRuns(24))
      const kills = new Map<Victim, number>()
      let seed = 0
      for (const { victims, least, more } of [
        { victims: ["trainer"], least: 15, more: {} },
        { victims: ["rank", "trainer"], least: 15, more: { trainer: { ranks: 2 } } },
        { victims: ["orchestrator", "server", "trainer"], least: 20, more: { orchestrators: "outside" } },
      ] as const) {
        for (let left: number = least; left > 0;) {
          seed++
          const campaign = await killed(folder, { seed, kills: left, victims, config: twoRuns(24, more) })
          must(campaign.digest === whole.digest, `seed ${seed}: digest ${campaign.digest}, not ${whole.digest}`)
          const different = differences(whole.left, campaign.left)
          must(different.length === 0, `seed ${seed}: these files differ: ${different.join(", ")}`)
          for (const [victim, count] of campaign.kills) {
            kills.set(victim, (kills.get(victim) ?? 0) + count)
            left -= count
          }
        }
      }
      const counts = [...kills].map(([victim, count]) => `${victim} ${count}`).join(", ")
      return `killed: ${counts}, in ${seed} trainings; ${Object.keys(whole.left).length} files the same each time`
    },
  },
  ofExample(
    "two-tasks",
    "two runs over one base of random weights learn to reverse and to sort letters, each at least 90 % exact, and no less by rewards than by right answers alone",
    ({ supervised, last, at }) => at(0) <= 0.1 && at(last) >= 0.9 && at(last) >= at(supervised),
  ),
  ofExample(
    "tictactoe-self-play",
    "by playing against itself, a model that knows no more than the rules comes to lose at most a quarter of its games against random play; the score is the share of games that it does not lose",
    ({ supervised, last, at }) => at(0) <= 0.1 && at(last) >= 0.75 && at(last) >= at(supervised) + 0.1,
  ),
  ofExample(
    "calculator",
    "an agent of random weights answers nothing rightly, and learns to call the calculator and to answer with its result, at least 90 % right",
    ({ last, at }) => at(0) <= 0.01 && at(last) >= 0.9,
  ),
]
