import { assert, describe, it } from "vitest"
import { readAnswer } from "../../../src/spread/openenv/messages.ts"

/** An object that has no text, because its keys hide the functions that make one. */
const textless = { toString: 1, valueOf: 1 }

describe("the answer of a server", () => {
  it("may have objects where texts or numbers should be", () => {
    const errors = [{ msg: "wrong", loc: ["action", textless] }]
    assert.deepStrictEqual(readAnswer(JSON.stringify({ type: "error", data: { code: "X", message: "m", errors } })), {
      code: "X",
      message: 'm: action.{"toString":1,"valueOf":1}: wrong',
    })
    const refused = readAnswer(JSON.stringify({ type: "error", data: { code: `\u001b${"C".repeat(400)}` } }))
    assert.match("code" in refused ? refused.code : "", /^\\u\{1b\}C{296}…$/)
    const observation = { type: "observation", data: { observation: {}, reward: textless } }
    assert.deepStrictEqual(readAnswer(JSON.stringify(observation)), {
      problem: 'data.reward: expected a finite number or null, found {"toString":1,"valueOf":1}',
    })
  })
})
