import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import type { MicroBatch } from "../src/trainer/batches/MicroBatch.ts"
import { type Level, makePacker, type Pack, type Packer } from "../src/trainer/batches/Packer.ts"
import { promptLengthOf } from "../src/trainer/batches/sharedPrompts.ts"
import { problemOf, type TrainingSample } from "../src/trainer/batches/TrainingSample.ts"
import { placeInWindows } from "../src/trainer/batches/windows.ts"
import { stream } from "../src/base/rng/Rng.ts"
import { tries } from "../test/house/tries.ts"

const vocabSize = 1000
const tokenMean = { type: "token_mean" } as const

/** Makes a sample whose numbers all depend on its id, so that a misplaced token is seen. */
const sampleOf = (run: string, step: number, at: number, length: number): TrainingSample => {
  const random = stream(7, run, step, at)
  return {
    id: `${run}/${step}/${at}`,
    tokens: Int32Array.from({ length }, () => 1 + random.integer(vocabSize - 1)),
    mask: Uint8Array.from({ length }, (_, token) => (token === 0 ? 0 : random.integer(2))),
    logprobs: Float32Array.from({ length }, () => -random.uniform()),
    advantages: Float32Array.from({ length }, () => random.uniform() - 0.5),
    temperature: 0.5 + random.integer(8) / 8,
  }
}

const shapes = fc
  .record({
    rows: fc.integer({ min: 1, max: 3 }),
    blocks: fc.integer({ min: 1, max: 4 }),
    block: fc.constantFrom(1, 2, 4, 8),
    ranks: fc.integer({ min: 1, max: 3 }),
    maxRuns: fc.integer({ min: 1, max: 4 }),
    mixing: fc.constantFrom("one-run" as const, "many-runs" as const),
  })
  .map(({ blocks, ...shape }) => ({ ...shape, width: blocks * shape.block }))
type Shape = typeof shapes extends fc.Arbitrary<infer A> ? A : never

/** The samples of a run's step: between 1 and 12, of all lengths. Some begin with tokens of others. */
const stepOf = (run: string, step: number, width: number): ReadonlyArray<TrainingSample> => {
  const random = stream(11, run, step)
  const samples: Array<TrainingSample> = []
  for (let at = 0, count = 1 + random.integer(12); at < count; at++) {
    const sample = sampleOf(run, step, at, 1 + random.integer(width))
    const other = samples[random.integer(2 * at + 1)]
    if (other !== undefined) {
      const shared = random.integer(1 + Math.min(sample.tokens.length, other.tokens.length))
      sample.tokens.set(other.tokens.subarray(0, shared))
      sample.mask.fill(0, 0, random.integer(1 + shared))
    }
    samples.push(sample)
  }
  return samples
}

const packerOf = (shape: Shape): Packer => makePacker(shape)

/** Offers a run's steps up to `steps`, as far as they are not in its queue yet. */
const offerUpTo = (packer: Packer, index: number, id: string, steps: number, { width }: Shape): void => {
  for (let step = packer.wanted(index) ?? steps; step < steps; step++) {
    packer.offer(index, { step, samples: stepOf(id, step, width) })
  }
}

/** Checks the arrays of a pack against its samples: each is somewhere whole, and everything else is padding. */
const checkArrays = (pack: Pack, shape: Shape): void => {
  const { rows, width, block, ranks, maxRuns, mixing } = shape
  assert.lengthOf(pack.microBatches, ranks)
  const expected = new Map(
    pack.shares.flatMap(({ index, id, step, samples }) => {
      const all = stepOf(id, step, width)
      return samples.map((name) => {
        const sample = all.find((one) => one.id === name)
        if (sample === undefined) assert.fail(`${name} is no sample of the step`)
        return [`${name}`, { index, sample, batch: all }] as const
      })
    }),
  )
  assert.strictEqual(expected.size, pack.shares.flatMap(({ samples }) => samples).length, "a sample is there twice")
  for (const microBatch of pack.microBatches) {
    const { tokens, positions, contexts, ends, sequences, weights, mask, loraNumTokens } = microBatch
    assert.strictEqual(tokens.length, rows * width)
    assert.strictEqual(
      loraNumTokens.reduce((sum, count) => sum + count, 0),
      rows * width,
    )
    for (const count of loraNumTokens) assert.strictEqual(count % block, 0)
    if (mixing === "one-run") assert.strictEqual(loraNumTokens.filter((count) => count > 0).length, 1)
    assert.lengthOf(loraNumTokens, maxRuns)
    // Padding, also in a micro-batch without samples, is routed to no run that has none in this pack.
    const owners = [...loraNumTokens.keys()].filter((adapter) => loraNumTokens[adapter] > 0)
    assert.includeMembers(
      pack.shares.map(({ index }) => index),
      owners,
    )
    const adapters = [...loraNumTokens].flatMap((count, adapter) => Array.from({ length: count }, () => adapter))
    let before = -1
    /** The first tokens that samples may share and that stand in a window of a run, and how many tokens stand there. */
    const windows = new Map<string, { readonly prompts: Set<string>; own: number; tokens: number }>()
    for (let at = 0; at < rows * width;) {
      if (sequences[at] === -1) {
        assert.deepEqual([contexts[at], ends[at], weights[at], mask[at], tokens[at]], [-1, 0, 0, 0, 0])
        if (at > 0) assert.strictEqual(adapters[at], adapters[at - 1], "padding is of the adapter before it")
        at++
        continue
      }
      assert.strictEqual(sequences[at], ++before, "sequences are numbered in their order")
      const first = at
      while (at < rows * width && sequences[at] === before) at++
      /** The indices of the sample's tokens, also of those that stand before it. */
      const path: Array<number> = []
      for (let token = at - 1; token >= 0; token = contexts[token]) path.unshift(token)
      const shared = path.indexOf(first)
      assert.isAtLeast(shared, 0)
      const name = sampleOn(microBatch, path, shared, expected)
      const { sample, index, batch } = expected.get(name) ?? assert.fail(name)
      expected.delete(name)
      assert.strictEqual(path.length - shared, at - first, "the tokens of a sample's own stand next to each other")
      const row = Math.floor(first / width)
      assert.isTrue(
        path.every((token) => Math.floor(token / width) === row),
        "a sample crosses a window",
      )
      const trained = batch.reduce((sum, one) => sum + one.mask.reduce((ones, bit) => ones + bit, 0), 0)
      path.forEach((token, position) => {
        assert.strictEqual(positions[token], position)
        assert.strictEqual(adapters[token], index, "a token is routed to another run's adapter")
        // A token attends to the tokens of its sample up to itself, and to no others.
        const seen = Array.from({ length: token + 1 - row * width }, (_, place) => row * width + place)
        const attended = seen.filter((other) => token - row * width < ends[other])
        assert.deepEqual(attended, path.slice(0, position + 1))
        if (position < shared) {
          assert.deepEqual([mask[token], weights[token], sample.mask[position]], [0, 0, 0], "a loss counts twice")
          return
        }
        assert.strictEqual(microBatch.logprobs[token], sample.logprobs[position])
        assert.strictEqual(microBatch.advantages[token], sample.advantages[position])
        assert.strictEqual(microBatch.temperatures[token], sample.temperature)
        assert.strictEqual(mask[token], sample.mask[position])
        assert.strictEqual(weights[token], Math.fround(sample.mask[position] === 0 ? 0 : 1 / trained))
      })
      const key = `${row}/${index}`
      const window = windows.get(key) ?? { prompts: new Set(), own: 0, tokens: 0 }
      windows.set(key, window)
      const prompt = promptLengthOf(sample)
      for (let length = 1; length <= prompt; length++) window.prompts.add(sample.tokens.slice(0, length).join())
      window.own += sample.tokens.length - prompt
      window.tokens += at - first
    }
    for (const { prompts, own, tokens } of windows.values())
      assert.strictEqual(tokens, prompts.size + own, "a window holds the tokens of a prompt twice")
    assert.strictEqual(microBatch.sequenceCount, before + 1)
  }
  assert.deepEqual([...expected.keys()], [], "samples that are in no micro-batch")
}

/** Finds the sample whose tokens have these indices. The first `shared` tokens have the other numbers of another sample. */
const sampleOn = (
  { tokens, logprobs }: MicroBatch,
  path: ReadonlyArray<number>,
  shared: number,
  samples: ReadonlyMap<string, { readonly sample: TrainingSample }>,
): string => {
  for (const [name, { sample }] of samples) {
    if (
      sample.tokens.length === path.length &&
      path.every((token, at) => tokens[token] === sample.tokens[at]) &&
      path.every((token, at) => at < shared || logprobs[token] === sample.logprobs[at])
    ) {
      return name
    }
  }
  return assert.fail(`no sample of the pack stands at the tokens ${path.join()}`)
}

/** One thing that happens to a packer. */
const events = fc.array(
  fc.oneof(
    fc.record({
      _tag: fc.constant("arrive" as const),
      index: fc.nat({ max: 3 }),
      steps: fc.integer({ min: 1, max: 2 }),
    }),
    fc.record({ _tag: fc.constant("pack" as const) }),
    fc.record({ _tag: fc.constant("replace" as const), index: fc.nat({ max: 3 }) }),
  ),
  { maxLength: 25 },
)

describe("packing", () => {
  it("uses each sample exactly once, in whole steps and in order, through deletions and new runs", () => {
    fc.assert(
      fc.property(shapes, events, (shape, events) => {
        const packer = packerOf(shape)
        /** The model: the id of each run, the steps that arrived, its next step, and its samples that are trained. */
        const runs = Array.from({ length: shape.maxRuns }, (_, index) => ({
          id: `run_${index}`,
          arrived: 0,
          step: 0,
          trained: new Set<string>(),
        }))
        for (const [index, { id }] of runs.entries())
          packer.open(index, { id, step: 0, rulesAt: () => ({ normalisation: tokenMean }) })
        let names = shape.maxRuns
        const pack = () => {
          const upcoming = packer.upcoming()
          const pack = packer.pack()
          assert.deepEqual(upcoming?.microBatches, pack?.microBatches)
          assert.deepEqual(
            upcoming?.shares,
            pack?.shares.map(({ index, step }) => ({ index, step })),
          )
          const waiting = runs.filter(({ arrived, step }) => arrived > step)
          assert.strictEqual(pack === undefined, waiting.length === 0)
          if (pack === undefined) return
          checkArrays(pack, shape)
          for (const { index, id, step, samples, tokens, done } of pack.shares) {
            const run = runs[index]
            assert.deepEqual([id, step], [run.id, run.step])
            const all = stepOf(id, step, shape.width)
            for (const name of samples) {
              assert.isFalse(run.trained.has(name), `${name} is trained twice`)
              run.trained.add(name)
            }
            const lengths = all.filter((one) => samples.includes(one.id)).map((one) => one.tokens.length)
            assert.strictEqual(
              tokens,
              lengths.reduce((sum, length) => sum + length, 0),
            )
            assert.strictEqual(done, run.trained.size === all.length)
            if (!done) continue
            run.step++
            run.trained.clear()
          }
        }
        for (const event of events) {
          if (event._tag === "pack") pack()
          else {
            const index = event.index % shape.maxRuns
            const run = runs[index]
            if (event._tag === "arrive") {
              run.arrived = Math.max(run.arrived, run.step + event.steps)
              offerUpTo(packer, index, run.id, run.arrived, shape)
            } else {
              packer.close(index)
              runs[index] = { id: `run_${names++}`, arrived: 0, step: 0, trained: new Set() }
              packer.open(index, { id: runs[index].id, step: 0, rulesAt: () => ({ normalisation: tokenMean }) })
            }
          }
        }
        // Without new samples, everything that arrived gets packed.
        while (runs.some(({ arrived, step }) => arrived > step)) pack()
        assert.isUndefined(packer.pack())
      }),
      { numRuns: tries(150) },
    )
  })

  it("serves a run at most once between two services of another that has samples all the time", () => {
    fc.assert(
      fc.property(shapes, fc.integer({ min: 1, max: 30 }), (shape, packs) => {
        const packer = packerOf(shape)
        const ids = Array.from({ length: shape.maxRuns }, (_, index) => `run_${index}`)
        for (const [index, id] of ids.entries())
          packer.open(index, { id, step: 0, rulesAt: () => ({ normalisation: tokenMean }) })
        /** The number of units of each run so far. */
        const served = ids.map(() => 0)
        for (let pack = 0; pack < packs; pack++) {
          for (const [index, id] of ids.entries()) offerUpTo(packer, index, id, (packer.wanted(index) ?? 0) + 1, shape)
          const { shares, microBatches } = packer.pack() ?? assert.fail("there are samples")
          assert.isNotEmpty(shares)
          const filled = microBatches.filter(({ sequenceCount }) => sequenceCount > 0)
          const counts = shares.map(({ index, samples }) =>
            shape.mixing === "many-runs"
              ? samples.length
              : filled.filter(({ loraNumTokens }) => loraNumTokens[index] > 0).length,
          )
          for (const [at, { index }] of shares.entries()) served[index] += counts[at]
          // A run that ends its step leaves the rest of the pack to the others, so only packs without an end are fair.
          if (shares.every(({ done }) => !done)) assert.isAtMost(Math.max(...counts) - Math.min(...counts), 1)
          // No run waits for longer than each other run needs to be served once.
          const idle = ids.flatMap((_, index) => (served[index] === 0 ? [index] : []))
          if (pack + 1 >= shape.maxRuns) assert.deepEqual(idle, [], "a run is starved")
        }
      }),
      { numRuns: tries(100) },
    )
  })

  it("gives a run the same micro-batches alone as together with others, if they hold one run each", () => {
    fc.assert(
      fc.property(shapes, fc.integer({ min: 1, max: 3 }), (shape, steps) => {
        const oneRun = { ...shape, mixing: "one-run" as const }
        const microBatchesOf = (indices: ReadonlyArray<number>, ranks: number) => {
          const packer = makePacker({ ...oneRun, ranks })
          for (const index of indices) {
            packer.open(index, {
              id: `run_${index}`,
              step: 0,
              rulesAt: () => ({ normalisation: { type: "sequence_mean" } }),
            })
            offerUpTo(packer, index, `run_${index}`, steps, oneRun)
          }
          const all: Array<unknown> = []
          for (let pack = packer.pack(); pack !== undefined; pack = packer.pack()) {
            for (const microBatch of pack.microBatches) {
              if (microBatch.loraNumTokens[0] > 0 && microBatch.sequenceCount > 0) all.push(structuredClone(microBatch))
            }
          }
          return all
        }
        const together = Array.from({ length: shape.maxRuns }, (_, index) => index)
        assert.deepEqual(microBatchesOf(together, shape.ranks), microBatchesOf([0], 1))
      }),
      { numRuns: tries(60) },
    )
  })

  it("needs no more windows than samples, no fewer than the tokens, and by first-fit decreasing few more", () => {
    // With few different tokens, many prompts begin with the same ones.
    const item = fc
      .record({
        run: fc.nat({ max: 3 }),
        tokens: fc.array(fc.nat({ max: 1 }), { minLength: 1, maxLength: 16 }),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
      })
      .map(({ run, tokens, share }) => ({
        run,
        tokens: Int32Array.from(tokens),
        prompt: Math.min(tokens.length - 1, Math.round(share * tokens.length)),
      }))
    fc.assert(
      fc.property(fc.array(item), fc.constantFrom(1, 2, 4, 8, 16), (items, block) => {
        const { windows, placements } = placeInWindows(items, { width: 16, block })
        assert.strictEqual(placements.length, items.length)
        assert.strictEqual(new Set(placements.map(({ item }) => item)).size, items.length)
        assert.isAtMost(windows, items.length)
        const total = (tokensOf: (placement: (typeof placements)[number]) => number): number =>
          placements.reduce((sum, placement) => sum + tokensOf(placement), 0)
        const placed = total(({ item, shared }) => items[item].tokens.length - shared)
        assert.isAtLeast(windows * 16, placed)
        // Two windows of one run cannot both be half empty, so each run wastes at most a window and a shared one.
        const runs = new Set(items.map(({ run }) => run)).size
        assert.isAtMost(windows, 2 * (placed / 16) + 2 * runs)
        // Read window after window, the runs are sorted, and samples do not overlap.
        for (let at = 0; at < placements.length; at++) {
          const now = placements[at]
          const before = placements[at - 1]
          const { run, tokens, prompt } = items[now.item]
          assert.isAtMost(now.start + tokens.length - now.shared, 16)
          if (before === undefined || now.window !== before.window) {
            assert.deepEqual([now.window, now.start, now.shared], [before === undefined ? 0 : before.window + 1, 0, 0])
            continue
          }
          const earlier = items[before.item]
          assert.isAtMost(earlier.run, run)
          const end = before.start + earlier.tokens.length - before.shared
          assert.strictEqual(now.start, earlier.run === run ? end : Math.ceil(end / block) * block)
          assert.isAtMost(now.shared, earlier.run === run ? Math.min(earlier.prompt, prompt) : 0)
          assert.deepEqual(tokens.slice(0, now.shared), earlier.tokens.slice(0, now.shared))
        }
      }),
      { numRuns: tries(300) },
    )
  })

  it("says that it is time if the micro-batches can be filled or all runs have samples", () => {
    fc.assert(
      fc.property(shapes, fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }), (shape, has) => {
        const packer = packerOf(shape)
        const open = has.slice(0, shape.maxRuns)
        for (const [index, full] of open.entries()) {
          packer.open(index, { id: `run_${index}`, step: 0, rulesAt: () => ({ normalisation: tokenMean }) })
          if (full) offerUpTo(packer, index, `run_${index}`, 1, shape)
        }
        const { rows, width, ranks } = shape
        const steps = open.flatMap((full, index) => (full ? [stepOf(`run_${index}`, 0, width)] : []))
        const units =
          shape.mixing === "one-run"
            ? steps.reduce((sum, step) => sum + unitsOf(step, shape) * rows * width, 0)
            : steps.reduce((sum, step) => sum + tokensWithSharedPrompts(step), 0)
        const isFull = units >= rows * width * ranks || open.every((full) => full)
        const expected: Level = units === 0 ? "empty" : isFull ? "full" : "partial"
        assert.strictEqual(packer.level(), expected)
      }),
      { numRuns: tries(60) },
    )
  })
})

/** Counts the tokens of samples if all that they can share stand once. */
const tokensWithSharedPrompts = (samples: ReadonlyArray<TrainingSample>): number => {
  const prompts = new Set<string>()
  let own = 0
  for (const sample of samples) {
    const prompt = promptLengthOf(sample)
    own += sample.tokens.length - prompt
    for (let length = 1; length <= prompt; length++) prompts.add(sample.tokens.slice(0, length).join())
  }
  return own + prompts.size
}

/** Counts the units of a step: micro-batches of its own, or samples. */
const unitsOf = (samples: ReadonlyArray<TrainingSample>, { mixing, rows, width, block }: Shape): number => {
  if (mixing === "many-runs") return samples.length
  const items = samples.map((sample) => ({ run: 0, tokens: sample.tokens, prompt: promptLengthOf(sample) }))
  return Math.ceil(placeInWindows(items, { width, block }).windows / rows)
}

describe("a training sample", () => {
  const mutations: ReadonlyArray<readonly [string, (sample: TrainingSample) => TrainingSample]> = [
    ["tokens", (sample) => ({ ...sample, tokens: new Int32Array(0) })],
    ["tokens", (sample) => ({ ...sample, tokens: new Int32Array(17) })],
    ["mask", (sample) => ({ ...sample, mask: sample.mask.slice(1) })],
    ["logprobs", (sample) => ({ ...sample, logprobs: sample.logprobs.slice(1) })],
    ["advantages", (sample) => ({ ...sample, advantages: new Float32Array(17) })],
    ["tokens[", (sample) => ({ ...sample, tokens: sample.tokens.map(() => vocabSize) })],
    ["tokens[", (sample) => ({ ...sample, tokens: sample.tokens.with(0, -1) })],
    ["mask[", (sample) => ({ ...sample, mask: sample.mask.map(() => 2) })],
    ["mask[0]", (sample) => ({ ...sample, mask: sample.mask.with(0, 1) })],
    ["logprobs[", (sample) => ({ ...sample, logprobs: sample.logprobs.map(() => -Infinity) })],
    ["advantages[", (sample) => ({ ...sample, advantages: sample.advantages.with(0, NaN) })],
    ["temperature", (sample) => ({ ...sample, temperature: 0 })],
    ["temperature", (sample) => ({ ...sample, temperature: NaN })],
  ]

  it("is valid unless it breaks a rule, whose place is then named", () => {
    const limits = { vocabSize, width: 16 }
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 16 }), fc.nat({ max: mutations.length - 1 }), (length, at) => {
        const sample = sampleOf("run_a", 0, at, length)
        assert.isUndefined(problemOf(sample, limits))
        const [key, mutate] = mutations[at]
        assert.isTrue(problemOf(mutate(sample), limits)?.key.startsWith(key), key)
      }),
      { numRuns: tries(100) },
    )
  })
})
