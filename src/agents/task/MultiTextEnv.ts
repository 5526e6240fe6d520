/**
 * Defines tasks in words for several players, who act in turn or at the same time. Every step returns the players that act
 * next, the observations, and the feedback of each player. `Against` converts such a task to a task for a single agent.
 *
 * @example
 * ```ts
 * // Two say a number at once; the higher one wins.
 * const highest = MultiTextEnv.make<null>({
 *   id: "highest",
 *   type: "highest",
 *   players: ["a", "b"],
 *   begin: () => ({ state: null, toMove: ["a", "b"], observations: { a: "Say a number.", b: "Say a number." } }),
 *   step: (state, actions) => {
 *     const score = Math.sign(Number(actions["a"]) - Number(actions["b"]))
 *     return {
 *       state,
 *       toMove: [],
 *       observations: {},
 *       feedback: {
 *         a: { score, target: null, message: `b said ${actions["b"]}` },
 *         b: { score: -score, target: null, message: `a said ${actions["a"]}` },
 *       },
 *       terminated: true,
 *     }
 *   },
 * })
 * ```
 */
import { Effect } from "effect"
import type { ToolCall } from "../lm/Chat.ts"
import type { Stream } from "../../base/rng/Rng.ts"
import type { EnvError } from "../../base/EnvError.ts"
import { guardOf, headOf, lifeOf, notJson, type OrEffect } from "./guard.ts"
import { expectedReward, type Feedback, isReward } from "./Feedback.ts"
import type { CallResult, TextEnv, TextStep } from "./TextEnv.ts"

/** A value for each of some players, by the player's name. */
export type ByPlayer<A> = Readonly<Record<string, A>>

/** The state of a game between two steps: which players move next, and what players observe. */
export interface Scene {
  /**
   * The players that act next: one in a turn-based game; several if they act at the same time, without seeing each other's
   * actions; none if the episode is over.
   */
  readonly toMove: ReadonlyArray<string>
  /** The observations by player. Each player in `toMove` has one; others may have one, too, e.g. at the end of the game. */
  readonly observations: ByPlayer<string | null>
}

export interface MultiTextStep extends Scene, Omit<TextStep, "observation" | "feedback"> {
  /** The feedback for the players that acted, and for other players whose score changed in this step. */
  readonly feedback: ByPlayer<Feedback>
}

/** An episode in progress. `toMove` and `observations` are for the first step; each step returns the next ones. */
export interface MultiTextEpisode extends Scene {
  /** Takes a step. `actions` has an action of each player in `toMove`, and no other actions. */
  readonly step: (actions: ByPlayer<string>) => Effect.Effect<MultiTextStep, EnvError>
  /** Calls one of the env's tools for a player, if the env has tools. A call is not a step. */
  readonly call?: (player: string, call: ToolCall) => Effect.Effect<CallResult, EnvError>
}

/** A task for several players. An episode ends for all of them at the same time. */
export interface MultiTextEnv extends Omit<TextEnv, "begin" | "target" | "demonstrate" | "game"> {
  /** The names of the players, in order. */
  readonly players: ReadonlyArray<string>
  /** Begins an episode. The stream is its only randomness: the same stream and actions give the same episode. */
  readonly begin: (random: Stream) => Effect.Effect<MultiTextEpisode, EnvError>
}

export interface MultiTextRules<State>
  extends Omit<MultiTextEnv, "metadata" | "begin">, Partial<Pick<MultiTextEnv, "metadata">> {
  readonly begin: (random: Stream) => OrEffect<Scene & { readonly state: State }>
  /** Takes a step with an action of each player in `toMove`. `random` is the random stream of this step. */
  readonly step: (
    state: State,
    actions: ByPlayer<string>,
    random: Stream,
  ) => OrEffect<MultiTextStep & { readonly state: State }>
  /** Answers the call of a tool; required if there are tools. `random` is the random stream of this call. */
  readonly call?: (
    state: State,
    player: string,
    call: ToolCall,
    random: Stream,
  ) => OrEffect<CallResult & { readonly state: State }>
}

const quoted = (names: ReadonlyArray<string>): string =>
  names.length === 0 ? "no player" : names.map((name) => `"${name}"`).join(", ")

/** Makes an env from its rules. If a rule throws or returns an inconsistent step, the Effect fails with `EnvError`. */
export const make = <State>(rules: MultiTextRules<State>): MultiTextEnv => {
  const { id, players, tools = [], call: answer } = rules
  const guard = guardOf(id)

  /**
   * Returns what is wrong with a scene; undefined if nothing is. `informed` are the players with feedback; `over` tells
   * whether the game has ended.
   */
  const problem = (
    { toMove, observations }: Scene,
    informed: ReadonlyArray<string>,
    over: boolean,
  ): string | undefined => {
    const unknown = [...toMove, ...Object.keys(observations), ...informed].filter((name) => !players.includes(name))
    if (unknown.length > 0) return `named ${quoted(unknown)}; its players are ${quoted(players)}`
    if (over) return undefined
    if (toMove.length === 0) return "continues, but no player is to move"
    if (new Set(toMove).size < toMove.length) return `names a player to move twice: ${quoted(toMove)}`
    const unobserved = toMove.filter((name) => typeof observations[name] !== "string")
    return unobserved.length === 0 ? undefined : `has no observation for ${quoted(unobserved)}, who is to move`
  }

  const episode = (first: Scene & { readonly state: State }, random: Stream): MultiTextEpisode => {
    const life = lifeOf(guard, tools, first.state, random)
    let { toMove } = first
    return {
      toMove,
      observations: first.observations,
      step: (actions) =>
        life.step(
          (state, chance, steps) => {
            const acting = Object.keys(actions)
            return acting.length === toMove.length && toMove.every((name) => Object.hasOwn(actions, name))
              ? rules.step(state, actions, chance)
              : Effect.fail(
                  guard.wrong(steps, `expected actions of ${quoted(toMove)}, found those of ${quoted(acting)}`),
                )
          },
          (result, number) => {
            const { feedback } = result
            const informed = Object.keys(feedback)
            const odd = informed.find((name) => !isReward(feedback[name].score))
            const inconsistent =
              odd === undefined
                ? problem(result, informed, result.terminated || result.truncated === true)
                : `gave "${odd}" the score ${feedback[odd].score}; expected ${expectedReward(feedback[odd].score)}`
            const extras = informed.map((name) => feedback[name].extra)
            const wrong =
              inconsistent === undefined ? notJson([result.info, extras], number) : `at step ${number} ${inconsistent}`
            if (wrong !== undefined) return Effect.fail(guard.wrong(number, wrong))
            ;({ toMove } = result)
            return Effect.succeed(result)
          },
        ),
      call: (player, call) => life.call(call, answer && ((state, chance) => answer(state, player, call, chance))),
    }
  }

  return {
    ...headOf(rules),
    players,
    begin: (random) =>
      Effect.flatMap(
        guard.run(0, "its beginning", () => rules.begin(random.child("begin"))),
        (first) => {
          const wrong = problem(first, [], false)
          return wrong === undefined
            ? Effect.succeed(episode(first, random))
            : Effect.fail(guard.wrong(0, `at its beginning ${wrong}`))
        },
      ),
  }
}
