import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { loadTraining } from "../../../../src/command/cli/userCode/loadTraining.ts"
import { readLocatedYaml, yamlOverrides } from "../../../../src/command/cli/userCode/yamlFile.ts"

const withFile = <A, E, R>(text: string, use: (file: string) => Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-rl-"))),
    (folder) => {
      const file = join(folder, "conf.yaml")
      writeFileSync(file, text)
      return use(file)
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
  ).pipe(Effect.provide(NodeServices.layer))

const overridesOf = (text: string) =>
  withFile(text, (file) =>
    Effect.map(yamlOverrides(file), (overrides) =>
      overrides.map(({ path, value, source }) => ({ path, value, line: Number(source.split(":").at(-1)) })),
    ),
  )

describe("yamlOverrides", () => {
  it.effect("returns every leaf with its line; an empty map is a leaf, and names come first", () =>
    Effect.gen(function* () {
      const text = "seed: 3\nalgorithm:\n  learning_rate: 0.5\n  prioritised: {}\n  name: dqn\n"
      assert.deepEqual(yield* overridesOf(text), [
        { path: "seed", value: 3, line: 1 },
        { path: "algorithm.name", value: "dqn", line: 5 },
        { path: "algorithm.learning_rate", value: 0.5, line: 3 },
        { path: "algorithm.prioritised", value: {}, line: 4 },
      ])
    }),
  )
})

describe("readLocatedYaml", () => {
  it.effect("returns the line of every key, also of sections and in lists, but not in data", () =>
    withFile("a:\n  # a note\n  some_key:\n    deep: 1\nagents:\n  - type: x\nd:\n  items: [{ q: 1 }]\n", (file) =>
      Effect.map(readLocatedYaml(file), ({ lines }) =>
        assert.deepEqual(
          [...lines].map(([key, source]) => [key, source.slice(file.length)]),
          [
            ["a", ":1"],
            ["a.someKey", ":3"],
            ["a.someKey.deep", ":4"],
            ["agents", ":5"],
            ["agents.0.type", ":6"],
            ["d", ":7"],
            ["d.items", ":8"],
          ],
        ),
      ),
    ),
  )
})

/** The errors of a file as a training and as `--config`, without its folder. */
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
  ).pipe(Effect.provide(NodeServices.layer))

const cases: ReadonlyArray<readonly [title: string, contents: string | Uint8Array, expected: string]> = [
  ["a list", "- 1\n", 'a.yaml: expected keys and values ("key: value"), found a list'],
  ["a single value", "CartPole-v1\n", 'a.yaml: expected keys and values ("key: value"), found "CartPole-v1"'],
  [
    "an empty file",
    "# nothing yet\n",
    'a.yaml: expected keys and values ("key: value"), found nothing: the file is empty',
  ],
  [
    "two documents",
    "a: 1\n---\nb: 1\n",
    "a.yaml:2: expected one YAML document, found a second one; put it into a file of its own",
  ],
  ["UTF-16", Buffer.from("\uFEFFa: 1\n", "utf16le"), "a.yaml: expected text in UTF-8, found UTF-16; save it as UTF-8"],
  ["gzip", gzipSync("a: 1\n"), "a.yaml: expected text in UTF-8, found a gzip file; unpack it first"],
  [
    "an endless alias",
    "env: &a { b: *a }\n",
    "a.yaml: env.b: expected a value, found an alias of what it is a part of",
  ],
]

describe("a file that can't be read", () => {
  for (const [title, contents, expected] of cases) {
    it.effect(`is refused with one line: ${title}`, () =>
      Effect.gen(function* () {
        const messages = yield* messagesOf((file) => writeFileSync(file, contents))
        assert.deepEqual(messages, [expected, expected])
      }),
    )
  }

  it.effect("is refused with one line: a device", () =>
    Effect.gen(function* () {
      const expected = "a.yaml: expected a regular file, found a device"
      assert.deepEqual(yield* messagesOf((file) => symlinkSync("/dev/zero", file)), [expected, expected])
    }),
  )
})
