import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { loadTraining, yamlOverrides } from "../../src/cli/userCode/loadTraining.ts"
import { setting } from "../../src/cli/run/overrides.ts"

/** What is said of a file as a training and as `--config`, without its folder. */
const messagesOf = (write: (file: string) => void) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-rl-"))),
    (folder) =>
      Effect.gen(function* () {
        const file = join(folder, "a.yaml")
        write(file)
        const errors = [yield* Effect.flip(loadTraining(file)), yield* Effect.flip(yamlOverrides(file))]
        return errors.map(({ message }) => message.replace(`${folder}/`, ""))
      }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
  )

const cases: ReadonlyArray<readonly [title: string, contents: string | Uint8Array, expected: string]> = [
  ["a list", "- 1\n", 'a.yaml: expected keys and values ("key: value"), found a list'],
  ["a single value", "CartPole-v1\n", 'a.yaml: expected keys and values ("key: value"), found "CartPole-v1"'],
  ["empty", "# nothing yet\n", 'a.yaml: expected keys and values ("key: value"), found nothing: the file is empty'],
  [
    "two documents",
    "a: 1\n---\nb: 1\n",
    "a.yaml:2: expected one YAML document, found a second one; put it into a file of its own",
  ],
  ["UTF-16", Buffer.from("\uFEFFa: 1\n", "utf16le"), "a.yaml: expected text in UTF-8, found UTF-16; save it as UTF-8"],
  ["gzip", gzipSync("a: 1\n"), "a.yaml: expected text in UTF-8, found a gzip file; unpack it first"],
  ["without an end", "env: &a { b: *a }\n", "a.yaml: env.b: expected a value, found an alias of what it is a part of"],
]

describe("a config's file is refused with one line", () => {
  for (const [title, contents, expected] of cases) {
    it.effect(`that is ${title}`, () =>
      Effect.gen(function* () {
        const messages = yield* messagesOf((file) => writeFileSync(file, contents))
        assert.deepEqual(messages, [expected, expected])
      }),
    )
  }

  it.effect("that is a device", () =>
    Effect.gen(function* () {
      const expected = "a.yaml: expected a regular file, found a device"
      assert.deepEqual(yield* messagesOf((file) => symlinkSync("/dev/zero", file)), [expected, expected])
    }),
  )
})

describe("a setting's value is refused with one line", () => {
  it.effect("that has no end, and is shown in short", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(setting("env=&a {b: *a}"))
      assert.strictEqual(
        message,
        "--set env=&a {b: *a}: the value is not valid YAML: b: expected a value, found an alias of what it is a part of",
      )
      assert.isBelow((yield* Effect.flip(setting(`env=[${"x, ".repeat(5000)}`))).message.length, 250)
    }),
  )
})
