import { readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { keptIn } from "../../../src/tensor/backend/kept-programs-node.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { type KeptPrograms, plainModules } from "../../../src/tensor/backend/wasmModules.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../src/tensor/graph/Program.ts"
import { withFolder } from "../../command/cli/effect.ts"

const build = "library-aaaaaaaa.js"

/** Adds `added` to an input, and to a state that both programs share. */
const spec = (added: number): ProgramSpec => {
  const [x, s] = [G.input("x", [2, 3]), G.state("s", [3])]
  return {
    name: "adding",
    inputs: { x },
    state: { s: { tensor: s, next: G.add(s, added) } },
    outputs: { y: G.add(x, s) },
  }
}

/** Compiles and runs two programs as a new process does. Returns their results, and how often a module was found and made. */
const run = (kept: KeptPrograms, added = 2) => {
  let found = 0
  let made = 0
  const counting: KeptPrograms = {
    get: (description) => {
      const compiled = kept.get(description)
      if (compiled !== undefined) found++
      return compiled
    },
    set: (description, compiled) => {
      made++
      kept.set(description, compiled)
    },
  }
  const results = Effect.runSync(
    Effect.scoped(
      Effect.gen(function* () {
        const backend = Wasm.make({ ...plainModules, kept: counting })
        const programs = yield* backend.compileAll({ one: spec(added), two: spec(added + 1) })
        return [programs.one, programs.two, programs.one].map(({ feeds, runSync, results }) => {
          feeds.x.set([1, 2, 3, 4, 5, 6])
          runSync?.()
          return [...results.y]
        })
      }),
    ),
  )
  return { results, found, made }
}

describe("programs that are kept", () => {
  it("are not compiled again by the next process, and compute the same", () =>
    withFolder(async (folder) => {
      const first = run(keptIn({ folder, build }))
      const second = run(keptIn({ folder, build }))
      assert.deepEqual([first.found, first.made], [0, 1])
      assert.deepEqual([second.found, second.made], [1, 0])
      assert.deepEqual(second.results, first.results)
      assert.deepEqual(
        first.results[2],
        [1, 2, 3, 4, 5, 6].map((x) => x + 5),
      )
    }))

  it("are compiled again if they differ, or by another build", () =>
    withFolder(async (folder) => {
      run(keptIn({ folder, build }))
      assert.deepEqual(run(keptIn({ folder, build }), 3).found, 0)
      assert.deepEqual(run(keptIn({ folder, build: "library-bbbbbbbb.js" })).found, 0)
    }))

  it("are compiled again if the file is damaged, at any place", () =>
    withFolder(async (folder) => {
      const { results } = run(keptIn({ folder, build }))
      const [name] = readdirSync(folder)
      const whole = readFileSync(join(folder, name))
      const damages = [0, 31, 32, 40, whole.length >> 1, whole.length - 1].map((at) => {
        const changed = Buffer.from(whole)
        changed[at] ^= 1
        return changed
      })
      for (const content of [...damages, whole.subarray(0, 20), whole.subarray(0, -1), Buffer.alloc(0)]) {
        writeFileSync(join(folder, name), content)
        const again = run(keptIn({ folder, build }))
        assert.deepEqual([again.found, again.made], [0, 1])
        assert.deepEqual(again.results, results)
      }
    }))

  it("are compiled each time where nothing can be written", () =>
    withFolder(async (folder) => {
      writeFileSync(join(folder, "file"), "")
      const kept = keptIn({ folder: join(folder, "file"), build })
      for (let time = 0; time < 2; time++) assert.deepEqual([run(kept).found, run(kept).made], [0, 1])
    }))

  it("are removed, the oldest first, when they are many", () =>
    withFolder(async (folder) => {
      for (let i = 0; i < 201; i++) {
        const file = join(folder, `effect-rl-program-${i}`)
        writeFileSync(file, "")
        utimesSync(file, i, i)
      }
      writeFileSync(join(folder, "of-others"), "")
      run(keptIn({ folder, build }))
      const left = readdirSync(folder)
      assert.lengthOf(left, 103)
      for (const name of ["of-others", "effect-rl-program-100", "effect-rl-program-200"]) assert.include(left, name)
    }))
})
