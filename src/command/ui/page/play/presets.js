/** Contains the configs with which the page "Play" starts, and the settings that have sliders. */

export const presets = new Map([
  [
    "CartPole",
    {
      text: "CartPole: balance a pole",
      config: `env: CartPole-v1
seed: 1
total_steps: 100000
num_envs: 8
algorithm:
  name: ppo
  learning_rate: 0.001
  gamma: 0.99
  nsteps: 64
  epochs: 10
  entropy_coefficient: 0
  clip_value: false
`,
    },
  ],
  [
    "Pendulum",
    {
      text: "Pendulum: swing it up and hold it",
      config: `env: Pendulum-v1
seed: 1
total_steps: 300000
num_envs: 4
algorithm:
  name: ppo
  learning_rate: 0.0005
  gamma: 0.9
  nsteps: 1024
  epochs: 10
  minibatches: 32
  entropy_coefficient: 0
  clip_value: false
normalize:
  observations: true
  rewards: true
`,
    },
  ],
  [
    "GridWorld",
    {
      text: "Gridworld: find the way to the star",
      config: `env:
  name: GridWorld
  size: 6
  density: 0.1
seed: 1
total_steps: 200000
num_envs: 32
algorithm:
  name: ppo
  learning_rate: 0.001
  gamma: 0.95
  nsteps: 32
  epochs: 4
  entropy_coefficient: 0.01
`,
    },
  ],
])

/** The settings with a slider: the path in the config, a label, and the values at which the slider stops. */
export const sliders = [
  { path: "seed", label: "Seed", values: Array.from({ length: 20 }, (_, index) => index + 1) },
  {
    path: "total_steps",
    label: "Steps",
    values: [2e4, 5e4, 1e5, 2e5, 3e5, 5e5, 1e6, 2e6, 5e6],
  },
  { path: "num_envs", label: "Environments", values: [1, 2, 4, 8, 16, 32, 64, 128] },
  {
    path: "algorithm.learning_rate",
    label: "Learning rate",
    values: [1e-5, 3e-5, 1e-4, 3e-4, 5e-4, 1e-3, 2e-3, 3e-3, 5e-3, 1e-2],
  },
  { path: "algorithm.gamma", label: "Discount (gamma)", values: [0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999, 1] },
  { path: "algorithm.nsteps", label: "Rollout length", values: [16, 32, 64, 128, 256, 512, 1024, 2048] },
  { path: "algorithm.epochs", label: "Epochs", values: [1, 2, 3, 4, 6, 8, 10, 15, 20] },
  { path: "algorithm.entropy_coefficient", label: "Entropy bonus", values: [0, 0.001, 0.003, 0.01, 0.03, 0.1] },
]
