import { assert, describe, it } from "vitest"
import { contentType } from "../../src/dashboard/guard.ts"

describe("a file's type", () => {
  it("never makes a run's code something that a page would run", () => {
    assert.strictEqual(contentType("a/ui.esm.js"), "text/plain; charset=utf-8")
    assert.strictEqual(contentType("a/evil.html"), "application/octet-stream")
    assert.strictEqual(contentType("a/episode.svg"), "image/svg+xml")
    assert.strictEqual(contentType("a/b.constructor"), "application/octet-stream")
  })
})
