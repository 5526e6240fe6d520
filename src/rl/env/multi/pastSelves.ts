/**
 * Lets opponents play by past policies of the training. A pool keeps snapshots of the weights. The games of a batch are
 * divided among some slots; each slot has a program that plays one snapshot. A refresh draws new snapshots for the
 * slots.
 */
import { Effect, type Scope } from "effect"
import type { BackendError } from "../../../tensor/backend/Backend.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { actionReader } from "../Batch.ts"
import type { Snapshot } from "../BatchEnv.ts"
import { type EnvError, invalid } from "../../../base/EnvError.ts"
import { givenMaskWriter } from "../internal/rows.ts"
import { writerOf } from "../internal/values.ts"
import { choicesOf, sizeOf, unmasked } from "../Space.ts"
import type { OpponentAnswer, OpponentQuestion, Later, OpponentBatch } from "./opponents.ts"
import { Trainee, type TraineePolicy, type TraineeService } from "./Trainee.ts"

export interface PastSelvesOptions {
  /** The number of updates after which the current policy comes into the pool, and all opponents are drawn again. @default 10 */
  readonly every?: number
  /** The number of snapshots that the pool keeps: the newest ones. @default 10 */
  readonly size?: number
  /** The number of snapshots that play at the same time: the newest, and others that are drawn from the pool. @default 4 */
  readonly slots?: number
}

/** Makes an opponent that plays by past policies of the training. */
export const pastSelves = ({ every = 10, size = 10, slots = 4 }: PastSelvesOptions = {}): Later => {
  for (const [name, value] of Object.entries({ every, size, slots })) {
    if (Number.isInteger(value) && value >= 1) continue
    throw invalid("pastSelves", `${name}: expected a whole number from 1, found ${value}`)
  }
  return {
    _tag: "Later",
    open: Effect.fnUntraced(function* (place) {
      const trainee = yield* Trainee
      if (trainee === undefined) {
        return yield* invalid(
          place.id,
          "past selves play only in the envs of a training; name others for validations, as validation.envs: [MultiEnv.against(game, …)]",
        )
      }
      const pool = yield* poolOf(trainee, place, { size, slots })
      trainee.afterUpdate((updates) => (updates % every === 0 ? refresh(pool) : Effect.void))
      // Fill rows that nobody uses with ones, so that their masks allow something.
      for (const { program } of pool.policies) program.feeds.observations.fill(1)
      return {
        answer: (asked) => answer(pool, asked),
        reset: asEnvError(pool, refresh(pool)),
        save: () => save(pool),
        load: (saved) => load(pool, saved),
      }
    }),
  }
}

/** The snapshots of a training's policy, and the programs that play some of them. */
interface Pool {
  readonly id: string
  readonly seed: number
  /** The number of snapshots that the pool keeps. */
  readonly size: number
  /** The slot of each row, and (`policies`) the policy of each slot. */
  readonly slotOf: ReadonlyArray<number>
  readonly policies: ReadonlyArray<TraineePolicy>
  readonly snapshots: Array<Float32Array>
  /** The position in the pool of the snapshot that each slot plays. */
  readonly played: Int32Array
  /** The number of refreshes, and the number of `answer` calls, each of which draws new noise. */
  readonly counts: Float64Array
  /** The length of a row, and (`observationSize`) of the observation in it. */
  readonly rowSize: number
  readonly observationSize: number
  readonly write: ReturnType<typeof writerOf>
  readonly writeMask: ReturnType<typeof givenMaskWriter>
  readonly actionAt: ReturnType<typeof actionReader>
}

/** Compiles the policy for the rows of each slot. */
const poolOf = Effect.fnUntraced(function* (
  { seed, policy }: TraineeService,
  { id, rowSpace, actionSpace, rows, perRow }: OpponentBatch,
  { size, slots }: Required<Pick<PastSelvesOptions, "size" | "slots">>,
): Effect.fn.Return<Pool, EnvError, Scope.Scope> {
  const count = Math.min(slots, rows)
  /** The first row of each slot. */
  const firsts = Array.from({ length: count + 1 }, (_, slot) => Math.floor((slot * rows) / count))
  const observationSpace = unmasked(rowSpace)
  return {
    id,
    seed,
    size,
    slotOf: Array.from({ length: rows }, (_, row) => firsts.findLastIndex((first) => first <= row)),
    policies: yield* Effect.forEach(firsts.slice(1), (end, slot) => policy((end - firsts[slot]) * perRow)),
    snapshots: [],
    played: new Int32Array(count),
    counts: new Float64Array(2),
    rowSize: sizeOf(rowSpace),
    observationSize: sizeOf(observationSpace),
    write: writerOf(observationSpace, "observation"),
    writeMask: givenMaskWriter(choicesOf(actionSpace) ?? []),
    actionAt: actionReader(actionSpace),
  }
})

/** Turns a failure of a policy's program into an error of the env. */
const asEnvError = <T>({ id }: Pool, effect: Effect.Effect<T, BackendError>): Effect.Effect<T, EnvError> =>
  Effect.mapError(effect, ({ message }) => invalid(id, `past selves: ${message}`))

/** Gives each slot the weights of its snapshot. */
const deal = ({ policies, snapshots, played }: Pool): Effect.Effect<void, BackendError> =>
  Effect.suspend(() => Effect.forEach(policies, ({ write }, slot) => write(snapshots[played[slot]]), { discard: true }))

/** Adds the current policy to the pool. The first slot plays this newest snapshot; the others get random ones. */
const refresh = Effect.fnUntraced(function* (pool: Pool) {
  const { seed, size, policies, snapshots, played, counts } = pool
  yield* policies[0].refresh
  snapshots.push(yield* policies[0].read)
  // If the run was resumed with a smaller `size`, several snapshots are too many.
  while (snapshots.length > size) snapshots.shift()
  const random = stream(seed, "past selves", counts[0]++)
  played.forEach((_, slot) => (played[slot] = slot === 0 ? snapshots.length - 1 : random.integer(snapshots.length)))
  yield* deal(pool)
})

/**
 * Writes a question to the inputs of a program. Describes what is wrong with its values; returns undefined if they are
 * right.
 */
const ask = (
  { rowSize, observationSize, write, writeMask }: Pool,
  { program: { feeds } }: TraineePolicy,
  at: number,
  { observation, mask, memory }: OpponentQuestion,
): string | undefined => {
  const row = Float32Array.from(feeds.observations.subarray(at * rowSize, (at + 1) * rowSize))
  if (mask === undefined) row.fill(1, observationSize)
  const isMasked = rowSize > observationSize && mask !== undefined
  const problem = write(observation, row, 0) ?? (isMasked ? writeMask(mask, row, observationSize) : undefined)
  feeds.observations.set(row, at * rowSize)
  const width = widthOf(feeds.memory, feeds.observations, rowSize)
  feeds.memory?.set(memory ?? new Float32Array(width), at * width)
  return problem
}

const answer = Effect.fnUntraced(function* (
  pool: Pool,
  asked: ReadonlyArray<OpponentQuestion>,
): Effect.fn.Return<ReadonlyArray<OpponentAnswer>, EnvError> {
  const { id, slotOf, policies } = pool
  const used = new Int32Array(policies.length)
  const places = asked.map(({ row }) => ({ slot: slotOf[row], at: used[slotOf[row]]++ }))
  for (const [number, { slot, at }] of places.entries()) {
    const problem = ask(pool, policies[slot], at, asked[number])
    if (problem !== undefined) return yield* invalid(id, `past selves: ${problem}`)
  }
  yield* runPolicies(pool, used)
  const actionsOf = policies.map(({ program: { results } }) =>
    results.actions instanceof Int32Array ? results.actions : Float32Array.from(results.actions),
  )
  return places.map(({ slot, at }) => {
    const { feeds, results } = policies[slot].program
    const { nextMemory } = results
    const width = widthOf(nextMemory, feeds.observations, pool.rowSize)
    return {
      action: pool.actionAt(actionsOf[slot], at),
      memory: nextMemory === undefined ? null : Array.from(nextMemory.subarray(at * width, (at + 1) * width)),
    }
  })
})

/** Runs the policies of the slots that have questions, with new noise. */
const runPolicies = Effect.fnUntraced(function* (pool: Pool, used: Int32Array): Effect.fn.Return<void, EnvError> {
  const draw = pool.counts[1]++
  for (const [slot, { program }] of pool.policies.entries()) {
    if (used[slot] === 0) continue
    const { noise } = program.feeds
    if (noise instanceof Float32Array) stream(pool.seed, "past selves", "actions", draw, slot).fillUniform(noise)
    yield* asEnvError(pool, program.run)
  }
})

const save = ({ counts, played, snapshots }: Pool): Snapshot => ({
  "pool.counts": counts.slice(),
  "pool.played": played.slice(),
  ...Object.fromEntries(snapshots.map((weights, at) => [`pool.${at}`, weights.slice()])),
})

const load = (pool: Pool, saved: Snapshot): Effect.Effect<void, EnvError> =>
  Effect.suspend(() => {
    const { id, counts, played, snapshots } = pool
    const [savedCounts, savedPlayed] = [saved["pool.counts"], saved["pool.played"]]
    if (savedCounts?.length !== 2 || savedPlayed?.length !== played.length) {
      return Effect.fail(invalid(id, "the snapshot doesn't fit: it has no past selves, or another number of slots"))
    }
    counts.set(savedCounts)
    played.set(savedPlayed)
    snapshots.length = 0
    for (let at = 0; saved[`pool.${at}`] !== undefined; at++) snapshots.push(Float32Array.from(saved[`pool.${at}`]))
    return asEnvError(pool, deal(pool))
  })

/** Returns the number of elements that a row of `data` has; 0 if there is no `data`. */
const widthOf = (data: ArrayLike<number> | undefined, observations: ArrayLike<number>, rowSize: number): number =>
  data === undefined ? 0 : data.length / (observations.length / rowSize)
