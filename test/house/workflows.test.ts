import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { root } from "../command/cli/effect.ts"

describe("workflows", () => {
  it("use actions of others by commit, since a tag can be moved to other code", () => {
    const folder = join(root, ".github/workflows")
    const files = [...readdirSync(folder).map((file) => `.github/workflows/${file}`), "action.yml", "docs/agents/ci.md"]
    const uses = files
      .flatMap((file) =>
        Array.from(readFileSync(join(root, file), "utf8").matchAll(/^ *(?:- )?uses: (.+)$/gm), ([, action]) => action),
      )
      // In the docs, the reader chooses the commit of this repository's own action.
      .filter((action) => !action.startsWith("OWNER/effect-rl@COMMIT"))
    assert.isAbove(uses.length, 5)
    assert.deepEqual(
      uses.filter((action) => !/^[\w-]+\/[\w-]+(?:\/[\w-]+)*@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action)),
      [],
    )
  })
})
