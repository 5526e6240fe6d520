import { assert, describe, it } from "vitest"
import { contentType } from "../../../src/command/ui/guard.ts"

describe("a file's type", () => {
  it("never makes a run's code something that a page would run", () => {
    assert.strictEqual(contentType("a/ui.esm.js"), "text/plain; charset=utf-8")
    for (const type of [
      "html",
      "htm",
      "xhtml",
      "xml",
      "xsl",
      "mht",
      "mhtml",
      "pdf",
      "svgz",
      "wasm",
      "mjs",
      "css",
      "swf",
      "",
    ]) {
      assert.strictEqual(contentType(`a/evil.${type}`), "application/octet-stream", type)
    }
    assert.strictEqual(contentType("a/episode.svg"), "image/svg+xml")
    assert.deepStrictEqual(
      ["gif", "mp4"].map((ending) => contentType(`a/episode.${ending}`)),
      ["image/gif", "video/mp4"],
    )
    assert.strictEqual(contentType("a/b.constructor"), "application/octet-stream")
  })
})
