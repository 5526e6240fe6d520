import { mkdirSync, rmSync } from "node:fs"
import { join, relative } from "node:path"
import { pathToFileURL } from "node:url"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { watchModules } from "../../../../src/spread/cluster/sent/loadedModules-node.ts"
import { asSentProgram, checkFiles } from "../../../../src/spread/cluster/sent/sentFiles-node.ts"
import { withFolder, write } from "../../../command/cli/effect.ts"

describe("the files of a program", () => {
  it("are the module and the local files that it imports, and each must be the same on a worker", () =>
    withFolder(async (folder) => {
      const file = write(folder, "train.ts", 'import { two } from "./parts/two.ts"\nimport data from "./data.json" with { type: "json" }\nexport default [two, data]\n') // prettier-ignore
      mkdirSync(join(folder, "parts"))
      const two = write(folder, "parts/two.ts", 'import { three } from "./three.ts"\nimport { Effect } from "effect"\nimport { stream } from "../../src/base/rng/Rng.ts"\nexport const two = [three, Effect.void, stream]\n') // prettier-ignore
      const three = write(folder, "parts/three.ts", "export const three = 3\n")
      write(folder, "parts/unused.ts", "export const unused = 4\n")
      const data = write(folder, "data.json", "[1]")
      watchModules()
      await import(/* @vite-ignore */ pathToFileURL(file).href)

      const sent = asSentProgram(file)
      const below = (path: string) => relative(process.cwd(), path)
      const own = sent.filter(({ path }) => path.startsWith(below(folder)))
      assert.strictEqual(own[0], sent[0])
      assert.deepStrictEqual(own.map(({ path }) => path), [file, data, three, two].map(below)) // prettier-ignore
      assert.isTrue(sent.every(({ path }) => !path.startsWith("src/") && !path.includes("node_modules")))
      const check = (files: typeof sent) => Effect.runPromise(Effect.result(checkFiles("run", files)))
      assert.strictEqual((await check(sent))._tag, "Success")

      // The worker has another file than the client.
      write(folder, "parts/three.ts", "export const three = 33\n")
      const differs = await Effect.runPromise(Effect.flip(checkFiles("run", sent)))
      assert.match(
        differs.message,
        /parts\/three\.ts: expected the file .*, version \w{12}; a worker found version \w{12}$/,
      )
      // It has the same file, but an earlier version of it is loaded, which would be used.
      const changed = asSentProgram(file)
      const stale = await Effect.runPromise(Effect.flip(checkFiles("run", changed)))
      assert.match(stale.message, /parts\/three\.ts: a worker has loaded version \w{12} of this file, .*; start the worker again$/) // prettier-ignore
      // The first module can be loaded again.
      write(folder, "parts/three.ts", "export const three = 3\n")
      write(folder, "train.ts", "export default 1\n")
      assert.strictEqual((await check(asSentProgram(file)))._tag, "Success")
      // A file that was made for the import only is not sent.
      rmSync(data)
      assert.notInclude(asSentProgram(file).map(({ path }) => path), below(data)) // prettier-ignore
    }))
})
