import { existsSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { type Command, failureOf, valueOf } from "../../bench/measuring.ts"
import { peers } from "../../bench/peers/peers.ts"

const node = (code: string): Command => ({
  program: process.execPath,
  args: ["-e", code],
  variables: { ANSWER: "42" },
  value: /"value": ([\d.e+]+)/,
})

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

  it("are said to be missing with a reason", () => {
    assert.match(failureOf("no-such-program") ?? "", /^no-such-program cannot be started/)
    for (const peer of peers) assert.match(`${peer.find("/no-such-folder")}`, /^no folder \/no-such-folder\//)
  })

  it("are measured against benchmarks that exist", async () => {
    for (const { bench } of peers)
      assert.isTrue(existsSync(new URL(`../../bench/benches/${bench.replace(/-128$/, "")}.ts`, import.meta.url)), bench)
  })
})
