import { Effect } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Checkpoint from "../src/run/Checkpoint.ts"
import { RunStore } from "../src/run/store/RunStore.ts"
import { tries } from "../test/house/tries.ts"

const score = fc.option(fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constant(NaN)))
const strategy: fc.Arbitrary<Checkpoint.RetentionStrategy> = fc.oneof(
  fc.nat(5).map((keep) => ({ _tag: "LastN" as const, keep })),
  fc.nat(5).map((keep) => ({ _tag: "TopKValidation" as const, keep })),
)
const checkpoints = fc.uniqueArray(fc.record({ step: fc.nat(2_000_000), score }), {
  selector: ({ step }) => step,
  maxLength: 8,
})

const inMemory = <A, E>(use: (run: Effect.Success<ReturnType<RunStore["Service"]["open"]>>) => Effect.Effect<A, E>) =>
  Effect.runPromise(
    Effect.flatMap(RunStore, (store) => store.open({ name: "law", population: {}, seed: 1 })).pipe(
      Effect.flatMap(use),
      Effect.scoped,
      Effect.provide(RunStore.layerMemory),
    ),
  )

const save = (strategyNow: Checkpoint.RetentionStrategy, step: number, scoreNow: number | null, content = "x") => ({
  name: `ep_${String(step).padStart(6, "0")}`,
  step,
  score: scoreNow,
  strategy: strategyNow,
  files: { "weights.safetensors": new TextEncoder().encode(content), "runtime.json": Uint8Array.of(1, 2, 3) },
})

describe("a strategy", () => {
  it("lets go of all but as many as it keeps, and of none that is better than one it keeps", () => {
    fc.assert(
      fc.property(checkpoints, strategy, (all, keeping) => {
        const given = all.map((manifest) => ({ manifest }))
        const gone = Checkpoint.retire(given, keeping)
        const kept = given.filter((one) => !gone.includes(one))
        const keepsAll = keeping._tag === "LastN" && keeping.keep === 0
        assert.strictEqual(kept.length, keepsAll ? all.length : Math.min(keeping.keep, all.length))
        const worth = (one: number | null): number => (one === null || Number.isNaN(one) ? -Infinity : one)
        const better = (a: (typeof all)[number], b: (typeof all)[number]): boolean =>
          keeping._tag === "LastN" || worth(a.score) === worth(b.score)
            ? a.step > b.step
            : worth(a.score) > worth(b.score)
        for (const { manifest: lost } of gone) for (const one of kept) assert.isTrue(better(one.manifest, lost))
      }),
    )
  })

  it("keeps after every save exactly what it says, the latest and the best among them", () =>
    fc.assert(
      fc.asyncProperty(fc.array(score, { minLength: 1, maxLength: 9 }), strategy, (scores, keeping) =>
        inMemory((run) =>
          Effect.gen(function* () {
            const past: Array<{ readonly name: string; readonly worth: number }> = []
            for (const [index, scoreNow] of scores.entries()) {
              const next = save(keeping, index + 1, scoreNow)
              yield* Checkpoint.save(run, next)
              const worth = scoreNow === null || Number.isNaN(scoreNow) ? -Infinity : scoreNow
              past.unshift({ name: next.name, worth })

              // Choose from all checkpoints ever saved, newest first: a deleted one must never belong to the best again.
              const wanted =
                keeping._tag === "LastN" ? past : past.toSorted((a, b) => (a.worth === b.worth ? 0 : b.worth - a.worth))
              const keepsAll = keeping._tag === "LastN" && keeping.keep === 0
              const names = wanted.slice(0, keepsAll ? past.length : keeping.keep).map(({ name }) => name)
              const kept = (yield* run.list("checkpoints")).filter((name) => name.startsWith("ep_"))
              assert.deepEqual(kept, [...new Set([next.name, ...names])].sort())

              assert.strictEqual(yield* run.target("checkpoints/latest"), next.name)
              if (keeping._tag === "TopKValidation" && keeping.keep > 0) assert.include(kept, wanted[0].name)
              for (const name of kept) yield* Checkpoint.load(run, name)
            }
          }),
        ),
      ),
      { numRuns: tries(1000) },
    ))

  it("never lets go of the checkpoint that latest names", () =>
    fc.assert(
      fc.asyncProperty(checkpoints, strategy, (all, keeping) =>
        inMemory((run) =>
          Effect.forEach(
            all,
            Effect.fnUntraced(function* (one) {
              yield* Checkpoint.save(run, save(keeping, one.step, one.score, `weights ${one.step}`))
              const { files, skipped } = yield* Checkpoint.load(run, "latest")
              assert.strictEqual(new TextDecoder().decode(files["weights.safetensors"]), `weights ${one.step}`)
              assert.deepEqual(skipped, [])
            }),
            { discard: true },
          ),
        ),
      ),
    ))
})

it("any changed byte of a checkpoint is found out", () =>
  fc.assert(
    fc.asyncProperty(
      fc.constantFrom("weights.safetensors", "runtime.json"),
      fc.nat(),
      fc.integer({ min: 1, max: 255 }),
      (file, at, change) =>
        inMemory((run) =>
          Effect.gen(function* () {
            yield* Checkpoint.save(run, save({ _tag: "LastN", keep: 0 }, 1, null, "some weights"))
            const path = `checkpoints/ep_000001/${file}`
            const bytes = yield* run.read(path)
            bytes[at % bytes.length] ^= change
            yield* run.write(path, bytes)
            const error = yield* Effect.flip(Checkpoint.load(run, "latest"))
            assert.include(error.message, `${path}: the content differs`)
          }),
        ),
    ),
  ))
