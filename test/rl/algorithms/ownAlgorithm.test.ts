import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll } from "vitest"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import { root } from "../../command/cli/effect.ts"
import { keep } from "../train/inMemory.ts"
import { copiedAlgorithms } from "./copied.ts"

/** A project of somebody else's: a folder in which `effect-rl` and `effect` are installed. */
const project = mkdtempSync(join(tmpdir(), "effect-own-algorithm-"))
afterAll(() => rmSync(project, { recursive: true, force: true }))

const write = (path: string, text: string): void => writeFileSync(join(project, path), text)

describe("algorithms copied into a project of its own, with their imports taken from effect-rl", () => {
  mkdirSync(join(project, "node_modules"))
  symlinkSync(root, join(project, "node_modules/effect-rl"))
  symlinkSync(join(root, "node_modules/effect"), join(project, "node_modules/effect"))
  write("package.json", '{ "type": "module" }')
  for (const { file, text } of copiedAlgorithms) write(file, text)

  it("import nothing else of ours", () => {
    for (const { text } of copiedAlgorithms) {
      const imports = [...text.matchAll(/ from "([^"/]+)[^"]*"/g)].map(([, from]) => from)
      assert.sameMembers([...new Set(imports)], ["effect", "effect-rl"])
    }
  })

  it.effect("train to the same bits as the library's: A2C", () =>
    Effect.gen(function* () {
      const copy: typeof A2c = yield* Effect.promise(() => import(pathToFileURL(join(project, "MyA2c.ts")).href))
      assert.notStrictEqual(copy.make, A2c.make)
      const digests = yield* Effect.forEach([A2c, copy], ({ make }) =>
        Effect.map(keep({ env: CartPole.env, algorithm: make({ hidden: [8] }), totalSteps: 400 }), ({ result }) => {
          return result.digest
        }),
      )
      assert.strictEqual(digests[0], digests[1])
    }),
  )
})
