// A pole whose speeds can't be seen: DQN with a memory, which learns from sequences of a replay buffer, finds them out by itself.
//   npx effect run examples/replay/dqn-lstm-cartpole.ts --seed 1
import { CartPole, Dqn, Train, Wrapper } from "effect-rl"

export default Train.run({
  env: Wrapper.keepObservations(CartPole.env, [0, 2]),
  numEnvs: 8,
  algorithm: Dqn.make({
    lstm: 64,
    hidden: [64],
    sequence: 20,
    burnIn: 8,
    batchSize: 32,
    dueling: true,
    rescale: true,
    nsteps: 3,
    trainEvery: 8,
    gradientSteps: 2,
    maxGradNorm: 1,
    updateTargetFreq: 2000,
    bufferSize: 100_000,
    schedule: "linear",
    epsilonEnd: 0.05,
  }),
  totalSteps: 100_000,
  validation: { everySteps: 20_000, episodes: 20 },
})
