import { resolve } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Path } from "effect"
import { ofFile } from "../../../src/agents/task/data/Records.ts"
import { mostRecordBytes } from "../../../src/agents/task/data/RecordScanner.ts"
import { type Files, withFiles } from "./opening.ts"

/** All records of a file, with their places. */
const all = (name: string, files: Files) =>
  withFiles(files, (baseDir) =>
    Effect.gen(function* () {
      const records = yield* ofFile(name, baseDir, () => undefined)
      return yield* Effect.forEach(Array.from({ length: records.size }).keys(), records.at)
    }),
  )

const fields = (name: string, content: string | Uint8Array) =>
  Effect.map(all(name, { [name]: content }), (records) => records.map((record) => record.fields))

const wrong = (name: string, content: string | Uint8Array) =>
  Effect.map(Effect.flip(all(name, { [name]: content })), ({ message }) => message)

const bytes = (...parts: ReadonlyArray<string | number>): Uint8Array =>
  new Uint8Array(parts.flatMap((part) => (typeof part === "number" ? [part] : [...new TextEncoder().encode(part)])))

const manyNames = Array.from({ length: 150_000 }, (_, at) => `${at}`).join()

describe("a file of records", () => {
  it.effect("has one JSON object per line, with any line end", () =>
    Effect.gen(function* () {
      const expected = [{ a: 1 }, { a: "é\u2028\n" }, { a: null }]
      for (const content of [
        '{"a":1}\n{"a":"é\u2028\\n"}\n{"a":null}\n',
        '{"a":1}\n{"a":"é\u2028\\n"}\n{"a":null}',
        '{"a":1}\r\n{"a":"é\u2028\\n"}\r\n{"a":null}\r\n',
        '\n \t\n{"a":1}\n\n{"a":"é\u2028\\n"}\n\n\n  {"a":null}  \n\r\n\n',
        '\ufeff{"a":1}\n{"a":"é\u2028\\n"}\n{"a":null}\n',
      ]) {
        assert.deepStrictEqual(yield* fields("a.jsonl", content), expected)
      }
      assert.deepStrictEqual(yield* fields("A.NDJSON", '{"a":1}'), [{ a: 1 }])
    }),
  )

  it.effect("counts lines as an editor does", () =>
    Effect.gen(function* () {
      const places = (name: string, content: string) =>
        Effect.map(all(name, { [name]: content }), (records) => records.map(({ place }) => place))
      assert.deepStrictEqual(yield* places("a.jsonl", '\n{"a":1}\n\n\n{"a":2}'), ["a.jsonl:2", "a.jsonl:5"])
      assert.deepStrictEqual(yield* places("a.csv", 'a,b\n\n"1\n2",3\n4,5\n'), ["a.csv:3", "a.csv:5"])
    }),
  )

  it.effect("is CSV by its name: quoted fields hold separators, line ends and quotes", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* fields("a.csv", 'a,b\n1,\n"x, ""y""\r\nz","\n"\n , \n'), [
        { a: "1", b: "" },
        { a: 'x, "y"\r\nz', b: "\n" },
        { a: " ", b: " " },
      ])
      assert.deepStrictEqual(yield* fields("a.tsv", 'a\tb\r\n1,2\t"x\ty"\r\n'), [{ a: "1,2", b: "x\ty" }])
      assert.deepStrictEqual(yield* fields("a.csv", '\ufeff"a"\n1'), [{ a: "1" }])
    }),
  )

  it.effect("reads a field of many empty lines in little time", () =>
    Effect.gen(function* () {
      const text = `a${"\r\n".repeat(34)}b`
      assert.deepStrictEqual(yield* fields("a.csv", `q,a\r\n"${text}",1\r\n2,3\r\n\r\n`), [
        { q: text, a: "1" },
        { q: "2", a: "3" },
      ])
    }),
  )

  it.effect("is refused with the file, the line, and what was expected", () =>
    Effect.gen(function* () {
      const rows: ReadonlyArray<readonly [string, string | Uint8Array, string]> = [
        ["a.jsonl", '{"a":1}\n{"a":', 'a.jsonl:2: expected a JSON object on one line, found "{\\"a\\":"'],
        ["a.jsonl", '{"a":1}\n\n7\n', 'a.jsonl:3: expected a JSON object on one line, found "7"'],
        ["a.jsonl", "", "a.jsonl: expected at least one record, found none"],
        ["a.jsonl", " \n\n", "a.jsonl: expected at least one record, found none"],
        ["a.jsonl", bytes('{"a":1}\n{"a":"', 0xe9, '"}\n'), "a.jsonl:2: expected UTF-8, found other bytes"],
        ["a.json", '[\n{"a":1}\n]', `a.json:1: expected a JSON object on one line, found "["`],
        ["a.csv", "a,b\n", "a.csv: expected at least one record, found none"],
        ["a.csv", "a,b\n1\n", "a.csv:2: expected 2 fields as in the header, found 1"],
        ["a.csv", "a,b\n1,2\n3,4,5\n", "a.csv:3: expected 2 fields as in the header, found 3"],
        ["a.csv", "a,b,a\n", 'a.csv:1: expected a header of different names, found "a" twice'],
        ["a.csv", `${manyNames},9\n`, 'a.csv:1: expected a header of different names, found "9" twice'],
        ["a.csv", "a,\n", "a.csv:1: expected a header of names, found an empty one"],
        ["a.csv", 'a\n"x\ny\n', "a.csv:2: expected the quote opened here to be closed"],
        ["a.csv", 'a,b\n1,2\n"x"y,1\n', 'a.csv:3: expected "," or the line\'s end after a quoted field, found "y,1"'],
        [
          "a.csv",
          'a\n5" disk\n7" disk\n',
          'a.csv:2: expected a field with a quote in it to be quoted and the quote doubled, found "5\\" disk\\n7\\" disk"',
        ],
        ["a.parquet", "PAR1", "a.parquet: expected a file named .jsonl (one JSON object per line), .csv or .tsv"],
        ["a", "", "a: expected a file named .jsonl (one JSON object per line), .csv or .tsv"],
      ]
      for (const [name, content, message] of rows) assert.strictEqual(yield* wrong(name, content), message)
      const absent = yield* Effect.flip(withFiles({}, (baseDir) => ofFile("no/such.jsonl", baseDir, () => undefined)))
      assert.match(
        absent.message,
        /^no\/such\.jsonl: there is no such file; expected \/.*\/no\/such\.jsonl or \/.*\/no\/such\.jsonl$/,
      )
      const [beside, here] = absent.message.slice(absent.message.indexOf("expected ") + 9).split(" or ")
      assert.deepStrictEqual([beside, here], [absent.path, resolve("no/such.jsonl")])
      const found = yield* withFiles({}, (baseDir) => ofFile("examples/agents/qa.jsonl", baseDir, () => undefined))
      assert.isAbove(found.size, 0)
      // Beside the config goes first.
      const own = yield* withFiles({ "package.jsonl": "{}\n" }, (baseDir) =>
        ofFile("package.jsonl", baseDir, () => undefined),
      )
      assert.strictEqual(own.size, 1)
      const folder = yield* Effect.flip(
        withFiles({}, (baseDir) => ofFile(`${baseDir}/../x.csv/`, baseDir, () => undefined)),
      )
      assert.match(folder.message, /x\.csv\/: there is no such file/)
    }),
  )

  it.effect("is checked up to the first error when it is opened", () =>
    Effect.gen(function* () {
      const seen: Array<number> = []
      const error = yield* Effect.flip(
        withFiles({ "a.jsonl": '{"a":1}\n{"a":2}\n\n{"a":3}\n{"a":4}' }, (baseDir) =>
          ofFile("a.jsonl", baseDir, ({ a }, index) => {
            seen.push(index)
            return a === 3 ? "three is too many" : undefined
          }),
        ),
      )
      assert.strictEqual(error.message, "a.jsonl:4: three is too many")
      assert.deepStrictEqual(seen, [0, 1, 2])
    }),
  )

  it.effect(
    "may be larger than the cache, with records of any length in any order",
    () =>
      withFiles({}, (baseDir) =>
        Effect.gen(function* () {
          const fs = yield* FileSystem.FileSystem
          const path = (yield* Path.Path).join(baseDir, "big.jsonl")
          // 12 MiB, some records longer than a page, one exactly as long as several.
          const lengths = Array.from({ length: 200 }, (_, index) => (index === 77 ? 300_000 : (index * 997) % 120_000))
          const text = (index: number) => String.fromCharCode(97 + (index % 26)).repeat(lengths[index])
          const file = lengths.map((_, index) => `${JSON.stringify({ index, text: text(index) })}\n`).join("")
          yield* Effect.orDie(fs.writeFileString(path, file))
          const records = yield* ofFile("big.jsonl", baseDir, () => undefined)
          assert.strictEqual(records.size, 200)
          for (const step of [1, 71, 199]) {
            for (let at = 0, index = 0; at < 200; at++, index = (index + step) % 200) {
              const { fields: found } = yield* records.at(index)
              assert.strictEqual(found["index"], index)
              assert.isTrue(found["text"] === text(index))
            }
          }
          const both = yield* Effect.all([records.at(3), records.at(150)], { concurrency: "unbounded" })
          assert.deepStrictEqual(
            both.map(({ fields: found }) => found["index"]),
            [3, 150],
          )
        }),
      ),
    { tags: "slow" },
  )

  it.effect("must not change while it is used", () =>
    withFiles({ "a.jsonl": '{"a":1}\n{"a":2}\n', "b.jsonl": '{"a":1}\n{"a":2}\n' }, (baseDir) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const a = yield* ofFile("a.jsonl", baseDir, () => undefined)
        const b = yield* ofFile("b.jsonl", baseDir, () => undefined)
        yield* Effect.orDie(fs.writeFileString(path.join(baseDir, "a.jsonl"), '{"a":1}\n{"a"'))
        yield* Effect.orDie(fs.remove(path.join(baseDir, "b.jsonl")))
        assert.strictEqual((yield* Effect.flip(a.at(1))).message, "a.jsonl:2: the file has changed since it was opened")
        assert.match((yield* Effect.flip(b.at(0))).message, /^b\.jsonl: there is no such file/)
      }),
    ),
  )

  it.effect("has the digest that other programs compute", () =>
    Effect.gen(function* () {
      const digest = (content: string) =>
        withFiles({ "a.jsonl": content }, (baseDir) =>
          Effect.map(
            ofFile("a.jsonl", baseDir, () => undefined),
            (records) => records.digest,
          ),
        )
      // printf '{"a":1}\n' | sha256sum
      assert.strictEqual(yield* digest('{"a":1}\n'), "e346432021b04179518d9614f3560ccd71354a4ee101ddcb893d6959a9d6301c")
      assert.notStrictEqual(yield* digest('{"a":1}'), yield* digest('{"a":1}\n'))
    }),
  )

  it.effect("is refused at a record that never ends", () =>
    Effect.gen(function* () {
      const open = `a\n"${"x".repeat(mostRecordBytes + 1)}`
      assert.match(
        yield* wrong("a.csv", open),
        /^a\.csv:2: expected a record of at most 16777216 bytes, found a longer one$/,
      )
    }),
  )
})
