/**
 * Makes an env an env that can be served by OpenEnv's protocol: an observation has its numbers as `values`, flat, and an action
 * is the number of a choice or a list of numbers.
 */
import { Effect, type Scope } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import type { Plain } from "../../../base/config/plain.ts"
import { EnvError, invalid } from "../../../base/EnvError.ts"
import {
  objectSchema,
  type ServedCopy,
  type ServedEnv,
  type ServedObservation,
} from "../../../spread/openenv/ServedEnv.ts"
import * as Batch from "../Batch.ts"
import type { AnyBatchEnv } from "../BatchEnv.ts"
import { type Env, rowSpaceOf } from "../Env.ts"
import { type ActionSpace, isWhole, maskSizeOf, sizeOf } from "../Space.ts"

const whole = (choices: number): Plain => ({ type: "integer", minimum: 0, maximum: choices - 1 })

const bounded = (low: number, high: number): Plain => ({
  type: "number",
  ...(Number.isFinite(low) && { minimum: low }),
  ...(Number.isFinite(high) && { maximum: high }),
})

/** Describes a list of numbers whose elements have these Schemas. */
const listOf = (items: ReadonlyArray<Plain>): Plain => {
  const length = { minItems: items.length, maxItems: items.length }
  const [first] = items
  const isUniform = items.every((item) => JSON.stringify(item) === JSON.stringify(first))
  return { type: "array", ...(isUniform ? { items: first } : { prefixItems: items }), ...length }
}

const actionSchema = (space: ActionSpace): Plain => {
  switch (space._tag) {
    case "Discrete":
      return whole(space.n)
    case "MultiDiscrete":
      return listOf(space.sizes.map(whole))
    case "MultiBinary":
      return listOf(Array.from({ length: space.n }, () => whole(2)))
    case "Box":
      return listOf(space.low.map((low, at) => bounded(low, space.high[at])))
  }
}

/** Waits for a function of a batch, which returns an Effect if the env runs elsewhere. */
const waited = (call: () => ReturnType<AnyBatchEnv["step"]>): Effect.Effect<void, EnvError> =>
  Effect.flatMap(attempt(call, EnvError), (wait) => wait ?? Effect.void)

/** The numbers of an action that a client sent, as a batch gets them. */
const rowOf = (space: ActionSpace, action: unknown): Float32Array | Int32Array => {
  const numbers = (Array.isArray(action) ? action : [action]).map(Number)
  return isWhole(space) ? Int32Array.from(numbers) : Float32Array.from(numbers)
}

const observedIn = (batch: AnyBatchEnv, rows: Float32Array, size: number): Plain => {
  const masks = maskSizeOf(batch.observationSpace)
  const values = Array.from(rows.subarray(0, size))
  return masks === 0 ? { values } : { values, action_mask: Array.from(rows.subarray(size, size + masks)) }
}

const copyOf = (env: Env): Effect.Effect<ServedCopy, EnvError, Scope.Scope> =>
  Effect.map(Batch.open(env, 1), (batch) => {
    const size = sizeOf(env.observationSpace)
    let isOver = true
    const copy: ServedCopy = {
      reset: ({ seed }) =>
        Effect.map(
          waited(() => batch.reset(seed, "openenv")),
          (): ServedObservation => {
            isOver = false
            return { observation: observedIn(batch, batch.observations, size), reward: null, done: false }
          },
        ),
      step: ({ action }) =>
        Effect.gen(function* () {
          if (isOver) return yield* invalid(env.id, "the episode is over; expected a reset")
          yield* waited(() => batch.step(rowOf(env.actionSpace, action)))
          isOver = batch.terminated[0] === 1 || batch.truncated[0] === 1
          const seen = observedIn(batch, isOver ? batch.finalObservations : batch.observations, size)
          const observation = { ...seen, truncated: batch.truncated[0] === 1 && batch.terminated[0] === 0 }
          return { observation, reward: batch.rewards[0], done: isOver }
        }),
    }
    return copy
  })

/**
 * Makes an env an env that can be served. Games of several agents cannot be served.
 *
 * @example
 * ```ts
 * const served = yield* servedNumbers(CartPole.env)
 * ```
 */
export const servedNumbers = (env: Env): Effect.Effect<ServedEnv, EnvError> => {
  if (env.agents !== undefined)
    return Effect.fail(invalid(env.id, "it has several agents; expected an env of one agent"))
  const masks = maskSizeOf(rowSpaceOf(env))
  const number: Plain = { type: "number" }
  const values = listOf(Array.from({ length: sizeOf(env.observationSpace) }, () => number))
  const mask = masks === 0 ? {} : { action_mask: listOf(Array.from({ length: masks }, () => whole(2))) }
  const observations = objectSchema("NumbersObservation", { values, ...mask })
  return Effect.succeed({
    name: env.id,
    description: `${env.id}: an observation has ${sizeOf(env.observationSpace)} numbers`,
    actions: objectSchema("NumbersAction", { action: actionSchema(env.actionSpace) }),
    observations: { ...observations, additionalProperties: true },
    tools: [],
    open: copyOf(env),
  })
}
