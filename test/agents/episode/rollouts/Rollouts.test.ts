import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, FileSystem, Schema, Stream } from "effect"
import { lines } from "../../../../src/base/formats/jsonLines.ts"
import { Rollout } from "../../../../src/agents/episode/Rollout.ts"
import * as Rollouts from "../../../../src/agents/episode/rollouts/Rollouts.ts"
import * as SingleAgent from "../../../../src/agents/episode/protocols/SingleAgent.ts"
import { counting, episodeOf, scripted } from "../support.ts"

const inFile = Effect.fnUntraced(function* (text: string | Uint8Array) {
  const fs = yield* FileSystem.FileSystem
  const path = `${yield* fs.makeTempDirectoryScoped()}/rollouts.jsonl`
  yield* fs.writeFile(path, typeof text === "string" ? new TextEncoder().encode(text) : text)
  return path
})

const reading = (text: string | Uint8Array) =>
  Effect.gen(function* () {
    const path = yield* inFile(text)
    return yield* Effect.map(Effect.result(Stream.runCollect(Rollouts.read(path))), (result) =>
      result._tag === "Success" ? result.success : result.failure.message.replaceAll(path, "FILE"),
    )
  }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))

/** Turns values that the Schema leaves open into JSON. */
const plain = (rollout: Rollout): Rollout =>
  Schema.decodeUnknownSync(Rollout)(
    JSON.parse(JSON.stringify(rollout, (_, value) => (["bigint", "symbol"].includes(typeof value) ? null : value))),
  )
const anyRollout = Arbitrary.map(Arbitrary.schema(Rollout), plain)

const played = SingleAgent.play(
  scripted(() => ({ act: "größer \u2028 \r\n 🎲" })),
  episodeOf(counting(2), { id: "first", groupId: "g", tags: { split: "train" } }),
)

describe("a file of rollouts", () => {
  it.effect.prop(
    "gives back all rollouts that were written",
    [Arbitrary.array(anyRollout)],
    ([rollouts]) =>
      Effect.gen(function* () {
        const text = rollouts.map(Rollouts.line).join("")
        assert.strictEqual(text.split("\n").length, rollouts.length + 1)
        assert.deepStrictEqual(yield* reading(text), rollouts)
      }),
    { tags: "slow" },
  )

  it.effect("is read with any texts, with empty lines, and without a last line feed", () =>
    Effect.gen(function* () {
      const rollout = yield* played
      const line = Rollouts.line(rollout)
      assert.deepStrictEqual(yield* reading(`\n${line}\n${line.trimEnd()}`), [rollout, rollout])
    }),
  )

  it.effect("names an invalid line and its problem", () =>
    Effect.gen(function* () {
      const line = Rollouts.line(yield* played)
      const wrong = line.replace('"reward":0.1', '"reward":"0.1"')
      assert.strictEqual(
        yield* reading(`${line}\n${wrong}${line}`),
        'FILE:3: steps.1.reward: expected number, found "0.1"',
      )
      assert.strictEqual(yield* reading(`${line}nothing\n`), 'FILE:2: expected JSON, found "nothing"')
      assert.match(
        String(yield* reading(line.slice(0, 200))),
        /^FILE:1: expected JSON, .*; the file ends within this line$/,
      )
      assert.strictEqual(
        yield* reading(new Uint8Array([...new TextEncoder().encode(line), 0xff, 10])),
        "FILE:2: expected UTF-8, found other bytes",
      )
    }),
  )

  it.effect("that does not exist is an error that names it", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Stream.runCollect(Rollouts.read("nowhere/rollouts.jsonl")))
      assert.strictEqual(error.message, "nowhere/rollouts.jsonl: there is no such file")
    }).pipe(Effect.provide(NodeFileSystem.layer)),
  )

  it.effect("gives the rollouts before an invalid line", () =>
    Effect.gen(function* () {
      const rollout = yield* played
      const path = yield* inFile(`${Rollouts.line(rollout)}nothing\n`)
      const seen: Array<Rollout> = []
      yield* Effect.flip(Stream.runForEach(Rollouts.read(path), (found) => Effect.sync(() => void seen.push(found))))
      assert.deepStrictEqual(seen, [rollout])
    }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer)),
  )
})

describe("lines", () => {
  const texts = Schema.Array(Schema.String.check(Schema.isPattern(/^[^\n]*$/)))

  it.effect.prop(
    "are the same however a file comes in pieces, and say where they end",
    [texts, Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 }))],
    ([written, size]) =>
      Effect.gen(function* () {
        const all = new TextEncoder().encode(written.join("\n"))
        const pieces = Array.from({ length: Math.ceil(all.length / size) }, (_, at) =>
          all.subarray(at * size, (at + 1) * size),
        )
        const found = yield* Stream.runCollect(lines(Stream.fromIterable(pieces)))
        const text = (bytes: Uint8Array) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)
        const expected = text(all)
          .split("\n")
          .flatMap((line, at) => (line === "" ? [] : [[line, at + 1]]))
        assert.deepStrictEqual(
          found.map(({ bytes, number }) => [text(bytes), number]),
          expected,
        )
        for (const { bytes, end, whole } of found) {
          const length = bytes.length + (whole ? 1 : 0)
          assert.strictEqual(text(all.subarray(end - length, end)), `${text(bytes)}${whole ? "\n" : ""}`)
        }
      }),
  )
})
