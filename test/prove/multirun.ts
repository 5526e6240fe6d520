import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { parse } from "yaml"
import { effect, root } from "../command/cli/effect.ts"
import { runsIn } from "../command/cli/crash.ts"
import { differences, killed, twoRuns, uninterrupted, type Victim } from "../command/cli/multirunCrash.ts"
import { must, type Proof } from "./Proof.ts"
import { examplePath } from "../house/examplePath.ts"

/** Small language models learn from right answers, then from rewards: the examples as they stand. */

/** Returns the validation scores of a run by step, which `--csv` wrote. */
const validationsOf = (run: string): ReadonlyMap<number, number> =>
  new Map(
    Array.from(
      readFileSync(join(run, "progress.csv"), "utf8").matchAll(/^(\d+),validation\/score,(.+)$/gm),
      ([, step, score]): [number, number] => [Number(step), Number(score)],
    ),
  )

const percent = (scores: ReadonlyArray<number>): string => scores.map((score) => (100 * score).toFixed(1)).join(", ")

/** The learning curves of one run of an example, with each seed. */
interface Curves {
  /** How many of the run's steps are supervised, and how many there are. */
  readonly supervised: number
  readonly last: number
  /** The validation scores after a number of steps, one of each seed. */
  readonly at: (step: number) => ReadonlyArray<number>
}

const Example = Schema.Struct({
  runs: Schema.Record(
    Schema.String,
    Schema.Struct({ max_steps: Schema.Int, supervised: Schema.Struct({ steps: Schema.Int }) }),
  ),
})

/**
 * Trains an example with seeds 1 to 3, and returns the learning curves of its runs, and how long the slowest seed took. The
 * runs of a trainer are in folders below its own.
 */
const curvesOf = async (name: string, folder: string) => {
  const file = examplePath(`${name}.yaml`)
  const jobs = process.env.PROVE_JOBS ?? "1"
  const command = [
    "run",
    file,
    "--seeds",
    "1..3",
    "--jobs",
    jobs,
    "--csv",
    "--results-dir",
    folder,
    "--quiet",
    "--json",
  ]
  const { code, stdout, stderr } = await effect(command)
  must(code === 0, stderr)
  const { seeds }: { readonly seeds: ReadonlyArray<{ readonly wallSeconds: number }> } = JSON.parse(stdout)
  const { runs } = Schema.decodeUnknownSync(Example)(parse(readFileSync(join(root, file), "utf8")))
  const trainers = [...runsIn(folder)].sort()
  must(trainers.length === 3, `${trainers.length} runs`)
  const curves = Object.entries(runs).map(([run, { max_steps: last, supervised }]): Curves => {
    const scores = trainers.map((trainer) => validationsOf(join(trainer, `run_${run}`)))
    return { supervised: supervised.steps, last, at: (step) => scores.map((one) => one.get(step) ?? NaN) }
  })
  return { curves, seconds: Math.max(...seeds.map(({ wallSeconds }) => wallSeconds)).toFixed(0) }
}

/** Says the scores before the first step, after the supervised steps, and at the end. */
const stagesOf = ({ supervised, last, at }: Curves): string =>
  `${percent(at(0))} % at first, ${percent(at(supervised))} % after ${supervised} supervised steps, ${percent(at(last))} % after ${last - supervised} more`

/** The scores of a run with one seed: before the first step, after the supervised steps, and at the end. */
interface Stages {
  readonly first: number
  readonly imitated: number
  readonly last: number
}

const ofExample = (name: string, claim: string, holds: (stages: Stages) => boolean): Proof => ({
  name,
  claim: `${examplePath(`${name}.yaml`)}: ${claim}, seeds 1 to 3`,
  run: async (folder) => {
    const { curves, seconds } = await curvesOf(name, folder)
    const seen = `${curves.map(stagesOf).join("; ")}; at most ${seconds} s`
    const stages = curves.flatMap(({ supervised, last, at }) =>
      at(last).map((score, seed): Stages => ({ first: at(0)[seed], imitated: at(supervised)[seed], last: score })),
    )
    must(stages.length > 0 && stages.every(holds), seen)
    return seen
  },
  curve: ".",
})

/** Says how often each process was killed. */
const countsOf = (kills: ReadonlyMap<Victim, number>): string =>
  [...kills].map(([victim, count]) => `${victim} ${count}`).join(", ")

export const multirun: ReadonlyArray<Proof> = [
  ofExample(
    "reverse-text",
    "right answers alone bring a model of random weights to 50 % exact, then GRPO to at least 90 %",
    ({ imitated, last }) => imitated >= 0.5 && last >= 0.9 && last > imitated,
  ),
  {
    name: "multirun-crash",
    claim:
      "two runs of a trainer, whose processes are killed with kill -9 at 50 random moments and started again: the weights, samples, progress, scores and curves of an uninterrupted training",
    run: async (folder) => {
      const steps = 23
      const whole = await uninterrupted(folder, twoRuns(steps))
      const kills = new Map<Victim, number>()
      let seed = 0
      for (const { victims, least, more } of [
        { victims: ["trainer"], least: 15, more: {} },
        { victims: ["rank", "trainer"], least: 15, more: { trainer: { ranks: 2 } } },
        { victims: ["orchestrator", "server", "trainer"], least: 20, more: { orchestrators: "outside" } },
      ] as const) {
        for (let left: number = least; left > 0;) {
          seed++
          const campaign = await killed(folder, { seed, kills: left, victims, config: twoRuns(steps, more) })
          const training = `seed ${seed}, killed: ${countsOf(campaign.kills)}`
          must(campaign.digest === whole.digest, `${training}: digest ${campaign.digest}, not ${whole.digest}`)
          const different = differences(whole.left, campaign.left)
          must(different.length === 0, `${training}: these files differ: ${different.join(", ")}`)
          for (const [victim, count] of campaign.kills) {
            kills.set(victim, (kills.get(victim) ?? 0) + count)
            left -= count
          }
        }
      }
      return `killed: ${countsOf(kills)}, in ${seed} trainings; ${Object.keys(whole.left).length} files the same each time`
    },
  },
  ofExample(
    "two-tasks",
    "two runs over one base of random weights learn to reverse and to sort letters, each at least 90 % exact, and no less by rewards than by right answers alone",
    ({ first, imitated, last }) => first <= 0.1 && last >= 0.9 && last >= imitated,
  ),
  ofExample(
    "tictactoe-self-play",
    "by playing against itself, a model that knows no more than the rules comes to lose at most a quarter of its games against random play; the score is the share of games that it does not lose",
    ({ first, imitated, last }) => first <= 0.1 && last >= 0.75 && last >= imitated + 0.1,
  ),
  ofExample(
    "calculator",
    "an agent of random weights answers nothing rightly, and learns to call the calculator and to answer with its result, at least 90 % right",
    ({ first, last }) => first <= 0.01 && last >= 0.9,
  ),
]
