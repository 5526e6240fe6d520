import { assert, describe, it } from "vitest"
import { effect } from "../effect.ts"
import { colored, coloredState, hasColors } from "../../../../src/command/cli/output/colors.ts"

const terminal = { isTTY: true }
const file = {}

describe("the command's output", () => {
  it.for([
    [{}, terminal, true],
    [{}, file, false],
    [{ NO_COLOR: "1" }, terminal, false],
    // Empty is as if it were not set.
    [{ NO_COLOR: "" }, terminal, true],
    [{ FORCE_COLOR: "1" }, file, true],
    [{ FORCE_COLOR: "" }, file, false],
    [{ FORCE_COLOR: "0" }, terminal, false],
    [{ FORCE_COLOR: "false" }, terminal, false],
    [{ NO_COLOR: "1", FORCE_COLOR: "1" }, terminal, false],
    [{ TERM: "dumb" }, terminal, false],
    [{ TERM: "dumb", FORCE_COLOR: "1" }, terminal, false],
    [{ TERM: "xterm-256color" }, terminal, true],
  ] as const)("with %j, to %j, has colours: %s", ([env, stream, expected]) =>
    assert.strictEqual(hasColors(stream, env), expected),
  )

  it.for([
    ["FORCE_COLOR", "\u001b[31meffect:\u001b[0m nowhere: "],
    ["NO_COLOR", "effect: nowhere: "],
  ] as const)("names an error, with %s in the environment, by %j", async ([name, beginning]) => {
    process.env[name] = "1"
    try {
      const { code, stderr } = await effect(["runs", "nowhere"])
      assert.strictEqual(code, 2)
      assert.isTrue(stderr.startsWith(beginning), stderr)
    } finally {
      delete process.env[name]
    }
  })

  it("has states in their colours on a terminal, and other words as they are", () => {
    assert.strictEqual(coloredState("failed  ", terminal, {}), "\u001b[31mfailed  \u001b[0m")
    assert.strictEqual(coloredState("finished", terminal, {}), "\u001b[32mfinished\u001b[0m")
    assert.strictEqual(coloredState("failed", file, {}), "failed")
    assert.strictEqual(coloredState("waiting", terminal, {}), "waiting")
    assert.strictEqual(colored("bold", "x", terminal, { NO_COLOR: "1" }), "x")
  })
})
