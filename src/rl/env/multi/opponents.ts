/** Declares the opponents, which play the agents that are not trained: random players, functions, policies, and past policies of a training. */
import { Effect, Predicate, type Scope } from "effect"
import { display } from "../../../base/config/Config.ts"
import { messageOf } from "../../../base/text/text.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import type { Snapshot } from "../BatchEnv.ts"
import type { ActionOf } from "../Env.ts"
import { type EnvError, invalid } from "../../../base/EnvError.ts"
import { drawAllowed, forbiddenProblemIn, givenMaskWriter } from "../internal/rows.ts"
import {
  type ActionSpace,
  choicesOf,
  masked,
  problemOf,
  type RowSpace,
  sample,
  sizeOf,
  type Space,
  type SpaceValue,
  type ValueOf,
} from "../Space.ts"
import type { Game } from "./Game.ts"

/** The facts that a player of your own gets besides the observation. */
export interface Situation {
  /** The name of the agent that must act. */
  readonly agent: string
  /** The choices that are allowed; undefined if all are. */
  readonly mask: ArrayLike<number | boolean> | undefined
  /** The random numbers of the episode. */
  readonly random: Stream
}

/**
 * A player of your own: a pure function from an agent's observation to its action. It is declared as a method, whose
 * parameters TypeScript checks less strictly, so that players of all games are assignable to one type.
 */
export type Player<A extends ActionSpace, O extends Space> = {
  play(observation: ValueOf<O>, situation: Situation): ActionOf<A>
}["play"]

type Mask = ArrayLike<number | boolean> | null | undefined

/** A loaded policy, as `Policy.load` returns it. */
export interface PolicyLike {
  readonly actionSpace: ActionSpace
  readonly actAll: (
    observations: ReadonlyArray<SpaceValue>,
    states?: ReadonlyArray<ArrayLike<number> | null | undefined>,
    masks?: ReadonlyArray<Mask>,
  ) => Effect.Effect<
    ReadonlyArray<{
      readonly action: number | ReadonlyArray<number>
      readonly state: ReadonlyArray<number> | undefined
    }>,
    { readonly message: string }
  >
}

/** A question to an opponent: which action does this agent take, in the game of this row, for this observation? */
export interface OpponentQuestion {
  readonly row: number
  readonly agent: number
  readonly observation: SpaceValue
  readonly mask: ArrayLike<number | boolean> | undefined
  /** The opponent's memory of this game; null at its start. */
  readonly memory: ReadonlyArray<number> | null
}

export interface OpponentAnswer {
  readonly action: ActionOf<ActionSpace>
  readonly memory: ReadonlyArray<number> | null
}

/** A batch of games in which an opponent plays. */
export interface OpponentBatch {
  readonly id: string
  readonly rowSpace: RowSpace
  readonly actionSpace: ActionSpace
  readonly rows: number
  /** The largest number of questions about one game in one call of `answer`. */
  readonly perRow: number
}

/** An opponent that is open for one batch of games, and answers questions about them. */
export interface Responder {
  readonly answer: (asked: ReadonlyArray<OpponentQuestion>) => Effect.Effect<ReadonlyArray<OpponentAnswer>, EnvError>
  /** Runs once, when the first episodes of the batch begin. */
  readonly reset?: Effect.Effect<void, EnvError>
  readonly save?: () => Snapshot
  readonly load?: (saved: Snapshot) => Effect.Effect<void, EnvError>
}

/** An opponent that answers by Effects. It is opened for each batch. */
export interface Later {
  readonly _tag: "Later"
  readonly open: (place: OpponentBatch) => Effect.Effect<Responder, EnvError, Scope.Scope>
}

/** An opponent, which plays an agent: a random player, a function, a loaded policy, or past policies of the training (`pastSelves`). */
export type Opponent<A extends ActionSpace = ActionSpace, O extends Space = Space> =
  | "random"
  | Player<A, O>
  | PolicyLike
  | Later

/** An opponent that answers at once. */
export interface Now {
  readonly _tag: "Now"
  readonly play: (observation: SpaceValue, situation: Situation) => ActionOf<ActionSpace>
}

/** The facts about a game that opponents need. */
export type PlayedGame = Pick<Game, "id" | "agents" | "observationSpace" | "actionSpace">

/** Converts an opponent to one of two forms: `Now` answers at once, `Later` by Effects. */
export const formOf = (game: PlayedGame, opponent: Opponent): Now | Later => {
  if (opponent === "random") return { _tag: "Now", play: randomPlayer(game) }
  if (Predicate.isFunction(opponent)) return { _tag: "Now", play: checked(game, opponent) }
  if (Predicate.isTagged(opponent, "Later")) return opponent
  if (Predicate.hasProperty(opponent, "actAll")) return laterOf(game, opponent)
  throw invalid(
    game.id,
    `opponents: expected "random", a function, a policy of Policy.load or MultiEnv.pastSelves(), found ${display(opponent)}`,
  )
}

/** Makes a player that draws each action from the whole space, or from the choices that are allowed. */
const randomPlayer = (game: PlayedGame): Now["play"] => {
  const { actionSpace } = game
  const rowSpace = agentRowSpace(game, choicesOf(actionSpace) !== undefined)
  const withMask = maskRow(game)
  const action = new Int32Array(sizeOf(actionSpace))
  return (_, { mask, random }) => {
    if (mask === undefined || rowSpace._tag !== "Masked") return sample(actionSpace, random)
    drawAllowed(rowSpace, withMask(mask), random, action)
    return actionSpace._tag === "Discrete" ? action[0] : Array.from(action)
  }
}

/** Adds a check to a player: its actions must be in the space, and the mask must allow them. */
const checked = (game: PlayedGame, player: Player<ActionSpace, Space>): Now["play"] => {
  const { id, actionSpace } = game
  const rowSpace = agentRowSpace(game, choicesOf(actionSpace) !== undefined)
  const forbidden = forbiddenProblemIn(rowSpace, sizeOf(actionSpace))
  const withMask = maskRow(game)
  return (observation, situation) => {
    const { mask } = situation
    const action = player(observation, situation)
    const problem =
      problemOf(actionSpace, action, "action") ??
      (mask === undefined
        ? undefined
        : forbidden?.(withMask(mask), Int32Array.from(typeof action === "number" ? [action] : action))?.problem)
    if (problem === undefined) return action
    throw invalid(id, `the opponent that plays ${situation.agent}: ${problem}`)
  }
}

/** Returns a function that writes a game's mask to a row, which the next call overwrites. Throws if the mask is wrong. */
const maskRow = ({ id, observationSpace, actionSpace }: PlayedGame): ((mask: NonNullable<Mask>) => Float32Array) => {
  const choices = choicesOf(actionSpace) ?? []
  const size = sizeOf(observationSpace)
  const write = givenMaskWriter(choices)
  const row = new Float32Array(size + choices.reduce((sum, count) => sum + count, 0))
  return (mask) => {
    const problem = write(mask, row, size)
    if (problem !== undefined) throw invalid(id, problem)
    return row
  }
}

/** Makes an opponent from a loaded policy. */
const laterOf = ({ id, actionSpace }: PlayedGame, policy: PolicyLike): Later => {
  if (JSON.stringify(policy.actionSpace) !== JSON.stringify(actionSpace)) {
    throw invalid(id, "opponents: the policy has other actions than the game")
  }
  return {
    _tag: "Later",
    open: () =>
      Effect.succeed({
        answer: (asked) =>
          policy
            .actAll(
              asked.map(({ observation }) => observation),
              asked.map(({ memory }) => memory),
              asked.map(({ mask }) => mask),
            )
            .pipe(
              Effect.map((acted) => acted.map(({ action, state }) => ({ action, memory: state ?? null }))),
              Effect.mapError((error) => invalid(id, `the policy that plays an opponent: ${messageOf(error)}`)),
            ),
      }),
  }
}

/** Returns the space of the rows that a game's agents have. */
export const agentRowSpace = (game: PlayedGame, hasMask: boolean): RowSpace =>
  hasMask ? masked(game.observationSpace, game.actionSpace) : game.observationSpace
