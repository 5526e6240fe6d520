/**
 * Makes an env whose observations and actions are numbers from one that somebody else serves by OpenEnv's protocol. The
 * server's JSON Schemas say how many numbers there are; if they do not, the config does.
 *
 * @example
 * ```yaml
 * env: { name: OpenEnv, url: "http://127.0.0.1:8000" }
 * ```
 */
import { Effect, Scope } from "effect"
import * as Schema from "effect/Schema"
import { bounded, withDefault } from "../../../base/config/fields.ts"
import { toSnakeCase } from "../../../base/config/Config.ts"
import { isPlain, type Plain } from "../../../base/config/plain.ts"
import { bounds } from "../../../base/config/bounds.ts"
import { attempt } from "../../../base/config/attempt.ts"
import { EnvError, invalid } from "../../../base/EnvError.ts"
import { isRefused, type Observed, quoted, type Refused } from "../../../spread/openenv/messages.ts"
import { type OpenEnvServer, OpenEnvServers, type OpenEnvSession } from "../../../spread/openenv/OpenEnvServers.ts"
import { serverFields } from "../../../spread/openenv/serverFields.ts"
import { type EnvSession, make } from "../AsyncEnv.ts"
import type { Env } from "../Env.ts"
import { withRecipe } from "../recipe.ts"
import { type ActionSpace, box, type Box, choicesOf, discrete, sizeOf } from "../Space.ts"
import { actionSpaceOf, observationSpaceOf, ownProperties } from "./spaces.ts"

const { sessions: _, ...server } = serverFields

export const OpenEnvOptions = Schema.Struct({
  ...server,
  /** The env's name. */
  id: withDefault(Schema.NonEmptyString, "OpenEnv"),
  /** More data for each reset, with keys in snake_case. */
  options: withDefault(Schema.Record(Schema.String, Schema.Json), {}),
  /** The key of an observation with its numbers; null: the only list of numbers. */
  observationKey: withDefault(Schema.NullOr(Schema.NonEmptyString), null),
  /** The shape of an observation, if the server does not say how many numbers it has. */
  observationShape: withDefault(Schema.NullOr(Schema.NonEmptyArray(bounded("axis"))), null),
  /** The key of an action; null: the only one there is. */
  actionKey: withDefault(Schema.NullOr(Schema.NonEmptyString), null),
  /** The other keys of an action, with keys in snake_case. */
  actionDefaults: withDefault(Schema.Record(Schema.String, Schema.Json), {}),
  /** The number of choices of an action, if the server does not say so. */
  choices: withDefault(Schema.NullOr(bounded("axis")), null),
  /** The key of an observation that lists the allowed choices; null: `action_mask`, if there is one, says which are allowed. */
  legalActionsKey: withDefault(Schema.NullOr(Schema.NonEmptyString), null),
  /** The number of steps after which an episode is truncated; null leaves that to the server. */
  maxSteps: withDefault(Schema.NullOr(bounded("count")), null),
})
export type OpenEnvOptions = typeof OpenEnvOptions.Type

/** The key of an observation with a mask, which says which choices are allowed. */
const maskKey = "action_mask"

/** How an env is played: where its numbers are. */
interface Layout {
  readonly observationKey: string
  readonly observationSpace: Box
  readonly actionKey: string
  readonly actionSpace: ActionSpace
  readonly defaults: Plain
  readonly hasMask: boolean
}

const plainSnake = (value: unknown): Plain => {
  const converted = toSnakeCase(value)
  return isPlain(converted) ? converted : {}
}

/** Returns the key that a setting names, or else the only one; fails with what is wrong. */
const keyOf = (setting: string, key: string | null, keys: ReadonlyArray<string>): string => {
  const only = key ?? (keys.length === 1 ? keys[0] : undefined)
  if (only !== undefined) return only
  const expected =
    keys.length === 0
      ? "the key with the numbers, because the server describes none of a fixed size"
      : `one of ${quoted(keys.join(", "))}`
  throw new EnvError({ env: "OpenEnv", message: `${setting}: expected ${expected}` })
}

const layoutOf = ({ actions, observations }: OpenEnvServer, options: OpenEnvOptions): Layout => {
  const seen = ownProperties(observations)
  const acts = ownProperties(actions)
  const defaults = plainSnake(options.actionDefaults)
  const lists = Object.keys(seen).filter((key) => key !== maskKey && observationSpaceOf(seen[key]) !== undefined)
  const observationKey = keyOf("observation_key", options.observationKey, lists)
  const actionKey = keyOf(
    "action_key",
    options.actionKey,
    Object.keys(acts).filter((key) => !Object.hasOwn(defaults, key)),
  )
  const { observationShape, choices } = options
  const observationSpace =
    observationShape === null ? observationSpaceOf(seen[observationKey]) : box(-Infinity, Infinity, observationShape)
  const actionSpace = choices === null ? actionSpaceOf(acts[actionKey]) : discrete(choices)
  if (observationSpace === undefined)
    throw invalid(options.id, "observation_shape: expected the shape, because the server does not say it")
  if (actionSpace === undefined)
    throw invalid(options.id, "choices: expected the number of choices, because the server does not say it")
  if (options.legalActionsKey !== null && actionSpace._tag !== "Discrete")
    throw invalid(options.id, "legal_actions_key: expected null, because an action is not one choice")
  const hasMask =
    options.legalActionsKey !== null || (Object.hasOwn(seen, maskKey) && choicesOf(actionSpace) !== undefined)
  return { observationKey, observationSpace, actionKey, actionSpace, defaults, hasMask }
}

/** Flattens nested lists of numbers into `numbers`. Stops at more than `most`, and at what is no number. */
const flatten = (value: unknown, numbers: Array<number>, most: number): boolean => {
  if (typeof value === "number") return numbers.push(value) <= most
  return Array.isArray(value) && value.every((item) => flatten(item, numbers, most))
}

const numbersIn = (value: unknown, size: number): ReadonlyArray<number> | undefined => {
  const numbers: Array<number> = []
  return flatten(value, numbers, size) && numbers.length === size ? numbers : undefined
}

const failure = ({ id }: OpenEnvOptions, { code, message }: Refused): EnvError =>
  invalid(id, `its server failed with ${code}: ${message}`)

/** Plays the episodes of one copy in one session of the server. */
const sessionOf = (server: OpenEnvServer, options: OpenEnvOptions, layout: Layout) =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const { observationKey, observationSpace, actionKey, actionSpace, defaults } = layout
    let session: OpenEnvSession | undefined
    let last: Plain = {}
    const read = (answer: Observed | Refused): Effect.Effect<ReadonlyArray<number>, EnvError> => {
      if (isRefused(answer)) return Effect.fail(failure(options, answer))
      last = answer.observation
      const numbers = numbersIn(last[observationKey], sizeOf(observationSpace))
      if (numbers !== undefined) return Effect.succeed(numbers)
      const expected = `expected ${sizeOf(observationSpace)} numbers at "${observationKey}"`
      return Effect.fail(invalid(options.id, `its server sent a wrong observation; ${expected}`))
    }
    const mask = Effect.sync(() => {
      const { legalActionsKey } = options
      if (legalActionsKey === null) return Array.isArray(last[maskKey]) ? last[maskKey].map(Number) : []
      const legal = last[legalActionsKey]
      const [choices = 0] = choicesOf(actionSpace) ?? []
      return Array.from({ length: choices }, (_, choice) => Array.isArray(legal) && legal.includes(choice))
    })
    const own: EnvSession<ActionSpace, Box> = {
      reset: (random) =>
        Effect.gen(function* () {
          const seed = random.uint32()
          const data = { ...plainSnake(options.options), seed, episode_id: `${options.id}-${seed}` }
          if (session !== undefined) return yield* read(yield* session.reset(data))
          session = yield* server.begin({ type: "reset", data }).pipe(Effect.provideService(Scope.Scope, scope))
          return yield* read(session.first)
        }),
      step: (action) =>
        Effect.gen(function* () {
          if (session === undefined) return yield* invalid(options.id, "it was stepped before its reset")
          const value = typeof action === "number" ? action : Array.from(action)
          const answer = yield* session.step({ ...defaults, [actionKey]: value })
          const observation = yield* read(answer)
          const { reward, done } = isRefused(answer) ? { reward: 0, done: true } : answer
          const isTruncated = done && last["truncated"] === true
          return { observation, reward, terminated: done && !isTruncated, truncated: isTruncated }
        }),
      ...(layout.hasMask && { actionMask: mask }),
    }
    return own
  })

/** Makes the env of a server. */
export const fromServer = Effect.fnUntraced(function* (options: OpenEnvOptions): Effect.fn.Return<Env, EnvError> {
  const { id, url, tokenVariable, timeoutSeconds, maxMessageMb, maxSteps } = options
  const { open } = yield* OpenEnvServers
  // Each env of a batch keeps a session for all of its episodes.
  const sessions = bounds.envs.most
  const server = yield* open({ id, url, tokenVariable, timeoutSeconds, maxMessageMb, sessions })
  const layout = yield* attempt(() => layoutOf(server, options), EnvError)
  const env = make<ActionSpace, Box>({
    id,
    observationSpace: layout.observationSpace,
    actionSpace: layout.actionSpace,
    ...(maxSteps !== null && { maxSteps }),
    hasActionMask: layout.hasMask,
    // A reset may connect, wait for a free session and be answered. Each has its own limit, whose message says more.
    timeoutSeconds: 4 * timeoutSeconds,
    open: () => sessionOf(server, options, layout),
  })
  return withRecipe(env, "OpenEnv", options)
})
