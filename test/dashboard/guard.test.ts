import { assert, describe, it } from "vitest"
import { contentType, hostAllowed, sameToken } from "../../src/dashboard/guard.ts"

const loopback = { host: "127.0.0.1", machine: "box", token: undefined }
const open = { host: "0.0.0.0", machine: "box", token: "secret-secret" }

describe("the Host header", () => {
  it.each(["localhost", "localhost:4400", "127.0.0.1:4400", "[::1]:4400", "LOCALHOST:1", "127.9.9.9"])(
    "%s is ours",
    (host) => {
      assert.isTrue(hostAllowed(host, loopback))
      assert.isTrue(hostAllowed(host, open))
    },
  )

  it.each(["evil.example", "evil.example:4400", "localhost.evil.example", "127.0.0.1.evil.example", "", "box.evil"])(
    "%s is not",
    (host) => {
      assert.isFalse(hostAllowed(host, loopback))
      assert.isFalse(hostAllowed(host, open))
    },
  )

  it("may be an address or the machine's name only beyond loopback", () => {
    for (const host of ["10.0.0.7:4400", "box:4400", "[fe80::1]:4400"]) {
      assert.isFalse(hostAllowed(host, loopback), host)
      assert.isTrue(hostAllowed(host, open), host)
    }
    assert.isFalse(hostAllowed(undefined, open))
  })
})

describe("a token", () => {
  it("is the same or it isn't", () => {
    assert.isTrue(sameToken("secret-secret", "secret-secret"))
    for (const given of [undefined, "", "secret-secreT", "secret-secret ", "secret"]) {
      assert.isFalse(sameToken(given, "secret-secret"))
    }
  })
})

describe("a file's type", () => {
  it("never makes a run's code something that a page would run", () => {
    assert.strictEqual(contentType("a/ui.esm.js"), "text/plain; charset=utf-8")
    assert.strictEqual(contentType("a/evil.html"), "application/octet-stream")
    assert.strictEqual(contentType("a/episode.svg"), "image/svg+xml")
    assert.strictEqual(contentType("a/b.constructor"), "application/octet-stream")
  })
})
