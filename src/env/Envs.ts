/**
 * The built-in envs by their names.
 *
 * @example
 * ```ts
 * import { Envs } from "effect-rl"
 *
 * Envs.byId("CartPole-v1").maxSteps // 500
 * Envs.byId("CartPol") // throws: unknown env "CartPol"; did you mean "CartPole-v1"?
 * ```
 */
import { closest } from "../config/closest.ts"
import * as Acrobot from "./classic/Acrobot.ts"
import * as CartPole from "./classic/CartPole.ts"
import * as MountainCar from "./classic/MountainCar.ts"
import * as MountainCarContinuous from "./classic/MountainCarContinuous.ts"
import * as Pendulum from "./classic/Pendulum.ts"
import * as DoubleIntegrator from "./control/DoubleIntegrator.ts"
import * as Lander from "./control/Lander.ts"
import type { Env } from "./Env.ts"
import { EnvError } from "./EnvError.ts"
import * as TicTacToe from "./games/TicTacToe.ts"
import * as ApplePicker from "./grid/ApplePicker.ts"
import * as GridWorld from "./grid/GridWorld.ts"
import * as KeyDoor from "./grid/KeyDoor.ts"
import * as PixelMaze from "./grid/PixelMaze.ts"
import * as Breakout from "./pixel/Breakout.ts"
import * as Catch from "./pixel/Catch.ts"
import { recipeOf, type Said } from "./recipe.ts"

/** All built-in envs. A list of one's own works everywhere that this one does. */
export const builtIn: ReadonlyArray<Env> = [
  CartPole.env,
  Pendulum.env,
  MountainCar.env,
  MountainCarContinuous.env,
  Acrobot.env,
  DoubleIntegrator.env,
  Lander.env,
  Lander.continuous,
  Breakout.env,
  Catch.env,
  KeyDoor.small,
  KeyDoor.env,
  KeyDoor.large,
  GridWorld.env,
  GridWorld.large,
  PixelMaze.env,
  ApplePicker.env,
  ApplePicker.deterministic,
  TicTacToe.env,
  TicTacToe.optimal,
  TicTacToe.selfPlay,
]

/** An env as a config says it; undefined for one that only code has. */
export const saidOf = (env: Env): Said | undefined => recipeOf(env) ?? (builtIn.includes(env) ? env.id : undefined)

/** The env of that name; an unknown one is an `EnvError` that says which is nearest. */
export const byId = (id: string, known: ReadonlyArray<Env> = builtIn): Env => {
  const env = known.find((candidate) => candidate.id === id)
  if (env !== undefined) return env
  const ids = known.map((candidate) => candidate.id)
  const withoutVersion = ids.find(
    (candidate) =>
      candidate.replace(/-v\d+$/, "") ===
      closest(
        id,
        ids.map((name) => name.replace(/-v\d+$/, "")),
      ),
  )
  const suggestion = closest(id, ids) ?? withoutVersion
  const hint = suggestion === undefined ? `known are ${ids.join(", ")}` : `did you mean "${suggestion}"?`
  throw new EnvError({ env: id, message: `unknown env "${id}"; ${hint}` })
}
