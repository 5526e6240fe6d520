// DQN from a replay buffer, with dueling networks and three rewards a transition, swings an acrobot up.
//   npx effect run examples/replay/dqn-acrobot.ts --seed 1
import { Acrobot, Dqn, Train } from "effect-rl"

export default Train.run({
  env: Acrobot.env,
  numEnvs: 4,
  algorithm: Dqn.make({ dueling: true, nsteps: 3 }),
  totalSteps: 100_000,
  validation: { everySteps: 20_000, episodes: 20 },
})
