/**
 * Lists the trainings of docs/scores.md, in the order in which `npm run scores` does them. A row is an algorithm in an env: the
 * preset `examples/presets/ALGORITHM/ENV.yaml` with this number of steps and seeds.
 */

/** An algorithm in an env. */
export interface Row {
  readonly algorithm: string
  readonly env: string
  /** The number of env steps of each training. */
  readonly steps: number
  /** The number of trainings, with the seeds 1, 2, 3 … */
  readonly seeds: number
  /** The number of trainings by Stable-Baselines3 with the same settings. */
  readonly peerSeeds: number
}

/** Settings of several rows that differ in the algorithm and in the env. */
interface Block {
  readonly algorithms: ReadonlyArray<string>
  readonly envs: ReadonlyArray<string>
  readonly steps: number
  readonly seeds: number
  /** The envs in which Stable-Baselines3 trains too, with `peerSeeds` seeds. */
  readonly peerEnvs?: ReadonlyArray<string>
}

const bodies = ["HalfCheetah-v5", "Hopper-v5", "Walker2d-v5"]

/** MinAtar's games; the algorithms that play only two of them play the first. */
const games = ["Breakout", "Asterix", "Freeway", "Seaquest", "SpaceInvaders"].map((name) => `MinAtar/${name}-v1`)

/** The number of trainings by Stable-Baselines3 in each of its rows. */
const peerSeeds = 3

const block = ({ algorithms, envs, peerEnvs = [], ...each }: Block): ReadonlyArray<Row> =>
  algorithms.flatMap((algorithm) =>
    envs.map((env) => ({ algorithm, env, ...each, peerSeeds: peerEnvs.includes(env) ? peerSeeds : 0 })),
  )

/** The envs of classic control, and how many steps an algorithm has in each: those of RL Baselines3 Zoo. */
const classic = (
  algorithm: string,
  steps: readonly [cartPole: number, acrobot: number, mountainCar: number],
  peerEnvs: ReadonlyArray<string> = [],
): ReadonlyArray<Row> =>
  ["CartPole-v1", "Acrobot-v1", "MountainCar-v0"].flatMap((env, index) =>
    block({ algorithms: [algorithm], envs: [env], steps: steps[index], seeds: 10, peerEnvs }),
  )

export const rows: ReadonlyArray<Row> = [
  ...block({
    algorithms: ["ppo"],
    envs: ["HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Ant-v5", "Swimmer-v5", "InvertedPendulum-v5", "Reacher-v5"],
    steps: 1_000_000,
    seeds: 5,
    peerEnvs: ["HalfCheetah-v5", "Hopper-v5", "Ant-v5", "InvertedPendulum-v5"],
  }),
  ...block({ algorithms: ["a2c", "trpo"], envs: bodies, steps: 1_000_000, seeds: 3 }),
  ...block({
    algorithms: ["sac"],
    envs: bodies,
    steps: 200_000,
    seeds: 3,
    peerEnvs: ["HalfCheetah-v5", "Hopper-v5"],
  }),
  ...block({
    algorithms: ["td3"],
    envs: bodies,
    steps: 200_000,
    seeds: 3,
  }),
  ...block({ algorithms: ["tqc", "ddpg"], envs: ["HalfCheetah-v5"], steps: 200_000, seeds: 3 }),
  ...block({ algorithms: ["ppo", "dqn"], envs: games, steps: 5_000_000, seeds: 3 }),
  ...block({
    algorithms: ["rainbow", "qr-dqn", "discrete-sac"],
    envs: games.slice(0, 2),
    steps: 5_000_000,
    seeds: 3,
  }),
  ...classic("ppo", [100_000, 1_000_000, 1_000_000]),
  ...classic("dqn", [50_000, 100_000, 120_000], ["CartPole-v1", "MountainCar-v0"]),
  ...classic("a2c", [500_000, 500_000, 1_000_000]),
  ...classic("qr-dqn", [50_000, 100_000, 120_000]),
]

/** Returns the name of a row, such as `ppo/HalfCheetah-v5`, which is also the name of its preset. */
export const nameOf = ({ algorithm, env }: Pick<Row, "algorithm" | "env">): string => `${algorithm}/${env}`

/** Returns the rows that the names choose: `ppo` are all rows of PPO, `ppo/Hopper-v5` is one, `Hopper-v5` all of that env. */
export const chosenRows = (names: ReadonlyArray<string>): ReadonlyArray<Row> =>
  rows.filter((row) => names.length === 0 || names.some((name) => [row.algorithm, row.env, nameOf(row)].includes(name)))

/** Algorithms that are compared over the envs that they share. */
export interface Group {
  readonly name: string
  readonly title: string
  readonly algorithms: ReadonlyArray<string>
  readonly envs: ReadonlyArray<string>
}

export const groups: ReadonlyArray<Group> = [
  { name: "bodies-1m", title: "Three bodies, 1M steps", algorithms: ["ppo", "a2c", "trpo"], envs: bodies },
  { name: "bodies-200k", title: "Three bodies, 200k steps", algorithms: ["sac", "td3"], envs: bodies },
  { name: "minatar", title: "MinAtar, 5M steps", algorithms: ["ppo", "dqn"], envs: games },
  {
    name: "minatar-two",
    title: "Two games of MinAtar, 5M steps",
    algorithms: ["ppo", "dqn", "rainbow", "qr-dqn", "discrete-sac"],
    envs: games.slice(0, 2),
  },
  {
    name: "classic-control",
    title: "Classic control, each algorithm with its own number of steps",
    algorithms: ["ppo", "dqn", "a2c", "qr-dqn"],
    envs: ["CartPole-v1", "Acrobot-v1", "MountainCar-v0"],
  },
]
