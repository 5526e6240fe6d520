import { readdirSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import type { Bench } from "../../bench/Bench.ts"
import { type Command, failureOf, valueOf } from "../../bench/measuring.ts"
import { peers } from "../../bench/peers/peers.ts"

const node = (code: string): Command => ({
  program: process.execPath,
  args: ["-e", code],
  variables: { ANSWER: "42" },
  value: /"value": ([\d.e+]+)/,
})

const benches = new URL("../../bench/benches/", import.meta.url)
const files = readdirSync(benches).map((file) => file.slice(0, -".ts".length))

describe("programs that measure themselves", () => {
  it("run in an empty folder with their variables, and their value is read from what they print", async () => {
    const code = `console.log("noise"), console.log(JSON.stringify({ value: +process.env.ANSWER + fs.readdirSync(".").length }, null, 1))`
    assert.strictEqual(await valueOf(node(code)), 42)
  })

  it("fail with their last line when they end with an error or print no value", { tags: "slow" }, async () => {
    const messageOf = (command: Command): Promise<unknown> =>
      valueOf(command).then(
        () => undefined,
        (error: unknown) => error instanceof Error && error.message,
      )
    assert.strictEqual(
      await messageOf(node(`console.error("first\\nno module torch"), process.exit(3)`)),
      `${process.execPath} ended with 3: no module torch`,
    )
    assert.strictEqual(await messageOf(node("")), `${process.execPath} ended with 0: it printed no value`)
    assert.match(`${await messageOf({ ...node(""), program: "no-such-program" })}`, /no-such-program/)
  })

  it("are said to be missing with a reason", { tags: "slow" }, () => {
    assert.match(failureOf("no-such-program") ?? "", /^no-such-program cannot be started/)
    // Peers without sources of their own need only packages of Python, which this machine may have.
    const reasons = peers.map((peer) => peer.find("/no-such-folder")).filter((found) => typeof found === "string")
    for (const reason of reasons)
      assert.match(reason, /^no folder \/no-such-folder\/|: ModuleNotFoundError|cannot be started/)
    assert.isAbove(reasons.filter((reason) => reason.startsWith("no folder ")).length, 3)
  })

  it("are measured against benchmarks that exist", async () => {
    for (const bench of new Set(peers.map(({ bench }) => bench))) {
      const [file] = files.filter((name) => bench.startsWith(name)).toSorted((a, b) => b.length - a.length)
      const { default: found }: { readonly default: Bench | ReadonlyArray<Bench> } = await import(
        new URL(`${file}.ts`, benches).href
      )
      assert.include(
        [found].flat().map(({ name }) => name),
        bench,
      )
    }
  })
})
