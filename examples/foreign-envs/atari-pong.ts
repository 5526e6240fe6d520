// PPO learns Atari's Pong from its pixels, by the wrappers that the papers use. It needs:
//   python3 -m pip install gymnasium ale-py opencv-python
//   npx effect run examples/foreign-envs/atari-pong.ts --seed 1
// The settings are CleanRL's for Atari. A step is four frames.
import { Ppo, Train } from "effect-rl"
import { Gymnasium } from "effect-rl/node"

const game = Gymnasium.env("ale_py:ALE/Pong-v5", {
  python: process.env.EFFECT_RL_PYTHON ?? "python3",
  processes: 2,
  // The preprocessing skips the frames, and reads the screen itself; sticky actions are off, as in the papers of then.
  options: { frameskip: 1, repeat_action_probability: 0, obs_type: "grayscale" },
  wrappers: [
    // 1 to 30 steps without an action at the start; 4 frames a step, the last two merged; 84 × 84 shades of grey.
    { name: "AtariPreprocessing", noop_max: 30, frame_skip: 4, screen_size: 84 },
    { name: "effect_rl_wrappers.EpisodicLife" },
    { name: "effect_rl_wrappers.FireReset" },
    { name: "ClipReward", min_reward: -1, max_reward: 1 },
    { name: "FrameStackObservation", stack_size: 4 },
  ],
  // Records and validations have whole games with the rewards of the game, not of lives with clipped ones.
  gameScores: true,
})

export default Train.run({
  env: game,
  numEnvs: 8,
  algorithm: Ppo.make({
    hidden: [512],
    learningRate: 2.5e-4,
    schedule: "linear",
    nsteps: 128,
    minibatches: 4,
    epochs: 4,
    clip: 0.1,
    entropyCoefficient: 0.01,
  }),
  totalSteps: 10_000_000,
  validation: { everySteps: 250_000, episodes: 8, sampled: true },
})
