import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { root } from "../command/cli/effect.ts"

describe("workflows", () => {
  it("use actions of others by commit, since a tag can be moved to other code", () => {
    const folder = join(root, ".github/workflows")
    const uses = readdirSync(folder).flatMap((file) =>
      Array.from(readFileSync(join(folder, file), "utf8").matchAll(/uses: (.+)$/gm), ([, action]) => action),
    )
    assert.isAbove(uses.length, 5)
    assert.deepEqual(
      uses.filter((action) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action)),
      [],
    )
  })
})
