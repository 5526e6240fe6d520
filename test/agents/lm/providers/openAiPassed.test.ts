import { assert, describe, it } from "@effect/vitest"
import { passedBytes } from "../../../../src/agents/lm/providers/openAiPassed.ts"
import { utf8 } from "../../../../src/base/text/utf8.ts"

const events = ['data: {"choices":[1]}\r\n\r\n', 'data: {"choices":[],\ndata: "usage":{}}\n\n', "data: [DONE]\n\n"]

describe("passedBytes", () => {
  it.each([1, 2, 3, 7, 1000])("removes the numbers of tokens from pieces of %i bytes", (size) => {
    const bytes = utf8.encode(events.join(""))
    const pass = passedBytes({ stream: true })
    let passed = ""
    for (let at = 0; at < bytes.length; at += size) passed += utf8.decode(pass(bytes.subarray(at, at + size)))
    assert.strictEqual(passed, `${events[0]}${events[2]}`)
  })

  it("holds back an event with very many pieces without reading them again for each piece", () => {
    const pass = passedBytes({ stream: true })
    let passed = 0
    const line = utf8.encode(`data: ${"x".repeat(93)}\n`)
    for (let piece = 0; piece < 50_000; piece++) passed += pass(line).length
    assert.strictEqual(passed, 0)
    assert.strictEqual(pass(utf8.encode("\n")).length, 50_000 * line.length + 1)
  })
})
