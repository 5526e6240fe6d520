import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { runInThisContext } from "node:vm"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { type Browser, chromium, launch } from "../command/ui/chromium.ts"
import { bundle, inDatabase, isBundled } from "./bundle.ts"
import { inWorkerd, workerd } from "./workerd.ts"

/** The same training as one file in each form that bundlers write, wherever such a file runs. */
const folder = mkdtempSync(join(tmpdir(), "effect-bundle-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const written = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const digestOf = (result: unknown): unknown =>
  typeof result === "object" && result !== null && "digest" in result ? result.digest : result

/** The digest of each backend in Node, which the first test sets. */
const expected = { wasm: "", reference: "" }

const runs = async (exported: unknown): Promise<unknown> => {
  assert.isTrue(isBundled(exported))
  return isBundled(exported) ? digestOf(await exported.train("wasm")) : undefined
}

beforeAll(async () => {
  const exported: unknown = await import(pathToFileURL(written("first.mjs", await bundle("esm"))).href)
  if (!isBundled(exported)) throw new Error("the bundle has no train")
  for (const backend of ["wasm", "reference"] as const) {
    expected[backend] = String(digestOf(await exported.train(backend)))
  }
})

describe("a bundle in Node", () => {
  it("trains as an ES module, with the same digest each time", async () => {
    assert.match(expected.wasm, /^[0-9a-f]{64}$/)
    assert.match(expected.reference, /^[0-9a-f]{64}$/)
    assert.strictEqual(
      await runs(await import(pathToFileURL(written("second.mjs", await bundle("esm"))).href)),
      expected.wasm,
    )
  })

  it("trains as CommonJS", async () => {
    const required: unknown = createRequire(import.meta.url)(written("bundle.cjs", await bundle("cjs")))
    assert.strictEqual(await runs(required), expected.wasm)
  })

  it("trains as a script that leaves a global variable", async () => {
    assert.strictEqual(await runs(runInThisContext(`${await bundle("iife")};bundle`)), expected.wasm)
  })
})

describe.skipIf(chromium === undefined)("a bundle in Chromium", () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launch(chromium ?? "")
  })
  afterAll(() => browser?.close())

  /** An empty page of a file's is secure; \`about:blank\` is not, and lacks \`crypto.subtle\`. */
  const securePage = (): Promise<void> =>
    browser.page.goto(pathToFileURL(written("page.html", "<!doctype html><title>bundle</title>")).href)

  const inPage = async (exported: string): Promise<unknown> =>
    digestOf(await browser.page.evaluate(`(async () => (${exported}).train("wasm"))()`))

  it("trains as a script that leaves a global variable, in a page that is not secure", async () => {
    assert.isFalse(await browser.page.evaluate("isSecureContext"))
    await browser.page.evaluate(`globalThis.bundle = (() => { ${await bundle("iife")}; return bundle })(); null`)
    assert.strictEqual(await inPage("bundle"), expected.wasm)
  })

  it("trains as an ES module", async () => {
    await securePage()
    const text = JSON.stringify(await bundle("esm"))
    const url = `URL.createObjectURL(new Blob([${text}], { type: "text/javascript" }))`
    assert.strictEqual(await inPage(`await import(${url})`), expected.wasm)
  })

  it("keeps a run in the browser's database, and resumes it in another page to the digest of a whole run", async () => {
    const text = JSON.stringify(await bundle("esm", inDatabase))
    const url = `URL.createObjectURL(new Blob([${text}], { type: "text/javascript" }))`
    const call = (name: string) => browser.page.evaluate(`(async () => (await import(${url})).${name}())()`)
    await securePage()
    const kept = await call("keep")
    assert.deepInclude(kept, { runDir: "1970-01-01_00-00-00/no-hash_run_environment_algorithm/CartPole-v1_ppo/0001" })
    await browser.page.goto("about:blank")
    await securePage()
    const whole: unknown = JSON.parse(JSON.stringify(await call("never")))
    assert.strictEqual(digestOf(await call("resume")), whole)
    assert.notStrictEqual(digestOf(kept), whole)
  })

  it("trains as CommonJS, by a loader that gives it `module`", async () => {
    const text = JSON.stringify(await bundle("cjs"))
    const load = `((module) => (new Function("module", "exports", ${text})(module, module.exports), module.exports))`
    assert.strictEqual(await inPage(`${load}({ exports: {} })`), expected.wasm)
  })
})

describe.skipIf(workerd === undefined)("a bundle in workerd", () => {
  it("trains on Reference.layer with the digest that Node gives, and says so where wasm is asked for", async () => {
    const test = `export default { async test() {
      for (const backend of ["wasm", "reference"]) console.log(JSON.stringify(await train(backend)))
    } }`
    const { code, lines } = await inWorkerd(await bundle("esm", test), folder)
    assert.strictEqual(code, 0, lines.join("\n"))
    const [refused, trained] = lines.filter((line) => line.startsWith("{")).map((line): unknown => JSON.parse(line))
    assert.deepInclude(refused, { error: "BackendUnavailable" })
    assert.include(JSON.stringify(refused), "provide Reference.layer")
    assert.strictEqual(digestOf(trained), expected.reference)
  })
})
