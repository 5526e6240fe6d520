/**
 * Lists the built-in envs, and finds them by their ids. Configs, the command line and `EnvPool` use it.
 *
 * @example
 * ```ts
 * import { Envs } from "effect-rl"
 *
 * Envs.byId("CartPole-v1").maxSteps // 500
 * Envs.byId("CartPol") // throws: unknown env "CartPol"; did you mean "CartPole-v1"?
 * ```
 */
import { closest } from "../../base/text/closest.ts"
import * as Acrobot from "./classic/Acrobot.ts"
import * as CartPole from "./classic/CartPole.ts"
import * as MountainCar from "./classic/MountainCar.ts"
import * as MountainCarContinuous from "./classic/MountainCarContinuous.ts"
import * as Pendulum from "./classic/Pendulum.ts"
import * as DoubleIntegrator from "./control/DoubleIntegrator.ts"
import * as Lander from "./control/Lander.ts"
import type { Env } from "./Env.ts"
import { EnvError } from "../../base/EnvError.ts"
import * as MemoryChain from "./games/MemoryChain.ts"
import * as TicTacToe from "./games/TicTacToe.ts"
import * as ApplePicker from "./grid/ApplePicker.ts"
import * as DeepSea from "./grid/DeepSea.ts"
import * as GridWorld from "./grid/GridWorld.ts"
import * as KeyDoor from "./grid/KeyDoor.ts"
import * as PixelMaze from "./grid/PixelMaze.ts"
import * as Asterix from "./pixel/Asterix.ts"
import * as Breakout from "./pixel/Breakout.ts"
import * as Catch from "./pixel/Catch.ts"
import * as Freeway from "./pixel/Freeway.ts"
import * as Seaquest from "./pixel/Seaquest.ts"
import * as SpaceInvaders from "./pixel/SpaceInvaders.ts"
import * as HalfCheetah from "./mujoco/bodies/HalfCheetah.ts"
import * as Hopper from "./mujoco/bodies/Hopper.ts"
import * as Walker2d from "./mujoco/bodies/Walker2d.ts"
import * as Ant from "./mujoco/bodies/Ant.ts"
import * as Swimmer from "./mujoco/bodies/Swimmer.ts"
import * as Reacher from "./mujoco/bodies/Reacher.ts"
import * as Pusher from "./mujoco/bodies/Pusher.ts"
import * as InvertedPendulum from "./mujoco/bodies/InvertedPendulum.ts"
import * as InvertedDoublePendulum from "./mujoco/bodies/InvertedDoublePendulum.ts"
import * as Humanoid from "./mujoco/bodies/Humanoid.ts"
import * as HumanoidStandup from "./mujoco/bodies/HumanoidStandup.ts"
import { type EnvConfig, recipeOf } from "./recipe.ts"

/** The bodies that MuJoCo simulates. They must be prepared before their functions are called, as `Batch.open` does. */
export const bodies: ReadonlyArray<Env> = [
  HalfCheetah.env,
  Hopper.env,
  Walker2d.env,
  Ant.env,
  Swimmer.env,
  Reacher.env,
  Pusher.env,
  InvertedPendulum.env,
  InvertedDoublePendulum.env,
  Humanoid.env,
  HumanoidStandup.env,
]

/** The built-in envs that need nothing else. */
const plain: ReadonlyArray<Env> = [
  CartPole.env,
  Pendulum.env,
  MountainCar.env,
  MountainCarContinuous.env,
  Acrobot.env,
  DoubleIntegrator.env,
  Lander.env,
  Lander.continuous,
  Breakout.env,
  Asterix.env,
  Freeway.env,
  Seaquest.env,
  SpaceInvaders.env,
  Catch.env,
  KeyDoor.small,
  KeyDoor.env,
  KeyDoor.large,
  GridWorld.env,
  GridWorld.large,
  PixelMaze.env,
  ApplePicker.env,
  ApplePicker.deterministic,
  DeepSea.env,
  DeepSea.large,
  DeepSea.stochastic,
  MemoryChain.env,
  TicTacToe.env,
  TicTacToe.optimal,
  TicTacToe.selfPlay,
]

/** All built-in envs. Functions that take a list of envs accept your own list too. */
export const builtIn: ReadonlyArray<Env> = [...plain, ...bodies]

/** Returns the config from which `fromConfig` makes this env; undefined for envs that no config can make. */
export const envConfigOf = (env: Env): EnvConfig | undefined =>
  recipeOf(env) ?? (builtIn.includes(env) ? env.id : undefined)

/** Returns the env with this id. An unknown id throws an `EnvError` that suggests the nearest one. */
export const byId = (id: string, envs: ReadonlyArray<Env> = builtIn): Env => {
  const env = envs.find((candidate) => candidate.id === id)
  if (env !== undefined) return env
  const ids = envs.map((candidate) => candidate.id)
  // The version at the end (`-v1`) may be missing or wrong, so compare the ids also without their versions.
  const withoutVersion = (name: string): string => name.replace(/-v\d+$/, "")
  const suggestion =
    closest(id, ids) ?? ids.find((name) => withoutVersion(name) === closest(id, ids.map(withoutVersion)))
  const hint = suggestion === undefined ? `expected one of ${ids.join(", ")}` : `did you mean "${suggestion}"?`
  throw new EnvError({ env: id, message: `unknown env "${id}"; ${hint}` })
}
