/**
 * A task in words for several players, who act in turn or at once: every step says who is to act next, what each player
 * sees now, and how good it was for whom.
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
import type { ToolCall, ToolSpec } from "../lm/Chat.ts"
import type { Stream } from "../rng/Rng.ts"
import type { EnvError } from "../env/EnvError.ts"
import { guardOf, noTool, type OrEffect, unkeepable } from "./guard.ts"
import type { Feedback } from "./Feedback.ts"
import type { CallResult } from "./TextEnv.ts"

/** Something for each player that it says anything about. */
export type ByPlayer<A> = Readonly<Record<string, A>>

/** Who is to move, and what is seen. */
export interface Scene {
  /** One of them: in turn. Several: at once, without seeing what the others do. Nobody: it is over. */
  readonly toMove: ReadonlyArray<string>
  /** What players see now. Each that is to move sees something; others may, the last look at the end above all. */
  readonly observations: ByPlayer<string | null>
}

export interface MultiTextStep extends Scene {
  /** For whoever is told something: those that acted, and those that something happened to while they waited. */
  readonly feedback: ByPlayer<Feedback>
  /** The task came to its end, for all. */
  readonly terminated: boolean
  /** The env cut the episode off by itself, for all. */
  readonly truncated?: boolean
  readonly info?: Readonly<Record<string, unknown>>
}

/** One episode in progress. */
export interface MultiTextEpisode extends Scene {
  /** One action of each player that is to move, and of nobody else. */
  readonly step: (actions: ByPlayer<string>) => Effect.Effect<MultiTextStep, EnvError>
  /** Calls one of the env's tools for a player, which is no step. Only where there are tools. */
  readonly call?: (player: string, call: ToolCall) => Effect.Effect<CallResult, EnvError>
}

/** One task for several players. */
export interface MultiTextEnv {
  readonly id: string
  readonly type: string
  readonly metadata: Readonly<Record<string, unknown>>
  /** Their names, in order. */
  readonly players: ReadonlyArray<string>
  /** Truncates at this many steps, where no smaller limit is set from outside. */
  readonly maxSteps?: number
  /** What players may call between steps; none unless given. */
  readonly tools?: ReadonlyArray<ToolSpec>
  /** A new episode. The stream is all the chance there is: the same stream and actions are the same episode. */
  readonly begin: (random: Stream) => Effect.Effect<MultiTextEpisode, EnvError>
}

export interface MultiTextRules<State> {
  readonly id: string
  readonly type: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly players: ReadonlyArray<string>
  readonly maxSteps?: number
  readonly tools?: ReadonlyArray<ToolSpec>
  readonly begin: (random: Stream) => OrEffect<Scene & { readonly state: State }>
  /** `random` is this step's own. */
  readonly step: (
    state: State,
    actions: ByPlayer<string>,
    random: Stream,
  ) => OrEffect<MultiTextStep & { readonly state: State }>
  /** Where there are tools. `random` is this call's own. */
  readonly call?: (
    state: State,
    player: string,
    call: ToolCall,
    random: Stream,
  ) => OrEffect<CallResult & { readonly state: State }>
}

const quoted = (names: ReadonlyArray<string>): string =>
  names.length === 0 ? "nobody" : names.map((name) => `"${name}"`).join(", ")

/** An env from its rules. What they throw, and a step that makes no sense, is an `EnvError`. */
export const make = <State>(rules: MultiTextRules<State>): MultiTextEnv => {
  const { id, type, metadata = {}, players, maxSteps, tools = [] } = rules
  const guard = guardOf(id)

  /** What is wrong with it, if anything. */
  const problem = ({ toMove, observations }: Scene, told: ReadonlyArray<string>, over: boolean): string | undefined => {
    const strangers = [...toMove, ...Object.keys(observations), ...told].filter((name) => !players.includes(name))
    if (strangers.length > 0) return `speaks of ${quoted(strangers)}; its players are ${quoted(players)}`
    if (over) return undefined
    if (toMove.length === 0) return "goes on, but nobody is to move"
    if (new Set(toMove).size < toMove.length) return `says twice that somebody is to move: ${quoted(toMove)}`
    const blind = toMove.filter((name) => typeof observations[name] !== "string")
    return blind.length === 0 ? undefined : `has no observation for ${quoted(blind)}, who is to move`
  }

  const episode = (first: Scene & { readonly state: State }, random: Stream): MultiTextEpisode => {
    let { state, toMove } = first
    let steps = 0
    let calls = 0
    let over = false
    return {
      toMove,
      observations: first.observations,
      step: (actions) =>
        Effect.suspend(() => {
          if (over) return Effect.fail(guard.wrong(steps, "was stepped after its episode was over"))
          const acting = Object.keys(actions)
          if (acting.length !== toMove.length || toMove.some((name) => !Object.hasOwn(actions, name))) {
            const message = `expected actions of ${quoted(toMove)}, found those of ${quoted(acting)}`
            return Effect.fail(guard.wrong(steps, message))
          }
          const number = steps + 1
          const stepped = guard.run(number, `step ${number}`, () =>
            rules.step(state, actions, random.child("step", number)),
          )
          return Effect.flatMap(stepped, (led) => {
            const ends = led.terminated || led.truncated === true
            const told = Object.keys(led.feedback)
            const odd = told.find((name) => !Number.isFinite(led.feedback[name].score))
            const wrong =
              odd === undefined
                ? problem(led, told, ends)
                : `gave "${odd}" the score ${led.feedback[odd].score}; expected a finite number`
            if (wrong !== undefined) return Effect.fail(guard.wrong(number, `at step ${number} ${wrong}`))
            const unfit = unkeepable([led.info, told.map((name) => led.feedback[name].extra)])
            if (unfit !== undefined) {
              return Effect.fail(guard.wrong(number, `gave an info or extra feedback at step ${number}: ${unfit}`))
            }
            ;({ state, toMove } = led)
            steps = number
            over = ends
            return Effect.succeed(led)
          })
        }),
      call: (player, call) =>
        Effect.suspend(() => {
          if (over) return Effect.fail(guard.wrong(steps, "was called after its episode was over"))
          const { call: answer } = rules
          if (answer === undefined || !tools.some(({ name }) => name === call.name)) {
            return Effect.succeed(noTool(tools, call.name))
          }
          const number = ++calls
          const called = guard.run(steps, `call ${number} (of ${call.name})`, () =>
            answer(state, player, call, random.child("call", number)),
          )
          return Effect.map(called, ({ state: after, ...result }) => {
            state = after
            return result
          })
        }),
    }
  }

  return {
    id,
    type,
    metadata,
    players,
    ...(maxSteps === undefined ? {} : { maxSteps }),
    ...(tools.length === 0 ? {} : { tools }),
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
