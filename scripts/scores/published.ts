/** Lists scores that other projects have published, for docs/scores.md. Each project says in its own way what a score is. */

/** A project that has published scores. */
interface Source {
  readonly name: string
  readonly url: string
  /** The way in which it measures a score, as a part of a sentence. */
  readonly measure: string
}

export const sources = {
  slmLab: {
    name: "SLM-Lab v5",
    url: "https://github.com/kengz/SLM-Lab",
    measure: "moving average of the training returns at the end, 4 seeds, bodies in their version v5",
  },
  tianshou: {
    name: "Tianshou",
    url: "https://github.com/thu-ml/tianshou",
    measure: "deterministic evaluation, the best point of the curve, 10 seeds, bodies in their version v3",
  },
  cleanRl: {
    name: "CleanRL",
    url: "https://docs.cleanrl.dev",
    measure: "mean return of the last training episodes, 3 seeds or more, bodies in their version v4, with SAC v2",
  },
  gymnax: {
    name: "gymnax",
    url: "https://github.com/RobertTLange/gymnax",
    measure:
      "mean return of a trained PPO agent; its games repeat no actions and end after 1,000 steps, Freeway after 2,500",
  },
  zoo: {
    name: "RL Baselines3 Zoo",
    url: "https://github.com/DLR-RM/rl-baselines3-zoo",
    measure: "deterministic evaluation of one trained agent; bodies in their version v3",
  },
} as const satisfies Readonly<Record<string, Source>>

/** A published score. */
export interface Published {
  readonly source: keyof typeof sources
  readonly score: number
  /** The number of env steps of its training, as a short text. */
  readonly steps: string
}

type Figures = Readonly<Record<string, ReadonlyArray<Published>>>

const slmLab = (score: number, steps: string): Published => ({ source: "slmLab", score, steps })
const tianshou = (score: number): Published => ({ source: "tianshou", score, steps: "1M" })
const cleanRl = (score: number, steps = "1M"): Published => ({ source: "cleanRl", score, steps })
const gymnax = (score: number): Published => ({ source: "gymnax", score, steps: "10M" })
const zoo = (score: number, steps = "1M"): Published => ({ source: "zoo", score, steps })

/** The published scores by the name of the row. */
export const published: Figures = {
  "ppo/HalfCheetah-v5": [slmLab(6241, "10M"), tianshou(5784), zoo(5819), cleanRl(1443)],
  "ppo/Hopper-v5": [slmLab(1654, "4M"), tianshou(2609), zoo(2410), cleanRl(2383)],
  "ppo/Walker2d-v5": [slmLab(4379, "10M"), tianshou(3589), zoo(3479), cleanRl(2288)],
  "ppo/Ant-v5": [slmLab(2138, "10M"), tianshou(3258), zoo(1327)],
  "ppo/Swimmer-v5": [slmLab(282, "4M"), tianshou(67), zoo(282)],
  "ppo/InvertedPendulum-v5": [slmLab(950, "4M"), tianshou(1000), cleanRl(963)],
  "ppo/Reacher-v5": [slmLab(-5, "4M"), tianshou(-4.1)],
  "a2c/HalfCheetah-v5": [tianshou(1830), zoo(3041)],
  "a2c/Hopper-v5": [tianshou(1253), zoo(733)],
  "a2c/Walker2d-v5": [tianshou(1092), zoo(582)],
  "trpo/HalfCheetah-v5": [tianshou(4471), zoo(1785)],
  "trpo/Hopper-v5": [tianshou(2046), zoo(3618)],
  "trpo/Walker2d-v5": [tianshou(3827), zoo(4933)],
  "sac/HalfCheetah-v5": [slmLab(9815, "4M"), tianshou(12_139), zoo(9535), cleanRl(9635)],
  "sac/Hopper-v5": [slmLab(1417, "3M"), tianshou(3542), zoo(2326), cleanRl(2310)],
  "sac/Walker2d-v5": [slmLab(3124, "3M"), tianshou(5007), zoo(3863), cleanRl(3591)],
  "td3/HalfCheetah-v5": [tianshou(10_201), zoo(9656), cleanRl(9583)],
  "td3/Hopper-v5": [tianshou(3472), zoo(3606), cleanRl(3135)],
  "td3/Walker2d-v5": [tianshou(3982), zoo(4718), cleanRl(4058)],
  "tqc/HalfCheetah-v5": [zoo(12_090)],
  "ddpg/HalfCheetah-v5": [tianshou(11_719), cleanRl(10_374)],
  "ppo/MinAtar/Breakout-v1": [gymnax(28)],
  "ppo/MinAtar/Asterix-v1": [gymnax(15)],
  "ppo/MinAtar/Freeway-v1": [gymnax(58)],
  "ppo/MinAtar/SpaceInvaders-v1": [gymnax(131)],
  "ppo/CartPole-v1": [zoo(500, "100k")],
  "dqn/CartPole-v1": [zoo(500, "50k")],
  "a2c/CartPole-v1": [zoo(500, "500k")],
  "qr-dqn/CartPole-v1": [zoo(500, "50k")],
  "ppo/Acrobot-v1": [zoo(-74)],
  "dqn/Acrobot-v1": [zoo(-77, "100k")],
  "a2c/Acrobot-v1": [zoo(-83, "500k")],
  "qr-dqn/Acrobot-v1": [zoo(-69, "100k")],
  "ppo/MountainCar-v0": [zoo(-110)],
  "dqn/MountainCar-v0": [zoo(-101, "120k")],
  "a2c/MountainCar-v0": [zoo(-111)],
  "qr-dqn/MountainCar-v0": [zoo(-106, "120k")],
}
