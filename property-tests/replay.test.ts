import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { Frames } from "../src/rl/learner/replay/storage.ts"
import { makePriorities } from "../src/rl/learner/replay/Priorities.ts"
import { makeReplay } from "../src/rl/learner/replay/Replay.ts"
import type { BufferLayout, SequenceOptions } from "../src/rl/learner/replay/BufferLayout.ts"
import * as Batch from "../src/rl/env/Batch.ts"
import type { BatchEnv } from "../src/rl/env/BatchEnv.ts"
import * as Env from "../src/rl/env/Env.ts"
import { box, discrete } from "../src/rl/env/Space.ts"
import { stream } from "../src/base/rng/Rng.ts"
import { tries } from "../test/house/tries.ts"

/** An env in which all observations and rewards differ, and episodes terminate or are truncated. */
const clock = Env.make({
  id: "clock",
  observationSpace: box(0, 1e7, [3]),
  actionSpace: discrete(5),
  maxSteps: 7,
  reset: (random) => ({ now: 1 + random.integer(1000) * 64, ends: random.integer(12), name: random.integer(2 ** 23) }),
  observe: ({ now, ends, name }) => [now, ends, name],
  step: ({ now, ends, name }, action) => ({
    state: { now: now + 1, ends: ends - 1, name },
    reward: now + action / 8,
    terminated: ends === 0,
  }),
})

interface Step {
  readonly observation: ReadonlyArray<number>
  readonly action: number
  readonly reward: number
  readonly next: ReadonlyArray<number>
  readonly terminated: boolean
  readonly truncated: boolean
}

const rowOf = (all: Float32Array, index: number): ReadonlyArray<number> =>
  Array.from(all.subarray(3 * index, 3 * index + 3))

/** Plays steps into the replay buffer, and into one plain list for each env. Memories are the number of steps before. */
const play = (envs: BatchEnv, replay: ReturnType<typeof makeReplay>, steps: number, seed: number) => {
  const history = Array.from({ length: envs.numEnvs }, (): Array<Step> => [])
  const random = stream(seed)
  replay.begin(envs)
  for (let step = 0; step < steps; step++) {
    const actions = Int32Array.from({ length: envs.numEnvs }, () => random.integer(5))
    const before = Array.from(history.keys(), (index) => rowOf(envs.observations, index))
    envs.step(actions)
    replay.memories.fill(step + 1)
    replay.add(actions, envs)
    for (const [index, list] of history.entries()) {
      const ended = (envs.terminated[index] | envs.truncated[index]) !== 0
      list.push({
        observation: before[index],
        action: actions[index],
        reward: envs.rewards[index],
        next: rowOf(ended ? envs.finalObservations : envs.observations, index),
        terminated: envs.terminated[index] === 1,
        truncated: envs.truncated[index] === 1,
      })
    }
  }
  return history
}

const makeBatch = (rows: number) => ({
  observations: new Float32Array(3 * rows),
  actions: new Int32Array(rows),
  rewards: new Float32Array(rows),
  nextObservations: new Float32Array(3 * rows),
  discounts: new Float32Array(rows),
})

/** Copies the sequences at drawn places to a new batch. */
const drawSequences = (
  replay: ReturnType<typeof makeReplay>,
  places: Int32Array,
  nsteps: number,
  { length, burnIn, memorySize }: SequenceOptions,
) => {
  const rows = places.length
  const count = burnIn + length + nsteps
  const batch = {
    observations: new Float32Array(3 * rows * count),
    fresh: new Float32Array(rows * count),
    memory: new Float32Array(rows * memorySize),
    actions: new Int32Array(rows * length),
    rewards: new Float32Array(rows * length),
    discounts: new Float32Array(rows * length),
    next: new Int32Array(rows * length),
    valid: new Float32Array(rows * length),
  }
  replay.gatherSequences(places, batch)
  return batch
}

const lengths = fc.record({
  length: fc.integer({ min: 1, max: 6 }),
  burnIn: fc.integer({ min: 0, max: 4 }),
  memorySize: fc.constant(2),
})

const gamma = 0.5
const shapes = fc.record({
  numEnvs: fc.integer({ min: 1, max: 4 }),
  capacity: fc.integer({ min: 4, max: 60 }),
  steps: fc.integer({ min: 1, max: 60 }),
  nsteps: fc.integer({ min: 1, max: 4 }),
  images: fc.boolean(),
  seed: fc.nat({ max: 2 ** 31 }),
})

describe("a replay buffer", () => {
  it("gives exactly the newest transitions, of one or several steps, with their endings", () => {
    fc.assert(
      fc.property(shapes, ({ numEnvs, capacity, steps, nsteps, images, seed }) => {
        const options: BufferLayout = { numEnvs, observationSize: 3, actionSize: 1, capacity, gamma, nsteps, images }
        const envs = Batch.make(clock, numEnvs)
        envs.reset(seed)
        const replay = makeReplay(options)
        const history = play(envs, replay, steps, seed)

        const kept = Math.min(Math.ceil(capacity / numEnvs), Math.max(0, steps - nsteps + 1))
        assert.strictEqual(replay.size(), kept * numEnvs)
        if (kept === 0) return

        // The transition from each kept step, computed from the lists alone.
        const expected = new Map<string, unknown>()
        for (const list of history) {
          for (let from = steps - nsteps + 1 - kept; from <= steps - nsteps; from++) {
            let reward = 0
            let at = from
            for (let step = 0; step < nsteps; step++) {
              at = from + step
              reward += gamma ** step * list[at].reward
              if (list[at].terminated || list[at].truncated) break
            }
            const { observation, action } = list[from]
            const last = list[at]
            expected.set(observation.join(), {
              action,
              reward: Math.fround(reward),
              discount: last.terminated ? 0 : gamma ** (at - from + 1),
              next: last.terminated ? [] : last.next,
            })
          }
        }
        const rows = 400
        const batch = makeBatch(rows)
        const places = new Int32Array(rows)
        replay.draw(stream(seed, "draw"), places)
        replay.gather(places, batch)
        const drawn = new Set<string>()
        for (let row = 0; row < rows; row++) {
          const key = rowOf(batch.observations, row).join()
          drawn.add(key)
          const discount = batch.discounts[row]
          assert.deepEqual(
            {
              action: batch.actions[row],
              reward: batch.rewards[row],
              discount,
              // After the end of an episode the next observation is not defined.
              next: discount === 0 ? [] : rowOf(batch.nextObservations, row),
            },
            expected.get(key),
          )
        }
        if (expected.size <= 30) assert.strictEqual(drawn.size, expected.size)
      }),
      { numRuns: tries(200) },
    )
  })

  it("continues from its saved state as if it had never stopped", () => {
    fc.assert(
      fc.property(shapes, fc.option(lengths, { nil: undefined }), ({ seed, steps, ...rest }, sequences) => {
        const shape = { ...rest, sequences }
        const options: BufferLayout = { ...shape, observationSize: 3, actionSize: 1, gamma }
        const envs = Batch.make(clock, shape.numEnvs)
        envs.reset(seed)
        const first = makeReplay(options)
        play(envs, first, steps, seed)
        const second = makeReplay(options)
        // Through copies: a checkpoint's arrays are not the replay's own.
        second.restore(structuredClone(first.state()))
        assert.deepEqual(second.memories, first.memories)
        for (let more = 0; more < 10; more++) {
          const actions = new Int32Array(shape.numEnvs).fill(more % 5)
          envs.step(actions)
          for (const replay of [first, second]) replay.add(actions, envs)
        }
        if (first.size() === 0) return
        const [a, b] = [first, second].map((replay) => {
          const places = new Int32Array(50)
          replay.draw(stream(seed), places)
          if (shape.sequences !== undefined) return drawSequences(replay, places, shape.nsteps, shape.sequences)
          const batch = makeBatch(50)
          replay.gather(places, batch)
          return batch
        })
        assert.deepEqual(a, b)
      }),
      { numRuns: tries(60) },
    )
  })

  it("gives exactly the newest sequences, across the ends of episodes, with the memory before them", () => {
    fc.assert(
      fc.property(shapes, lengths, ({ numEnvs, capacity, steps, nsteps, images, seed }, sequences) => {
        const { length, burnIn } = sequences
        const shape = { observationSize: 3, actionSize: 1, capacity, gamma, nsteps, images }
        const envs = Batch.make(clock, numEnvs)
        envs.reset(seed)
        const replay = makeReplay({ numEnvs, ...shape, sequences })
        const history = play(envs, replay, steps, seed)
        const count = burnIn + length + nsteps
        const stride = Math.max(1, Math.floor(length / 2))
        const held = Math.ceil((Math.ceil(capacity / numEnvs) + count - 1) / stride) * stride

        /** The observations from a step on, and the steps whose actions were taken there; −1 for final observations. */
        const from = (list: ReadonlyArray<Step>, start: number, env: number) => {
          const seen: Array<{ observation: ReadonlyArray<number>; fresh: number; step: number }> = []
          const ended = (at: number) => list[at].terminated || list[at].truncated
          for (let at = start; seen.length < count; at++) {
            const observation = at < steps ? list[at].observation : rowOf(envs.observations, env)
            seen.push({ observation, fresh: at > start && ended(at - 1) ? 1 : 0, step: at })
            // A termination at the time limit counts as a termination.
            if (seen.length < count && list[at].truncated && !list[at].terminated)
              seen.push({ observation: list[at].next, fresh: 0, step: -1 })
          }
          return seen
        }
        const expected = new Map<string, () => void>()
        const drawn = new Set<string>()
        const rows = 400
        const places = new Int32Array(rows)
        const starts = Array.from({ length: steps }, (_, start) => start).filter(
          (start) => start % stride === 0 && start >= steps - (held - 1) && start + count - 1 <= steps,
        )
        assert.strictEqual(replay.size(), starts.length * numEnvs)
        if (starts.length === 0) return
        replay.draw(stream(seed, "draw"), places)
        const batch = drawSequences(replay, places, nsteps, sequences)
        let row = 0
        for (const [env, list] of history.entries()) {
          for (const start of starts) {
            const seen = from(list, start, env)
            expected.set([start, ...seen[0].observation].join(), () => {
              assert.deepEqual(Array.from(batch.memory.subarray(2 * row, 2 * row + 2)), [start, start])
              for (const [at, { observation, fresh }] of seen.entries()) {
                assert.deepEqual(rowOf(batch.observations, row * count + at), observation)
                assert.strictEqual(batch.fresh[row * count + at], fresh)
              }
              for (let learned = 0; learned < length; learned++) {
                const first = seen[burnIn + learned].step
                const at = row * length + learned
                assert.strictEqual(batch.valid[at], first < 0 ? 0 : 1)
                if (first < 0) continue
                let last = first
                let reward = list[first].reward
                while (last - first + 1 < nsteps && !list[last].terminated && !list[last].truncated) {
                  last++
                  reward += gamma ** (last - first) * list[last].reward
                }
                assert.strictEqual(batch.actions[at], list[first].action)
                assert.strictEqual(batch.rewards[at], Math.fround(reward))
                const discount = list[last].terminated ? 0 : gamma ** (last - first + 1)
                assert.strictEqual(batch.discounts[at], discount)
                // After the end of an episode the next observation is not defined.
                const next = row * count + burnIn + batch.next[at]
                if (discount > 0) assert.deepEqual(rowOf(batch.observations, next), list[last].next)
              }
            })
          }
        }
        for (; row < rows; row++) {
          const key = [batch.memory[2 * row], ...rowOf(batch.observations, row * count)].join()
          drawn.add(key)
          const check = expected.get(key)
          if (check === undefined) assert.fail(`no sequence begins with ${key}`)
          check()
        }
        if (expected.size <= 30) assert.strictEqual(drawn.size, expected.size)
      }),
      { numRuns: tries(60) },
    )
  })
})

describe("frames", () => {
  it("are stored bit for bit, whether or not they are bytes", () => {
    const numbers = fc.oneof(fc.integer({ min: 0, max: 255 }), fc.float({ noNaN: true, noDefaultInfinity: true }))
    const rows = fc.array(fc.tuple(numbers, numbers, numbers), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(rows, (given) => {
        const frames = new Frames(given.length, 3)
        for (const [index, row] of given.entries()) frames.write(index, Float32Array.from(row), 0)
        const again = new Frames(given.length, 3)
        const filled = { numEnvs: 1, capacity: given.length, used: given.length }
        again.restore(frames.state("frames", filled), "frames", filled)
        const read = new Float32Array(3)
        for (const [index, row] of given.entries()) {
          for (const each of [frames, again]) {
            each.read(index, read, 0)
            // −0 is not a whole number from 0 to 255 to anyone but ===.
            assert.deepEqual(
              Array.from(read, (value) => value + 0),
              Array.from(Float32Array.from(row), (value) => value + 0),
            )
          }
        }
      }),
    )
  })
})

describe("priorities", () => {
  it("always add up to the total, and a place with priority 0 is never drawn", () => {
    const changes = fc.array(fc.tuple(fc.nat({ max: 36 }), fc.float({ min: 0, max: 1000, noNaN: true })), {
      minLength: 1,
      maxLength: 200,
    })
    fc.assert(
      fc.property(changes, fc.nat({ max: 2 ** 31 }), (given, seed) => {
        const priorities = makePriorities(37)
        const plain = new Float64Array(37)
        for (const [place, priority] of given) {
          priorities.set(place, priority)
          plain[place] = priority
        }
        const total = plain.reduce((a, b) => a + b)
        assert.closeTo(priorities.total(), total, 1e-9 * Math.max(1, total))
        if (total === 0) return
        const places = new Int32Array(64)
        priorities.draw(stream(seed), places)
        for (const place of places) assert.isAbove(plain[place], 0)
      }),
    )
  })

  it("are drawn in proportion to their size", () => {
    const priorities = makePriorities(5)
    const wanted = [1, 0, 3, 0.5, 5.5]
    wanted.forEach((priority, place) => priorities.set(place, priority))
    const counts = new Float64Array(5)
    const places = new Int32Array(100)
    const random = stream(7)
    for (let draw = 0; draw < 200; draw++) {
      priorities.draw(random, places)
      for (const place of places) counts[place]++
    }
    for (let place = 0; place < 5; place++) assert.closeTo(counts[place] / 2000, wanted[place], 0.1)
  })
})
