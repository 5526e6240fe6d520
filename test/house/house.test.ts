import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"
import { page } from "../../scripts/settings.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const read = (file: string): string => readFileSync(join(root, file), "utf8")
const manifest = JSON.parse(read("package.json"))

describe("the house", () => {
  it("is tested on a Node that Effect supports", () => {
    const [major, minor] = process.versions.node.split(".").map(Number)
    assert.isTrue(major > 22 || (major === 22 && minor >= 19), process.versions.node)
    assert.strictEqual(manifest.engines.node, ">=22.19")
  })

  it("pins every package exactly", () => {
    for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
      assert.match(String(version), /^\d+\.\d+\.\d+$/, name)
    }
  })

  it("has the two commands of the README, and CI runs the second with the slow tests", () => {
    const readme = read("README.md")
    assert.include(readme, "npm ci && npx effect run examples/cartpole.ts")
    assert.include(readme, "npm ci && npm test")
    assert.match(read(".ci/run"), /^npm ci\n(?:[^]*\n)?npm run test:all$/m)
    assert.isTrue(existsSync(join(root, manifest.bin.effect)))
  })

  it("keeps an example of one's own env short", () => {
    assert.isAtMost(read("examples/own-parts/own-env.ts").trim().split("\n").length, 40)
  })

  it("has a page of all settings that is as the code is, and says what each one means", () => {
    // Tables are padded by the formatter.
    const plain = (text: string): string => text.replace(/ +/g, " ").replace(/-+/g, "-")
    assert.strictEqual(plain(read("docs/settings.md")), plain(page()), "npm run settings writes it")
    assert.notMatch(page(), /\| +\|\n/)
  })

  it("names no package registry's host in any file", () => {
    const tracked = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" }).trim().split("\n")
    const host = new RegExp(["registry\\.(npmjs|yarnpkg)", "deb\\.debian"].join("|") + "\\.")
    const naming = tracked.filter((file) => existsSync(join(root, file)) && host.test(read(file)))
    assert.deepStrictEqual(naming, [])
  })
})
