/**
 * Makes envs with several agents: games in which all act at once (`parallel`) or take turns (`turns`), in the shapes of
 * PettingZoo. Trained directly, such an env has one policy that plays all agents. `against` turns it into an env of one
 * agent, whose opponents are random players, functions, loaded policies, or past policies of the training itself.
 *
 * @example
 * ```ts
 * import { MultiEnv, Ppo, Space, Train } from "effect-rl"
 *
 * const wins = (mine: number, theirs: number) => [0, 1, -1][(3 + mine - theirs) % 3]
 * const rockPaperScissors = MultiEnv.parallel({
 *   id: "rock-paper-scissors",
 *   agents: ["left", "right"],
 *   observationSpace: Space.discrete(4),
 *   actionSpace: Space.discrete(3),
 *   maxSteps: 10,
 *   reset: () => [3, 3],
 *   observe: (last, agent) => last[1 - agent],
 *   step: (_, [left, right]) => ({
 *     state: [left, right],
 *     rewards: [wins(left, right), wins(right, left)],
 *     terminated: false,
 *   }),
 * })
 *
 * export default Train.run({
 *   env: MultiEnv.against(rockPaperScissors, MultiEnv.pastSelves()),
 *   algorithm: Ppo.make(),
 *   totalSteps: 100_000,
 *   validation: { everySteps: 20_000, envs: [MultiEnv.against(rockPaperScissors, "random")] },
 * })
 * ```
 */
import type { Env } from "./Env.ts"
import { invalid } from "../../base/EnvError.ts"
import { kernelOpenerOf } from "./internal/kernels.ts"
import { againstEnv, type AgainstOptions, type Opponents } from "./multi/against.ts"
import { againstElsewhere, type GameElsewhere } from "./multi/againstElsewhere.ts"
import type { SeatedGame } from "./multi/courses.ts"
import { checkGame, type Game, type ParallelGame, type GamePosition, type Turns } from "./multi/Game.ts"
import { sharedEnv } from "./multi/shared.ts"
import type { ActionSpace, Box, Space } from "./Space.ts"

export type { AgainstOptions, Opponents } from "./multi/against.ts"
export type { GameElsewhere } from "./multi/againstElsewhere.ts"
export type { SeatedGame } from "./multi/courses.ts"
export type { GameOutcome, ParallelGame, GamePosition, Turns } from "./multi/Game.ts"
export type { Later, Opponent, Player, PolicyLike, Situation } from "./multi/opponents.ts"
export { type PastSelvesOptions, pastSelves } from "./multi/pastSelves.ts"

/** An env with several agents: a batch has a row for each agent of each game. */
export interface MultiEnv<A extends ActionSpace = ActionSpace, O extends Space = Space> extends Env<
  GamePosition,
  A,
  O
> {
  readonly agents: ReadonlyArray<string>
  /** The rules of the game, which `against` needs. */
  readonly game: Game<unknown, A, O>
}

/** Makes an env in which all agents act at once. A wrong field throws an `EnvError` that names it. */
export const parallel = <State, A extends ActionSpace, O extends Space = Box>(
  definition: ParallelGame<State, A, O>,
): MultiEnv<A, O> => {
  checkGame(definition, "parallel")
  return envOf(definition)
}

/** Makes an env in which agents take turns. A wrong field throws an `EnvError` that names it. */
export const turns = <State, A extends ActionSpace, O extends Space = Box>(
  definition: Turns<State, A, O>,
): MultiEnv<A, O> => {
  checkGame(definition, "turns")
  const game: Game<State, A, O> = {
    ...definition,
    step: (state, actions, random) => definition.step(state, actions[definition.turn(state)], random),
  }
  return envOf(game)
}

const envOf = <A extends ActionSpace, O extends Space>(game: Game<unknown, A, O>): MultiEnv<A, O> => ({
  ...sharedEnv(game),
  agents: game.agents,
  game,
})

/**
 * Makes an env in which the trained agent is one agent of a game (of `MultiEnv` or PettingZoo) and `opponents` play the
 * others: one opponent for all of them, or one for each, by the agent's name.
 *
 * @example
 * ```ts
 * const env = MultiEnv.against(pursuit, { fox: yield* Policy.load("results/foxes"), owl: "random" }, { as: "hare" })
 * ```
 */
export function against<A extends ActionSpace, O extends Space>(
  game: MultiEnv<A, O>,
  opponents?: Opponents<A, O>,
  options?: AgainstOptions,
): Env<SeatedGame, A, O>
export function against(game: GameElsewhere, opponents?: Opponents, options?: AgainstOptions): Env
export function against(
  env: MultiEnv | GameElsewhere,
  opponents: Opponents = "random",
  options: AgainstOptions = {},
): Env<SeatedGame> | Env {
  if ("game" in env) return againstEnv(env.game, opponents, options)
  // The function that opens the games of an env that runs elsewhere (PettingZoo); undefined if this env is no such game.
  const open = kernelOpenerOf(env)
  if (open === undefined) throw invalid(env.id, "it is no game: expected one of MultiEnv or of PettingZoo")
  return againstElsewhere(env, open, opponents, options)
}
