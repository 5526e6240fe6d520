import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, FileSystem, Stream } from "effect"
import * as Checkpoint from "../../src/run/Checkpoint.ts"
import { Checkpoints } from "../../src/run/Checkpoints.ts"
import * as Safetensors from "../../src/base/formats/safetensors.ts"
import type { RunFiles } from "../../src/run/store/RunStore.ts"
import { disk, memoryRun, temporaryRun } from "./store/disk.ts"

const all: Checkpoint.RetentionStrategy = { _tag: "LastN", keep: 0 }
const text = (content: string): Uint8Array => new TextEncoder().encode(content)

const save = (
  run: RunFiles,
  step: number,
  options: { readonly score?: number | null; readonly strategy?: Checkpoint.RetentionStrategy } = {},
) =>
  Checkpoint.save(run, {
    name: `ep_${String(step).padStart(6, "0")}`,
    step,
    score: options.score ?? null,
    strategy: options.strategy ?? all,
    files: { "weights.safetensors": text(`weights ${step}`), "runtime.json": text(`{"step":${step}}`) },
  })

/** So many parts of 64 kB, all in one buffer: each is gone when the next is asked for. */
function* inOneBuffer(parts: number): Generator<Uint8Array> {
  const buffer = new Uint8Array(65536)
  for (let part = 1; part <= parts; part++) yield buffer.fill(part)
}

const saveParts = (run: RunFiles, name: string, parts: Iterable<Uint8Array>) =>
  Checkpoint.save(run, { name, step: 1, score: null, strategy: all, files: { "a.json": text("{}"), replay: parts } })

const names = (run: RunFiles) => run.list("checkpoints")

const stepIn = ({ files }: Checkpoint.Loaded): number =>
  JSON.parse(new TextDecoder().decode(files["runtime.json"])).step

for (const [where, open] of Object.entries({ "on disk": temporaryRun, "in memory": memoryRun })) {
  const test = (title: string, body: (run: RunFiles) => Effect.Effect<void, unknown, FileSystem.FileSystem>) =>
    it.effect(title, () => Effect.flatMap(open, body).pipe(Effect.provide(disk)))

  describe(`checkpoints ${where}`, () => {
    test("come back by name and as the latest", (run) =>
      Effect.gen(function* () {
        yield* save(run, 10)
        yield* save(run, 20)
        const latest = yield* Checkpoint.load(run, "latest")
        assert.strictEqual(latest.name, "ep_000020")
        assert.deepEqual(latest.skipped, [])
        assert.deepEqual(Object.keys(latest.files).sort(), ["runtime.json", "weights.safetensors"])
        assert.strictEqual(new TextDecoder().decode(latest.files["weights.safetensors"]), "weights 20")
        assert.strictEqual(stepIn(yield* Checkpoint.load(run, "ep_000010")), 10)
      }))

    test("are folders with a manifest, and two pointers to the latest", (run) =>
      Effect.gen(function* () {
        yield* save(run, 10, { score: 1.5 })
        assert.deepEqual(yield* names(run), ["ep_000010", "latest", "latest.json"])
        assert.deepEqual(yield* run.list("checkpoints/ep_000010"), [
          "manifest.json",
          "runtime.json",
          "weights.safetensors",
        ])
        assert.strictEqual(yield* run.target("checkpoints/latest"), "ep_000010")
        assert.deepEqual(JSON.parse(yield* run.readText("checkpoints/latest.json")), { path: "ep_000010" })
        assert.deepEqual(JSON.parse(yield* run.readText("checkpoints/ep_000010/manifest.json")), {
          step: 10,
          score: 1.5,
          files: {
            "weights.safetensors": {
              sha256: "6bcd9b86c50c7963c5fc82961152ebab3be3f972dc59b0e8ab7b3fc1330ae676",
              bytes: 10,
            },
            "runtime.json": { sha256: "e480084f1920a277771bdd38f16b8e4b603f632c58f4ef56dbcb94a37ffada2c", bytes: 11 },
          },
        })
      }))

    test("take and give files part by part, in as much memory as a part", (run) =>
      Effect.gen(function* () {
        yield* saveParts(run, "ep_000001", inOneBuffer(40))
        const { files, skipped } = yield* Checkpoint.open(run, "latest")
        assert.deepEqual(skipped, [])
        assert.deepEqual(Object.keys(files), ["a.json", "replay"])
        assert.strictEqual(files.replay.bytes, 40 * 65536)
        let at = 0
        yield* Stream.runForEach(files.replay.stream, (part) =>
          Effect.sync(() => {
            if (run.directory.startsWith("/")) assert.isAtMost(part.length, 65536)
            for (const byte of part) if (byte !== 1 + Math.floor(at++ / 65536)) assert.fail(`byte ${at - 1} is ${byte}`)
          }),
        )
        assert.strictEqual(at, 40 * 65536)
        // And as any other, with the manifest that a file given as a whole would have.
        const { files: whole } = yield* Checkpoint.load(run, "ep_000001")
        const manifest = yield* run.readText("checkpoints/ep_000001/manifest.json")
        yield* Checkpoint.save(run, { name: "ep_000001", step: 1, score: null, strategy: all, files: whole })
        assert.strictEqual(yield* run.readText("checkpoints/ep_000001/manifest.json"), manifest)
      }))

    test("take tensors part by part", (run) =>
      Effect.gen(function* () {
        const tensors = {
          states: { shape: [1000, 4], data: Float32Array.from({ length: 4000 }, (_, index) => index) },
          actions: { shape: [1000], data: Int32Array.from({ length: 1000 }, (_, index) => -index) },
        }
        yield* saveParts(run, "ep_000001", Safetensors.encodeParts(tensors))
        const { files } = yield* Checkpoint.load(run, "latest")
        assert.deepEqual(Safetensors.decode(files.replay), tensors)
        assert.deepEqual(files.replay, Safetensors.encode(tensors))
      }))

    test("whose parts cannot be made are not there at all", (run) =>
      Effect.gen(function* () {
        yield* save(run, 0)
        function* failing() {
          yield* inOneBuffer(2)
          throw new Error("no more")
        }
        const exit = yield* Effect.exit(saveParts(run, "ep_000001", failing()))
        assert.isTrue(Exit.isFailure(exit))
        assert.deepEqual(yield* names(run), ["ep_000000", "latest", "latest.json"])
        assert.strictEqual((yield* Checkpoint.load(run, "latest")).name, "ep_000000")
      }))

    test("can be saved again under their name", (run) =>
      Effect.gen(function* () {
        yield* save(run, 10)
        yield* Checkpoint.save(run, {
          name: "ep_000010",
          step: 10,
          score: null,
          strategy: all,
          files: { a: text("b") },
        })
        assert.deepEqual(Object.keys((yield* Checkpoint.load(run, "latest")).files), ["a"])
      }))

    test("are found by latest.json where the link is gone", (run) =>
      Effect.gen(function* () {
        yield* save(run, 20)
        yield* save(run, 10)
        yield* run.remove("checkpoints/latest")
        assert.strictEqual((yield* Checkpoint.load(run, "latest")).name, "ep_000010")
        yield* run.write("checkpoints/latest.json", "{")
        assert.strictEqual((yield* Checkpoint.load(run, "latest")).name, "ep_000020")
      }))

    const damages: ReadonlyArray<
      readonly [string, (run: RunFiles, path: string) => Effect.Effect<void, unknown>, string]
    > = [
      ["a missing file", (run, path) => run.remove(`${path}/runtime.json`), "/runtime.json: the file is missing"],
      [
        "a file cut short",
        (run, path) => run.truncate(`${path}/runtime.json`, 5),
        "/runtime.json: expected 11 bytes, found 5",
      ],
      [
        "a flipped byte",
        (run, path) => run.write(`${path}/runtime.json`, `{"step":21}`),
        "/runtime.json: the content differs from the manifest's digest",
      ],
      [
        "a file too many",
        (run, path) => run.write(`${path}/other.json`, "{}"),
        "/other.json: the file is not in the checkpoint's manifest; remove it",
      ],
      ["no manifest", (run, path) => run.remove(`${path}/manifest.json`), "/manifest.json: the file is missing"],
      [
        "half a manifest",
        (run, path) => run.truncate(`${path}/manifest.json`, 9),
        "/manifest.json: expected a manifest (",
      ],
      [
        "a manifest that names a file elsewhere",
        (run, path) =>
          Effect.andThen(
            run.write("config.yaml", ""),
            run.write(
              `${path}/manifest.json`,
              JSON.stringify({ step: 1, score: null, files: { "../../config.yaml": { sha256: "", bytes: 0 } } }),
            ),
          ),
        "the file is not in the checkpoint's manifest; remove it",
      ],
    ]
    for (const [damage, inflict, message] of damages) {
      test(`with ${damage} are refused by name, and passed over for the one before`, (run) =>
        Effect.gen(function* () {
          yield* save(run, 10)
          yield* save(run, 20)
          yield* inflict(run, "checkpoints/ep_000020")
          const error = yield* Effect.flip(Checkpoint.load(run, "ep_000020"))
          assert.strictEqual(error._tag, "CheckpointError")
          assert.include(error.message, message)
          assert.include(error.message, `${run.directory}/checkpoints/ep_000020/`)
          for (const read of [Checkpoint.load, Checkpoint.open]) {
            const { name, skipped } = yield* read(run, "latest")
            assert.strictEqual(name, "ep_000010")
            assert.deepEqual(skipped, [{ name: "ep_000020", reason: error.message }])
          }
        }))
    }

    test("fail with what is wrong with the newest where all are damaged, and say where there are none", (run) =>
      Effect.gen(function* () {
        const none = yield* Effect.flip(Checkpoint.load(run, "latest"))
        assert.strictEqual(none.message, `${run.directory}: expected a checkpoint, found none`)
        for (const step of [10, 20]) yield* save(run, step)
        for (const step of [10, 20]) yield* run.remove(`checkpoints/ep_0000${step}/runtime.json`)
        const error = yield* Effect.flip(Checkpoint.load(run, "latest"))
        assert.strictEqual(error.message, `${run.directory}/checkpoints/ep_000020/runtime.json: the file is missing`)
        const unknown = yield* Effect.flip(Checkpoint.load(run, "ep_000030"))
        assert.strictEqual(
          unknown.message,
          `${run.directory}/checkpoints/ep_000030: expected a checkpoint, found none by this name; there are ep_000010, ep_000020`,
        )
      }))

    test("stay as long as the strategy says: the last ones, by number", (run) =>
      Effect.gen(function* () {
        const strategy = { _tag: "LastN" as const, keep: 2 }
        for (const step of [999_998, 999_999, 1_000_000]) yield* save(run, step, { strategy })
        assert.deepEqual(yield* names(run), ["ep_1000000", "ep_999999", "latest", "latest.json"])
      }))

    test("stay as long as the strategy says: the best ones, and always the latest", (run) =>
      Effect.gen(function* () {
        const strategy = { _tag: "TopKValidation" as const, keep: 2 }
        const after = Effect.fnUntraced(function* (step: number, score: number | null) {
          yield* save(run, step, { score, strategy })
          assert.strictEqual((yield* Checkpoint.load(run, "latest")).name, `ep_${String(step).padStart(6, "0")}`)
          return (yield* names(run)).filter((name) => name.startsWith("ep_")).map((name) => Number(name.slice(3)))
        })
        assert.deepEqual(yield* after(1, 5), [1])
        assert.deepEqual(yield* after(2, 9), [1, 2])
        assert.deepEqual(yield* after(3, null), [1, 2, 3])
        assert.deepEqual(yield* after(4, NaN), [1, 2, 4])
        // Equal to the first: the later is better.
        assert.deepEqual(yield* after(5, 5), [2, 5])
        assert.deepEqual(yield* after(6, -1), [2, 5, 6])
        assert.deepEqual(yield* after(7, 10), [2, 7])
      }))
  })
}

describe("a process that is killed while it replaces its only checkpoint", () => {
  it.effect("finds that again", () =>
    Effect.gen(function* () {
      const run = yield* temporaryRun
      yield* save(run, 10)
      const fs = yield* FileSystem.FileSystem
      const folder = `${run.directory}/checkpoints`
      yield* fs.rename(`${folder}/ep_000010`, `${folder}/.ep_000010.old`)
      assert.deepEqual(yield* Checkpoints.defaultValue()(run).list, ["ep_000010"])
    }).pipe(Effect.provide(disk)),
  )
})
