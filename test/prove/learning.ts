import { bootstrap, interquartileMean } from "../../src/base/statistics/resampling.ts"
import { effect } from "../command/cli/effect.ts"
import { must, type Proof } from "./Proof.ts"
import { examplePath } from "../house/examplePath.ts"

/** Every algorithm learns its benchmark: each example as it stands, with several seeds. */

interface Outcome {
  readonly scores: ReadonlyArray<number>
  readonly steps: number
  /** The longest. */
  readonly seconds: number
}

const train = async (
  folder: string,
  example: string,
  seeds: string,
  args: ReadonlyArray<string> = [],
): Promise<Outcome> => {
  const jobs = process.env.PROVE_JOBS ?? "1"
  const command = ["run", examplePath(`${example}.ts`), "--seeds", seeds, "--jobs", jobs, "--results-dir", folder]
  const outcome = await effect([...command, "--quiet", "--json", ...args])
  must(outcome.code === 0, outcome.stderr)
  const metrics: {
    readonly seeds: ReadonlyArray<{ readonly score: number; readonly steps: number; readonly wallSeconds: number }>
  } = JSON.parse(outcome.stdout)
  return {
    scores: metrics.seeds.map(({ score }) => score),
    steps: metrics.seeds[0].steps,
    seconds: Math.max(...metrics.seeds.map(({ wallSeconds: seconds }) => seconds)),
  }
}

const digits = (scores: ReadonlyArray<number>): string =>
  scores.map((score) => score.toFixed(Math.abs(score) < 10 ? 2 : 1)).join(", ")

/** The interquartile mean of the scores, and its confidence interval of 95 %. */
const summary = (scores: ReadonlyArray<number>) => {
  const [low, high] = bootstrap(scores, interquartileMean)
  return { mean: interquartileMean(scores), low, high }
}

const seen = ({ scores, steps, seconds }: Outcome): string => {
  const { mean, low, high } = summary(scores)
  const interval = `interquartile mean ${digits([mean])} [${digits([low])}; ${digits([high])}]`
  return `${digits(scores)}: ${interval} after ${steps.toLocaleString("en")} steps, at most ${seconds.toFixed(1)} s`
}

const reaches = (example: string, atLeast: number, what: string, seeds = "1..5"): Proof => ({
  name: example,
  claim: `${examplePath(`${example}.ts`)}: ${what}, seeds ${seeds.replace("..", " to ")}`,
  run: async (folder) => {
    const outcome = await train(folder, example, seeds)
    must(
      outcome.scores.every((score) => score >= atLeast),
      `returns ${seen(outcome)}`,
    )
    return seen(outcome)
  },
  curve: ".",
})

/** As `reaches`, with a longer delay between the cue and the answer, and settings for it. */
const reachesAfter = (example: string, delay: number, steps: number, settings: ReadonlyArray<string> = []): Proof => ({
  name: `${example}-${delay}`,
  claim: `${examplePath(`${example}.ts`)} with ${["env.delay=" + delay, ...settings].join(", ")}: at least 0.95 within ${steps.toLocaleString("en")} steps, seeds 1 to 5`,
  run: async (folder) => {
    const all = [`env.delay=${delay}`, `total_steps=${steps}`, ...settings]
    const outcome = await train(
      folder,
      example,
      "1..5",
      all.flatMap((setting) => ["--set", setting]),
    )
    must(
      outcome.scores.every((score) => score >= 0.95),
      `returns ${seen(outcome)}`,
    )
    return seen(outcome)
  },
  curve: ".",
})

/** Two ways to train with ten seeds each, of which one must be ahead of the other. */
const ahead = (
  name: string,
  claim: string,
  one: readonly [string, ReadonlyArray<string>],
  other: readonly [string, ReadonlyArray<string>],
  holds: (one: ReadonlyArray<number>, other: ReadonlyArray<number>) => boolean,
): Proof => ({
  name,
  claim,
  run: async (folder) => {
    const first = await train(`${folder}/one`, one[0], "1..10", one[1])
    const second = await train(`${folder}/other`, other[0], "1..10", other[1])
    const text = `${seen(first)}; against ${seen(second)}`
    must(holds(first.scores, second.scores), text)
    return text
  },
  curve: "one",
})

/** Tells whether the confidence interval of one's interquartile mean is above the other's. */
const isApart = (one: ReadonlyArray<number>, other: ReadonlyArray<number>): boolean =>
  summary(one).low > summary(other).high

export const learning: ReadonlyArray<Proof> = [
  reaches("cartpole", 475, "at least 475 over 20 validation episodes", "1..10"),
  reaches("pendulum", -300, "above −300 within 300,000 steps"),
  reaches("ppo-in-the-graph", 475, "1,024 envs whose rollouts are played in the graph: at least 475"),
  reaches("pendulum-in-the-graph", -300, "64 envs whose rollouts are played in the graph: above −300"),
  reaches("lunar-lander", 200, "Gymnasium's own LunarLander-v3: above 200 (needs gymnasium[box2d])", "1..3"),
  reaches("own-env", 5, "learns: mean return at least 5", "1..3"),
  reaches("spaces", 0.85, "a map, a list and an action mask: at least 0.85 of about 0.94", "1..3"),
  reaches("a2c-cartpole", 475, "at least 475"),
  reaches("trpo-cartpole", 475, "at least 475"),
  reaches("trpo-pendulum", -300, "above −300 within 300,000 steps"),
  reaches("ddqn-cartpole", 475, "at least 475"),
  reaches("dqn-acrobot", -100, "at least −100"),
  reaches("qr-dqn-cartpole", 475, "by quantiles of returns at least 475"),
  reaches("rainbow-cartpole", 475, "exploring by noisy layers alone, at least 475"),
  reaches("ppo-acrobot", -100, "at least −100"),
  reaches("sac-pendulum", -200, "at least −200 within 20,000 steps"),
  reaches("crossq-pendulum", -200, "at least −200 within 10,000 steps"),
  reaches("tqc-pendulum", -200, "at least −200 within 15,000 steps"),
  reaches("discrete-sac-cartpole", 475, "at least 475 within 30,000 steps"),
  reaches("td3-pendulum", -200, "at least −200 within 20,000 steps"),
  reaches("ddpg-pendulum", -200, "at least −200 within 20,000 steps"),
  reaches("ppo-mountaincar", 90, "at least 90"),
  reaches("sac-mountaincar", 90, "at least 90"),
  reaches("ppo-lstm-cue", 0.95, "names a cue of 8 steps ago: at least 0.95 within 100,000 steps, where chance is 0.25"),
  reachesAfter("ppo-lstm-cue", 20, 100_000),
  reaches("a2c-lstm-cue", 0.95, "names a cue of 8 steps ago: at least 0.95 within 100,000 steps, where chance is 0.25"),
  reachesAfter("a2c-lstm-cue", 20, 250_000, ["algorithm.nsteps=32", "algorithm.forget_bias=4"]),
  reaches("a2c-lstm-cartpole", 400, "without seeing velocities at least 400"),
  reaches("ppo-lstm-cartpole", 400, "without seeing velocities at least 400"),
  reaches("dqn-lstm-cartpole", 400, "without seeing velocities at least 400"),
  reaches("daac-cartpole", 475, "at least 475"),
  reaches("curiosity-cartpole", 475, "at least 475"),
  reaches("es-cartpole", 475, "at least 475"),
  reaches("bc-cartpole", 475, "at least 475"),
  reaches("dagger-cartpole", 475, "from 400 answers of an expert: at least 475"),
  reaches("gail-cartpole", 475, "from ten demonstrated episodes, without seeing a reward: at least 475"),
  reaches("minari-cartpole", 475, "a data set in Minari's format, written and read: at least 475", "1..3"),
  reaches("iql-pendulum", -300, "from data whose mean returns are −999 and −1209: above −300"),
  reaches("tictactoe", -0.02, "draws with who never loses, after playing itself alone"),
  reaches("pursuit", 0.9, "one policy for two hounds, which catch a hare together: at least 0.9", "1..3"),
  reaches(
    "past-selves",
    0.3,
    "by games against past selves alone: a mean of at least 0.3 of about 0.45 against a random player and who never loses",
    "1..3",
  ),
  reaches("alpha-zero-tictactoe", -0.02, "draws with who never loses, after 40,000 moves against itself"),
  reaches("alpha-zero-gridworld", 0.9, "solves unseen gridworlds by search: at least 0.9 of about 0.97"),
  reaches("ppo-breakout", 10, "10 and more within 2,000,000 steps"),
  reaches("ddqn-breakout", 10, "10 and more within 2,000,000 steps"),
  ahead(
    "bit-flip",
    "DQN with hindsight experience replay reaches at least 0.9 of the goals of 12 bits, without it below 0.2",
    ["bit-flip", []],
    ["bit-flip", ["--set", "algorithm.her=null"]],
    (her, plain) => her.every((score) => score >= 0.9) && plain.every((score) => score < 0.2),
  ),
  ahead(
    "iql-against-cloning",
    "IQL is ahead of behaviour cloning (the same without its weights) of the same data of mixed quality: the intervals of their interquartile means are apart",
    ["iql-pendulum", []],
    ["iql-pendulum", ["--set", "algorithm.beta=0"]],
    isApart,
  ),
  ahead(
    "rnd-keydoor",
    "RND solves the key-door maze (mean return at least 0.8), PPO without its bonus stays at 0",
    ["rnd-keydoor", []],
    ["rnd-keydoor", ["--set", "algorithm.intrinsic_coefficient=0"]],
    (rnd, ppo) => interquartileMean(rnd) >= 0.8 && ppo.every((score) => score === 0),
  ),
  ahead(
    "curiosity-corridor",
    "curiosity is ahead of A2C (the same without the bonus) where the only reward (10) is at the end of a corridor: the intervals of their interquartile means are apart",
    ["curiosity-corridor", []],
    ["curiosity-corridor", ["--set", "algorithm.curiosity_coefficient=0"]],
    isApart,
  ),
  ahead(
    "randal-maze",
    "RANDAL is ahead of PPO at equal steps on a pixel maze whose goal (10) random play hardly ever reaches: the intervals of their interquartile means are apart",
    ["randal-maze", []],
    ["randal-maze", ["--config", "examples/rollouts/plain-ppo.yaml"]],
    isApart,
  ),
  ahead(
    "daac-unseen",
    "DAAC is ahead of PPO with one network for actor and critic on levels that neither has seen: the intervals of their interquartile means are apart",
    ["daac-unseen", []],
    ["daac-unseen", ["--config", "examples/rollouts/shared-ppo.yaml"]],
    isApart,
  ),
  ahead(
    "vin-gridworld",
    "a value-iteration network solves unseen gridworlds (0.9 of at most 0.98), a plain conv net of its size does not (below 0.8)",
    ["vin-gridworld", []],
    ["vin-gridworld", ["--config", "examples/planning/plain-conv.yaml"]],
    (planning, plain) => planning.every((score) => score >= 0.9) && plain.every((score) => score < 0.8),
  ),
  ahead(
    "unreal-maze",
    "UNREAL is ahead of A2C (the same without its tasks) after 10,000 steps on the pixel maze: the intervals of their interquartile means are apart",
    ["unreal-maze", ["--set", "total_steps=10000"]],
    ["unreal-maze", ["--set", "total_steps=10000", "--config", "examples/rollouts/without-tasks.yaml"]],
    isApart,
  ),
]
