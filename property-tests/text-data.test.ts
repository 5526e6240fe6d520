import * as fc from "fast-check"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { fieldsOf } from "../src/base/formats/csv.ts"
import { RecordScanner } from "../src/agents/task/data/RecordScanner.ts"
import { template } from "../src/agents/task/data/question.ts"
import * as TaskSet from "../src/agents/task/TaskSet.ts"
import * as TextEnv from "../src/agents/task/TextEnv.ts"

const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: fc.constantFrom('"', ",", "\n", "\r", "\t", " ", "a", "é", "{", "}") }),
)

/** Records as a scanner finds them in chunks that end anywhere. */
const scanned = (content: string, csv: boolean, cuts: ReadonlyArray<number>) => {
  const bytes = new TextEncoder().encode(content)
  const found: Array<{ readonly record: string; readonly offset: number; readonly line: number }> = []
  const scanner = new RecordScanner(csv, (record, offset, line) => {
    found.push({ record: new TextDecoder("utf-8", { ignoreBOM: true }).decode(record), offset, line })
    return undefined
  })
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b)
  let from = 0
  for (const end of ends) {
    scanner.push(bytes.slice(from, end))
    from = end
  }
  scanner.end()
  return found
}

const cuts = fc.array(fc.nat(), { maxLength: 20 })
const lineEnd = fc.constantFrom("\n", "\r\n")

const quoted = (field: string): string => `"${field.replaceAll('"', '""')}"`

describe("records of a file", () => {
  it("are the JSON objects that were written, wherever chunks end", () => {
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(text, fc.jsonValue()), { minLength: 1 }),
        lineEnd,
        cuts,
        (records, end, at) => {
          const written = records.map((record) => JSON.stringify(record))
          const found = scanned(written.join(end), false, at)
          assert.deepStrictEqual(
            found.map(({ record }) => record),
            written,
          )
          assert.deepStrictEqual(
            found.map(({ line }) => line),
            written.map((_, index) => index + 1),
          )
        },
      ),
    )
  })

  it("are the CSV fields that were written, quoted or not, wherever chunks end", () => {
    const field = fc.record({ text, bare: fc.boolean() })
    const table = fc
      .integer({ min: 1, max: 4 })
      .chain((columns) => fc.array(fc.array(field, { minLength: columns, maxLength: columns }), { minLength: 1 }))
    fc.assert(
      fc.property(table, lineEnd, cuts, fc.constantFrom(",", "\t"), (rows, end, at, separator) => {
        // Quotes may be left out only where nothing needs them.
        const written = rows.map((row) =>
          row
            .map(({ text: value, bare }) =>
              bare && /^[^"\r\n,\t ]+$/.test(value) && value.trim() !== "" ? value : quoted(value),
            )
            .join(separator),
        )
        const found = scanned(written.join(end), true, at)
        assert.deepStrictEqual(
          found.map(({ record, line }) => fieldsOf(record, separator, line)),
          rows.map((row) => row.map((cell) => cell.text)),
        )
        const content = new TextEncoder().encode(written.join(end))
        for (const { record, offset } of found) {
          const bytes = new TextEncoder().encode(record)
          assert.deepStrictEqual(content.slice(offset, offset + bytes.length), bytes)
        }
      }),
    )
  })

  it("of a broken CSV are read or refused with a message", () => {
    fc.assert(
      fc.property(text, (record) => {
        const fields = fieldsOf(record, ",", 1)
        assert.isTrue("problem" in fields || fields.every((field) => typeof field === "string"))
      }),
    )
  })
})

describe("a template", () => {
  it("replaces {question}, halves doubled braces, and keeps all else", () => {
    const piece = fc.oneof(text, fc.constant(null))
    fc.assert(
      fc.property(fc.array(piece), text, (pieces, question) => {
        const all = [...pieces, null]
        const written = all.map((part) => part?.replaceAll("{", "{{").replaceAll("}", "}}") ?? "{question}").join("")
        const put = template(written)
        assert.isFunction(put)
        if (typeof put === "function") {
          assert.strictEqual(put(question), all.map((part) => part ?? question).join(""))
        }
      }),
    )
  })
})

const numbered = (size: number): TaskSet.TaskSet =>
  TaskSet.of(
    "numbers",
    Array.from({ length: size }, (_, index) =>
      TextEnv.make({
        id: String(index),
        type: "number",
        begin: () => ({ state: null, observation: "" }),
        step: () => ({
          state: null,
          observation: null,
          feedback: { score: 0, target: null, message: "" },
          terminated: true,
        }),
      }),
    ),
  )

const ids = (tasks: TaskSet.TaskSet): ReadonlyArray<number> =>
  Effect.runSync(
    Effect.forEach(Array.from({ length: tasks.size }).keys(), (index) =>
      Effect.map(tasks.at(index), ({ id }) => Number(id)),
    ),
  )

describe("the order of tasks", () => {
  const order = fc.record({
    shuffle: fc.boolean(),
    seed: fc.integer(),
    maxSamples: fc.option(fc.nat(60)),
  })

  it("has each task at most once, and all of them by default", () => {
    fc.assert(
      fc.property(fc.nat(50), order, (size, how) => {
        const found = ids(TaskSet.ordered(numbered(size), how))
        assert.lengthOf(found, Math.min(size, how.maxSamples ?? size))
        assert.strictEqual(new Set(found).size, found.length)
        assert.isTrue(found.every((id) => id >= 0 && id < size))
        if (!how.shuffle)
          assert.deepStrictEqual(
            found,
            found.toSorted((a, b) => a - b),
          )
      }),
    )
  })

  it("of fewer tasks is a prefix of the order of more", () => {
    fc.assert(
      fc.property(fc.nat(50), order, fc.nat(60), (size, how, maxSamples) => {
        const whole = ids(TaskSet.ordered(numbered(size), { ...how, maxSamples: null }))
        assert.deepStrictEqual(ids(TaskSet.ordered(numbered(size), { ...how, maxSamples })), whole.slice(0, maxSamples))
      }),
    )
  })

  it("keeps what is picked in its order", () => {
    fc.assert(
      fc.property(fc.nat(50), order, fc.integer({ min: 1, max: 5 }), (size, how, divisor) => {
        const picked = ids(TaskSet.ordered(numbered(size), how, (place) => place % divisor === 0))
        const kept = ids(TaskSet.ordered(numbered(size), how)).filter((id) => id % divisor === 0)
        assert.deepStrictEqual(picked, kept)
      }),
    )
  })

  it("differs for another seed", () => {
    const orders = Array.from({ length: 50 }, (_, seed) =>
      ids(TaskSet.ordered(numbered(20), { shuffle: true, seed, maxSamples: null })).join(),
    )
    assert.strictEqual(new Set(orders).size, 50)
  })
})
