/**
 * Lets past policies of a training play opponents. A pool keeps snapshots of the weights. The games of a batch are divided
 * among some slots, each with a program that plays one snapshot of the pool; a refresh draws the snapshots anew.
 */
import { Effect } from "effect"
import type { BackendError } from "../../../tensor/backend/Backend.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { actionReader } from "../Batch.ts"
import type { Snapshot } from "../BatchEnv.ts"
import { type EnvError, invalid } from "../../../base/EnvError.ts"
import { givenMaskWriter } from "../internal/rows.ts"
import { writerOf } from "../internal/values.ts"
import { choicesOf, sizeOf, unmasked } from "../Space.ts"
import type { Answer, Later, Responder } from "./opponents.ts"
import { Trainee, type TraineePolicy } from "./Trainee.ts"

export interface Options {
  /** The number of updates after which the current policy comes into the pool, and all opponents are drawn again. @default 10 */
  readonly every?: number
  /** The number of snapshots that the pool keeps: the newest ones. @default 10 */
  readonly size?: number
  /** The number of snapshots that play at the same time: the newest, and others that are drawn from the pool. @default 4 */
  readonly slots?: number
}

/** Makes an opponent of the past policies of the training in which it plays. */
export const pastSelves = ({ every = 10, size = 10, slots = 4 }: Options = {}): Later => {
  for (const [name, value] of Object.entries({ every, size, slots })) {
    if (Number.isInteger(value) && value >= 1) continue
    throw invalid("pastSelves", `${name}: expected a whole number from 1, found ${value}`)
  }
  return {
    _tag: "Later",
    open: Effect.fnUntraced(function* ({ id, rowSpace, actionSpace, rows, perRow }) {
      const trainee = yield* Trainee
      if (trainee === undefined) {
        return yield* invalid(
          id,
          "past selves play only in the envs of a training; name others for validations, as validation.envs: [MultiEnv.against(game, …)]",
        )
      }
      const inTraining = <T>(effect: Effect.Effect<T, BackendError>): Effect.Effect<T, EnvError> =>
        Effect.mapError(effect, ({ message }) => invalid(id, `past selves: ${message}`))
      const count = Math.min(slots, rows)
      /** The first row of each slot. */
      const firsts = Array.from({ length: count + 1 }, (_, slot) => Math.floor((slot * rows) / count))
      const slotOf = Array.from({ length: rows }, (_, row) => firsts.findLastIndex((first) => first <= row))
      const policies = yield* Effect.forEach(firsts.slice(1), (end, slot) =>
        trainee.policy((end - firsts[slot]) * perRow),
      )

      const pool: Array<Float32Array> = []
      /** The position in the pool of the snapshot that each slot plays. */
      const played = new Int32Array(count)
      /** The number of refreshes, and that of the answers that drew actions. */
      const counts = new Float64Array(2)

      const deal = Effect.suspend(() =>
        Effect.forEach(policies, ({ write }, slot) => write(pool[played[slot]]), { discard: true }),
      )
      /** Adds the current policy to the pool, and draws the snapshots of all slots but the first, which has the newest. */
      const refresh = Effect.gen(function* () {
        yield* policies[0].refresh
        pool.push(yield* policies[0].read)
        // After a resume with a smaller size, the pool has more than one too many.
        while (pool.length > size) pool.shift()
        const random = stream(trainee.seed, "past selves", counts[0]++)
        played.forEach((_, slot) => (played[slot] = slot === 0 ? pool.length - 1 : random.integer(pool.length)))
        yield* deal
      })
      trainee.afterUpdate((updates) => (updates % every === 0 ? refresh : Effect.void))

      const observationSpace = unmasked(rowSpace)
      const rowSize = sizeOf(rowSpace)
      const observationSize = sizeOf(observationSpace)
      const write = writerOf(observationSpace, "observation")
      const writeMask = givenMaskWriter(choicesOf(actionSpace) ?? [])
      const actionAt = actionReader(actionSpace)

      /** Writes a question to the inputs of a program. Returns a problem of its values; undefined if they have none. */
      const ask = (
        { program: { feeds } }: TraineePolicy,
        at: number,
        { observation, mask, memory }: Parameters<Responder["answer"]>[0][number],
      ): string | undefined => {
        const observations = Float32Array.from(feeds.observations.subarray(at * rowSize, (at + 1) * rowSize))
        const problem =
          write(observation, observations, 0) ??
          (rowSize === observationSize
            ? undefined
            : mask === undefined
              ? void observations.fill(1, observationSize)
              : writeMask(mask, observations, observationSize))
        feeds.observations.set(observations, at * rowSize)
        const width = widthOf(feeds.memory, feeds.observations, rowSize)
        feeds.memory?.set(memory ?? new Float32Array(width), at * width)
        return problem
      }

      const answer: Responder["answer"] = Effect.fnUntraced(function* (asked) {
        const answers: Array<Answer> = []
        const used = new Int32Array(count)
        const places = asked.map(({ row }) => ({ slot: slotOf[row], at: used[slotOf[row]]++ }))
        for (const [number, { slot, at }] of places.entries()) {
          const problem = ask(policies[slot], at, asked[number])
          if (problem !== undefined) return yield* invalid(id, `past selves: ${problem}`)
        }
        const draw = counts[1]++
        for (const [slot, { program }] of policies.entries()) {
          if (used[slot] === 0) continue
          const { noise } = program.feeds
          if (noise instanceof Float32Array) {
            stream(trainee.seed, "past selves", "actions", draw, slot).fillUniform(noise)
          }
          yield* inTraining(program.run)
        }
        const actionsOf = policies.map(({ program: { results } }) =>
          results.actions instanceof Int32Array ? results.actions : Float32Array.from(results.actions),
        )
        for (const { slot, at } of places) {
          const { nextMemory } = policies[slot].program.results
          const width = widthOf(nextMemory, policies[slot].program.feeds.observations, rowSize)
          answers.push({
            action: actionAt(actionsOf[slot], at),
            memory: nextMemory === undefined ? null : Array.from(nextMemory.subarray(at * width, (at + 1) * width)),
          })
        }
        return answers
      })

      // Rows that nobody uses hold ones, so that their masks allow something.
      for (const { program } of policies) program.feeds.observations.fill(1)
      return {
        answer,
        reset: inTraining(refresh),
        save: (): Snapshot => ({
          "pool.counts": counts.slice(),
          "pool.played": played.slice(),
          ...Object.fromEntries(pool.map((weights, at) => [`pool.${at}`, weights.slice()])),
        }),
        load: (saved) =>
          Effect.suspend(() => {
            const [savedCounts, savedPlayed] = [saved["pool.counts"], saved["pool.played"]]
            if (savedCounts?.length !== 2 || savedPlayed?.length !== count) {
              return Effect.fail(
                invalid(id, "the snapshot doesn't fit: it has no past selves, or another number of slots"),
              )
            }
            counts.set(savedCounts)
            played.set(savedPlayed)
            pool.length = 0
            for (let at = 0; saved[`pool.${at}`] !== undefined; at++) pool.push(Float32Array.from(saved[`pool.${at}`]))
            return inTraining(deal)
          }),
      }
    }),
  }
}

/** Returns the number of numbers that a row of `data` has; 0 if there is none. */
const widthOf = (data: ArrayLike<number> | undefined, observations: ArrayLike<number>, rowSize: number): number =>
  data === undefined ? 0 : data.length / (observations.length / rowSize)
