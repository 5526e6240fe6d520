import { assert, describe, it } from "@effect/vitest"
import { isHostName, refusedBy, sameKey } from "../../../src/base/trust/hostGuard.ts"

const loopback = { host: "127.0.0.1", machine: "box", allowed: [] }
const open = { host: "0.0.0.0", machine: "box", allowed: [] }

describe("the Host header", () => {
  it.each(["localhost", "localhost:4400", "127.0.0.1:4400", "[::1]:4400", "LOCALHOST:1", "127.9.9.9"])(
    "%s is ours",
    (host) => {
      assert.isUndefined(refusedBy(loopback, { host }))
      assert.isUndefined(refusedBy(open, { host }))
    },
  )

  it.each(["evil.example", "evil.example:4400", "localhost.evil.example", "127.0.0.1.evil.example", "", "box.evil"])(
    "%s is not",
    (host) => {
      assert.strictEqual(refusedBy(loopback, { host })?.status, 421)
      assert.strictEqual(refusedBy(open, { host })?.status, 421)
    },
  )

  it("may be an address or the machine's name only beyond loopback", () => {
    for (const host of ["10.0.0.7:4400", "box:4400", "[fe80::1]:4400"]) {
      assert.strictEqual(refusedBy(loopback, { host })?.status, 421, host)
      assert.isUndefined(refusedBy(open, { host }), host)
    }
    assert.strictEqual(refusedBy(open, {})?.status, 421)
    assert.strictEqual(refusedBy({ ...open, machine: "" }, { host: "" })?.status, 421)
  })

  it("may be a name that the user allows", () => {
    const proxied = { ...loopback, allowed: ["GPU.example.org"] }
    assert.isUndefined(refusedBy(proxied, { host: "gpu.example.org:8443", origin: "https://gpu.example.org:8443" }))
    assert.strictEqual(refusedBy(proxied, { host: "other.example.org" })?.status, 421)
    for (const name of ["gpu", "gpu.example.org", "my_box-1"]) assert.isTrue(isHostName(name), name)
    for (const name of ["", "*", "a b", "http://a", "a:1", ".a", "a/"]) assert.isFalse(isHostName(name), name)
  })
})

describe("the Origin header", () => {
  it("is missing, or that of a page of this server or machine", () => {
    for (const origin of ["http://localhost:4400", "http://127.0.0.1:8000", "http://[::1]:1", "https://localhost"]) {
      assert.isUndefined(refusedBy(loopback, { host: "localhost:4400", origin }), origin)
    }
    for (const origin of ["http://evil.example", "null", "", "file://localhost", "http://localhost.evil.example"]) {
      assert.strictEqual(refusedBy(loopback, { host: "localhost:4400", origin })?.status, 403, origin)
    }
  })
})

describe("the Sec-Fetch-Site header", () => {
  it("refuses what pages of other sites embed, but not their links and other programs", () => {
    const of = (site: string, mode: string) =>
      refusedBy(loopback, { host: "localhost:4400", "sec-fetch-site": site, "sec-fetch-mode": mode })?.status
    assert.deepStrictEqual(
      [of("cross-site", "no-cors"), of("cross-site", "navigate"), of("same-origin", "cors"), of("none", "navigate")],
      [403, undefined, undefined, undefined],
    )
  })
})

describe("a key", () => {
  it("is the same or it isn't", () => {
    assert.isTrue(sameKey("secret-secret", "secret-secret"))
    for (const given of [undefined, "", "secret-secreT", "secret-secret ", "secret"]) {
      assert.isFalse(sameKey(given, "secret-secret"))
    }
  })
})
