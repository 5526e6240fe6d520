import { assert, describe, it } from "vitest"
import { fromText, NotPlain, toText } from "../../../../src/rl/env/internal/plainData.ts"

describe("plain data", () => {
  it.each([
    [0],
    [-0],
    [Number.NaN],
    [Number.NEGATIVE_INFINITY],
    [5e-324],
    [0.1 + 0.2],
    [null],
    [undefined],
    [true],
    ["line\nend \u{1F600} \ud800"],
    [12345678901234567890n],
    [[]],
    [{}],
    [{ $: "-0" }],
    [{ $: { $: [undefined, -0] }, b: [{ c: Number.NaN }] }],
    [{ ["__proto__"]: 1 }],
    [Float64Array.of(-0, Number.NaN, 1e-300)],
    [Float32Array.of(0.1, Number.POSITIVE_INFINITY)],
    [{ grid: Uint8Array.of(1, 2), walls: Int16Array.of(-5) }],
  ])("%o round-trips", (value) => {
    const back = fromText(toText(value))
    assert.deepStrictEqual(back, value)
    assert.isTrue(Object.is(back, value) || typeof value === "object")
    assert.strictEqual(toText(back), toText(value))
  })

  it("keeps the sign of zero in arrays", () => {
    assert.isTrue(Object.is((fromText(toText([-0])) as ReadonlyArray<number>)[0], -0))
    assert.isTrue(Object.is((fromText(toText(Float64Array.of(-0))) as Float64Array)[0], -0))
  })

  const cycle: Record<string, unknown> = { here: {} }
  cycle["here"] = { again: cycle }
  class Monster {
    readonly health = 3
  }
  it.each([
    [{ a: [0, () => 1] }, "state.a[1]", "a function"],
    [{ a: new Map() }, "state.a", "an instance of Map"],
    [[{ m: new Monster() }], "state[0].m", "an instance of Monster"],
    [new Date(0), "state", "an instance of Date"],
    [Symbol("s"), "state", "a symbol"],
    [{ [Symbol("s")]: 1 }, "state", "a symbol key"],
    [cycle, "state.here.again", "a cycle"],
    [new DataView(new ArrayBuffer(1)), "state", "an instance of DataView"],
  ])("%o is refused with its path", (value, path, kind) => {
    try {
      toText(value)
      assert.fail("it was taken")
    } catch (error) {
      assert.instanceOf(error, NotPlain)
      assert.deepEqual({ ...error }, { path, kind })
    }
  })

  it("may contain one object twice", () => {
    const shared = { a: 1 }
    assert.deepEqual(fromText(toText([shared, shared])), [shared, shared])
  })

  it.each(["no JSON", `${"[".repeat(100_000)}${"]".repeat(100_000)}`, '{"$":"bigint","value":"x"}'])(
    "is undefined for a text that was not written by it (%#)",
    (text) => assert.isUndefined(fromText(text)),
  )
})
