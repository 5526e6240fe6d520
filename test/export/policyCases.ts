import {
  A2c,
  type Algorithm,
  Bc,
  CartPole,
  Catch,
  Curiosity,
  Daac,
  Ddpg,
  Ddqn,
  Demonstrations,
  DiscreteSac,
  Dqn,
  type Env,
  Es,
  GridWorld,
  KeyDoor,
  Pendulum,
  Ppo,
  Randal,
  Rnd,
  Sac,
  Td3,
  Trpo,
  Unreal,
  Vin,
} from "../../src/index.ts"

const hidden = [8]
const maze = KeyDoor.make({ size: 6 })
const shown = Demonstrations.record(CartPole.env, { episodes: 1, policy: ([, , angle]) => (angle > 0 ? 1 : 0) })

/** Small policies of every algorithm, each with an env in which it can be trained. */
export const policyCases: ReadonlyArray<readonly [Env.Env, Algorithm.Algorithm]> = [
  [CartPole.env, Ppo.make({ hidden })],
  [maze, Ppo.make({ hidden, lstm: 8, minibatches: 2 })],
  [Pendulum.env, A2c.make({ hidden })],
  [CartPole.env, A2c.make({ hidden, lstm: 8 })],
  [Catch.env, Dqn.make({ hidden, dueling: true })],
  [CartPole.env, Ddqn.make({ hidden })],
  [Pendulum.env, Sac.make({ hidden })],
  [CartPole.env, DiscreteSac.make({ hidden })],
  [Pendulum.env, Td3.make({ hidden })],
  [Pendulum.env, Ddpg.make({ hidden })],
  [CartPole.env, Es.make({ hidden })],
  [CartPole.env, Rnd.make({ hidden })],
  [Pendulum.env, Curiosity.make({ hidden })],
  [CartPole.env, Daac.make({ hidden })],
  [CartPole.env, Trpo.make({ hidden, valueMinibatches: 2 })],
  [maze, Unreal.make({ hidden, lstm: 8, cell: 2 })],
  [maze, Randal.make({ hidden, cell: 2 })],
  [GridWorld.make({ size: 6 }), Vin.make({ planning: { iterations: 3, filters: 4 } })],
  [CartPole.env, Bc.make(shown, { hidden })],
]
