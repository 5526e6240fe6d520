import { writeFileSync } from "node:fs"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Schema } from "effect"
import * as Layout from "../../../src/run/Layout.ts"
import { attach, Attachment, mostInline, readAttachment } from "../../../src/run/spread/Attachment.ts"
import { onDisk } from "../../../src/run/store/FileTree.ts"
import { makeRunFiles } from "../../../src/run/store/RunFiles.ts"

const bytesOf = (length: number) => Uint8Array.from({ length }, (_, at) => at * 7)

const filesIn = Effect.gen(function* () {
  const folder = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped()
  return makeRunFiles(yield* onDisk(folder), { name: "", population: {}, seed: 0 }, false)
})

const overTheWire = (attachment: Attachment) =>
  Effect.flatMap(Schema.encodeEffect(Attachment)(attachment), (encoded) =>
    Schema.decodeUnknownEffect(Attachment)(JSON.parse(JSON.stringify(encoded))),
  )

describe("bytes that are attached to a job", () => {
  it.effect("travel in it if they are few, else in a file that is removed when the job is done", () =>
    Effect.gen(function* () {
      const files = yield* filesIn
      for (const length of [0, 5, mostInline, mostInline + 1]) {
        yield* Effect.gen(function* () {
          const attachment = yield* attach(files, "a", bytesOf(length))
          assert.strictEqual(attachment._tag, length > mostInline ? "InFile" : "Inline")
          const read = yield* readAttachment("validation", yield* overTheWire(attachment))
          assert.deepStrictEqual([...read], [...bytesOf(length)])
        }).pipe(Effect.scoped)
        assert.isFalse(yield* files.exists(Layout.sent("a")))
      }
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )

  it.effect("stay until the jobs are done, if an evaluation of the same run sends the same bytes meanwhile", () =>
    Effect.gen(function* () {
      const files = yield* filesIn
      const attachment = yield* attach(files, "the run", bytesOf(mostInline + 1))
      yield* Effect.scoped(attach(files, "its evaluation", bytesOf(mostInline + 1)))
      const read = yield* readAttachment("validation", attachment)
      assert.deepStrictEqual([...read], [...bytesOf(mostInline + 1)])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )

  it.effect("are refused where the folder of the run is another one, or where the file has another content", () =>
    Effect.gen(function* () {
      const files = yield* filesIn
      const attachment = yield* attach(files, "a", bytesOf(mostInline + 1))
      if (attachment._tag !== "InFile") return yield* Effect.die("it travels in the job")
      const elsewhere = { ...attachment, path: "/nowhere/.sent/1" }
      const refusal = (one: Attachment) => Effect.map(Effect.flip(readAttachment("validation", one)), String)
      assert.match(
        yield* refusal(elsewhere),
        /\/nowhere\/\.sent\/1: .*; more than 256 KiB of weights or memory are sent by the run's folder, so mount the same results folder \(no bucket\) on all machines/,
      )
      writeFileSync(attachment.path, "something else")
      assert.match(yield* refusal(attachment), /expected the file that the job names, found another content/)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )
})
