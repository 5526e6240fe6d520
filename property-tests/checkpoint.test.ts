import { Effect } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Checkpoint from "../src/checkpoint/Checkpoint.ts"
import { RunStore } from "../src/experiment/RunStore.ts"

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
      { numRuns: 1000 },
    )
  })

  it("keeps on disk exactly what it says, whatever the order of the scores", () =>
    fc.assert(
      fc.asyncProperty(fc.array(score, { maxLength: 12 }), strategy, (scores, keeping) =>
        inMemory((run) =>
          Effect.gen(function* () {
            let expected: ReadonlyArray<{ readonly step: number; readonly worth: number }> = []
            for (const [index, one] of scores.entries()) {
              const step = 10 * index
              yield* Checkpoint.save(run, save(keeping, step, one))
              const worth = keeping._tag === "LastN" || one === null || Number.isNaN(one) ? -Infinity : one
              const all = [...expected, { step, worth }].sort((a, b) =>
                a.worth === b.worth ? b.step - a.step : b.worth - a.worth,
              )
              const keepsAll = keeping._tag === "LastN" && keeping.keep === 0
              // The one just written is what `latest` names: it stays until the next.
              expected = keepsAll ? all : all.filter((each, rank) => rank < keeping.keep || each.step === step)
              const names = (yield* run.list("checkpoints")).filter((name) => name.startsWith("ep_"))
              assert.deepEqual(
                names.toSorted(),
                expected.map((each) => `ep_${String(each.step).padStart(6, "0")}`).toSorted(),
              )
            }
          }),
        ),
      ),
      { numRuns: 1000 },
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
            assert.include(error.message, `${path}: its contents do not match`)
          }),
        ),
    ),
  ))
