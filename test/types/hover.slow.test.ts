import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { join, relative } from "node:path"
import { Effect, Schema } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { BcConfig } from "../../src/algorithm/Bc.ts"
import { byName, names } from "../../src/algorithm/registry.ts"
import { isPlain } from "../../src/config/Config.ts"
import { Settings } from "../../src/train/Settings.ts"
import { fieldsOf } from "../../scripts/fields.ts"
import { languageService, type LanguageService, root } from "./languageService.ts"

/** What an editor shows over each setting: of the sources, and of the declarations that the package has. */
const folder = mkdtempSync(join(root, ".tmp-types-"))
let service: LanguageService
beforeAll(async () => {
  const tsc = join(root, "node_modules/typescript/bin/tsc")
  execFileSync(process.execPath, [tsc, "-p", join(root, "tsconfig.types.json"), "--outDir", join(folder, "dist")])
  service = await languageService()
})
afterAll(() => {
  service.close()
  rmSync(folder, { recursive: true, force: true })
})

const algorithms = [...names, "bc"].map((name) => {
  const title = `${name.charAt(0).toUpperCase()}${name.slice(1)}`
  const schema = name === "bc" ? BcConfig : Effect.runSync(byName(name, "")).schema
  const before = name === "bc" ? "Bc.make({} as never, {" : `${title}.make({`
  return { title, before, defaults: Object.entries(Schema.decodeSync(schema)({})) }
})

/** As a comment shows it: of a block with many keys, each key shows its own. */
const shownDefault = (value: unknown): string => (isPlain(value) ? "" : `@default* — ${JSON.stringify(value)}`)

const oneLine = (text: string): string => text.replaceAll(/\\([`[\]*_{}])/g, "$1").replaceAll(/`{3}\w*|\s+/g, " ")

const entries = [
  ["the sources", "../src/index.ts"],
  ["the package's declarations", `../${relative(root, folder)}/dist/index.d.ts`],
] as const

describe.each(entries)("an editor over %s", (_, from) => {
  it.each(algorithms)(
    "shows what each setting of $title means and is by default",
    async ({ title, before, defaults }) => {
      const start = `import { ${title} } from "${from.replace(/\.d\.ts$/, ".js")}"\n${before}\n`
      const text = `${start}${defaults.map(([key]) => `  ${key}: undefined!,\n`).join("")}})\n`
      const fields = fieldsOf(`src/algorithm/${title}.ts`, `${title}Config`)
      const file = `test/hover-${title}-${from.includes("dist") ? "built" : "source"}.ts`
      assert.isAbove(defaults.length, 5)
      for (const [key, value] of defaults) {
        const shown = oneLine(await service.hover(file, text, text.indexOf(`  ${key}: `) + 2))
        assert.include(shown, oneLine(fields.get(key)?.meaning ?? "a comment"), `${title}.${key}`)
        assert.include(shown, shownDefault(value), `${title}.${key}`)
      }
    },
  )

  it("shows the same of a training's settings", async () => {
    const fields = fieldsOf("src/train/Settings.ts", "Settings")
    const decoded = Schema.decodeSync(Settings)({ env: "", algorithm: {}, totalSteps: 1 })
    const keys = Object.keys(decoded).filter((key) => !["env", "algorithm"].includes(key))
    const start = `import { Train } from "${from.replace(/\.d\.ts$/, ".js")}"\nTrain.run({\n`
    const text = `${start}${keys.map((key) => `  ${key}: undefined!,\n`).join("")}  validation: { everySteps: 1 },\n})\n`
    const file = `test/hover-train-${from.includes("dist") ? "built" : "source"}.ts`
    for (const key of keys) {
      const shown = oneLine(await service.hover(file, text, text.indexOf(`  ${key}: `) + 2))
      assert.include(shown, oneLine(fields.get(key)?.meaning?.replace(/\.$/, "") ?? "a comment"), key)
    }
    const nested = oneLine(await service.hover(file, text, text.indexOf("everySteps")))
    assert.include(nested, "Validate whenever this many more env steps were taken")
  })
})
