import {
  A2c,
  Bc,
  Breakout,
  CartPole,
  Curiosity,
  Daac,
  Ddqn,
  Demonstrations,
  Dqn,
  Es,
  GridWorld,
  KeyDoor,
  Pendulum,
  PixelMaze,
  Ppo,
  Randal,
  Rnd,
  Sac,
  Td3,
  type Train,
  Unreal,
  Vin,
} from "effect-rl"
import { defineBench } from "../Bench.ts"
import { measureTraining } from "../training.ts"

/** The whole training loop of each algorithm with default settings, and the name of its update program. */

type Training = Parameters<typeof Train.run>[0]

const maze = KeyDoor.make({ size: 8 })
const shown = Demonstrations.record(CartPole.env, { episodes: 20, policy: ([, , angle]) => (angle > 0 ? 1 : 0) })

const trainings: Readonly<Record<string, Training>> = {
  "a2c-cartpole": { env: CartPole.env, algorithm: A2c.make(), totalSteps: 100_000 },
  "a2c-lstm-cartpole": { env: CartPole.env, algorithm: A2c.make({ lstm: 64, nsteps: 16 }), totalSteps: 50_000 },
  "ppo-cartpole": { env: CartPole.env, algorithm: Ppo.make(), totalSteps: 200_000 },
  "ppo-breakout": { env: Breakout.env, numEnvs: 16, algorithm: Ppo.make({ hidden: [128] }), totalSteps: 20_000 },
  "daac-cartpole": { env: CartPole.env, algorithm: Daac.make(), totalSteps: 100_000 },
  "ddqn-cartpole": { env: CartPole.env, algorithm: Ddqn.make(), totalSteps: 50_000 },
  "dqn-cartpole": { env: CartPole.env, numEnvs: 1, algorithm: Dqn.make(), totalSteps: 10_000 },
  "sac-pendulum": { env: Pendulum.env, numEnvs: 1, algorithm: Sac.make(), totalSteps: 3000 },
  "td3-pendulum": { env: Pendulum.env, numEnvs: 1, algorithm: Td3.make(), totalSteps: 3000 },
  "rnd-maze": { env: maze, numEnvs: 16, algorithm: Rnd.make({ hidden: [128] }), totalSteps: 20_000 },
  "curiosity-cartpole": { env: CartPole.env, algorithm: Curiosity.make(), totalSteps: 50_000 },
  "unreal-maze": { env: PixelMaze.env, numEnvs: 16, algorithm: Unreal.make(), totalSteps: 10_000 },
  "randal-maze": { env: PixelMaze.env, numEnvs: 16, algorithm: Randal.make({ nsteps: 32 }), totalSteps: 4096 },
  "vin-gridworld": { env: GridWorld.env, numEnvs: 16, algorithm: Vin.make(), totalSteps: 10_000 },
  "bc-cartpole": { env: CartPole.env, algorithm: Bc.make(shown), totalSteps: 100_000 },
  "es-cartpole": { env: CartPole.env, numEnvs: 64, algorithm: Es.make(), totalSteps: 200_000 },
}

export default Object.entries(trainings).map(([name, training]) =>
  defineBench({
    name: `loop-${name}`,
    unit: "steps/s",
    higherIsBetter: true,
    about: `${name.split("-")[0].toUpperCase()} as it comes, ${training.totalSteps?.toLocaleString("en")} steps, all included`,
    run: () => measureTraining({ checkpoint: { everySteps: 0 }, ...training }, 1),
  }),
)
